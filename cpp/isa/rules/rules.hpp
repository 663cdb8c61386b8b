// Every selection rule, on one group of accounts. The readable forms, with the mathematics and the
// proofs, are in src/pairstep/rules; these make the same moves. Included once per instruction set.

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

// A few positions spread over all: the best among them is close to the best, and sets the bar by
// which one pass over the rest drops almost everything.
inline std::vector<Index> sample_of(Index n, std::initializer_list<Index> also) {
  std::vector<Index> sample(also);
  const Index count = std::min<Index>(2048, 16 + 2 * Index(std::sqrt(double(n))));
  const Index stride = std::max<Index>(n / count, 1);
  for (Index p = 0; p < n; p += stride) sample.push_back(p);
  return sample;
}

inline std::vector<Index> thinned(const std::vector<Index>& list) {
  std::vector<Index> some;
  const std::size_t stride = std::max<std::size_t>(list.size() / 1024, 1);
  for (std::size_t k = 0; k < list.size(); k += stride) some.push_back(list[k]);
  return some;
}

// The best conceivable partner: the best price, the largest room and the smallest constant that
// occur on one side, be it in different accounts.
struct Partner {
  double price, room, constant;
};

template <class A>
std::array<double, 2> largest_rooms(const A& a) {
  const auto found = argmax<2>(a.n, [&]<class T>(Index p) {
    return std::array<T, 2>{a.template down_room<T>(p), a.template up_room<T>(p)};
  });
  return {found[0].value, found[1].value};
}

inline double smallest_constant(const double* lipschitz, Index n) {
  const auto found =
      argmax<1>(n, [&]<class T>(Index p) { return std::array<T, 1>{-load<T>(lipschitz + p)}; });
  return -found[0].value;
}

// A good pair from lists of accounts, in one sweep for each of a few amounts: for a given amount
// the best seller and the best buyer are found apart.
template <class A>
Champion good_pair(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
                   const double* lipschitz, double alpha, double widest) {
  const auto constant = [&](Index p) { return lipschitz ? lipschitz[p] : 1.0; };
  Champion best;
  double best_amount = 0.0;
  const auto try_amount = [&](double amount) {
    Found seller, buyer;
    for (const Index p : sellers)
      if (const double key = a.template down_price<double>(p) - 0.5 * constant(p) * amount / alpha;
          key > seller.value && a.template down_room<double>(p) >= amount)
        seller = {key, p};
    for (const Index p : buyers)
      if (const double key = -a.template up_price<double>(p) - 0.5 * constant(p) * amount / alpha;
          key > buyer.value && a.template up_room<double>(p) >= amount)
        buyer = {key, p};
    const Index i = seller.index, j = buyer.index;
    if (i < 0 || j < 0) return;
    const double curvature = (constant(i) + constant(j)) / alpha, before = best.gain;
    best.offer(gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature), i, j);
    if (best.gain > before) best_amount = amount;
  };
  double typical = 0.0;
  for (const Index p : sellers) typical += constant(p) / double(sellers.size());
  const double far = 64.0 * alpha * widest / typical;
  for (double amount = far; amount > 1e-5 * far; amount *= 0.4) try_amount(amount);
  const double around = best_amount;
  for (const double factor : {0.5, 0.65, 0.8, 1.25, 1.5, 1.9}) try_amount(factor * around);
  return best;
}

