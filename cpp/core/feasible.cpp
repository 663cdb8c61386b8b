#include "feasible.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sum.hpp"

namespace pairstep {

namespace {

// One group of accounts.
struct Group {
  double* x;
  const double *lower, *upper, *pivot;
  Index n;
  double total;

  double residual() const {
    Sum sum;
    for (Index i = 0; i < n; ++i) sum.add(-x[i]);
    sum.add(total);
    return sum.value();
  }
  double ulp() const { return ulp_of(total); }
  double ulp_of(double sum) const {
    double scale = std::abs(sum);
    for (Index i = 0; i < n; ++i) scale = std::max(scale, std::abs(x[i]));
    return std::nextafter(scale, INFINITY) - scale;
  }
  double room(Index i, double amount) const {
    return amount > 0 ? upper[i] - x[i] : x[i] - lower[i];
  }
  bool is_free(Index i) const {
    return x[i] > lower[i] && x[i] < upper[i] && !(pivot && x[i] == pivot[i]);
  }
  void move(Index i, double amount) {
    x[i] = std::min(std::max(x[i] + amount, lower[i]), upper[i]);
  }

  // The account with room for the amount that should take it, or -1: a free one, for one at its
  // bound would become free; among those the largest, whose own rounding is no less, while the
  // price of a small one, which is small because its curvature is large, would move by far.
  Index taker_of(double amount) const {
    Index best = -1;
    bool best_is_free = false;
    for (Index i = 0; i < n; ++i) {
      if (!(room(i, amount) >= std::abs(amount))) continue;
      const bool free = is_free(i);
      if (best < 0 || free > best_is_free ||
          (free == best_is_free && std::abs(x[i]) > std::abs(x[best]))) {
        best = i;
        best_is_free = free;
      }
    }
    return best;
  }

  // Use up the rooms, the largest first so that few accounts change, until one is not used up.
  // Whether any account moved.
  bool spread(double amount) {
    std::vector<std::pair<double, Index>> rooms;
    for (Index i = 0; i < n; ++i)
      if (room(i, amount) > 0) rooms.push_back({-room(i, amount), i});
    std::sort(rooms.begin(), rooms.end());
    Sum left;
    left.add(amount);
    for (const auto& [negative_room, i] : rooms) {
      const double before = x[i], need = left.value();
      if (need == 0.0 || (need > 0) != (amount > 0)) break;
      if (-negative_room > std::abs(need)) {
        move(i, need);
        break;
      }
      x[i] = amount > 0 ? upper[i] : lower[i];
      left.add(before);
      left.add(-x[i]);
    }
    return !rooms.empty();
  }

  // Let a free account take what is no more than the rounding of all of them.
  void round_to_total(double rest) {
    if (!(std::abs(rest) <= 8.0 * double(n) * ulp())) return;
    const Index taker = taker_of(rest);
    if (taker >= 0 && is_free(taker)) move(taker, rest);
  }

