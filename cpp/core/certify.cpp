#include "certify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace

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

}  // namespace pairstep
