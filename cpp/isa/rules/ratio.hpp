// The ratio approximation of the Lipschitz-weighted rules. Included once per instruction set.

namespace ratio {

// Ratios of sellers and (negated) of buyers, about a mean that lies between the extremes.
template <class A>
auto ratio_score(const A& a, const Extremes& ends, const double* lipschitz) {
  Lanes sums = all<Lanes>(0.0);
  Index p = 0;
  for (; p + WIDTH <= a.n; p += WIDTH) sums = sums + a.template price<Lanes>(p);
  double sum = 0.0;
  for (Index k = 0; k < WIDTH; ++k) sum += sums[k];
  for (; p < a.n; ++p) sum += a.template price<double>(p);
  // Between the extremes, also where the sum is too large for a number.
  const double mean = std::min(std::max(-ends.buyer.value, sum / double(a.n)), ends.seller.value);
  return [&a, lipschitz, mean]<class T>(Index p) {
    const T root = square_root(load<T>(lipschitz + p));
    return std::array<T, 3>{(a.template down_price<T>(p) - mean) / root,
                            (mean - a.template up_price<T>(p)) / root, all<T>(-INFINITY)};
  };
}

struct GsSRatio {
  static constexpr Rule about{.name = "gs-s-ratio", .alias = "ratio", .weighted = true};

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const double* lipschitz = q.choice.lipschitz;
    const auto found = argmax<3>(a.n, ratio_score(a, q.ends, lipschitz));
    const Index i = found[0].index, j = found[1].index;
    if (i < 0 || j < 0) return;
    best_pair_move(a, i, j, lipschitz[i] + lipschitz[j], q.choice.alpha, move);
  }
};

struct Gs1Ratio {
  static constexpr Rule about{.name = "gs-1-ratio", .weighted = true, .one_norm = true};
  static constexpr bool asks_for_range = true;

  template <class A, class Curvature>
  static void choose(const A& a, const Question<Curvature>& q, Move& move) {
    const double* lipschitz = q.choice.lipschitz;
    const double alpha = q.choice.alpha;
    // gap / (root_i + root_j), which the norm stays below times alpha, lies between the two ratios.
    const auto enough = [alpha](double seller, double buyer) {
      return alpha * std::max(seller, buyer);
    };
    walk_from_ends(a, ratio_score(a, q.ends, lipschitz), enough, lipschitz, alpha, move);
  }
};

using Rules = RuleList<GsSRatio, Gs1Ratio>;

}  // namespace ratio
