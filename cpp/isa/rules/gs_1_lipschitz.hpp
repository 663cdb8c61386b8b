// GS-1 with coordinate-wise Lipschitz constants: steepest descent in a weighted 1-norm, rooms
// included. Included once per instruction set.
//
// A unit of norm costs rho, and a unit changes hands at a level of prices: whoever sells has a
// price less rho root above the level, whoever buys has one plus rho root below it. The optimal rho
// and level minimise a convex function, the dual:
//
//   alpha rho^2 / 2 + sum over sellers of room (price - level - rho root)+
//                   + sum over buyers of room (level - price - rho root)+
//
// whose slopes are alpha rho - N, N the norm of the trade, and what is bought less what is sold.

namespace gs_1_lipschitz {

// One side of a trade. Buyers carry minus their price, so that both sides look alike.
struct Trader {
  double price, root, room, key;
  Index index;
};
using Traders = std::vector<Trader>;

struct Traded {
  double amount = 0.0, norm = 0.0;

  void add(const Trader& trader, double part) {
    amount += part;
    norm += part * trader.root;
  }
};

// A corner of the region, or any other place in it.
struct Place {
  double rho, level;
};

// A convex region of prices of norm and levels, in which the optimum lies.
class Region {
 public:
  Region(double rho, double low, double high)
      : corners_{{0.0, low}, {rho, low}, {rho, high}, {0.0, high}} {}

  // Its centre of gravity: every cut through it leaves less than two thirds.
  Place centre() const {
    const Place first = corners_[0];
    double area = 0.0, rho = 0.0, level = 0.0;
    for (std::size_t k = 2; k < corners_.size(); ++k) {
      const Place a{corners_[k - 1].rho - first.rho, corners_[k - 1].level - first.level};
      const Place b{corners_[k].rho - first.rho, corners_[k].level - first.level};
      const double triangle = a.rho * b.level - a.level * b.rho;
      area += triangle;
      rho += triangle * (a.rho + b.rho);
      level += triangle * (a.level + b.level);
    }
    if (!(area > 0)) return first;
    return {first.rho + rho / (3.0 * area), first.level + level / (3.0 * area)};
  }

  // Leave the side on which a convex function with these slopes at `at` can be smaller than there.
  // False if rounding leaves nothing.
  bool cut(const Place& at, double by_rho, double by_level) {
    const auto rise = [&](const Place& corner) {
      return by_rho * (corner.rho - at.rho) + by_level * (corner.level - at.level);
    };
    std::vector<Place> left;
    for (std::size_t k = 0; k < corners_.size(); ++k) {
      const Place &corner = corners_[k], &next = corners_[(k + 1) % corners_.size()];
      const double here = rise(corner), there = rise(next);
      if (here <= 0) left.push_back(corner);
      if ((here < 0 && there > 0) || (here > 0 && there < 0)) {
        const double share = here / (here - there);
        left.push_back({corner.rho + share * (next.rho - corner.rho),
                        corner.level + share * (next.level - corner.level)});
      }
    }
    if (left.size() < 3) return false;
    corners_.swap(left);
    return true;
  }

  // The least and the most of rho root + side level.
  Range cost(double root, double side) const {
    Range range{INFINITY, -INFINITY};
    for (const Place& corner : corners_) {
      const double cost = corner.rho * root + side * corner.level;
      range = {std::min(range.least, cost), std::max(range.most, cost)};
    }
    return range;
  }

