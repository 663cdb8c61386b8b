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

// A hash of the row number, uniform over 64 bits (SplitMix64; Steele, Lea and Flood 2014).
std::uint64_t hash_of(Index row) {
  std::uint64_t z = (std::uint64_t(row) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// A dual over a random sample of the rows, with the same groups and totals. The bounds are
// multiplied by the ratio of the numbers of rows.
class Sample {
 public:
  // Take about one row in `one_in`. The choice depends only on a hash of the row number, so larger
  // samples contain smaller ones.
  Sample(const Dual& whole, double one_in) : starts_{0} {
    const Point& of = whole.point;
    const double limit = std::ldexp(1.0, 64) / one_in;
    for (Index g = 0; g < of.n_groups; ++g) {
      for (Index i = of.starts[g]; i < of.starts[g + 1]; ++i) {
        if (!(double(hash_of(whole.rows[i])) < limit)) continue;
        rows_.push_back(whole.rows[i]);
        linear_.push_back(whole.linear[i]);
        scaled_x_.push_back(one_in * of.x[i]);
        lower_.push_back(one_in * of.lower[i]);
        upper_.push_back(one_in * of.upper[i]);
        if (of.l1) l1_.push_back(of.l1[i]);
      }
      starts_.push_back(Index(rows_.size()));
    }
    x_ = scaled_x_;
    breakpoint_.assign(l1_.size(), 0.0);
    gradient_.resize(x_.size());
    dual.point = {Index(rows_.size()),
                  of.n_groups,
                  starts_.data(),
                  gradient_.data(),
                  x_.data(),
                  lower_.data(),
                  upper_.data(),
                  of.l1 ? l1_.data() : nullptr,
                  of.l1 ? breakpoint_.data() : nullptr};
    dual.rows = rows_.data();
    dual.linear = linear_.data();
    dual.totals = whole.totals;
    dual.outcome.iterations = whole.outcome.iterations;
  }

  // Project the point onto the totals. Return false if the bounds do not allow them.
  bool make_feasible() {
    for (Index g = 0; g < dual.point.n_groups; ++g) {
      const Index begin = starts_[g], count = starts_[g + 1] - begin;
      const double total = dual.totals[g];
      if (range_of_sum(&lower_[begin], &upper_[begin], count, total, total).gap > 0) return false;
    }
    project(scaled_x_.data(), lower_.data(), upper_.data(),
            {dual.point.n_groups, starts_.data(), dual.totals}, x_.data());
    return true;
  }

  Dual dual{};

 private:
  std::vector<Index> rows_, starts_;
  std::vector<double> linear_, scaled_x_, x_, lower_, upper_, l1_, gradient_, breakpoint_;
};

bool all_finite(const double* bounds, Index n) {
  for (Index i = 0; i < n; ++i)
    if (!std::isfinite(bounds[i])) return false;
  return true;
}

// Fraction of the variables that are at a nonzero bound.
double fraction_at_bounds(const Point& point) {
  Index count = 0;
  for (Index i = 0; i < point.n; ++i)
    count += point.x[i] != 0 && (point.x[i] == point.lower[i] || point.x[i] == point.upper[i]);
  return double(count) / double(point.n);
}

// Predict the solution of a dual from that of a sample. The sample's solution gives a gradient for
// every variable; raise the variables with the smallest gradients to their upper bounds, and leave
// the others at their lower bounds, so that the sums hold. A variable with an L1 term has two
// segments, below and above its breakpoint 0, with different derivatives.
void predict(const SvmTask& task, const Dual& sample, Dual& dual, ThreadPool& pool) {
  const Point& point = dual.point;
  std::vector<Index> support;
  std::vector<double> weights;
  for (Index i = 0; i < sample.point.n; ++i)
    if (sample.point.x[i] != 0) {
      support.push_back(sample.rows[i]);
      weights.push_back(sample.point.x[i]);
    }
  // The gradient of the sampled variables is known. Compute that of the others.
  std::vector<double> gradient(point.n), computed;
  std::vector<Index> others, rows;
  Index known = 0;
  for (Index i = 0; i < point.n; ++i) {
    if (known < sample.point.n && sample.rows[known] == dual.rows[i]) {
      gradient[i] = sample.point.gradient[known++];
      continue;
    }
    others.push_back(i);
    rows.push_back(dual.rows[i]);
    computed.push_back(dual.linear[i]);
  }
  const bool single = task.single && task.kernel.name != KernelName::precomputed &&
                      single_will_do(task.kernel, task.data.largest_square(dual.rows, point.n));
  const auto add = single ? add_kernel<float> : add_kernel<double>;
  add(task.kernel, task.data, support, {0, Index(support.size())}, weights.data(), 1, task.data,
      rows, computed.data(), Index(rows.size()), pool);
  for (std::size_t k = 0; k < others.size(); ++k) gradient[others[k]] = computed[k];

  const Index segments = point.l1 ? 2 : 1, n = segments * point.n;
  std::vector<double> derivative(n), least(n, 0.0), most(n), filled(n), curvature(n, 0.0), totals;
  std::vector<Index> starts;
  for (Index i = 0; i < point.n; ++i) {
    if (!point.l1) {
      derivative[i] = gradient[i];
      most[i] = point.upper[i] - point.lower[i];
      continue;
    }
    derivative[2 * i] = gradient[i] - point.l1[i];
    most[2 * i] = -std::min(point.lower[i], 0.0);
    derivative[2 * i + 1] = gradient[i] + point.l1[i];
    most[2 * i + 1] = std::max(point.upper[i], 0.0);
  }
  for (Index g = 0; g <= point.n_groups; ++g) starts.push_back(segments * point.starts[g]);
  for (Index g = 0; g < point.n_groups; ++g) {
    double sum = dual.totals[g];
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) sum -= point.lower[i];
    totals.push_back(sum);
  }
  fill(derivative.data(), curvature.data(), least.data(), most.data(),
       {point.n_groups, starts.data(), totals.data()}, filled.data());
  for (Index i = 0; i < point.n; ++i) {
    const double above = point.l1 ? filled[2 * i + 1] : 0.0;
    point.x[i] =
        std::clamp((point.lower[i] + filled[segments * i]) + above, point.lower[i], point.upper[i]);
  }
  restore_sums(point.x, point.lower, point.upper, {point.n_groups, point.starts, dual.totals});
}

}  // namespace

void start_from_samples(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress) {
  const Point& point = dual.point;
  double one_in = 1.0;
  while (double(point.n) >= one_in * SampleSettings::GROWTH * SampleSettings::MIN_SIZE)
    one_in *= SampleSettings::GROWTH;
  if (one_in == 1.0 || !all_finite(point.lower, point.n) || !all_finite(point.upper, point.n))
    return;
  SvmTask rough = task;
  rough.cold = false;
  rough.tol *= SampleSettings::TOLERANCE_FACTOR;
  std::unique_ptr<Sample> previous;
  for (; one_in > 1.0; one_in /= SampleSettings::GROWTH) {
    auto sample = std::make_unique<Sample>(dual, one_in);
    if (!sample->make_feasible()) return;
    if (previous) predict(task, previous->dual, sample->dual, pool);
    solve_svm_dual(rough, sample->dual, pool, progress);
    dual.outcome.iterations = sample->dual.outcome.iterations;
    if (fraction_at_bounds(sample->dual.point) < SampleSettings::MIN_AT_BOUND) return;
    if (pool.interrupt().stopped()) return;
    previous = std::move(sample);
  }
  predict(task, previous->dual, dual, pool);
}

}  // namespace pairstep
