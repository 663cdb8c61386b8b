// Finding the best pair without trying them all: a few accounts stay, the rest cannot be in it.
// Included once per instruction set.

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
inline std::array<double, 2> largest_rooms(const A& a) {
  const auto found = argmax<2>(a.n, [&]<class T>(Index p) {
    return std::array<T, 2>{a.template down_room<T>(p), a.template up_room<T>(p)};
  });
  return {found[0].value, found[1].value};
}

// A good pair from lists of accounts, in one sweep for each of a few amounts: for a given amount
// the best seller and the best buyer are found apart.
template <class A>
Champion good_pair(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
                   const double* lipschitz, double alpha, double widest) {
  const auto constant = [&](Index p) { return lipschitz ? lipschitz[p] : 1.0; };
  Champion best{0.0, -1, -1};
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
// null, in a few passes; `least` is a lower bound of L. `best_of(sellers, buyers)` solves the
// problem on lists of accounts.
//
// Stays: who gains enough with the best conceivable partner, and is not beaten in price, room and
// constant by the one at hand. A gain is at most gap^2 / (2 curvature) and at most room * gap, so
// no division is needed. Whoever stays makes a tighter choice of partners, and so on.
template <class A, class BestOf>
Champion prune_and_solve(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                         double least, BestOf best_of) {
  const auto [most_down, most_up] = largest_rooms(a);
  Partner seller{ends.seller.value, most_down, least}, buyer{ends.buyer.value, most_up, least};
  std::vector<Index> sellers = sample_of(a.n, {ends.seller.index});
  std::vector<Index> buyers = sample_of(a.n, {ends.buyer.index});
  const auto curvature_of = [&](Index i, Index j) {
    return (lipschitz ? lipschitz[i] + lipschitz[j] : 2.0) / alpha;
  };
  const auto gain = [&](Index i, Index j) {
    return gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature_of(i, j));
  };
  Champion at_hand{gain(ends.seller.index, ends.buyer.index), ends.seller.index, ends.buyer.index};
  const auto offer = [&](const Champion& pair) { at_hand.offer(pair.gain, pair.i, pair.j); };
  offer(good_pair(a, sellers, buyers, lipschitz, alpha, ends.gap()));
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
  if (const Index i = better[0].index, j = better[1].index; i >= 0 && j >= 0)
    offer({gain(i, j), i, j});

  // No pair moves further, however large its rooms; and an endless room times no gap would not be a
  // number.
  const double farthest = 0.5 * alpha * ends.gap() / least;
  const auto stays = [&]<class T>(Index p) {
    const double bar = at_hand.gain * KEEP, per_constant = 2.0 * bar / alpha;
    const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0);
    const auto verdict = [&](T price, T room, const Partner& partner, double rival_price,
                             double rival_room, double rival_constant) -> T {
      const double most = std::min(partner.room, farthest);
      const T gap = maximum(price + partner.price, all<T>(0.0));
      const T reach = minimum(maximum(room, all<T>(0.0)), all<T>(most));
      const T spare =
          minimum(gap * gap - per_constant * (constant + partner.constant), reach * gap - bar);
      const double rival_reach = std::min(rival_room, most);
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

  // Rounds, each of which drops a tenth at least.
  for (std::size_t before = SIZE_MAX;;) {
    const std::size_t size = sellers.size() + buyers.size();
    if (size < 1024 || double(size) > 0.9 * double(before)) break;
    before = size;
    offer(good_pair(a, thinned(sellers), thinned(buyers), lipschitz, alpha, ends.gap()));
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
  return best.i >= 0 && best.gain >= at_hand.gain ? best : at_hand;
}
