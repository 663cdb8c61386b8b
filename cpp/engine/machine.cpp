#include "machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "../oracles/kernel_sums.hpp"
#include "../core/feasible.hpp"
#include "../oracles/row_cache.hpp"

namespace pairstep {

namespace {

// How many of the accounts furthest out a working set begins with, and how many it takes later.
constexpr Index FIRST = 128, USUAL = 256;

// Rounds after which it is looked at whether the problem can be shrunk.
constexpr Index SHRINK_EVERY = 50;

// Problems of so few accounts are solved in float64, with the finish from the start and further
// than asked for: it costs nothing that could be noticed, and coefficients then repeat to many
// digits.
constexpr Index SMALL = 1000;

// How far off a kernel value may be by rounding in Real arithmetic, and how large it may be, for
// points whose squared norms are at most `square`.
struct Reach {
  double error, largest;
};
template <class Real>
Reach reach(const KernelFunction& kernel, double square) {
  const double grain = 4.0 * double(std::numeric_limits<Real>::epsilon());
  switch (kernel.name) {
    case KernelName::rbf: return {grain * (1.0 + kernel.gamma * square), 1.0};
    case KernelName::sigmoid: return {grain * (1.0 + std::abs(kernel.gamma) * square), 1.0};
    case KernelName::linear: return {grain * square, square};
    case KernelName::poly: {
      const double base = std::abs(kernel.gamma) * square + std::abs(kernel.coef0);
      const double largest = std::pow(base, kernel.degree);
      return {grain * (1.0 + kernel.degree) * largest, largest};
    }
    default: return {0.0, 1.0};
  }
}

double largest_square(const DataMatrix& data, const Index* rows, Index count) {
  double largest = 0.0;
  for (Index p = 0; p < count; ++p) {
    double square = 0.0;
    data.each(rows[p], [&](Index, double value) { square += value * value; });
    largest = std::max(largest, square);
  }
  return largest;
}

// Whether kernel values in float32 keep enough digits to be worth a start.
bool single_will_do(const MachineTask& task, const Dual& dual) {
  if (task.kernel.name == KernelName::precomputed) return false;
  const double square = largest_square(task.data, dual.rows, dual.point.n);
  const Reach values = reach<float>(task.kernel, square);
  return values.error <= 1e-4 * values.largest && values.largest < 1e30;
}

// The rows whose variables are not zero, and these variables.
struct Support {
  std::vector<Index> rows;
  std::vector<double> weights;

  explicit Support(const Dual& dual) {
    for (Index i = 0; i < dual.point.n; ++i)
      if (dual.point.x[i] != 0) {
        rows.push_back(dual.rows[i]);
        weights.push_back(dual.point.x[i]);
      }
  }
};

template <class Real>
class BlockGear {
 public:
  BlockGear(const MachineTask& task, Dual& dual, Team& team, Pulse& pulse)
      : BlockGear(task, dual, team, pulse,
                  task.kernel.name == KernelName::precomputed
                      ? Points<Real>()
                      : Points<Real>(task.data, dual.rows, dual.point.n)) {}

  BlockGear(const MachineTask& task, Dual& dual, Team& team, Pulse& pulse, Points<Real> points,
            std::shared_ptr<Arena> arena = nullptr)
      : task_(task),
        dual_(dual),
        team_(team),
        pulse_(pulse),
        point_(dual.point),
        points_(std::move(points)) {
    const Index n = point_.n;
    if (points_.count() > 0) {
      const Real* largest = std::max_element(points_.squares(), points_.squares() + n);
      rounding_ = reach<Real>(task.kernel, double(*largest)).error;
    }
    padded_ = (n + PANEL - 1) / PANEL * PANEL;
    gradient_.assign(padded_, 0.0);
    std::copy_n(point_.gradient, n, gradient_.begin());
    point_.gradient = gradient_.data();
    if (point_.kink) pivot_.assign(n, 0.0);
    point_.pivot = point_.kink ? pivot_.data() : nullptr;
    for (auto& memory : standing_memory_) memory.resize(n);
    standing_ = {standing_memory_[0].data(), standing_memory_[1].data(), standing_memory_[2].data(),
                 standing_memory_[3].data()};
    isa().stand(point_, standing_, nullptr, n);
    with_free_ = finish_ = n <= SMALL;
    goal_ = n <= SMALL ? 1e-4 * task.tol : task.tol;
    // A quarter of the memory is for the block of the working set, the rest for rows.
    most_free_ = std::clamp<Index>(Index(std::sqrt(double(task.cache_bytes) / 32)), USUAL, 8000);
    const std::size_t all = std::size_t(n) * padded_ * sizeof(Real);
    arena_ =
        arena ? std::move(arena) : std::make_shared<Arena>(std::min(task.cache_bytes / 4 * 3, all));
    cache_ = std::make_unique<RowCache<Real>>(*arena_, padded_, n);
  }

