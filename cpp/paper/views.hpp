// Two views of the coordinates that a rule sees. Both have the left derivatives (-inf where a
// coordinate cannot decrease), the right derivatives (+inf where it cannot increase), the distances
// max_decrease and max_increase to the nearest bound or breakpoint, and the derivative without L1
// term. The NumPy form is src/pairstep/coordinates.py. Included once per instruction set.
#pragma once

#include "../isa/coordinates.hpp"

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

// The coordinates from a table, with derivatives that the table of rescaled coordinates lacks.
struct View : TableView {
  const double* derivatives;

  explicit View(const PositionTable& table) : View(table, table.gradient) {}
  View(const PositionTable& table, const double* derivatives)
      : TableView(table), derivatives(derivatives) {}

  template <class T>
  T derivative(Index p) const {
    return load<T>(derivatives + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);  // the solver computed these numbers itself
  }
  View slice(Index begin, Index end) const {
    return View(PositionTable::slice(begin, end), derivatives + begin);
  }
};

// The pair with the largest gap, or a coordinate with invalid input.
struct CheckedExtremes {
  Extremes ends;
  Index suspect = -1;
};

template <class A>
inline CheckedExtremes checked_extremes(const A& a) {
  const auto found = argmax<3>(a.n, [&]<class T>(Index p) {
    return std::array<T, 3>{a.template left_derivative<T>(p), -a.template right_derivative<T>(p),
                            a.template suspect<T>(p)};
  });
  return {{found[0], found[1]}, found[2].index};
}
