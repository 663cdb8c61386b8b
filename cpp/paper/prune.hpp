// Finding the best pair without trying all pairs: drop every coordinate that cannot be in the best
// pair, and search among the few that remain. Used by GS-q and GS-q with Lipschitz constants; see
// the proofs in src/pairstep/paper/rules/gs_q.py and gs_q_lipschitz.py. Included once per
// instruction set.
#pragma once

#include "collect.hpp"
#include "rule.hpp"

struct PruneSettings {
  // Factor on the known decrease. A coordinate is dropped only if it cannot reach the product, so
  // that rounding does not drop the best pair.
  static constexpr double THRESHOLD_FACTOR = 1.0 - 1e-12;
  // A sample has MIN_SAMPLE + 2 sqrt(n) coordinates, at most MAX_SAMPLE. A larger one would cost
  // more, but would find a better pair, which prunes more.
  static constexpr Index MIN_SAMPLE = 16, MAX_SAMPLE = 1024;
  // Consecutive coordinates in a sample: a cache line of doubles.
  static constexpr Index SAMPLE_RUN = 8;
  // Pruning repeats while at least MIN_TO_PRUNE coordinates remain and each round drops at least a
  // tenth of them. The final search sorts the remaining coordinates, so more rounds pay only while
  // they drop many.
  static constexpr std::size_t MIN_TO_PRUNE = 1024;
  static constexpr double MAX_KEPT_PER_ROUND = 0.9;
  // Amounts that good_pair tries: a geometric sequence with ratio AMOUNT_RATIO, and then multiples
  // of the best amount so far. LARGEST_AMOUNT is in units of alpha gap / constant, for the largest
  // gap and the mean constant; SMALLEST_AMOUNT is relative to the largest amount. More amounts
  // would take longer, but would find a better pair, which prunes more.
  static constexpr double LARGEST_AMOUNT = 64.0, SMALLEST_AMOUNT = 1e-5, AMOUNT_RATIO = 0.4;
  static constexpr std::array<double, 6> FINER_FACTORS{0.5, 0.65, 0.8, 1.25, 1.5, 1.9};
};

// Positions spread over all coordinates in short runs, and the positions in `also`. The best pair
// of the sample is close to the best pair of all, so its decrease prunes almost everything.
inline std::vector<Index> sample_of(Index n, std::initializer_list<Index> also) {
  using Settings = PruneSettings;
  std::vector<Index> sample(also);
  const Index count =
      std::min<Index>(Settings::MAX_SAMPLE, Settings::MIN_SAMPLE + 2 * Index(std::sqrt(double(n))));
  const Index stride = std::max<Index>(n / count, 1) * Settings::SAMPLE_RUN;
  for (Index p = 0; p < n; p += stride)
    for (Index q = p; q < std::min(p + Settings::SAMPLE_RUN, n); ++q) sample.push_back(q);
  return sample;
}

// Every k-th entry of a list, with k such that about MAX_SAMPLE entries remain.
inline std::vector<Index> thinned(const std::vector<Index>& list) {
  std::vector<Index> some;
  const std::size_t stride = std::max<std::size_t>(list.size() / PruneSettings::MAX_SAMPLE, 1);
  for (std::size_t k = 0; k < list.size(); k += stride) some.push_back(list[k]);
  return some;
}

// The best pair so far.
struct BestPair {
  double decrease;  // of the model
  Index i, j;

  void offer(double other, Index other_i, Index other_j) {
    if (other > decrease) *this = {other, other_i, other_j};
  }
};

// A coordinate on one side of a pair. The score is the left derivative of a coordinate that
// decreases, and minus the right derivative of one that increases, so that both sides are alike.
struct PairMember {
  double score, slack, constant;
  Index index;
};

// An ideal partner: the best score and the smallest constant on one side, possibly of different
// coordinates, and the largest decrease per unit of the gap with any coordinate of that side.
struct Partner {
  double score, constant, max_per_gap;
};

