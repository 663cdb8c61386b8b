#include "feasible.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace pairstep {

namespace {

// Twice the precision of a double, for sums.
struct Sum {
  double high = 0.0, low = 0.0;

  void add(double value) {
    const double sum = high + value, part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  double value() const { return high + low; }
};

double residual(const double* x, Index begin, Index end, double total) {
  Sum sum;
  for (Index i = begin; i < end; ++i) sum.add(-x[i]);
  sum.add(total);
  return sum.value();
}

}  // namespace

Index first_crossed(const double* lower, const double* upper, Index n) {
  for (Index i = 0; i < n; ++i)
    if (!(lower[i] <= upper[i]) || lower[i] == INFINITY || upper[i] == -INFINITY) return i;
  return -1;
}

Span span_of(const double* lower, const double* upper, Index n) {
  const auto add_up = [n](const double* bound, double& size) {
    Sum sum;
    double beyond = 0.0;
    for (Index i = 0; i < n; ++i) {
      if (std::isinf(bound[i])) beyond = bound[i];
      else {
        sum.add(bound[i]);
        size += std::abs(bound[i]);
      }
    }
    return beyond != 0.0 ? beyond : sum.value();
  };
  Span span;
  double above = 0.0;
  span.least = add_up(lower, span.size);
  span.most = add_up(upper, above);
  span.size = std::max(span.size, above);
  return span;
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
    double need = residual(x, begin, end, totals[group]);
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
  for (Index group = 0; group < n_groups; ++group) {
    const Index begin = starts[group], end = starts[group + 1];
    for (int round = 0; round < 16; ++round) {
      const double rest = residual(x, begin, end, totals[group]);
      double scale = std::abs(totals[group]);
      for (Index i = begin; i < end; ++i) scale = std::max(scale, std::abs(x[i]));
      const double ulp = std::nextafter(scale, INFINITY) - scale;
      if (rest == 0.0) break;
      // Prefer a free coordinate, for one at its bound would become free; among those with enough
      // room the smallest, which rounds least; without enough room the roomiest.
      Index best = -1;
      bool best_is_free = false;
      double best_score = -INFINITY;
      for (Index i = begin; i < end; ++i) {
        const double room = rest > 0 ? upper[i] - x[i] : x[i] - lower[i];
        if (!(room > 0)) continue;
        const bool free = x[i] > lower[i] && x[i] < upper[i] && !(pivot && x[i] == pivot[i]);
        const double score = room < std::abs(rest) ? -1e300 + std::min(room, 1e290)
                             : free                ? -std::abs(x[i])
                                                   : -1e200 - std::min(std::abs(x[i]), 1e190);
        if (score > best_score) {
          best_score = score;
          best = i;
          best_is_free = free;
        }
      }
      if (best < 0) break;
      // An ulp is not worth leaving a bound or a kink for.
      if (!best_is_free && std::abs(rest) <= ulp) break;
      const double before = x[best];
      x[best] = std::min(std::max(before + rest, lower[best]), upper[best]);
      if (x[best] == before) break;
    }
  }
}

}  // namespace pairstep
