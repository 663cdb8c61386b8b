// The greedy gear on a working set: a small problem with its own Hessian.
#pragma once

#include <vector>

#include "../core/team.hpp"
#include "working_set.hpp"

namespace pairstep {

// How hard to work on a block.
struct Effort {
  double threshold;  // until the violation within the block is at most this
  Index max_iter;
  bool finish;  // whether to try Newton's method on the face
};

struct BlockOutcome {
  Stop stop;
  Index iterations;
  double fall, least_curvature;
  double tries_forgone;   // of the finish, by steps that did not reach the threshold
  std::vector<double> x;  // where the members are to go
};

// The team shares the steps in a large block. Real: of the block's entries, float or double.
template <class Real>
BlockOutcome solve_block(const Point& point, const WorkingSet& set, const Real* hessian,
                         const Rule& rule, const Effort& effort, Team& team);

}  // namespace pairstep
