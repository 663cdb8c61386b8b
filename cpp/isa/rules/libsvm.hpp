// LIBSVM's second-order choice of the partner. Included once per instruction set.

namespace libsvm {

struct Libsvm {
  static constexpr Rule about{.name = "libsvm", .curved = true};

  // Where the Hessian has no curvature a step has no end, which the caller finds; here it must only
  // stay a number. With gaps of ordinary size, amounts up to FAR give gains that can be compared.
  static constexpr double FAR = 0x1p500;

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const Index i = q.ends.seller.index;
    const double price = q.ends.seller.value;
    const double room = std::min(a.template down_room<double>(i), FAR);
    const auto found = argmax<1>(a.n, [&]<class T>(Index p) {
      const T c = bounded(q.curvature.template operator()<T>(i, p));
      const T limit = minimum(a.template up_room<T>(p), all<T>(room));
      return std::array<T, 1>{gain_of<T>(price - a.template up_price<T>(p), limit, c)};
    });
    const Index j = found[0].value > 0 ? found[0].index : q.ends.buyer.index;
    best_pair_move(a, i, j, bounded(q.curvature.template operator()<double>(i, j)), 1.0, move);
  }

 private:
  // An infinite curvature times no amount would not be a number.
  template <class T>
  static T bounded(T curvature) {
    return minimum(maximum(curvature, all<T>(FLAT)), all<T>(MOST));
  }
};

using Rules = RuleList<Libsvm>;

}  // namespace libsvm