  // The same on some accounts of a larger problem, from where that one is.
  BlockGear(const BlockGear& whole, Dual& part, const std::vector<Index>& accounts)
      : BlockGear(whole.task_, part, whole.team_, whole.pulse_,
                  whole.points_.count() > 0 ? whole.points_.take(accounts) : Points<Real>(),
                  whole.arena_) {
    is_part_ = true;
    goal_ = whole.goal_;
    with_free_ |= whole.with_free_;
  }

  MachineStatus run() {
    const MachineStatus status = descend();
    if (!pulse_.abandon && status != MachineStatus::optimal) verify();
    std::copy_n(gradient_.begin(), point_.n, dual_.point.gradient);
    dual_.violation = violation_;
    return violation_ <= task_.tol ? MachineStatus::optimal : status;
  }

 private:
  MachineStatus descend() {
    Index size = FIRST;
    double first = -1.0, best = INFINITY;
    int since = 0, idle = 0;
    Index rounds = 0;
    while (true) {
      survey(size);
      if (first < 0) first = violation_;
      pulse_.violation = violation_;
      pulse_.iterations = dual_.iterations;
      if (violation_ <= goal_) {
        if (is_part_) return MachineStatus::optimal;  // the whole will be verified
        if (verify()) return MachineStatus::optimal;
        if (fruitless_ > 3) return MachineStatus::imprecise;
        survey(size);
      }
      if (dual_.iterations >= task_.max_iter) return MachineStatus::max_iter;
      if (pulse_.stop) return MachineStatus::stopped;
      // Where the violation no longer falls the free accounts are to be balanced all together.
      if (violation_ < 0.5 * best) {
        best = violation_;
        since = 0;
      } else if (++since > 10) {
        with_free_ = true;
        // A larger face costs more than it gains.
        finish_ |= since > 40 && violation_ < 0.01 * first && members_.size() <= 2000;
      }
      if (idle > 20 || (since > 12 && below_noise(first, since))) return MachineStatus::imprecise;
      if (++rounds % SHRINK_EVERY == 0 && point_.n > 4 * SMALL && descend_on_active()) {
        since = idle = 0;
        continue;
      }
      gather();
      assemble();
      const double fall = solve_block();
      fallen_ += fall;
      idle = fall > 1e-13 * fallen_ ? 0 : idle + 1;
      if (moved_.empty()) {
        if (is_part_) return MachineStatus::imprecise;
        if (with_free_ && (verify() || fruitless_ > 3))
          return violation_ <= task_.tol ? MachineStatus::optimal : MachineStatus::imprecise;
        with_free_ = finish_ = true;
        continue;
      }
      advance();
      size = std::max(USUAL, with_free_ ? Index(members_.size()) / 4 : 0);
    }
  }

