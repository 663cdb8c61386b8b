// Every selection rule, on one group of accounts. The readable forms, with the mathematics and the
// proofs, are in src/pairstep/rules; these make the same moves. Included once per instruction set.

// Coordinate-wise constants of one group and their square roots (null where no rule asks).
struct Constants {
  const double *lipschitz, *root;

  Constants slice(Index begin) const {
    return {lipschitz ? lipschitz + begin : nullptr, root ? root + begin : nullptr};
  }
};

template <class A>
inline double gap_of(const A& a, Index i, Index j) {
  return a.template down_price<double>(i) - a.template up_price<double>(j);
}

template <class A>
inline double room_of(const A& a, Index i, Index j) {
  return std::min(a.template down_room<double>(i), a.template up_room<double>(j));
}

// max over 0 <= d <= room of d gap - curvature d^2 / 2; 0 where there is no gap or no room.
template <class T>
inline T gain_of(T gap, T room, T curvature) {
  const T nothing = all<T>(0.0);
  gap = maximum(gap, nothing);
  const T amount = minimum(maximum(room, nothing), gap / curvature);
  return amount * (gap - 0.5 * curvature * amount);
}

template <class A>
inline void best_pair_move(const A& a, Index i, Index j, double curvature, Move& move) {
  move.clear();
  if (i < 0 || j < 0 || i == j) return;
  const double gap = gap_of(a, i, j);
  const double amount = std::min(gap / curvature, room_of(a, i, j));
  if (!(gap > 0 && amount > 0)) return;
  move.add(i, -amount);
  move.add(j, amount);
  move.decrease = amount * (gap - 0.5 * curvature * amount);
}

// The best pair at hand, raised by every better one that is offered.
struct Champion {
  double gain = 0.0;
  Index i = -1, j = -1;

  void offer(double other, Index other_i, Index other_j) {
    if (other > gain) *this = {other, other_i, other_j};
  }
};

// Slack for pruning by a computed bound: rounding must not drop the winner.
constexpr double KEEP = 1.0 - 1e-12;

// ---------------------------------------------------------------- gs-q

struct Step_ {  // one stair: with at least this room, this is the best price
  double room, price;
  Index index;
};

// Sort by falling room; each entry then carries the best price among those before it.
inline void make_staircase(std::vector<Step_>& stairs) {
  std::sort(stairs.begin(), stairs.end(), [](const Step_& a, const Step_& b) {
    return a.room > b.room || (a.room == b.room && a.index < b.index);
  });
  for (std::size_t k = 1; k < stairs.size(); ++k)
    if (!(stairs[k].price > stairs[k - 1].price)) {
      stairs[k].price = stairs[k - 1].price;
      stairs[k].index = stairs[k - 1].index;
    }
}

template <class A>
void gs_q(const A& a, const Extremes& ends, double alpha, Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double dearest = ends.seller.value, cheapest = -ends.buyer.value;
  const double curvature = 2.0 / alpha;
  // The gain of each account with the best conceivable partner.
  const auto conceivable = [&]<class T>(Index p) {
    return std::array<T, 2>{gain_of<T>(a.template down_price<T>(p) - cheapest,
                                       a.template down_room<T>(p), all<T>(curvature)),
                            gain_of<T>(dearest - a.template up_price<T>(p),
                                       a.template up_room<T>(p), all<T>(curvature))};
  };
  const auto hopeful = argmax<2>(a.n, conceivable);
  Champion at_hand;
  for (const Index i : {ends.seller.index, hopeful[0].index})
    for (const Index j : {ends.buyer.index, hopeful[1].index})
      at_hand.offer(gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature), i, j);
  std::vector<Index> keep_sellers, keep_buyers;
  collect<2>(a.n, {at_hand.gain * KEEP, at_hand.gain * KEEP}, {&keep_sellers, &keep_buyers},
             conceivable);

  std::vector<Step_> sellers, buyers;
  for (const Index i : keep_sellers)
    if (const double room = a.template down_room<double>(i); room > 0)
      sellers.push_back({room, a.template down_price<double>(i), i});
  for (const Index j : keep_buyers)
    if (const double room = a.template up_room<double>(j); room > 0)
      buyers.push_back({room, -a.template up_price<double>(j), j});
  make_staircase(sellers);
  make_staircase(buyers);
  // Limits in falling order; the later of equal gains wins, as the smallest limit does in NumPy.
  Champion best;
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
  best_pair_move(a, best.i, best.j, curvature, move);
}

