// Support vector machines: the block gear over kernel rows that are computed on demand.
#pragma once

#include <atomic>
#include <vector>

#include "../isa/dispatch.hpp"
#include "../oracles/points.hpp"
#include "../core/team.hpp"

namespace pairstep {

// `imprecise`: the violation does not fall any further in this arithmetic.
enum class MachineStatus : int { optimal, max_iter, stopped, imprecise };

// One dual, min z'Kz/2 + linear'z + sum kink |z|, over some rows of the data.
struct Dual {
  Point point;  // the pivots are 0; the gradient is an output
  const Index* rows;
  const double* linear;
  const double* totals;
  double violation = 0.0;
  Index iterations = 0;
  MachineStatus status = MachineStatus::optimal;
};

struct MachineTask {
  DataMatrix data;
  KernelFunction kernel;
  double tol;
  Index max_iter;
  std::size_t cache_bytes;
  bool single;  // kernel rows in float32
  const Rule* rule;
};

// Between the thread that waits and those that work.
struct Pulse {
  std::atomic<bool> stop = false;     // end with what there is
  std::atomic<bool> abandon = false;  // nobody wants the result any more
  std::atomic<double> violation = 0.0;
  std::atomic<Index> iterations = 0, solved = 0;
};

void solve_machine(const MachineTask& task, Dual& dual, Team& team, Pulse& pulse);

}  // namespace pairstep
