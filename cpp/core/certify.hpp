// Optimality certificates: how far a point is from the optimum, computed from the point and its
// gradient alone, independently of the solver that produced the point.
//
// The KKT violation is max over decreasing coordinates of the left derivative minus min over
// increasing coordinates of the right derivative (Keerthi et al. 2001; LIBSVM's stopping rule). The
// bound on f(x) - f* is the Frank-Wolfe gap max_s g'(x - s) over the feasible s (Jaggi 2013), which
// is exact for sums and bounds because sorting the derivatives solves the linear program.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy.hpp"
#include "types.hpp"

namespace pairstep {

struct Certificate {
  // Largest left derivative minus smallest right derivative, at least 0. Coordinates are compared
  // within a group and, if the groups are nested, also across groups whose sums have slack.
  double violation = 0.0;
  double bound = 0.0;  // Frank-Wolfe gap: at least f(x) - f* where f is convex
  // The same gap if x_i moves at most r to the next bound or breakpoint and at most r beyond that
  // breakpoint, where r is the largest |x_j| of its group (of all groups if they are nested). It
  // measures the improvement near the point even if the bounds are far away or infinite.
  double nearby = 0.0;
  // Size of the first-order change of the objective that is due to the distance of the sums from
  // their totals.
  double residual = 0.0;
  // One multiplier per group: the middle of its interval, or the finite end if the other end is
  // infinite. For nested groups: first the multiplier of the total, then for each group the
  // multiplier of its limit, which is 0 where no limit is active.
  std::vector<double> multiplier;
};

// Compute the certificate of a point. `totals` has one entry per group, or one for nested groups;
// if it is given, the bound includes the rounding error of the sums (`residual`).
Certificate certify(const Point& point, const double* totals = nullptr);

// The common part of the entries of a linear term. A number that all entries have in common only
// adds a constant to the objective, because the sum is fixed, so it must not enlarge the tolerance.
// The common part is the mean if the entries deviate from it by little, and 0 otherwise.
struct SharedCost {
  double level = 0.0, deviation = 0.0;  // the mean, and the mean distance from it

  // Size of an entry without the common part; at least the mean deviation.
  double size_of(double linear) const { return std::max(std::abs(linear - level), deviation); }
};
// One common part per group; nested groups share one total and therefore one common part.
std::vector<SharedCost> shared_costs(const Point& point, const double* linear);

// Sizes of the terms that cancel at an optimum. For a quadratic with gradient `linear` at 0 these
// are |Qx|, |c| and the L1 weights in the gradient, and |x'Qx|/2 and |c'x| in the objective, all
// without common parts of c. For other functions (`linear` is null) the gradient itself is used,
// and the size of the objective is unknown (0).
struct Terms {
  double gradient = 0.0, objective = 0.0;
  double constant = 0.0;   // what the common part of c adds to the objective
  double curvature = 0.0;  // x'Qx, for a quadratic
};
Terms terms_of(const Point& point, const double* linear);
// The same for a quadratic whose shared costs are known.
Terms terms_of(const Point& point, const double* linear, const SharedCost* shared);

// The KKT violation if the derivative of each coordinate may be wrong by its allowance. It is at
// most 0 if some gradient within the allowances satisfies the KKT conditions exactly.
struct Excess {
  double violation = -INFINITY;
  double allowed = 0.0;    // sum of the allowances of the pair with the largest excess
  double tolerance = 0.0;  // the same of the pair with the largest violation without allowances
};
Excess excess_over(const Point& point, const double* allowance);

// The linear term and the diagonal of Q of a quadratic; the diagonal is null if it is unknown.
// `shared` has the shared costs of the groups; if it is null, they are computed.
struct Quadratic {
  const double *linear, *diagonal;
  const SharedCost* shared = nullptr;
};
// The sizes of the terms at a point of a quadratic, and the excess with its tolerance as allowance:
// half of `tol` times the largest term that cancels in the coordinate's own derivative, |(Qx)_i|,
// |c_i|, k_i or |Q_ii x_i|. The last one counts up to the largest term of any other kind. Large
// terms of other coordinates do not loosen the tolerance.
struct Assessment {
  Terms terms;
  Excess excess;
  // The certificate's residual without common parts of c: they change the objective by a constant
  // that does not depend on how exact the sums are.
  double unshared_residual;
};
// `totals` are those of the certificate, or null.
Assessment assess(const Point& point, const Quadratic& quadratic, const Certificate& certificate,
                  const double* totals, double tol);

// Whether a point of a quadratic is certainly optimal. Python's `Task.is_optimal` also decides the
// remaining cases, in which terms vanish or the tolerance is below the rounding error.
struct Verdict {
  bool optimal;
  // Tolerance for the violation: if the point is optimal, that of the pair with the largest
  // violation; otherwise that of the pair which exceeds its own tolerance most.
  double tolerance;
};
Verdict verdict_of(const Point& point, const Quadratic& quadratic, const Certificate& certificate,
                   const double* totals, double value, double tol);

}  // namespace pairstep
