#include "svm.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "../oracles/kernel_matrix.hpp"
#include "../oracles/matrix.hpp"
#include "../oracles/precise.hpp"
#include "chain_sums.hpp"
#include "sample.hpp"

namespace pairstep {

namespace {

struct SvmSettings {
  // A dual with at most this many variables fits in one working set. It is solved in float64 and,
  // if Dual::closely, to tol / extra_accuracy. Coefficients then agree to many digits between runs.
  // This costs a tenth to a quarter of the time of such a short fit.
  static constexpr Index max_small_variables = 128;
  static constexpr double extra_accuracy = 1e4;

  // A dual of a precomputed kernel is solved in one working set, on a contiguous copy of its part
  // of the matrix, if a row of the copy takes at most this many bytes: 1024 variables in float32
  // and 512 in float64. The copy takes as long as a few hundred steps. With more variables, the
  // copy and steps that read whole rows cost more than rounds over smaller sets.
  static constexpr Index max_whole_row_bytes = 4096;

  // A dual with at most this many variables begins with float32 steps on all variables at once
  // (isa/single_steps.hpp). That saves the rounds of the block solver, whose fixed cost dominates
  // such a fit: the pairs of ten classes took 40% less time. A step reads whole rows of the
  // Hessian, so with more variables, and in long solves, steps within blocks are faster.
  static constexpr Index max_single_steps_variables = 3000;
  static constexpr Index single_steps_per_variable = 20;  // the block solver takes the others
  // Fraction of the tolerance to which they reduce the violation. The rest is for rounding errors.
  static constexpr double single_steps_target = 0.9;

  // A variable counts as being at its bound if its relative distance to it is at most this: bounds
  // are multiplied and divided by ratios of C, which rounds them.
  static constexpr double at_bound = 1e-9;
  // If at most this fraction of the support vectors is at its bounds, a larger C changes little,
  // and the start is the last solution itself. If larger, bounded variables start too far from
  // their new bounds; if smaller, free variables start too large.
  static constexpr double max_fraction_bounded = 0.2;

  // Most rows for which the whole kernel matrix is computed: base + per stored entry of a row. If
  // the duals do not share rows, the limit is at most max_matrix_rows. The more entries a row has,
  // the more expensive are the kernel values of blocks and of the float64 verification, so the
  // matrix is worthwhile for more rows. Duals that share rows would compute the same values several
  // times, so for them it is worthwhile for many more rows.
  static constexpr double matrix_rows = 200, matrix_rows_per_entry = 5, max_matrix_rows = 512;
  static constexpr double shared_matrix_rows = 2000, shared_matrix_rows_per_entry = 6;
  // The kernel matrix may take up at most 1 / cache_per_matrix of the cache. The rest is left to
  // the blocks.
  static constexpr std::size_t cache_per_matrix = 2;

  // The Hessian of a working set may take 1 / cache_per_block of the cache, and kernel rows the
  // rest. More memory for the Hessian allows more free variables in a working set; more memory for
  // rows avoids computing them again.
  static constexpr std::size_t cache_per_block = 4;
};

// Whether a dual with a stored kernel matrix, in float32 or not, is solved in one working set.
bool fits_one_set(const Dual& dual, bool single) {
  return dual.point.n * Index(single ? sizeof(float) : sizeof(double)) <=
         SvmSettings::max_whole_row_bytes;
}

// Whether a dual begins with float32 steps on all variables, for which all kernel rows must fit
// into the cache.
bool begins_with_single_steps(const SvmTask& task, const Dual& dual, std::size_t cache_bytes) {
  const Index n = dual.point.n;
  return n <= SvmSettings::max_single_steps_variables && dual.point.n_groups == 1 &&
         KernelMatrix<float>::bytes(n) <= cache_bytes;
}

template <class SomeOracle>
void run(SomeOracle& oracle, const SvmTask& task, Dual& dual, ThreadPool& pool,
         SvmProgress& progress) {
  DualOutcome& outcome = dual.outcome;
  const bool is_polished = dual.closely && dual.point.n <= SvmSettings::max_small_variables;
  const StoredHessian stored = oracle.stored();
  const bool is_whole = (stored.wide || stored.single) && fits_one_set(dual, stored.single);
  BlockSolver solver(
      oracle, dual.point,
      {.totals = dual.totals,
       .eager = is_polished,
       .extra_accuracy = is_polished && task.convex ? SvmSettings::extra_accuracy : 1.0,
       .block_bytes = task.cache_bytes / SvmSettings::cache_per_block,
       .single_steps = task.single && !is_polished,
       .whole = is_whole,
       .memory = task.memory});
  solver.iterations = outcome.iterations;
  do {
    outcome.status = solver.run(task.tol, task.max_iter, 1, pool);
    progress.violation = solver.violation;
    progress.iterations = solver.iterations;
  } while (outcome.status == StopReason::paused);
  if (outcome.status != StopReason::optimal) solver.conclude();
  if (solver.violation <= task.tol) outcome.status = StopReason::optimal;
  outcome.iterations = solver.iterations;
  std::copy_n(oracle.gradient(), dual.point.n, dual.point.gradient);
}

// The rows that occur in at least one dual, in the order of their first appearance, which keeps the
// rows of a class together.
struct UsedRows {
  std::vector<Index> rows;
  std::vector<std::vector<Index>> places;  // for each dual, the index into `rows` of each variable