// Find the best pair under the model d gap - (L_i + L_j) d^2 / (2 alpha), L = 1 where lipschitz is
// null, in a few passes. `best_of(sellers, buyers)` solves the problem on lists of accounts.
//
// Stays: who gains enough with the best conceivable partner, and is not beaten in price, room and
// constant by the one at hand. A gain is at most gap^2 / (2 curvature) and at most room * gap, so
// no division is needed. Whoever stays makes a tighter choice of partners, and so on.
template <class A, class BestOf>
Champion prune_and_solve(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                         BestOf best_of) {
  const auto [most_down, most_up] = largest_rooms(a);
  const double least = lipschitz ? smallest_constant(lipschitz, a.n) : 1.0;
  Partner seller{ends.seller.value, most_down, least}, buyer{ends.buyer.value, most_up, least};
  std::vector<Index> sellers = sample_of(a.n, {ends.seller.index});
  std::vector<Index> buyers = sample_of(a.n, {ends.buyer.index});
  Champion at_hand = good_pair(a, sellers, buyers, lipschitz, alpha, ends.gap());
  const auto curvature_of = [&](Index i, Index j) {
    return (lipschitz ? lipschitz[i] + lipschitz[j] : 2.0) / alpha;
  };
  const auto offer = [&](Index i, Index j) {
    if (i < 0 || j < 0) return;
    at_hand.offer(gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature_of(i, j)), i, j);
  };
  offer(ends.seller.index, ends.buyer.index);
  // The best pair of all at the amount of the best pair so far.
  const double amount =
      std::min(gap_of(a, at_hand.i, at_hand.j) / curvature_of(at_hand.i, at_hand.j),
               room_of(a, at_hand.i, at_hand.j));
  const auto better = argmax<2>(a.n, [&]<class T>(Index p) {
    const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0), no = all<T>(-INFINITY);
    const T cost = constant * (0.5 * amount / alpha);
    return std::array<T, 2>{
        a.template down_room<T>(p) >= amount ? a.template down_price<T>(p) - cost : no,
        a.template up_room<T>(p) >= amount ? -a.template up_price<T>(p) - cost : no};
  });
  offer(better[0].index, better[1].index);

  const auto stays = [&]<class T>(Index p) {
    const double bar = at_hand.gain * KEEP, per_constant = 2.0 * bar / alpha;
    const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0);
    const auto verdict = [&](T price, T room, const Partner& partner, double rival_price,
                             double rival_room, double rival_constant) -> T {
      const T gap = maximum(price + partner.price, all<T>(0.0));
      // Finite, for an endless room times no gap is not a number.
      const T reach = minimum(maximum(room, all<T>(0.0)), all<T>(std::min(partner.room, 1e150)));
      const T spare =
          minimum(gap * gap - per_constant * (constant + partner.constant), reach * gap - bar);
      const double rival_reach = std::min({rival_room, partner.room, 1e150});
      return ((reach <= rival_reach) & (price < rival_price) & (constant >= rival_constant))
                 ? all<T>(-1.0)
                 : spare;
    };
    const Index i = at_hand.i, j = at_hand.j;
    return std::array<T, 2>{
        verdict(a.template down_price<T>(p), a.template down_room<T>(p), buyer,
                a.template down_price<double>(i), a.template down_room<double>(i),
                lipschitz ? lipschitz[i] : 1.0),
        verdict(-a.template up_price<T>(p), a.template up_room<T>(p), seller,
                -a.template up_price<double>(j), a.template up_room<double>(j),
                lipschitz ? lipschitz[j] : 1.0)};
  };
  sellers.clear();
  buyers.clear();
  collect<2>(a.n, {&sellers, &buyers}, stays);

  for (std::size_t before = SIZE_MAX;;) {
    const std::size_t size = sellers.size() + buyers.size();
    if (size < 1024 || double(size) > 0.9 * double(before)) break;
    before = size;
    const Champion good =
        good_pair(a, thinned(sellers), thinned(buyers), lipschitz, alpha, ends.gap());
    at_hand.offer(good.gain, good.i, good.j);
    seller = buyer = {-INFINITY, 0.0, INFINITY};
    for (const Index p : sellers) {
      seller.price = std::max(seller.price, a.template down_price<double>(p));
      seller.room = std::max(seller.room, a.template down_room<double>(p));
      seller.constant = std::min(seller.constant, lipschitz ? lipschitz[p] : 1.0);
    }
    for (const Index p : buyers) {
      buyer.price = std::max(buyer.price, -a.template up_price<double>(p));
      buyer.room = std::max(buyer.room, a.template up_room<double>(p));
      buyer.constant = std::min(buyer.constant, lipschitz ? lipschitz[p] : 1.0);
    }
    std::erase_if(sellers,
                  [&](Index p) { return !(stays.template operator()<double>(p)[0] >= 0); });
    std::erase_if(buyers, [&](Index p) { return !(stays.template operator()<double>(p)[1] >= 0); });
  }
  const Champion best = best_of(sellers, buyers);
  return best.gain >= at_hand.gain ? best : at_hand;
}

