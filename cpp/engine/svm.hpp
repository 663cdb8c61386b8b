// Duals of support vector machines, solved by the block solver with a kernel oracle.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "../core/certify.hpp"
#include "../core/thread_pool.hpp"
#include "../oracles/kernel.hpp"
#include "block_solver.hpp"

namespace pairstep {

// How the solve of a dual ended.
struct DualOutcome {
  Certificate certificate = {};
  double scale = 0.0;     // size of the terms that cancel in the gradient
  double rounding = 0.0;  // estimated rounding error of the gradient
  Index iterations = 0;
  StopReason status = StopReason::optimal;
};

// One dual, min z'Kz/2 + linear'z + sum l1 |z|, over some rows of the data.
struct Dual {
  Point point;        // the breakpoints are 0; the gradient is an output
  const Index* rows;  // null for the first rows of a precomputed kernel
  const double* linear;
  const double* totals;
  bool gradient_known = false;  // whether the gradient at the starting point is set
  bool closely = true;          // whether to solve a small dual more accurately than tol
  DualOutcome outcome = {};
};

// The same dual for several C, in ascending order. All bounds are proportional to C.
struct DualChain {
  Dual unit;  // the dual for C = 1; its point is the start
  // The C that the start is the solution for, with its gradient; 0 if it is no solution.
  double C_before;
  const double* Cs;
  Index count;  // number of C
  // Outputs for the first C: z, the gradient, and sum_i z_i K(row i, column) for each column to
  // decide on. Those for the next C begin `stride` further on in z and the gradient, and as many
  // further on in the sums as there are columns. The sums need a precomputed kernel; they are null
  // if they are not wanted.
  double *z, *gradient, *sums;
  Index stride;
  std::vector<DualOutcome> outcomes = {};  // one per C; fewer if it was stopped
};

struct SvmTask {
  DataMatrix data;
  KernelFunction kernel;
  double tol;
  Index max_iter;
  std::size_t cache_bytes;
  bool single;  // whether to begin with kernel values in float32
  bool cold;    // whether the starting point carries no information
  // Whether the kernel is positive semidefinite. The duals of an indefinite kernel are not solved
  // more accurately than tol.
  bool convex = true;
  Arenas* arenas = nullptr;     // memory that is reused by later calls, or null
  Arena* memory = nullptr;      // reused for the Hessian of a working set, or null
  Arena* row_memory = nullptr;  // reused for kernel rows, or null
};

// Progress that other threads may read while duals are being solved.
struct SvmProgress {
  std::atomic<double> violation = 0.0;
  std::atomic<Index> iterations = 0, solved = 0;
};

// Solve one dual, without a certificate.
void solve_svm_dual(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress);

// Move z and its gradient from the solution for C / ratio to a starting point for C. The point has
// the bounds for C. If many variables are at their bounds, they will follow these bounds. The start
// is then the multiple of the solution with the best objective that is within the bounds. If few
// are, the solution will change little and is itself the start, as it is if bounds are infinite.
void start_scaled(Point& point, const double* linear, double ratio);

// Solve duals over rows of one matrix and certify them. They are solved in parallel if there are at
// least as many as threads; otherwise one after the other, each with all threads.
void solve_svm_duals(const SvmTask& task, std::vector<Dual>& duals, int threads,
                     InterruptCheck& interrupt, SvmProgress& progress);

// The same for chains. Each C starts from the solution for the one before it. `columns` are the
// rows of the data to decide on, the same for all chains.
void solve_svm_chains(const SvmTask& task, std::vector<DualChain>& chains,
                      std::span<const Index> columns, int threads, InterruptCheck& interrupt,
                      SvmProgress& progress);

}  // namespace pairstep
