// GS-q: the pair with the largest decrease of the model, rooms included. Included once per
// instruction set.

namespace gs_q {

struct Stair {  // with at least this room, this is the best price
  double room, price;
  Index index;
};

// Sort by falling room; each entry then carries the best price among those before it.
inline void make_staircase(std::vector<Stair>& stairs) {
  std::sort(stairs.begin(), stairs.end(), [](const Stair& a, const Stair& b) {
    return a.room > b.room || (a.room == b.room && a.index < b.index);
  });
  for (std::size_t k = 1; k < stairs.size(); ++k)
    if (!(stairs[k].price > stairs[k - 1].price)) {
      stairs[k].price = stairs[k - 1].price;
      stairs[k].index = stairs[k - 1].index;
    }
}

// The best pair among some sellers and some buyers, by merging their staircases.
template <class A>
Champion best_of_stairs(const A& a, const std::vector<Index>& some_sellers,
                        const std::vector<Index>& some_buyers, double curvature) {
  std::vector<Stair> sellers, buyers;
  for (const Index i : some_sellers)
    if (const double room = a.template down_room<double>(i); room > 0)
      sellers.push_back({room, a.template down_price<double>(i), i});
  for (const Index j : some_buyers)
    if (const double room = a.template up_room<double>(j); room > 0)
      buyers.push_back({room, -a.template up_price<double>(j), j});
  make_staircase(sellers);
  make_staircase(buyers);
  // Limits in falling order; the later of equal gains wins, as the smallest limit does in NumPy.
  Champion best{0.0, -1, -1};
  std::size_t s = 0, b = 0;
  while (s < sellers.size() || b < buyers.size()) {
    const double limit = std::max(s < sellers.size() ? sellers[s].room : 0.0,
                                  b < buyers.size() ? buyers[b].room : 0.0);
    while (s < sellers.size() && sellers[s].room >= limit) ++s;
    while (b < buyers.size() && buyers[b].room >= limit) ++b;
    if (s == 0 || b == 0) continue;
    const double gap = sellers[s - 1].price + buyers[b - 1].price;
    const double gain = gain_of<double>(gap, limit, curvature);
    if (gain >= best.gain) best = {gain, sellers[s - 1].index, buyers[b - 1].index};
  }
  return best;
}

struct GsQ {
  static constexpr Rule about{.name = "gs-q", .uses_alpha = true};

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const double alpha = q.choice.alpha;
    const Index dear = q.ends.seller.index, cheap = q.ends.buyer.index;
    // No gain exceeds that of the widest gap without rooms.
    if (0.5 * alpha * q.ends.gap() <= room_of(a, dear, cheap))
      return best_pair_move(a, dear, cheap, 2.0, alpha, move);
    const Champion best = prune_and_solve(a, q.ends, nullptr, alpha, 1.0,
                                          [&](const auto& sellers, const auto& buyers) {
                                            return best_of_stairs(a, sellers, buyers, 2.0 / alpha);
                                          });
    best_pair_move(a, best.i, best.j, 2.0, alpha, move);
  }
};

using Rules = RuleList<GsQ>;

}  // namespace gs_q
