// The function x'Qx/2 + c'x of a dense matrix: one way to compute it for all who report it.
#pragma once

#include "types.hpp"

namespace pairstep {

// The value at x; the gradient is written.
double quadratic(const double* Q, const double* c, Index n, const double* x, double* gradient);

}  // namespace pairstep