// ---------------------------------------------------------------- gs-1 and gs-1-ratio

// Match sellers with buyers in the given order while the model falls; root null means all 1.
// False if a list of `count` ran out, so that a longer one may lead further.
template <class A>
bool walk(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
          const double* root, double alpha, Index count, Move& move) {
  move.clear();
  if (sellers.empty() || buyers.empty()) return true;
  std::size_t s = 0, b = 0;
  double down = a.template down_room<double>(sellers[0]), sold = 0.0;
  double up = a.template up_room<double>(buyers[0]), bought = 0.0;
  double length = 0.0;
  bool complete = true;
  while (s < sellers.size() && b < buyers.size()) {
    const Index i = sellers[s], j = buyers[b];
    const double width = root ? root[i] + root[j] : 2.0;
    const double slope = gap_of(a, i, j) - width * length / alpha;
    if (!(slope > 0)) break;
    const double full = alpha * slope / (width * width);
    const double amount = std::min({full, down, up});
    sold += amount;
    bought += amount;
    move.decrease += amount * (slope - 0.5 * width * width * amount / alpha);
    length += width * amount;
    if (amount == full) break;
    down -= amount;
    up -= amount;
    if (down <= 0) {
      move.add(i, -a.template down_room<double>(i));
      sold = 0.0;
      if (++s < sellers.size()) down = a.template down_room<double>(sellers[s]);
      else complete = Index(sellers.size()) < count;
    }
    if (up <= 0) {
      move.add(j, a.template up_room<double>(j));
      bought = 0.0;
      if (++b < buyers.size()) up = a.template up_room<double>(buyers[b]);
      else complete = complete && Index(buyers.size()) < count;
    }
  }
  if (sold > 0) move.add(sellers[s], -sold);
  if (bought > 0) move.add(buyers[b], bought);
  return complete;
}

// A move rarely touches more than a handful: select a few from each side, more if they run out.
template <class A, class Score>
void walk_top(const A& a, Score score, const double* root, double alpha, Move& move) {
  std::vector<Index> sellers, buyers;
  for (Index count = 8;; count *= 8) {
    top<2>(a.n, count, {&sellers, &buyers}, score);
    if (walk(a, sellers, buyers, root, alpha, count, move)) return;
  }
}

template <class A>
void gs_1(const A& a, const Extremes* ends, double alpha, Move& move) {
  if (ends) {  // known already: where their pair is not cut by a room, it is the answer
    move.clear();
    if (!ends->open()) return;
    const Index i = ends->seller.index, j = ends->buyer.index;
    if (0.25 * alpha * ends->gap() <= room_of(a, i, j))
      return best_pair_move(a, i, j, 4.0 / alpha, move);
  }
  walk_top(
      a,
      [&]<class T>(Index p) {
        return std::array<T, 2>{a.template down_price<T>(p), -a.template up_price<T>(p)};
      },
      nullptr, alpha, move);
}

// Ratios of sellers and (negated) of buyers, about a mean that lies between the extremes.
template <class A>
auto ratio_score(const A& a, const Extremes& ends, const Constants& constants) {
  double sum = 0.0;
  for (Index p = 0; p < a.n; ++p) sum += a.template price<double>(p);
  const double mean = std::min(std::max(sum / double(a.n), -ends.buyer.value), ends.seller.value);
  return [&a, constants, mean]<class T>(Index p) {
    const T root = load<T>(constants.root + p);
    return std::array<T, 2>{(a.template down_price<T>(p) - mean) / root,
                            (mean - a.template up_price<T>(p)) / root};
  };
}

template <class A>
void gs_1_ratio(const A& a, const Extremes& ends, const Constants& constants, double alpha,
                Move& move) {
  move.clear();
  if (ends.open()) walk_top(a, ratio_score(a, ends, constants), constants.root, alpha, move);
}

