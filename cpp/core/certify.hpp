// How near a point is to its optimum, derived from the problem alone, apart from any solver.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

struct Certificate {
  // Max down-price - min up-price of accounts that can trade with each other, at least 0: within a
  // group and, under one total, across groups whose sums have room.
  double violation = 0.0;
  double bound = 0.0;  // Frank-Wolfe gap: at least f(x) - f* where f is convex
  // The same where no account goes further than the largest of its group is: what is left to gain
  // near the point, however wide the bounds are.
  double nearby = 0.0;
  // One per group, between the two prices. Under one total: that of the total, and for each group
  // what its limit adds to it, 0 where the sum is on none.
  std::vector<double> multiplier;
};

Certificate certify(const Point& point);

// The sizes of the terms that cancel, of a quadratic whose gradient at 0 is `linear`: |Qx|, |c| and
// the kinks in the gradient, |x'Qx|/2 and |c'x| in the objective. Of other functions (null) the
// gradient itself, and nothing.
struct Terms {
  double gradient = 0.0, objective = 0.0;
};
Terms terms_of(const Point& point, const double* linear);

// `optimal` also asks that what can still be gained nearby is at most this many times `tol` of the
// size of the objective: a huge price at which nobody trades must not hide what the others do.
constexpr double GAIN = 100.0;
// A violation that is this small against the terms that cancel in the gradient is rounding.
constexpr double ROUNDED = 1e-14;

// Whether a point of a quadratic is plainly optimal; `Task.is_optimal` knows of terms that vanish.
bool is_optimal(const Certificate& certificate, const Terms& terms, double value, double tol);

}  // namespace pairstep
