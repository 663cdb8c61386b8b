// Convexity of a quadratic on the subspace of steps that keep the sums, from a Cholesky
// factorization of the Hessian reduced to that subspace.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

// The reduced curvatures are differences of Hessian entries, so a curvature of 0 may come out
// slightly negative. The values are relative to the largest curvature of a coordinate.
struct ConvexitySettings {
  // Rounding error of a reduced curvature. A Hessian that is positive definite with this ridge is
  // accepted as convex.
  static constexpr double rounding = 1e-14;
  // A Hessian that is positive definite only with a ridge between `rounding` and this one counts as
  // singular and indefinite by rounding alone; the result of the solve mentions it. A Hessian that
  // needs a larger ridge is not convex. A larger value would accept more Hessians that are truly
  // indefinite; a smaller one would reject singular Hessians that were computed inaccurately.
  static constexpr double max_rounding = 1e-9;
};

// Whether the quadratic is convex along all steps of the coordinates `index` (in ascending order)
// that keep the sum of each group [starts[k], starts[k+1]).
enum class Convex : int { no, but_for_rounding, yes };
Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const Index* starts);

}  // namespace pairstep
