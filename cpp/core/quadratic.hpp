// The function x'Qx/2 + c'x with a dense matrix. solve_small and Python's `Quadratic` share this
// implementation, so that both report the same value for the same point.
#pragma once

#include "types.hpp"

namespace pairstep {

// Return the value at x and write the gradient.
double quadratic(const double* Q, const double* c, Index n, const double* x, double* gradient);

}  // namespace pairstep
