#include "block_solve.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "../core/worker_group.hpp"
#include "../core/policy.hpp"
#include "../core/sum.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// Largest block that is copied to float32 for its first steps. The copy takes as long as a few
// steps per member; the blocks of larger working sets are solved by Newton's method anyway.
constexpr Index MAX_CONVERTED_MEMBERS = 1024;

// A Hessian that is stored in float32.
class StoredRows final : public HessianRows {
 public:
  StoredRows(const float* hessian, Index n) : hessian_(hessian), n_(n) {}
  float diagonal(Index i) const override { return hessian_[i * (n_ + 1)]; }
  void compute(const std::vector<Index>& wanted, const float** rows) override {
    for (const Index i : wanted) rows[i] = hessian_ + i * n_;
  }

 private:
  const float* hessian_;
  const Index n_;
};

Index steps_in_float32(const Point& point, const float* hessian, const Effort& effort,
                       InterruptCheck& interrupt) {
  StoredRows rows(hessian, point.n);
  return isa().single_steps(point, rows, effort.threshold, effort.max_iter, interrupt);
}
Index steps_in_float32(const Point& point, const double* hessian, const Effort& effort,
                       InterruptCheck& interrupt) {
  if (point.n > MAX_CONVERTED_MEMBERS) return 0;
  const std::vector<float> copy(hessian, hessian + point.n * point.n);
  return steps_in_float32(point, copy.data(), effort, interrupt);
}

// Take the first steps in float32, and bring the gradient up to date. Returns their number and the
// decrease of the objective.
template <class Real>
std::pair<Index, double> first_steps(Point& point, const Real* hessian, const Effort& effort,
                                     InterruptCheck& interrupt) {
  const Index q = point.n;
  const std::vector<double> x(point.x, point.x + q), before(point.gradient, point.gradient + q);
  const Index steps = steps_in_float32(point, hessian, effort, interrupt);
  std::vector<const Real*> rows;
  std::vector<double> by;
  for (Index k = 0; k < q; ++k) {
    if (point.x[k] == x[k]) continue;
    rows.push_back(hessian + k * q);
    by.push_back(point.x[k] - x[k]);
  }
  isa().of<Real>().add_rows(rows.data(), by.data(), Index(by.size()), 0, q, point.gradient);
  double change = 0.0;
  for (Index k = 0; k < q; ++k) change += (point.x[k] - x[k]) * (before[k] + point.gradient[k]);
  return {steps, -0.5 * change};
}

void set_hessian(GreedyTask& task, const double* hessian) { task.hessian = hessian; }
void set_hessian(GreedyTask& task, const float* hessian) { task.hessian32 = hessian; }

struct Limits {
  std::vector<double> low, high;
};

// Limits on the sums of the members of nested groups while all other variables stay fixed: the sums
// can change by as much as those of the whole groups.
Limits limits_of_members(const Point& point, const Point& part) {
  Limits limits;
  if (!point.nested()) return limits;
  const GroupSlack slacks = slacks_of(point);
  for (Index g = 0; g < part.n_groups; ++g) {
    Sum sum;
    for (Index k = part.starts[g]; k < part.starts[g + 1]; ++k) sum.add(part.x[k]);
    limits.low.push_back(sum.value() - slacks.down[g]);
    limits.high.push_back(sum.value() + slacks.up[g]);
  }
  return limits;
}

}  // namespace

template <class Real>
BlockOutcome solve_block(const Point& point, const WorkingSet& set, const Real* hessian,
                         const Effort& effort, ThreadPool& pool) {
  const std::vector<Index>& members = set.members;
  const std::size_t q = members.size();
  const auto pick = [&](const double* from) {
    std::vector<double> some(q);
    if (from)
      for (std::size_t k = 0; k < q; ++k) some[k] = from[members[k]];
    return some;
  };
  BlockOutcome outcome{};
  outcome.x = pick(point.x);
  std::vector<double> gradient = set.gradient;
  const std::vector<double> lower = pick(point.lower), upper = pick(point.upper),
                            l1 = pick(point.l1), breakpoint = pick(point.breakpoint);
  std::vector<Index> starts;
  for (Index g = 0; g <= point.n_groups; ++g)
    starts.push_back(std::lower_bound(members.begin(), members.end(), point.starts[g]) -
                     members.begin());
  Point small{Index(q),
              point.n_groups,
              starts.data(),
              gradient.data(),
              outcome.x.data(),
              lower.data(),
              upper.data(),
              point.l1 ? l1.data() : nullptr,
              point.l1 ? breakpoint.data() : nullptr};
  const Limits limits = limits_of_members(point, small);
  if (point.nested()) {
    small.low = limits.low.data();
    small.high = limits.high.data();
  }
  GreedyTask task{};
  set_hessian(task, hessian);
  task.newton_phase = effort.newton_phase;
  task.nonconvex_threshold = effort.nonconvex_threshold;
  task.force_extreme_pair = true;
  const bool begins_in_float32 = effort.single_steps && !effort.newton_phase && point.n_groups == 1;
  double first_decrease = 0.0;
  if (begins_in_float32)
    std::tie(task.steps_before, first_decrease) =
        first_steps(small, hessian, effort, pool.interrupt());
  const auto run = [&] {
    const std::unique_ptr<GreedyRun> solver = isa().greedy(task, Index(q));
    solver->begin(small, 0.0);
    outcome.stop =
        solver->run(effort.threshold, effort.max_iter - task.steps_before, pool.interrupt());
    outcome.iterations = task.steps_before + solver->iterations;
    outcome.decrease = first_decrease - solver->value;
    outcome.least_curvature = solver->least_curvature;
    outcome.ray = solver->ray;
    outcome.lost_newton_phases =
        outcome.stop == StopReason::max_iter ? solver->work_in_newton_phases() : 0.0;
  };
  if (pool.size() > 1 && Index(q) >= 2 * WorkerGroup::MIN_ELEMENTS_PER_PART)
    with_worker_group(pool, [&](WorkerGroup& worker_group) {
      task.worker_group = &worker_group;
      run();
    });
  else run();
  return outcome;
}

template BlockOutcome solve_block(const Point&, const WorkingSet&, const float*, const Effort&,
                                  ThreadPool&);
template BlockOutcome solve_block(const Point&, const WorkingSet&, const double*, const Effort&,
                                  ThreadPool&);

}  // namespace pairstep
