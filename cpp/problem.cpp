#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace pairstep {

namespace {

// A stretch of an account with one price: [x, next kink or bound], or beyond the kink.
struct Stretch {
  double price, size;
};

// Calls visit(is_up, stretch) for the stretches below and above x_i. What is closer to its kink
// than `grain`, the rounding of the sums, counts as on it.
template <class Visit>
void for_stretches(const Point& p, Index i, double grain, Visit visit) {
  const double g = p.gradient[i], low = p.lower[i], high = p.upper[i];
  const bool on_kink = p.kink && std::abs(p.x[i] - p.pivot[i]) <= grain;
  const double x = on_kink ? std::min(std::max(p.pivot[i], low), high) : p.x[i];
  if (!p.kink || p.kink[i] == 0.0) {
    if (x > low) visit(false, Stretch{g, x - low});
    if (x < high) visit(true, Stretch{g, high - x});
    return;
  }
  const double k = p.kink[i], pivot = std::min(std::max(p.pivot[i], low), high);
  const bool on_left = p.pivot[i] > high, on_right = p.pivot[i] < low;
  if (x > pivot) visit(false, Stretch{g + k, x - pivot});
  if (std::min(x, pivot) > low)
    visit(false, Stretch{on_right ? g + k : g - k, std::min(x, pivot) - low});
  if (x < pivot) visit(true, Stretch{g - k, pivot - x});
  if (std::max(x, pivot) < high)
    visit(true, Stretch{on_left ? g - k : g + k, high - std::max(x, pivot)});
}

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

Certificate certify(const Point& point) {
  Certificate certificate;
  std::vector<Stretch> sellers, buyers;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    double dearest = -INFINITY, cheapest = INFINITY, largest = 0.0;
    for (Index i = begin; i < end; ++i) largest = std::max(largest, std::abs(point.x[i]));
    const double grain = 8.0 * std::numeric_limits<double>::epsilon() * largest;
    for (Index i = begin; i < end; ++i)
      for_stretches(point, i, grain, [&](bool up, Stretch s) {
        if (up) cheapest = std::min(cheapest, s.price);
        else dearest = std::max(dearest, s.price);
      });
    certificate.violation = std::max(certificate.violation, dearest - cheapest);
    // Any price between the two supports the point; one side is infinite where all are at a bound.
    const bool down = std::isfinite(dearest), up = std::isfinite(cheapest);
    certificate.multiplier.push_back(down && up ? 0.5 * (dearest + cheapest)
                                     : down     ? dearest
                                     : up       ? cheapest
                                                : 0.0);
    if (!(dearest > cheapest)) continue;
    // max_s g'(x - s) over the feasible s: trade the dearest for the cheapest while that gains.
    // Every term is positive, so nothing cancels.
    sellers.clear();
    buyers.clear();
    for (Index i = begin; i < end; ++i)
      for_stretches(point, i, grain, [&](bool up_side, Stretch s) {
        if (up_side && s.price < dearest) buyers.push_back(s);
        if (!up_side && s.price > cheapest) sellers.push_back(s);
      });
    std::sort(sellers.begin(), sellers.end(),
              [](const Stretch& a, const Stretch& b) { return a.price > b.price; });
    std::sort(buyers.begin(), buyers.end(),
              [](const Stretch& a, const Stretch& b) { return a.price < b.price; });
    for (std::size_t s = 0, b = 0; s < sellers.size() && b < buyers.size();) {
      const double gap = sellers[s].price - buyers[b].price;
      if (!(gap > 0)) break;
      const double amount = std::min(sellers[s].size, buyers[b].size);
      certificate.bound += gap * amount;
      if (!std::isfinite(amount)) break;
      sellers[s].size -= amount;
      buyers[b].size -= amount;
      if (sellers[s].size <= 0) ++s;
      if (buyers[b].size <= 0) ++b;
    }
  }
  return certificate;
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