  // Shrinking. An account that cannot trade at the prices of its group (on a bound or a kink, and
  // beyond them) will hardly move again: go on without these, rows and prices included, then bring
  // their prices up to date. Whether that was right the next survey sees. False if too few are
  // such.
  bool descend_on_active() {
    std::vector<Index> active, settled, starts{0};
    for (Index g = 0; g < point_.n_groups; ++g) {
      for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i) {
        const bool sells = standing_.down_room[i] > 0 && down_price(i) > outliers_[g].cheapest;
        const bool buys = standing_.up_room[i] > 0 && up_price(i) < outliers_[g].dearest;
        (sells || buys ? active : settled).push_back(i);
      }
      starts.push_back(Index(active.size()));
    }
    if (double(active.size()) > 0.7 * double(point_.n)) return false;
    const auto pick = [&](const auto* from) {
      std::vector<std::decay_t<decltype(*from)>> some;
      for (const Index i : active) some.push_back(from[i]);
      return some;
    };
    const std::vector<Index> rows = pick(dual_.rows);
    const std::vector<double> lower = pick(point_.lower), upper = pick(point_.upper),
                              linear = pick(dual_.linear),
                              kink = point_.kink ? pick(point_.kink) : std::vector<double>();
    std::vector<double> z = pick(point_.x), gradient = pick(gradient_.data());
    Dual part{{Index(active.size()), point_.n_groups, starts.data(), gradient.data(), z.data(),
               lower.data(), upper.data(), point_.kink ? kink.data() : nullptr, nullptr},
              rows.data(),
              linear.data(),
              nullptr,
              0.0,
              dual_.iterations};
    {
      BlockGear gear(*this, part, active);
      gear.descend();
      std::copy_n(gear.gradient_.begin(), active.size(), gradient.begin());
      dual_.iterations = part.iterations;
      fallen_ += gear.fallen_;
    }
    std::vector<Index> moved_rows, settled_rows;
    std::vector<double> change, prices(settled.size(), 0.0);
    for (std::size_t k = 0; k < active.size(); ++k) {
      const Index i = active[k];
      if (z[k] != point_.x[i]) {
        moved_rows.push_back(rows[k]);
        change.push_back(z[k] - point_.x[i]);
      }
      point_.x[i] = z[k];
      gradient_[i] = gradient[k];
    }
    for (const Index i : settled) settled_rows.push_back(dual_.rows[i]);
    add_kernel<Real>(task_.kernel, task_.data, moved_rows, change.data(), 1, task_.data,
                     settled_rows, prices.data(), Index(prices.size()), team_, pulse_.abandon);
    for (std::size_t k = 0; k < settled.size(); ++k) gradient_[settled[k]] += prices[k];
    isa().stand(point_, standing_, nullptr, point_.n);
    cache_ = std::make_unique<RowCache<Real>>(*arena_, padded_, point_.n);  // the part has used it
    return true;
  }

  // Whether float32 may be what keeps the violation from falling.
  bool below_noise(double first, int since) const {
    if (sizeof(Real) == sizeof(double)) return false;
    double square = 0.0;
    for (Index i = 0; i < point_.n; ++i) square += point_.x[i] * point_.x[i];
    return violation_ < 100 * rounding_ * std::sqrt(square) ||
           (since > 100 && violation_ < 0.01 * first);
  }

  static constexpr Index PANEL = Points<Real>::PANEL;

  bool free(Index i) const {
    return standing_.down_room[i] > 0 && standing_.up_room[i] > 0 &&
           standing_.down_shift[i] == standing_.up_shift[i];
  }
  double down_price(Index i) const { return gradient_[i] + standing_.down_shift[i]; }
  double up_price(Index i) const { return gradient_[i] + standing_.up_shift[i]; }

  // The violation, and the accounts of each group that are furthest out: `size` of them.
  void survey(Index size) {
    outliers_.resize(point_.n_groups);
    violation_ = 0.0;
    for (Index g = 0; g < point_.n_groups; ++g) {
      isa().outliers(point_, standing_, point_.starts[g], point_.starts[g + 1], size / 2,
                     outliers_[g]);
      violation_ = std::max(violation_, outliers_[g].dearest - outliers_[g].cheapest);
    }
  }

