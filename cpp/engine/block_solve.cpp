#include "block_solve.hpp"

#include <algorithm>
#include <cmath>

#include "../core/crew.hpp"
#include "../core/sum.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// Coordinate-wise Lipschitz constants for the rules that weigh by them: the diagonal. Of an account
// without curvature any positive number is one.
template <class Real>
std::vector<double> constants_of(const Real* hessian, std::size_t q) {
  std::vector<double> constants(q);
  double least = INFINITY;
  for (std::size_t k = 0; k < q; ++k) {
    constants[k] = hessian[k * (q + 1)];
    if (constants[k] > 0) least = std::min(least, constants[k]);
  }
  for (double& constant : constants)
    if (!(constant > 0)) constant = std::isfinite(least) ? least : 1.0;
  return constants;
}

double two_coordinate_constant(const double* hessian, Index q) {
  return isa().two_coordinate_constant(hessian, q);
}
double two_coordinate_constant(const float* hessian, Index q) {
  const std::vector<double> wide(hessian, hessian + q * q);
  return isa().two_coordinate_constant(wide.data(), q);
}

void give(GreedyTask& task, const double* hessian) { task.hessian = hessian; }
void give(GreedyTask& task, const float* hessian) { task.hessian32 = hessian; }

// 1 / L2, or 1 / L1 for the rules of the 1-norm; not all ask for it.
template <class Real>
double step_size(const Real* hessian, Index q, const Rule& rule) {
  if (!rule.uses_alpha && !rule.weighted) return 1.0;
  const double l2 = two_coordinate_constant(hessian, q);
  return l2 > 0 ? (rule.one_norm ? 2.0 : 1.0) / l2 : 1.0;
}

struct Limits {
  std::vector<double> low, high;
};

// What the limits of nested groups leave to a part of their accounts while the others stay: its
// sums have the same rooms.
Limits limits_of_part(const Point& point, const Point& part) {
  Limits limits;
  if (!point.nested()) return limits;
  const GroupRooms rooms = rooms_of(point);
  for (Index g = 0; g < part.n_groups; ++g) {
    Sum sum;
    for (Index k = part.starts[g]; k < part.starts[g + 1]; ++k) sum.add(part.x[k]);
    limits.low.push_back(sum.value() - rooms.down[g]);
    limits.high.push_back(sum.value() + rooms.up[g]);
  }
  return limits;
}

}  // namespace

template <class Real>
BlockOutcome solve_block(const Point& point, const WorkingSet& set, const Real* hessian,
                         const Rule& rule, const Effort& effort, Team& team) {
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
                            kink = pick(point.kink), pivot = pick(point.pivot),
                            constants = constants_of(hessian, q);
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
              point.kink ? kink.data() : nullptr,
              point.kink ? pivot.data() : nullptr};
  const Limits limits = limits_of_part(point, small);
  if (point.nested()) {
    small.low = limits.low.data();
    small.high = limits.high.data();
  }
  GreedyTask task{};
  give(task, hessian);
  task.choice = {&rule, step_size(hessian, Index(q), rule), constants.data(), nullptr, 0};
  task.step = Step::exact;
  task.patience = 1000 + 10 * Index(q);
  task.finish = effort.finish;
  task.tidy = rule.curved;
  const auto run = [&] {
    const std::unique_ptr<GreedyRun> gear = isa().greedy(task, Index(q));
    gear->begin(small, 0.0);
    outcome.stop = gear->run(effort.threshold, effort.max_iter, team.pulse());
    outcome.iterations = gear->iterations;
    outcome.fall = -gear->value;
    outcome.least_curvature = gear->least_curvature;
    outcome.tries_forgone = outcome.stop == Stop::out_of_iterations ? gear->tries_forgone() : 0.0;
  };
  if (team.size() > 1 && Index(q) >= 2 * Crew::LEAST)
    with_crew(team, [&](Crew& crew) {
      task.choice.crew = &crew;
      run();
    });
  else run();
  return outcome;
}

template BlockOutcome solve_block(const Point&, const WorkingSet&, const float*, const Rule&,
                                  const Effort&, Team&);
template BlockOutcome solve_block(const Point&, const WorkingSet&, const double*, const Rule&,
                                  const Effort&, Team&);

}  // namespace pairstep
