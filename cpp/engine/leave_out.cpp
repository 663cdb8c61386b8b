#include "leave_out.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

struct LeaveOutSettings {
  // Derivatives may violate optimality by this fraction of the tolerance before the state of a
  // variable changes. A smaller fraction follows rounding errors; a larger one leaves less of the
  // tolerance to them.
  static constexpr double ignored_violation = 0.01;
  // Distances beyond a bound, relative to the largest z, that count as rounding errors.
  static constexpr double relative_rounding = 1e-10;
  // Rounds of block pivoting. Most removals need three.
  static constexpr int max_rounds = 20;
  // Rounds in which the number of violating variables does not decrease before block pivoting is
  // given up: it may cycle.
  static constexpr int max_block_failures = 3;
  // Changes of states on a path, and those in a row that make no progress along it. More of them
  // would take longer than the block solver.
  static constexpr int max_events = 500;
  static constexpr int max_stalled_events = 100;
  // Variables whose state may differ: the cost of a round grows with the third power.
  static constexpr std::size_t max_changes = 200;
  // Added to the diagonal of the kernel matrix at variables that become free, relative to it, so
  // that rows which depend linearly on those of F have unique values. It changes derivatives by far
  // less than any useful tolerance.
  static constexpr double ridge = 1e-9;
  // Pivots below this fraction of the largest entry make the small system singular.
  static constexpr double min_pivot = 1e-13;
  // Free variables whose derivatives are recomputed from the kernel matrix, besides the extremes,
  // and the error that is acceptable, as a fraction of the tolerance (as in oracles/precise.cpp).
  static constexpr Index verified_free = 4;
  static constexpr double negligible_error = 1.0 / 16;
};

// Solve a small dense system by Gaussian elimination with partial pivoting, in place. Return false
// if it is singular.
bool solve_small(std::vector<double>& a, std::vector<double>& b) {
  const Index k = Index(b.size());
  double largest = 0.0;
  for (const double value : a) largest = std::max(largest, std::abs(value));
  for (Index c = 0; c < k; ++c) {
    Index best = c;
    for (Index r = c + 1; r < k; ++r)
      if (std::abs(a[r * k + c]) > std::abs(a[best * k + c])) best = r;
    if (!(std::abs(a[best * k + c]) > LeaveOutSettings::min_pivot * largest)) return false;
    if (best != c) {
      std::swap_ranges(a.begin() + c * k, a.begin() + (c + 1) * k, a.begin() + best * k);
      std::swap(b[c], b[best]);
    }
    for (Index r = c + 1; r < k; ++r) {
      const double factor = a[r * k + c] / a[c * k + c];
      if (factor == 0) continue;
      for (Index j = c + 1; j < k; ++j) a[r * k + j] -= factor * a[c * k + j];
      b[r] -= factor * b[c];
    }
  }
  for (Index c = k - 1; c >= 0; --c) {
    for (Index j = c + 1; j < k; ++j) b[c] -= a[c * k + j] * b[j];
    b[c] /= a[c * k + c];
  }
  return true;
}

}  // namespace

