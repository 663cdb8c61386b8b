// Perspective relaxations of problems with limits on names, and lower bounds; see cardinality.hpp.
// Included by cardinality.cpp only.
#pragma once

#include <limits>
#include <numeric>
#include <utility>

#include "cardinality.hpp"

namespace pairstep {

struct PerspectiveSettings {
  // Passes over the rows, and trials for each, to improve multipliers that were not found.
  static constexpr int max_rounds = 5, max_trials = 50;
  // A variable beyond this fraction of its linear piece may get to the end of it.
  static constexpr double near_end = 0.5;
  // Attempts with different random perturbations.
  static constexpr unsigned attempts = 3;
  // Violation of a row, relative to its terms, that is rounding error.
  static constexpr double feasible = 1e-11;
  // Contradiction of rows and bounds, relative to its terms, that proves infeasibility.
  static constexpr double contradiction = 1e-9;
};

constexpr double EPSILON = std::numeric_limits<double>::epsilon();

// What a variable may be at a node: a combination of these.
using Choices = std::uint8_t;
constexpr Choices ZERO = 1, POSITIVE = 2, NEGATIVE = 4, NONZERO = POSITIVE | NEGATIVE;

struct Interval {
  double lower, upper;
};

struct Minimum {
  double value, at;
};

// The minimum of gx + dx^2/2 + k|x - p| over a range.
inline Minimum minimum(double g, double d, double k, double p, Interval range) {
  Minimum best{INFINITY, 0.0};
  const auto include = [&](double x) {
    if (std::isinf(x)) {
      if (x * (g + (x > 0 ? k : -k)) < 0) best = {-INFINITY, x};
      return;
    }
    const double value = x * (g + 0.5 * d * x) + (k > 0 ? k * std::abs(x - p) : 0.0);
    if (value < best.value) best = {value, x};
  };
  if (std::isfinite(range.lower) || d == 0) include(range.lower);
  if (std::isfinite(range.upper) || d == 0) include(range.upper);
  const auto include_inside = [&](double x) {
    if (x > range.lower && x < range.upper) include(x);
  };
  if (k > 0) include_inside(p);
  if (d > 0) {
    include_inside((k - g) / d);
    if (k > 0) include_inside((-k - g) / d);
  } else if (std::isinf(best.value) && best.value > 0) {
    include_inside(0.0);  // both ends are infinite and the function is constant
  }
  return best;
}

// The sum of the `count` largest entries, which must not be negative.
inline double sum_of_largest(std::vector<double>& values, Index count) {
  if (count < Index(values.size()))
    std::nth_element(values.begin(), values.begin() + count, values.end(), std::greater<>());
  const Index end = std::min(count, Index(values.size()));
  return std::accumulate(values.begin(), values.begin() + end, 0.0);
}

// Relaxations and bounds of nodes. At a node, every variable has a set of choices.
class Perspective {
 public:
  explicit Perspective(const CardinalityProblem& problem)
      : given_(problem),
        p_(problem.program),
        n_(p_.n),
        k_(p_.rows),
        d_(problem.separable),
        norm_(n_),
        tau_positive_(n_),
        tau_negative_(n_),
        beyond_(n_),
        has_further_(n_) {
    for (Index i = 0; i < n_; ++i) {
      double square = p_.hessian ? p_.hessian[i * (n_ + 1)] : p_.diagonal[i];
      for (Index f = 0; !p_.hessian && f < p_.m; ++f)
        square += p_.factors[f * n_ + i] * p_.factors[f * n_ + i];
      norm_[i] = std::sqrt(std::max(square, 0.0));
    }
  }

 protected:
  struct Segment {
    Index variable;
    double lower, upper, linear, curvature, l1, center, start;
  };

  struct Relaxed {
    Parametric::Status status;
    std::vector<double> x, multipliers;
  };

  // A lower bound, and what it becomes if variables are forced to be 0 or not.
  struct Bound {
    double value = -INFINITY;
    std::vector<double> gain;       // of a variable that may be nonzero, over being 0
    double last = 0.0, next = 0.0;  // the smallest gain that counts, and the largest that does not
  };

