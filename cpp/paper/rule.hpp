// The input of a rule, and the list of all rules. Included once per instruction set.
//
// A rule that uses the derivatives is a struct with a description, `about`, and
//
//   template <class A>
//   static void choose(const A& a, const RuleInput& input, Step& step);
//
// which puts its choice into the empty `step`: no coordinates, or at least two. Any other rule has
// `static std::array<Index, 2> pair(const Point&, const Choice&, WeightedPairs&)` instead. The
// input is scaled (weighted_units.hpp), so a rule can multiply its numbers without overflow.
// Optional members of a rule:
//
//   needs_range         RuleInput::constants is filled in
//   handles_any_scale   the input is not scaled
//   choose_in_one_pass  called instead of `choose` if the extremes are not known yet
#pragma once

#include "draws.hpp"
#include "views.hpp"
#include "../isa/pairs.hpp"

struct Range {
  double least, most;
};

// The curvature of pairs from the Lipschitz constants (null: all 1), for a rule that is `curved`,
// if there is no Hessian.
struct ByConstants {
  const double* lipschitz;
  double alpha;

  template <class T>
  T operator()(Index i, Index p) const {
    if (!lipschitz) return all<T>(2.0 / alpha);
    return (lipschitz[i] + load<T>(lipschitz + p)) / alpha;
  }
};

struct RuleInput {
  Choice choice;              // its Lipschitz constants are those of the group
  Extremes ends;              // the pair with the largest gap, which is positive
  Range constants{1.0, 1.0};  // of the Lipschitz constants, for a rule with `needs_range`
};

// The width in the model d gap - width d^2 / (2 alpha) of a pair: the squared norm of the step that
// changes both by 1, in the norm of a rule that does not use the Hessian.
inline double width_of(const Rule& rule, const double* lipschitz, Index i, Index j) {
  if (!rule.weighted) return rule.one_norm ? 4.0 : 2.0;
  if (!rule.one_norm) return lipschitz[i] + lipschitz[j];
  const double roots = std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j]);
  return roots * roots;
}

// The rules R, in order: the code of a rule is its position here.
template <class... R>
struct RuleList {
  static constexpr auto table = [] {
    std::array<Rule, sizeof...(R)> rules{R::about...};
    for (std::size_t k = 0; k < rules.size(); ++k) rules[k].code = int(k);
    return rules;
  }();

  // Call `visitor` with the type of the rule.
  template <class Visitor>
  static void visit(const Rule& rule, Visitor visitor) {
    int code = 0;
    (void)((code++ == rule.code ? (visitor.template operator()<R>(), true) : false) || ...);
  }
};

template <class... R, class... S>
RuleList<R..., S...> operator+(RuleList<R...>, RuleList<S...>);
