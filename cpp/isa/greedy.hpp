// The coordinate-descent solver for quadratics whose whole Hessian is stored. Each iteration
// chooses a step, takes it, and updates the gradient. The pass that updates the gradient also finds
// the extremes for the next choice. From time to time a Newton phase (newton.hpp) minimizes over
// the free coordinates. Sections 2 and 3 of the paper describe the basic method without and with
// bounds. Included once per instruction set.
#pragma once

#include "across.hpp"
#include "libsvm.hpp"
#include "newton.hpp"

struct GreedySettings {
  // Prefetch distance in entries of a Hessian row: rows come from main memory, and successive rows
  // are far apart, so the hardware does not prefetch them early enough. A shorter distance would
  // not hide the latency of memory; a longer one would evict entries before they are used.
  static constexpr Index PREFETCH_AHEAD = 384;
  static constexpr Index CACHE_LINE_BYTES = 64;
  // Iterations between two checks for interrupts and the time limit. Checking more often would slow
  // down small problems, whose iterations are short; checking less often would delay the response
  // to an interrupt of large problems.
  static constexpr Index ITERATIONS_PER_CHECK = 32;
  // Number of iterations for which a coordinate may have the smallest right derivative of its group
  // before a step is taken with it; see extreme_persists. A smaller number takes more steps that
  // hardly decrease the objective; a larger one keeps the violation large for longer.
  static constexpr Index MAX_ITERATIONS_AS_EXTREME = 16;
  // A decrease that is smaller than this, relative to the objective, is rounding error: about half
  // of the machine epsilon.
  static constexpr double VALUE_ROUNDING = 1e-16;
  // Curvature below this, relative to the diagonal, counts as zero.
  static constexpr double ZERO_CURVATURE = NewtonSettings::ZERO_CURVATURE;
  // Curvature below minus this, relative to the diagonal, counts as negative. With a smaller value,
  // rounding error of the Hessian could pass for negative curvature; with a larger one, slightly
  // nonconvex problems would not be detected.
  static constexpr double NEGATIVE_CURVATURE = 1e-9;
  // A violation below this fraction of the smallest one so far counts as progress. Closer to 1,
  // rounding would count as progress and a stalled solve would end later.
  static constexpr double VIOLATION_PROGRESS = 0.999;

  // Work of a step besides its passes over n entries, in multiply-adds of such a pass. It only
  // matters for small n: a larger value makes Newton phases more frequent there.
  static constexpr double WORK_PER_STEP = 200.0;
  // A Newton phase is due when the steps since the last one have cost this fraction of its cost.
  // The fraction is multiplied by SUCCESS_FACTOR if the Newton phase was more efficient than the
  // steps, and by FAILURE_FACTOR if it did not decrease the objective. With MAX_FRACTION = 1,
  // phases that fail about double the work. Stronger factors adapt sooner, but react more to
  // chance.
  static constexpr double FIRST_FRACTION = 1.0 / 16, MIN_FRACTION = 1.0 / 256, MAX_FRACTION = 1.0;
  static constexpr double SUCCESS_FACTOR = 0.25, FAILURE_FACTOR = 2.0;
  // Number of coordinates at a bound or breakpoint that may enter the free set at once. It adapts,
  // from MIN_ENTERING up to EXTRA_ENTERING more than the number of interior coordinates. More of
  // them need fewer Newton phases if they are right, and larger factorizations if they are not.
  static constexpr Index FIRST_ENTERING = 8, MIN_ENTERING = 2, EXTRA_ENTERING = 16;
};

// d'Hd for the step d.
template <class Real>
double curvature_along(const Real* hessian, Index n, const Step& step) {
  double sum = 0.0;
  for (std::size_t a = 0; a < step.index.size(); ++a) {
    const Real* row = hessian + step.index[a] * n;
    double inner = 0.0;
    for (std::size_t b = 0; b < step.index.size(); ++b) inner += row[step.index[b]] * step.delta[b];
    sum += step.delta[a] * inner;
  }
  return sum;
}

// How the solver chooses pairs, and how far it goes along them: LIBSVM's rule and exact steps.
// cpp/paper/descent.hpp has another such class, for other rules and step lengths, which also need
// not use the derivatives (GUIDED).
struct ExactSteps {
  static constexpr bool GUIDED = true, NEWTON_PHASE = true;