// ---------------------------------------------------------------- gs-q

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
  return best;
}

template <class A>
void gs_q(const A& a, const Extremes& ends, double alpha, Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double curvature = 2.0 / alpha, half = 0.5 * alpha;
  const Index dear = ends.seller.index, cheap = ends.buyer.index;
  // No gain exceeds that of the widest gap without rooms.
  if (half * ends.gap() <= room_of(a, dear, cheap))
    return best_pair_move(a, dear, cheap, curvature, move);
  const Champion best =
      prune_and_solve(a, ends, nullptr, alpha, [&](const auto& sellers, const auto& buyers) {
        return best_of_stairs(a, sellers, buyers, curvature);
      });
  best_pair_move(a, best.i, best.j, curvature, move);
}

// ---------------------------------------------------------------- gs-1 and gs-1-ratio

// Match sellers with buyers in the given order while the model falls; the norm is weighted by the
// roots of the constants (null: by 1).
// False if a list of `count` ran out, so that a longer one may lead further.
template <class A>
bool walk(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
          const double* lipschitz, double alpha, Index count, Move& move) {
  move.clear();
  if (sellers.empty() || buyers.empty()) return true;
  std::size_t s = 0, b = 0;
  double down = a.template down_room<double>(sellers[0]), sold = 0.0;
  double up = a.template up_room<double>(buyers[0]), bought = 0.0;
  double length = 0.0;
  bool complete = true;
  // In the order of ratios an account may come up on both sides; there the walk ends.
  const auto moves_already = [&](Index p, Index opposite) {
    if (!lipschitz) return false;
    return p == opposite || std::find(move.index.begin(), move.index.end(), p) != move.index.end();
  };
  while (s < sellers.size() && b < buyers.size()) {
    const Index i = sellers[s], j = buyers[b];
    const double width = lipschitz ? std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j]) : 2.0;
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
      if (++s == sellers.size()) complete = Index(sellers.size()) < count;
      else if (moves_already(sellers[s], buyers[b])) s = sellers.size();
      else down = a.template down_room<double>(sellers[s]);
    }
    if (up <= 0) {
      move.add(j, a.template up_room<double>(j));
      bought = 0.0;
      if (++b == buyers.size()) complete = complete && Index(buyers.size()) < count;
      else if (moves_already(buyers[b], s < sellers.size() ? sellers[s] : -1)) b = buyers.size();
      else up = a.template up_room<double>(buyers[b]);
    }
  }
  if (sold > 0 && s < sellers.size()) move.add(sellers[s], -sold);
  if (bought > 0 && b < buyers.size()) move.add(buyers[b], bought);
  return complete;
}

// A move rarely touches more than a handful: select a few from each side, more if they run out.
template <class A, class Score>
void walk_top(const A& a, Score score, const double* lipschitz, double alpha, Move& move) {
  std::vector<Index> sellers, buyers, suspects;
  for (Index count = 32;; count *= 16) {
    top<3>(a.n, count, {&sellers, &buyers, &suspects}, score);
    if (!suspects.empty()) {
      move.suspect = suspects[0];
      return;
    }
    if (walk(a, sellers, buyers, lipschitz, alpha, count, move)) return;
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
        return std::array<T, 3>{a.template down_price<T>(p), -a.template up_price<T>(p),
                                a.template suspect<T>(p)};
      },
      nullptr, alpha, move);
}