  // The working set: the outliers that can trade with each other and, once it pays, the free
  // accounts.
  void gather() {
    chosen_.assign(point_.n, 0);
    for (const Outliers& found : outliers_) {
      for (const Index i : found.sellers)
        if (down_price(i) > found.cheapest) chosen_[i] = 1;
      for (const Index i : found.buyers)
        if (up_price(i) < found.dearest) chosen_[i] = 1;
    }
    if (with_free_) {
      std::vector<Index> all;
      for (Index i = 0; i < point_.n; ++i)
        if (free(i) && !chosen_[i]) all.push_back(i);
      if (Index(all.size()) > most_free_) {
        // Those furthest from the price at which their group trades.
        std::vector<double> distance(point_.n);
        for (Index g = 0; g < point_.n_groups; ++g) {
          const double level = 0.5 * (outliers_[g].dearest + outliers_[g].cheapest);
          for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i)
            distance[i] = std::abs(gradient_[i] + standing_.down_shift[i] - level);
        }
        std::nth_element(all.begin(), all.begin() + most_free_, all.end(),
                         [&](Index a, Index b) { return distance[a] > distance[b]; });
        all.resize(most_free_);
      }
      for (const Index i : all) chosen_[i] = 1;
    }
    members_.clear();
    for (Index i = 0; i < point_.n; ++i)
      if (chosen_[i]) members_.push_back(i);
  }

  // The working set's block of the kernel matrix. In the end game it is computed in float64, for
  // rounding must not bend flat valleys.
  void assemble() {
    const Index q = Index(members_.size());
    block_.resize(std::size_t(q) * q);
    if (task_.kernel.name == KernelName::precomputed) {
      for (Index r = 0; r < q; ++r)
        for (Index c = 0; c < q; ++c)
          block_[r * q + c] = task_.data.at(dual_.rows[members_[r]], dual_.rows[members_[c]]);
    } else if (with_free_) {
      std::vector<Index> rows(q);
      for (Index r = 0; r < q; ++r) rows[r] = dual_.rows[members_[r]];
      assemble_from(Points<double>(task_.data, rows.data(), q));
    } else {
      assemble_from(points_.take(members_));
    }
  }
  template <class Value>
  void assemble_from(const Points<Value>& some) {
    const Index q = some.count(), stride = some.padded();
    const std::vector<Value> blocks = some.blocks();
    std::vector<Value> padded(std::size_t(q) * stride);
    std::vector<Value*> rows(q);
    for (Index r = 0; r < q; ++r) rows[r] = padded.data() + r * stride;
    Tiles<Value> job{task_.kernel, &some, &some, blocks.data()};
    job.rows = rows.data();
    run_tiles(job, team_, pulse_.abandon);
    for (Index r = 0; r < q; ++r) std::copy_n(rows[r], q, block_.data() + r * q);
  }

  // Coordinate-wise Lipschitz constants for the rules that weigh by them: the diagonal. Of an
  // account without curvature any positive number is one.
  std::vector<double> constants_of_block() const {
    const std::size_t q = members_.size();
    std::vector<double> constants(q);
    double least = INFINITY;
    for (std::size_t k = 0; k < q; ++k) {
      constants[k] = block_[k * (q + 1)];
      if (constants[k] > 0) least = std::min(least, constants[k]);
    }
    for (double& constant : constants)
      if (!(constant > 0)) constant = std::isfinite(least) ? least : 1.0;
    return constants;
  }

  // 1 / L2, or 1 / L1 for the rules of the 1-norm; not all ask for it.
  double step_size() const {
    if (!task_.rule->uses_alpha && !task_.rule->weighted) return 1.0;
    const double l2 = isa().two_coordinate_constant(block_.data(), Index(members_.size()));
    return l2 > 0 ? (task_.rule->one_norm ? 2.0 : 1.0) / l2 : 1.0;
  }

