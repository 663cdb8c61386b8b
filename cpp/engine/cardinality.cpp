#include "cardinality.hpp"

#include <memory>
#include <utility>

#include "perspective.hpp"

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
  // Memory for nodes. Beyond that, the search continues with a child of the last node, which needs
  // none.
  static constexpr std::size_t max_bytes = std::size_t(1) << 29;
  // Size of the objective to which gaps are relative, at least, relative to its terms.
  static constexpr double least_size = 1e-6;
};

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

class Search final : public CardinalitySearch, private Perspective {
 public:
  using Perspective::Perspective;

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
    evaluate({std::move(choices), std::vector<double>(n_), 0.0, -INFINITY, {}}, true);
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
  double cutoff() const { return std::isfinite(value_) ? value_ - given_.gap * size_ : INFINITY; }

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
      const double allowed = PerspectiveSettings::feasible * terms;
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
      const Interval range = nonzero(i, support[i]);
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

  // A node while it is evaluated.
  struct Candidate {
    std::vector<Choices> choices;
    std::vector<double> x;  // the relaxed solution
    double multiplier, bound;
    Bound last;  // of the last relaxation
  };

  // Change the multiplier of the number of names towards the value with which the relaxation has
  // as many as allowed. False if it needs no change.
  struct Bracket {
    double low = 0.0, high = INFINITY;
  };
  bool update_multiplier(Candidate& node, double precision, Bracket& bracket) {
    const std::vector<Choices>& choices = node.choices;
    double& multiplier = node.multiplier;
    const double left = double(names_left(choices));
    double full = 0.0, partial = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (!is_open(choices[i])) continue;
      const double own = indicator(i, node.x[i]);
      (own > 1 - 1e-9 ? full : partial) += own;
    }
    const double names = full + partial;
    if (names <= left && multiplier == 0) return false;
    if (std::abs(names - left) <= precision * left) return false;
    if (names > left) bracket.low = std::max(bracket.low, multiplier);
    else bracket.high = std::min(bracket.high, multiplier);
    double next;
    if (multiplier == 0) next = node.last.last;
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
  Index branching_variable(const Candidate& node) const {
    const std::vector<Choices>& choices = node.choices;
    const std::vector<double>& x = node.x;
    const Bound& at = node.last;
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

  // Bound a node, and look for better points near its relaxed solutions. False if it has no points.
  bool tighten(Candidate& node, bool root) {
    const int steps = root ? CardinalitySettings::root_steps : CardinalitySettings::node_steps;
    const double precision =
        root ? CardinalitySettings::root_precision : CardinalitySettings::node_precision;
    Bracket bracket;
    for (int step = 0; step < steps; ++step) {
      Relaxed found = relax(node.choices, node.x, node.multiplier);
      if (found.status == Parametric::infeasible) {
        if (is_contradiction(node.choices, found.multipliers)) return false;
        std::fill(found.multipliers.begin(), found.multipliers.end(), 0.0);
      }
      node.last = found.status == Parametric::arrived || interrupt_->stopped()
                      ? bound(node.choices, found.x, found.multipliers)
                      : raise_bound(node.choices, found.x, found.multipliers, cutoff());
      node.bound = std::max(node.bound, node.last.value);
      if (found.status != Parametric::arrived) break;
      node.x = std::move(found.x);
      if (node.bound >= cutoff() || interrupt_->stopped()) break;
      if (root || step == 0) try_support(node.choices, node.x, root && step == 0);
      // The segments of the last relaxation are needed for the indicators.
      add_segments(node.choices, node.x, node.multiplier);
      if (!update_multiplier(node, precision, bracket)) break;
    }
    if (root) try_support(node.choices, node.x, true);
    return true;
  }

  // Bound a node, and store it if it may contain a better point.
  void evaluate(Candidate node, bool root) {
    ++nodes_;
    for (;;) {
      const Index left = names_left(node.choices);
      if (left < 0) return;
      close_if_full(node.choices, left);
      if (!tighten(node, root)) return;
      if (node.bound >= cutoff()) {
        pruned_ = std::min(pruned_, node.bound);
        return;
      }
      const std::vector<Choices> before = node.choices;
      fix(node.choices, node.last);
      add_segments(node.choices, node.x, node.multiplier);
      if (root) set_weights(node.choices, node.x);
      const Index branch = branching_variable(node);
      const bool full = names_left(node.choices) <= 0;
      if (branch >= 0 && (!full || !has_open(node.choices))) {
        store({node.bound, std::move(node.choices), sparse(node.x), node.multiplier, branch});
        return;
      }
      if (branch < 0 && node.choices == before) {
        solve_single(node);
        return;
      }
      root = false;  // what is left is closed, and evaluated once more
    }
  }

  // Solve a node that is a single support.
  void solve_single(Candidate& node) {
    try_support(node.choices, node.x, false);
    if (node.bound < cutoff()) {
      const Relaxed found = relax(node.choices, node.x, 0.0);
      const Bound raised = raise_bound(node.choices, found.x, found.multipliers, cutoff());
      node.bound = std::max(node.bound, raised.value);
    }
    pruned_ = std::min(pruned_, node.bound);
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
    bytes_ += bytes(node);
    if (bytes_ > CardinalitySettings::max_bytes) {
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
    Node node;
    if (next_) {
      node = std::move(*next_);
      next_.reset();
    } else {
      std::pop_heap(open_.begin(), open_.end(), WorseBound{});
      node = std::move(open_.back());
      open_.pop_back();
    }
    bytes_ -= bytes(node);
    return node;
  }

  static std::size_t bytes(const Node& node) {
    return sizeof(Node) + node.choices.size() + node.point.size() * sizeof(node.point[0]);
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
        evaluate({std::move(choices), std::move(start), node.multiplier, node.bound, {}}, false);
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

  std::vector<Choices> last_support_;
  // The search.
  std::vector<Node> open_;      // a heap
  std::unique_ptr<Node> next_;  // taken before those
  std::size_t bytes_ = 0;       // of these nodes
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

}  // namespace pairstep
