// GS-1: steepest descent in the 1-norm, rooms included. Included once per instruction set.

namespace gs_1 {

struct Gs1 {
  static constexpr Rule about{.name = "gs-1", .uses_alpha = true, .one_norm = true};

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const double alpha = q.choice.alpha;
    const Index i = q.ends.seller.index, j = q.ends.buyer.index;
    // Where their pair is not cut by a room, it is the answer.
    if (0.25 * alpha * q.ends.gap() <= room_of(a, i, j))
      return best_pair_move(a, i, j, 4.0, alpha, move);
    choose_at_once(a, q.choice, move);
  }

  // The same without knowing the extremes, in one pass instead of two: the best of both sides are
  // the extremes.
  template <class A>
  static Extremes choose_at_once(const A& a, const Choice& choice, Move& move) {
    const double alpha = choice.alpha;
    const auto enough = [alpha](double dearest, double cheapest) {
      return 0.25 * alpha * (dearest + cheapest);
    };
    return walk_from_ends(a, prices_of(a), enough, nullptr, alpha, move);
  }

 private:
  template <class A>
  static auto prices_of(const A& a) {
    return [&a]<class T>(Index p) {
      return std::array<T, 3>{a.template down_price<T>(p), -a.template up_price<T>(p),
                              a.template suspect<T>(p)};
    };
  }
};

using Rules = RuleList<Gs1>;

}  // namespace gs_1
