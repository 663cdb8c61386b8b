#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/feasible.hpp"
#include "../oracles/kernel_sums.hpp"

namespace pairstep {

namespace {

// Of so many rows one is in the sample; a sample has at least so many accounts.
constexpr int ONE_IN = 4;
constexpr Index SMALLEST = 2000;

// Samples are solved to so many times the tolerance.
constexpr double LOOSELY = 30;

// The share of accounts that must be full for a start to pay.
constexpr double WORTH = 0.02;

// A number for each row that looks drawn at random, evenly from all (Steele, Lea and Flood 2014).
std::uint64_t mixed(Index row) {
  std::uint64_t z = (std::uint64_t(row) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Some of a dual's accounts, in the same groups with the same totals.
class Sample {
 public:
  // One row in `one_in`: those of larger samples include those of smaller ones.
  Sample(const Dual& whole, double one_in) : starts_{0} {
    const Point& of = whole.point;
    const double limit = std::ldexp(1.0, 64) / one_in;
    for (Index g = 0; g < of.n_groups; ++g) {
      for (Index i = of.starts[g]; i < of.starts[g + 1]; ++i) {
        if (!(double(mixed(whole.rows[i])) < limit)) continue;
        rows_.push_back(whole.rows[i]);
        linear_.push_back(whole.linear[i]);
        wanted_.push_back(one_in * of.x[i]);
        lower_.push_back(one_in * of.lower[i]);
        upper_.push_back(one_in * of.upper[i]);
        if (of.kink) kink_.push_back(of.kink[i]);
      }
      starts_.push_back(Index(rows_.size()));
    }
    x_ = wanted_;
    pivot_.assign(kink_.size(), 0.0);
    gradient_.resize(x_.size());
    dual.point = {Index(rows_.size()),
                  of.n_groups,
                  starts_.data(),
                  gradient_.data(),
                  x_.data(),
                  lower_.data(),
                  upper_.data(),
                  of.kink ? kink_.data() : nullptr,
                  of.kink ? pivot_.data() : nullptr};
    dual.rows = rows_.data();
    dual.linear = linear_.data();
    dual.totals = whole.totals;
    dual.iterations = whole.iterations;
  }

  // Whether the totals can be had; then the point has them.
  bool is_feasible() {
    for (Index g = 0; g < dual.point.n_groups; ++g) {
      const Index begin = starts_[g], count = starts_[g + 1] - begin;
      const double total = dual.totals[g];
      if (span_of(&lower_[begin], &upper_[begin], count, total, total).miss > 0) return false;
    }
    project(wanted_.data(), lower_.data(), upper_.data(),
            {dual.point.n_groups, starts_.data(), dual.totals}, x_.data());
    return true;
  }

  Dual dual{};

 private:
  std::vector<Index> rows_, starts_;
  std::vector<double> linear_, wanted_, x_, lower_, upper_, kink_, gradient_, pivot_;
};

bool all_finite(const double* bounds, Index n) {
  for (Index i = 0; i < n; ++i)
    if (!std::isfinite(bounds[i])) return false;
  return true;
}

double share_full(const Point& point) {
  Index full = 0;
  for (Index i = 0; i < point.n; ++i)
    full += point.x[i] != 0 && (point.x[i] == point.lower[i] || point.x[i] == point.upper[i]);
  return double(full) / double(point.n);
}

// Fill what is cheap at the prices that the solution of a sample sets, and empty what is dear, so
// that the sums hold. An account with a kink at 0 has two parts, below it and above.
void foretell(const MachineTask& task, const Dual& sample, Dual& dual, Team& team) {
  const Point& point = dual.point;
  std::vector<Index> support;
  std::vector<double> weights;
  for (Index i = 0; i < sample.point.n; ++i)
    if (sample.point.x[i] != 0) {
      support.push_back(sample.rows[i]);
      weights.push_back(sample.point.x[i]);
    }
  // What the sample's own accounts cost is known; the others are priced.
  std::vector<double> gradient(point.n), priced;
  std::vector<Index> others, rows;
  Index known = 0;
  for (Index i = 0; i < point.n; ++i) {
    if (known < sample.point.n && sample.rows[known] == dual.rows[i]) {
      gradient[i] = sample.point.gradient[known++];
      continue;
    }
    others.push_back(i);
    rows.push_back(dual.rows[i]);
    priced.push_back(dual.linear[i]);
  }
  const bool single = task.single && task.kernel.name != KernelName::precomputed &&
                      single_will_do(task.kernel, task.data.largest_square(dual.rows, point.n));
  const auto add = single ? add_kernel<float> : add_kernel<double>;
  add(task.kernel, task.data, support, {0, Index(support.size())}, weights.data(), 1, task.data,
      rows, priced.data(), Index(rows.size()), team);
  for (std::size_t k = 0; k < others.size(); ++k) gradient[others[k]] = priced[k];

  const Index parts = point.kink ? 2 : 1, n = parts * point.n;
  std::vector<double> price(n), least(n, 0.0), most(n), filled(n), none(n, 0.0), totals;
  std::vector<Index> starts;
  for (Index i = 0; i < point.n; ++i) {
    if (!point.kink) {
      price[i] = gradient[i];
      most[i] = point.upper[i] - point.lower[i];
      continue;
    }
    price[2 * i] = gradient[i] - point.kink[i];
    most[2 * i] = -std::min(point.lower[i], 0.0);
    price[2 * i + 1] = gradient[i] + point.kink[i];
    most[2 * i + 1] = std::max(point.upper[i], 0.0);
  }
  for (Index g = 0; g <= point.n_groups; ++g) starts.push_back(parts * point.starts[g]);
  for (Index g = 0; g < point.n_groups; ++g) {
    double sum = dual.totals[g];
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) sum -= point.lower[i];
    totals.push_back(sum);
  }
  fill(price.data(), none.data(), least.data(), most.data(),
       {point.n_groups, starts.data(), totals.data()}, filled.data());
  for (Index i = 0; i < point.n; ++i) {
    const double above = point.kink ? filled[2 * i + 1] : 0.0;
    point.x[i] =
        std::clamp((point.lower[i] + filled[parts * i]) + above, point.lower[i], point.upper[i]);
  }
  settle(point.x, point.lower, point.upper, {point.n_groups, point.starts, dual.totals});
}

}  // namespace

void start_from_samples(const MachineTask& task, Dual& dual, Team& team,
                        MachineProgress& progress) {
  const Point& point = dual.point;
  double one_in = 1.0;
  while (double(point.n) >= one_in * ONE_IN * SMALLEST) one_in *= ONE_IN;
  if (one_in == 1.0 || !all_finite(point.lower, point.n) || !all_finite(point.upper, point.n))
    return;
  MachineTask loosely = task;
  loosely.cold = false;
  loosely.tol *= LOOSELY;
  std::unique_ptr<Sample> known;
  for (; one_in > 1.0; one_in /= ONE_IN) {
    auto sample = std::make_unique<Sample>(dual, one_in);
    if (!sample->is_feasible()) return;
    if (known) foretell(task, known->dual, sample->dual, team);
    solve_machine(loosely, sample->dual, team, progress);
    dual.iterations = sample->dual.iterations;
    if (share_full(sample->dual.point) < WORTH || team.pulse().stopped()) return;
    known = std::move(sample);
  }
  foretell(task, known->dual, dual, team);
}

}  // namespace pairstep