  // Where one account takes the rest, half an ulp of that account stays; where it is cut off at
  // its bound, a part of the rest that only rounding makes. So few rounds are needed.
  void settle() {
    for (int round = 0; round < 16; ++round) {
      const double rest = residual();
      if (rest == 0.0) return;
      const Index taker = taker_of(rest);
      // An ulp is not worth leaving a bound or a kink for.
      if (!(taker >= 0 && is_free(taker)) && std::abs(rest) <= ulp()) return;
      if (taker < 0) {
        if (!spread(rest)) return;
        continue;
      }
      const double before = x[taker];
      move(taker, rest);
      if (x[taker] == before) return;
    }
  }
};

Group group_at(double* x, const double* lower, const double* upper, const double* pivot,
               Index begin, Index end, double total) {
  return {x + begin,   lower + begin, upper + begin, pivot ? pivot + begin : nullptr,
          end - begin, total};
}

// The point nearest to y with this sum, before its last rounding.
void project_group(const double* y, const double* lower, const double* upper, Index n, double total,
                   double* x) {
  // x_i = clip(y_i + shift): the sum grows with the shift, piecewise linearly, so Newton's
  // method inside a bracket ends after a few passes. A coordinate is free on the side towards
  // which the shift must move; that is decided on the shift itself, where rounding cannot hide
  // a kink.
  double shift = 0.0, below = -INFINITY, above = INFINITY;
  for (int pass = 0; pass < 200; ++pass) {
    Sum sum;
    double largest = std::abs(total);
    for (Index i = 0; i < n; ++i) {
      x[i] = std::min(std::max(y[i] + shift, lower[i]), upper[i]);
      sum.add(x[i]);
      largest = std::max(largest, std::abs(x[i]));
    }
    sum.add(-total);
    const double excess = sum.value();
    if (std::abs(excess) <= 0.25 * std::numeric_limits<double>::epsilon() * largest) break;
    (excess < 0 ? below : above) = shift;
    Index free = 0;
    double kink = excess < 0 ? INFINITY : -INFINITY;  // the next shift to free a coordinate
    for (Index i = 0; i < n; ++i) {
      const double first = lower[i] - y[i], last = upper[i] - y[i];
      if (excess < 0) {
        free += first <= shift && shift < last;
        if (first > shift) kink = std::min(kink, first);
      } else {
        free += first < shift && shift <= last;
        if (last < shift) kink = std::max(kink, last);
      }
    }
    double next = free > 0 ? shift - excess / double(free) : kink;
    if (!(next > below && next < above)) next = 0.5 * (below + above);
    if (!std::isfinite(next) || !(next > below && next < above)) break;
    shift = next;
  }
}

// Groups under one total. Project all as if there were no limits. Then the sums that are above
// theirs are too high by so much in all, or those below too low: the shift of the solution is
// further up, or down, so that the groups on the side that misses more end on their limits. Fix
// them there and go on with the others: at most a round for each group.
void project_nested(const double* y, const double* lower, const double* upper, const Sums& sums,
                    double* x) {
  std::vector<Index> loose(std::size_t(sums.n_groups));
  std::iota(loose.begin(), loose.end(), 0);
  std::vector<double> of_y, of_lower, of_upper, of_x;
  Sum left;
  left.add(sums.totals[0]);
  while (!loose.empty()) {
    for (auto* some : {&of_y, &of_lower, &of_upper}) some->clear();
    for (const Index g : loose) {
      const Index begin = sums.starts[g], end = sums.starts[g + 1];
      of_y.insert(of_y.end(), y + begin, y + end);
      of_lower.insert(of_lower.end(), lower + begin, lower + end);
      of_upper.insert(of_upper.end(), upper + begin, upper + end);
    }
    of_x.resize(of_y.size());
    project_group(of_y.data(), of_lower.data(), of_upper.data(), Index(of_y.size()), left.value(),
                  of_x.data());
    const double* from = of_x.data();
    std::vector<double> sum;
    double above = 0.0, below = 0.0;
    for (const Index g : loose) {
      const Index begin = sums.starts[g], size = sums.starts[g + 1] - begin;
      std::copy_n(from, size, x + begin);
      from += size;
      sum.push_back(-group_at(x, lower, upper, nullptr, begin, sums.starts[g + 1], 0.0).residual());
      above += std::max(sum.back() - sums.high[g], 0.0);
      below += std::max(sums.low[g] - sum.back(), 0.0);
    }
    if (above == 0.0 && below == 0.0) return;
    std::vector<Index> staying;
    for (std::size_t k = 0; k < loose.size(); ++k) {
      const Index g = loose[k], begin = sums.starts[g];
      const double limit = above >= below ? sums.high[g] : sums.low[g];
      if (!(above >= below ? sum[k] > limit : sum[k] < limit)) {
        staying.push_back(g);
        continue;
      }
      project_group(y + begin, lower + begin, upper + begin, sums.starts[g + 1] - begin, limit,
                    x + begin);
      left.add(-limit);
    }
    loose.swap(staying);
  }
}

// The cheapest accounts are filled first.
struct Filling {
  const double *price, *curvature, *upper;
  double* x;
  std::vector<std::pair<double, Index>> order;

