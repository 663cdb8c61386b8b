// Finding the best pair without trying them all: a few accounts stay, the rest cannot be in it.
// Included once per instruction set.

// Slack for pruning by a computed bound: rounding must not drop the winner.
constexpr double KEEP = 1.0 - 1e-12;

// A few positions spread over all, in runs, which memory gives at once: the best among them is
// close to the best, and sets the bar by which one pass over the rest drops almost everything.
inline std::vector<Index> sample_of(Index n, std::initializer_list<Index> also) {
  constexpr Index RUN = 8;
  std::vector<Index> sample(also);
  const Index count = std::min<Index>(1024, 16 + 2 * Index(std::sqrt(double(n))));
  const Index stride = std::max<Index>(n / count, 1) * RUN;
  for (Index p = 0; p < n; p += stride)
    for (Index q = p; q < std::min(p + RUN, n); ++q) sample.push_back(q);
  return sample;
}

inline std::vector<Index> thinned(const std::vector<Index>& list) {
  std::vector<Index> some;
  const std::size_t stride = std::max<std::size_t>(list.size() / 1024, 1);
  for (std::size_t k = 0; k < list.size(); k += stride) some.push_back(list[k]);
  return some;
}

// The best conceivable partner: the best price and the smallest constant that occur on one side, be
// it in different accounts; and the most that a unit of gap can gain with any of them.
struct Partner {
  double price, constant, worth;
};

// An account on one side of a pair. Buyers carry minus their price, so that both sides look alike.
struct Offer {
  double price, room, constant;
  Index index;
};

