// LIBSVM's rule since version 2.8: second-order choice of the second coordinate (Fan, Chen and Lin,
// JMLR 6, 2005). Included once per instruction set.
#pragma once

#include "units.hpp"

struct LibsvmSettings {
  // Largest amount that is considered. Without curvature the best amount is infinite; the caller
  // detects that, but the decreases compared here must stay finite. Gaps are at most about 2^150 in
  // the units of the input (see units.hpp), so their products with this amount do not overflow.
  static constexpr double MAX_AMOUNT = 0x1p500;
  // Factor on the threshold of the quick test: 1 minus about 45 times the machine epsilon.
  static constexpr double THRESHOLD_FACTOR = 1.0 - 1e-14;
  // Absolute margin of the quick test: far above the smallest double, and far below any
  // decrease that matters (see units.hpp).
  static constexpr double UNDERFLOW_MARGIN = 0x1p-900;
};

// The step of the rule for numbers of ordinary size. `curvature<T>(i, p)` is the curvature of the
// pairs (i, p).
template <class A, class Curvature>
void choose_moderate_pair(const A& a, const Extremes& ends, Curvature curvature_of,
                          WorkerGroup* worker_group, Step& step) {
  using Settings = LibsvmSettings;
  const Index i = ends.down.index, widest = ends.up.index;
  const double derivative = ends.down.value;
  const double max_decrease = std::min(a.template max_decrease<double>(i), Settings::MAX_AMOUNT);
  // Keep the curvature finite: infinity times an amount of 0 would be NaN.
  const auto curvature = [&]<class T>(Index p) INLINED -> T {
    return minimum(maximum(curvature_of.template operator()<T>(i, p), all<T>(MIN_CURVATURE)),
                   all<T>(MAX_DOUBLE));
  };
  const auto gap = [&]<class T>(Index p)
                       INLINED -> T { return derivative - a.template right_derivative<T>(p); };
  const auto limit = [&]<class T>(Index p) INLINED {
    return minimum(a.template max_increase<T>(p), all<T>(max_decrease));
  };
  const auto decrease = [&]<class T>(Index p) INLINED {
    return model_decrease<T>(gap.template operator()<T>(p), limit.template operator()<T>(p),
                             curvature.template operator()<T>(p));
  };
  // Quick test without a division: curvature times (decrease - threshold). THRESHOLD_FACTOR
  // covers the rounding error of both terms, and UNDERFLOW_MARGIN their underflow.
  const auto excess = [&](Index p, double threshold) INLINED {
    const Lanes c =
        maximum(curvature_of.template operator()<Lanes>(i, p), all<Lanes>(MIN_CURVATURE));
    const Lanes positive_gap = maximum(gap.template operator()<Lanes>(p), all<Lanes>(0.0));
    const Lanes scaled_amount = minimum(c * limit.template operator()<Lanes>(p), positive_gap);
    return multiply_add(scaled_amount, multiply_add(scaled_amount, all<Lanes>(-0.5), positive_gap),
                        c * (-Settings::THRESHOLD_FACTOR * threshold));
  };
  const double known = Settings::THRESHOLD_FACTOR * decrease.template operator()<double>(widest);
  const auto [found] = shared<1>(worker_group, a.n, [&](Index begin, Index end) {
    const auto excess_here = [&](Index p, double threshold)
                                 INLINED { return excess(begin + p, threshold); };
    return std::array{argmax_above(known, end - begin, excess_here, -Settings::UNDERFLOW_MARGIN,
                                   from(begin, decrease))};
  });
  const Index j = found.index >= 0 ? found.index : widest;
  best_pair_step(a, i, j, curvature.template operator()<double>(j), 1.0, step);
}

// The units in which the numbers that determine the choice are about 1.
template <class A, class Curvature>
Units units_of_pairs(const A& a, const Extremes& ends, Curvature curvature_of) {
  const Index i = ends.down.index;
  const int gap = exponent_of_gap(ends);
  double up = 0.0;
  for (Index p = 0; p < a.n; ++p)
    if (a.template right_derivative<double>(p) < ends.down.value)
      up = std::max(up, a.template max_increase<double>(p));
  const double slack = std::min(a.template max_decrease<double>(i), up);
  const double curvature = curvature_of.template operator()<double>(i, ends.up.index);
  int amount = curvature > 0 && curvature <= MAX_DOUBLE ? gap - std::ilogb(curvature)
                                                        : std::numeric_limits<int>::max();
  if (std::isfinite(slack)) amount = std::min(amount, std::ilogb(slack));
  return {-gap, amount == std::numeric_limits<int>::max() ? 0 : -amount};
}

// The step of the rule for any numbers, given the pair with the largest gap, which is positive.
template <class A, class Curvature>
void choose_pair(const A& a, const Extremes& ends, Curvature curvature_of,
                 WorkerGroup* worker_group, Step& step) {
  step.clear();
  const double widest = curvature_of.template operator()<double>(ends.down.index, ends.up.index);
  if (is_moderate(a, ends) && !(widest > UnitsSettings::LARGEST_CURVATURE)) {
    choose_moderate_pair(a, ends, curvature_of, worker_group, step);
  } else {
    const Units units = units_of_pairs(a, ends, curvature_of);
    const Rescaled copy(a, units);
    const TableView view(copy);
    const Extremes rescaled_ends = extremes(view);
    if (rescaled_ends.open())
      choose_moderate_pair(view, rescaled_ends, units.scaled(curvature_of), worker_group, step);
    units.scale_back(a, copy, step);
  }
  // If all decreases that the rule compares underflow, its step may be empty. Take the pair with
  // the largest gap then.
  if (step.index.size() < 2)
    best_pair_step(a, ends.down.index, ends.up.index, std::max(widest, MIN_CURVATURE), 1.0, step);
}
