// The coordinate-descent solver applied to a working set, as a small problem with its own Hessian.
#pragma once

#include <vector>

#include "../core/thread_pool.hpp"
#include "working_set.hpp"

namespace pairstep {

// Stopping criteria for a block.
struct Effort {
  double threshold;   // stop at this violation within the block
  Index max_iter;     // or after this many iterations
  double enough;      // or at this violation if the next step has negative curvature
  bool newton_phase;  // whether to try Newton's method on the free variables
};

struct BlockOutcome {
  StopReason stop;
  Index iterations;
  double decrease;              // of the objective
  double least_curvature;       // most negative relative curvature along any step
  double newton_attempts_lost;  // cost of steps that missed the threshold, in Newton attempts
  std::vector<double> x;        // new values of the members
  Step ray;                     // if the stop is unbounded, in indices of the members
};

// Minimize over the members of a working set from the current point. Large blocks share their steps
// among the pool's threads. Real is the type of the block's entries, float or double.
template <class Real>
BlockOutcome solve_block(const Point& point, const WorkingSet& set, const Real* hessian,
                         const Rule& rule, const Effort& effort, ThreadPool& pool);

}  // namespace pairstep
