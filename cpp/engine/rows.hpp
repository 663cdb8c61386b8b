// Quadratic programs with bounds and general linear rows,
//
//   minimize x'Qx/2 + c'x + sum_i k_i |x_i - p_i|   subject to  lower <= x <= upper,  low <= Gx <=
//   high,
//
// by following the solution from a problem that a given point solves (the parametric active-set
// method; Ferreau, Bock and Diehl 2008). Sums are rows whose limits are equal.
#pragma once

#include <vector>

#include "../core/interrupt.hpp"
#include "../core/types.hpp"

namespace pairstep {

// Q is `hessian`, or F'F + diag(D) if that is null.
struct RowsProblem {
  Index n, rows;
  const double* hessian;             // n x n
  const double *factors, *diagonal;  // m x n, n
  Index m;
  const double *linear, *lower, *upper;
  const double *l1, *center;  // null without L1 terms
  const double* matrix;       // rows x n
  const double *low, *high;   // rows
};

struct RowsAnswer {
  enum Status { optimal, infeasible, stalled };  // stalled: also if the time is over
  Status status;
  std::vector<double> x;
  // The derivative of the optimal value with respect to the limit of each row. If the problem is
  // infeasible: weights with which the rows contradict each other and the bounds. The weighted sum
  // of the rows is at least that of their limits (low for positive weights, high for negative
  // ones), but no x within the bounds reaches it.
  std::vector<double> multipliers;
  Index changes;  // of the active set
};

// `start` is within the bounds and satisfies the rows whose limits are equal and that have `holds`
// set. `seed` selects the random perturbations that break ties.
RowsAnswer solve_rows(const RowsProblem& problem, const double* start, const bool* holds,
                      unsigned seed, InterruptCheck& interrupt);

}  // namespace pairstep
