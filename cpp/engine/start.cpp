#include "start.hpp"

#include <algorithm>
#include <vector>

#include "../core/feasible.hpp"
#include "../core/quadratic.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// Raise the variables from their lower bounds until the sum is reached, those with the smallest
// cost per unit first (see `fill`). At most one variable ends between its bounds.
void fill_smallest_first(const Small& problem, double* x) {
  const Index n = problem.n, starts[] = {0, n};
  std::vector<double> gradient(n), curvature(n);
  quadratic(problem.hessian, problem.linear, n, problem.lower, gradient.data());
  for (Index i = 0; i < n; ++i) curvature[i] = std::max(problem.hessian[i * (n + 1)], 0.0);
  fill(gradient.data(), curvature.data(), problem.lower, problem.upper, {1, starts, &problem.total},
       x);
}

}  // namespace

bool start(const Small& problem, const SharedCost& shared, double* x) {
  const Pivoted found = isa().pivot(problem, shared, x);
  if (found == Pivoted::not_convex) return false;
  if (found == Pivoted::many_at_bounds) fill_smallest_first(problem, x);
  return true;
}

}  // namespace pairstep
