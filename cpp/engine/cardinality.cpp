#include "cardinality.hpp"

#include <limits>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

namespace pairstep {

namespace {

struct CardinalitySettings {
  // Changes of the multiplier of the number of names, at the root and at other nodes.
  static constexpr int root_steps = 12, node_steps = 2;
  // Relative error of the number of names in a relaxation with which its multiplier is kept.
  static constexpr double root_precision = 1e-3, node_precision = 0.1;
  // Largest change of the multiplier in one step, as a factor.
  static constexpr double max_factor = 10.0;
  // A relaxed indicator this close to 0 or 1 is not branched on.
  static constexpr double integral = 1e-6;
  // Variables tried as replacements in a local search.
  static constexpr int replacements = 6;
  // Local searches end after this many improvements.
  static constexpr int max_improvements = 40;
  // Nodes that are stored. Beyond that, the search continues with a child of the last node, which
  // needs no memory.
  static constexpr std::size_t max_stored = 200'000;
  // Passes over the rows, and trials for each, to improve multipliers that were not found.
  static constexpr int max_rounds = 5, max_trials = 50;
  // Size of the objective to which gaps are relative, at least, relative to its terms.
  static constexpr double least_size = 1e-6;
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

struct Range {
  double lower, upper;
};

struct Minimum {
  double value, at;
};

// The minimum of gx + dx^2/2 + k|x - p| over a range.
Minimum minimum(double g, double d, double k, double p, Range range) {
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
double sum_of_largest(std::vector<double>& values, Index count) {
  if (count < Index(values.size()))
    std::nth_element(values.begin(), values.begin() + count, values.end(), std::greater<>());
  const Index end = std::min(count, Index(values.size()));
  return std::accumulate(values.begin(), values.begin() + end, 0.0);
}

struct Node {
  double bound;
  std::vector<Choices> choices;
  std::vector<std::pair<Index, double>> point;  // the entries of the relaxed solution
  double multiplier;                            // of the number of names
  Index branch;                                 // the variable to branch on
};

struct WorseBound {
  bool operator()(const Node& a, const Node& b) const { return a.bound > b.bound; }
};

class Search final : public CardinalitySearch {
 public:
  explicit Search(const CardinalityProblem& problem)
      : given_(problem),
        p_(problem.program),
        n_(p_.n),
        k_(p_.rows),
        d_(problem.separable),
        norm_(n_),
        tau_positive_(n_),
        tau_negative_(n_) {
    for (Index i = 0; i < n_; ++i) {
      double square = p_.hessian ? p_.hessian[i * (n_ + 1)] : p_.diagonal[i];
      for (Index f = 0; !p_.hessian && f < p_.m; ++f)
        square += p_.factors[f * n_ + i] * p_.factors[f * n_ + i];
      norm_[i] = std::sqrt(std::max(square, 0.0));
    }
  }

  void run(const double* start, InterruptCheck& interrupt) override {
    std::vector<Choices> choices(n_);
    for (Index i = 0; i < n_; ++i) {
      if (p_.lower[i] <= 0 && p_.upper[i] >= 0) choices[i] |= ZERO;
      if (p_.upper[i] > 0 && p_.upper[i] >= given_.holding[i]) choices[i] |= POSITIVE;
      if (p_.lower[i] < 0 && -p_.lower[i] >= given_.holding[i]) choices[i] |= NEGATIVE;
    }
    current_ = -INFINITY;
    if (start) {
      // One solve, which gives a point even if the time is over already.
      InterruptCheck unlimited;
      interrupt_ = &unlimited;
      try_support(choices, std::vector<double>(start, start + n_), false);
    }
    interrupt_ = &interrupt;
    interrupt.poll();
    evaluate(std::move(choices), std::vector<double>(n_), 0.0, -INFINITY, true);
    current_ = INFINITY;
    const bool finished = search();
    if (finished) status_ = CardinalityState::proven;
    else if (interrupt.stopped()) status_ = CardinalityState::stopped;
    else status_ = CardinalityState::node_limit;
  }

  CardinalityState state() const override {
    CardinalityState now{.status = status_,
                         .has_point = std::isfinite(value_),
                         .x = best_,
                         .value = value_,
                         .bound = std::min({pruned_, current_, value_}),
                         .size = size_,
                         .nodes = nodes_};
    if (!open_.empty()) now.bound = std::min(now.bound, open_.front().bound);
    if (next_) now.bound = std::min(now.bound, next_->bound);
    return now;
  }

  CardinalityRest rest() const override {
    CardinalityRest found{pruned_, std::vector<double>(n_), weights_};
    const auto include = [&](const Node& node) {
      for (Index i = 0; i < n_; ++i)
        if (node.choices[i] != ZERO) found.live[i] = 1.0;
    };
    for (const Node& node : open_) include(node);
    if (next_) include(*next_);
    return found;
  }

 private:
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
  Range positive(Index i) const {
    return {std::max({given_.holding[i], p_.lower[i], 0.0}), p_.upper[i]};
  }
  Range negative(Index i) const {
    return {p_.lower[i], std::min({-given_.holding[i], p_.upper[i], 0.0})};
  }
  // The values of a variable that is not left out.
  Range nonzero(Index i, Choices own) const {
    if (!(own & NEGATIVE)) return positive(i);
    if (!(own & POSITIVE)) return negative(i);
    return {p_.lower[i], p_.upper[i]};
  }

  double cutoff() const { return std::isfinite(value_) ? value_ - given_.gap * size_ : INFINITY; }

  // The number of names that open variables may take.
  Index names_left(const std::vector<Choices>& choices) const {
    Index left = given_.max_names;
    for (const Choices own : choices) left -= !(own & ZERO);
    return left;
  }

  // ------------------------------------------------------------------------------- relaxations

  // The end of the linear piece of the convex hull of 0 and a + dx^2/2 + k(|x - p| - |p|) over a
  // range of x > 0, and its slope.
  static std::pair<double, double> tangent(double a, double d, double k, double p, Range range) {
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
    const Range own = sign > 0 ? positive(i) : negative(i);
    const Range range = sign > 0 ? own : Range{-own.upper, -own.lower};
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
    for (Index i = 0; i < n_; ++i) {
      const Choices own = choices[i];
      if (!(own & ZERO)) {
        const Range range = nonzero(i, own);
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

  // Solve the perspective relaxation of a node.
  Relaxed relax(const std::vector<Choices>& choices, const std::vector<double>& start,
                double multiplier) {
    add_segments(choices, start, multiplier);
    const Index m = Index(segments_.size());
    std::vector<double> linear(m), lower(m), upper(m), weights(m), centers(m), at(m), diagonal(m);
    bool has_l1 = false;
    for (Index a = 0; a < m; ++a) {
      const Segment& own = segments_[a];
      linear[a] = own.linear;
      lower[a] = own.lower;
      upper[a] = own.upper;
      weights[a] = own.l1;
      centers[a] = own.center;
      at[a] = own.start;
      diagonal[a] = own.curvature;
      has_l1 = has_l1 || own.l1 > 0;
    }
    matrix_.resize(std::size_t(k_ * m));
    std::vector<double> low(p_.low, p_.low + k_), high(p_.high, p_.high + k_);
    const std::unique_ptr<bool[]> holds(new bool[k_]);
    for (Index r = 0; r < k_; ++r) {
      double activity = 0.0, terms = 0.0;
      for (Index a = 0; a < m; ++a) {
        const double entry = p_.matrix[r * n_ + segments_[a].variable];
        matrix_[r * m + a] = entry;
        activity += entry * at[a];
        terms += std::abs(entry * at[a]);
      }
      holds[r] = std::abs(activity - low[r]) <= CardinalitySettings::feasible * terms;
    }
    QuadraticProgram program{.n = m,
                             .rows = k_,
                             .hessian = nullptr,
                             .factors = nullptr,
                             .diagonal = nullptr,
                             .m = 0,
                             .linear = linear.data(),
                             .lower = lower.data(),
                             .upper = upper.data(),
                             .l1 = has_l1 ? weights.data() : nullptr,
                             .center = has_l1 ? centers.data() : nullptr,
                             .matrix = matrix_.data(),
                             .low = low.data(),
                             .high = high.data()};
    if (p_.hessian) {
      hessian_.resize(std::size_t(m * m));
      for (Index a = 0; a < m; ++a) {
        const Index i = segments_[a].variable;
        const double* const from = p_.hessian + i * n_;
        double* const to = hessian_.data() + a * m;
        for (Index b = 0; b < m; ++b) to[b] = from[segments_[b].variable];
        // Segments of the same variable are adjacent.
        for (Index b = a; b < m && segments_[b].variable == i; ++b) to[b] -= d_[i];
        for (Index b = a; b-- > 0 && segments_[b].variable == i;) to[b] -= d_[i];
        to[a] += diagonal[a];
      }
      program.hessian = hessian_.data();
    } else {
      hessian_.resize(std::size_t(p_.m * m));
      for (Index f = 0; f < p_.m; ++f)
        for (Index a = 0; a < m; ++a)
          hessian_[f * m + a] = p_.factors[f * n_ + segments_[a].variable];
      program.factors = hessian_.data();
      program.diagonal = diagonal.data();
      program.m = p_.m;
    }
    Relaxed found{Parametric::stalled, std::vector<double>(n_), std::vector<double>(k_)};
    for (unsigned seed = 0; seed < CardinalitySettings::attempts; ++seed) {
      const std::unique_ptr<Parametric> solver = make_parametric(program);
      found.status = solver->solve(at.data(), holds.get(), seed, *interrupt_);
      if (found.status == Parametric::stalled && !interrupt_->stopped() &&
          seed + 1 < CardinalitySettings::attempts)
        continue;
      for (Index a = 0; a < m; ++a) found.x[segments_[a].variable] += solver->x()[a];
      found.multipliers = solver->multipliers();
      break;
    }
    return found;
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
      const Range range = nonzero(i, own);
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
                    std::vector<double> v) {
    Bound best = bound(choices, x, v);
    double size = 0.0;
    for (Index i = 0; i < n_; ++i)
      size = std::max({size, norm_[i] * norm_[i], std::abs(p_.linear[i])});
    for (int round = 0; round < CardinalitySettings::max_rounds; ++round) {
      const double before = best.value;
      for (Index r = 0; r < k_; ++r) {
        double step = size;
        for (int k = 0; k < CardinalitySettings::max_trials && best.value < cutoff(); ++k) {
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
      const Range range = nonzero(i, choices[i]);
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
    return least - most > CardinalitySettings::contradiction * terms;
  }

  // -------------------------------------------------------------------------------------- points

  double value_at(const std::vector<double>& x) const {
    const std::vector<double> tangent = product(x);
    double value = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (x[i] != 0)
        value += x[i] * (0.5 * (tangent[i] + d_[i] * x[i]) + p_.linear[i]) + given_.cost[i];
      if (l1(i) > 0) value += l1(i) * std::abs(x[i] - center(i));
    }
    return value;
  }

  bool satisfies_rows(const std::vector<double>& x) const {
    for (Index r = 0; r < k_; ++r) {
      double activity = 0.0, terms = 0.0;
      for (Index i = 0; i < n_; ++i) {
        activity += p_.matrix[r * n_ + i] * x[i];
        terms += std::abs(p_.matrix[r * n_ + i] * x[i]);
      }
      const double allowed = CardinalitySettings::feasible * terms;
      if (activity < p_.low[r] - allowed || activity > p_.high[r] + allowed) return false;
    }
    return true;
  }

  // Optimize over a support. Return the value, which is infinite if it was not found.
  double solve_support(const std::vector<Choices>& support, std::vector<double>& x,
                       std::vector<double>* derivatives = nullptr) {
    Relaxed found = relax(support, x, 0.0);
    for (Index i = 0; i < n_; ++i) {
      if (support[i] == ZERO) continue;
      const Range range = nonzero(i, support[i]);
      found.x[i] = std::clamp(found.x[i], range.lower, range.upper);
    }
    if (!satisfies_rows(found.x)) return INFINITY;
    x = std::move(found.x);
    if (derivatives) {
      *derivatives = product(x);
      for (Index i = 0; i < n_; ++i) {
        (*derivatives)[i] += d_[i] * x[i] + p_.linear[i];
        for (Index r = 0; r < k_; ++r)
          (*derivatives)[i] -= found.multipliers[r] * p_.matrix[r * n_ + i];
      }
    }
    return value_at(x);
  }

  void accept(double value, const std::vector<double>& x) {
    if (!(value < value_)) return;
    value_ = value;
    best_ = x;
    double norm = 0.0, terms = 0.0;
    for (Index i = 0; i < n_; ++i) {
      norm += norm_[i] * std::abs(x[i]);
      terms += std::abs(p_.linear[i] * x[i]) + (x[i] != 0 ? given_.cost[i] : 0.0);
      if (l1(i) > 0) terms += l1(i) * std::abs(x[i] - center(i));
    }
    size_ = std::max(std::abs(value), CardinalitySettings::least_size * (terms + norm * norm));
  }

  static Choices side_of(double x) { return x < 0 ? NEGATIVE : POSITIVE; }

  // Make variable i part of a support.
  void include(std::vector<Choices>& support, Index i, Choices allowed, double x) const {
    Choices own = allowed & NONZERO;
    if (has_gap(i, own)) own = side_of(x);
    support[i] = own;
  }

  // Optimize over the largest variables of a relaxed solution, and improve the support.
  void try_support(const std::vector<Choices>& choices, const std::vector<double>& relaxed,
                   bool thorough) {
    std::vector<Choices> support(n_, ZERO);
    std::vector<Index> order;
    for (Index i = 0; i < n_; ++i) {
      if (!(choices[i] & ZERO)) include(support, i, choices[i], relaxed[i]);
      else if (relaxed[i] != 0 && (choices[i] & side_of(relaxed[i]))) order.push_back(i);
    }
    const Index left = std::max(names_left(choices), Index(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](Index i, Index j) { return std::abs(relaxed[i]) > std::abs(relaxed[j]); });
    if (Index(order.size()) > left) order.resize(left);
    for (const Index i : order) include(support, i, choices[i], relaxed[i]);
    if (!thorough && support == last_support_) return;
    last_support_ = support;
    std::vector<double> x = relaxed;
    double value = solve_support(support, x);
    // If the support is too small or too large for the rows, other variables may help.
    if (std::isinf(value)) {
      for (Index i = 0, used = Index(order.size()); i < n_ && used < left; ++i) {
        if (support[i] != ZERO || !is_open(choices[i])) continue;
        include(support, i, choices[i], choices[i] & POSITIVE ? 1.0 : -1.0);
        ++used;
      }
      x = relaxed;
      value = solve_support(support, x);
      if (std::isinf(value)) return;
    }
    drop(choices, support, x, value);
    const bool improved = value < value_;
    accept(value, x);
    if (thorough || (improved && nodes_ > 0)) swap(choices, support, x, value);
  }

  // Leave variables out while that decreases the objective.
  void drop(const std::vector<Choices>& choices, std::vector<Choices>& support,
            std::vector<double>& x, double& value) {
    for (Index tries = 0; tries < n_ && !interrupt_->stopped(); ++tries) {
      Index which = -1;
      double least = INFINITY;
      for (Index i = 0; i < n_; ++i) {
        if (support[i] == ZERO || !(choices[i] & ZERO)) continue;
        const double size = std::abs(x[i]);
        const bool at_end = size <= given_.holding[i];
        if (!(at_end || given_.cost[i] > 0) || (x[i] == 0)) continue;
        if (size < least) {
          least = size;
          which = i;
        }
      }
      if (which < 0) return;
      std::vector<Choices> fewer = support;
      fewer[which] = ZERO;
      std::vector<double> other = x;
      other[which] = 0.0;
      const double found = solve_support(fewer, other);
      if (!(found < value)) return;
      support = std::move(fewer);
      x = std::move(other);
      value = found;
    }
  }

  // Exchange a variable of the support for another one while that decreases the objective.
  void swap(const std::vector<Choices>& choices, std::vector<Choices> support,
            std::vector<double> x, double value) {
    for (int round = 0; round < CardinalitySettings::max_improvements; ++round) {
      std::vector<double> slope;
      value = std::min(value, solve_support(support, x, &slope));
      if (std::isinf(value) || slope.empty()) return;
      std::vector<std::pair<double, Index>> promising;
      for (Index i = 0; i < n_; ++i) {
        if (support[i] != ZERO || !is_open(choices[i])) continue;
        const double right = slope[i] + (center(i) <= 0 ? l1(i) : -l1(i)),
                     left = slope[i] + (center(i) >= 0 ? -l1(i) : l1(i));
        double descent = 0.0;
        if (choices[i] & POSITIVE) descent = std::max(descent, -right);
        if (choices[i] & NEGATIVE) descent = std::max(descent, left);
        if (descent > 0 && norm_[i] > 0) promising.emplace_back(descent / norm_[i], i);
      }
      const Index tries =
          std::min(Index(CardinalitySettings::replacements), Index(promising.size()));
      std::partial_sort(promising.begin(), promising.begin() + tries, promising.end(),
                        std::greater<>());
      bool improved = false;
      for (Index a = 0; a < tries && !improved && !interrupt_->stopped(); ++a)
        improved = exchange(choices, support, x, value, promising[a].second, slope);
      if (!improved) return;
    }
  }

  bool exchange(const std::vector<Choices>& choices, std::vector<Choices>& support,
                std::vector<double>& x, double& value, Index added,
                const std::vector<double>& slope) {
    std::vector<Choices> larger = support;
    const bool up =
        (choices[added] & POSITIVE) && (slope[added] < 0 || !(choices[added] & NEGATIVE));
    include(larger, added, choices[added], up ? 1.0 : -1.0);
    std::vector<double> other = x;
    if (std::isinf(solve_support(larger, other))) return false;
    Index count = 0, smallest = -1;
    for (Index i = 0; i < n_; ++i) {
      count += larger[i] != ZERO;
      if (larger[i] == ZERO || i == added || !(choices[i] & ZERO)) continue;
      if (smallest < 0 ||
          std::abs(other[i]) * norm_[i] < std::abs(other[smallest]) * norm_[smallest])
        smallest = i;
    }
    if (count > given_.max_names) {
      if (smallest < 0) return false;
      larger[smallest] = ZERO;
      other[smallest] = 0.0;
    }
    double found = solve_support(larger, other);
    if (!(found < value - 1e-12 * std::abs(value))) return false;
    drop(choices, larger, other, found);
    support = std::move(larger);
    x = std::move(other);
    value = found;
    accept(value, x);
    return true;
  }

  // --------------------------------------------------------------------------------------- nodes

  // Change the multiplier of the number of names towards the value with which the relaxation has
  // as many as allowed. False if it needs no change.
  struct Bracket {
    double low = 0.0, high = INFINITY;
  };
  bool update_multiplier(const std::vector<Choices>& choices, const std::vector<double>& x,
                         const Bound& at, double precision, Bracket& bracket, double& multiplier) {
    const double left = double(names_left(choices));
    double full = 0.0, partial = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (!is_open(choices[i])) continue;
      const double own = indicator(i, x[i]);
      (own > 1 - 1e-9 ? full : partial) += own;
    }
    const double names = full + partial;
    if (names <= left && multiplier == 0) return false;
    if (std::abs(names - left) <= precision * left) return false;
    if (names > left) bracket.low = std::max(bracket.low, multiplier);
    else bracket.high = std::min(bracket.high, multiplier);
    double next;
    if (multiplier == 0) next = at.last;
    else if (names < left && partial < 1e-9) next = 0.0;
    else if (left > full) {
      const double ratio = partial / (left - full);
      next = multiplier * std::clamp(ratio * ratio, 1 / CardinalitySettings::max_factor,
                                     CardinalitySettings::max_factor);
    } else {
      next = 2 * multiplier;
    }
    if (next <= bracket.low && bracket.low > 0)
      next = std::isinf(bracket.high) ? 2 * bracket.low : std::sqrt(bracket.low * bracket.high);
    if (next >= bracket.high) next = bracket.low > 0 ? std::sqrt(bracket.low * bracket.high) : 0.0;
    if (next == multiplier) return false;
    multiplier = next;
    return true;
  }

  // Variables that cannot be 0, or cannot be nonzero, in a better point.
  void fix(std::vector<Choices>& choices, const Bound& at) {
    const double limit = cutoff();
    if (std::isinf(limit) || std::isinf(at.value)) return;
    const Index left = names_left(choices);
    for (Index i = 0; i < n_; ++i) {
      if (!is_open(choices[i]) || std::isinf(at.gain[i])) continue;
      const double gain = at.gain[i];
      const bool counts = left > 0 && gain > 0 && gain >= at.last;
      if (counts) {
        const double without = at.value + (gain - at.next);
        if (gain > at.next && without >= limit) {
          choices[i] &= NONZERO;
          pruned_ = std::min(pruned_, without);
        }
      } else {
        const double with = at.value + (left > 0 ? at.last - gain : INFINITY);
        if (with >= limit) {
          choices[i] = ZERO;
          pruned_ = std::min(pruned_, with);
        }
      }
    }
  }

  // The derivative of d_i x_i^2 / (2 z_i) - d_i x_i^2 / 2 with respect to d_i, times the variance.
  void set_weights(const std::vector<Choices>& choices, const std::vector<double>& x) {
    weights_.assign(n_, 0.0);
    for (Index i = 0; i < n_; ++i) {
      const double z = is_open(choices[i]) ? indicator(i, x[i]) : 1.0, size = norm_[i] * x[i];
      if (z > 0) weights_[i] = size * size * (1 / z - 1);
    }
  }

  static void close_if_full(std::vector<Choices>& choices, Index left) {
    if (left > 0) return;
    for (Choices& own : choices)
      if (own & ZERO) own = ZERO;
  }

  // The variable to branch on, or -1 if the node is a single support.
  Index branching_variable(const std::vector<Choices>& choices, const std::vector<double>& x,
                           const Bound& at) const {
    Index which = -1;
    double best = -1.0;
    for (Index i = 0; i < n_; ++i) {
      const Choices own = choices[i];
      double score = -1.0;
      if (is_open(own)) {
        const double z = indicator(i, x[i]);
        if (z > CardinalitySettings::integral && z < 1 - CardinalitySettings::integral)
          score = 1.0 + std::abs(x[i]) * norm_[i];
      } else if (has_gap(i, own) && std::abs(x[i]) < given_.holding[i]) {
        score = 1.0 + given_.holding[i] * norm_[i];
      }
      if (score > best) {
        best = score;
        which = i;
      }
    }
    if (which >= 0) return which;
    best = -INFINITY;
    for (Index i = 0; i < n_; ++i) {
      if (!is_open(choices[i]) && !has_gap(i, choices[i])) continue;
      const double score = is_open(choices[i]) ? at.gain.empty() ? 0.0 : at.gain[i] : 0.0;
      if (which < 0 || score > best) {
        best = score;
        which = i;
      }
    }
    return which;
  }

  // Bound a node, look for better points near its solution, and store it if it may contain one.
  void evaluate(std::vector<Choices> choices, std::vector<double> start, double multiplier,
                double parent, bool root) {
    ++nodes_;
    for (;;) {
      const Index left = names_left(choices);
      if (left < 0) return;
      close_if_full(choices, left);
      const int steps = root ? CardinalitySettings::root_steps : CardinalitySettings::node_steps;
      const double precision =
          root ? CardinalitySettings::root_precision : CardinalitySettings::node_precision;
      Bound at;
      Bracket bracket;
      double best = parent;
      for (int step = 0; step < steps; ++step) {
        Relaxed found = relax(choices, start, multiplier);
        if (found.status == Parametric::infeasible) {
          if (is_contradiction(choices, found.multipliers)) return;
          std::fill(found.multipliers.begin(), found.multipliers.end(), 0.0);
        }
        at = found.status == Parametric::arrived || interrupt_->stopped()
                 ? bound(choices, found.x, found.multipliers)
                 : raise_bound(choices, found.x, found.multipliers);
        best = std::max(best, at.value);
        if (found.status != Parametric::arrived) break;
        start = found.x;
        if (best >= cutoff() || interrupt_->stopped()) break;
        if (root || step == 0) try_support(choices, start, root && step == 0);
        // The segments of the last relaxation are needed for the indicators.
        add_segments(choices, start, multiplier);
        if (!update_multiplier(choices, start, at, precision, bracket, multiplier)) break;
      }
      if (root) try_support(choices, start, true);
      if (best >= cutoff()) {
        pruned_ = std::min(pruned_, best);
        return;
      }
      parent = best;
      const std::vector<Choices> before = choices;
      fix(choices, at);
      add_segments(choices, start, multiplier);
      if (root) set_weights(choices, start);
      const Index branch = branching_variable(choices, start, at);
      if (branch >= 0 && names_left(choices) > 0) {
        store({best, std::move(choices), sparse(start), multiplier, branch});
        return;
      }
      if (branch < 0 && choices == before) {  // a single support
        try_support(choices, start, false);
        if (best < cutoff()) {
          const Relaxed found = relax(choices, start, 0.0);
          best = std::max(best, raise_bound(choices, found.x, found.multipliers).value);
        }
        pruned_ = std::min(pruned_, best);
        return;
      }
      if (names_left(choices) <= 0 && branch >= 0 && !has_open(choices)) {
        store({best, std::move(choices), sparse(start), multiplier, branch});
        return;
      }
      root = false;  // what is left is closed, and evaluated once more
    }
  }

  bool has_open(const std::vector<Choices>& choices) const {
    return std::any_of(choices.begin(), choices.end(), [&](Choices own) { return is_open(own); });
  }

  static std::vector<std::pair<Index, double>> sparse(const std::vector<double>& x) {
    std::vector<std::pair<Index, double>> found;
    for (Index i = 0; i < Index(x.size()); ++i)
      if (x[i] != 0) found.emplace_back(i, x[i]);
    return found;
  }

  void store(Node node) {
    if (open_.size() > CardinalitySettings::max_stored) {
      if (!next_) {
        next_ = std::make_unique<Node>(std::move(node));
        return;
      }
      if (next_->bound > node.bound) std::swap(*next_, node);
    }
    open_.push_back(std::move(node));
    std::push_heap(open_.begin(), open_.end(), WorseBound{});
  }

  Node take() {
    if (next_) {
      Node node = std::move(*next_);
      next_.reset();
      return node;
    }
    std::pop_heap(open_.begin(), open_.end(), WorseBound{});
    Node node = std::move(open_.back());
    open_.pop_back();
    return node;
  }

  // Return whether all nodes are done.
  bool search() {
    while (!open_.empty() || next_) {
      if (interrupt_->stopped() || nodes_ >= given_.max_nodes) return false;
      Node node = take();
      if (node.bound >= cutoff()) {
        pruned_ = std::min(pruned_, node.bound);
        continue;
      }
      current_ = node.bound;
      std::vector<double> x(n_);
      for (const auto& [i, value] : node.point) x[i] = value;
      const Index i = node.branch;
      const Choices own = node.choices[i];
      const Choices first = own & ZERO ? ZERO : POSITIVE;
      for (const Choices part : {Choices(own & ~first), first}) {
        std::vector<Choices> choices = node.choices;
        choices[i] = part;
        std::vector<double> start = x;
        if (part == ZERO) start[i] = 0.0;
        evaluate(std::move(choices), std::move(start), node.multiplier, node.bound, false);
        interrupt_->poll();
        if (interrupt_->stopped()) {  // the other part was not evaluated
          store(std::move(node));
          current_ = INFINITY;
          return false;
        }
      }
      current_ = INFINITY;
    }
    return true;
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
  std::vector<double> hessian_, matrix_, counted_;
  std::vector<Choices> last_support_;
  // The search.
  std::vector<Node> open_;      // a heap
  std::unique_ptr<Node> next_;  // taken before those
  std::vector<double> best_;
  double value_ = INFINITY, size_ = 0.0;
  std::vector<double> weights_;  // of the root; see `CardinalityRest`
  double pruned_ = INFINITY;     // the smallest bound of a node that was not stored
  double current_ = INFINITY;    // the bound of the node whose parts are evaluated
  Index nodes_ = 0;
  CardinalityState::Status status_ = CardinalityState::stopped;
};

}  // namespace

std::unique_ptr<CardinalitySearch> make_cardinality_search(const CardinalityProblem& problem) {
  return std::make_unique<Search>(problem);
}

std::vector<double> largest_diagonal(const double* matrix, Index n, InterruptCheck& interrupt) {
  constexpr int max_sweeps = 300;
  constexpr double precision = 1e-6;  // of the sum of d, relative to that of the matrix
  const Index rank = Index(std::ceil(std::sqrt(2.0 * double(n)))) + 1;
  std::mt19937_64 random(0);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> factor(std::size_t(n * rank)), sum(rank), d(n);
  double trace = 0.0;
  for (Index i = 0; i < n; ++i) {
    double* const own = factor.data() + i * rank;
    double square = 0.0;
    for (Index r = 0; r < rank; ++r) {
      own[r] = uniform(random);
      square += own[r] * own[r];
    }
    for (Index r = 0; r < rank; ++r) own[r] /= std::sqrt(square);
    trace += matrix[i * (n + 1)];
  }
  double before = -INFINITY;
  for (int sweep = 0; sweep < max_sweeps && !interrupt.stopped(); ++sweep) {
    double total = 0.0;
    for (Index i = 0; i < n; ++i) {
      interrupt.poll();
      std::fill(sum.begin(), sum.end(), 0.0);
      for (Index j = 0; j < n; ++j) {
        if (j == i) continue;
        const double entry = matrix[i * n + j];
        const double* const other = factor.data() + j * rank;
        for (Index r = 0; r < rank; ++r) sum[r] += entry * other[r];
      }
      double square = 0.0;
      for (const double value : sum) square += value * value;
      // The row has length 1, or more if d would be negative.
      const double length = std::sqrt(square), own = matrix[i * (n + 1)];
      d[i] = std::max(own - length, 0.0);
      total += d[i];
      const double by = length > 0 ? std::max(1 / length, 1 / own) : 0.0;
      for (Index r = 0; r < rank && by > 0; ++r) factor[i * rank + r] = -by * sum[r];
    }
    if (std::abs(total - before) <= precision * trace) break;
    before = total;
  }
  return d;
}

}  // namespace pairstep
