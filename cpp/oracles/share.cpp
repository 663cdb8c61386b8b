#include "share.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel_sums.hpp"
#include "row_cache.hpp"

namespace pairstep {

namespace {

constexpr Index AT_ONCE = 4096;  // movers: bounds the memory of their packed rows

template <class Real>
class KernelShare final : public Share {
 public:
  KernelShare(const ShareTask& task, const RowStore& store)
      : task_(task), store_(store), arena_(std::min(task.cache_bytes, bytes_of_rows(task))) {
    const Index n = task.point.n;
    Points<Real> points(task.data, task.rows, n);
    const Real* squares = points.squares();
    sum_of_squares = std::accumulate(squares, squares + n, 0.0);
    largest_square = n > 0 ? double(*std::max_element(squares, squares + n)) : 0.0;
    const Index more = points.padded() - n;
    levels_.push_back(std::unique_ptr<Level>(new Level{{task.accounts, task.accounts + n},
                                                       {},
                                                       std::move(points),
                                                       Prices(task.point, more),
                                                       RowCache<Real>(arena_, n + more, 0),
                                                       {}}));
    std::copy_n(task.linear, n, level().prices.gradient());
  }

  void introduce(const std::vector<Index>& accounts, const std::vector<Index>& slots) override {
    account_.insert(account_.end(), accounts.begin(), accounts.end());
    slot_.insert(slot_.end(), slots.begin(), slots.end());
    x_.resize(account_.size(), 0.0);
    free_.resize(account_.size(), 0);
  }

  void advance(const std::vector<Index>& movers, const double* x, const bool* free,
               Team& team) override {
    std::vector<double> delta;
    for (std::size_t k = 0; k < movers.size(); ++k) {
      const Index m = movers[k];
      delta.push_back(x[k] - x_[m]);
      x_[m] = x[k];
      free_[m] = free[k];
      for (const auto& one : levels_)
        if (const Index p = one->place(account_[m]); p >= 0) one->prices.move(p, x[k]);
    }
    level().cache.reach(Index(account_.size()));
    for (Index first = 0; first < Index(movers.size()); first += AT_ONCE) {
      const Index last = std::min(first + AT_ONCE, Index(movers.size()));
      add({movers.begin() + first, movers.begin() + last}, delta.data() + first, team);
    }
  }

  void survey(Index count, bool with_free, Survey& found) const override {
    const Level& here = *levels_.back();
    here.prices.survey(count, with_free, here.account.data(), found);
  }

  Verified verify(const std::vector<Market>& markets, double margin, bool anew,
                  Team& team) override {
    Prices& prices = level().prices;
    const Point& point = prices.point();
    if (anew) exact_.assign(std::size_t(point.n), 0);
    std::vector<Index> close, rows;
    for (Index g = 0; g < point.n_groups; ++g)
      for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i)
        if (!exact_[i] && (prices.down_price(i) >= markets[g].dearest - margin ||
                           prices.up_price(i) <= markets[g].cheapest + margin)) {
          close.push_back(i);
          rows.push_back(task_.rows[i]);
          exact_[i] = 1;
        }
    std::vector<double> truth;
    for (const Index i : close) truth.push_back(task_.linear[i]);
    add_from<double>(Support(mover_point()), rows, truth.data(), team);
    double error = 0.0;
    for (std::size_t k = 0; k < close.size(); ++k) {
      double& known = prices.gradient()[close[k]];
      error = std::max(error, std::abs(truth[k] - known));
      known = truth[k];
    }
    return {Index(close.size()), error};
  }

  std::vector<Market> markets() const override {
    std::vector<Market> markets;
    const Prices& prices = levels_.back()->prices;
    for (Index g = 0; g < prices.point().n_groups; ++g) markets.push_back(prices.market(g));
    return markets;
  }

  Index active(const std::vector<Market>& markets) const override {
    return Index(places_active(markets).size());
  }

  void shrink(const std::vector<Market>& markets) override {
    Level& here = level();
    std::vector<Index> parent = places_active(markets), account;
    for (const Index p : parent) account.push_back(here.account[p]);
    const Index left = Index(parent.size());
    Points<Real> points = here.points.take(parent);
    const Index more = points.padded() - left;
    levels_.push_back(std::unique_ptr<Level>(
        new Level{std::move(account), parent, std::move(points), Prices(here.prices, parent, more),
                  RowCache<Real>(arena_, left + more, 0), x_}));
  }

  void unshrink(Team& team) override {
    const std::unique_ptr<Level> part = std::move(levels_.back());
    levels_.pop_back();
    Level& here = level();
    std::vector<char> active(std::size_t(here.prices.count()), 0);
    for (std::size_t p = 0; p < part->parent.size(); ++p) {
      active[part->parent[p]] = 1;
      here.prices.gradient()[part->parent[p]] = part->prices.gradient()[p];
    }
    std::vector<Index> settled, rows;
    for (Index p = 0; p < here.prices.count(); ++p)
      if (!active[p]) {
        settled.push_back(p);
        rows.push_back(task_.rows[levels_.front()->place(here.account[p])]);
      }
    std::vector<double> change = x_, sums(settled.size(), 0.0);
    for (std::size_t m = 0; m < part->x_before.size(); ++m) change[m] -= part->x_before[m];
    Point changed = mover_point();
    changed.x = change.data();
    add_from<Real>(Support(changed), rows, sums.data(), team);
    for (std::size_t k = 0; k < settled.size(); ++k) here.prices.gradient()[settled[k]] += sums[k];
    here.cache = RowCache<Real>(arena_, here.points.padded(), 0);
  }

