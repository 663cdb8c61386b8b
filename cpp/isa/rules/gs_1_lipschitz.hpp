// GS-1 with coordinate-wise Lipschitz constants: steepest descent in a weighted 1-norm, rooms
// included. Included once per instruction set.

namespace gs_1_lipschitz {

// One side of a trade: accounts with their key at a price of norm, best first. Buyers carry minus
// their price, so that both sides look alike.
struct Trader {
  double price, root, room, key;
  Index index;
};
using Traders = std::vector<Trader>;

// Called for nearby rho again and again: almost in order already, so insertion goes first.
inline void sort_by_key(Traders& traders, double rho) {
  for (Trader& t : traders) t.key = t.price - rho * t.root;
  const auto before = [](const Trader& p, const Trader& q) {
    return p.key > q.key || (p.key == q.key && p.index < q.index);
  };
  std::size_t patience = 4 * traders.size();
  for (std::size_t k = 1; k < traders.size(); ++k) {
    if (!before(traders[k], traders[k - 1])) continue;
    const Trader moving = traders[k];
    std::size_t to = k;
    for (; to > 0 && before(moving, traders[to - 1]); --to) traders[to] = traders[to - 1];
    traders[to] = moving;
    if (k - to > patience) return std::sort(traders.begin(), traders.end(), before);
    patience -= k - to;
  }
}

// The best move when each unit of weighted norm costs rho: dearest with cheapest while it pays.
// Returns the norm; the amounts go to sold and bought, in the order the traders are left in.
inline double match(Traders& sellers, Traders& buyers, double rho, std::vector<double>& sold,
                    std::vector<double>& bought) {
  sort_by_key(sellers, rho);
  sort_by_key(buyers, rho);
  sold.assign(sellers.size(), 0.0);
  bought.assign(buyers.size(), 0.0);
  double norm = 0.0;
  for (std::size_t s = 0, b = 0; s < sellers.size() && b < buyers.size();) {
    if (!(sellers[s].key + buyers[b].key > 0)) break;
    const double down = sellers[s].room - sold[s], up = buyers[b].room - bought[b];
    const double amount = std::min(down, up);
    sold[s] += amount;
    bought[b] += amount;
    norm += amount * (sellers[s].root + buyers[b].root);
    if (down <= amount) sold[s] = sellers[s].room, ++s;
    if (up <= amount) bought[b] = buyers[b].room, ++b;
  }
  return norm;
}

// Drop the sorted traders who cannot trade at this price: they cannot at a higher one.
inline void drop_tails(Traders& sellers, Traders& buyers) {
  const double ask = sellers.front().key, bid = buyers.front().key;
  while (sellers.size() > 1 && sellers.back().key + bid < -1e-12 * std::abs(bid))
    sellers.pop_back();
  while (buyers.size() > 1 && buyers.back().key + ask < -1e-12 * std::abs(ask)) buyers.pop_back();
}

// The same before sorting: whoever trades at all is here, so the best keys here are the best of
// all.
inline void keep_able(Traders& sellers, Traders& buyers, double rho) {
  const auto best_key = [rho](Traders& traders) {
    double best = -INFINITY;
    for (Trader& t : traders) best = std::max(best, t.key = t.price - rho * t.root);
    return best;
  };
  const double ask = best_key(sellers), bid = best_key(buyers);
  std::erase_if(sellers, [bid](const Trader& t) { return t.key + bid < -1e-12 * std::abs(bid); });
  std::erase_if(buyers, [ask](const Trader& t) { return t.key + ask < -1e-12 * std::abs(ask); });
}

// Dinkelbach's iteration: the largest (price + price) / (root + root) of a seller and a buyer.
struct BestRatio {
  double ratio = 0.0;
  std::size_t s = 0, b = 0;
};

inline BestRatio largest_ratio(const Traders& sellers, const Traders& buyers) {
  const auto best_key = [](const Traders& traders, double rho) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < traders.size(); ++k)
      if (traders[k].price - rho * traders[k].root > traders[best].price - rho * traders[best].root)
        best = k;
    return best;
  };
  BestRatio best;
  if (sellers.empty() || buyers.empty()) return best;
  for (double rho = 0.0;;) {
    const std::size_t s = best_key(sellers, rho), b = best_key(buyers, rho);
    rho = (sellers[s].price + buyers[b].price) / (sellers[s].root + buyers[b].root);
    if (!(rho > best.ratio)) return best;
    best = {rho, s, b};
  }
}