  // Fill the accounts of [begin, end) by `need` in all, of which each takes at most `limit(i)`,
  // which is then so much less.
  template <class Limit>
  void pour(double need, Index begin, Index end, Limit limit) {
    order.clear();
    for (Index i = begin; i < end; ++i) {
      const double room = std::min({upper[i] - x[i], limit(i), need});
      if (room > 0) order.push_back({price[i] + 0.5 * curvature[i] * room, i});
    }
    // Mostly one or a few are filled: a heap gives those without sorting the rest.
    std::make_heap(order.begin(), order.end(), std::greater<>());
    for (auto last = order.end(); need > 0 && last != order.begin(); --last) {
      const Index i = order.front().second;
      const double room = upper[i] - x[i], amount = std::min({room, limit(i), need});
      x[i] = room <= amount ? upper[i] : x[i] + amount;
      limit(i) -= amount;
      need -= amount;
      std::pop_heap(order.begin(), last, std::greater<>());
    }
  }
};

// Every group up to its lower limit, then the cheapest anywhere, as far as the upper ones allow.
void fill_nested(Filling& filling, const double* lower, const Sums& sums) {
  const Index n = sums.starts[sums.n_groups];
  std::vector<double> room;
  std::vector<Index> group;
  double endless = INFINITY;
  const auto missing = [&](Index begin, Index end, double total) {
    return group_at(filling.x, lower, filling.upper, nullptr, begin, end, total).residual();
  };
  for (Index g = 0; g < sums.n_groups; ++g) {
    const Index begin = sums.starts[g], end = sums.starts[g + 1];
    if (std::isfinite(sums.low[g]))
      filling.pour(missing(begin, end, sums.low[g]), begin, end,
                   [&](Index) -> double& { return endless; });
    const bool endless_up = std::isinf(sums.high[g]);
    room.push_back(endless_up ? INFINITY : std::max(missing(begin, end, sums.high[g]), 0.0));
    group.insert(group.end(), std::size_t(end - begin), g);
  }
  filling.pour(missing(0, n, sums.totals[0]), 0, n,
               [&](Index i) -> double& { return room[group[i]]; });
}

// Groups beyond a limit, or as near to it as rounding puts them, first; then what is missing of the
// total, on a free account whose group has room, or on any that has. Where limits leave no room,
// but for the rounding of them and of the total, each group may be off by an ulp.
void settle_nested(double* x, const double* lower, const double* upper, const Sums& sums,
                   const double* pivot) {
  const Index n = sums.starts[sums.n_groups];
  std::vector<double> floor(lower, lower + n), ceiling(upper, upper + n);
  Group all = group_at(x, floor.data(), ceiling.data(), pivot, 0, n, sums.totals[0]);
  enum class Who { free, any, any_by_an_ulp };
  for (const Who who : {Who::free, Who::any, Who::any_by_an_ulp}) {
    const bool by_an_ulp = who == Who::any_by_an_ulp;
    for (Index g = 0; g < sums.n_groups; ++g) {
      const Index begin = sums.starts[g], end = sums.starts[g + 1];
      Group group = group_at(x, lower, upper, pivot, begin, end, 0.0);
      double sum = -group.residual();
      for (const bool above : {false, true}) {
        group.total = above ? sums.high[g] : sums.low[g];
        const double rest = group.total - sum;
        if (above ? rest < 0 : rest > 0) group.settle();
        else if (rest != 0) group.round_to_total(rest);
        group.total = 0.0;
        sum = -group.residual();
      }
      const double down = std::max(sum - sums.low[g], 0.0), up = std::max(sums.high[g] - sum, 0.0);
      Index spare = by_an_ulp ? 0 : -1;  // the account that may go beyond
      for (Index i = 0; by_an_ulp && i < group.n; ++i)
        if (group.is_free(i)) spare = i;
      for (Index i = 0; i < group.n; ++i) {
        const bool stays = who == Who::free && !group.is_free(i);
        const double beyond = i == spare ? group.ulp_of(sum) : 0.0;
        const double fall = stays ? 0.0 : std::max(down, beyond),
                     rise = stays ? 0.0 : std::max(up, beyond);
        floor[begin + i] = std::max(lower[begin + i], group.x[i] - fall);
        ceiling[begin + i] = std::min(upper[begin + i], group.x[i] + rise);
      }
    }
    all.settle();
    if (std::abs(all.residual()) <= all.ulp()) return;
  }
}

}  // namespace

Index first_odd(const double* lower, const double* upper, Index n, double limit) {
  for (Index i = 0; i < n; ++i) {
    const bool below = std::abs(lower[i]) < limit || lower[i] == -INFINITY;
    const bool above = std::abs(upper[i]) < limit || upper[i] == INFINITY;
    if (!(lower[i] <= upper[i] && below && above)) return i;
  }
  return -1;
}

Span span_of(const double* lower, const double* upper, Index n, double low, double high) {
  // The sum of the bounds, and what is left of it beyond a limit of the total.
  const auto add_up = [n](const double* bound, double limit) {
    Sum sum;
    double infinite = 0.0;
    for (Index i = 0; i < n; ++i) {
      if (std::isinf(bound[i])) infinite = bound[i];
      else sum.add(bound[i]);
    }
    if (infinite != 0.0) return std::pair(infinite, infinite);
    const double all = sum.value();
    if (std::isinf(limit)) return std::pair(all, -limit);
    sum.add(-limit);
    return std::pair(all, sum.value());
  };
  const auto [least, above] = add_up(lower, high);
  const auto [most, below] = add_up(upper, low);
  return {least, most, std::max({above, -below, 0.0})};
}

void project(const double* y, const double* lower, const double* upper, const Sums& sums,
             double* x) {
  if (sums.nested()) {
    project_nested(y, lower, upper, sums, x);
  } else {
    for (Index k = 0; k < sums.n_groups; ++k) {
      const Index begin = sums.starts[k];
      project_group(y + begin, lower + begin, upper + begin, sums.starts[k + 1] - begin,
                    sums.totals[k], x + begin);
    }
  }
  settle(x, lower, upper, sums);
}

void fill(const double* price, const double* curvature, const double* lower, const double* upper,
          const Sums& sums, double* x) {
  std::copy(lower, lower + sums.starts[sums.n_groups], x);
  Filling filling{price, curvature, upper, x, {}};
  double endless = INFINITY;
  if (sums.nested()) {
    fill_nested(filling, lower, sums);
  } else {
    for (Index k = 0; k < sums.n_groups; ++k) {
      const Index begin = sums.starts[k], end = sums.starts[k + 1];
      const double need = group_at(x, lower, upper, nullptr, begin, end, sums.totals[k]).residual();
      filling.pour(need, begin, end, [&](Index) -> double& { return endless; });
    }
  }
  settle(x, lower, upper, sums);
}

void settle(double* x, const double* lower, const double* upper, const Sums& sums,
            const double* pivot) {
  if (sums.nested()) return settle_nested(x, lower, upper, sums, pivot);
  for (Index k = 0; k < sums.n_groups; ++k)
    group_at(x, lower, upper, pivot, sums.starts[k], sums.starts[k + 1], sums.totals[k]).settle();
}

}  // namespace pairstep
