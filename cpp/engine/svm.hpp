// Duals of support vector machines, solved by the block solver with a kernel oracle.
#pragma once

#include <atomic>
#include <vector>

#include "../core/certify.hpp"
#include "../core/thread_pool.hpp"
#include "../oracles/kernel.hpp"
#include "block_solver.hpp"

namespace pairstep {

// One dual, min z'Kz/2 + linear'z + sum l1 |z|, over some rows of the data.
struct Dual {
  Point point;  // the breakpoints are 0; the gradient is an output
  const Index* rows;
  const double* linear;
  const double* totals;
  bool gradient_known = false;  // whether the gradient at the starting point is set
  bool closely = true;          // whether to solve a small dual more accurately than tol
  Certificate certificate = {};
  double scale = 0.0;     // size of the terms that cancel in the gradient
  double rounding = 0.0;  // estimated rounding error of the gradient
  Index iterations = 0;
  StopReason status = StopReason::optimal;
};

struct SvmTask {
  DataMatrix data;
  KernelFunction kernel;
  double tol;
  Index max_iter;
  std::size_t cache_bytes;
  bool single;  // whether to begin with kernel values in float32
  const Rule* rule;
  bool cold;  // whether the starting point carries no information
  // Whether the kernel is positive semidefinite. The duals of an indefinite kernel are not solved
  // more accurately than tol.
  bool convex = true;
  Arenas* arenas = nullptr;  // memory that is reused by later calls, or null
  Arena* memory = nullptr;   // reused for the Hessian of a working set, or null
};

// Progress that other threads may read while duals are being solved.
struct SvmProgress {
  std::atomic<double> violation = 0.0;
  std::atomic<Index> iterations = 0, solved = 0;
};

// Solve one dual, without a certificate.
void solve_svm_dual(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress);

// Solve duals over rows of one matrix and certify them. They are solved in parallel if there are at
// least as many as threads; otherwise one after the other, each with all threads.
void solve_svm_duals(const SvmTask& task, std::vector<Dual>& duals, int threads,
                     InterruptCheck& interrupt, SvmProgress& progress);

}  // namespace pairstep
