// LIBSVM's rule since version 2.8: second-order choice of the second coordinate (Fan, Chen and Lin,
// JMLR 6, 2005). The NumPy form is src/pairstep/rules/libsvm.py. Included once per instruction set.

namespace libsvm {

struct Libsvm {
  static constexpr Rule about{.name = "libsvm", .curved = true};

  // Largest amount that is considered. Without curvature the best amount is infinite; the caller
  // detects that, but the decreases compared here must stay finite. Gaps are at most about 2^150 in
  // the units of the input (see units.hpp), so their products with this amount do not overflow.
  static constexpr double MAX_AMOUNT = 0x1p500;

  template <class A, class Curvature>
  static void choose(const A& a, const RuleInput<Curvature>& input, Step& step) {
    const Index i = input.ends.down.index, widest = input.ends.up.index;
    const double derivative = input.ends.down.value;
    const double max_decrease = std::min(a.template max_decrease<double>(i), MAX_AMOUNT);
    const auto curvature = [&]<class T>(Index p) INLINED {
      return bounded(input.curvature.template operator()<T>(i, p));
    };
    const auto gap = [&]<class T>(Index p)
                         INLINED -> T { return derivative - a.template right_derivative<T>(p); };
    const auto limit = [&]<class T>(Index p) INLINED {
      return minimum(a.template max_increase<T>(p), all<T>(max_decrease));
    };
    const auto decrease = [&]<class T>(Index p) INLINED {
      return model_decrease<T>(gap.template operator()<T>(p), limit.template operator()<T>(p),
                               curvature.template operator()<T>(p));
    };
    // Quick test without a division: curvature times (decrease - threshold). THRESHOLD_FACTOR
    // covers the rounding error of both terms, and UNDERFLOW_MARGIN their underflow.
    const auto excess = [&](Index p, double threshold) INLINED {
      const Lanes c =
          maximum(input.curvature.template operator()<Lanes>(i, p), all<Lanes>(MIN_CURVATURE));
      const Lanes positive_gap = maximum(gap.template operator()<Lanes>(p), all<Lanes>(0.0));
      const Lanes scaled_amount = minimum(c * limit.template operator()<Lanes>(p), positive_gap);
      return multiply_add(scaled_amount,
                          multiply_add(scaled_amount, all<Lanes>(-0.5), positive_gap),
                          c * (-THRESHOLD_FACTOR * threshold));
    };
    const double known = THRESHOLD_FACTOR * decrease.template operator()<double>(widest);
    const auto [found] = shared<1>(input.choice.worker_group, a.n, [&](Index begin, Index end) {
      const auto excess_here = [&](Index p, double threshold)
                                   INLINED { return excess(begin + p, threshold); };
      return std::array{
          argmax_above(known, end - begin, excess_here, -UNDERFLOW_MARGIN, from(begin, decrease))};
    });
    const Index j = found.index >= 0 ? found.index : widest;
    best_pair_step(a, i, j, curvature.template operator()<double>(j), 1.0, step);
  }

 private:
  // Factor on the threshold of the quick test: 1 minus about 45 times the machine epsilon.
  static constexpr double THRESHOLD_FACTOR = 1.0 - 1e-14;
  // Absolute margin of the quick test: far above the smallest double, and far below any
  // decrease that matters (see units.hpp).
  static constexpr double UNDERFLOW_MARGIN = 0x1p-900;

  // Keep the curvature finite: infinity times an amount of 0 would be NaN.
  template <class T>
  static T bounded(T curvature) {
    return minimum(maximum(curvature, all<T>(MIN_CURVATURE)), all<T>(MAX_DOUBLE));
  }
};

using Rules = RuleList<Libsvm>;

}  // namespace libsvm