// The rho with N(rho) = alpha rho by bisection in [below, above]; N(below) > alpha below holds. It
// goes by the geometric mean until both are of one size, and ends where no number lies between.
inline std::pair<double, double> balance(Traders& sellers, Traders& buyers, const Choice& choice,
                                         double below, double above) {
  std::vector<double> sold, bought;
  const auto middle_of = [](double low, double high) {
    return low > 0 && high > 4.0 * low ? std::sqrt(low) * std::sqrt(high) : 0.5 * (low + high);
  };
  for (double middle; below < (middle = middle_of(below, above)) && middle < above;) {
    choice.beat();  // thousands of traders may be sorted each time
    if (match(sellers, buyers, middle, sold, bought) > choice.alpha * middle) {
      below = middle;
      drop_tails(sellers, buyers);
    } else {
      above = middle;
    }
  }
  return {below, above};
}

template <class A>
void steepest(const A& a, const Extremes& ends, const Choice& choice, double least, Move& move) {
  const double* lipschitz = choice.lipschitz;
  const double alpha = choice.alpha;
  const double dearest = ends.seller.value, cheapest = -ends.buyer.value;
  double reach = INFINITY;  // no account moves further than reach / root
  const auto traders_of = [&](const std::vector<Index>& list, bool selling) {
    Traders traders;
    for (const Index p : list) {
      const double room = selling ? a.template down_room<double>(p) : a.template up_room<double>(p);
      const double root = std::sqrt(lipschitz[p]);
      if (room > 0)
        traders.push_back(
            {selling ? a.template down_price<double>(p) : -a.template up_price<double>(p), root,
             std::min(room, reach / root), 0.0, p});
    }
    return traders;
  };
  // All who can trade at rho (0: at any price) or above. A seller must beat the cheapest buyer's
  // key, which is at least cheapest + rho sqrt(least): root_i <= (price_i - cheapest) / rho -
  // sqrt(least).
  const auto traders_at = [&](double rho) {
    const double per_rho = (1.0 + 1e-12) / rho, low = std::sqrt(least);
    std::vector<Index> sellers, buyers;
    collect<2>(a.n, {&sellers, &buyers}, [&]<class T>(Index p) {
      const T constant = load<T>(lipschitz + p), no = all<T>(-1.0), zero = all<T>(0.0);
      const T sell = (a.template down_price<T>(p) - cheapest) * per_rho - low;
      const T buy = (dearest - a.template up_price<T>(p)) * per_rho - low;
      return std::array<T, 2>{sell >= zero ? sell * sell * (1.0 + 1e-12) - constant : no,
                              buy >= zero ? buy * buy * (1.0 + 1e-12) - constant : no};
    });
    std::pair traders{traders_of(sellers, true), traders_of(buyers, false)};
    keep_able(traders.first, traders.second, rho);
    return traders;
  };

  // Dinkelbach's iteration: to its end on a sample, one step over all, and to its end on those who
  // can still matter.
  const auto some_sellers = traders_of(sample_of(a.n, {ends.seller.index}), true);
  const auto some_buyers = traders_of(sample_of(a.n, {ends.buyer.index}), false);
  double ratio = largest_ratio(some_sellers, some_buyers).ratio;
  const auto found = argmax<2>(a.n, [&]<class T>(Index p) {
    const T cost = ratio * square_root(load<T>(lipschitz + p));
    return std::array<T, 2>{a.template down_price<T>(p) - cost, -a.template up_price<T>(p) - cost};
  });
  if (const Index i = found[0].index, j = found[1].index; i >= 0 && j >= 0)
    ratio = std::max(ratio, gap_of(a, i, j) / (std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j])));
  double below = 0.6 * ratio;
  auto [sellers, buyers] = traders_at(below);
  const BestRatio best = largest_ratio(sellers, buyers);
  if (!(best.ratio > 0)) return;
  const Trader &seller = sellers[best.s], &buyer = buyers[best.b];
  const double width = seller.root + buyer.root;
  if (alpha * best.ratio / width <= std::min(seller.room, buyer.room))
    return best_pair_move(a, seller.index, buyer.index, width * width, alpha, move);

  // Rooms matter. Those at hand are all who can trade at `below`: if they trade enough, that proves
  // rho to be above it. Otherwise the price goes down and more join.
  reach = alpha * best.ratio;
  for (Trader& t : sellers) t.room = std::min(t.room, reach / t.root);
  for (Trader& t : buyers) t.room = std::min(t.room, reach / t.root);
  std::vector<double> sold, bought;
  double above = best.ratio * (1.0 + 1e-12);  // where nothing trades, rounding included
  // Slowly at first, for the fewer join the less there is to sort; then ever faster, so that 0 is
  // reached after some seventy rounds at most. There the dearest and the cheapest trade, be it less
  // than can be told from nothing.
  constexpr int SLOWLY = 10;
  double shrink = 0.7;
  for (int round = 1; !(match(sellers, buyers, below, sold, bought) > alpha * below); ++round) {
    if (round > SLOWLY) shrink *= 0.7;
    if (below == 0) break;
    choice.beat();
    above = below;
    below *= shrink;
    std::tie(sellers, buyers) = traders_at(below);
  }
  drop_tails(sellers, buyers);
  std::tie(below, above) = balance(sellers, buyers, choice, below, above);

  // At a step of the norm both one-sided matchings are optimal: combine them to N = alpha rho.
  struct Change {
    Index index;
    double by[2];  // in the matching at `below`, and in that at `above`
  };
  std::vector<Change> changes;
  double norms[2];
  for (int side = 0; side < 2; ++side) {
    norms[side] = match(sellers, buyers, side ? above : below, sold, bought);
    const auto enter = [&](Index p, double amount) {
      if (amount != 0) changes.push_back({p, {side ? 0.0 : amount, side ? amount : 0.0}});
    };
    for (std::size_t s = 0; s < sellers.size(); ++s) enter(sellers[s].index, -sold[s]);
    for (std::size_t b = 0; b < buyers.size(); ++b) enter(buyers[b].index, bought[b]);
  }
  // One change for each account: where constants are far apart it may sell in one matching and buy
  // in the other.
  std::sort(changes.begin(), changes.end(),
            [](const Change& p, const Change& q) { return p.index < q.index; });
  std::size_t count = 0;
  for (const Change& change : changes)
    if (count > 0 && changes[count - 1].index == change.index)
      for (int side = 0; side < 2; ++side) changes[count - 1].by[side] += change.by[side];
    else changes[count++] = change;
  changes.resize(count);
  const double spread = norms[0] - norms[1];
  const double mix =
      spread > 0 ? std::min(std::max((alpha * above - norms[1]) / spread, 0.0), 1.0) : 0.0;
  double level = -INFINITY;  // the dearest purchase, which no sale is below
  for (const Change& change : changes) {
    const auto [wide, narrow] = change.by;
    const double delta = wide == narrow ? wide : narrow + mix * (wide - narrow);
    if (delta == 0.0) continue;
    move.add(change.index, delta);
    if (delta > 0) level = std::max(level, a.template up_price<double>(change.index));
  }
  // Counted from the level, no term is below 0: nothing cancels.
  double norm = 0.0, saved = 0.0;
  for (std::size_t k = 0; k < move.index.size(); ++k) {
    const Index p = move.index[k];
    const double delta = move.delta[k];
    norm += std::sqrt(lipschitz[p]) * std::abs(delta);
    saved += delta < 0 ? -delta * (a.template down_price<double>(p) - level)
                       : delta * (level - a.template up_price<double>(p));
  }
  move.decrease = std::max(saved - 0.5 * norm * norm / alpha, 0.0);
}

struct Gs1Lipschitz {
  static constexpr Rule about{.name = "gs-1-lipschitz", .weighted = true, .one_norm = true};
  static constexpr bool asks_for_range = true;

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    steepest(a, q.ends, q.choice, q.constants.least, move);
  }
};

using Rules = RuleList<Gs1Lipschitz>;

}  // namespace gs_1_lipschitz
