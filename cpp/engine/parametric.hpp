// Quadratic programs with bounds, L1 terms and general linear rows,
//
//   minimize x'Qx/2 + c'x + sum_i k_i |x_i - p_i|
//   subject to lower <= x <= upper,  low <= Gx <= high,
//
// and their solutions while c, k, low and high change linearly with a parameter t (the parametric
// active-set method: Best 1996; Ferreau, Bock and Diehl 2008; with c alone, Markowitz's critical
// line). The solution moves along straight lines between corners, where the active set changes. A
// sum is a row whose limits are equal.
#pragma once

#include <memory>
#include <vector>

#include "../core/interrupt.hpp"
#include "../core/types.hpp"

namespace pairstep {

// Q is `hessian`, or F'F + diag(D) if that is null.
struct QuadraticProgram {
  Index n, rows;
  const double* hessian;             // n x n
  const double *factors, *diagonal;  // m x n, n
  Index m;
  const double *linear, *lower, *upper;
  const double *l1, *center;  // null without L1 terms
  const double* matrix;       // rows x n
  const double *low, *high;   // rows
};

// How the problem changes per unit of t.
struct Direction {
  const double* linear;  // n
  const double* l1;      // n, or null if the weights do not change
};

// Where a path stops: where a measure of x reaches its limit.
struct Cap {
  enum Measure { none, variance, distance };
  Measure measure = none;
  // variance: (x - b)'Q(x - b), given b and Qb. distance: sum_i |x_i - p_i|.
  const double *b = nullptr, *product = nullptr;
  double limit = 0.0;
};

// The points of a path where its direction changes, from its first to its last point.
struct Corners {
  std::vector<double> t, x, multipliers;  // 1, n and rows numbers per corner
  std::vector<double> ray;                // change of x per unit of t after the last corner
};

class Parametric {
 public:
  // arrived: at the end of the path, or where nothing changes any more. capped: at the cap.
  // stalled: also if the time is over.
  enum Status { arrived, capped, infeasible, stalled };

  virtual ~Parametric() = default;
  virtual std::unique_ptr<Parametric> copy() const = 0;

  // Solve the problem. `start` is within the bounds and satisfies the rows whose limits are equal
  // and that have `holds` set. `seed` selects the random perturbations that break ties.
  virtual Status solve(const double* start, const bool* holds, unsigned seed, InterruptCheck&) = 0;
  // From the solution, change the problem in a direction by at most `distance`, which may be
  // infinite.
  virtual Status follow(const Direction&, double distance, const Cap&, Corners*,
                        InterruptCheck&) = 0;
  // From the solution, move variable i to `value`, give it new bounds that contain `value`, and
  // continue to the solution with these bounds.
  virtual Status move(Index i, double value, double lower, double upper, InterruptCheck&) = 0;

  virtual const std::vector<double>& x() const = 0;
  // The derivative of the optimal value with respect to the limit of each row. If the problem is
  // infeasible: weights with which the rows contradict each other and the bounds. The weighted sum
  // of the rows is at least that of their limits (low for positive weights, high for negative
  // ones), but no x within the bounds reaches it.
  virtual const std::vector<double>& multipliers() const = 0;
  // Qx + c - G'v.
  virtual const std::vector<double>& derivatives() const = 0;
  virtual double value() const = 0;   // of the objective
  virtual double t() const = 0;       // length of the last path
  virtual Index changes() const = 0;  // of the active set, since the beginning
};

// The arrays that `problem` refers to must outlive the object.
std::unique_ptr<Parametric> make_parametric(const QuadraticProgram& problem);

}  // namespace pairstep
