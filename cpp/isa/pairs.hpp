// Steps of two coordinates: coordinate i decreases and coordinate j increases by the same amount d.
// The gap of a pair is the left derivative of i minus the right derivative of j, and the model of
// the objective decreases by d gap - curvature d^2 / 2. Included once per instruction set.
#pragma once

#include "coordinates.hpp"

template <class A>
inline double gap_of(const A& a, Index i, Index j) {
  return a.template left_derivative<double>(i) - a.template right_derivative<double>(j);
}

// The largest feasible amount of a pair.
template <class A>
inline double slack_of(const A& a, Index i, Index j) {
  return std::min(a.template max_decrease<double>(i), a.template max_increase<double>(j));
}

// max over 0 <= d <= slack of d gap - curvature d^2 / 2; 0 if the gap or the slack is not positive.
template <class T>
inline T model_decrease(T gap, T slack, T curvature) {
  const T zero = all<T>(0.0);
  gap = maximum(gap, zero);
  const T amount = minimum(maximum(slack, zero), gap / curvature);
  return amount * (gap - 0.5 * curvature * amount);
}

// Smaller curvatures are replaced by this one, so that a quotient by the curvature is never NaN. It
// is far below any curvature that matters, and its reciprocal is finite.
constexpr double MIN_CURVATURE = 0x1p-1000;
constexpr double MAX_DOUBLE = std::numeric_limits<double>::max();

// alpha gap / width for numbers of any size: no intermediate result overflows or underflows.
inline double full_amount(double alpha, double gap, double width) {
  constexpr double SMALLEST = 0x1p-1000, LARGEST = 0x1p1000;
  const auto is_safe = [](double number) { return number >= SMALLEST && number <= LARGEST; };
  const double product = alpha * gap, amount = product / width;
  if (is_safe(product) && is_safe(width) && is_safe(amount)) return amount;
  int by_alpha, by_gap, by_width;
  const double mantissa = std::frexp(alpha, &by_alpha) * std::frexp(gap, &by_gap);
  const double quotient = mantissa / std::frexp(std::min(width, LARGEST), &by_width);
  return std::ldexp(quotient, by_alpha + by_gap - by_width);
}

// The best step of i and j for the model d gap - width d^2 / (2 alpha). The step is empty if no
// step decreases the model.
template <class A>
inline void best_pair_step(const A& a, Index i, Index j, double width, double alpha, Step& step) {
  step.clear();
  if (i < 0 || j < 0 || i == j) return;
  const double gap = std::min(gap_of(a, i, j), MAX_DOUBLE);
  if (!(gap > 0)) return;
  const double full = full_amount(alpha, gap, width);
  const double amount = std::min({full, slack_of(a, i, j), MAX_DOUBLE});
  if (!(amount > 0)) return;
  step.add(i, -amount);
  step.add(j, amount);
  step.decrease = std::min(amount * gap * (1.0 - 0.5 * (amount / full)), MAX_DOUBLE);
}