  // The greedy gear on the working set; returns by how much the objective falls.
  double solve_block() {
    const std::size_t q = members_.size();
    std::vector<double> gradient(q), z(q), lower(q), upper(q), kink(q, 0.0), pivot(q, 0.0);
    for (std::size_t k = 0; k < q; ++k) {
      const Index i = members_[k];
      gradient[k] = gradient_[i];
      z[k] = point_.x[i];
      lower[k] = point_.lower[i];
      upper[k] = point_.upper[i];
      if (point_.kink) kink[k] = point_.kink[i];
    }
    std::vector<Index> starts;
    for (Index g = 0; g <= point_.n_groups; ++g)
      starts.push_back(std::lower_bound(members_.begin(), members_.end(), point_.starts[g]) -
                       members_.begin());
    Point small{Index(q),
                point_.n_groups,
                starts.data(),
                gradient.data(),
                z.data(),
                lower.data(),
                upper.data(),
                point_.kink ? kink.data() : nullptr,
                point_.kink ? pivot.data() : nullptr};
    Greedy inner{};
    inner.hessian = block_.data();
    const std::vector<double> constants = constants_of_block();
    inner.choice = {task_.rule, step_size(), constants.data(), nullptr, 0};
    inner.step = Step::exact;
    inner.threshold = std::max((with_free_ ? 0.3 : 0.1) * violation_, 0.5 * goal_);
    inner.max_iter = std::min((with_free_ ? 50 : 10) * Index(q), task_.max_iter - dual_.iterations);
    inner.patience = 1000 + 10 * Index(q);
    inner.finish = finish_;
    inner.seconds = INFINITY;
    inner.stop = &pulse_.stop;
    isa().greedy(small, inner);
    dual_.iterations += std::max<Index>(inner.iterations, 1);
    move_to(z, [&](std::size_t k) { return members_[k]; });
    return -inner.value;
  }

  // Account account(k) goes to z[k]: `moved_` and `delta_` say what has changed.
  template <class Account>
  void move_to(const std::vector<double>& z, Account account) {
    moved_.clear();
    delta_.clear();
    for (std::size_t k = 0; k < z.size(); ++k) {
      const Index i = account(k);
      if (z[k] == point_.x[i]) continue;
      moved_.push_back(i);
      delta_.push_back(z[k] - point_.x[i]);
      point_.x[i] = z[k];
    }
    isa().stand(point_, standing_, moved_.data(), Index(moved_.size()));
  }

  // gradient += K[:, moved] delta.
  void advance() {
    if (task_.kernel.name == KernelName::precomputed) {
      team_.run(team_.size(), [&](Index part) {
        const Index begin = part * point_.n / team_.size(),
                    end = (part + 1) * point_.n / team_.size();
        for (std::size_t k = 0; k < moved_.size(); ++k)
          for (Index i = begin; i < end; ++i)
            gradient_[i] += delta_[k] * task_.data.at(dual_.rows[moved_[k]], dual_.rows[i]);
      });
      return;
    }
    std::vector<Index> missing;
    std::vector<double> missing_delta, cached_delta;
    std::vector<const Real*> cached;
    std::vector<Real*> fresh;
    Points<Real> queries;
    if (task_.kernel.name == KernelName::linear) {  // needs no rows: X (X_W' delta)
      queries = points_.combine(moved_, delta_.data());
      missing_delta = {1.0};
      fresh = {nullptr};
    } else {
      cache_->next_age();
      for (std::size_t k = 0; k < moved_.size(); ++k) {
        if (cache_->holds(moved_[k])) {
          cache_->touch(moved_[k]);
          cached.push_back(cache_->row(moved_[k]));
          cached_delta.push_back(delta_[k]);
        } else {
          missing.push_back(moved_[k]);
          missing_delta.push_back(delta_[k]);
        }
      }
      // What ended on a bound seldom moves again: only the rows of free accounts are worth keeping.
      fresh = cache_->claim(missing, [&](Index i) { return free(i); });
      queries = points_.take(missing);
    }
    const std::vector<Real> blocks = queries.blocks();
    Tiles<Real> job{task_.kernel, &points_, &queries, blocks.data()};
    job.rows = fresh.data();
    job.weights = missing_delta.data();
    job.sums = gradient_.data();
    const auto& native = isa().of<Real>();
    over_panels(points_, team_, [&](Index begin, Index end) {
      native.tiles(job, begin, end);
      native.add_rows(cached.data(), cached_delta.data(), Index(cached.size()), begin * PANEL,
                      end * PANEL, gradient_.data());
    });
  }

