// Points of sums and bounds: what they allow, where to start, exact sums.
#pragma once

#include "types.hpp"

namespace pairstep {

// The first account whose bounds leave no number between them, or -1.
Index first_crossed(const double* lower, const double* upper, Index n);

// What the bounds of a group allow: the sums of the lower and of the upper ones, infinite where one
// of them is, and the larger sum of their finite sizes, which tells how far rounding may be off.
struct Span {
  double least = 0.0, most = 0.0, size = 0.0;
};
Span span_of(const double* lower, const double* upper, Index n);

// The point of { sum of each group = its total, lower <= x <= upper } nearest to y.
void project(const double* y, const double* lower, const double* upper, const Index* starts,
             const double* totals, Index n_groups, double* x);

// Fill the accounts of each group from their (finite) lower bounds, the cheapest first, until the
// total is reached; the cost of filling one is its price and half of what its curvature adds.
void fill(const double* price, const double* curvature, const double* lower, const double* upper,
          const Index* starts, const double* totals, Index n_groups, double* x);

// Absorb what rounding has left of each total into a free
// coordinate: one that is on no bound and, if pivots are given, on no kink. Where there
// is none, up to an ulp stays.
void settle(double* x, const double* lower, const double* upper, const Index* starts,
            const double* totals, Index n_groups, const double* pivot = nullptr);

}  // namespace pairstep
