// Rescaling (isa/units.hpp) of the input of a rule, which also has Lipschitz constants and a step
// size. The NumPy form is src/pairstep/paper/rules/units.py. Included once per instruction set.
#pragma once

#include "rule.hpp"
#include "../isa/units.hpp"

// The smallest and the largest of some numbers.
inline Range range_of(const double* values, Index n) {
  const auto found = argmax<2>(n, [&]<class T>(Index p) {
    return std::array<T, 2>{-load<T>(values + p), load<T>(values + p)};
  });
  return {-found[0].value, found[1].value};
}

// Whether a rule can be called without rescaling.
template <class A>
bool is_moderate(const A& a, const RuleInput& input) {
  const Choice& choice = input.choice;
  if (!is_moderate(a, input.ends)) return false;
  if (choice.rule->curved) {
    const Index i = input.ends.down.index, j = input.ends.up.index;
    const ByConstants curvature{choice.lipschitz, choice.alpha};
    // Every pair of i has at least half of the curvature of i with itself.
    return curvature.operator()<double>(i, j) <= UnitsSettings::LARGEST_CURVATURE &&
           curvature.operator()<double>(i, i) >= UnitsSettings::SMALLEST_CURVATURE;
  }
  return is_moderate(choice.alpha) && is_moderate(input.constants.least) &&
         is_moderate(input.constants.most);
}

// Powers of 2 that make the largest gap, the smallest Lipschitz constant and the largest possible
// amount about 1.
template <class A>
class WeightedUnits {
 public:
  WeightedUnits(const A& a, const RuleInput& input) : a_(a), input_(input) {
    const Choice& choice = input.choice;
    const int gap = exponent_of_gap(input.ends);
    units_.by_derivative = -gap;
    if (uses_constants()) by_constant_ = -std::ilogb(range_of(choice.lipschitz, a.n).least);
    by_constant_ -= by_constant_ % 2;  // even: rules take square roots
    double down = 0.0, up = 0.0;
    for (Index p = 0; p < a.n; ++p) {
      if (can_decrease(p) && !(choice.rule->curved && p != input.ends.down.index))
        down = std::max(down, a.template max_decrease<double>(p));
      if (can_increase(p)) up = std::max(up, a.template max_increase<double>(p));
    }
    const double slack = std::min(down, up);
    int amount = std::ilogb(choice.alpha) + gap + by_constant_;
    if (std::isfinite(slack)) amount = std::min(amount, std::ilogb(slack));
    units_.by_amount = -amount;
  }

  // Call the rule R with the rescaled coordinates, and scale its step back.
  template <class R>
  void call(Step& step) const {
    const Index n = a_.n;
    RuleInput input{input_.choice, {}};
    Choice& choice = input.choice;
    choice.alpha =
        std::min(std::ldexp(choice.alpha, units_.by_amount - units_.by_derivative + by_constant_),
                 UnitsSettings::MAX_SCALED);
    std::vector<double> constants;
    if (uses_constants()) {
      for (Index p = 0; p < n; ++p)
        constants.push_back(
            std::min(std::ldexp(choice.lipschitz[p], by_constant_), UnitsSettings::MAX_SCALED));
      choice.lipschitz = constants.data();
      input.constants = range_of(choice.lipschitz, n);
    }
    std::vector<double> derivatives;
    for (Index p = 0; p < n; ++p)
      derivatives.push_back(units_.scaled_derivative(a_.template derivative<double>(p)));
    const Rescaled copy(a_, units_);
    const View view(copy, derivatives.data());
    input.ends = extremes(view);
    if (input.ends.open()) R::choose(view, input, step);
    units_.scale_back(a_, copy, step);
  }

 private:
  bool uses_constants() const {
    return input_.choice.lipschitz && (input_.choice.rule->weighted || input_.choice.rule->curved);
  }
  bool can_decrease(Index p) const {
    return a_.template left_derivative<double>(p) > -input_.ends.up.value;
  }
  bool can_increase(Index p) const {
    return a_.template right_derivative<double>(p) < input_.ends.down.value;
  }

  const A& a_;
  const RuleInput& input_;
  Units units_;
  int by_constant_ = 0;
};
