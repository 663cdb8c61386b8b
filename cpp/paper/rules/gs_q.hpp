// GS-q: the pair with the largest decrease of the model within the bounds. Section 3.2 of the
// paper, eq. (GS-q); the NumPy form in src/pairstep/paper/rules/gs_q.py has the proof. Included
// once per instruction set.
#pragma once

#include "../prune.hpp"

namespace gs_q {

// The best score among the coordinates that can change by at least `max_change`. The score is the
// left derivative of a coordinate that decreases, and minus the right derivative of one that
// increases.
struct Stair {
  double max_change, score;
  Index index;
};

// Sort in descending order of max_change. Each entry then gets the best score among itself and the
// entries before it.
inline void make_staircase(std::vector<Stair>& stairs) {
  std::sort(stairs.begin(), stairs.end(), [](const Stair& a, const Stair& b) {
    return a.max_change > b.max_change || (a.max_change == b.max_change && a.index < b.index);
  });
  for (std::size_t k = 1; k < stairs.size(); ++k)
    if (!(stairs[k].score > stairs[k - 1].score)) {
      stairs[k].score = stairs[k - 1].score;
      stairs[k].index = stairs[k - 1].index;
    }
}

// The best pair of some coordinates that decrease with some that increase, by merging their
// staircases.
template <class A>
BestPair best_of_stairs(const A& a, const std::vector<Index>& some_decreasing,
                        const std::vector<Index>& some_increasing, double curvature) {
  std::vector<Stair> decreasing, increasing;
  for (const Index i : some_decreasing)
    if (const double max_change = a.template max_decrease<double>(i); max_change > 0)
      decreasing.push_back({max_change, a.template left_derivative<double>(i), i});
  for (const Index j : some_increasing)
    if (const double max_change = a.template max_increase<double>(j); max_change > 0)
      increasing.push_back({max_change, -a.template right_derivative<double>(j), j});
  make_staircase(decreasing);
  make_staircase(increasing);
  // The limits are visited in descending order. Among equal decreases the last one wins, because
  // the NumPy form takes the smallest limit.
  BestPair best{0.0, -1, -1};
  std::size_t s = 0, t = 0;
  while (s < decreasing.size() || t < increasing.size()) {
    const double limit = std::max(s < decreasing.size() ? decreasing[s].max_change : 0.0,
                                  t < increasing.size() ? increasing[t].max_change : 0.0);
    while (s < decreasing.size() && decreasing[s].max_change >= limit) ++s;
    while (t < increasing.size() && increasing[t].max_change >= limit) ++t;
    if (s == 0 || t == 0) continue;
    const double gap = decreasing[s - 1].score + increasing[t - 1].score;
    const double decrease = model_decrease<double>(gap, limit, curvature);
    if (decrease >= best.decrease)
      best = {decrease, decreasing[s - 1].index, increasing[t - 1].index};
  }
  return best;
}

struct GsQ {
  static constexpr Rule about{.name = "gs-q", .uses_alpha = true};

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const double alpha = input.choice.alpha;
    const Index down = input.ends.down.index, up = input.ends.up.index;
    // If no bound limits the pair with the largest gap, no pair decreases the model more.
    if (0.5 * alpha * input.ends.gap() <= slack_of(a, down, up))
      return best_pair_step(a, down, up, 2.0, alpha, step);
    const BestPair best = prune_and_solve(
        a, input.ends, nullptr, alpha, 1.0, [&](const auto& decreasing, const auto& increasing) {
          return best_of_stairs(a, decreasing, increasing, 2.0 / alpha);
        });
    best_pair_step(a, best.i, best.j, 2.0, alpha, step);
  }
};

using Rules = RuleList<GsQ>;

}  // namespace gs_q