template <class A>
void gs_s_ratio(const A& a, const Extremes& ends, const Constants& constants, double alpha,
                Move& move) {
  move.clear();
  if (!ends.open()) return;
  const auto found = argmax<2>(a.n, ratio_score(a, ends, constants));
  const Index i = found[0].index, j = found[1].index;
  best_pair_move(a, i, j, (constants.lipschitz[i] + constants.lipschitz[j]) / alpha, move);
}

// ---------------------------------------------------------------- libsvm

// `curvature<T>(i, p)` is the curvature of the pairs (i, p).
template <class A, class Curvature>
void libsvm(const A& a, const Extremes& ends, Curvature curvature, Move& move) {
  move.clear();
  if (!ends.open()) return;
  const Index i = ends.seller.index;
  const double price = ends.seller.value;
  const double room = a.template down_room<double>(i);
  // A step without end is found by the caller; here it must only stay a number.
  constexpr double FAR = 1e150, FLAT = 1e-300;
  const auto found = argmax<1>(a.n, [&]<class T>(Index p) {
    const T c = maximum(curvature.template operator()<T>(i, p), all<T>(FLAT));
    const T limit = minimum(a.template up_room<T>(p), all<T>(std::min(room, FAR)));
    return std::array<T, 1>{gain_of<T>(price - a.template up_price<T>(p), limit, c)};
  });
  Index j = found[0].value > 0 ? found[0].index : ends.buyer.index;
  if (j == i) j = ends.buyer.index;
  best_pair_move(a, i, j, std::max(curvature.template operator()<double>(i, j), FLAT), move);
}

// ---------------------------------------------------------------- gs-q-lipschitz

// A segment of an envelope: up to `end`, account `index` is the best.
struct Piece {
  double end;
  Index index;
};

struct Line {
  double price, slope, end;  // value at d: price - slope d, for d <= end
  Index index;

  double at(double d) const { return price - slope * d; }
};

inline void append(std::vector<Piece>& envelope, double begin, double end, Index line) {
  if (!(end > begin)) return;
  if (!envelope.empty() && envelope.back().index == line) envelope.back().end = end;
  else envelope.push_back({end, line});
}

// The upper envelope of lines [first, last) by divide and conquer; pieces index into `lines`.
inline std::vector<Piece> envelope_of(const std::vector<Line>& lines, Index first, Index last) {
  if (last - first == 0) return {};
  if (last - first == 1) return {{lines[first].end, first}};
  const Index middle = first + (last - first) / 2;
  const std::vector<Piece> left = envelope_of(lines, first, middle);
  const std::vector<Piece> right = envelope_of(lines, middle, last);
  std::vector<Piece> merged;
  std::size_t l = 0, r = 0;
  double begin = 0.0;
  while (l < left.size() && r < right.size()) {
    const double end = std::min(left[l].end, right[r].end);
    const Line &p = lines[left[l].index], &q = lines[right[r].index];
    const double at_begin = p.at(begin) - q.at(begin), at_end = p.at(end) - q.at(end);
    if (at_begin >= 0 && at_end >= 0) {
      append(merged, begin, end, left[l].index);
    } else if (at_begin <= 0 && at_end <= 0) {
      append(merged, begin, end, right[r].index);
    } else {
      const double share = at_begin / (at_begin - at_end);
      const double cross = std::min(std::max(begin + share * (end - begin), begin), end);
      append(merged, begin, cross, at_begin > 0 ? left[l].index : right[r].index);
      append(merged, cross, end, at_begin > 0 ? right[r].index : left[l].index);
    }
    begin = end;
    if (left[l].end <= end) ++l;
    if (right[r].end <= end) ++r;
  }
  for (; l < left.size(); begin = left[l++].end) append(merged, begin, left[l].end, left[l].index);
  for (; r < right.size(); begin = right[r++].end)
    append(merged, begin, right[r].end, right[r].index);
  return merged;
}