  UsedRows(const std::vector<Dual>& duals, Index count) {
    std::vector<Index> place(std::size_t(count), -1);
    for (const Dual& dual : duals) {
      std::vector<Index>& own = places.emplace_back();
      for (Index i = 0; i < dual.point.n; ++i) {
        Index& at = place[dual.rows[i]];
        if (at < 0) {
          at = Index(rows.size());
          rows.push_back(dual.rows[i]);
        }
        own.push_back(at);
      }
    }
  }
};

// Return whether to compute the kernel matrix of all used rows. It is worthwhile if duals share
// rows or if there are few rows, and more so the more a kernel value costs. A precomputed kernel is
// copied if duals share rows and the rows of the first dual are scattered over it, because
// contiguous rows are read faster.
bool should_compute_matrix(const SvmTask& task, const std::vector<Dual>& duals,
                           const std::vector<Index>& used) {
  const Index rows = Index(used.size());
  if (KernelMatrix<double>::bytes(rows) > task.cache_bytes / SvmSettings::cache_per_matrix)
    return false;
  double needed = 0.0;
  for (const Dual& dual : duals) needed += double(dual.point.n) * double(dual.point.n);
  const bool shared = needed > double(rows) * double(rows);
  if (task.kernel.name == KernelName::precomputed) {
    const Runs first(duals.front().rows, duals.front().point.n);
    return shared && first.scattered() && !first.closely_spaced();
  }
  const double entries = task.data.starts
                             ? double(task.data.starts[task.data.rows]) / double(task.data.rows)
                             : double(task.data.features);
  using Settings = SvmSettings;
  if (shared)
    return double(rows) <=
           Settings::shared_matrix_rows + Settings::shared_matrix_rows_per_entry * entries;
  return double(rows) <= std::min(Settings::matrix_rows + Settings::matrix_rows_per_entry * entries,
                                  Settings::max_matrix_rows);
}

// Certify a solved dual with gradients that do not share the rounding errors of the solve. `rows`
// are its rows in the data of the task.
void certify_dual(const SvmTask& task, const Index* rows, Dual& dual, ThreadPool& pool) {
  const Rounding found =
      examine(task.kernel, task.data, rows, dual.linear, dual.point, task.tol, pool);
  DualOutcome& outcome = dual.outcome;
  outcome.certificate = certify(dual.point);
  outcome.certificate.violation += found.extra;
  outcome.rounding = found.error;
  outcome.scale = terms_of(dual.point, dual.linear).gradient;
  if (outcome.status == StopReason::optimal && !(outcome.certificate.violation <= task.tol))
    outcome.status = StopReason::imprecise;
}

// Whether to solve a dual on a contiguous copy of its part of the kernel matrix.
bool should_copy(const SvmTask& task, const Dual& dual) {
  return task.kernel.name == KernelName::precomputed && dual.rows &&
         fits_one_set(dual, task.data.dense32 != nullptr);
}

// Copy the part of a precomputed kernel that belongs to some rows.
DataMatrix contiguous(const DataMatrix& matrix, const Index* rows, Index n, Arena& memory) {
  DataMatrix part;
  part.rows = part.features = n;
  const Runs columns(rows, n);
  const std::size_t count = std::size_t(n) * std::size_t(n);
  matrix.for_dense([&](const auto* entries) {
    using Real = std::remove_cvref_t<decltype(*entries)>;
    const auto copy = static_cast<Real*>(memory.fit(count * sizeof(Real)));
    for (Index i = 0; i < n; ++i) columns.copy(entries + rows[i] * matrix.features, copy + i * n);
    if constexpr (std::is_same_v<Real, float>) part.dense32 = copy;
    else part.dense = copy;
  });
  return part;
}

// Call job(k, task, pool) for each dual or chain k, of sizes[k] variables each: in parallel if
// there are at least as many as threads, otherwise one after the other with all threads.
template <class Job>
void run_in_parallel(SvmTask task, const std::vector<Index>& sizes, int threads,
                     InterruptCheck& interrupt, SvmProgress& progress, Job job) {
  const Index count = Index(sizes.size());
  const int at_once = count >= threads ? threads : 1;
  task.cache_bytes /= std::size_t(at_once);
  // Start with the largest, so that no thread is left alone with a large one at the end.
  std::vector<Index> order(std::size_t(count), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return sizes[a] > sizes[b]; });
  Arenas own, &arenas = task.arenas ? *task.arenas : own;
  ThreadPool across(at_once, interrupt);
  across.run(count, [&](Index k) {
    ThreadPool within(threads / at_once, interrupt);
    std::unique_ptr<Arena> memory = arenas.acquire(), row_memory = arenas.acquire();
    SvmTask with_memory = task;
    with_memory.memory = memory.get();
    with_memory.row_memory = row_memory.get();
    job(order[k], with_memory, within);
    arenas.release(std::move(row_memory));
    arenas.release(std::move(memory));
    ++progress.solved;
  });
}

// Solve the duals. `original` is the task before the kernel matrix replaced the data, and `rows`
// are the rows of each dual in its data.
void solve_and_certify(const SvmTask& task, std::vector<Dual>& duals, const SvmTask& original,
                       const std::vector<const Index*>& rows, int threads,
                       InterruptCheck& interrupt, SvmProgress& progress) {
  std::vector<Index> sizes;
  for (const Dual& dual : duals) sizes.push_back(dual.point.n);
  run_in_parallel(task, sizes, threads, interrupt, progress,
                  [&](Index k, const SvmTask& own, ThreadPool& pool) {
                    solve_svm_dual(own, duals[k], pool, progress);
                    certify_dual(original, rows[k], duals[k], pool);
                  });
}

// Multiply the bounds for C = 1 by C; 0 stays 0 if C is infinite.
void scale_bounds(const double* unit, Index n, double C, std::vector<double>& bounds) {
  bounds.resize(std::size_t(n));
  for (Index i = 0; i < n; ++i) bounds[i] = unit[i] == 0 ? 0.0 : C * unit[i];
}

void solve_chain(const SvmTask& task, DualChain& chain, ThreadPool& pool, SvmProgress& progress) {
  const Dual& unit = chain.unit;
  const Index n = unit.point.n;
  SvmTask own = task;
  const bool copies = should_copy(task, unit);
  // A dual with a contiguous matrix does not use the memory in any other way.
  if (copies) own.data = contiguous(task.data, unit.rows, n, *task.memory);
  std::vector<double> lower, upper;
  for (Index k = 0; k < chain.count; ++k) {
    Dual dual = unit;
    if (copies) dual.rows = nullptr;
    Point& point = dual.point;
    scale_bounds(unit.point.lower, n, chain.Cs[k], lower);
    scale_bounds(unit.point.upper, n, chain.Cs[k], upper);
    point.lower = lower.data();
    point.upper = upper.data();
    point.x = chain.z + k * chain.stride;
    point.gradient = chain.gradient + k * chain.stride;
    const double C_before = k > 0 ? chain.Cs[k - 1] : chain.C_before;
    std::copy_n(k > 0 ? point.x - chain.stride : unit.point.x, n, point.x);
    if (C_before > 0) {
      if (k > 0) std::copy_n(point.gradient - chain.stride, n, point.gradient);
      start_scaled(point, dual.linear, chain.Cs[k] / C_before);
      dual.gradient_known = true;
    }
    own.cold = task.cold && C_before == 0;
    solve_svm_dual(own, dual, pool, progress);
    certify_dual(task, unit.rows, dual, pool);
    if (pool.interrupt().stopped()) return;
    chain.outcomes.push_back(std::move(dual.outcome));
  }
}

}  // namespace

