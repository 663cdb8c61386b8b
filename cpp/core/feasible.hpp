// Points of sums and bounds: what they allow, where to start, exact sums.
#pragma once

#include "types.hpp"

namespace pairstep {

// The first account whose bounds leave no number between them, or one of which is finite but not
// below the limit in size; or -1.
Index first_odd(const double* lower, const double* upper, Index n, double limit);

// What the bounds of a group allow: the sums of the lower and of the upper ones, infinite where one
// of them is, and by how much these miss the range from low to high that is wanted.
struct Span {
  double least = 0.0, most = 0.0, miss = 0.0;
};
Span span_of(const double* lower, const double* upper, Index n, double low, double high);

// The feasible point nearest to y.
void project(const double* y, const double* lower, const double* upper, const Sums& sums,
             double* x);

// Fill the accounts from their (finite) lower bounds, the cheapest first, until the sums are
// reached; the cost of filling one is its price and half of what its curvature adds.
void fill(const double* price, const double* curvature, const double* lower, const double* upper,
          const Sums& sums, double* x);

// Make every sum its total, within an ulp of the larger of |total| and max |x|, if the bounds allow
// that. What rounding has left is absorbed by a free coordinate: one that is on no bound and, if
// pivots are given, on no kink. Where there is none, up to an ulp stays.
void settle(double* x, const double* lower, const double* upper, const Sums& sums,
            const double* pivot = nullptr);

}  // namespace pairstep
