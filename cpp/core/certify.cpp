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

// Calls visit(is_up, stretch) for the stretches below and above x_i: up to the next bound or kink,
// and from the kink to the bound. What is closer to its kink than `grain`, the rounding of the
// sums, counts as on it.
template <class Visit>
void for_stretches(const Point& p, Index i, double grain, Visit visit) {
  double x = p.x[i];
  if (p.kink && std::abs(x - p.pivot[i]) <= grain)
    x = std::clamp(p.pivot[i], p.lower[i], p.upper[i]);
  const Standing here = standing_at(p, i, x);
  const double floor = floor_at(p, i, x), ceiling = ceiling_at(p, i, x);
  if (here.down_room > 0) visit(false, Stretch{p.gradient[i] + here.down_shift, here.down_room});
  if (here.up_room > 0) visit(true, Stretch{p.gradient[i] + here.up_shift, here.up_room});
  if (floor > p.lower[i]) visit(false, Stretch{p.gradient[i] - p.kink[i], floor - p.lower[i]});
  if (ceiling < p.upper[i]) visit(true, Stretch{p.gradient[i] + p.kink[i], p.upper[i] - ceiling});
}

// What is gained by trading stretches, best first, while that gains; of each at most `reach`.
double gain_of(const std::vector<Stretch>& sellers, const std::vector<Stretch>& buyers,
               double reach) {
  if (reach == 0.0) return 0.0;
  double gain = 0.0, sold = 0.0, bought = 0.0;
  for (std::size_t s = 0, b = 0; s < sellers.size() && b < buyers.size();) {
    const double gap = sellers[s].price - buyers[b].price;
    if (!(gap > 0)) break;
    const double down = std::min(sellers[s].size, reach) - sold,
                 up = std::min(buyers[b].size, reach) - bought, amount = std::min(down, up);
    gain += gap * amount;
    if (!std::isfinite(amount)) break;
    sold = down <= amount ? 0.0 : sold + amount;
    bought = up <= amount ? 0.0 : bought + amount;
    s += down <= amount;
    b += up <= amount;
  }
  return gain;
}

}  // namespace

Terms terms_of(const Point& point, const double* linear) {
  double largest = 0.0, product = 0.0, constant = 0.0;
  for (Index i = 0; i < point.n; ++i) {
    const double fixed = linear ? linear[i] : 0.0, moving = point.gradient[i] - fixed;
    largest = std::max({largest, std::abs(moving), std::abs(fixed)});
    product += point.x[i] * moving;
    constant += point.x[i] * fixed;
  }
  if (point.kink)
    for (Index i = 0; i < point.n; ++i) largest = std::max(largest, point.kink[i]);
  if (!linear) return {largest, 0.0};
  return {largest, std::max(0.5 * std::abs(product), std::abs(constant))};
}

bool is_optimal(const Certificate& certificate, const Terms& terms, double value, double tol) {
  const auto& [violation, bound, nearby, multiplier] = certificate;
  return violation <= tol * terms.gradient &&
         (nearby <= GAIN * tol * std::max(terms.objective, std::abs(value)) ||
          violation <= ROUNDED * terms.gradient);
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
    certificate.bound += gain_of(sellers, buyers, INFINITY);
    certificate.nearby += gain_of(sellers, buyers, largest);
  }
  return certificate;
}

}  // namespace pairstep