  bool guided() const { return true; }
  // Iterations without progress after which the solver gives up.
  Index patience(Index n) const { return NumericalPolicy::patience(n); }
  // Whether steps are taken as chosen, with the length of the rule's own model.
  bool takes_model_step() const { return false; }
  double assumed_curvature(const Step&, double true_curvature) const { return true_curvature; }

  // Choose a step of some coordinates, given the number of those before them and the pair with the
  // largest gap.
  template <class Curvature>
  void choose(const TableView& here, Index, const Extremes& ends, Curvature curvature,
              WorkerGroup* worker_group, InterruptCheck&, Step& step) const {
    choose_pair(here, ends, curvature, worker_group, step);
  }
};

inline bool is_interior(const Point& point, Index i) {
  return point.x[i] > point.lower[i] && point.x[i] < point.upper[i];
}

// The coordinates that the Newton phase changes: all free ones, and up to `max_entering` of those
// at a bound or breakpoint. The latter are those whose derivative violates the optimality
// conditions most, given the interval of multipliers of their group.
inline FreeSet free_set_of(const Point& point, const PositionTable& table,
                           const std::vector<MultiplierInterval>& intervals,
                           std::size_t max_entering) {
  struct Entering {
    double violation;
    Index i;
  };
  const TableView view(table);
  FreeSet free_set;
  std::vector<Entering> entering;
  for (Index group = 0; group < point.n_groups; ++group) {
    const auto [max_left, min_right] = intervals[group];
    for (Index i = point.starts[group]; i < point.starts[group + 1]; ++i) {
      const double left = view.left_derivative<double>(i), right = view.right_derivative<double>(i);
      if (left == right) free_set.index.push_back(i);
      else if (right < max_left) entering.push_back({max_left - right, i});
      else if (left > min_right) entering.push_back({left - min_right, i});
    }
  }
  if (entering.size() > max_entering) {
    std::nth_element(
        entering.begin(), entering.begin() + max_entering, entering.end(),
        [](const Entering& a, const Entering& b) { return a.violation > b.violation; });
    entering.resize(max_entering);
  }
  for (const Entering& each : entering) free_set.index.push_back(each.i);
  std::sort(free_set.index.begin(), free_set.index.end());
  Index group = 0;
  for (const Index i : free_set.index) {
    while (i >= point.starts[group + 1]) ++group;
    const double left = view.left_derivative<double>(i), right = view.right_derivative<double>(i);
    const bool free = left == right, up = free || right < intervals[group].max_left;
    free_set.group.push_back(group);
    free_set.derivative.push_back(up ? right : left);
    free_set.max_decrease.push_back(free || !up ? table.max_decrease[i] : 0.0);
    free_set.max_increase.push_back(up ? table.max_increase[i] : 0.0);
  }
  return free_set;
}

struct Diagonal : Aligned {
  template <class Real>
  Diagonal(const Real* matrix, Index n) : Aligned(n) {
    for (Index i = 0; i < n; ++i) (*this)[i] = matrix[i * n + i];
  }
};

// Real is the type of the stored Hessian. All arithmetic is in float64.
template <class Real, class Steps = ExactSteps>
class Greedy final : public GreedyRun {
 public:
  Greedy(const GreedyTask& task, const Real* hessian, Index n, const Steps& steps = {})
      : task_(task),
        steps_(steps),
        hessian_(hessian),
        patience_(steps.patience(n)),
        table_(n),
        diagonal_(hessian, n),
        newton_(hessian, diagonal_.data(), n) {}

  // Keep the factor of the Newton phase, which belongs to the Hessian, and reset everything else.
  void begin(const Point& point, double value_there) override {
    iterations = 0;
    newton_plan_ = NewtonPlan{.work = double(task_.steps_before) * work_of_step(2, point.n)};
    unbounded_ = false;
    least_curvature = 0.0;
    history.clear();
    moved_ = 0;
    seen_ = -1;
    renew(point, value_there);
  }

