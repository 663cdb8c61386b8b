// Batches of small dense quadratic programs in which every number may differ from problem to
// problem.
#pragma once

#include <cstdint>

#include "../core/interrupt.hpp"
#include "../core/types.hpp"

namespace pairstep {

// The numbers of each problem, one after the other, or those of all problems if `stride` is 0.
struct PerProblem {
  const double* first;
  Index stride;
  const double* operator[](Index k) const { return first + k * stride; }
};

struct SmallBatch {
  enum State : std::uint8_t {
    not_reached,  // the time limit had passed
    declined,     // see `solve_small`
    optimal,
  };

  Index n, count;
  PerProblem hessian, linear, lower, upper, total;
  double tol;
  int threads;
  double *x, *gradient;                                        // count x n
  double *value, *violation, *tolerance, *bound, *multiplier;  // count
  Index* iterations;                                           // count
  std::uint8_t* state;                                         // count
};

// Solve all problems with `solve_small`. A solution does not depend on the other problems or on the
// number of threads.
void solve_small_batch(const SmallBatch& batch, InterruptCheck& interrupt);

}  // namespace pairstep
