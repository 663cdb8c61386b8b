// Ridge-regularized least squares with more columns than rows, solved by a semismooth Newton method
// on the dual, which has one unknown per row of A and one per group. The method suits problems with
// many free variables, for which the working sets of the block solver are too small.
#pragma once

#include <vector>

#include "../core/thread_pool.hpp"
#include "../core/types.hpp"

namespace pairstep {

// min |Ax - b|^2/2 + ridge'x^2/2 + c'x with ridge > 0 and without L1 terms. The squares may have
// weights of any sign as long as the whole function is convex.
struct Ridged {
  const double* A;  // m x n, by rows
  Index m;
  const double* weight;  // m weights of the squares, or null
  const double *b, *ridge, *c, *totals;
};

// Estimated number of multiplications.
double cost_of_dual_newton(Index m, Index n);

// Set x to a point near the optimum with sums that are exact up to rounding. The method starts from
// `residual`, which is Ax - b at some point times the weights, and from a `multiplier` for each
// group's sum. Return false if it does not converge.
bool dual_newton(const Ridged& problem, const Point& point, const std::vector<double>& residual,
                 const std::vector<double>& multiplier, std::vector<double>& x, ThreadPool& pool);

}  // namespace pairstep
