// What a rule is asked, and the list of all rules. Included once per instruction set.
//
// A guided rule is a struct with a description, `about`, and
//
//   template <class A, class Curvature>
//   static void choose(const A& a, const Question<Curvature>& q, Move& move);
//
// which leaves its choice in the cleared `move`: nothing, or at least two accounts. An unguided one
// has `static std::array<Index, 2> pair(const Point&, const Choice&, WeightedPairs&)` instead.
// The numbers of a question are of ordinary size (units.hpp), so a rule may multiply them freely.

struct Range {
  double least, most;
};

// Curvature of pairs by the constants (null: all 1), as `propose` knows it.
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
struct Question {
  Choice choice;              // the constants are those of the group
  Extremes ends;              // open: the dearest seller is above the cheapest buyer
  Curvature curvature;        // curvature<T>(i, p) of the pairs (i, p), for a rule that is `curved`
  Range constants{1.0, 1.0};  // of the Lipschitz constants, for a rule that asks for it
};

// The rules R, in order: the code of a rule is its place here.
template <class... R>
struct RuleList {
  static constexpr auto table = [] {
    std::array<Rule, sizeof...(R)> rules{R::about...};
    for (std::size_t k = 0; k < rules.size(); ++k) rules[k].code = int(k);
    return rules;
  }();

  template <class Wanted>
  static const Rule* find() {
    int code = 0;
    ((!std::is_same_v<R, Wanted> && ++code) && ...);
    return &table[code];
  }

  // Call `visitor` with the rule's type.
  template <class Visitor>
  static void visit(const Rule& rule, Visitor visitor) {
    int code = 0;
    (void)((code++ == rule.code ? (visitor.template operator()<R>(), true) : false) || ...);
  }
};

template <class... R, class... S>
RuleList<R..., S...> operator+(RuleList<R...>, RuleList<S...>);