template <class A>
void gs_q_lipschitz(const A& a, const Extremes& ends, const Constants& constants, double alpha,
                    Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double dearest = ends.seller.value, cheapest = -ends.buyer.value;
  const double* lipschitz = constants.lipschitz;
  const auto smallest = argmax<2>(a.n, [&]<class T>(Index p) {
    const T constant = -load<T>(lipschitz + p), no = all<T>(-INFINITY);
    return std::array<T, 2>{a.template down_room<T>(p) > 0.0 ? constant : no,
                            a.template up_room<T>(p) > 0.0 ? constant : no};
  });
  const double easiest_seller = -smallest[0].value, easiest_buyer = -smallest[1].value;
  const auto conceivable = [&]<class T>(Index p) {
    const T constant = load<T>(lipschitz + p);
    return std::array<T, 2>{
        gain_of<T>(a.template down_price<T>(p) - cheapest, a.template down_room<T>(p),
                   (constant + easiest_buyer) / alpha),
        gain_of<T>(dearest - a.template up_price<T>(p), a.template up_room<T>(p),
                   (constant + easiest_seller) / alpha)};
  };
  const auto gain = [&](Index i, Index j) {
    return gain_of<double>(gap_of(a, i, j), room_of(a, i, j), (lipschitz[i] + lipschitz[j]) / alpha);
  };
  const auto hopeful = argmax<2>(a.n, conceivable);
  Champion at_hand;
  for (const Index i : {ends.seller.index, hopeful[0].index})
    for (const Index j : {ends.buyer.index, hopeful[1].index}) at_hand.offer(gain(i, j), i, j);
  // One or two rounds of "the best pair at this amount, the best amount for this pair" raise the
  // gain at hand close to the best, and the bar of the pruning with it.
  for (int round = 0; round < 2; ++round) {
    const Index i = at_hand.i, j = at_hand.j;
    const double amount =
        std::min(alpha * gap_of(a, i, j) / (lipschitz[i] + lipschitz[j]), room_of(a, i, j));
    const auto found = argmax<2>(a.n, [&]<class T>(Index p) {
      const T cost = load<T>(lipschitz + p) * (0.5 * amount / alpha), no = all<T>(-INFINITY);
      return std::array<T, 2>{
          a.template down_room<T>(p) >= amount ? a.template down_price<T>(p) - cost : no,
          a.template up_room<T>(p) >= amount ? -a.template up_price<T>(p) - cost : no};
    });
    const double before = at_hand.gain;
    if (found[0].index >= 0 && found[1].index >= 0)
      at_hand.offer(gain(found[0].index, found[1].index), found[0].index, found[1].index);
    if (!(at_hand.gain > before)) break;
  }
  std::vector<Index> keep_sellers, keep_buyers;
  collect<2>(a.n, {at_hand.gain * KEEP, at_hand.gain * KEEP}, {&keep_sellers, &keep_buyers},
             conceivable);

  // No pair moves further than its widest gap and smallest constant allow: ends are finite.
  const double widest = dearest - cheapest;
  std::vector<Line> sellers, buyers;
  for (const Index i : keep_sellers)
    if (const double room = a.template down_room<double>(i); room > 0)
      sellers.push_back({a.template down_price<double>(i), 0.5 * lipschitz[i] / alpha,
                         std::min(room, alpha * widest / (lipschitz[i] + easiest_buyer)), i});
  for (const Index j : keep_buyers)
    if (const double room = a.template up_room<double>(j); room > 0)
      buyers.push_back({-a.template up_price<double>(j), 0.5 * lipschitz[j] / alpha,
                        std::min(room, alpha * widest / (lipschitz[j] + easiest_seller)), j});
  const std::vector<Piece> u = envelope_of(sellers, 0, Index(sellers.size()));
  const std::vector<Piece> v = envelope_of(buyers, 0, Index(buyers.size()));
  for (std::size_t s = 0, b = 0; s < u.size() && b < v.size();) {
    const Index i = sellers[u[s].index].index, j = buyers[v[b].index].index;
    at_hand.offer(gain(i, j), i, j);
    const double end = std::min(u[s].end, v[b].end);
    if (u[s].end <= end) ++s;
    if (v[b].end <= end) ++b;
  }
  best_pair_move(a, at_hand.i, at_hand.j, (lipschitz[at_hand.i] + lipschitz[at_hand.j]) / alpha,
                 move);
}

// ---------------------------------------------------------------- gs-1-lipschitz

// One side of a trade at a price of norm: accounts with their key, best first.
struct Trader {
  double price, root, room, key;
  Index index;
};