  bool is_open(Choices own) const { return (own & ZERO) && (own & NONZERO); }
  bool has_gap(Index i, Choices own) const {
    return (own & NONZERO) == NONZERO && given_.holding[i] > 0;
  }
  double l1(Index i) const { return p_.l1 ? p_.l1[i] : 0.0; }
  double center(Index i) const { return p_.l1 ? p_.center[i] : 0.0; }
  Interval positive(Index i) const {
    return {std::max({given_.holding[i], p_.lower[i], 0.0}), p_.upper[i]};
  }
  Interval negative(Index i) const {
    return {p_.lower[i], std::min({-given_.holding[i], p_.upper[i], 0.0})};
  }
  // The values of a variable that is not left out.
  Interval nonzero(Index i, Choices own) const {
    if (!(own & NEGATIVE)) return positive(i);
    if (!(own & POSITIVE)) return negative(i);
    return {p_.lower[i], p_.upper[i]};
  }

  // The number of names that open variables may take.
  Index names_left(const std::vector<Choices>& choices) const {
    Index left = given_.max_names;
    for (const Choices own : choices) left -= !(own & ZERO);
    return left;
  }

  // ------------------------------------------------------------------------------- relaxations

  // The end of the linear piece of the convex hull of 0 and a + dx^2/2 + k(|x - p| - |p|) over a
  // range of x > 0, and its slope.
  static std::pair<double, double> tangent(double a, double d, double k, double p, Interval range) {
    std::pair<double, double> best{0.0, INFINITY};
    const auto include = [&](double lower, double upper, double constant, double slope) {
      if (lower > upper) return;
      double at = lower;
      if (constant > 0) at = d > 0 ? std::clamp(std::sqrt(2 * constant / d), lower, upper) : upper;
      double value = slope;
      if (std::isfinite(at)) value += 0.5 * d * at;
      if (constant != 0) value += constant / at;  // at = 0 only if the constant is 0
      if (value < best.second) best = {at, value};
    };
    if (k == 0 || p <= 0) {
      include(range.lower, range.upper, a, k);
    } else {
      include(range.lower, std::min(p, range.upper), a, -k);
      include(std::max(range.lower, p), range.upper, a - 2 * k * p, k);
    }
    return best;
  }

  // Add the pieces of a variable's convex hull on one side, for sign = 1 or -1.
  void add_side(Index i, int sign, double a, double start, double& tau) {
    const Interval own = sign > 0 ? positive(i) : negative(i);
    const Interval range = sign > 0 ? own : Interval{-own.upper, -own.lower};
    const double k = l1(i), p = sign * center(i), d = d_[i];
    const auto [end, slope] = tangent(a, d, k, p, range);
    tau = end;
    double rest = std::max(sign * start, 0.0);
    const auto add = [&](double length, double linear, double curvature) {
      if (!(length > 0)) return;
      const double taken = std::min(rest, length);
      rest -= taken;
      segments_.push_back({i, sign > 0 ? 0.0 : -length, sign > 0 ? length : 0.0,
                           p_.linear[i] + sign * linear, curvature, 0.0, 0.0, sign * taken});
    };
    add(end, slope, 0.0);
    // The pieces after the linear one are needed only if the variable gets there.
    if (rest == 0 && std::abs(start) < PerspectiveSettings::near_end * end && !beyond_[i] &&
        range.upper > end) {
      has_further_[i] = false;
      return;
    }
    const double at = std::isfinite(end) ? end : 0.0;
    if (k > 0 && p > end && p < range.upper) {
      add(p - end, d * at - k, d);
      add(range.upper - p, d * p + k, d);
    } else if (range.upper > end) {
      add(range.upper - end, d * at + (k > 0 && p > end ? -k : k), d);
    }
  }

  void add_segments(const std::vector<Choices>& choices, const std::vector<double>& start,
                    double multiplier) {
    segments_.clear();
    std::fill(has_further_.begin(), has_further_.end(), true);
    for (Index i = 0; i < n_; ++i) {
      const Choices own = choices[i];
      if (!(own & ZERO)) {
        const Interval range = nonzero(i, own);
        segments_.push_back({i, range.lower, range.upper, p_.linear[i], d_[i], l1(i), center(i),
                             std::clamp(start[i], range.lower, range.upper)});
        continue;
      }
      const double a = multiplier + given_.cost[i];
      if (own & POSITIVE) add_side(i, 1, a, start[i], tau_positive_[i]);
      if (own & NEGATIVE) add_side(i, -1, a, start[i], tau_negative_[i]);
    }
  }

  // The indicator of a variable in the last relaxation.
  double indicator(Index i, double x) const {
    if (x == 0) return 0.0;
    const double tau = x > 0 ? tau_positive_[i] : tau_negative_[i];
    return tau == 0 ? 1.0 : std::min(std::abs(x) / tau, 1.0);
  }

