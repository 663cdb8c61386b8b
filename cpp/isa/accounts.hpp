// Two views of accounts, all that a rule may see: down_price and up_price (-inf and +inf where
// there is no room) and the rooms. Included once per instruction set.

// Straight from the point of a smooth problem within bounds: one pass over four arrays.
struct Box {
  Index n;
  const double *gradient, *x, *lower, *upper;

  template <class T>
  T down_price(Index p) const {
    return load<T>(x + p) > load<T>(lower + p) ? load<T>(gradient + p) : all<T>(-INFINITY);
  }
  template <class T>
  T up_price(Index p) const {
    return load<T>(x + p) < load<T>(upper + p) ? load<T>(gradient + p) : all<T>(INFINITY);
  }
  template <class T>
  T down_room(Index p) const {
    return load<T>(x + p) - load<T>(lower + p);
  }
  template <class T>
  T up_room(Index p) const {
    return load<T>(upper + p) - load<T>(x + p);
  }
  template <class T>
  T price(Index p) const {
    return load<T>(gradient + p);
  }
  // 1 where the point is outside its bounds or a number is not finite, else -inf: the input of
  // `propose` is checked in the pass that reads it.
  template <class T>
  T suspect(Index p) const {
    const T g = load<T>(gradient + p), at = load<T>(x + p);
    const T odd = (g - g) + (at - at);  // NaN where g or x is not finite
    const auto fine = (at >= load<T>(lower + p)) & (at <= load<T>(upper + p)) & (odd == 0.0);
    return fine ? all<T>(-INFINITY) : all<T>(1.0);
  }
  Box slice(Index begin, Index end) const {
    return {end - begin, gradient + begin, x + begin, lower + begin, upper + begin};
  }
};

// Kept by the greedy gear: what a bound or a kink adds to the gradient, and the rooms. Only the
// accounts that move are priced anew, and only here do bounds and kinks appear.
struct Ledger {
  Index n;
  const double* gradient;
  double *down_shift, *up_shift, *down_room_, *up_room_;

  template <class T>
  T down_price(Index p) const {
    return load<T>(gradient + p) + load<T>(down_shift + p);
  }
  template <class T>
  T up_price(Index p) const {
    return load<T>(gradient + p) + load<T>(up_shift + p);
  }
  template <class T>
  T down_room(Index p) const {
    return load<T>(down_room_ + p);
  }
  template <class T>
  T up_room(Index p) const {
    return load<T>(up_room_ + p);
  }
  template <class T>
  T price(Index p) const {
    return load<T>(gradient + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);  // the gear's own numbers
  }
  Ledger slice(Index begin, Index end) const {
    return {end - begin,      gradient + begin,   down_shift + begin,
            up_shift + begin, down_room_ + begin, up_room_ + begin};
  }

  // Where account i stands if it is emptied, and if it is filled.
  static double floor_of(const Point& point, Index i) {
    const bool above = point.kink && point.x[i] > point.pivot[i];
    return above ? std::max(point.lower[i], point.pivot[i]) : point.lower[i];
  }
  static double ceiling_of(const Point& point, Index i) {
    const bool below = point.kink && point.x[i] < point.pivot[i];
    return below ? std::min(point.upper[i], point.pivot[i]) : point.upper[i];
  }
  void price_account(const Point& point, Index i) {
    const double weight = point.kink ? point.kink[i] : 0.0;
    down_room_[i] = point.x[i] - floor_of(point, i);
    up_room_[i] = ceiling_of(point, i) - point.x[i];
    const bool falls = point.kink && point.x[i] <= point.pivot[i];
    const bool rises = !point.kink || point.x[i] >= point.pivot[i];
    down_shift[i] = down_room_[i] > 0 ? (falls ? -weight : weight) : -INFINITY;
    up_shift[i] = up_room_[i] > 0 ? (rises ? weight : -weight) : INFINITY;
  }
};

// A ledger with its memory.
struct OwnLedger : Ledger {
  Aligned memory[4];

  explicit OwnLedger(Index size)
      : memory{Aligned(size), Aligned(size), Aligned(size), Aligned(size)} {
    n = size;
    down_shift = memory[0].data();
    up_shift = memory[1].data();
    down_room_ = memory[2].data();
    up_room_ = memory[3].data();
  }
  explicit OwnLedger(const Point& point) : OwnLedger(point.n) { price(point); }

  void price(const Point& point) {
    gradient = point.gradient;
    for (Index i = 0; i < n; ++i) price_account(point, i);
  }
};

// The dearest seller and the cheapest buyer.
struct Extremes {
  Found seller, buyer;  // buyer.value is minus its up-price
  Index suspect = -1;

  double gap() const { return seller.value + buyer.value; }
  bool open() const { return seller.index >= 0 && buyer.index >= 0 && gap() > 0; }
};

template <class A>
inline Extremes extremes(const A& accounts) {
  const auto found = argmax<3>(accounts.n, [&]<class T>(Index p) {
    return std::array<T, 3>{accounts.template down_price<T>(p), -accounts.template up_price<T>(p),
                            accounts.template suspect<T>(p)};
  });
  return {found[0], found[1], found[2].index};
}