LeaveOut::LeaveOut(const LeaveOutTask& task)
    : task_(task),
      n_(task.point.n),
      m_(Index(task.free.size())),
      size_(m_ + task.point.n_groups),
      place_(std::size_t(n_), -1),
      group_(std::size_t(n_)),
      slope_(std::size_t(m_)),
      low_(std::size_t(m_)),
      high_(std::size_t(m_)),
      left_shift_(std::size_t(n_)),
      right_shift_(std::size_t(n_)),
      reduced_(std::size_t(n_)),
      newton_step_(std::size_t(size_), 0.0),
      newton_change_(std::size_t(n_), 0.0),
      max_cached_(Index(task.cache_bytes / (std::size_t(n_) * sizeof(double)))),
      columns_(std::size_t(n_)),
      owned_(std::size_t(n_)),
      runs_(task.rows, task.point.n) {
  const Point& point = task_.point;
  for (std::size_t k = 0; k < task_.known.size(); ++k)
    columns_[task_.known[k]] = task_.columns + Index(k) * n_;
  for (Index g = 0; g < point.n_groups; ++g)
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
      group_[i] = g;
      reduced_[i] = point.gradient[i] - task_.multiplier[g];
      const Position at = position_of(point, i);
      left_shift_[i] = at.left_shift;
      right_shift_[i] = at.right_shift;
    }
  double largest = 0.0;
  for (Index i = 0; i < n_; ++i) largest = std::max(largest, std::abs(point.x[i]));
  slack_ = LeaveOutSettings::relative_rounding * largest;
  std::vector<double> residual(m_, 0.0);
  std::vector<const double*> lines;
  for (Index f = 0; f < m_; ++f) {
    const Index i = task_.free[f];
    place_[i] = f;
    slope_[f] = left_shift_[i];
    left_shift_[i] = -INFINITY;
    right_shift_[i] = INFINITY;
    low_[f] = floor_at(point, i, point.x[i]);
    high_[f] = ceiling_at(point, i, point.x[i]);
    residual[f] = -(reduced_[i] + slope_[f]);
    lines.push_back(task_.transform + f * n_);
    for (Index r = 0; r < size_; ++r) newton_step_[r] += task_.inverse[f * size_ + r] * residual[f];
  }
  isa().of<double>().add_rows(lines.data(), residual.data(), m_, 0, n_, newton_change_.data());
}

// Column j of the transformed matrix: K_ij - [K_Fi; A_i]' inverse [K_Fj; A_j] for all i.
void LeaveOut::compute_column(Index variable, double* column) const {
  const double* own = task_.transposed + variable * size_;
  std::fill_n(column, n_, 0.0);
  std::vector<Index> terms = {task_.rows[variable]};
  std::vector<double> weights = {1.0};
  for (Index f = 0; f < m_; ++f) {
    terms.push_back(task_.rows[task_.free[f]]);
    weights.push_back(-own[f]);
  }
  InterruptCheck none;
  ThreadPool alone(1, none);
  runs_.add(task_.matrix, terms, weights.data(), alone, column);
  for (Index i = 0; i < n_; ++i) column[i] -= own[m_ + group_[i]];
}

const double* LeaveOut::column(Index variable, std::vector<double>& own) const {
  if (const double* known = columns_[variable].load(std::memory_order_acquire)) return known;
  if (cached_.load() >= max_cached_) {
    own.resize(std::size_t(n_));
    compute_column(variable, own.data());
    return own.data();
  }
  auto made = std::make_unique_for_overwrite<double[]>(std::size_t(n_));
  compute_column(variable, made.get());
  const double* expected = nullptr;
  if (columns_[variable].compare_exchange_strong(expected, made.get())) {
    ++cached_;
    return (owned_[variable] = std::move(made)).get();  // no other thread writes this entry
  }
  return expected;
}

// The repair after the removal of one sample.
class Repair {
 public:
  Repair(const LeaveOut& base, const LeftOut& left_out)
      : base_(base),
        task_(base.task_),
        left_out_(left_out),
        change_of_(std::size_t(base.n_), -1),
        reduced_(std::size_t(base.n_)),
        step_(std::size_t(base.size_)) {}

  WithoutSample run() {
    if (pivot_blocks() || follow_path()) return conclude();
    return {};
  }

 private:
  // The state of a variable that differs from its state at the optimum with all samples. If it is
  // free, its derivative plus `slope` is the multiplier, and z is meant to lie in [low, high].
  struct Change {
    Index variable;
    bool free;
    double value;  // z: given if the variable is fixed, computed if it is free
    double slope = 0.0, low = 0.0, high = 0.0;
    double shift = 0.0;  // members of F: derivative minus multiplier, plus the slope of before
    const double* column = nullptr;
    std::vector<double> own = {};  // memory of the column, if it is not in the cache
  };

  void begin() {
    for (const Change& change : changes_) change_of_[change.variable] = -1;
    changes_.clear();
    for (Index k = 0; k < left_out_.count; ++k) {
      const Index i = left_out_.variables[k];
      if (base_.place_[i] >= 0 || z_before(i) != 0) change_of(i);
    }
  }

