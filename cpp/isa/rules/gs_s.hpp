// GS-s: the pair with the steepest slope. Included once per instruction set.

namespace gs_s {

struct GsS {
  static constexpr Rule about{.name = "gs-s", .alias = "greedy"};
  static constexpr bool of_any_size = true;  // it compares prices only

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    best_pair_move(a, q.ends.seller.index, q.ends.buyer.index, 2.0, q.choice.alpha, move);
  }
};

using Rules = RuleList<GsS>;

}  // namespace gs_s
