// GS-1: steepest descent in the 1-norm within the bounds. Section 3.3 of the paper, eq. (GS-1) and
// Algorithm 1; the NumPy form in src/pairstep/paper/rules/gs_1.py has the derivation. Included once
// per instruction set.
#pragma once

#include "../walk.hpp"

namespace gs_1 {

struct Gs1 {
  static constexpr Rule about{.name = "gs-1", .uses_alpha = true, .one_norm = true};

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const double alpha = input.choice.alpha;
    const Index i = input.ends.down.index, j = input.ends.up.index;
    // If no bound limits the pair with the largest gap, it is the best step.
    if (0.25 * alpha * input.ends.gap() <= slack_of(a, i, j))
      return best_pair_step(a, i, j, 4.0, alpha, step);
    choose_in_one_pass(a, input.choice, step);
  }

  // The same if the extremes are not known yet: one pass instead of two. Returns the extremes,
  // which are the first coordinates of the walk.
  template <class A>
  static CheckedExtremes choose_in_one_pass(const A& a, const Choice& choice, Step& step) {
    const double alpha = choice.alpha;
    const auto max_norm = [alpha](double best_down, double best_up) {
      return 0.25 * alpha * (best_down + best_up);
    };
    return walk_from_ends(a, derivatives_of(a), max_norm, nullptr, alpha, step);
  }

 private:
  template <class A>
  static auto derivatives_of(const A& a) {
    return [&a]<class T>(Index p) {
      return std::array<T, 3>{a.template left_derivative<T>(p), -a.template right_derivative<T>(p),
                              a.template suspect<T>(p)};
    };
  }
};

using Rules = RuleList<Gs1>;

}  // namespace gs_1
