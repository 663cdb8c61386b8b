// Numbers of any size. Rules multiply prices, rooms, constants and step sizes with each other, so
// they are only asked where these are of ordinary size. Elsewhere they are asked about a copy of
// the accounts in other units, powers of 2, in which they are; so no rule has to think of underflow
// or overflow, and no choice depends on the units. Included once per instruction set.

struct Ordinary {
  static constexpr double LEAST = 0x1p-150, MOST = 0x1p150;
  static bool is(double number) { return number >= LEAST && number <= MOST; }
};

// Of the curvature of pairs, with ordinary gaps.
struct Curved {
  static constexpr double LEAST = 0x1p-300, MOST = 0x1p300;
  template <class Curvature>
  static constexpr bool by_constants = std::is_same_v<Curvature, ByConstants>;
};

inline Range range_of(const double* values, Index n) {
  const auto found = argmax<2>(n, [&]<class T>(Index p) {
    return std::array<T, 2>{-load<T>(values + p), load<T>(values + p)};
  });
  return {-found[0].value, found[1].value};
}

// Whether the rule may be asked as it is: then every gain that matters, in powers of 2, is between
// -500 and 800.
template <class A, class Curvature>
bool is_ordinary(const A& a, const Question<Curvature>& q) {
  const Index i = q.ends.seller.index, j = q.ends.buyer.index;
  const double gap = q.ends.gap(), room = room_of(a, i, j);
  if (!(Ordinary::is(gap) && room >= Ordinary::LEAST)) return false;
  if (q.choice.rule->curved) {
    const double curvature = q.curvature.template operator()<double>(i, j);
    const double own = q.curvature.template operator()<double>(i, i);  // no other is smaller
    return !(curvature > Curved::MOST) &&
           (!Curved::by_constants<Curvature> || own >= Curved::LEAST);
  }
  return Ordinary::is(q.choice.alpha) && Ordinary::is(q.constants.least) &&
         Ordinary::is(q.constants.most);
}

// A copy of accounts in other units.
struct Scaled {
  Index n;
  std::vector<double> price_, down_price_, up_price_, down_room_, up_room_;

  template <class T>
  T down_price(Index p) const {
    return load<T>(down_price_.data() + p);
  }
  template <class T>
  T up_price(Index p) const {
    return load<T>(up_price_.data() + p);
  }
  template <class T>
  T down_room(Index p) const {
    return load<T>(down_room_.data() + p);
  }
  template <class T>
  T up_room(Index p) const {
    return load<T>(up_room_.data() + p);
  }
  template <class T>
  T price(Index p) const {
    return load<T>(price_.data() + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);
  }
};

// Powers of 2 that make the widest gap, the smallest constant and the largest amount that anyone
// may trade about 1. What is further apart than 2^900 in these units is not told from nothing or
// from infinity.
template <class A, class Curvature>
class Units {
 public:
  static constexpr double NEGLIGIBLE = 0x1p-900, ENDLESS = 0x1p600;

  Units(const A& a, const Question<Curvature>& q) : a_(a), q_(q) {
    const Choice& choice = q.choice;
    const double dearest = q.ends.seller.value, cheapest = -q.ends.buyer.value;
    // By halves where the gap is too large for a number.
    const int gap = std::isfinite(q.ends.gap()) ? std::ilogb(q.ends.gap())
                                                : 1 + std::ilogb(0.5 * dearest - 0.5 * cheapest);
    by_price_ = -gap;
    if (weighs()) by_constant_ = -std::ilogb(range_of(choice.lipschitz, a.n).least);
    by_constant_ -= by_constant_ % 2;  // even, for roots are taken
    double down = 0.0, up = 0.0;
    for (Index p = 0; p < a.n; ++p) {
      if (sells(p) && !(choice.rule->curved && p != q.ends.seller.index))
        down = std::max(down, a.template down_room<double>(p));
      if (buys(p)) up = std::max(up, a.template up_room<double>(p));
    }
    const double room = std::min(down, up);
    int amount = std::ilogb(choice.alpha) + gap + by_constant_;
    if (choice.rule->curved && !Curved::by_constants<Curvature>) {
      const double curvature =
          q.curvature.template operator()<double>(q.ends.seller.index, q.ends.buyer.index);
      amount = curvature > 0 && curvature <= MOST ? gap - std::ilogb(curvature)
                                                  : std::numeric_limits<int>::max();
    }
    if (std::isfinite(room)) amount = std::min(amount, std::ilogb(room));
    by_amount_ = amount == std::numeric_limits<int>::max() ? 0 : -amount;
  }