void solve_svm_dual(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress) {
  if (task.cold) start_from_samples(task, dual, pool, progress);
  if (task.kernel.name == KernelName::precomputed) {
    const double* known = dual.gradient_known ? dual.point.gradient : nullptr;
    Arena own;
    const bool copies = should_copy(task, dual);
    const DataMatrix part =
        copies ? contiguous(task.data, dual.rows, dual.point.n, task.memory ? *task.memory : own)
               : DataMatrix{};
    MatrixOracle oracle(copies ? part : task.data, copies ? nullptr : dual.rows, dual.linear,
                        dual.point, false, pool, known);
    return run(oracle, task, dual, pool, progress);
  }
  const std::size_t row_bytes =
      task.cache_bytes / SvmSettings::cache_per_block * (SvmSettings::cache_per_block - 1);
  const bool steps_first = begins_with_single_steps(task, dual, row_bytes);
  const KernelDual whole{task.data,
                         task.kernel,
                         dual.rows,
                         dual.linear,
                         task.tol,
                         row_bytes,
                         steps_first ? task.row_memory : nullptr};
  if (task.single && dual.point.n > SvmSettings::max_small_variables &&
      single_will_do(task.kernel, task.data.largest_square(dual.rows, dual.point.n))) {
    // The known gradient belongs to the data as they were given. A linear kernel of centered data
    // has another one, which takes little time.
    const bool known = dual.gradient_known && task.kernel.name != KernelName::linear;
    KernelOracle<float> oracle(whole, dual.point, pool, known ? dual.point.gradient : nullptr);
    if (steps_first)
      dual.outcome.iterations +=
          oracle.take_single_steps(SvmSettings::single_steps_target * task.tol,
                                   std::min(task.max_iter - dual.outcome.iterations,
                                            SvmSettings::single_steps_per_variable * dual.point.n));
    run(oracle, task, dual, pool, progress);
    if (dual.outcome.status != StopReason::imprecise) return;
    if (pool.interrupt().stopped()) {
      dual.outcome.status = StopReason::stopped;
      return;
    }
  }
  KernelOracle<double> oracle(whole, dual.point, pool);
  run(oracle, task, dual, pool, progress);
}