// Ratios of sellers and (negated) of buyers, about a mean that lies between the extremes.
template <class A>
auto ratio_score(const A& a, const Extremes& ends, const double* lipschitz) {
  Lanes sums = all<Lanes>(0.0);
  Index p = 0;
  for (; p + WIDTH <= a.n; p += WIDTH) sums = sums + a.template price<Lanes>(p);
  double sum = 0.0;
  for (Index k = 0; k < WIDTH; ++k) sum += sums[k];
  for (; p < a.n; ++p) sum += a.template price<double>(p);
  const double mean = std::min(std::max(sum / double(a.n), -ends.buyer.value), ends.seller.value);
  return [&a, lipschitz, mean]<class T>(Index p) {
    const T root = square_root(load<T>(lipschitz + p));
    return std::array<T, 3>{(a.template down_price<T>(p) - mean) / root,
                            (mean - a.template up_price<T>(p)) / root, all<T>(-INFINITY)};
  };
}

template <class A>
void gs_1_ratio(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                Move& move) {
  move.clear();
  if (ends.open()) walk_top(a, ratio_score(a, ends, lipschitz), lipschitz, alpha, move);
}

template <class A>
void gs_s_ratio(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                Move& move) {
  move.clear();
  if (!ends.open()) return;
  const auto found = argmax<3>(a.n, ratio_score(a, ends, lipschitz));
  const Index i = found[0].index, j = found[1].index;
  best_pair_move(a, i, j, (lipschitz[i] + lipschitz[j]) / alpha, move);
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

// Drop lines that another one beats in price, slope and reach; without rooms that leaves only
// the few on the front.
inline void drop_dominated(std::vector<Line>& lines) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.price > b.price || (a.price == b.price && a.slope < b.slope);
  });
  double slope = INFINITY, end = 0.0;  // of the flattest line so far
  std::erase_if(lines, [&](const Line& line) {
    if (line.slope >= slope && line.end <= end) return true;
    if (line.slope < slope) {
      slope = line.slope;
      end = line.end;
    }
    return false;
  });
}

// The best pair among some sellers and some buyers, by merging their envelopes.
template <class A>
Champion best_of_envelopes(const A& a, const std::vector<Index>& some_sellers,
                           const std::vector<Index>& some_buyers, const double* lipschitz,
                           double alpha, double smallest, double widest) {
  // No pair moves further than the widest gap and the smallest constant allow: ends are finite.
  std::vector<Line> sellers, buyers;
  for (const Index i : some_sellers)
    if (const double room = a.template down_room<double>(i); room > 0)
      sellers.push_back({a.template down_price<double>(i), 0.5 * lipschitz[i] / alpha,
                         std::min(room, alpha * widest / (lipschitz[i] + smallest)), i});
  for (const Index j : some_buyers)
    if (const double room = a.template up_room<double>(j); room > 0)
      buyers.push_back({-a.template up_price<double>(j), 0.5 * lipschitz[j] / alpha,
                        std::min(room, alpha * widest / (lipschitz[j] + smallest)), j});
  drop_dominated(sellers);
  drop_dominated(buyers);
  const std::vector<Piece> u = envelope_of(sellers, 0, Index(sellers.size()));
  const std::vector<Piece> v = envelope_of(buyers, 0, Index(buyers.size()));
  Champion best;
  for (std::size_t s = 0, b = 0; s < u.size() && b < v.size();) {
    const Index i = sellers[u[s].index].index, j = buyers[v[b].index].index;
    const double curvature = (lipschitz[i] + lipschitz[j]) / alpha;
    best.offer(gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature), i, j);
    const double end = std::min(u[s].end, v[b].end);
    if (u[s].end <= end) ++s;
    if (v[b].end <= end) ++b;
  }
  return best;
}

