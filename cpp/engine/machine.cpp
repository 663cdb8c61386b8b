#include "machine.hpp"

#include <algorithm>
#include <vector>

#include "../oracles/matrix.hpp"
#include "sample.hpp"

namespace pairstep {

namespace {

// Problems of so few accounts are solved in float64 and further than asked for: it costs nothing
// that could be noticed, and coefficients then repeat to many digits.
constexpr Index SMALL = 1000;
constexpr double FURTHER = 1e4;

template <class SomeOracle>
void run(SomeOracle& oracle, const MachineTask& task, Dual& dual, Pulse& pulse,
         MachineProgress& progress) {
  const bool small = dual.point.n <= SMALL;
  BlockGear gear(oracle, dual.point,
                 {.totals = dual.totals,
                  .rule = task.rule,
                  .eager = small,
                  .beyond = small ? FURTHER : 1.0,
                  .block_bytes = task.cache_bytes / 4});
  gear.iterations = dual.iterations;
  do {
    dual.status = gear.run(task.tol, task.max_iter, 1, pulse);
    progress.violation = gear.violation;
    progress.iterations = gear.iterations;
  } while (dual.status == BlockStop::paused);
  if (dual.status != BlockStop::optimal) gear.conclude();
  if (gear.violation <= task.tol) dual.status = BlockStop::optimal;
  dual.iterations = gear.iterations;
  dual.violation = gear.violation;
  std::copy_n(oracle.gradient(), dual.point.n, dual.point.gradient);
}

}  // namespace

void solve_machine(const MachineTask& task, Dual& dual, Team& team, MachineProgress& progress) {
  if (task.cold) start_from_samples(task, dual, team, progress);
  Pulse& pulse = team.pulse();
  const std::vector<double> pivot(dual.point.kink ? std::size_t(dual.point.n) : 0, 0.0);
  dual.point.pivot = dual.point.kink ? pivot.data() : nullptr;
  if (task.kernel.name == KernelName::precomputed) {
    MatrixOracle oracle(task.data, dual.rows, dual.linear, dual.point, false, team);
    return run(oracle, task, dual, pulse, progress);
  }
  // A quarter of the memory is for the block of the working set, the rest for rows.
  const KernelDual whole{task.data,   task.kernel, dual.rows,
                         dual.linear, task.tol,    task.cache_bytes / 4 * 3};
  if (task.single && dual.point.n > SMALL &&
      single_will_do(task.kernel, task.data.largest_square(dual.rows, dual.point.n))) {
    KernelOracle<float> oracle(whole, dual.point, team);
    run(oracle, task, dual, pulse, progress);
    if (dual.status != BlockStop::imprecise) return;
    if (pulse.stopped()) {
      dual.status = BlockStop::stopped;
      return;
    }
  }
  KernelOracle<double> oracle(whole, dual.point, team);
  run(oracle, task, dual, pulse, progress);
}

}  // namespace pairstep
