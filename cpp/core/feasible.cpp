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

struct FeasibleSettings {
  // Passes of Newton's method with bisection in a projection. A few suffice in practice; halving
  // the bracket 200 times exhausts the precision of a double in any case.
  static constexpr int max_projection_passes = 200;
  // The projection ends when the sum is exact up to this many machine epsilons of its largest term;
  // `restore_sums` removes the rest.
  static constexpr double projection_epsilons = 0.25;
  // Maximum number of corrections of one sum. A correction leaves at most the rounding error of the
  // coordinate that it changes, so a few suffice; the limit guarantees termination.
  static constexpr int max_corrections = 16;
  // The sum of a nested group counts as equal to its limit if it differs by at most this many ulp
  // per coordinate. A larger value would move sums onto limits that they do not touch; a smaller
  // one would leave sums beside a limit that only rounding separates them from.
  static constexpr double ulps_per_coordinate = 8.0;
};

// One group of coordinates and the total that its sum should have.
struct Group {
  double* x;
  const double *lower, *upper, *breakpoint;
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
  double slack(Index i, double amount) const {
    return amount > 0 ? upper[i] - x[i] : x[i] - lower[i];
  }
  bool is_free(Index i) const {
    return x[i] > lower[i] && x[i] < upper[i] && !(breakpoint && x[i] == breakpoint[i]);
  }
  void shift(Index i, double amount) {
    x[i] = std::min(std::max(x[i] + amount, lower[i]), upper[i]);
  }

  // The coordinate that should absorb the amount, or -1 if no single one can. A free coordinate is
  // preferred, because one at its bound would have to leave it. Among several the largest is
  // preferred: its own rounding error is at least as large as the amount, whereas a small
  // coordinate may be small because its curvature is large, and then its derivative would change a
  // lot.
  Index absorber_of(double amount) const {
    Index best = -1;
    bool best_is_free = false;
    for (Index i = 0; i < n; ++i) {
      if (!(slack(i, amount) >= std::abs(amount))) continue;
      const bool free = is_free(i);
      if (best < 0 || free > best_is_free ||
          (free == best_is_free && std::abs(x[i]) > std::abs(x[best]))) {
        best = i;
        best_is_free = free;
      }
    }
    return best;
  }

  // Distribute the amount over several coordinates, each moved to its bound, those with the largest
  // slack first so that few change. Return whether any coordinate had slack.
  bool spread(double amount) {
    std::vector<std::pair<double, Index>> slacks;
    for (Index i = 0; i < n; ++i)
      if (slack(i, amount) > 0) slacks.push_back({-slack(i, amount), i});
    std::sort(slacks.begin(), slacks.end());
    Sum left;
    left.add(amount);
    for (const auto& [negative_slack, i] : slacks) {
      const double before = x[i], need = left.value();
      if (need == 0.0 || (need > 0) != (amount > 0)) break;
      if (-negative_slack > std::abs(need)) {
        shift(i, need);
        break;
      }
      x[i] = amount > 0 ? upper[i] : lower[i];
      left.add(before);
      left.add(-x[i]);
    }
    return !slacks.empty();
  }

  // Move one free coordinate that is closer to its bound than the amount onto the bound. Return
  // whether there was one.
  bool reach_bound(double amount) {
    for (Index i = 0; i < n; ++i) {
      if (!is_free(i) || slack(i, amount) >= std::abs(amount)) continue;
      x[i] = amount > 0 ? upper[i] : lower[i];
      return true;
    }
    return false;
  }

  // Let a free coordinate absorb the rest if it is within the rounding error of the group's sum.
  void round_to_total(double rest) {
    if (!(std::abs(rest) <= FeasibleSettings::ulps_per_coordinate * double(n) * ulp())) return;
    const Index absorber = absorber_of(rest);
    if (absorber >= 0 && is_free(absorber)) shift(absorber, rest);
  }

