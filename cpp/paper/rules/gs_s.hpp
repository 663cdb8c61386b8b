// GS-s: the pair with the most negative directional derivative. Section 3.1 of the paper; the NumPy
// form is src/pairstep/paper/rules/gs_s.py. Included once per instruction set.
#pragma once

#include "../rule.hpp"

namespace gs_s {

struct GsS {
  static constexpr Rule about{.name = "gs-s", .alias = "greedy"};
  static constexpr bool handles_any_scale = true;  // it only compares derivatives

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    best_pair_step(a, input.ends.down.index, input.ends.up.index, 2.0, input.choice.alpha, step);
  }
};

using Rules = RuleList<GsS>;

}  // namespace gs_s
