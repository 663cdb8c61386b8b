#include "feasible.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace pairstep {

namespace {

// Three times the precision of a double, for sums whose terms cancel.
struct Sum {
  double high = 0.0, low = 0.0, rest = 0.0;

  void add(double value) { rest += two_sum(low, two_sum(high, value)); }
  double value() const { return high + (low + rest); }

 private:
  // Adds to the sum and returns what rounding takes from it.
  static double two_sum(double& sum, double value) {
    const double before = sum;
    sum = before + value;
    const double part = sum - before;
    return (before - (sum - part)) + (value - part);
  }
};

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
  double ulp() const {
    double scale = std::abs(total);
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
  // bound would become free; among those the smallest, which rounds least.
  Index taker_of(double amount) const {
    Index best = -1;
    bool best_is_free = false;
    for (Index i = 0; i < n; ++i) {
      if (!(room(i, amount) >= std::abs(amount))) continue;
      const bool free = is_free(i);
      if (best < 0 || free > best_is_free ||
          (free == best_is_free && std::abs(x[i]) < std::abs(x[best]))) {
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

void project(const double* y, const double* lower, const double* upper, const Index* starts,
             const double* totals, Index n_groups, double* x) {
  for (Index group = 0; group < n_groups; ++group) {
    const Index begin = starts[group], end = starts[group + 1];
    // x_i = clip(y_i + shift): the sum grows with the shift, piecewise linearly, so Newton's
    // method inside a bracket ends after a few passes. A coordinate is free on the side towards
    // which the shift must move; that is decided on the shift itself, where rounding cannot hide
    // a kink.
    double shift = 0.0, below = -INFINITY, above = INFINITY;
    for (int pass = 0; pass < 200; ++pass) {
      Sum sum;
      for (Index i = begin; i < end; ++i) {
        x[i] = std::min(std::max(y[i] + shift, lower[i]), upper[i]);
        sum.add(x[i]);
      }
      sum.add(-totals[group]);
      const double excess = sum.value();
      if (excess == 0.0) break;
      (excess < 0 ? below : above) = shift;
      Index free = 0;
      double kink = excess < 0 ? INFINITY : -INFINITY;  // the next shift to free a coordinate
      for (Index i = begin; i < end; ++i) {
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
  settle(x, lower, upper, starts, totals, n_groups);
}

void fill(const double* price, const double* curvature, const double* lower, const double* upper,
          const Index* starts, const double* totals, Index n_groups, double* x) {
  std::vector<std::pair<double, Index>> order;
  for (Index group = 0; group < n_groups; ++group) {
    const Index begin = starts[group], end = starts[group + 1];
    std::copy(lower + begin, lower + end, x + begin);
    double need =
        Group{x + begin, lower + begin, upper + begin, nullptr, end - begin, totals[group]}
            .residual();
    order.clear();
    for (Index i = begin; i < end; ++i) {
      const double room = std::min(upper[i] - lower[i], need);
      if (room > 0) order.push_back({price[i] + 0.5 * curvature[i] * room, i});
    }
    // Mostly one or a few are filled: a heap gives those without sorting the rest.
    std::make_heap(order.begin(), order.end(), std::greater<>());
    for (auto last = order.end(); need > 0 && last != order.begin(); --last) {
      const Index i = order.front().second;
      const double room = upper[i] - lower[i];
      x[i] = room <= need ? upper[i] : lower[i] + need;
      need -= std::min(room, need);
      std::pop_heap(order.begin(), last, std::greater<>());
    }
  }
  settle(x, lower, upper, starts, totals, n_groups);
}

void settle(double* x, const double* lower, const double* upper, const Index* starts,
            const double* totals, Index n_groups, const double* pivot) {
  for (Index k = 0; k < n_groups; ++k) {
    const Index begin = starts[k];
    Group{x + begin,
          lower + begin,
          upper + begin,
          pivot ? pivot + begin : nullptr,
          starts[k + 1] - begin,
          totals[k]}
        .settle();
  }
}

}  // namespace pairstep