  // Make the sum equal to the total within an ulp, if the bounds allow it.
  void restore_sum() {
    for (int k = 0; k < FeasibleSettings::max_corrections; ++k) {
      const double rest = residual();
      if (rest == 0.0) return;
      const Index absorber = absorber_of(rest);
      // Do not move a coordinate off its bound or breakpoint to correct a single ulp. Moving one
      // onto its bound is fine.
      if (!(absorber >= 0 && is_free(absorber)) && std::abs(rest) <= ulp()) {
        if (!reach_bound(rest)) return;
        continue;
      }
      if (absorber < 0) {
        if (!spread(rest)) return;
        continue;
      }
      const double before = x[absorber];
      shift(absorber, rest);
      if (x[absorber] == before) return;
    }
  }
};

Group group_at(double* x, const double* lower, const double* upper, const double* breakpoint,
               Index begin, Index end, double total) {
  return {x + begin,   lower + begin, upper + begin, breakpoint ? breakpoint + begin : nullptr,
          end - begin, total};
}

// Project y onto the bounds and the sum of one group, up to rounding errors of the sum.
void project_group(const double* y, const double* lower, const double* upper, Index n, double total,
                   double* x) {
  // The projection is x_i = clip(y_i + shift). Its sum is a nondecreasing, piecewise linear
  // function of the shift, so Newton's method inside a bracket ends after a few passes. The slope
  // is the number of coordinates that are free in the direction in which the shift must go. To
  // count them, compare the shift with lower_i - y_i and upper_i - y_i: rounding of y_i + shift
  // could hide that a coordinate has reached a bound.
  double shift = 0.0, below = -INFINITY, above = INFINITY;
  for (int pass = 0; pass < FeasibleSettings::max_projection_passes; ++pass) {
    Sum sum;
    double largest = std::abs(total);
    for (Index i = 0; i < n; ++i) {
      x[i] = std::min(std::max(y[i] + shift, lower[i]), upper[i]);
      sum.add(x[i]);
      largest = std::max(largest, std::abs(x[i]));
    }
    sum.add(-total);
    const double excess = sum.value();
    if (std::abs(excess) <=
        FeasibleSettings::projection_epsilons * std::numeric_limits<double>::epsilon() * largest)
      break;
    (excess < 0 ? below : above) = shift;
    Index free = 0;
    double breakpoint =
        excess < 0 ? INFINITY : -INFINITY;  // the next shift that frees a coordinate
    for (Index i = 0; i < n; ++i) {
      const double first = lower[i] - y[i], last = upper[i] - y[i];
      if (excess < 0) {
        free += first <= shift && shift < last;
        if (first > shift) breakpoint = std::min(breakpoint, first);
      } else {
        free += first < shift && shift <= last;
        if (last < shift) breakpoint = std::max(breakpoint, last);
      }
    }
    double next = free > 0 ? shift - excess / double(free) : breakpoint;
    if (!(next > below && next < above)) next = 0.5 * (below + above);
    if (!std::isfinite(next) || !(next > below && next < above)) break;
    shift = next;
  }
}