template <class A>
void gs_q_lipschitz(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                    Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double smallest = smallest_constant(lipschitz, a.n);
  const auto [gain, i, j] =
      prune_and_solve(a, ends, lipschitz, alpha, [&](const auto& sellers, const auto& buyers) {
        return best_of_envelopes(a, sellers, buyers, lipschitz, alpha, smallest, ends.gap());
      });
  if (gain > 0) best_pair_move(a, i, j, (lipschitz[i] + lipschitz[j]) / alpha, move);
}

// ---------------------------------------------------------------- gs-1-lipschitz

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
  while (sellers.back().key + bid < -1e-12 * std::abs(bid)) sellers.pop_back();
  while (buyers.back().key + ask < -1e-12 * std::abs(ask)) buyers.pop_back();
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

// The rho with N(rho) = alpha rho by bisection in [below, above]; N(below) > alpha below holds.
inline std::pair<double, double> balance(Traders& sellers, Traders& buyers, double alpha,
                                         double below, double above) {
  std::vector<double> sold, bought;
  for (double middle; below < (middle = 0.5 * (below + above)) && middle < above;) {
    if (match(sellers, buyers, middle, sold, bought) > alpha * middle) {
      below = middle;
      drop_tails(sellers, buyers);
    } else {
      above = middle;
    }
  }
  return {below, above};
}

