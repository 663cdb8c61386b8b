// The function x'Qx/2 + c'x with a dense matrix. All solvers report values computed by this one
// function, so that equal points have equal values.
#pragma once

#include "types.hpp"

namespace pairstep {

// Return the value at x and write the gradient.
double quadratic(const double* Q, const double* c, Index n, const double* x, double* gradient);

}  // namespace pairstep
