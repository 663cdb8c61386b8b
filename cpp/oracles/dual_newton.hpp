// Least squares with a ridge and more columns than rows, all at once: Newton's method on the dual,
// in as many unknowns as A has rows and the constraint has groups. It costs little where most
// variables are free, and there the working sets of the block gear are too small.
#pragma once

#include <vector>

#include "../core/team.hpp"
#include "../core/types.hpp"

namespace pairstep {

// min |Ax - b|^2/2 + ridge'x^2/2 + c'x, ridge > 0, without kinks. The squares may have weights of
// any sign, if the whole is convex nevertheless.
struct Ridged {
  const double* A;  // m x n, by rows
  Index m;
  const double* weight;  // m, or null
  const double *b, *ridge, *c, *totals;
};

// Roughly how many multiplications it takes.
double cost_of_dual_newton(Index m, Index n);

// A point near the optimum, its sums right but for rounding. `residual` is Ax - b at a point, times
// the weights, and `multiplier` has a price for each group: where to start. False if it does not
// get there.
bool dual_newton(const Ridged& problem, const Point& point, const std::vector<double>& residual,
                 const std::vector<double>& multiplier, std::vector<double>& x, Team& team);

}  // namespace pairstep