  // Continue with a recomputed gradient, and with an x whose sums may have been restored. The point
  // is in the history already.
  void renew(const Point& point, double value_there) override {
    point_ = point;
    value = value_there;
    table_.update_all(point_);
    ends_.resize(std::size_t(point_.n_groups));
    for (Index group = 0; group < point_.n_groups; ++group)
      ends_[group] =
          extremes(TableView(table_).slice(point_.starts[group], point_.starts[group + 1]));
    cross_group_.reset(point_, table_);
    double largest = 0.0;
    interior_ = 0;
    for (Index i = 0; i < point_.n; ++i) {
      interior_ += is_interior(point_, i);
      largest = std::max(largest, std::abs(point_.x[i]));
    }
    sum_rounding_ = std::numeric_limits<double>::epsilon() * largest;
    min_right_.assign(std::size_t(point_.n_groups), {-1, 0});
    best_violation_ = INFINITY;
    idle_ = 0;
  }

  StopReason run(double threshold, Index max_iter, InterruptCheck& interrupt) override {
    threshold_ = threshold;
    while (true) {
      observe(interrupt);
      if (violation <= threshold) return StopReason::optimal;
      if (iterations >= max_iter) return StopReason::max_iter;
      if (idle_ > patience_) return StopReason::stalled;
      if (after_newton_ || iterations % GreedySettings::ITERATIONS_PER_CHECK == 0) {
        interrupt.poll();
        if (interrupt.stopped()) return StopReason::stopped;
      }
      if constexpr (Steps::NEWTON_PHASE) after_newton_ = newton_is_due() && newton_phase();
      if (unbounded_) return stop_unbounded();
      if (!after_newton_) {
        choose_step(interrupt);
        if (step_.index.empty() && steps_.guided()) return StopReason::stalled;
        for (std::size_t k = 0; k < std::min<std::size_t>(step_.index.size(), 2); ++k)
          prefetch_row(step_.index[k]);
        const bool changed = !step_.index.empty() && take_step();
        if (unbounded_) return stop_unbounded();
        if (enough_) return StopReason::optimal;
        if (!changed && steps_.guided()) return StopReason::stalled;
      }
      ++iterations;
    }
  }

  double work_in_newton_phases() const override {
    const double free_set = double(std::max(interior_, newton_plan_.max_entering));
    return newton_plan_.work / cost_of_newton(free_set, double(point_.n));
  }

 private:
  // When to try the Newton phase, and with how many entering coordinates.
  struct NewtonPlan {
    // Work of the steps since the last try, and the cost of that try.
    double work = 0.0, last_cost = 0.0;
    // Fraction of the cost of a try after which the next one is due. It shrinks if the Newton phase
    // decreases the objective faster per unit of work than the steps did, and grows if the Newton
    // phase does not decrease it at all.
    double fraction = GreedySettings::FIRST_FRACTION;
    // Decrease of the objective by the steps since the last try.
    double decrease = 0.0;
    // Doubled if most of the last entering coordinates changed. Halved if most of them had to be
    // removed again one by one, which happens if the Hessian is ill-conditioned.
    Index max_entering = GreedySettings::FIRST_ENTERING;
  };

  // The work of a step of some coordinates: it reads their rows, and twice the tables.
  static double work_of_step(Index coordinates, Index n) {
    return GreedySettings::WORK_PER_STEP + double((coordinates + 2) * n);
  }

  StopReason stop_unbounded() {
    ray = step_;
    return StopReason::unbounded;
  }

  // Compute the violation, and record the point once, even if the run is paused there.
  void observe(InterruptCheck& interrupt) {
    violation = 0.0;
    for (const Extremes& e : ends_)
      if (e.open()) violation = std::max(violation, e.gap());
    if (point_.nested()) [[unlikely]] {
      const Extremes e = cross_group_.ends(point_, ends_);
      if (e.open()) violation = std::max(violation, e.gap());
    }
    if (task_.record && seen_ != iterations)
      history.push_back({value, violation, interrupt.elapsed(), moved_, interior_});
    seen_ = iterations;
  }

  bool newton_is_due() const {
    return task_.newton_phase &&
           newton_plan_.work >
               newton_plan_.fraction * std::max(cost_of_newton(double(interior_), double(point_.n)),
                                                newton_plan_.last_cost);
  }