// A good pair from two lists of coordinates. For a given amount, the best coordinates of both sides
// are independent of each other, so one pass over the lists finds them. A few amounts are tried.
template <class A>
BestPair good_pair(const A& a, const std::vector<Index>& decreasing,
                   const std::vector<Index>& increasing, const double* lipschitz, double alpha,
                   double largest_gap) {
  std::array<std::vector<PairMember>, 2> sides;
  double mean_constant = 0.0;
  for (const Index p : decreasing) {
    const double constant = lipschitz ? lipschitz[p] : 1.0;
    mean_constant += constant / double(decreasing.size());
    sides[0].push_back(
        {a.template left_derivative<double>(p), a.template max_decrease<double>(p), constant, p});
  }
  for (const Index p : increasing)
    sides[1].push_back({-a.template right_derivative<double>(p), a.template max_increase<double>(p),
                        lipschitz ? lipschitz[p] : 1.0, p});
  BestPair best{0.0, -1, -1};
  double best_amount = 0.0;
  const auto try_amount = [&](double amount) {
    std::array<const PairMember*, 2> chosen{};
    for (int k = 0; k < 2; ++k) {
      double most = -INFINITY;
      for (const PairMember& member : sides[k])
        if (const double key = member.score - 0.5 * amount / alpha * member.constant;
            key > most && member.slack >= amount) {
          most = key;
          chosen[k] = &member;
        }
      if (!chosen[k]) return;
    }
    const auto [down, up] = chosen;
    const double curvature = (down->constant + up->constant) / alpha, before = best.decrease;
    best.offer(model_decrease<double>(down->score + up->score, std::min(down->slack, up->slack),
                                      curvature),
               down->index, up->index);
    if (best.decrease > before) best_amount = amount;
  };
  using Settings = PruneSettings;
  const double largest = Settings::LARGEST_AMOUNT * alpha * largest_gap / mean_constant;
  for (double amount = largest; amount > Settings::SMALLEST_AMOUNT * largest;
       amount *= Settings::AMOUNT_RATIO)
    try_amount(amount);
  const double around = best_amount;
  for (const double factor : Settings::FINER_FACTORS) try_amount(factor * around);
  return best;
}