 private:
  std::vector<Place> corners_;
};

// Narrow the region down, until no more than `few` may trade or not; the others are dropped, or are
// `certain` to trade all they can.
inline Region narrow(std::array<Traders, 2>& traders, std::array<Traders, 2>& certain, double alpha,
                     double most, std::size_t few) {
  constexpr int CUTS = 64, SPLIT_EVERY = 4;
  constexpr std::array<double, 2> SIDE{1.0, -1.0};
  std::array<double, 2> dearest{-INFINITY, -INFINITY};
  std::array<Traded, 2> sure;
  for (int k = 0; k < 2; ++k)
    for (const Trader& trader : traders[k]) dearest[k] = std::max(dearest[k], trader.price);
  Region region(most, -dearest[1], dearest[0]);
  for (int cut = 1; cut <= CUTS && traders[0].size() + traders[1].size() > few; ++cut) {
    const Place at = region.centre();
    std::array<Traded, 2> traded = sure;
    for (int k = 0; k < 2; ++k)
      for (const Trader& t : traders[k])
        traded[k].add(t, t.price - at.rho * t.root > SIDE[k] * at.level ? t.room : 0.0);
    const double norm = traded[0].norm + traded[1].norm;
    if (!region.cut(at, alpha * at.rho - norm, traded[1].amount - traded[0].amount)) break;
    if (cut % SPLIT_EVERY != 0) continue;
    for (int k = 0; k < 2; ++k)
      std::erase_if(traders[k], [&](const Trader& t) {
        const auto [least, most_cost] = region.cost(t.root, SIDE[k]);
        const double rounding = 1e-12 * (std::abs(t.price) + std::abs(least) + std::abs(most_cost));
        if (t.price > most_cost + rounding) {
          sure[k].add(t, t.room);
          certain[k].push_back(t);
          return true;
        }
        return t.price < least - rounding;
      });
  }
  return region;
}

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
// Returns the norm; the amounts go to `amounts`, in the order the traders are left in.
inline double match(std::array<Traders, 2>& traders, double rho,
                    std::array<std::vector<double>, 2>& amounts) {
  for (int k = 0; k < 2; ++k) {
    sort_by_key(traders[k], rho);
    amounts[k].assign(traders[k].size(), 0.0);
  }
  auto& [sellers, buyers] = traders;
  auto& [sold, bought] = amounts;
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

// Dinkelbach's iteration: the largest (price + price) / (root + root) of a seller and a buyer.
struct BestRatio {
  double ratio = 0.0;
  std::size_t s = 0, b = 0;
};

inline BestRatio largest_ratio(const std::array<Traders, 2>& traders) {
  const auto best_key = [](const Traders& side, double rho) {
    std::size_t best = 0;
    double most = -INFINITY;
    for (std::size_t k = 0; k < side.size(); ++k)
      if (const double key = side[k].price - rho * side[k].root; key > most) {
        most = key;
        best = k;
      }
    return best;
  };
  const auto& [sellers, buyers] = traders;
  BestRatio best;
  if (sellers.empty() || buyers.empty()) return best;
  for (double rho = 0.0;;) {
    const std::size_t s = best_key(sellers, rho), b = best_key(buyers, rho);
    rho = (sellers[s].price + buyers[b].price) / (sellers[s].root + buyers[b].root);
    if (!(rho > best.ratio)) return best;
    best = {rho, s, b};
  }
}

// The rho with N(rho) = alpha rho by bisection in `range`, N more than `norm` already. It goes by
// the geometric mean until both are of one size, and ends where no number lies between.
inline Range balance(std::array<Traders, 2>& traders, double norm, const Choice& choice,
                     Range range) {
  std::array<std::vector<double>, 2> amounts;
  auto [below, above] = range;
  const auto middle_of = [](double low, double high) {
    return low > 0 && high > 4.0 * low ? std::sqrt(low) * std::sqrt(high) : 0.5 * (low + high);
  };
  for (double middle; below < (middle = middle_of(below, above)) && middle < above;) {
    choice.beat();  // thousands of traders may be sorted each time
    if (norm + match(traders, middle, amounts) > choice.alpha * middle) below = middle;
    else above = middle;
  }
  return {below, above};
}

// What is known of the optimum: its rho, that its level is no lower than `bought`, the price and
// the norm of the dearest purchase, and no higher than `sold`, those of the cheapest sale; and the
// mean root of its traders.
struct Optimum {
  double rho = 0.0, bought = -INFINITY, sold = INFINITY, root = 0.0;
};

// No account moves further than the best pair would without rooms.
inline BestRatio cap_rooms(std::array<Traders, 2>& traders, double alpha) {
  const BestRatio best = largest_ratio(traders);
  for (Traders& side : traders)
    for (Trader& t : side) t.room = std::min(t.room, alpha * best.ratio / t.root);
  return best;
}

// The best move of some traders.
template <class A>
Optimum steepest(const A& a, std::array<Traders, 2> traders, const Choice& choice, Move& move) {
  move.clear();
  const double alpha = choice.alpha;
  const BestRatio best = cap_rooms(traders, alpha);
  if (!(best.ratio > 0)) return {};
  const Trader &seller = traders[0][best.s], &buyer = traders[1][best.b];
  const double width = seller.root + buyer.root;
  if (alpha * best.ratio / width <= std::min(seller.room, buyer.room)) {
    best_pair_move(a, seller.index, buyer.index, width * width, alpha, move);
    return {best.ratio, best.ratio * buyer.root - buyer.price,
            seller.price - best.ratio * seller.root, 0.5 * width};
  }
  std::array<Traders, 2> certain;
  const double most = best.ratio * (1.0 + 1e-12);  // where nothing trades, rounding included
  const Region region = narrow(traders, certain, alpha, most, 64);
  // Those who trade for certain stand at the head as one: what they are ahead of the other side.
  std::array<Traded, 2> sure;
  for (int k = 0; k < 2; ++k)
    for (const Trader& t : certain[k]) sure[k].add(t, t.room);
  for (int k = 0; k < 2; ++k)
    traders[k].push_back(
        {INFINITY, 0.0, std::max(sure[k].amount - sure[1 - k].amount, 0.0), 0.0, -1});
  const double norm = sure[0].norm + sure[1].norm;
  const auto [below, above] = balance(traders, norm, choice, region.cost(1.0, 0.0));

  // At a step of the norm both one-sided matchings are optimal: combine them to N = alpha rho.
  struct Change {
    Index index;
    double by[2];  // in the matching at `below`, and in that at `above`
  };
  std::vector<Change> changes;
  constexpr std::array<double, 2> SIGN{-1.0, 1.0};
  for (int k = 0; k < 2; ++k)
    for (const Trader& t : certain[k])
      changes.push_back({t.index, {SIGN[k] * t.room, SIGN[k] * t.room}});
  double norms[2];
  std::array<std::vector<double>, 2> amounts;
  for (int side = 0; side < 2; ++side) {
    norms[side] = norm + match(traders, side ? above : below, amounts);
    for (int k = 0; k < 2; ++k)
      for (std::size_t t = 0; t < traders[k].size(); ++t)
        if (const double by = SIGN[k] * amounts[k][t]; by != 0 && traders[k][t].index >= 0)
          changes.push_back({traders[k][t].index, {side ? 0.0 : by, side ? by : 0.0}});
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
  Optimum optimum{above};
  double level = -INFINITY;  // the dearest purchase, which no sale is below
  for (const Change& change : changes) {
    const auto [wide, narrow] = change.by;
    const double delta = wide == narrow ? wide : narrow + mix * (wide - narrow);
    if (delta == 0.0) continue;
    const Index p = change.index;
    const double cost = above * std::sqrt(choice.lipschitz[p]);
    move.add(p, delta);
    if (delta > 0) {
      level = std::max(level, a.template up_price<double>(p));
      optimum.bought = std::max(optimum.bought, a.template up_price<double>(p) + cost);
    } else {
      optimum.sold = std::min(optimum.sold, a.template down_price<double>(p) - cost);
    }
  }
  // Counted from the level, no term is below 0: nothing cancels.
  double length = 0.0, saved = 0.0, size = 0.0;
  for (std::size_t k = 0; k < move.index.size(); ++k) {
    const Index p = move.index[k];
    const double delta = move.delta[k];
    length += std::sqrt(choice.lipschitz[p]) * std::abs(delta);
    size += std::abs(delta);
    saved += delta < 0 ? -delta * (a.template down_price<double>(p) - level)
                       : delta * (level - a.template up_price<double>(p));
  }
  move.decrease = std::max(saved - 0.5 * length * length / alpha, 0.0);
  optimum.root = length / size;
  return optimum;
}

struct Gs1Lipschitz {
  static constexpr Rule about{.name = "gs-1-lipschitz", .weighted = true, .one_norm = true};
  static constexpr bool asks_for_range = true;

  // A few are all asked. Of many, those who can trade about where a sample of them does: at rho or
  // above, and at levels from `low` to `high`. If the best move of these is there, nobody else can
  // add to it; if not, it is the better guess.
  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    if (a.n > FEW) {
      Optimum guess = guess_by_sample(a, q);
      for (const double slack : {0.25, 0.25, 0.5, 1.0, 2.0}) {
        const double rho = guess.rho / (1.0 + slack), width = slack * guess.rho * guess.root,
                     low = guess.bought - width, high = guess.sold + width;
        const auto traders = traders_at(a, q.choice.lipschitz, rho, low, high);
        q.choice.beat();
        const Optimum found = steepest(a, traders, q.choice, move);
        if (found.rho >= rho && found.bought >= low && found.sold <= high) return;
        if (found.rho > 0) guess = found;
      }
    }
    steepest(a, traders_at(a, q.choice.lipschitz, 0.0, -INFINITY, INFINITY), q.choice, move);
  }

 private:
  static constexpr Index FEW = 512;

  template <class A>
  static std::array<Traders, 2> traders_of(const A& a, const double* lipschitz,
                                           const std::array<std::vector<Index>, 2>& lists) {
    std::array<Traders, 2> traders;
    for (int k = 0; k < 2; ++k) traders[k].reserve(lists[k].size());
    for (const Index p : lists[0])
      if (const double room = a.template down_room<double>(p); room > 0)
        traders[0].push_back(
            {a.template down_price<double>(p), std::sqrt(lipschitz[p]), room, 0, p});
    for (const Index p : lists[1])
      if (const double room = a.template up_room<double>(p); room > 0)
        traders[1].push_back(
            {-a.template up_price<double>(p), std::sqrt(lipschitz[p]), room, 0, p});
    return traders;
  }

  // Who sells at `rho` and `low`, and who buys at `rho` and `high`, rounding included.
  template <class A>
  static std::array<Traders, 2> traders_at(const A& a, const double* lipschitz, double rho,
                                           double low, double high) {
    std::array<std::vector<Index>, 2> lists;
    collect<2>(a.n, {&lists[0], &lists[1]}, [&]<class T>(Index p) {
      const T cost = (rho * rho * (1.0 - 1e-12)) * load<T>(lipschitz + p), no = all<T>(-1.0);
      const T sell = a.template down_price<T>(p) - low, buy = high - a.template up_price<T>(p);
      return std::array<T, 2>{sell >= all<T>(0.0) ? sell * sell - cost : no,
                              buy >= all<T>(0.0) ? buy * buy - cost : no};
    });
    return traders_of(a, lipschitz, lists);
  }

  // The optimum of every so many accounts, with their share of alpha.
  template <class A, class Curvature>
  static Optimum guess_by_sample(const A& a, const Question<Curvature>& q) {
    constexpr Index RUN = 16;  // neighbours, which memory gives at once
    const Index one_of = std::clamp<Index>(a.n / FEW, 8, 64);
    std::vector<Index> list{q.ends.seller.index, q.ends.buyer.index};
    for (Index p = 0; p < a.n; p += RUN * one_of)
      for (Index k = p; k < std::min(p + RUN, a.n); ++k) list.push_back(k);
    std::array<Traders, 2> traders = traders_of(a, q.choice.lipschitz, {list, list}), certain;
    const double alpha = q.choice.alpha / double(one_of);
    const auto [ratio, s, b] = cap_rooms(traders, alpha);
    const double root = 0.5 * (traders[0][s].root + traders[1][b].root);
    const Place at = narrow(traders, certain, alpha, ratio, 0).centre();
    Traded traded;
    for (const Traders& side : certain)
      for (const Trader& t : side) traded.add(t, t.room);
    return {at.rho, at.level, at.level, traded.amount > 0 ? traded.norm / traded.amount : root};
  }
};

using Rules = RuleList<Gs1Lipschitz>;

}  // namespace gs_1_lipschitz