  // Run Newton's method on the free set. Returns whether it decreased the objective.
  bool newton_phase() {
    auto& [work, last_cost, fraction, step_decrease, max_entering] = newton_plan_;
    const FreeSet free_set = newton_free_set(std::size_t(max_entering));
    double cost = double(free_set.size() * point_.n);
    const double decrease = free_set.size() < 2
                                ? 0.0
                                : newton_.minimize(free_set, threshold_, delta_, cost, unbounded_);
    if (unbounded_) {
      step_.clear();
      for (Index k = 0; k < free_set.size(); ++k)
        step_.add(free_set.index[k], newton_.last_direction()[k]);
      return false;
    }
    const bool decreased = decrease > GreedySettings::VALUE_ROUNDING * std::abs(value);
    step_.clear();
    Index entered = 0, removed = 0;
    for (Index k = 0; k < free_set.size(); ++k) {
      const bool changes = decrease > 0 && delta_[k] != 0.0;
      if (changes) step_.add(free_set.index[k], delta_[k]);
      const bool is_new = free_set.max_decrease[k] == 0 || free_set.max_increase[k] == 0;
      entered += is_new;
      removed += is_new && !changes;
    }
    if (step_.index.size() >= 2 && apply()) {
      update();
      value -= decrease;
    }
    moved_ = Index(step_.index.size());
    using Settings = GreedySettings;
    max_entering = 2 * removed > entered
                       ? std::max<Index>(max_entering / 2, Settings::MIN_ENTERING)
                       : std::min(2 * max_entering, Settings::EXTRA_ENTERING + interior_);
    if (!decreased)
      fraction = std::min(Settings::FAILURE_FACTOR * fraction, Settings::MAX_FRACTION);
    else if (decrease * work > step_decrease * cost)
      fraction = std::max(Settings::SUCCESS_FACTOR * fraction, Settings::MIN_FRACTION);
    work = step_decrease = 0.0;
    last_cost = cost;
    return decreased && moved_ >= 2;
  }

  // The free set. If groups share a total, the sums of some groups may change too: sums between
  // their limits, and sums at a limit where leaving it decreases the objective.
  FreeSet newton_free_set(std::size_t max_entering) {
    std::vector<MultiplierInterval> intervals;
    for (const Extremes& e : ends_) intervals.push_back({e.down.value, -e.up.value});
    if (!point_.nested()) return free_set_of(point_, table_, intervals, max_entering);
    const GroupSlack& slacks = cross_group_.slacks();
    const Extremes all = cross_group_.ends(point_, ends_);
    std::vector<char> loose;
    for (Index g = 0; g < point_.n_groups; ++g) {
      const bool leaves_high = slacks.down[g] > 0 && intervals[g].max_left > -all.up.value,
                 leaves_low = slacks.up[g] > 0 && intervals[g].min_right < all.down.value;
      loose.push_back((slacks.down[g] > 0 && slacks.up[g] > 0) || leaves_high || leaves_low);
    }
    include_across({all.down.value, -all.up.value}, slacks, intervals);
    FreeSet free_set = free_set_of(point_, table_, intervals, max_entering);
    free_set.loose = std::move(loose);
    free_set.slacks = slacks;
    return free_set;
  }

  // Choose a step in each group and, if groups share a total, across groups. Keep the one with the
  // largest decrease of the model.
  void choose_step(InterruptCheck& interrupt) {
    step_.clear();
    const TableView view(table_);
    if constexpr (!Steps::GUIDED)
      if (!steps_.guided())
        return steps_.choose_unguided(view, point_.nested() ? cross_group_.view() : view, point_,
                                      iterations, step_);
    const Index n = point_.n;
    for (Index group = 0; group < point_.n_groups + point_.nested(); ++group) {
      const bool inside = group < point_.n_groups;
      const Extremes ends = inside ? ends_[group] : cross_group_.ends(point_, ends_);
      if (!ends.open()) continue;
      const Index begin = inside ? point_.starts[group] : 0,
                  end = inside ? point_.starts[group + 1] : n;
      const auto curvature = [&]<class T>(Index i, Index p) INLINED -> T {
        const Real* row = hessian_ + (begin + i) * n + begin;
        __builtin_prefetch(row + p + GreedySettings::PREFETCH_AHEAD);
        const T both = diagonal_[begin + i] + load<T>(diagonal_.data() + begin + p);
        return maximum(both - 2.0 * load<T>(row + p), GreedySettings::ZERO_CURVATURE * both);
      };
      const TableView here = inside ? view.slice(begin, end) : cross_group_.view();
      if (inside && task_.force_extreme_pair && extreme_persists(group)) {
        best_pair_step(here, ends.down.index, ends.up.index,
                       curvature.template operator()<double>(ends.down.index, ends.up.index), 1.0,
                       step_);
        for (Index& i : step_.index) i += begin;
        return;
      }
      steps_.choose(here, begin, ends, curvature, task_.worker_group, interrupt, candidate_);
      if (!inside) cross_group_.shorten(point_, candidate_);
      if (candidate_.beats(step_)) {
        for (Index& i : candidate_.index) i += begin;
        std::swap(step_, candidate_);
      }
    }
  }