// Find the best pair for the model d gap - (L_i + L_j) d^2 / (2 alpha) in a few passes. L is 1 if
// `lipschitz` is null, and `least` is a lower bound on L. `best_of(decreasing, increasing)` solves
// the problem for two lists of coordinates.
//
// A coordinate is kept if it can reach the known decrease with an ideal partner, and if the known
// pair does not dominate it with a better score, a larger limit and a smaller constant. The
// decrease of a pair is at most gap^2 / (2 curvature) and at most slack * gap; these bounds need no
// division. The decrease is convex in the gap and 0 without a gap, so the decrease per unit of the
// gap is largest with the best score. The coordinates that are kept give a tighter ideal partner
// for the next round.
template <class A, class BestOf>
BestPair prune_and_solve(const A& a, const Extremes& ends, const double* lipschitz, double alpha,
                         double least, BestOf best_of) {
  const double max_left = ends.down.value, min_right = -ends.up.value;
  // The largest amount of any pair, whatever its limits. It also replaces an infinite limit, whose
  // product with a gap of 0 would be NaN.
  const double max_amount = 0.5 * alpha * ends.gap() / least;
  const auto curvature_of = [&](Index i, Index j) {
    return (lipschitz ? lipschitz[i] + lipschitz[j] : 2.0) / alpha;
  };
  const auto decrease = [&](Index i, Index j) {
    return model_decrease<double>(gap_of(a, i, j), slack_of(a, i, j), curvature_of(i, j));
  };
  std::vector<Index> decreasing = sample_of(a.n, {ends.down.index});
  std::vector<Index> increasing = sample_of(a.n, {ends.up.index});
  BestPair known{decrease(ends.down.index, ends.up.index), ends.down.index, ends.up.index};
  const auto offer = [&](const BestPair& pair) { known.offer(pair.decrease, pair.i, pair.j); };
  offer(good_pair(a, decreasing, increasing, lipschitz, alpha, ends.gap()));
  // One pass finds the best pair at the amount of the known pair, and the coordinates whose upper
  // bounds on the decrease, if paired with the smallest right or the largest left derivative, are
  // largest.
  const double amount = std::min(gap_of(a, known.i, known.j) / curvature_of(known.i, known.j),
                                 slack_of(a, known.i, known.j));
  const auto bound = [&]<class T>(T gap, T slack) {
    return maximum(gap, all<T>(0.0)) * minimum(slack, all<T>(max_amount));
  };
  const auto found = argmax<4>(a.n, [&]<class T>(Index p) {
    const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0), no = all<T>(-INFINITY);
    const T penalty = constant * (0.5 * amount / alpha);
    const T down = a.template max_decrease<T>(p), left = a.template left_derivative<T>(p);
    const T up = a.template max_increase<T>(p), right = a.template right_derivative<T>(p);
    return std::array<T, 4>{down >= amount ? left - penalty : no,
                            up >= amount ? -right - penalty : no, bound(T(left - min_right), down),
                            bound(T(max_left - right), up)};
  });
  for (const Index i : {found[0].index, found[2].index})
    for (const Index j : {found[1].index, found[3].index})
      if (i >= 0 && j >= 0) offer({decrease(i, j), i, j});
  Partner down{max_left, least, found[2].value / ends.gap()};
  Partner up{-min_right, least, found[3].value / ends.gap()};

  // Returns two scores of a coordinate. The first is positive if the coordinate is kept among those
  // that decrease, the second if it is kept among those that increase.
  const auto keep_scores = [&] {
    const double threshold = known.decrease * PruneSettings::THRESHOLD_FACTOR,
                 per_constant = 2.0 * threshold / alpha;
    const Index i = known.i, j = known.j;
    // A limit of max_amount or more does not limit any pair.
    const auto unlimited = [&](double slack) { return slack < max_amount ? slack : INFINITY; };
    const PairMember best_down{a.template left_derivative<double>(i),
                               unlimited(a.template max_decrease<double>(i)),
                               lipschitz ? lipschitz[i] : 1.0, i};
    const PairMember best_up{-a.template right_derivative<double>(j),
                             unlimited(a.template max_increase<double>(j)),
                             lipschitz ? lipschitz[j] : 1.0, j};
    const auto keep_score = [=]<class T>(T score, T slack, T constant, Partner partner,
                                         PairMember known_one) -> T {
      const T gap = maximum(score + partner.score, all<T>(0.0));
      const T excess = minimum(gap * gap - per_constant * (constant + partner.constant),
                               minimum(slack, all<T>(partner.max_per_gap)) * gap - threshold);
      const auto dominated =
          (slack <= known_one.slack) & (score < known_one.score) & (constant >= known_one.constant);
      return dominated ? all<T>(-1.0) : excess;
    };
    return [=, &a]<class T>(Index p) {
      const T constant = lipschitz ? load<T>(lipschitz + p) : all<T>(1.0);
      return std::array<T, 2>{
          keep_score.template operator()<T>(a.template left_derivative<T>(p),
                                            a.template max_decrease<T>(p), constant, up, best_down),
          keep_score.template operator()<T>(-a.template right_derivative<T>(p),
                                            a.template max_increase<T>(p), constant, down,
                                            best_up)};
    };
  };
  decreasing.clear();
  increasing.clear();
  collect<2>(a.n, {&decreasing, &increasing}, keep_scores());

  for (std::size_t before = SIZE_MAX;;) {
    const std::size_t size = decreasing.size() + increasing.size();
    if (size < PruneSettings::MIN_TO_PRUNE ||
        double(size) > PruneSettings::MAX_KEPT_PER_ROUND * double(before))
      break;
    before = size;
    offer(good_pair(a, thinned(decreasing), thinned(increasing), lipschitz, alpha, ends.gap()));
    down = up = {-INFINITY, INFINITY, 0.0};
    for (const Index p : decreasing) {
      down.score = std::max(down.score, a.template left_derivative<double>(p));
      down.constant = std::min(down.constant, lipschitz ? lipschitz[p] : 1.0);
      down.max_per_gap =
          std::max(down.max_per_gap, bound(a.template left_derivative<double>(p) - min_right,
                                           a.template max_decrease<double>(p)));
    }
    for (const Index p : increasing) {
      up.score = std::max(up.score, -a.template right_derivative<double>(p));
      up.constant = std::min(up.constant, lipschitz ? lipschitz[p] : 1.0);
      up.max_per_gap =
          std::max(up.max_per_gap, bound(max_left - a.template right_derivative<double>(p),
                                         a.template max_increase<double>(p)));
    }
    down.max_per_gap /= down.score - min_right;
    up.max_per_gap /= max_left + up.score;
    const auto keep = keep_scores();
    std::erase_if(decreasing,
                  [&](Index p) { return !(keep.template operator()<double>(p)[0] > 0); });
    std::erase_if(increasing,
                  [&](Index p) { return !(keep.template operator()<double>(p)[1] > 0); });
  }
  const BestPair best = best_of(decreasing, increasing);
  return best.i >= 0 && best.decrease >= known.decrease ? best : known;
}