  // Change the states of all violating variables at once until there are none. Return false if that
  // does not seem to converge.
  bool pivot_blocks() {
    begin();
    std::size_t fewest = std::size_t(base_.n_) + 1;
    int failures = 0;
    for (int round = 0; round < LeaveOutSettings::max_rounds; ++round) {
      if (changes_.size() > LeaveOutSettings::max_changes || !evaluate(1.0)) return false;
      find_violating();
      if (violating_.empty()) return true;
      if (violating_.size() < fewest) {
        fewest = violating_.size();
        failures = 0;
      } else if (++failures > LeaveOutSettings::max_block_failures) {
        return false;
      }
      for (const Index i : violating_) change_state(i);
    }
    return false;
  }

  // Follow the solution while the variables that are left out shrink to 0. The states change one at
  // a time, where a free variable reaches a bound or a derivative reaches 0.
  bool follow_path() {
    begin();
    double reached = 0.0;  // fraction of the way
    int stalled = 0;
    std::vector<double> z_end(std::size_t(base_.n_)), derivative_end(std::size_t(base_.n_));
    const double ignored = LeaveOutSettings::ignored_violation * task_.tol;
    for (int event = 0; event < LeaveOutSettings::max_events; ++event) {
      if (changes_.size() > LeaveOutSettings::max_changes || !evaluate(1.0)) return false;
      for (Index i = 0; i < base_.n_; ++i) {
        z_end[i] = value_of(i);
        derivative_end[i] = reduced_of(i);
      }
      if (!evaluate(reached)) return false;
      // The first variable that leaves its range, and the step to there.
      double step = 1.0;
      Index first = -1;
      double bound = 0.0;
      bool upward = false;
      const auto limit = [&](Index i, double from, double to, double end, bool above) {
        const double way = to == from ? 0.0 : std::clamp((end - from) / (to - from), 0.0, 1.0);
        if (first >= 0 && way >= step) return;
        step = way;
        first = i;
        bound = end;
        upward = above;
      };
      for (Index i = 0; i < base_.n_; ++i) {
        if (is_left_out(i)) continue;
        const double z = value_of(i);
        if (is_free(i)) {
          double low, high;
          limits_of(i, low, high);
          if (z_end[i] < low - base_.slack_) limit(i, z, z_end[i], low, false);
          if (z_end[i] > high + base_.slack_) limit(i, z, z_end[i], high, true);
          continue;
        }
        const Position at = position_at(task_.point, i, z);
        const double now = reduced_of(i), end = derivative_end[i];
        if (end + at.left_shift > ignored) limit(i, now, end, -at.left_shift, false);
        if (end + at.right_shift < -ignored) limit(i, now, end, -at.right_shift, true);
      }
      if (first < 0) {
        if (!evaluate(1.0)) return false;
        find_violating();
        return violating_.empty();
      }
      stalled = step > 0 ? 0 : stalled + 1;
      if (stalled > LeaveOutSettings::max_stalled_events) return false;
      reached += step * (1 - reached);
      if (is_free(first)) fix(first, bound);
      else set_free(first, value_of(first), upward);
    }
    return false;
  }

  bool is_left_out(Index i) const {
    return std::find(left_out_.variables, left_out_.variables + left_out_.count, i) !=
           left_out_.variables + left_out_.count;
  }
  // Whether a variable stays in the dual in the state that it had at the optimum.
  bool is_unchanged(Index i) const { return change_of_[i] < 0 && !is_left_out(i); }
  double z_before(Index i) const { return task_.point.x[i]; }

  Change& change_of(Index i) {
    if (change_of_[i] < 0) {
      change_of_[i] = Index(changes_.size());
      changes_.push_back({.variable = i, .free = false, .value = z_before(i)});
      if (base_.place_[i] < 0) changes_.back().column = base_.column(i, changes_.back().own);
    }
    return changes_[change_of_[i]];
  }

  void fix(Index i, double value) {
    if (base_.place_[i] < 0 && value == z_before(i)) return forget(i);
    Change& change = change_of(i);
    change.free = false;
    change.value = value;
  }