// Project onto nested groups. Project all groups together as if their sums had no limits, then add
// up by how much sums exceed their upper limits and by how much sums fall short of their lower
// limits. The larger of the two decides the direction in which the common shift of the solution
// changes, so the groups that violate a limit on that side end on it. Fix their sums there and
// repeat with the remaining groups. Every round fixes at least one group.
void project_nested(const double* y, const double* lower, const double* upper, const Sums& sums,
                    double* x) {
  std::vector<Index> remaining(std::size_t(sums.n_groups));
  std::iota(remaining.begin(), remaining.end(), 0);
  std::vector<double> of_y, of_lower, of_upper, of_x;
  Sum total;  // of the remaining groups
  total.add(sums.totals[0]);
  while (!remaining.empty()) {
    for (auto* values : {&of_y, &of_lower, &of_upper}) values->clear();
    for (const Index g : remaining) {
      const Index begin = sums.starts[g], end = sums.starts[g + 1];
      of_y.insert(of_y.end(), y + begin, y + end);
      of_lower.insert(of_lower.end(), lower + begin, lower + end);
      of_upper.insert(of_upper.end(), upper + begin, upper + end);
    }
    of_x.resize(of_y.size());
    project_group(of_y.data(), of_lower.data(), of_upper.data(), Index(of_y.size()), total.value(),
                  of_x.data());
    const double* from = of_x.data();
    std::vector<double> sum;
    double above = 0.0, below = 0.0;
    for (const Index g : remaining) {
      const Index begin = sums.starts[g], size = sums.starts[g + 1] - begin;
      std::copy_n(from, size, x + begin);
      from += size;
      sum.push_back(-group_at(x, lower, upper, nullptr, begin, sums.starts[g + 1], 0.0).residual());
      above += std::max(sum.back() - sums.high[g], 0.0);
      below += std::max(sums.low[g] - sum.back(), 0.0);
    }
    if (above == 0.0 && below == 0.0) return;
    std::vector<Index> still_remaining;
    for (std::size_t k = 0; k < remaining.size(); ++k) {
      const Index g = remaining[k], begin = sums.starts[g];
      const double limit = above >= below ? sums.high[g] : sums.low[g];
      if (!(above >= below ? sum[k] > limit : sum[k] < limit)) {
        still_remaining.push_back(g);
        continue;
      }
      project_group(y + begin, lower + begin, upper + begin, sums.starts[g + 1] - begin, limit,
                    x + begin);
      total.add(-limit);
    }
    remaining.swap(still_remaining);
  }
}

// Raises coordinates from their lower bounds, those with the smallest cost per unit first.
struct Filling {
  const double *derivative, *curvature, *upper;
  double* x;
  std::vector<std::pair<double, Index>> order;

  // Raise the coordinates of [begin, end) by `need` in total. Coordinate i increases by at most
  // limit(i). This must be a reference; the amount of the increase is subtracted from it.
  template <class Limit>
  void raise(double need, Index begin, Index end, Limit limit) {
    order.clear();
    for (Index i = begin; i < end; ++i) {
      const double slack = std::min({upper[i] - x[i], limit(i), need});
      if (slack > 0) order.push_back({derivative[i] + 0.5 * curvature[i] * slack, i});
    }
    // Usually only a few coordinates are raised, and a heap finds them without sorting the rest.
    std::make_heap(order.begin(), order.end(), std::greater<>());
    for (auto last = order.end(); need > 0 && last != order.begin(); --last) {
      const Index i = order.front().second;
      const double slack = upper[i] - x[i], amount = std::min({slack, limit(i), need});
      x[i] = slack <= amount ? upper[i] : x[i] + amount;
      limit(i) -= amount;
      need -= amount;
      std::pop_heap(order.begin(), last, std::greater<>());
    }
  }
};

// For nested groups: raise every group to its lower limit, then the coordinates with the smallest
// cost anywhere, as far as the upper limits allow.
void fill_nested(Filling& filling, const double* lower, const Sums& sums) {
  const Index n = sums.starts[sums.n_groups];
  std::vector<double> slack;
  std::vector<Index> group;
  double no_limit = INFINITY;
  const auto missing = [&](Index begin, Index end, double total) {
    return group_at(filling.x, lower, filling.upper, nullptr, begin, end, total).residual();
  };
  for (Index g = 0; g < sums.n_groups; ++g) {
    const Index begin = sums.starts[g], end = sums.starts[g + 1];
    if (std::isfinite(sums.low[g]))
      filling.raise(missing(begin, end, sums.low[g]), begin, end,
                    [&](Index) -> double& { return no_limit; });
    const bool unlimited = std::isinf(sums.high[g]);
    slack.push_back(unlimited ? INFINITY : std::max(missing(begin, end, sums.high[g]), 0.0));
    group.insert(group.end(), std::size_t(end - begin), g);
  }
  filling.raise(missing(0, n, sums.totals[0]), 0, n,
                [&](Index i) -> double& { return slack[group[i]]; });
}