  // What rounding has left of the totals goes into free accounts, as a move like any other.
  void settle_sums() {
    std::vector<double> settled(point_.x, point_.x + point_.n);
    settle(settled.data(), point_.lower, point_.upper, point_.starts, dual_.totals, point_.n_groups,
           point_.pivot);
    move_to(settled, [](std::size_t i) { return Index(i); });
    if (!moved_.empty()) advance();
    survey(2);
  }

  // The violation in float64, from the data. Only the accounts whose prices are close to being the
  // dearest or the cheapest are computed anew: closer than eight times the largest error that was
  // found on the way or that one support vector alone could make (all of them if need be).
  // True if it is within the tolerance.
  bool verify() {
    settle_sums();
    const Index n = point_.n;
    const Support support(dual_);
    std::vector<char> exact(n, 0);
    double error = 0.0, heaviest = 0.0;
    for (const double weight : support.weights) heaviest = std::max(heaviest, std::abs(weight));
    double margin = std::max(task_.tol, 8 * heaviest * rounding_);
    while (true) {
      std::vector<Index> close, rows;
      for (Index g = 0; g < point_.n_groups; ++g)
        for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i)
          if (!exact[i] && (down_price(i) >= outliers_[g].dearest - margin ||
                            up_price(i) <= outliers_[g].cheapest + margin)) {
            close.push_back(i);
            rows.push_back(dual_.rows[i]);
            exact[i] = 1;
          }
      if (close.empty() && margin >= 8 * error) {
        fruitless_ = violation_ < 0.5 * best_true_ ? 0 : fruitless_ + 1;
        best_true_ = std::min(best_true_, violation_);
        return violation_ <= task_.tol;
      }
      std::vector<double> truth(close.size());
      for (std::size_t k = 0; k < close.size(); ++k) truth[k] = dual_.linear[close[k]];
      add_kernel<double>(task_.kernel, task_.data, support.rows, support.weights.data(), 1,
                         task_.data, rows, truth.data(), Index(truth.size()), team_,
                         pulse_.abandon);
      for (std::size_t k = 0; k < close.size(); ++k) {
        error = std::max(error, std::abs(truth[k] - gradient_[close[k]]));
        gradient_[close[k]] = truth[k];
      }
      margin = std::max(margin, 8 * error);
      survey(2);
    }
  }

  const MachineTask& task_;
  Dual& dual_;
  Team& team_;
  Pulse& pulse_;
  Point point_;
  Index padded_, most_free_;
  Points<Real> points_;
  std::vector<double> gradient_, pivot_, delta_, block_;
  std::vector<double> standing_memory_[4];
  Standing standing_;
  std::vector<Outliers> outliers_;
  std::vector<char> chosen_;
  std::vector<Index> members_, moved_;
  std::shared_ptr<Arena> arena_;
  std::unique_ptr<RowCache<Real>> cache_;
  double violation_ = 0.0, fallen_ = 0.0, rounding_ = 0.0, goal_;
  double best_true_ = INFINITY;
  int fruitless_ = 0;  // verifications that found no progress
  bool with_free_ = false, finish_ = false, is_part_ = false;
};

template <class Real>
MachineStatus run(const MachineTask& task, Dual& dual, Team& team, Pulse& pulse) {
  const Index n = dual.point.n;
  std::copy_n(dual.linear, n, dual.point.gradient);
  const Support support(dual);
  add_kernel<Real>(task.kernel, task.data, support.rows, support.weights.data(), 1, task.data,
                   {dual.rows, dual.rows + n}, dual.point.gradient, n, team, pulse.abandon);
  return BlockGear<Real>(task, dual, team, pulse).run();
}

}  // namespace

void solve_machine(const MachineTask& task, Dual& dual, Team& team, Pulse& pulse) {
  const Point& point = dual.point;
  dual.status = MachineStatus::imprecise;
  if (task.single && point.n > SMALL && single_will_do(task, dual))
    dual.status = run<float>(task, dual, team, pulse);
  if (dual.status == MachineStatus::imprecise && !pulse.stop)
    dual.status = run<double>(task, dual, team, pulse);
}

}  // namespace pairstep