  // The perspective relaxation of a node as a quadratic program, one variable per segment.
  struct Program {
    std::vector<double> linear, lower, upper, l1, center, start, diagonal;
    std::unique_ptr<bool[]> holds;
    QuadraticProgram program;
  };

  Program build() {
    const Index m = Index(segments_.size());
    Program built;
    bool has_l1 = false;
    for (const Segment& own : segments_) {
      built.linear.push_back(own.linear);
      built.lower.push_back(own.lower);
      built.upper.push_back(own.upper);
      built.l1.push_back(own.l1);
      built.center.push_back(own.center);
      built.start.push_back(own.start);
      built.diagonal.push_back(own.curvature);
      has_l1 = has_l1 || own.l1 > 0;
    }
    built.program = {.n = m,
                     .rows = k_,
                     .hessian = nullptr,
                     .factors = nullptr,
                     .diagonal = nullptr,
                     .m = 0,
                     .linear = built.linear.data(),
                     .lower = built.lower.data(),
                     .upper = built.upper.data(),
                     .l1 = has_l1 ? built.l1.data() : nullptr,
                     .center = has_l1 ? built.center.data() : nullptr,
                     .matrix = nullptr,
                     .low = p_.low,
                     .high = p_.high};
    set_rows(built);
    if (p_.hessian) set_hessian(built);
    else set_factors(built);
    return built;
  }

  void set_rows(Program& built) {
    const Index m = Index(segments_.size());
    matrix_.resize(std::size_t(k_ * m));
    built.holds.reset(new bool[k_]);
    for (Index r = 0; r < k_; ++r) {
      double activity = 0.0, terms = 0.0;
      for (Index a = 0; a < m; ++a) {
        const double entry = p_.matrix[r * n_ + segments_[a].variable];
        matrix_[r * m + a] = entry;
        activity += entry * built.start[a];
        terms += std::abs(entry * built.start[a]);
      }
      built.holds[r] = std::abs(activity - p_.low[r]) <= PerspectiveSettings::feasible * terms;
    }
    built.program.matrix = matrix_.data();
  }

  void set_hessian(Program& built) {
    const Index m = Index(segments_.size());
    hessian_.resize(std::size_t(m * m));
    for (Index a = 0; a < m; ++a) {
      const Index i = segments_[a].variable;
      const double* const from = p_.hessian + i * n_;
      double* const to = hessian_.data() + a * m;
      for (Index b = 0; b < m; ++b) to[b] = from[segments_[b].variable];
      // Segments of the same variable are adjacent.
      for (Index b = a; b < m && segments_[b].variable == i; ++b) to[b] -= d_[i];
      for (Index b = a; b-- > 0 && segments_[b].variable == i;) to[b] -= d_[i];
      to[a] += segments_[a].curvature;
    }
    built.program.hessian = hessian_.data();
  }

  void set_factors(Program& built) {
    const Index m = Index(segments_.size());
    hessian_.resize(std::size_t(p_.m * m));
    for (Index f = 0; f < p_.m; ++f)
      for (Index a = 0; a < m; ++a)
        hessian_[f * m + a] = p_.factors[f * n_ + segments_[a].variable];
    built.program.factors = hessian_.data();
    built.program.diagonal = built.diagonal.data();
    built.program.m = p_.m;
  }

  // Solve the perspective relaxation of a node.
  Relaxed relax(const std::vector<Choices>& choices, std::vector<double> start, double multiplier) {
    std::fill(beyond_.begin(), beyond_.end(), false);
    for (;;) {
      add_segments(choices, start, multiplier);
      Relaxed found = solve_program(build());
      if (found.status == Parametric::arrived) {
        if (!mark_ends(choices, found.x)) return found;
        start = std::move(found.x);
      } else {
        // Without all pieces there may be no solution.
        if (has_all_pieces() || interrupt_->stopped()) return found;
        std::fill(beyond_.begin(), beyond_.end(), true);
      }
    }
  }

  Relaxed solve_program(const Program& built) {
    Relaxed found{Parametric::stalled, std::vector<double>(n_), std::vector<double>(k_)};
    std::unique_ptr<Parametric> solver;
    for (unsigned seed = 0; seed < PerspectiveSettings::attempts; ++seed) {
      solver = make_parametric(built.program);
      found.status = solver->solve(built.start.data(), built.holds.get(), seed, *interrupt_);
      if (found.status != Parametric::stalled || interrupt_->stopped()) break;
    }
    for (std::size_t a = 0; a < segments_.size(); ++a)
      found.x[segments_[a].variable] += solver->x()[a];
    found.multipliers = solver->multipliers();
    return found;
  }

