// LIBSVM's second-order choice of the partner. Included once per instruction set.

namespace libsvm {

struct Libsvm {
  static constexpr Rule about{.name = "libsvm", .curved = true};

  // Where the Hessian has no curvature a step has no end, which the caller finds; here it must only
  // stay a number. With gaps of ordinary size, amounts up to FAR give gains that can be compared.
  static constexpr double FAR = 0x1p500;

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const Index i = q.ends.seller.index, cheapest = q.ends.buyer.index;
    const double price = q.ends.seller.value;
    const double room = std::min(a.template down_room<double>(i), FAR);
    const auto curvature = [&]<class T>(Index p) INLINED {
      return bounded(q.curvature.template operator()<T>(i, p));
    };
    const auto gap = [&]<class T>(Index p)
                         INLINED -> T { return price - a.template up_price<T>(p); };
    const auto limit = [&]<class T>(Index p)
                           INLINED { return minimum(a.template up_room<T>(p), all<T>(room)); };
    const auto gain = [&]<class T>(Index p) INLINED {
      return gain_of<T>(gap.template operator()<T>(p), limit.template operator()<T>(p),
                        curvature.template operator()<T>(p));
    };
    // Curvature times gain, less curvature times bar: no division. CLOSE makes up for the rounding
    // of both, NOTHING for what underflows.
    const auto excess = [&](Index p, double bar) INLINED {
      const Lanes c = maximum(q.curvature.template operator()<Lanes>(i, p), all<Lanes>(FLAT));
      const Lanes wide = maximum(gap.template operator()<Lanes>(p), all<Lanes>(0.0));
      const Lanes push = minimum(c * limit.template operator()<Lanes>(p), wide);
      return multiply_add(push, multiply_add(push, all<Lanes>(-0.5), wide), c * (-CLOSE * bar));
    };
    const double known = CLOSE * gain.template operator()<double>(cheapest);
    const auto [found] = shared<1>(q.choice.crew, a.n, [&](Index begin, Index end) {
      const auto excess_here = [&](Index p, double bar) INLINED { return excess(begin + p, bar); };
      return std::array{argmax_above(known, end - begin, excess_here, -NOTHING, from(begin, gain))};
    });
    const Index j = found.index >= 0 ? found.index : cheapest;
    best_pair_move(a, i, j, curvature.template operator()<double>(j), 1.0, move);
  }

 private:
  static constexpr double CLOSE = 1.0 - 1e-14, NOTHING = 0x1p-900;

  // An infinite curvature times no amount would not be a number.
  template <class T>
  static T bounded(T curvature) {
    return minimum(maximum(curvature, all<T>(FLAT)), all<T>(MOST));
  }
};

using Rules = RuleList<Libsvm>;

}  // namespace libsvm
