// The input of a rule, and the list of all rules. Included once per instruction set.
//
// A rule that uses the derivatives is a struct with a description, `about`, and
//
//   template <class A, class Curvature>
//   static void choose(const A& a, const RuleInput<Curvature>& input, Step& step);
//
// which puts its choice into the empty `step`: no coordinates, or at least two. Any other rule has
// `static std::array<Index, 2> pair(const Point&, const Choice&, WeightedPairs&)` instead. The
// input is scaled (units.hpp), so a rule can multiply its numbers without overflow. Optional
// members of a rule:
//
//   needs_range         RuleInput::constants is filled in
//   handles_any_scale   the input is not scaled
//   choose_in_one_pass  called instead of `choose` if the extremes are not known yet

struct Range {
  double least, most;
};

// The curvature of pairs from the Lipschitz constants (null: all 1), if there is no Hessian.
struct ByConstants {
  const double* lipschitz;
  double alpha;

  template <class T>
  T operator()(Index i, Index p) const {
    if (!lipschitz) return all<T>(2.0 / alpha);
    return (lipschitz[i] + load<T>(lipschitz + p)) / alpha;
  }
};

template <class Curvature>
struct RuleInput {
  Choice choice;              // its Lipschitz constants are those of the group
  Extremes ends;              // the pair with the largest gap, which is positive
  Curvature curvature;        // curvature<T>(i, p) of the pairs (i, p), for a rule that is `curved`
  Range constants{1.0, 1.0};  // of the Lipschitz constants, for a rule with `needs_range`
};

// The rules R, in order: the code of a rule is its position here.
template <class... R>
struct RuleList {
  static constexpr auto table = [] {
    std::array<Rule, sizeof...(R)> rules{R::about...};
    for (std::size_t k = 0; k < rules.size(); ++k) rules[k].code = int(k);
    return rules;
  }();

  template <class Wanted>
  static constexpr const Rule* find() {
    int code = 0;
    ((!std::is_same_v<R, Wanted> && ++code) && ...);
    return &table[code];
  }

  // Call `visitor` with the type of the rule.
  template <class Visitor>
  static void visit(const Rule& rule, Visitor visitor) {
    int code = 0;
    (void)((code++ == rule.code ? (visitor.template operator()<R>(), true) : false) || ...);
  }
};

template <class... R, class... S>
RuleList<R..., S...> operator+(RuleList<R...>, RuleList<S...>);