  bool has_all_pieces() const {
    return std::all_of(has_further_.begin(), has_further_.end(), [](char own) { return own; });
  }

  // Mark the variables at the end of a linear piece after which others were left out. Return
  // whether there are any.
  bool mark_ends(const std::vector<Choices>& choices, const std::vector<double>& x) {
    bool any = false;
    for (Index i = 0; i < n_; ++i) {
      if (beyond_[i] || !is_open(choices[i]) || x[i] == 0) continue;
      const double tau = x[i] > 0 ? tau_positive_[i] : tau_negative_[i];
      if (std::abs(x[i]) < tau || has_further_[i]) continue;
      beyond_[i] = any = true;
    }
    return any;
  }

  // -------------------------------------------------------------------------------------- bounds

  // Qx - d x, given x.
  std::vector<double> product(const std::vector<double>& x) const {
    std::vector<double> found(n_);
    if (p_.hessian) {
      for (Index j = 0; j < n_; ++j) {
        if (x[j] == 0) continue;
        const double *const column = p_.hessian + j * n_, by = x[j];
        for (Index i = 0; i < n_; ++i) found[i] += by * column[i];
        found[j] -= d_[j] * x[j];
      }
      return found;
    }
    for (Index f = 0; f < p_.m; ++f) {
      const double* const factor = p_.factors + f * n_;
      double sum = 0.0;
      for (Index i = 0; i < n_; ++i) sum += factor[i] * x[i];
      for (Index i = 0; i < n_; ++i) found[i] += sum * factor[i];
    }
    return found;
  }

  // The Lagrangian with multipliers v of the rows, where x'(Q - diag(d))x is replaced by its
  // tangent at `x`, minimized over all points of the node. It is a lower bound for every x and v.
  Bound bound(const std::vector<Choices>& choices, const std::vector<double>& x,
              const std::vector<double>& v) {
    Bound found;
    found.gain.assign(n_, -INFINITY);
    const std::vector<double> tangent = product(x);
    std::vector<double> pull(n_), pull_size(n_);
    double value = 0.0, size = 0.0, norm = 0.0, least_error = 0.0, largest_error = 0.0;
    for (Index r = 0; r < k_; ++r) {
      const double limit = v[r] > 0 ? p_.low[r] : p_.high[r];
      if (v[r] == 0 || std::isinf(limit)) continue;
      value += v[r] * limit;
      size += std::abs(v[r] * limit);
      for (Index i = 0; i < n_; ++i) {
        pull[i] += v[r] * p_.matrix[r * n_ + i];
        pull_size[i] += std::abs(v[r] * p_.matrix[r * n_ + i]);
      }
    }
    Index support = 0;
    for (Index i = 0; i < n_; ++i) {
      value -= 0.5 * x[i] * tangent[i];
      norm += norm_[i] * std::abs(x[i]);
      support += x[i] != 0;
    }
    size += norm * norm;
    const double rounding = EPSILON * double(support + p_.m + k_ + 16);
    counted_.clear();
    for (Index i = 0; i < n_; ++i) {
      const Choices own = choices[i];
      const double k = l1(i), p = center(i), outside = k > 0 ? k * std::abs(p) : 0.0;
      if (own == ZERO) {
        value += outside;
        size += outside;
        continue;
      }
      const double g = tangent[i] + p_.linear[i] - pull[i];
      Minimum inside{INFINITY, 0.0};
      if (has_gap(i, own)) {
        inside = minimum(g, d_[i], k, p, positive(i));
        const Minimum other = minimum(g, d_[i], k, p, negative(i));
        if (other.value < inside.value) inside = other;
      } else {
        inside = minimum(g, d_[i], k, p, nonzero(i, own));
      }
      inside.value += given_.cost[i];
      const Interval range = nonzero(i, own);
      double reach = std::max(std::abs(range.lower), std::abs(range.upper));
      if (std::isinf(reach)) reach = 2 * std::abs(inside.at);
      const double error =
          rounding * ((norm_[i] * norm + std::abs(p_.linear[i]) + pull_size[i]) * reach +
                      d_[i] * inside.at * inside.at + k * (std::abs(p) + reach) + given_.cost[i]);
      if (!(own & ZERO)) {
        value += inside.value;
        size += std::abs(inside.value);
        least_error += error;
        continue;
      }
      value += outside;
      size += outside;
      found.gain[i] = outside - inside.value;
      counted_.push_back(std::max(found.gain[i], 0.0));
      largest_error = std::max(largest_error, error);
    }
    const Index left = names_left(choices);
    if (left < 0) {
      found.value = INFINITY;
      return found;
    }
    const double gains = sum_of_largest(counted_, left);
    if (left > 0 && left <= Index(counted_.size()))
      found.last = *std::min_element(counted_.begin(), counted_.begin() + left);
    if (left < Index(counted_.size()))
      found.next = *std::max_element(counted_.begin() + left, counted_.end());
    size += gains;
    value -= gains;
    value -= EPSILON * double(n_ + 16) * size + least_error +
             double(std::min(left, Index(counted_.size()))) * largest_error;
    found.value = std::isnan(value) ? -INFINITY : value;
    return found;
  }

