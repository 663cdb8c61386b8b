#include "svm.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../oracles/kernel_matrix.hpp"
#include "../oracles/matrix.hpp"
#include "../oracles/precise.hpp"
#include "sample.hpp"

namespace pairstep {

namespace {

struct SvmSettings {
  // A dual with at most this many variables fits in one working set. It is solved in float64 and,
  // if Dual::closely, to tol / extra_accuracy. Coefficients then agree to many digits between runs.
  // This costs a tenth to a quarter of the time of such a short fit.
  static constexpr Index max_small_variables = 128;
  static constexpr double extra_accuracy = 1e4;

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

template <class SomeOracle>
void run(SomeOracle& oracle, const SvmTask& task, Dual& dual, ThreadPool& pool,
         SvmProgress& progress) {
  const bool is_polished = dual.closely && dual.point.n <= SvmSettings::max_small_variables;
  BlockSolver solver(
      oracle, dual.point,
      {.totals = dual.totals,
       .rule = task.rule,
       .eager = is_polished,
       .extra_accuracy = is_polished && task.convex ? SvmSettings::extra_accuracy : 1.0,
       .block_bytes = task.cache_bytes / SvmSettings::cache_per_block,
       .explicit_hessian = task.kernel.name == KernelName::precomputed,
       .memory = task.memory});
  solver.iterations = dual.iterations;
  do {
    dual.status = solver.run(task.tol, task.max_iter, 1, pool);
    progress.violation = solver.violation;
    progress.iterations = solver.iterations;
  } while (dual.status == StopReason::paused);
  if (dual.status != StopReason::optimal) solver.conclude();
  if (solver.violation <= task.tol) dual.status = StopReason::optimal;
  dual.iterations = solver.iterations;
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

// Certify a solved dual with gradients that do not share the rounding errors of the solve.
void certify_dual(const SvmTask& task, const Index* rows, Dual& dual, ThreadPool& pool) {
  const Rounding found =
      examine(task.kernel, task.data, rows, dual.linear, dual.point, task.tol, pool);
  dual.certificate = certify(dual.point);
  dual.certificate.violation += found.extra;
  dual.rounding = found.error;
  dual.scale = terms_of(dual.point, dual.linear).gradient;
  if (dual.status == StopReason::optimal && !(dual.certificate.violation <= task.tol))
    dual.status = StopReason::imprecise;
}

// Solve the duals in parallel if there are at least as many as threads; otherwise one after the
// other with all threads. `original` is the task before the kernel matrix replaced the data, and
// `rows` are the rows of each dual in its data.
void solve_in_parallel(SvmTask task, std::vector<Dual>& duals, const SvmTask& original,
                       const std::vector<const Index*>& rows, int threads,
                       InterruptCheck& interrupt, SvmProgress& progress) {
  const Index count = Index(duals.size());
  const int at_once = count >= threads ? threads : 1;
  task.cache_bytes /= std::size_t(at_once);
  // Start with the largest, so that no thread is left alone with a large one at the end.
  std::vector<Index> order(std::size_t(count), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return duals[a].point.n > duals[b].point.n; });
  Arenas own, &arenas = task.arenas ? *task.arenas : own;
  ThreadPool across(at_once, interrupt);
  across.run(count, [&](Index k) {
    ThreadPool within(threads / at_once, interrupt);
    Dual& dual = duals[order[k]];
    std::unique_ptr<Arena> memory = arenas.acquire();
    SvmTask with_memory = task;
    with_memory.memory = memory.get();
    solve_svm_dual(with_memory, dual, within, progress);
    arenas.release(std::move(memory));
    certify_dual(original, rows[order[k]], dual, within);
    ++progress.solved;
  });
}

}  // namespace

void solve_svm_dual(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress) {
  if (task.cold) start_from_samples(task, dual, pool, progress);
  if (task.kernel.name == KernelName::precomputed) {
    MatrixOracle oracle(task.data, dual.rows, dual.linear, dual.point, false, pool,
                        dual.gradient_known ? dual.point.gradient : nullptr);
    return run(oracle, task, dual, pool, progress);
  }
  const std::size_t row_bytes =
      task.cache_bytes / SvmSettings::cache_per_block * (SvmSettings::cache_per_block - 1);
  const KernelDual whole{task.data, task.kernel, dual.rows, dual.linear, task.tol, row_bytes};
  if (task.single && dual.point.n > SvmSettings::max_small_variables &&
      single_will_do(task.kernel, task.data.largest_square(dual.rows, dual.point.n))) {
    // The known gradient belongs to the data as they were given. A linear kernel of centered data
    // has another one, which takes little time.
    const bool known = dual.gradient_known && task.kernel.name != KernelName::linear;
    KernelOracle<float> oracle(whole, dual.point, pool, known ? dual.point.gradient : nullptr);
    run(oracle, task, dual, pool, progress);
    if (dual.status != StopReason::imprecise) return;
    if (pool.interrupt().stopped()) {
      dual.status = StopReason::stopped;
      return;
    }
  }
  KernelOracle<double> oracle(whole, dual.point, pool);
  run(oracle, task, dual, pool, progress);
}

void solve_svm_duals(const SvmTask& task, std::vector<Dual>& duals, int threads,
                     InterruptCheck& interrupt, SvmProgress& progress) {
  std::vector<const Index*> rows;
  for (const Dual& dual : duals) rows.push_back(dual.rows);
  const UsedRows used(duals, task.data.rows);
  if (!should_compute_matrix(task, duals, used.rows))
    return solve_in_parallel(task, duals, task, rows, threads, interrupt, progress);
  ThreadPool pool(threads, interrupt);
  const KernelMatrix<double> matrix(task.kernel, task.data, used.rows, pool);
  SvmTask of_matrix = task;
  of_matrix.data = matrix.matrix();
  of_matrix.kernel.name = KernelName::precomputed;
  of_matrix.convex = task.kernel.name != KernelName::sigmoid;
  of_matrix.cache_bytes -= KernelMatrix<double>::bytes(Index(used.rows.size()));
  for (std::size_t k = 0; k < duals.size(); ++k) duals[k].rows = used.places[k].data();
  solve_in_parallel(of_matrix, duals, task, rows, threads, interrupt, progress);
}

}  // namespace pairstep
