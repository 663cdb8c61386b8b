// The coordinate-descent solver applied to a working set, as a small problem with its own Hessian.
#pragma once

#include <vector>

#include "../core/thread_pool.hpp"
#include "working_set.hpp"

namespace pairstep {

// How much work to spend on a block.
struct Effort {
  double threshold;            // stop at this violation within the block
  Index max_iter;              // or after this many iterations
  double nonconvex_threshold;  // or at this violation if the next step has negative curvature
  bool newton_phase;           // whether to try Newton's method on the free variables
  bool single_steps;           // whether the first steps may be in float32
};

struct BlockOutcome {
  StopReason stop;
  Index iterations;
  double decrease;         // of the objective
  double least_curvature;  // most negative relative curvature along any step
  // If max_iter ended the run before the threshold: the cost of its steps since the last Newton
  // phase, as a multiple of the cost of a Newton phase. Otherwise 0.
  double lost_newton_phases;
  std::vector<double> x;  // new values of the members
  Step ray;  // if the stop is unbounded: its direction, indexed by position in the working set
};

// Minimize over the members of a working set from the current point. In a large block, the pool's
// threads share the work of each step. Real is the type of the block's entries, float or double.
template <class Real>
BlockOutcome solve_block(const Point& point, const WorkingSet& set, const Real* hessian,
                         const Effort& effort, ThreadPool& pool);

}  // namespace pairstep