void start_scaled(Point& point, const double* linear, double ratio) {
  if (!std::isfinite(ratio)) ratio = 1.0;
  const double* z = point.x;
  Index support = 0, bounded = 0;
  double curvature = 0.0, slope = 0.0;
  for (Index i = 0; i < point.n; ++i) {
    if (z[i] == 0) continue;
    const double bound = (z[i] > 0 ? point.upper[i] : point.lower[i]) / ratio;
    ++support;
    bounded += std::abs(z[i]) >= (1 - SvmSettings::at_bound) * std::abs(bound);
    curvature += z[i] * (point.gradient[i] - linear[i]);
    slope += z[i] * linear[i] + (point.l1 ? point.l1[i] * std::abs(z[i]) : 0.0);
  }
  double multiple = std::min(ratio, 1.0);
  if (double(bounded) > SvmSettings::max_fraction_bounded * double(support)) {
    const double best = curvature > 0 ? -slope / curvature : 1.0;
    multiple = std::min(std::max(best, multiple), ratio);
  }
  for (Index i = 0; i < point.n; ++i) {
    double& x = point.x[i];
    x = std::clamp(x * multiple, point.lower[i], point.upper[i]);
    // A variable that misses its bound by rounding would count as free: with some C, all bounded
    // variables would.
    const double bound = x > 0 ? point.upper[i] : point.lower[i];
    if (x != 0 && std::abs(x) >= (1 - SvmSettings::at_bound) * std::abs(bound)) x = bound;
    point.gradient[i] = (point.gradient[i] - linear[i]) * multiple + linear[i];
  }
}

void solve_svm_duals(const SvmTask& task, std::vector<Dual>& duals, int threads,
                     InterruptCheck& interrupt, SvmProgress& progress) {
  std::vector<const Index*> rows;
  for (const Dual& dual : duals) rows.push_back(dual.rows);
  const UsedRows used(duals, task.data.rows);
  if (!should_compute_matrix(task, duals, used.rows))
    return solve_and_certify(task, duals, task, rows, threads, interrupt, progress);
  ThreadPool pool(threads, interrupt);
  const KernelMatrix<double> matrix(task.kernel, task.data, used.rows, pool);
  SvmTask of_matrix = task;
  of_matrix.data = matrix.matrix();
  of_matrix.kernel.name = KernelName::precomputed;
  of_matrix.convex = task.kernel.name != KernelName::sigmoid;
  of_matrix.cache_bytes -= KernelMatrix<double>::bytes(Index(used.rows.size()));
  for (std::size_t k = 0; k < duals.size(); ++k) duals[k].rows = used.places[k].data();
  solve_and_certify(of_matrix, duals, task, rows, threads, interrupt, progress);
}

void solve_svm_chains(const SvmTask& task, std::vector<DualChain>& chains,
                      std::span<const Index> columns, int threads, InterruptCheck& interrupt,
                      SvmProgress& progress) {
  std::vector<Index> sizes;
  for (const DualChain& chain : chains) sizes.push_back(chain.unit.point.n);
  run_in_parallel(task, sizes, threads, interrupt, progress,
                  [&](Index k, const SvmTask& own, ThreadPool& pool) {
                    solve_chain(own, chains[k], pool, progress);
                  });
  if (chains.empty() || !chains.front().sums) return;
  ThreadPool pool(threads, interrupt);
  compute_sums(task.data, columns, chains, pool);
  if (interrupt.stopped())
    for (DualChain& chain : chains) chain.outcomes.clear();
}

}  // namespace pairstep
