// Starting points for small dense quadratic programs.
#pragma once

#include "small.hpp"

namespace pairstep {

// How block pivoting (isa/pivoting.hpp) ended. `x` is the minimum, up to rounding of its sum, only
// if it was found.
enum class Pivoted { minimum, many_at_bounds, not_convex };

// Set x to the minimum itself if block pivoting finds it, which it usually does if few variables
// are at their bounds; otherwise to a point with at most one variable between its bounds. The sum
// of x is the total up to rounding. If Q is not convex on the subspace of steps that keep the sum,
// return false; x is then not feasible.
// `shared` is the shared cost of the linear term.
bool start(const Small& problem, const SharedCost& shared, double* x);

}  // namespace pairstep