  const double* gradient() const override { return levels_.front()->prices.point().gradient; }

 private:
  static constexpr Index PANEL = Points<Real>::PANEL;

  // The whole share, or the part that a shrinking has left of the level above.
  struct Level {
    std::vector<Index> account;  // in the whole problem, in rising order
    std::vector<Index> parent;   // in the level above
    Points<Real> points;
    Prices prices;
    RowCache<Real> cache;          // of movers
    std::vector<double> x_before;  // where the movers were when the level began

    // Of an account, -1 if it is not here.
    Index place(Index i) const {
      const auto found = std::lower_bound(account.begin(), account.end(), i);
      return found != account.end() && *found == i ? found - account.begin() : -1;
    }
  };

  Level& level() { return *levels_.back(); }

  static std::size_t bytes_of_rows(const ShareTask& task) {
    const Index panels = (task.point.n + PANEL - 1) / PANEL;
    return std::size_t(task.whole) * std::size_t(panels * PANEL) * sizeof(Real);
  }

  Point mover_point() {
    Point point{};
    point.n = Index(x_.size());
    point.x = x_.data();
    return point;
  }

  std::vector<Index> places_active(const std::vector<Market>& markets) const {
    const Prices& prices = levels_.back()->prices;
    const Point& point = prices.point();
    std::vector<Index> active;
    for (Index g = 0; g < point.n_groups; ++g)
      for (Index p = point.starts[g]; p < point.starts[g + 1]; ++p)
        if (prices.down_price(p) > markets[g].cheapest || prices.up_price(p) < markets[g].dearest)
          active.push_back(p);
    return active;
  }

  // sums[c] += sum over movers of weight k(mover, row c), by rows of the data.
  template <class Value>
  void add_from(const Support& movers, const std::vector<Index>& rows, double* sums, Team& team) {
    std::vector<Index> slots;
    for (const Index m : movers.accounts) slots.push_back(slot_[m]);
    add_kernel<Value>(task_.kernel, store_.data(), slots, {0, Index(slots.size())},
                      movers.weights.data(), 1, task_.data, rows, sums, Index(rows.size()), team);
  }

  // These movers have changed by delta: their kernel rows, from the cache or anew, onto the prices.
  void add(const std::vector<Index>& movers, const double* delta, Team& team) {
    Level& here = level();
    std::vector<Index> missing, slots;
    std::vector<double> missing_delta, cached_delta;
    std::vector<const Real*> cached;
    here.cache.next_age();
    for (std::size_t k = 0; k < movers.size(); ++k) {
      if (here.cache.holds(movers[k])) {
        here.cache.touch(movers[k]);
        cached.push_back(here.cache.row(movers[k]));
        cached_delta.push_back(delta[k]);
      } else {
        missing.push_back(movers[k]);
        slots.push_back(slot_[movers[k]]);
        missing_delta.push_back(delta[k]);
      }
    }
    std::vector<Real*> fresh(missing.size(), nullptr);
    Points<Real> queries(store_.data(), slots.data(), Index(slots.size()));
    if (task_.kernel.name == KernelName::linear) {  // needs no rows: X (X_W' delta)
      std::vector<Index> all(slots.size());
      std::iota(all.begin(), all.end(), 0);
      queries = queries.combine(all, missing_delta.data());
      missing_delta = {1.0};
      fresh = {nullptr};
    } else {
      fresh = here.cache.claim(missing, [&](Index m) { return free_[m] != 0; });
    }
    const std::vector<Real> blocks = queries.blocks();
    Tiles<Real> job{task_.kernel, &here.points, &queries, blocks.data()};
    job.rows = fresh.data();
    job.weights = missing_delta.data();
    job.sums = here.prices.gradient();
    const auto& native = isa().of<Real>();
    over_panels(here.points, team, [&](Index begin, Index end) {
      native.tiles(job, begin, end);
      native.add_rows(cached.data(), cached_delta.data(), Index(cached.size()), begin * PANEL,
                      end * PANEL, here.prices.gradient());
    });
  }

  const ShareTask task_;
  const RowStore& store_;
  Arena arena_;  // shared by the caches of all levels: only the deepest one is in use
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<Index> account_, slot_;  // of movers
  std::vector<double> x_;
  std::vector<char> free_;   // movers whose kernel rows are worth keeping
  std::vector<char> exact_;  // prices that were verified
};

}  // namespace

std::unique_ptr<Share> make_share(const ShareTask& task, const RowStore& store, bool single) {
  if (single) return std::make_unique<KernelShare<float>>(task, store);
  return std::make_unique<KernelShare<double>>(task, store);
}

}  // namespace pairstep