  // Whether the same coordinate has had the smallest right derivative of its group for many steps.
  // It can hardly increase, so no step with it decreases the model enough to be chosen. But its
  // derivative alone keeps the violation large.
  bool extreme_persists(Index group) {
    MinRight& known = min_right_[group];
    const bool same = ends_[group].up.index == known.coordinate;
    if (same && iterations - known.since <= GreedySettings::MAX_ITERATIONS_AS_EXTREME) return false;
    known = {ends_[group].up.index, iterations};
    return same;
  }

  // Take the step, with the length that steps_ determines, and update gradient and extremes.
  // Returns whether any coordinate has changed.
  bool take_step() {
    moved_ = Index(step_.index.size());
    newton_plan_.work += work_of_step(moved_, point_.n);
    if (moved_ == 2 && !steps_.takes_model_step()) {  // make `length` below the amount
      step_.delta[0] = std::copysign(1.0, step_.delta[0]);
      step_.delta[1] = -step_.delta[0];
    }
    const TableView view(table_);
    double slope = 0.0, scale = 0.0, size = 0.0, limit = INFINITY;
    for (Index k = 0; k < moved_; ++k) {
      const Index i = step_.index[k];
      const double delta = step_.delta[k];
      slope -=
          delta * (delta < 0 ? view.left_derivative<double>(i) : view.right_derivative<double>(i));
      limit = std::min(
          limit, (delta < 0 ? table_.max_decrease[i] : table_.max_increase[i]) / std::abs(delta));
      scale += std::abs(diagonal_[i]) * delta * delta;
      size += std::abs(delta);
    }
    if (point_.nested()) [[unlikely]]
      limit = std::min(limit, cross_group_.max_multiple(point_, step_));
    const double curvature = curvature_along(hessian_, point_.n, step_);
    const bool negative = curvature < -GreedySettings::NEGATIVE_CURVATURE * scale;
    if (negative && curvature < least_curvature * scale) {
      least_curvature = curvature / scale;
      curved[0] = step_.index[0];
      curved[1] = step_.index[1];
    }
    // Along negative curvature there is no minimum nearby, so a smaller violation has no benefit.
    enough_ = negative && violation <= task_.nonconvex_threshold;
    if (enough_) return false;
    double length = 1.0;
    if (!steps_.takes_model_step()) {
      const double flat = GreedySettings::ZERO_CURVATURE * scale,
                   assumed = steps_.assumed_curvature(step_, curvature);
      // No bound and no curvature limits the step, and its slope is more than rounding error.
      unbounded_ = limit == INFINITY && assumed <= flat && 2.0 * slope > threshold_ * size;
      length = std::min(slope / std::max(assumed, flat), limit);
      if (unbounded_ || !std::isfinite(length)) return false;
      for (double& d : step_.delta) d *= length;
    }
    const double decrease = length * (slope - 0.5 * length * curvature);
    const bool changed = apply();
    value -= decrease;
    newton_plan_.decrease += decrease;
    unbounded_ = !std::isfinite(value);
    if (changed && !unbounded_) update();
    // The violation is not monotone, so a decrease of the objective is progress as well.
    const bool progress = decrease > GreedySettings::VALUE_ROUNDING * std::abs(value) ||
                          violation < GreedySettings::VIOLATION_PROGRESS * best_violation_;
    best_violation_ = std::min(best_violation_, violation);
    idle_ = progress ? 0 : idle_ + 1;
    return changed;
  }

