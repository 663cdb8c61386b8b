#include "certify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nested.hpp"

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

// What a trade leaves over, for another: what was not traded, and what was, back.
struct Left {
  std::vector<Stretch> sellers, buyers;

  void add(const Stretch& stretch, double size, double traded, bool sold) {
    if (traded > 0) (sold ? buyers : sellers).push_back({stretch.price, traded});
    if (size > traded) (sold ? sellers : buyers).push_back({stretch.price, size - traded});
  }
};

// What is gained by trading stretches, best first, while that gains; of each at most `reach`. Every
// term is positive, so nothing cancels.
double gain_of(const std::vector<Stretch>& sellers, const std::vector<Stretch>& buyers,
               double reach, Left* left = nullptr) {
  if (reach == 0.0) return 0.0;
  double gain = 0.0, sold = 0.0, bought = 0.0;
  std::size_t s = 0, b = 0;
  while (s < sellers.size() && b < buyers.size()) {
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
  if (!left) return gain;
  for (std::size_t k = 0; k < sellers.size(); ++k) {
    const double size = std::min(sellers[k].size, reach);
    left->add(sellers[k], size, k < s ? size : k == s ? sold : 0.0, true);
  }
  for (std::size_t k = 0; k < buyers.size(); ++k) {
    const double size = std::min(buyers[k].size, reach);
    left->add(buyers[k], size, k < b ? size : k == b ? bought : 0.0, false);
  }
  return gain;
}

void sort_best_first(std::vector<Stretch>& sellers, std::vector<Stretch>& buyers) {
  std::sort(sellers.begin(), sellers.end(),
            [](const Stretch& a, const Stretch& b) { return a.price > b.price; });
  std::sort(buyers.begin(), buyers.end(),
            [](const Stretch& a, const Stretch& b) { return a.price < b.price; });
}

double largest_of(const Point& point, Index begin, Index end) {
  double largest = 0.0;
  for (Index i = begin; i < end; ++i) largest = std::max(largest, std::abs(point.x[i]));
  return largest;
}

Market market_of(const Point& point, Index begin, Index end, double grain) {
  Market market;
  for (Index i = begin; i < end; ++i)
    for_stretches(point, i, grain, [&](bool up, Stretch s) {
      if (up) market.cheapest = std::min(market.cheapest, s.price);
      else market.dearest = std::max(market.dearest, s.price);
    });
  return market;
}

// The stretches of a group that can be traded at these prices, best first.
void stretches_of(const Point& point, Index begin, Index end, double grain, const Market& market,
                  std::vector<Stretch>& sellers, std::vector<Stretch>& buyers) {
  sellers.clear();
  buyers.clear();
  for (Index i = begin; i < end; ++i)
    for_stretches(point, i, grain, [&](bool up, Stretch s) {
      if (up && s.price < market.dearest) buyers.push_back(s);
      if (!up && s.price > market.cheapest) sellers.push_back(s);
    });
  sort_best_first(sellers, buyers);
}

// Any price between the two supports the point; one side is infinite where all are at a bound.
double level_of(const Market& market) {
  const bool down = std::isfinite(market.dearest), up = std::isfinite(market.cheapest);
  if (down && up) return 0.5 * (market.dearest + market.cheapest);
  return down ? market.dearest : up ? market.cheapest : 0.0;
}

// The first of the stretches up to so much in all.
void append_up_to(double room, const std::vector<Stretch>& from, std::vector<Stretch>& to) {
  for (const Stretch& s : from) {
    if (!(room > 0)) return;
    to.push_back({s.price, std::min(s.size, room)});
    room -= to.back().size;
  }
}

// max_s g'(x - s) over the feasible s: each group trades within itself, then with the others what
// that leaves over, as far as its sum may go.
double gain_of_nested(const Point& point, const GroupRooms& rooms, double grain,
                      const std::vector<Market>& markets, double reach) {
  double gain = 0.0;
  std::vector<Stretch> sellers, buyers;
  Left all;
  for (Index g = 0; g < point.n_groups; ++g) {
    stretches_of(point, point.starts[g], point.starts[g + 1], grain, markets[g], sellers, buyers);
    Left left;
    gain += gain_of(sellers, buyers, reach, &left);
    sort_best_first(left.sellers, left.buyers);
    append_up_to(rooms.down[g], left.sellers, all.sellers);
    append_up_to(rooms.up[g], left.buyers, all.buyers);
  }
  sort_best_first(all.sellers, all.buyers);
  return gain + gain_of(all.sellers, all.buyers, INFINITY);
}

Certificate certify_nested(const Point& point) {
  Certificate certificate;
  const GroupRooms rooms = rooms_of(point);
  const double largest = largest_of(point, 0, point.n);
  const double grain = 8.0 * std::numeric_limits<double>::epsilon() * largest;
  std::vector<Market> markets;
  for (Index g = 0; g < point.n_groups; ++g) {
    markets.push_back(market_of(point, point.starts[g], point.starts[g + 1], grain));
    certificate.violation =
        std::max(certificate.violation, markets[g].dearest - markets[g].cheapest);
  }
  const Market all = across(markets, rooms);
  certificate.violation = std::max(certificate.violation, all.dearest - all.cheapest);
  const double level = level_of(all);
  certificate.multiplier.push_back(level);
  for (Index g = 0; g < point.n_groups; ++g) {
    // Of all prices that support the group the nearest to that of the total.
    const auto [dearest, cheapest] = markets[g];
    const double own =
        dearest <= cheapest ? std::clamp(level, dearest, cheapest) : level_of(markets[g]);
    certificate.multiplier.push_back(std::clamp(own - level, rooms.up[g] > 0 ? 0.0 : -INFINITY,
                                                rooms.down[g] > 0 ? 0.0 : INFINITY));
  }
  if (!(certificate.violation > 0)) return certificate;
  open_to(all, rooms, markets);
  certificate.bound = gain_of_nested(point, rooms, grain, markets, INFINITY);
  certificate.nearby = gain_of_nested(point, rooms, grain, markets, largest);
  return certificate;
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
  if (point.nested()) return certify_nested(point);
  Certificate certificate;
  certificate.multiplier.reserve(std::size_t(point.n_groups));
  std::vector<Stretch> sellers, buyers;
  for (auto* side : {&sellers, &buyers}) side->reserve(std::size_t(std::min<Index>(point.n, 16)));
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double largest = largest_of(point, begin, end);
    const double grain = 8.0 * std::numeric_limits<double>::epsilon() * largest;
    const Market market = market_of(point, begin, end, grain);
    certificate.violation = std::max(certificate.violation, market.dearest - market.cheapest);
    certificate.multiplier.push_back(level_of(market));
    if (!(market.dearest > market.cheapest)) continue;
    // max_s g'(x - s) over the feasible s: trade the dearest for the cheapest while that gains.
    stretches_of(point, begin, end, grain, market, sellers, buyers);
    certificate.bound += gain_of(sellers, buyers, INFINITY);
    certificate.nearby += gain_of(sellers, buyers, largest);
  }
  return certificate;
}

}  // namespace pairstep