// Restore the sums of nested groups. First correct the groups whose sums are beyond a limit or
// within rounding error of it. Then let a free coordinate of a group with slack absorb the
// difference from the total; if there is none, any coordinate of such a group. If the limits add up
// to the total, rounding may leave no slack at all; then let each group's sum exceed its limit by
// an ulp.
void restore_nested_sums(double* x, const double* lower, const double* upper, const Sums& sums,
                         const double* breakpoint) {
  const Index n = sums.starts[sums.n_groups];
  // Bounds that also respect the limits of the group sums.
  std::vector<double> least(lower, lower + n), most(upper, upper + n);
  Group all = group_at(x, least.data(), most.data(), breakpoint, 0, n, sums.totals[0]);
  enum class Absorber { free, any, any_by_an_ulp };
  for (const Absorber absorber : {Absorber::free, Absorber::any, Absorber::any_by_an_ulp}) {
    const bool by_an_ulp = absorber == Absorber::any_by_an_ulp;
    for (Index g = 0; g < sums.n_groups; ++g) {
      const Index begin = sums.starts[g], end = sums.starts[g + 1];
      Group group = group_at(x, lower, upper, breakpoint, begin, end, 0.0);
      double sum = -group.residual();
      for (const bool above : {false, true}) {
        group.total = above ? sums.high[g] : sums.low[g];
        const double rest = group.total - sum;
        if (above ? rest < 0 : rest > 0) group.restore_sum();
        else if (rest != 0) group.round_to_total(rest);
        group.total = 0.0;
        sum = -group.residual();
      }
      const double down = std::max(sum - sums.low[g], 0.0), up = std::max(sums.high[g] - sum, 0.0);
      // The coordinate that may take the group's sum beyond its limit, or -1.
      Index beyond_limit = by_an_ulp ? 0 : -1;
      for (Index i = 0; by_an_ulp && i < group.n; ++i)
        if (group.is_free(i)) beyond_limit = i;
      for (Index i = 0; i < group.n; ++i) {
        const bool stays = absorber == Absorber::free && !group.is_free(i);
        const double beyond = i == beyond_limit ? group.ulp_of(sum) : 0.0;
        const double fall = stays ? 0.0 : std::max(down, beyond),
                     rise = stays ? 0.0 : std::max(up, beyond);
        least[begin + i] = std::max(lower[begin + i], group.x[i] - fall);
        most[begin + i] = std::min(upper[begin + i], group.x[i] + rise);
      }
    }
    all.restore_sum();
    if (std::abs(all.residual()) <= all.ulp()) return;
  }
}

}  // namespace

Index first_invalid_bound(const double* lower, const double* upper, Index n, double limit) {
  for (Index i = 0; i < n; ++i) {
    const bool below = std::abs(lower[i]) < limit || lower[i] == -INFINITY;
    const bool above = std::abs(upper[i]) < limit || upper[i] == INFINITY;
    if (!(lower[i] <= upper[i] && below && above)) return i;
  }
  return -1;
}

SumRange range_of_sum(const double* lower, const double* upper, Index n, double low, double high) {
  // Return the sum of the bounds, and this sum minus the limit.
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
  restore_sums(x, lower, upper, sums);
}

void fill(const double* derivative, const double* curvature, const double* lower,
          const double* upper, const Sums& sums, double* x) {
  std::copy(lower, lower + sums.starts[sums.n_groups], x);
  Filling filling{derivative, curvature, upper, x, {}};
  double no_limit = INFINITY;
  if (sums.nested()) {
    fill_nested(filling, lower, sums);
  } else {
    for (Index k = 0; k < sums.n_groups; ++k) {
      const Index begin = sums.starts[k], end = sums.starts[k + 1];
      const double need = group_at(x, lower, upper, nullptr, begin, end, sums.totals[k]).residual();
      filling.raise(need, begin, end, [&](Index) -> double& { return no_limit; });
    }
  }
  restore_sums(x, lower, upper, sums);
}

void restore_sums(double* x, const double* lower, const double* upper, const Sums& sums,
                  const double* breakpoint) {
  if (sums.nested()) return restore_nested_sums(x, lower, upper, sums, breakpoint);
  for (Index k = 0; k < sums.n_groups; ++k)
    group_at(x, lower, upper, breakpoint, sums.starts[k], sums.starts[k + 1], sums.totals[k])
        .restore_sum();
}

}  // namespace pairstep