  // Let i change on the linear piece of the objective below or above its current value.
  void set_free(Index i, double value, bool upward) {
    const Position at = position_at(task_.point, i, value);
    const double slope = upward ? at.right_shift : at.left_shift;
    const Index f = base_.place_[i];
    if (f >= 0 && slope == base_.slope_[f]) return forget(i);
    Change& change = change_of(i);
    change.free = true;
    change.slope = slope;
    const double inside = upward ? value + at.max_increase / 2 : value - at.max_decrease / 2;
    change.low = floor_at(task_.point, i, inside);
    change.high = ceiling_at(task_.point, i, inside);
  }

  // Return to the state before the removal.
  void forget(Index i) {
    const Index at = change_of_[i];
    if (at < 0) return;
    change_of_[i] = -1;
    if (at + 1 < Index(changes_.size())) {
      changes_[at] = std::move(changes_.back());
      if (!changes_[at].own.empty()) changes_[at].column = changes_[at].own.data();
      change_of_[changes_[at].variable] = at;
    }
    changes_.pop_back();
  }

  // Whether a change is unknown: z of a free variable outside F, or the derivative of a fixed one
  // in F.
  bool is_unknown(const Change& change) const {
    return change.free == (base_.place_[change.variable] < 0);
  }

  // Compute z and the derivatives for the current states, at a fraction of the way from the optimum
  // with the sample to that without it. Return false if they are not unique.
  bool evaluate(double fraction) {
    fraction_ = fraction;
    for (Index k = 0; k < left_out_.count; ++k) {
      const Index i = left_out_.variables[k];
      if (change_of_[i] >= 0) changes_[change_of_[i]].value = (1 - fraction) * z_before(i);
    }
    // What each change contributes to the derivatives: a column of the transformed matrix times the
    // change of z, or a row of the transform times the change of the derivative.
    std::vector<Index> unknown;
    for (std::size_t c = 0; c < changes_.size(); ++c) {
      Change& change = changes_[c];
      if (is_unknown(change)) unknown.push_back(Index(c));
      else if (base_.place_[change.variable] >= 0)
        change.shift = base_.slope_[base_.place_[change.variable]] - change.slope;
    }
    const std::size_t k = unknown.size();
    std::vector<double> system(k * k), amount(k);
    for (std::size_t r = 0; r < k; ++r) {
      const Change& row = changes_[unknown[r]];
      const Index i = row.variable, f = base_.place_[i];
      double missing = f < 0 ? -row.slope - base_.reduced_[i] - fraction * base_.newton_change_[i]
                             : row.value - z_before(i) - fraction * base_.newton_step_[f];
      for (std::size_t c = 0; c < k; ++c) system[r * k + c] = effect(i, changes_[unknown[c]]);
      if (f < 0) system[r * k + r] += LeaveOutSettings::ridge * std::abs(base_.entry(i, i));
      for (const Change& known : changes_)
        if (!is_unknown(known)) missing -= effect(i, known) * known_amount(known);
      for (Index g = 0; g < task_.point.n_groups; ++g)
        missing -= total_effect(i, g) * fraction * left_out_.total_change[g];
      amount[r] = missing;
    }
    if (!solve_small(system, amount)) return false;
    for (std::size_t r = 0; r < k; ++r) {
      Change& change = changes_[unknown[r]];
      if (base_.place_[change.variable] < 0) change.value = z_before(change.variable) + amount[r];
      else change.shift = amount[r];
    }
    combine();
    return true;
  }

  double known_amount(const Change& change) const {
    return base_.place_[change.variable] < 0 ? change.value - z_before(change.variable)
                                             : change.shift;
  }

  // Effect of a unit change on variable i: on its derivative, or on its z if it is in F.
  double effect(Index i, const Change& change) const {
    const Index f = base_.place_[i], h = base_.place_[change.variable];
    if (h < 0)
      return f < 0 ? change.column[i] : -task_.transposed[change.variable * base_.size_ + f];
    return f < 0 ? task_.transform[h * base_.n_ + i] : task_.inverse[h * base_.size_ + f];
  }
  double total_effect(Index i, Index group) const {
    const Index f = base_.place_[i], h = base_.m_ + group;
    return f < 0 ? task_.transform[h * base_.n_ + i] : task_.inverse[h * base_.size_ + f];
  }