// A good pair from lists of accounts, in one sweep for each of a few amounts: for a given amount
// the best seller and the best buyer are found apart.
template <class A>
Champion good_pair(const A& a, const std::vector<Index>& sellers, const std::vector<Index>& buyers,
                   const double* lipschitz, double alpha, double widest) {
  std::array<std::vector<Offer>, 2> offers;
  double typical = 0.0;
  for (const Index p : sellers) {
    const double constant = lipschitz ? lipschitz[p] : 1.0;
    typical += constant / double(sellers.size());
    offers[0].push_back(
        {a.template down_price<double>(p), a.template down_room<double>(p), constant, p});
  }
  for (const Index p : buyers)
    offers[1].push_back({-a.template up_price<double>(p), a.template up_room<double>(p),
                         lipschitz ? lipschitz[p] : 1.0, p});
  Champion best{0.0, -1, -1};
  double best_amount = 0.0;
  const auto try_amount = [&](double amount) {
    std::array<const Offer*, 2> chosen{};
    for (int k = 0; k < 2; ++k) {
      double most = -INFINITY;
      for (const Offer& offer : offers[k])
        if (const double key = offer.price - 0.5 * amount / alpha * offer.constant;
            key > most && offer.room >= amount) {
          most = key;
          chosen[k] = &offer;
        }
      if (!chosen[k]) return;
    }
    const auto [seller, buyer] = chosen;
    const double curvature = (seller->constant + buyer->constant) / alpha, before = best.gain;
    best.offer(gain_of<double>(seller->price + buyer->price, std::min(seller->room, buyer->room),
                               curvature),
               seller->index, buyer->index);
    if (best.gain > before) best_amount = amount;
  };
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
// no division is needed. And it is convex in the gap: as a share of the gap it is largest for the
// best price of all. Whoever stays makes a tighter choice of partners, and so on.
template <class A, class BestOf>
Champion prune_and_solve(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                         double least, BestOf best_of) {
  const double dearest = ends.seller.value, cheapest = -ends.buyer.value;
  // No pair moves further, however large its rooms; and an endless room times no gap would not be a
  // number.
  const double farthest = 0.5 * alpha * ends.gap() / least;
  const auto curvature_of = [&](Index i, Index j) {
    return (lipschitz ? lipschitz[i] + lipschitz[j] : 2.0) / alpha;
  };
  const auto gain = [&](Index i, Index j) {
    return gain_of<double>(gap_of(a, i, j), room_of(a, i, j), curvature_of(i, j));
  };
  std::vector<Index> sellers = sample_of(a.n, {ends.seller.index});
  std::vector<Index> buyers = sample_of(a.n, {ends.buyer.index});
  Champion at_hand{gain(ends.seller.index, ends.buyer.index), ends.seller.index, ends.buyer.index};
  const auto offer = [&](const Champion& pair) { at_hand.offer(pair.gain, pair.i, pair.j); };
  offer(good_pair(a, sellers, buyers, lipschitz, alpha, ends.gap()));
  // The best pair of all at the amount of the best pair so far; and what sellers are worth to the
  // cheapest buyer, buyers to the dearest seller.
  const double amount =
      std::min(gap_of(a, at_hand.i, at_hand.j) / curvature_of(at_hand.i, at_hand.j),
               room_of(a, at_hand.i, at_hand.j));
  const auto worth = [&]<class T>(T gap, T room) {
    return maximum(gap, all<T>(0.0)) * minimum(room, all<T>(farthest));
  };
  const auto found = argmax<4>(a.n, [&]<class T>(Index p) {
    const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0), no = all<T>(-INFINITY);
    const T cost = constant * (0.5 * amount / alpha);
    const T down = a.template down_room<T>(p), save = a.template down_price<T>(p);
    const T up = a.template up_room<T>(p), price = a.template up_price<T>(p);
    return std::array<T, 4>{down >= amount ? save - cost : no, up >= amount ? -price - cost : no,
                            worth(T(save - cheapest), down), worth(T(dearest - price), up)};
  });
  for (const Index i : {found[0].index, found[2].index})
    for (const Index j : {found[1].index, found[3].index})
      if (i >= 0 && j >= 0) offer({gain(i, j), i, j});
  Partner seller{dearest, least, found[2].value / ends.gap()};
  Partner buyer{-cheapest, least, found[3].value / ends.gap()};

  // Whether an account stays, as a seller and as a buyer: by what is known now.
  const auto verdicts = [&] {
    const double bar = at_hand.gain * KEEP, per_constant = 2.0 * bar / alpha;
    const Index i = at_hand.i, j = at_hand.j;
    const auto endless_if_far = [&](double room) { return room < farthest ? room : INFINITY; };
    const Offer best_seller{a.template down_price<double>(i),
                            endless_if_far(a.template down_room<double>(i)),
                            lipschitz ? lipschitz[i] : 1.0, i};
    const Offer best_buyer{-a.template up_price<double>(j),
                           endless_if_far(a.template up_room<double>(j)),
                           lipschitz ? lipschitz[j] : 1.0, j};
    const auto spare = [=]<class T>(T price, T room, T constant, Partner partner,
                                    Offer rival) -> T {
      const T gap = maximum(price + partner.price, all<T>(0.0));
      const T gain = minimum(gap * gap - per_constant * (constant + partner.constant),
                             minimum(room, all<T>(partner.worth)) * gap - bar);
      const auto beaten =
          (room <= rival.room) & (price < rival.price) & (constant >= rival.constant);
      return beaten ? all<T>(-1.0) : gain;
    };
    return [=, &a]<class T>(Index p) {
      const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0);
      return std::array<T, 2>{
          spare.template operator()<T>(a.template down_price<T>(p), a.template down_room<T>(p),
                                       constant, buyer, best_seller),
          spare.template operator()<T>(-a.template up_price<T>(p), a.template up_room<T>(p),
                                       constant, seller, best_buyer)};
    };
  };
  sellers.clear();
  buyers.clear();
  collect<2>(a.n, {&sellers, &buyers}, verdicts());

  // Rounds, each of which drops a tenth at least.
  for (std::size_t before = SIZE_MAX;;) {
    const std::size_t size = sellers.size() + buyers.size();
    if (size < 1024 || double(size) > 0.9 * double(before)) break;
    before = size;
    offer(good_pair(a, thinned(sellers), thinned(buyers), lipschitz, alpha, ends.gap()));
    seller = buyer = {-INFINITY, INFINITY, 0.0};
    for (const Index p : sellers) {
      seller.price = std::max(seller.price, a.template down_price<double>(p));
      seller.constant = std::min(seller.constant, lipschitz ? lipschitz[p] : 1.0);
      seller.worth = std::max(seller.worth, worth(a.template down_price<double>(p) - cheapest,
                                                  a.template down_room<double>(p)));
    }
    for (const Index p : buyers) {
      buyer.price = std::max(buyer.price, -a.template up_price<double>(p));
      buyer.constant = std::min(buyer.constant, lipschitz ? lipschitz[p] : 1.0);
      buyer.worth = std::max(buyer.worth, worth(dearest - a.template up_price<double>(p),
                                                a.template up_room<double>(p)));
    }
    seller.worth /= seller.price - cheapest;
    buyer.worth /= dearest + buyer.price;
    const auto stays = verdicts();
    std::erase_if(sellers, [&](Index p) { return !(stays.template operator()<double>(p)[0] > 0); });
    std::erase_if(buyers, [&](Index p) { return !(stays.template operator()<double>(p)[1] > 0); });
  }
  const Champion best = best_of(sellers, buyers);
  return best.i >= 0 && best.gain >= at_hand.gain ? best : at_hand;
}
