// Two views of the coordinates that a rule sees. Both have the left derivatives (-inf where a
// coordinate cannot decrease), the right derivatives (+inf where it cannot increase), and the
// distances max_decrease and max_increase to the nearest bound or breakpoint. The NumPy form is
// src/pairstep/rules/coordinates.py. Included once per instruction set.

// The coordinates of a smooth function within bounds, computed from the four arrays of the point.
struct Box {
  Index n;
  const double *gradient, *x, *lower, *upper;

  template <class T>
  T left_derivative(Index p) const {
    return load<T>(x + p) > load<T>(lower + p) ? load<T>(gradient + p) : all<T>(-INFINITY);
  }
  template <class T>
  T right_derivative(Index p) const {
    return load<T>(x + p) < load<T>(upper + p) ? load<T>(gradient + p) : all<T>(INFINITY);
  }
  template <class T>
  T max_decrease(Index p) const {
    return load<T>(x + p) - load<T>(lower + p);
  }
  template <class T>
  T max_increase(Index p) const {
    return load<T>(upper + p) - load<T>(x + p);
  }
  template <class T>
  T derivative(Index p) const {
    return load<T>(gradient + p);
  }
  // 1 if the point is outside its bounds or a number is not finite, otherwise -inf. This checks the
  // input of `propose` in the pass that reads it.
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

// The coordinates from a table, in which a step updates only the coordinates that it changes.
struct TableView : PositionTable {
  explicit TableView(const PositionTable& table) : PositionTable(table) {}

  template <class T>
  T left_derivative(Index p) const {
    return load<T>(gradient + p) + load<T>(left_shift + p);
  }
  template <class T>
  T right_derivative(Index p) const {
    return load<T>(gradient + p) + load<T>(right_shift + p);
  }
  template <class T>
  T max_decrease(Index p) const {
    return load<T>(PositionTable::max_decrease + p);
  }
  template <class T>
  T max_increase(Index p) const {
    return load<T>(PositionTable::max_increase + p);
  }
  template <class T>
  T derivative(Index p) const {
    return load<T>(gradient + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);  // the solver computed these numbers itself
  }
  TableView slice(Index begin, Index end) const {
    return TableView(PositionTable::slice(begin, end));
  }
};

// The pair with the largest gap.
struct Extremes {
  Found down;          // the largest left derivative
  Found up;            // the smallest right derivative; `value` is minus the derivative
  Index suspect = -1;  // a coordinate with invalid input, or -1

  double gap() const { return down.value + up.value; }
  // Whether a step of this pair decreases the objective to first order.
  bool open() const { return down.index >= 0 && up.index >= 0 && gap() > 0; }
};

template <class A>
inline Extremes extremes(const A& coordinates) {
  const auto found = argmax<3>(coordinates.n, [&]<class T>(Index p) {
    return std::array<T, 3>{coordinates.template left_derivative<T>(p),
                            -coordinates.template right_derivative<T>(p),
                            coordinates.template suspect<T>(p)};
  });
  return {found[0], found[1], found[2].index};
}
