// Feasible points of a problem with bounds and sums: checks of the constraints, starting points,
// and exact sums.
#pragma once

#include "types.hpp"

namespace pairstep {

// Return the first coordinate with invalid bounds, or -1. Bounds are invalid if lower > upper, if
// one is NaN or an infinity of the wrong sign, or if one is finite and at least `limit` in size.
Index first_invalid_bound(const double* lower, const double* upper, Index n, double limit);

// The range of sums that the bounds of a group allow: the sum of the lower bounds and the sum of
// the upper bounds, infinite if one of the bounds is. `gap` is the distance between this range and
// the required range [low, high], 0 if they intersect.
struct SumRange {
  double least = 0.0, most = 0.0, gap = 0.0;
};
SumRange range_of_sum(const double* lower, const double* upper, Index n, double low, double high);

// Project y onto the feasible set (the nearest feasible point in the Euclidean norm).
void project(const double* y, const double* lower, const double* upper, const Sums& sums,
             double* x);

// Find a feasible point with few coordinates between their bounds. All coordinates start at their
// (finite) lower bounds and are raised to their upper bounds until the sums are reached, those with
// the smallest cost per unit first. The cost is the derivative plus half of the curvature times the
// amount.
void fill(const double* derivative, const double* curvature, const double* lower,
          const double* upper, const Sums& sums, double* x);

// Make every sum equal to its total within an ulp of the larger of |total| and max |x|, if the
// bounds allow that. A free coordinate absorbs the rounding error: one that is not on a bound and,
// if breakpoints are given, not on its breakpoint. Without a free coordinate an error of up to an
// ulp remains.
void restore_sums(double* x, const double* lower, const double* upper, const Sums& sums,
                  const double* breakpoint = nullptr);

}  // namespace pairstep