template <class A>
void gs_1_lipschitz(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                    Move& move) {
  move.clear();
  if (!ends.open()) return;
  const double least = smallest_constant(lipschitz, a.n);
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
  // All who can trade at rho or above. A seller must beat the cheapest buyer's key, which is at
  // least cheapest + rho sqrt(least): root_i <= (price_i - cheapest) / rho - sqrt(least).
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
  const Trader &seller = sellers[best.s], &buyer = buyers[best.b];
  const double width = seller.root + buyer.root;
  if (alpha * best.ratio / width <= std::min(seller.room, buyer.room))
    return best_pair_move(a, seller.index, buyer.index, width * width / alpha, move);

  // Rooms matter. Those at hand are all who can trade at `below`: if they trade enough, that proves
  // rho to be above it. Otherwise the price goes down and more join.
  reach = alpha * best.ratio;
  for (Trader& t : sellers) t.room = std::min(t.room, reach / t.root);
  for (Trader& t : buyers) t.room = std::min(t.room, reach / t.root);
  std::vector<double> sold, bought;
  double above = best.ratio * (1.0 + 1e-12);  // where nothing trades, rounding included
  while (!(match(sellers, buyers, below, sold, bought) > alpha * below)) {
    above = below;
    below = below > 1e-6 * best.ratio ? 0.7 * below : 0.0;
    std::tie(sellers, buyers) = traders_at(std::max(below, 1e-9 * best.ratio));
  }
  drop_tails(sellers, buyers);
  std::tie(below, above) = balance(sellers, buyers, alpha, below, above);

  // At a step of the norm both one-sided matchings are optimal: combine them to N = alpha rho.
  std::vector<std::array<double, 2>> change;  // by both matchings, sellers first, then buyers
  std::vector<Index> who;
  double norms[2];
  for (int side = 0; side < 2; ++side) {
    norms[side] = match(sellers, buyers, side ? above : below, sold, bought);
    std::vector<std::pair<Index, double>> amounts;
    const auto by_index = [](const auto& p, const auto& q) { return p.first < q.first; };
    for (std::size_t s = 0; s < sellers.size(); ++s)
      amounts.push_back({sellers[s].index, -sold[s]});
    std::sort(amounts.begin(), amounts.end(), by_index);
    const auto middle = Index(amounts.size());
    for (std::size_t b = 0; b < buyers.size(); ++b) amounts.push_back({buyers[b].index, bought[b]});
    std::sort(amounts.begin() + middle, amounts.end(), by_index);
    change.resize(amounts.size());
    who.resize(amounts.size());
    for (std::size_t k = 0; k < amounts.size(); ++k) {
      who[k] = amounts[k].first;
      change[k][side] = amounts[k].second;
    }
  }
  const double spread = norms[0] - norms[1];
  const double mix =
      spread > 0 ? std::min(std::max((alpha * above - norms[1]) / spread, 0.0), 1.0) : 0.0;
  double norm = 0.0, saved = 0.0;
  for (std::size_t k = 0; k < who.size(); ++k) {
    const auto [wide, narrow] = change[k];
    const double delta = wide == narrow ? wide : narrow + mix * (wide - narrow);
    if (delta == 0.0) continue;
    const Index p = who[k];
    move.add(p, delta);
    norm += std::sqrt(lipschitz[p]) * std::abs(delta);
    saved -=
        delta * (delta < 0 ? a.template down_price<double>(p) : a.template up_price<double>(p));
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
void choose(const A& a, const Extremes* known, const Choice& choice, const double* lipschitz,
            Curvature curvature, Move& move) {
  if (choice.rule == Rule::gs_1) return gs_1(a, known, choice.alpha, move);
  const Extremes ends = known ? *known : extremes(a);
  if (ends.suspect >= 0) {
    move.clear();
    move.suspect = ends.suspect;
    return;
  }
  switch (choice.rule) {
    case Rule::gs_s:
      return best_pair_move(a, ends.seller.index, ends.buyer.index, 2.0 / choice.alpha, move);
    case Rule::gs_q: return gs_q(a, ends, choice.alpha, move);
    case Rule::gs_q_lipschitz: return gs_q_lipschitz(a, ends, lipschitz, choice.alpha, move);
    case Rule::gs_1_lipschitz: return gs_1_lipschitz(a, ends, lipschitz, choice.alpha, move);
    case Rule::ratio: return gs_s_ratio(a, ends, lipschitz, choice.alpha, move);
    case Rule::gs_1_ratio: return gs_1_ratio(a, ends, lipschitz, choice.alpha, move);
    case Rule::libsvm: return libsvm(a, ends, curvature, move);
    default: return move.clear();
  }
}

template <class A>
void propose_on(const A& accounts, const Point& point, const Choice& choice, Move& best) {
  const double* lipschitz = choice.lipschitz;
  best.clear();
  if (point.n < 2) return;
  if (is_unguided(choice.rule)) {
    WeightedPairs weighted;
    const auto [i, j] = unguided_pair(point, choice, weighted);
    if (i < 0) return;
    for (const Index p : {i, j})
      if (accounts.template suspect<double>(p) > 0) best.suspect = p;
    const double width = choice.rule == Rule::random_lipschitz ? lipschitz[i] + lipschitz[j] : 2.0;
    return towards_cheaper(accounts, i, j, width / choice.alpha, best);
  }
  Move move;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const double* here = lipschitz ? lipschitz + begin : nullptr;
    const auto curvature = [&]<class T>(Index i, Index p) -> T {
      if (!here) return all<T>(2.0 / choice.alpha);
      return (here[i] + load<T>(here + p)) / choice.alpha;
    };
    choose(accounts.slice(begin, end), nullptr, choice, here, curvature, move);
    if (move.suspect >= 0) {
      best.suspect = begin + move.suspect;
      return;
    }
    if (move.decrease > best.decrease) {
      for (Index& i : move.index) i += begin;
      std::swap(move, best);
    }
  }
}

inline void propose(const Point& point, const Choice& choice, Move& move) {
  if (point.kink) {
    OwnLedger ledger(point.n);
    ledger.enter_all(point);
    propose_on(Book(ledger), point, choice, move);
  } else {
    propose_on(Box{point.n, point.gradient, point.x, point.lower, point.upper}, point, choice,
               move);
  }
}