inline void sort_by_key(std::vector<Trader>& traders, double rho) {
  for (Trader& t : traders) t.key = t.price - rho * t.root;
  std::sort(traders.begin(), traders.end(), [](const Trader& p, const Trader& q) {
    return p.key > q.key || (p.key == q.key && p.index < q.index);
  });
}

// The best move when each unit of weighted norm costs rho: dearest with cheapest while it pays.
// Buyers carry minus their price. Returns the norm; the amounts go to sold and bought, in order.
inline double match(std::vector<Trader>& sellers, std::vector<Trader>& buyers, double rho,
                    std::vector<double>& sold, std::vector<double>& bought) {
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

template <class A>
void gs_1_lipschitz(const A& a, const Extremes& ends, const Constants& constants, double alpha,
                    Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double* root = constants.root;
  double rho = 0.0;
  const auto keys = [&]<class T>(Index p) {
    const T cost = rho * load<T>(root + p);
    return std::array<T, 2>{a.template down_price<T>(p) - cost,
                            -a.template up_price<T>(p) - cost};
  };
  // Collect all who can trade at this rho or above.
  std::vector<Index> keep_sellers, keep_buyers;
  const auto collect_traders = [&](const std::array<Found, 2>& best) {
    keep_sellers.clear();
    keep_buyers.clear();
    const double slack = 1e-12 * (std::abs(best[0].value) + std::abs(best[1].value));
    collect<2>(a.n, {-best[1].value - slack, -best[0].value - slack},
               {&keep_sellers, &keep_buyers}, keys);
  };

  // Dinkelbach's iteration: a few passes over all, the rest over those who can still matter.
  Index i = ends.seller.index, j = ends.buyer.index;
  double ratio = ends.gap() / (root[i] + root[j]);
  std::array<Found, 2> found;
  for (int pass = 0; pass < 3; ++pass) {
    rho = ratio;
    found = argmax<2>(a.n, keys);
    const double better =
        gap_of(a, found[0].index, found[1].index) / (root[found[0].index] + root[found[1].index]);
    if (better > ratio) {
      i = found[0].index;
      j = found[1].index;
      ratio = better;
    }
    if (!(ratio > 1.001 * rho)) break;
  }
  collect_traders(found);
  for (bool grew = true; grew;) {
    rho = ratio;
    Found seller, buyer;
    for (const Index p : keep_sellers)
      if (const double key = a.template down_price<double>(p) - rho * root[p]; key > seller.value)
        seller = {key, p};
    for (const Index p : keep_buyers)
      if (const double key = -a.template up_price<double>(p) - rho * root[p]; key > buyer.value)
        buyer = {key, p};
    if (seller.index < 0 || buyer.index < 0) break;
    const double better =
        gap_of(a, seller.index, buyer.index) / (root[seller.index] + root[buyer.index]);
    grew = better > ratio;
    if (grew) {
      i = seller.index;
      j = buyer.index;
      ratio = better;
    }
  }
  const double width = root[i] + root[j];
  if (alpha * ratio / width <= room_of(a, i, j))
    return best_pair_move(a, i, j, width * width / alpha, move);

  // Rooms matter: bracket the price of norm from below, on as few traders as do.
  std::vector<Trader> sellers, buyers;
  std::vector<double> sold, bought;
  double below = 0.0, above = ratio;
  for (const double share : {0.9, 0.6, 0.2, 0.0}) {
    rho = share * ratio;
    collect_traders(argmax<2>(a.n, keys));
    sellers.clear();
    buyers.clear();
    for (const Index p : keep_sellers)
      if (const double room = a.template down_room<double>(p); room > 0)
        sellers.push_back({a.template down_price<double>(p), root[p],
                           std::min(room, alpha * ratio / root[p]), 0.0, p});
    for (const Index p : keep_buyers)
      if (const double room = a.template up_room<double>(p); room > 0)
        buyers.push_back({-a.template up_price<double>(p), root[p],
                          std::min(room, alpha * ratio / root[p]), 0.0, p});
    below = rho;
    if (match(sellers, buyers, rho, sold, bought) > alpha * rho) break;
    above = rho;
  }
  for (double middle; below < (middle = 0.5 * (below + above)) && middle < above;) {
    if (match(sellers, buyers, middle, sold, bought) > alpha * middle) {
      below = middle;
      // Who cannot trade at this price cannot trade at a higher one; sorted, so cut the tails.
      const double ask = sellers.front().key, bid = buyers.front().key;
      while (sellers.back().key + bid < -1e-12 * std::abs(bid)) sellers.pop_back();
      while (buyers.back().key + ask < -1e-12 * std::abs(ask)) buyers.pop_back();
    } else {
      above = middle;
    }
  }
  // At a step of the norm both one-sided matchings are optimal: combine them to N = alpha rho.
  const double more = match(sellers, buyers, below, sold, bought);
  std::vector<std::pair<Index, double>> wide, narrow;
  const auto gather = [&](std::vector<std::pair<Index, double>>& out) {
    for (std::size_t s = 0; s < sellers.size(); ++s) out.push_back({sellers[s].index, -sold[s]});
    for (std::size_t b = 0; b < buyers.size(); ++b) out.push_back({buyers[b].index, bought[b]});
    std::sort(out.begin(), out.end());
  };
  gather(wide);
  const double less = match(sellers, buyers, above, sold, bought);
  gather(narrow);
  double mix = more > less ? (alpha * above - less) / (more - less) : 0.0;
  mix = std::min(std::max(mix, 0.0), 1.0);
  // An account may stand on both sides (once to sell, once to buy): sum what it does.
  double norm = 0.0, saved = 0.0;
  std::vector<std::pair<Index, std::array<double, 2>>> change;
  for (const auto* side : {&narrow, &wide})
    for (const auto& [index, amount] : *side)
      if (amount != 0.0) change.push_back({index, side == &wide ? std::array{0.0, amount}
                                                                : std::array{amount, 0.0}});
  std::sort(change.begin(), change.end(),
            [](const auto& p, const auto& q) { return p.first < q.first; });
  for (std::size_t k = 0; k < change.size();) {
    const Index p = change[k].first;
    double before = 0.0, after = 0.0;
    for (; k < change.size() && change[k].first == p; ++k) {
      before += change[k].second[0];
      after += change[k].second[1];
    }
    const double delta = before == after ? before : before + mix * (after - before);
    if (delta == 0.0) continue;
    move.add(p, delta);
    norm += root[p] * std::abs(delta);
    saved -= delta * (delta < 0 ? a.template down_price<double>(p) : a.template up_price<double>(p));
  }
  move.decrease = saved - 0.5 * norm * norm / alpha;
}

// ---------------------------------------------------------------- random and cyclic

template <class A>
void towards_cheaper(const A& a, Index i, Index j, double curvature, Move& move) {
  if (gap_of(a, i, j) > 0) best_pair_move(a, i, j, curvature, move);
  else best_pair_move(a, j, i, curvature, move);
}

inline Index group_of(const Point& point, Index i) {
  return std::upper_bound(point.starts, point.starts + point.n_groups + 1, i) - point.starts - 1;
}

// Draws pairs with a probability proportional to given constants; O(log n) a pair once set up.
class WeightedPairs {
 public:
  void set_up(const double* constants, Index n) {
    total_.resize(n + 1);
    for (Index i = 0; i < n; ++i) total_[i + 1] = total_[i] + constants[i];
  }
  bool ready() const { return !total_.empty(); }
  // An index in [begin, end), `without` excepted (-1: none).
  Index draw(double uniform, Index begin, Index end, Index without) const {
    const double skip = without < 0 ? 0.0 : total_[without + 1] - total_[without];
    double goal = total_[begin] + uniform * (total_[end] - total_[begin] - skip);
    if (without >= 0 && goal >= total_[without]) goal += skip;
    const auto first = total_.begin() + begin + 1, last = total_.begin() + end;
    Index i = std::upper_bound(first, last, goal) - total_.begin() - 1;
    if (i == without) i += i + 1 < end ? 1 : -1;
    return i;
  }

 private:
  std::vector<double> total_;
};

// The pair that an unguided rule is to try; {-1, -1} where its first pick is alone in its group.
inline std::array<Index, 2> unguided_pair(const Point& point, const Choice& choice,
                                          WeightedPairs& weighted) {
  const Index n = point.n;
  Index i;
  double second = 0.0;
  if (choice.rule == Rule::cyclic) {
    i = choice.turn % n;
  } else {
    const double first = choice.random->uniform();
    second = choice.random->uniform();
    if (choice.rule == Rule::random_lipschitz) {
      if (!weighted.ready()) weighted.set_up(choice.lipschitz, n);
      i = weighted.draw(first, 0, n, -1);
    } else {
      i = Index(first * double(n));
    }
  }
  const Index group = group_of(point, i);
  const Index begin = point.starts[group], end = point.starts[group + 1], size = end - begin;
  if (size < 2) return {-1, -1};
  Index j;
  if (choice.rule == Rule::cyclic) {
    const Index sweep = choice.turn / n;
    j = begin + (i - begin + 1 + sweep % std::max<Index>(size / 2, 1)) % size;
  } else if (choice.rule == Rule::random_lipschitz) {
    j = weighted.draw(second, begin, end, i);
  } else {
    j = begin + Index(second * double(size - 1));
    j += j >= i;
  }
  return {i, j};
}

// ---------------------------------------------------------------- all of them

inline bool is_unguided(Rule rule) {
  return rule == Rule::random || rule == Rule::random_lipschitz || rule == Rule::cyclic;
}

// Choose within one group. `ends` may be null where the caller has not found the extremes.
template <class A, class Curvature>
void choose(const A& a, const Extremes* known, const Choice& choice, const Constants& constants,
            Curvature curvature, Move& move) {
  if (choice.rule == Rule::gs_1) return gs_1(a, known, choice.alpha, move);
  const Extremes ends = known ? *known : extremes(a);
  switch (choice.rule) {
    case Rule::gs_s:
      return best_pair_move(a, ends.seller.index, ends.buyer.index, 2.0 / choice.alpha, move);
    case Rule::gs_q: return gs_q(a, ends, choice.alpha, move);
    case Rule::gs_q_lipschitz: return gs_q_lipschitz(a, ends, constants, choice.alpha, move);
    case Rule::gs_1_lipschitz: return gs_1_lipschitz(a, ends, constants, choice.alpha, move);
    case Rule::ratio: return gs_s_ratio(a, ends, constants, choice.alpha, move);
    case Rule::gs_1_ratio: return gs_1_ratio(a, ends, constants, choice.alpha, move);
    case Rule::libsvm: return libsvm(a, ends, curvature, move);
    default: return move.clear();
  }
}

inline std::vector<double> roots_of(const double* lipschitz, Index n, Rule rule) {
  std::vector<double> roots;
  if (rule == Rule::gs_1_lipschitz || rule == Rule::ratio || rule == Rule::gs_1_ratio) {
    roots.resize(n);
    for (Index i = 0; i < n; ++i) roots[i] = std::sqrt(lipschitz[i]);
  }
  return roots;
}

template <class A>
void propose_on(const A& accounts, const Point& point, const Choice& choice, Move& best) {
  const double* lipschitz = choice.lipschitz;
  best.clear();
  if (is_unguided(choice.rule)) {
    WeightedPairs weighted;
    const auto [i, j] = unguided_pair(point, choice, weighted);
    if (i < 0) return;
    const double width = choice.rule == Rule::random_lipschitz ? lipschitz[i] + lipschitz[j] : 2.0;
    return towards_cheaper(accounts, i, j, width / choice.alpha, best);
  }
  const std::vector<double> roots = roots_of(lipschitz, point.n, choice.rule);
  const Constants constants{lipschitz, roots.empty() ? nullptr : roots.data()};
  Move move;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const Constants here = constants.slice(begin);
    const auto curvature = [&]<class T>(Index i, Index p) -> T {
      if (!here.lipschitz) return all<T>(2.0 / choice.alpha);
      return (here.lipschitz[i] + load<T>(here.lipschitz + p)) / choice.alpha;
    };
    choose(accounts.slice(begin, end), nullptr, choice, here, curvature, move);
    if (move.decrease > best.decrease) {
      for (Index& i : move.index) i += begin;
      std::swap(move, best);
    }
  }
}

inline void propose(const Point& point, const Choice& choice, Move& move) {
  if (point.kink) propose_on(static_cast<const Ledger&>(OwnLedger(point)), point, choice, move);
  else propose_on(Box{point.n, point.gradient, point.x, point.lower, point.upper}, point, choice, move);
}
