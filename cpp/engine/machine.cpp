#include "machine.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../oracles/kernel_matrix.hpp"
#include "../oracles/matrix.hpp"
#include "sample.hpp"

namespace pairstep {

namespace {

// Problems of so few accounts, which one working set holds, are solved in float64; and further than
// asked for, unless there are many of them: coefficients then repeat to many digits, for a tenth to
// a quarter of such a short fit.
constexpr Index SMALL = 128;
constexpr double FURTHER = 1e4;

// Rows up to which one dual alone is worth the kernel of all of them with each other, by their
// entries: a block of it, and float64 values to verify it, cost the more the wider rows are.
constexpr double ALONE = 200, ALONE_PER_ENTRY = 5, ALONE_MOST = 512;

template <class SomeOracle>
void run(SomeOracle& oracle, const MachineTask& task, Dual& dual, Team& team,
         MachineProgress& progress) {
  const bool further = dual.closely && dual.point.n <= SMALL;
  BlockGear gear(oracle, dual.point,
                 {.totals = dual.totals,
                  .rule = task.rule,
                  .eager = further,
                  .beyond = further ? FURTHER : 1.0,
                  .block_bytes = task.cache_bytes / 4,
                  .at_hand = task.kernel.name == KernelName::precomputed,
                  .memory = task.memory});
  gear.iterations = dual.iterations;
  do {
    dual.status = gear.run(task.tol, task.max_iter, 1, team);
    progress.violation = gear.violation;
    progress.iterations = gear.iterations;
  } while (dual.status == BlockStop::paused);
  if (dual.status != BlockStop::optimal) gear.conclude();
  if (gear.violation <= task.tol) dual.status = BlockStop::optimal;
  dual.iterations = gear.iterations;
  std::copy_n(oracle.gradient(), dual.point.n, dual.point.gradient);
}

// The rows that some duals are over, in the order in which they first appear, which leaves those of
// a class side by side; and the place of each account's row among them.
struct Rows {
  std::vector<Index> rows;
  std::vector<std::vector<Index>> places;

  Rows(const std::vector<Dual>& duals, Index count) {
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

// Whether to compute the kernel of all these rows with each other. Duals that share rows need most
// of it, some of it many times: it pays the longer the more a value costs. One that is at hand is
// laid out anew where the rows of a dual are few and far between.
bool is_worth_it(const MachineTask& task, const std::vector<Dual>& duals,
                 const std::vector<Index>& used) {
  const Index rows = Index(used.size());
  if (KernelMatrix<double>::bytes(rows) > task.cache_bytes / 2) return false;
  double needed = 0.0;
  for (const Dual& dual : duals) needed += double(dual.point.n) * double(dual.point.n);
  const bool shared = needed > double(rows) * double(rows);
  if (task.kernel.name == KernelName::precomputed) {
    const Runs first(duals.front().rows, duals.front().point.n);
    return shared && first.scattered() && !first.close();
  }
  const double entries = task.data.starts
                             ? double(task.data.starts[task.data.rows]) / double(task.data.rows)
                             : double(task.data.features);
  return double(rows) <=
         (shared ? 2000 + 6 * entries : std::min(ALONE + ALONE_PER_ENTRY * entries, ALONE_MOST));
}

// Threads over the duals where there are enough of them, else within each.
void solve_side_by_side(MachineTask task, std::vector<Dual>& duals, int threads, Pulse& pulse,
                        MachineProgress& progress) {
  const Index count = Index(duals.size());
  const int side_by_side = count >= threads ? threads : 1;
  task.cache_bytes /= std::size_t(side_by_side);
  // The largest first, so that none of them is left for the end.
  std::vector<Index> order(std::size_t(count), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return duals[a].point.n > duals[b].point.n; });
  Arenas own, &arenas = task.arenas ? *task.arenas : own;
  Team across(side_by_side, pulse);
  across.run(count, [&](Index k) {
    Team within(threads / side_by_side, pulse);
    Dual& dual = duals[order[k]];
    std::unique_ptr<Arena> memory = arenas.lend();
    MachineTask with_memory = task;
    with_memory.memory = memory.get();
    solve_machine(with_memory, dual, within, progress);
    arenas.take_back(std::move(memory));
    dual.certificate = certify(dual.point);
    dual.scale = terms_of(dual.point, dual.linear).gradient;
    ++progress.solved;
  });
}

}  // namespace

void solve_machine(const MachineTask& task, Dual& dual, Team& team, MachineProgress& progress) {
  if (task.cold) start_from_samples(task, dual, team, progress);
  if (task.kernel.name == KernelName::precomputed) {
    MatrixOracle oracle(task.data, dual.rows, dual.linear, dual.point, false, team,
                        dual.gradient_known ? dual.point.gradient : nullptr);
    return run(oracle, task, dual, team, progress);
  }
  // A quarter of the memory is for the block of the working set, the rest for rows.
  const KernelDual whole{task.data,   task.kernel, dual.rows,
                         dual.linear, task.tol,    task.cache_bytes / 4 * 3};
  if (task.single && dual.point.n > SMALL &&
      single_will_do(task.kernel, task.data.largest_square(dual.rows, dual.point.n))) {
    KernelOracle<float> oracle(whole, dual.point, team);
    run(oracle, task, dual, team, progress);
    if (dual.status != BlockStop::imprecise) return;
    if (team.pulse().stopped()) {
      dual.status = BlockStop::stopped;
      return;
    }
  }
  KernelOracle<double> oracle(whole, dual.point, team);
  run(oracle, task, dual, team, progress);
}

void solve_machines(const MachineTask& task, std::vector<Dual>& duals, int threads, Pulse& pulse,
                    MachineProgress& progress) {
  const Rows used(duals, task.data.rows);
  if (!is_worth_it(task, duals, used.rows))
    return solve_side_by_side(task, duals, threads, pulse, progress);
  Team team(threads, pulse);
  const KernelMatrix<double> matrix(task.kernel, task.data, used.rows, team);
  MachineTask of_matrix = task;
  of_matrix.data = matrix.matrix();
  of_matrix.kernel.name = KernelName::precomputed;
  of_matrix.cache_bytes -= KernelMatrix<double>::bytes(Index(used.rows.size()));
  for (std::size_t k = 0; k < duals.size(); ++k) duals[k].rows = used.places[k].data();
  solve_side_by_side(of_matrix, duals, threads, pulse, progress);
}

}  // namespace pairstep