  // Improve the multipliers of the rows one by one, for points where the solver found none: if the
  // rows leave only one point, they are not unique, and some are infinitely far away.
  Bound raise_bound(const std::vector<Choices>& choices, const std::vector<double>& x,
                    std::vector<double> v, double enough) {
    Bound best = bound(choices, x, v);
    double size = 0.0;
    for (Index i = 0; i < n_; ++i)
      size = std::max({size, norm_[i] * norm_[i], std::abs(p_.linear[i])});
    for (int round = 0; round < PerspectiveSettings::max_rounds; ++round) {
      const double before = best.value;
      for (Index r = 0; r < k_; ++r) {
        double step = size;
        for (int k = 0; k < PerspectiveSettings::max_trials && best.value < enough; ++k) {
          const double from = v[r];
          bool improved = false;
          for (const double to : {from + step, from - step}) {
            v[r] = to;
            Bound other = bound(choices, x, v);
            improved = other.value > best.value;
            if (improved) {
              best = std::move(other);
              break;
            }
          }
          if (!improved) v[r] = from;
          step *= improved ? 2.0 : 0.25;
        }
      }
      if (!(best.value > before)) break;
    }
    return best;
  }

  // Whether weights of the rows prove that no point of the node satisfies them.
  bool is_contradiction(const std::vector<Choices>& choices, const std::vector<double>& weights) {
    double least = 0.0, most = 0.0, terms = 0.0;
    for (Index r = 0; r < k_; ++r) {
      if (weights[r] == 0) continue;
      const double limit = weights[r] > 0 ? p_.low[r] : p_.high[r];
      if (std::isinf(limit)) return false;
      least += weights[r] * limit;
      terms += std::abs(weights[r] * limit);
    }
    counted_.clear();
    for (Index i = 0; i < n_; ++i) {
      if (choices[i] == ZERO) continue;
      double column = 0.0, column_size = 0.0;
      for (Index r = 0; r < k_; ++r) {
        if (weights[r] == 0) continue;
        column += weights[r] * p_.matrix[r * n_ + i];
        column_size += std::abs(weights[r] * p_.matrix[r * n_ + i]);
      }
      const Interval range = nonzero(i, choices[i]);
      const double reach = std::max(std::abs(range.lower), std::abs(range.upper));
      if (std::isinf(reach)) {
        if (column_size == 0) continue;
        return false;
      }
      const double largest = std::max(column * range.lower, column * range.upper);
      terms += column_size * reach;
      if (choices[i] & ZERO) counted_.push_back(std::max(largest, 0.0));
      else most += largest;
    }
    const Index left = names_left(choices);
    if (left < 0) return true;
    most += sum_of_largest(counted_, left);
    return least - most > PerspectiveSettings::contradiction * terms;
  }

  CardinalityProblem given_;
  QuadraticProgram p_;
  Index n_, k_;
  const double* d_;
  std::vector<double> norm_;  // roots of the diagonal of Q
  InterruptCheck* interrupt_ = nullptr;
  // Of the last relaxation.
  std::vector<Segment> segments_;
  std::vector<double> tau_positive_, tau_negative_;  // ends of the linear pieces
  // Whether a variable needs pieces after the linear one, and whether it has all that exist.
  std::vector<char> beyond_, has_further_;
  std::vector<double> hessian_, matrix_, counted_;
};

}  // namespace pairstep