  // Set `reduced_` and `step_` from all changes.
  void combine() {
    std::vector<const double*> lines, step_lines;
    std::vector<double> weights, step_weights;
    const auto add = [&](const double* line, const double* step_line, double weight, double sign) {
      if (weight == 0) return;
      lines.push_back(line);
      weights.push_back(weight);
      step_lines.push_back(step_line);
      step_weights.push_back(sign * weight);
    };
    for (const Change& change : changes_) {
      const Index h = base_.place_[change.variable];
      if (h < 0)
        add(change.column, task_.transposed + change.variable * base_.size_, known_amount(change),
            -1.0);
      else add(task_.transform + h * base_.n_, task_.inverse + h * base_.size_, change.shift, 1.0);
    }
    for (Index g = 0; g < task_.point.n_groups; ++g) {
      const Index h = base_.m_ + g;
      add(task_.transform + h * base_.n_, task_.inverse + h * base_.size_,
          fraction_ * left_out_.total_change[g], 1.0);
    }
    for (Index i = 0; i < base_.n_; ++i)
      reduced_[i] = base_.reduced_[i] + fraction_ * base_.newton_change_[i];
    for (Index r = 0; r < base_.size_; ++r) step_[r] = fraction_ * base_.newton_step_[r];
    const auto add_rows = isa().of<double>().add_rows;
    add_rows(lines.data(), weights.data(), Index(lines.size()), 0, base_.n_, reduced_.data());
    add_rows(step_lines.data(), step_weights.data(), Index(step_lines.size()), 0, base_.size_,
             step_.data());
  }

  // z of a variable, and its derivative minus the multiplier.
  double value_of(Index i) const {
    const Index f = base_.place_[i];
    if (change_of_[i] >= 0) {
      const Change& change = changes_[change_of_[i]];
      if (!change.free || f < 0) return change.value;
    }
    return f < 0 ? z_before(i) : z_before(i) + step_[f];
  }
  double reduced_of(Index i) const {
    const Index f = base_.place_[i];
    if (f < 0) return reduced_[i];
    const double shift = change_of_[i] < 0 ? 0.0 : changes_[change_of_[i]].shift;
    return shift - base_.slope_[f];
  }
  bool is_free(Index i) const {
    return change_of_[i] < 0 ? base_.place_[i] >= 0 : changes_[change_of_[i]].free;
  }

  void limits_of(Index i, double& low, double& high) const {
    if (change_of_[i] >= 0) {
      low = changes_[change_of_[i]].low;
      high = changes_[change_of_[i]].high;
    } else {
      low = base_.low_[base_.place_[i]];
      high = base_.high_[base_.place_[i]];
    }
  }

  bool is_outside(double z, double low, double high) const {
    return z < low - base_.slack_ || z > high + base_.slack_;
  }

  // Most variables keep their state, so the first loop is kept short.
  void find_violating() {
    violating_.clear();
    const double ignored = LeaveOutSettings::ignored_violation * task_.tol;
    const auto violates = [&](double derivative, double left_shift, double right_shift) {
      return derivative + left_shift > ignored || derivative + right_shift < -ignored;
    };
    for (Index i = 0; i < base_.n_; ++i)
      if (violates(reduced_[i], base_.left_shift_[i], base_.right_shift_[i]) && is_unchanged(i))
        violating_.push_back(i);
    for (Index f = 0; f < base_.m_; ++f) {
      const Index i = task_.free[f];
      if (change_of_[i] < 0 && is_outside(z_before(i) + step_[f], base_.low_[f], base_.high_[f]))
        violating_.push_back(i);
    }
    for (const Change& change : changes_) {
      const Index i = change.variable;
      const double z = value_of(i);
      if (change.free) {
        if (is_outside(z, change.low, change.high)) violating_.push_back(i);
      } else if (!is_left_out(i)) {
        const Position at = position_at(task_.point, i, z);
        if (violates(reduced_of(i), at.left_shift, at.right_shift)) violating_.push_back(i);
      }
    }
    std::sort(violating_.begin(), violating_.end());
  }

  void change_state(Index i) {
    const double z = value_of(i);
    if (is_free(i)) {
      double low, high;
      limits_of(i, low, high);
      return fix(i, z < low ? low : high);
    }
    set_free(i, z, reduced_of(i) + position_at(task_.point, i, z).right_shift < 0);
  }

