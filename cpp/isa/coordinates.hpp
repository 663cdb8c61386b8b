// The coordinates as the coordinate-descent solver sees them: the left derivatives (-inf where a
// coordinate cannot decrease), the right derivatives (+inf where it cannot increase), and the
// distances max_decrease and max_increase to the nearest bound or breakpoint. Included once per
// instruction set.
#pragma once

#include "simd.hpp"

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
  TableView slice(Index begin, Index end) const {
    return TableView(PositionTable::slice(begin, end));
  }
};

// The pair with the largest gap.
struct Extremes {
  Found down;  // the largest left derivative
  Found up;    // the smallest right derivative; `value` is minus the derivative

  double gap() const { return down.value + up.value; }
  // Whether a step of this pair decreases the objective to first order.
  bool open() const { return down.index >= 0 && up.index >= 0 && gap() > 0; }
};

inline Extremes extremes(const TableView& coordinates) {
  const auto found = argmax<2>(coordinates.n, [&]<class T>(Index p) {
    return std::array<T, 2>{coordinates.left_derivative<T>(p), -coordinates.right_derivative<T>(p)};
  });
  return {found[0], found[1]};
}
