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

// From a ledger, in which only the accounts that move are entered anew.
struct Book : Ledger {
  explicit Book(const Ledger& ledger) : Ledger(ledger) {}

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
    return load<T>(Ledger::down_room + p);
  }
  template <class T>
  T up_room(Index p) const {
    return load<T>(Ledger::up_room + p);
  }
  template <class T>
  T price(Index p) const {
    return load<T>(gradient + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);  // the gear's own numbers
  }
  Book slice(Index begin, Index end) const { return Book(Ledger::slice(begin, end)); }
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
