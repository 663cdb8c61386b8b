#include "precise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../isa/dispatch.hpp"
#include "derivatives.hpp"

namespace pairstep {

namespace {

struct PreciseSettings {
  // Rows of free variables that are compared besides those that determine the violation. Each costs
  // one precise gradient; more of them would be more likely to find the largest error.
  static constexpr Index free_rows = 2;
  // Rows with large norms that are compared in each group, for kernels whose values grow with the
  // norm. More of them would find errors in data with more outliers.
  static constexpr std::size_t large_rows = 8;
  // A difference from the precise value is ignored up to this fraction of the tolerance. A smaller
  // fraction replaces gradients more often; a larger one leaves more error in the violation.
  static constexpr double negligible = 1.0 / 16;

  // If rounding can add at most this fraction of tol to the violation of precise gradients, `extra`
  // is set to 0: a recomputation in float64 would differ by as much.
  static constexpr double acceptable_extra = 0.5;
  // Multiplications up to which all gradients are replaced: a second or two on one thread.
  static constexpr double max_work = 1e9;
  // Estimated cost of a nonlinear kernel function, in multiplications.
  static constexpr double function_work = 16.0;
};

double squared_distance(const double* a, const double* b, Index features) {
  return isa().squared_distance(a, b, features);
}

double squared_distance(const float* a, const float* b, Index features) {
  constexpr Index LANES = 4;  // independent partial sums, so that additions need not wait
  double lanes[LANES] = {};
  Index k = 0;
  for (; k + LANES <= features; k += LANES)
    for (Index lane = 0; lane < LANES; ++lane) {
      const double difference = double(a[k + lane]) - double(b[k + lane]);
      lanes[lane] += difference * difference;
    }
  for (; k < features; ++k) {
    const double difference = double(a[k]) - double(b[k]);
    lanes[0] += difference * difference;
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

double sparse_squared_distance(const DataMatrix& data, Index row, Index other) {
  Index a = data.starts[row], b = data.starts[other];
  const Index a_end = data.starts[row + 1], b_end = data.starts[other + 1];
  double sum = 0.0;
  while (a < a_end || b < b_end) {
    const Index left = a < a_end ? data.columns[a] : data.features,
                right = b < b_end ? data.columns[b] : data.features;
    double difference = 0.0;
    if (left <= right) difference = data.values[a++];
    if (right <= left) difference -= data.values[b++];
    sum += difference * difference;
  }
  return sum;
}

long double power_of(long double base, int degree) {
  long double power = 1.0L;
  for (; degree > 0; degree /= 2) {
    if (degree % 2) power *= base;
    base *= base;
  }
  return power;
}

}  // namespace

PreciseKernel::PreciseKernel(const KernelFunction& kernel, const DataMatrix& data,
                             std::vector<Index> rows, std::vector<double> weights)
    : kernel_(kernel), data_(data), rows_(std::move(rows)), weights_(std::move(weights)) {
  if (kernel.name != KernelName::linear) return;
  combined_.assign(std::size_t(data.features), 0.0L);
  sizes_.assign(std::size_t(data.features), 0.0);
  for (std::size_t j = 0; j < rows_.size(); ++j)
    data.each(rows_[j], [&](Index k, double value) {
      combined_[k] += static_cast<long double>(weights_[j]) * value;
      sizes_[k] += std::abs(weights_[j] * value);
    });
}

double PreciseKernel::work() const {
  const double entries = data_.starts && data_.rows > 0
                             ? 4.0 * double(data_.starts[data_.rows]) / double(data_.rows)
                             : double(data_.features);
  switch (kernel_.name) {
    case KernelName::linear: return double(data_.features);
    case KernelName::precomputed: return double(rows_.size());
    default: return double(rows_.size()) * (entries + PreciseSettings::function_work);
  }
}

// `spread` holds the entries of the row in a dense vector, for kernels of inner products.
long double PreciseKernel::kernel_of(Index row, Index other,
                                     const std::vector<double>& spread) const {
  if (kernel_.name == KernelName::precomputed)
    return data_.at(other, row);  // in the order in which solvers read it
  if (kernel_.name == KernelName::rbf) {
    double distance = 0.0;
    if (data_.starts) distance = sparse_squared_distance(data_, row, other);
    else
      data_.for_dense([&](const auto* entries) {
        distance = squared_distance(entries + row * data_.features,
                                    entries + other * data_.features, data_.features);
      });
    return std::exp(-kernel_.gamma * distance);
  }
  long double product = 0.0L;
  data_.each(other, [&](Index k, double value) {
    product += static_cast<long double>(spread[k]) * value;
  });
  const long double base = kernel_.gamma * product + kernel_.coef0;
  return kernel_.name == KernelName::poly ? power_of(base, kernel_.degree) : std::tanh(base);
}

PreciseGradient PreciseKernel::at(Index row, double linear) const {
  long double sum = linear;
  double terms = std::abs(linear);
  if (kernel_.name == KernelName::linear) {
    data_.each(row, [&](Index k, double value) {
      sum += combined_[k] * value;
      terms += sizes_[k] * std::abs(value);
    });
    return {double(sum), terms};
  }
  std::vector<double> spread;
  if (kernel_.name == KernelName::poly || kernel_.name == KernelName::sigmoid) {
    spread.assign(std::size_t(data_.features), 0.0);
    data_.each(row, [&](Index k, double value) { spread[k] = value; });
  }
  for (std::size_t j = 0; j < rows_.size(); ++j) {
    const long double term = weights_[j] * kernel_of(row, rows_[j], spread);
    sum += term;
    terms += double(std::abs(term));
  }
  return {double(sum), terms};
}

namespace {

// The largest possible increase of the violation if each gradient can be off by its error.
double extra_violation(const Point& point, const std::vector<double>& errors) {
  double violation = 0.0, with_errors = 0.0;
  for (Index g = 0; g < point.n_groups; ++g) {
    double left = -INFINITY, right = INFINITY, most_left = -INFINITY, least_right = INFINITY;
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
      const Position at = position_of(point, i);
      const double down = point.gradient[i] + at.left_shift,
                   up = point.gradient[i] + at.right_shift;
      left = std::max(left, down);
      right = std::min(right, up);
      most_left = std::max(most_left, down + errors[i]);
      least_right = std::min(least_right, up - errors[i]);
    }
    violation = std::max(violation, left - right);
    with_errors = std::max(with_errors, most_left - least_right);
  }
  return std::max(with_errors - violation, 0.0);
}

}  // namespace

namespace {

// The variables of a group whose rows have the largest norms. Where kernel values grow with the
// norm, their gradients have the largest errors, and may even have the wrong sign.
std::vector<Index> largest_rows(const KernelFunction& kernel, const DataMatrix& data,
                                const Index* rows, const Point& point, Index group) {
  if (kernel.name == KernelName::rbf || kernel.name == KernelName::precomputed) return {};
  std::vector<std::pair<double, Index>> ranked;  // minus the squared norm, and the variable
  for (Index i = point.starts[group]; i < point.starts[group + 1]; ++i) {
    double square = 0.0;
    data.each(rows[i], [&](Index, double value) { square += value * value; });
    ranked.emplace_back(-square, i);
  }
  const std::size_t count = std::min<std::size_t>(PreciseSettings::large_rows, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + std::ptrdiff_t(count), ranked.end());
  std::vector<Index> largest;
  for (std::size_t k = 0; k < count; ++k) largest.push_back(ranked[k].second);
  return largest;
}

}  // namespace

Rounding examine(const KernelFunction& kernel, const DataMatrix& data, const Index* rows,
                 const double* linear, Point& point, double tol, ThreadPool& pool) {
  const Support support(point);
  std::vector<Index> support_rows, chosen;
  for (const Index i : support.coordinates) support_rows.push_back(rows[i]);
  const PreciseKernel precise(kernel, data, std::move(support_rows), support.weights);
  for (Index g = 0; g < point.n_groups; ++g) {
    Index max_left = -1, min_right = -1;
    double most = -INFINITY, least = INFINITY;
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
      const Position at = position_of(point, i);
      if (point.gradient[i] + at.left_shift > most) {
        most = point.gradient[i] + at.left_shift;
        max_left = i;
      }
      if (point.gradient[i] + at.right_shift < least) {
        least = point.gradient[i] + at.right_shift;
        min_right = i;
      }
    }
    if (max_left >= 0) chosen.push_back(max_left);
    if (min_right >= 0) chosen.push_back(min_right);
    // Compare rows with large kernel values too if their true gradients add to the violation.
    const double allowed = PreciseSettings::negligible * tol;
    for (const Index i : largest_rows(kernel, data, rows, point, g)) {
      const Position at = position_of(point, i);
      const double truth = precise.at(rows[i], linear[i]).value;
      if (truth + at.left_shift > most + allowed || truth + at.right_shift < least - allowed)
        chosen.push_back(i);
    }
  }
  // Also compare some free variables, whose gradients are near the extremes. The gradients of other
  // variables may have been left in float32 if they are far from the extremes.
  std::vector<Index> free;
  for (const Index i : support.coordinates)
    if (position_of(point, i).is_free()) free.push_back(i);
  for (Index k = 0; k < PreciseSettings::free_rows && !free.empty(); ++k)
    chosen.push_back(free[std::size_t(k) * free.size() / PreciseSettings::free_rows]);
  constexpr double EPSILON = std::numeric_limits<double>::epsilon();
  Rounding found;
  double rounding = 0.0;
  for (const Index i : chosen) {
    const PreciseGradient truth = precise.at(rows[i], linear[i]);
    double error = std::abs(truth.value - point.gradient[i]);
    if (std::isnan(error)) error = INFINITY;
    rounding = std::max(rounding, EPSILON * truth.terms);
    found.error = std::max({found.error, rounding, error});
  }
  // A violation is the difference of two derivatives.
  found.extra = 2 * found.error;
  if (found.error <= PreciseSettings::negligible * tol) {
    found.extra = 0.0;
    return found;
  }
  if (double(point.n) * precise.work() > PreciseSettings::max_work) return found;
  std::vector<double> errors(std::size_t(point.n));
  pool.run(point.n, [&](Index i) {
    const PreciseGradient truth = precise.at(rows[i], linear[i]);
    point.gradient[i] = truth.value;
    errors[i] = EPSILON * truth.terms;
  });
  const double extra = extra_violation(point, errors);
  found.extra = extra <= PreciseSettings::acceptable_extra * tol ? 0.0 : extra;
  return found;
}

}  // namespace pairstep