  // Apply the step to x and to the table. Returns whether a coordinate has changed. A coordinate
  // that comes closer to a bound or breakpoint than the rounding error of the sums is put on it.
  // Otherwise it could approach the bound forever, by a part of the remaining distance each time.
  bool apply() {
    bool changed = false;
    for (std::size_t k = 0; k < step_.index.size(); ++k) {
      const Index i = step_.index[k];
      const double delta = step_.delta[k], before = point_.x[i];
      const double lowest = floor_at(point_, i, before), highest = ceiling_at(point_, i, before);
      interior_ -= is_interior(point_, i);
      // A step that uses the whole distance ends exactly on the bound or breakpoint.
      double& x = point_.x[i];
      x = before + delta;
      if (delta < 0 && (-delta >= table_.max_decrease[i] || x <= lowest + sum_rounding_))
        x = lowest;
      if (delta > 0 && (delta >= table_.max_increase[i] || x >= highest - sum_rounding_))
        x = highest;
      interior_ += is_interior(point_, i);
      table_.update(point_, i);
      changed |= x != before;
    }
    if (point_.nested()) [[unlikely]]
      cross_group_.update(point_, table_, step_);
    return changed;
  }

  // gradient += sum_k delta_k H[index_k], and find the extremes of each group in the same pass.
  void update() {
    const Index n = point_.n;
    double* gradient = point_.gradient;
    const std::size_t count = step_.index.size();
    for (std::size_t k = 2; k < count; ++k) {
      const Real* row = hessian_ + step_.index[k] * n;
      const double delta = step_.delta[k];
      for (Index p = 0; p < n; ++p) gradient[p] += delta * row[p];
    }
    const Real *first = hessian_ + step_.index[0] * n, *second = hessian_ + step_.index[1] * n;
    const double by_first = step_.delta[0], by_second = step_.delta[1];
    for (Index group = 0; group < point_.n_groups; ++group) {
      const Index begin = point_.starts[group], end = point_.starts[group + 1];
      const TableView here(table_.slice(begin, end));
      const auto derivatives = [&]<class T>(Index p) {
        return std::array<T, 2>{here.left_derivative<T>(p), -here.right_derivative<T>(p)};
      };
      const auto updated = [&]<class T>(Index p) INLINED {
        double* at = gradient + begin + p;
        __builtin_prefetch(first + begin + p + GreedySettings::PREFETCH_AHEAD);
        __builtin_prefetch(second + begin + p + GreedySettings::PREFETCH_AHEAD);
        store<T>(at, load<T>(at) + by_first * load<T>(first + begin + p) +
                         by_second * load<T>(second + begin + p));
        return derivatives.template operator()<T>(p);
      };
      const auto found = shared<2>(task_.worker_group, end - begin, [&](Index p, Index to) {
        return argmax<2>(to - p, from(p, updated), from(p, derivatives));
      });
      ends_[group] = {found[0], found[1]};
      if (found[0].index >= 0) prefetch_row(begin + found[0].index);  // the next choice reads it
    }
  }

  // Prefetch the beginning of a row of the Hessian. The loop that reads the row prefetches the
  // rest.
  void prefetch_row(Index i) const {
    const Real* row = hessian_ + i * point_.n;
    constexpr Index LINE = GreedySettings::CACHE_LINE_BYTES / Index(sizeof(Real));
    for (Index p = 0; p < std::min(GreedySettings::PREFETCH_AHEAD, point_.n); p += LINE)
      __builtin_prefetch(row + p);
  }

  const GreedyTask task_;
  Steps steps_;
  const Real* hessian_;
  const Index patience_;
  Point point_{};
  OwnPositionTable table_;
  CrossGroup cross_group_;
  Diagonal diagonal_;
  Newton<Real> newton_;
  NewtonPlan newton_plan_;
  std::vector<Extremes> ends_;
  std::vector<double> delta_;
  Step step_, candidate_;
  Index interior_ = 0;  // number of coordinates strictly between their bounds
  Index moved_ = 0;     // number of coordinates that the last step changed
  Index idle_ = 0;      // number of iterations since the last progress
  Index seen_ = -1;     // the last iteration in the history
  double threshold_ = 0.0, best_violation_ = INFINITY;
  double sum_rounding_ = 0.0;  // rounding error of the sums
  bool after_newton_ = false, unbounded_ = false, enough_ = false;
  struct MinRight {
    Index coordinate, since;  // `since` is an iteration
  };
  std::vector<MinRight> min_right_;  // the coordinate with the smallest right derivative per group
};
