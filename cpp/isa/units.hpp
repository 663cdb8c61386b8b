// Rescaling, so that the choice of a pair can multiply derivatives, distances and curvatures with
// each other without overflow or underflow. If these numbers are too large or too small, the pair
// is chosen for a rescaled copy of the coordinates. The scales are powers of 2, so the choice does
// not depend on them. Included once per instruction set.
#pragma once

#include "pairs.hpp"

struct UnitsSettings {
  // Nothing is rescaled if gaps and limits are in this range. Every decrease of the model that
  // matters then lies between 2^-500 and 2^800.
  static constexpr double SMALLEST = 0x1p-150, LARGEST = 0x1p150;
  // The same for the curvature of pairs.
  static constexpr double SMALLEST_CURVATURE = 0x1p-300, LARGEST_CURVATURE = 0x1p300;
  // In a rescaled copy, distances below MIN_SCALED_DISTANCE become 0, and other numbers are clipped
  // to MAX_SCALED. The numbers that determine the choice are about 1, so their products with the
  // limits neither underflow nor overflow.
  static constexpr double MIN_SCALED_DISTANCE = 0x1p-900, MAX_SCALED = 0x1p600;
};

inline bool is_moderate(double number) {
  return number >= UnitsSettings::SMALLEST && number <= UnitsSettings::LARGEST;
}

// Whether the largest gap, and the limit of its pair, need no rescaling.
template <class A>
bool is_moderate(const A& a, const Extremes& ends) {
  return is_moderate(ends.gap()) &&
         slack_of(a, ends.down.index, ends.up.index) >= UnitsSettings::SMALLEST;
}

// The power of 2 that is next to the largest gap.
inline int exponent_of_gap(const Extremes& ends) {
  // Use half of the gap if the gap itself overflows.
  return std::isfinite(ends.gap()) ? std::ilogb(ends.gap())
                                   : 1 + std::ilogb(0.5 * ends.down.value + 0.5 * ends.up.value);
}

// Powers of 2 by which derivatives and amounts are multiplied, so that the largest gap and the
// largest possible amount are about 1.
struct Units {
  int by_derivative = 0, by_amount = 0;

  double scaled_derivative(double derivative) const {
    return std::clamp(std::ldexp(derivative, by_derivative), -UnitsSettings::MAX_SCALED,
                      UnitsSettings::MAX_SCALED);
  }

  // The curvature of pairs in the units of the copy. The scale is applied in two steps, because the
  // whole power of 2 may be out of range.
  template <class Curvature>
  auto scaled(Curvature curvature) const {
    const int power = std::clamp(by_derivative - by_amount, -2000, 2000);
    const double first = std::ldexp(1.0, power / 2), second = std::ldexp(1.0, power - power / 2);
    return [=]<class T>(Index i, Index p) -> T {
      return curvature.template operator()<T>(i, p) * first * second;
    };
  }

  // Scale a step for the copy back. A change that uses all of max_decrease or max_increase does so
  // exactly in the original units.
  template <class A>
  void scale_back(const A& a, const PositionTable& copy, Step& step) const {
    double least = INFINITY;
    bool finite = true;
    for (std::size_t k = 0; k < step.index.size(); ++k) {
      const Index p = step.index[k];
      const bool down = step.delta[k] < 0;
      const double size = std::abs(step.delta[k]);
      const double slack =
          down ? a.template max_decrease<double>(p) : a.template max_increase<double>(p);
      const bool is_full = size >= (down ? copy.max_decrease[p] : copy.max_increase[p]);
      const double amount = std::min(is_full ? slack : std::ldexp(size, -by_amount), slack);
      step.delta[k] = std::copysign(amount, step.delta[k]);
      least = std::min(least, amount);
      finite = finite && amount <= MAX_DOUBLE;
    }
    if (step.index.size() == 2)  // both changes must have exactly the same size
      for (double& delta : step.delta) delta = std::copysign(std::min(least, MAX_DOUBLE), delta);
    else if (!finite) step.clear();
    if (!(least > 0)) step.clear();
    step.decrease = std::min(std::ldexp(step.decrease, -by_amount - by_derivative), MAX_DOUBLE);
  }
};

// A rescaled copy of the coordinates. Its shifts are whole derivatives, so its gradient is 0.
struct Rescaled : OwnPositionTable {
  template <class A>
  Rescaled(const A& a, const Units& units) : OwnPositionTable(a.n), zeros_(std::size_t(a.n)) {
    gradient = zeros_.data();
    for (Index p = 0; p < n; ++p) {
      const double down = std::ldexp(a.template max_decrease<double>(p), units.by_amount);
      const double up = std::ldexp(a.template max_increase<double>(p), units.by_amount);
      const bool decreases = down >= UnitsSettings::MIN_SCALED_DISTANCE,
                 increases = up >= UnitsSettings::MIN_SCALED_DISTANCE;
      max_decrease[p] = decreases ? down : 0.0;
      max_increase[p] = increases ? up : 0.0;
      left_shift[p] =
          decreases ? units.scaled_derivative(a.template left_derivative<double>(p)) : -INFINITY;
      right_shift[p] =
          increases ? units.scaled_derivative(a.template right_derivative<double>(p)) : INFINITY;
    }
  }

 private:
  std::vector<double> zeros_;
};
