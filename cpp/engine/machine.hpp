// Support vector machines: their duals, solved by the block gear over kernel tiles.
#pragma once

#include <atomic>
#include <vector>

#include "../core/certify.hpp"
#include "../core/team.hpp"
#include "../oracles/kernel.hpp"
#include "block_gear.hpp"

namespace pairstep {

// One dual, min z'Kz/2 + linear'z + sum kink |z|, over some rows of the data.
struct Dual {
  Point point;  // the pivots are 0; the gradient is an output
  const Index* rows;
  const double* linear;
  const double* totals;
  bool gradient_known = false;  // whether the gradient at the start is there already
  bool closely = true;          // whether a small one is solved further than to the tolerance
  Certificate certificate = {};
  double scale = 0.0;  // of the terms that cancel in the gradient
  Index iterations = 0;
  BlockStop status = BlockStop::optimal;
};

struct MachineTask {
  DataMatrix data;
  KernelFunction kernel;
  double tol;
  Index max_iter;
  std::size_t cache_bytes;
  bool single;  // kernel rows in float32
  const Rule* rule;
  bool cold;                 // whether nothing is known of the solution yet
  Arenas* arenas = nullptr;  // that outlive this call, where there are some
  Arena* memory = nullptr;   // for the block of a working set
};

// What is told of duals on the way.
struct MachineProgress {
  std::atomic<double> violation = 0.0;
  std::atomic<Index> iterations = 0, solved = 0;
};

void solve_machine(const MachineTask& task, Dual& dual, Team& team, MachineProgress& progress);

// Solve duals over the rows of one matrix, side by side where there are several; their certificates
// too.
void solve_machines(const MachineTask& task, std::vector<Dual>& duals, int threads, Pulse& pulse,
                    MachineProgress& progress);

}  // namespace pairstep
