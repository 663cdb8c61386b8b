#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pairstep {

namespace {

// Below this share of active accounts it pays to go on without the others.
constexpr double WORTH_SHRINKING = 0.7;

Index padding(Index n, Index panel) { return (n + panel - 1) / panel * panel - n; }

template <class Real>
std::size_t bytes_of_rows(Index n) {
  return std::size_t(n) * std::size_t(n + padding(n, Points<Real>::PANEL)) * sizeof(Real);
}

}  // namespace

template <class Real>
Index KernelOracle<Real>::Level::place(Index i) const {
  if (account.empty()) return i;
  return std::lower_bound(account.begin(), account.end(), i) - account.begin();
}

template <class Real>
KernelOracle<Real>::KernelOracle(const KernelDual& dual, const Point& point, Team& team)
    : LocalOracle(team),
      dual_(dual),
      arena_(std::min(dual.cache_bytes, bytes_of_rows<Real>(point.n))) {
  const Index n = point.n, more = padding(n, PANEL);
  levels_.push_back(std::unique_ptr<Level>(new Level{{},
                                                     {},
                                                     Points<Real>(dual.data, dual.rows, n),
                                                     Prices(point, more),
                                                     RowCache<Real>(arena_, n + more, n),
                                                     {}}));
  const Real* squares = level().points.squares();
  rounding_ = reach<Real>(dual.kernel, double(*std::max_element(squares, squares + n))).error;
  const double mean = std::accumulate(squares, squares + n, 0.0) / double(n);
  usual_rounding_ = reach<Real>(dual.kernel, mean).error;

  double* gradient = level().prices.gradient();
  std::copy_n(dual.linear, n, gradient);
  const Support support(point);
  add<Real>(rows_of(support.accounts), support.weights, {dual.rows, dual.rows + n}, gradient);
}

template <class Real>
template <class Value>
void KernelOracle<Real>::add(const std::vector<Index>& rows, const std::vector<double>& weights,
                             const std::vector<Index>& columns, double* sums) {
  add_kernel<Value>(dual_.kernel, dual_.data, rows, {0, Index(rows.size())}, weights.data(), 1,
                    dual_.data, columns, sums, Index(columns.size()), team());
}

template <class Real>
std::vector<Index> KernelOracle<Real>::rows_of(const std::vector<Index>& accounts) const {
  std::vector<Index> rows;
  rows.reserve(accounts.size());
  for (const Index i : accounts) rows.push_back(dual_.rows[i]);
  return rows;
}

template <class Real>
void KernelOracle<Real>::survey(Index count, bool with_free, Survey& found) {
  const Level& here = level();
  here.prices.survey(count, with_free, here.account.empty() ? nullptr : here.account.data(), found);
  found.scale = 1.0;
  found.noise = 0.0;
  if (sizeof(Real) == sizeof(double)) return;
  // Errors of kernel values are independent enough to add up as squares.
  double square = 0.0;
  for (Index p = 0; p < here.prices.count(); ++p) {
    const double x = here.prices.point().x[p];
    square += x * x;
  }
  found.noise = usual_rounding_ * std::sqrt(square);
}

template <class Real>
void KernelOracle<Real>::block(const std::vector<Index>& members, bool exact, double* hessian) {
  if (exact) {
    const std::vector<Index> rows = rows_of(members);
    const Points<double> some(dual_.data, rows.data(), Index(rows.size()));
    return kernel_block(dual_.kernel, some, hessian, some.count(), team());
  }
  std::vector<Index> places;
  for (const Index i : members) places.push_back(level().place(i));
  const Points<Real> some = level().points.take(places);
  kernel_block(dual_.kernel, some, hessian, some.count(), team());
}

template <class Real>
void KernelOracle<Real>::advance(const std::vector<Index>& moved,
                                 const std::vector<double>& delta) {
  Level& here = level();
  const double* x = levels_.front()->prices.point().x;
  std::vector<Index> places, missing;
  std::vector<double> missing_delta, cached_delta;
  std::vector<const Real*> cached;
  std::vector<Real*> fresh;
  for (const Index i : moved) {
    places.push_back(here.place(i));
    here.prices.move(places.back(), x[i]);
  }
  Points<Real> queries;
  if (dual_.kernel.name == KernelName::linear) {  // needs no rows: X (X_W' delta)
    queries = here.points.combine(places, delta.data());
    missing_delta = {1.0};
    fresh = {nullptr};
  } else {
    here.cache.next_age();
    for (std::size_t k = 0; k < places.size(); ++k) {
      if (here.cache.holds(places[k])) {
        here.cache.touch(places[k]);
        cached.push_back(here.cache.row(places[k]));
        cached_delta.push_back(delta[k]);
      } else {
        missing.push_back(places[k]);
        missing_delta.push_back(delta[k]);
      }
    }
    // What ended on a bound seldom moves again: only the rows of free accounts are worth keeping.
    fresh = here.cache.claim(missing, [&](Index p) { return here.prices.is_free(p); });
    queries = here.points.take(missing);
  }
  const std::vector<Real> blocks = queries.blocks();
  Tiles<Real> job{dual_.kernel, &here.points, &queries, blocks.data()};
  job.rows = fresh.data();
  job.weights = missing_delta.data();
  job.sums = here.prices.gradient();
  const auto& native = isa().of<Real>();
  over_panels(here.points, team(), [&](Index begin, Index end) {
    native.tiles(job, begin, end);
    native.add_rows(cached.data(), cached_delta.data(), Index(cached.size()), begin * PANEL,
                    end * PANEL, here.prices.gradient());
  });
}

