// Starting points for small dense quadratic programs.
#pragma once

#include "small.hpp"

namespace pairstep {

// Set x to the minimum itself if block pivoting finds it, which it usually does if few variables
// are at their bounds; otherwise to a point with at most one variable between its bounds. The sum
// of x is the total up to rounding. If Q is not convex on the subspace of steps that keep the sum,
// return false; x is then not feasible.
bool start(const Small& problem, double* x);

}  // namespace pairstep
