// The memory passes that serve as reference cost in benchmarks. Included once per instruction set.
#pragma once

#include "../isa/simd.hpp"

// The largest sum across the arrays, without the last few elements if n is not a multiple of
// 2 WIDTH. This is the reference cost of a rule: it reads each element once and does hardly more.
inline double bare_pass(const double* const* arrays, Index count, Index n) {
  Lanes best = all<Lanes>(-INFINITY), also = best;
  Index p = 0;
  for (; p + 2 * WIDTH <= n; p += 2 * WIDTH) {
    Lanes sum = all<Lanes>(0.0), next = sum;
    for (Index k = 0; k < count; ++k) {
      sum = sum + load<Lanes>(arrays[k] + p);
      next = next + load<Lanes>(arrays[k] + p + WIDTH);
    }
    best = maximum(sum, best);
    also = maximum(next, also);
  }
  return largest_lane(maximum(best, also));
}

// gradient += t (row_j - row_i): the reference cost of an iteration.
inline double bare_update(const double* hessian, double* gradient, Index n, Index i, Index j,
                          double t) {
  const double *from = hessian + i * n, *to = hessian + j * n;
  for (Index p = 0; p < n; ++p) gradient[p] += t * (to[p] - from[p]);
  return gradient[0];
}