// Only the accounts whose prices are close to being the dearest or the cheapest are computed anew:
// closer than eight times the largest error that was found on the way or that one support vector
// alone could make (all of them if need be).
template <class Real>
void KernelOracle<Real>::verify() {
  Prices& prices = level().prices;
  const Point& point = prices.point();
  const Support support(point);
  const std::vector<Index> support_rows = rows_of(support.accounts);
  double heaviest = 0.0, error = 0.0;
  for (const double weight : support.weights) heaviest = std::max(heaviest, std::abs(weight));
  std::vector<char> exact(std::size_t(point.n), 0);
  double margin = std::max(dual_.tol, 8 * heaviest * rounding_);
  while (true) {
    std::vector<Index> close;
    for (Index g = 0; g < point.n_groups; ++g) {
      const Market market = prices.market(g);
      for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i)
        if (!exact[i] && (prices.down_price(i) >= market.dearest - margin ||
                          prices.up_price(i) <= market.cheapest + margin)) {
          close.push_back(i);
          exact[i] = 1;
        }
    }
    if (close.empty() && margin >= 8 * error) return;
    std::vector<double> truth(close.size());
    for (std::size_t k = 0; k < close.size(); ++k) truth[k] = dual_.linear[close[k]];
    add<double>(support_rows, support.weights, rows_of(close), truth.data());
    for (std::size_t k = 0; k < close.size(); ++k) {
      double& known = prices.gradient()[close[k]];
      error = std::max(error, std::abs(truth[k] - known));
      known = truth[k];
    }
    margin = std::max(margin, 8 * error);
  }
}

template <class Real>
Index KernelOracle<Real>::shrink(const std::vector<Market>& markets) {
  Level& here = level();
  const Point& point = here.prices.point();
  std::vector<Index> active, account;
  for (Index g = 0; g < point.n_groups; ++g)
    for (Index p = point.starts[g]; p < point.starts[g + 1]; ++p)
      if (here.prices.down_price(p) > markets[g].cheapest ||
          here.prices.up_price(p) < markets[g].dearest) {
        active.push_back(p);
        account.push_back(here.in_whole(p));
      }
  const Index left = Index(active.size());
  if (left < 2 || double(left) > WORTH_SHRINKING * double(point.n)) return 0;
  const Index more = padding(left, PANEL);
  levels_.push_back(std::unique_ptr<Level>(new Level{std::move(account),
                                                     active,
                                                     here.points.take(active),
                                                     Prices(here.prices, active, more),
                                                     RowCache<Real>(arena_, left + more, left),
                                                     {}}));
  level().x_before.assign(level().prices.point().x, level().prices.point().x + left);
  return left;
}

template <class Real>
void KernelOracle<Real>::unshrink() {
  const std::unique_ptr<Level> part = std::move(levels_.back());
  levels_.pop_back();
  Level& here = level();
  const Point& now = part->prices.point();
  std::vector<char> active(std::size_t(here.prices.count()), 0);
  std::vector<Index> moved, settled, rows;
  std::vector<double> change;
  for (Index p = 0; p < now.n; ++p) {
    const Index q = part->parent[p];
    active[q] = 1;
    if (now.x[p] != part->x_before[p]) {
      moved.push_back(dual_.rows[part->account[p]]);
      change.push_back(now.x[p] - part->x_before[p]);
    }
    here.prices.point().x[q] = now.x[p];
    here.prices.gradient()[q] = part->prices.gradient()[p];
  }
  for (Index q = 0; q < here.prices.count(); ++q)
    if (!active[q]) {
      settled.push_back(q);
      rows.push_back(dual_.rows[here.in_whole(q)]);
    }
  std::vector<double> sums(settled.size(), 0.0);
  add<Real>(moved, change, rows, sums.data());
  for (std::size_t k = 0; k < settled.size(); ++k) here.prices.gradient()[settled[k]] += sums[k];
  here.prices.enter_all();
  here.cache = RowCache<Real>(arena_, here.points.padded(), here.prices.count());
}

template class KernelOracle<float>;
template class KernelOracle<double>;

}  // namespace pairstep