  // Ask the rule R, and translate its answer.
  template <class R>
  void ask(Move& move) const {
    const Index n = a_.n;
    std::vector<double> constants;
    Choice choice = q_.choice;
    choice.alpha =
        std::min(std::ldexp(choice.alpha, by_amount_ - by_price_ + by_constant_), ENDLESS);
    if (weighs()) {
      for (Index p = 0; p < n; ++p)
        constants.push_back(std::min(std::ldexp(choice.lipschitz[p], by_constant_), ENDLESS));
      choice.lipschitz = constants.data();
    }
    const Scaled accounts = scaled();
    const auto curvature = curvature_in_units(choice);
    Question<std::remove_const_t<decltype(curvature)>> question{choice, extremes(accounts),
                                                                curvature};
    if (weighs()) question.constants = range_of(choice.lipschitz, n);
    if (question.ends.open()) R::choose(accounts, question, move);
    translate(accounts, move);
  }

 private:
  bool weighs() const {
    return q_.choice.lipschitz && (q_.choice.rule->weighted || q_.choice.rule->curved);
  }
  bool sells(Index p) const { return a_.template down_price<double>(p) > -q_.ends.buyer.value; }
  bool buys(Index p) const { return a_.template up_price<double>(p) < q_.ends.seller.value; }

  double in_units(double price) const {
    return std::clamp(std::ldexp(price, by_price_), -ENDLESS, ENDLESS);
  }

  auto curvature_in_units(const Choice& choice) const {
    if constexpr (Curved::by_constants<Curvature>) {
      return ByConstants{choice.lipschitz, choice.alpha};
    } else {
      // In two steps, each of which is a number.
      const int power = std::clamp(by_price_ - by_amount_, -2000, 2000);
      const double first = std::ldexp(1.0, power / 2), second = std::ldexp(1.0, power - power / 2);
      return [this, first, second]<class T>(Index i, Index p) -> T {
        return q_.curvature.template operator()<T>(i, p) * first * second;
      };
    }
  }

  Scaled scaled() const {
    Scaled copy{a_.n, {}, {}, {}, {}, {}};
    for (Index p = 0; p < a_.n; ++p) {
      const double down = std::ldexp(a_.template down_room<double>(p), by_amount_);
      const double up = std::ldexp(a_.template up_room<double>(p), by_amount_);
      const bool sells = down >= NEGLIGIBLE, buys = up >= NEGLIGIBLE;
      copy.price_.push_back(in_units(a_.template price<double>(p)));
      copy.down_room_.push_back(sells ? down : 0.0);
      copy.up_room_.push_back(buys ? up : 0.0);
      copy.down_price_.push_back(sells ? in_units(a_.template down_price<double>(p)) : -INFINITY);
      copy.up_price_.push_back(buys ? in_units(a_.template up_price<double>(p)) : INFINITY);
    }
    return copy;
  }

  void translate(const Scaled& accounts, Move& move) const {
    double least = INFINITY;
    bool finite = true;
    for (std::size_t k = 0; k < move.index.size(); ++k) {
      const Index p = move.index[k];
      const bool down = move.delta[k] < 0;
      const double size = std::abs(move.delta[k]);
      const double room = down ? a_.template down_room<double>(p) : a_.template up_room<double>(p);
      const bool all_of_it = size >= (down ? accounts.down_room_[p] : accounts.up_room_[p]);
      const double amount = std::min(all_of_it ? room : std::ldexp(size, -by_amount_), room);
      move.delta[k] = std::copysign(amount, move.delta[k]);
      least = std::min(least, amount);
      finite = finite && amount <= MOST;
    }
    if (move.index.size() == 2)  // exactly the same
      for (double& delta : move.delta) delta = std::copysign(std::min(least, MOST), delta);
    else if (!finite) move.clear();
    if (!(least > 0)) move.clear();
    move.decrease = std::min(std::ldexp(move.decrease, -by_amount_ - by_price_), MOST);
  }

  const A& a_;
  const Question<Curvature>& q_;
  int by_price_ = 0, by_constant_ = 0, by_amount_ = 0;
};