  // Check some derivatives against the kernel matrix, and compute multipliers and violation.
  WithoutSample conclude() {
    const Point& point = task_.point;
    WithoutSample found;
    // All changes of z.
    std::vector<Index> moved;
    std::vector<double> delta;
    const auto add = [&](Index i) {
      double low = point.lower[i], high = point.upper[i];
      const double z = is_left_out(i) ? 0.0 : std::clamp(value_of(i), low, high);
      if (z == z_before(i)) return;
      moved.push_back(i);
      delta.push_back(z - z_before(i));
    };
    for (const Index i : task_.free) add(i);
    for (const Change& change : changes_)
      if (base_.place_[change.variable] < 0) add(change.variable);
    const auto gradient_at = [&](Index i) {
      double sum = point.gradient[i];
      task_.matrix.for_dense([&](const auto* entries) {
        const auto* line = entries + task_.rows[i] * task_.matrix.features;
        for (std::size_t k = 0; k < moved.size(); ++k)
          sum += delta[k] * double(line[task_.rows[moved[k]]]);
      });
      return sum;
    };
    // The extremes of each group, and some free variables.
    std::vector<Index> verified;
    for (Index g = 0; g < point.n_groups; ++g) {
      double max_left = -INFINITY, min_right = INFINITY;
      Index left = -1, right = -1, free = 0;
      const double multiplier = task_.multiplier[g] - step_[base_.m_ + g];
      const auto include_left = [&](Index i, double derivative) {
        max_left = derivative;
        left = i;
      };
      const auto include_right = [&](Index i, double derivative) {
        min_right = derivative;
        right = i;
      };
      for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
        const double at_left = reduced_[i] + multiplier + base_.left_shift_[i];
        const double at_right = reduced_[i] + multiplier + base_.right_shift_[i];
        if (at_left > max_left && is_unchanged(i)) include_left(i, at_left);
        if (at_right < min_right && is_unchanged(i)) include_right(i, at_right);
      }
      const auto include = [&](Index i) {
        if (base_.group_[i] != g || is_left_out(i)) return;
        const Position at =
            position_at(point, i, std::clamp(value_of(i), point.lower[i], point.upper[i]));
        const double derivative = reduced_of(i) + multiplier;
        if (derivative + at.left_shift > max_left) include_left(i, derivative + at.left_shift);
        if (derivative + at.right_shift < min_right) include_right(i, derivative + at.right_shift);
        if (is_free(i) && ++free <= LeaveOutSettings::verified_free) verified.push_back(i);
      };
      for (const Index i : task_.free) include(i);
      for (const Change& change : changes_)
        if (base_.place_[change.variable] < 0) include(change.variable);
      if (left >= 0) verified.push_back(left);
      if (right >= 0) verified.push_back(right);
      found.violation = std::max(found.violation, max_left - min_right);
      const bool has_left = std::isfinite(max_left), has_right = std::isfinite(min_right);
      found.multiplier.push_back(has_left && has_right ? (max_left + min_right) / 2
                                 : has_left            ? max_left
                                                       : min_right);
    }
    double error = 0.0;
    for (const Index i : verified) {
      const double multiplier =
          task_.multiplier[base_.group_[i]] - step_[base_.m_ + base_.group_[i]];
      error = std::max(error, std::abs(gradient_at(i) - (reduced_of(i) + multiplier)));
    }
    if (!(error <= LeaveOutSettings::negligible_error * task_.tol)) return found;
    if (!(found.violation <= task_.tol)) return found;
    const Index first = left_out_.variables[0];
    found.sum = gradient_at(first) - task_.linear[first];
    found.optimal = true;
    return found;
  }

  const LeaveOut& base_;
  const LeaveOutTask& task_;
  const LeftOut& left_out_;
  double fraction_ = 1.0;
  std::vector<Index> change_of_;  // index into changes_, or -1
  std::vector<Change> changes_;
  std::vector<double> reduced_;  // derivatives minus multipliers, of variables outside F
  std::vector<double> step_;     // changes of z in F, then minus those of the multipliers
  std::vector<Index> violating_;
};

WithoutSample LeaveOut::solve(const LeftOut& left_out) const {
  return Repair(*this, left_out).run();
}

}  // namespace pairstep
