// GS-q with coordinate-wise Lipschitz constants, within the bounds. Section 4 of the paper, eq.
// (GSL); the NumPy form in src/pairstep/paper/rules/gs_q_lipschitz.py has the proof. Included once
// per instruction set.
#pragma once

#include "../prune.hpp"

namespace gs_q_lipschitz {

// A piece of an upper envelope. Line number `index` is the largest from the end of the previous
// piece to `end`.
struct Piece {
  double end;
  Index index;
};

// The line segment score - slope d, for 0 <= d <= end, of coordinate `index`.
struct Line {
  double score, slope, end;
  Index index;

  double at(double d) const { return score - slope * d; }
};

inline void append(std::vector<Piece>& envelope, double begin, double end, Index line) {
  if (!(end > begin)) return;
  if (!envelope.empty() && envelope.back().index == line) envelope.back().end = end;
  else envelope.push_back({end, line});
}

// The upper envelope of the lines [first, last), by divide and conquer.
inline std::vector<Piece> envelope_of(const std::vector<Line>& lines, Index first, Index last) {
  if (last - first == 0) return {};
  if (last - first == 1) return {{lines[first].end, first}};
  const Index middle = first + (last - first) / 2;
  const std::vector<Piece> left = envelope_of(lines, first, middle);
  const std::vector<Piece> right = envelope_of(lines, middle, last);
  std::vector<Piece> merged;
  std::size_t l = 0, r = 0;
  double begin = 0.0;
  while (l < left.size() && r < right.size()) {
    const double end = std::min(left[l].end, right[r].end);
    const Line &p = lines[left[l].index], &q = lines[right[r].index];
    const double at_begin = p.at(begin) - q.at(begin), at_end = p.at(end) - q.at(end);
    if (at_begin >= 0 && at_end >= 0) {
      append(merged, begin, end, left[l].index);
    } else if (at_begin <= 0 && at_end <= 0) {
      append(merged, begin, end, right[r].index);
    } else {
      const double fraction = at_begin / (at_begin - at_end);
      const double cross = std::min(std::max(begin + fraction * (end - begin), begin), end);
      append(merged, begin, cross, at_begin > 0 ? left[l].index : right[r].index);
      append(merged, cross, end, at_begin > 0 ? right[r].index : left[l].index);
    }
    begin = end;
    if (left[l].end <= end) ++l;
    if (right[r].end <= end) ++r;
  }
  for (; l < left.size(); begin = left[l++].end) append(merged, begin, left[l].end, left[l].index);
  for (; r < right.size(); begin = right[r++].end)
    append(merged, begin, right[r].end, right[r].index);
  return merged;
}

// Drop each line that is nowhere above an earlier one: its score is no larger, its slope is at
// least as steep, and it ends no later. Without bounds few lines remain.
inline void drop_dominated(std::vector<Line>& lines) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.score > b.score || (a.score == b.score && a.slope < b.slope);
  });
  double slope = INFINITY, end = 0.0;  // of the least steep line so far
  std::erase_if(lines, [&](const Line& line) {
    if (line.slope >= slope && line.end <= end) return true;
    if (line.slope < slope) {
      slope = line.slope;
      end = line.end;
    }
    return false;
  });
}

// The best pair of some coordinates that decrease with some that increase, by merging their
// envelopes. `smallest` is the smallest Lipschitz constant and `largest_gap` the largest gap.
template <class A>
BestPair best_of_envelopes(const A& a, const std::vector<Index>& some_decreasing,
                           const std::vector<Index>& some_increasing, const double* lipschitz,
                           double alpha, double smallest, double largest_gap) {
  // The largest gap and the smallest constant limit the amount of every pair, so all ends are
  // finite.
  std::vector<Line> decreasing, increasing;
  for (const Index i : some_decreasing)
    if (const double max_change = a.template max_decrease<double>(i); max_change > 0)
      decreasing.push_back({a.template left_derivative<double>(i), 0.5 * lipschitz[i] / alpha,
                            std::min(max_change, alpha * largest_gap / (lipschitz[i] + smallest)),
                            i});
  for (const Index j : some_increasing)
    if (const double max_change = a.template max_increase<double>(j); max_change > 0)
      increasing.push_back({-a.template right_derivative<double>(j), 0.5 * lipschitz[j] / alpha,
                            std::min(max_change, alpha * largest_gap / (lipschitz[j] + smallest)),
                            j});
  drop_dominated(decreasing);
  drop_dominated(increasing);
  const std::vector<Piece> u = envelope_of(decreasing, 0, Index(decreasing.size()));
  const std::vector<Piece> v = envelope_of(increasing, 0, Index(increasing.size()));
  BestPair best{0.0, -1, -1};
  for (std::size_t s = 0, t = 0; s < u.size() && t < v.size();) {
    const Index i = decreasing[u[s].index].index, j = increasing[v[t].index].index;
    const double curvature = (lipschitz[i] + lipschitz[j]) / alpha;
    best.offer(model_decrease<double>(gap_of(a, i, j), slack_of(a, i, j), curvature), i, j);
    const double end = std::min(u[s].end, v[t].end);
    if (u[s].end <= end) ++s;
    if (v[t].end <= end) ++t;
  }
  return best;
}

struct GsQLipschitz {
  static constexpr Rule about{.name = "gs-q-lipschitz", .weighted = true};
  static constexpr bool needs_range = true;

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const double* lipschitz = input.choice.lipschitz;
    const double alpha = input.choice.alpha;
    const double least = input.constants.least;
    const auto [decrease, i, j] =
        prune_and_solve(a, input.ends, lipschitz, alpha, least,
                        [&](const auto& decreasing, const auto& increasing) {
                          return best_of_envelopes(a, decreasing, increasing, lipschitz, alpha,
                                                   least, input.ends.gap());
                        });
    best_pair_step(a, i, j, lipschitz[i] + lipschitz[j], alpha, step);
  }
};

using Rules = RuleList<GsQLipschitz>;

}  // namespace gs_q_lipschitz
