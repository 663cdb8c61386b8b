// The ratio approximation of the rules with Lipschitz constants, and its variants with bounds.
// Section 4 of the paper, eq. (ratio); the NumPy form is src/pairstep/paper/rules/ratio.py.
// Included once per instruction set.
#pragma once

#include "../walk.hpp"

namespace ratio {

// Scores of a coordinate: its ratio (derivative - mean) / root if it decreases, and minus its ratio
// if it increases. The mean of the derivatives is clipped to the interval between the extremes, as
// in the NumPy form. The third score, for invalid input, is always -inf.
template <class A>
auto ratio_score(const A& a, const Extremes& ends, const double* lipschitz) {
  Lanes sums = all<Lanes>(0.0);
  Index p = 0;
  for (; p + WIDTH <= a.n; p += WIDTH) sums = sums + a.template derivative<Lanes>(p);
  double sum = 0.0;
  for (Index k = 0; k < WIDTH; ++k) sum += sums[k];
  for (; p < a.n; ++p) sum += a.template derivative<double>(p);
  // Clipping also removes an infinite or undefined mean, if the sum overflows.
  const double mean = std::min(std::max(-ends.up.value, sum / double(a.n)), ends.down.value);
  return [&a, lipschitz, mean]<class T>(Index p) {
    const T root = square_root(load<T>(lipschitz + p));
    return std::array<T, 3>{(a.template left_derivative<T>(p) - mean) / root,
                            (mean - a.template right_derivative<T>(p)) / root, all<T>(-INFINITY)};
  };
}

struct GsSRatio {
  static constexpr Rule about{.name = "gs-s-ratio", .alias = "ratio", .weighted = true};

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const double* lipschitz = input.choice.lipschitz;
    const auto found = argmax<3>(a.n, ratio_score(a, input.ends, lipschitz));
    const Index i = found[0].index, j = found[1].index;
    if (i < 0 || j < 0) return;
    best_pair_step(a, i, j, lipschitz[i] + lipschitz[j], input.choice.alpha, step);
  }
};

struct Gs1Ratio {
  static constexpr Rule about{.name = "gs-1-ratio", .weighted = true, .one_norm = true};
  static constexpr bool needs_range = true;

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const double* lipschitz = input.choice.lipschitz;
    const double alpha = input.choice.alpha;
    // The norm is at most alpha gap / (root_i + root_j) for the first pair, and this quotient lies
    // between the two ratios.
    const auto max_norm = [alpha](double down, double up) { return alpha * std::max(down, up); };
    walk_from_ends(a, ratio_score(a, input.ends, lipschitz), max_norm, lipschitz, alpha, step);
  }
};

using Rules = RuleList<GsSRatio, Gs1Ratio>;

}  // namespace ratio
