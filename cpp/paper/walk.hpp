// The walk of the 1-norm rules: pair many coordinates that decrease with many that increase, in the
// order of their scores. It solves the problem of Algorithm 1 in Section 3.3 of the paper; see
// `walk` in src/pairstep/paper/rules/gs_1.py. Included once per instruction set.
#pragma once

#include "rule.hpp"

struct WalkSettings {
  // Vectors of scores that are compared with the threshold at once. Most of these chunks are
  // skipped. Longer chunks need fewer comparisons, but take longer if they are not skipped.
  static constexpr Index CHUNK_VECTORS = 8;
  // A queue is trimmed when it has more than MIN_ENTRIES plus twice the entries that the last
  // trimming left. Trimming less often needs more memory; more often, it takes more time.
  static constexpr std::size_t MIN_ENTRIES = 64;
  // A queue keeps enough entries for the largest norm that the walk can reach, times a margin. The
  // first margin covers rounding. If a queue still proves too short, the pass is repeated with a
  // margin that is larger by MARGIN_GROWTH.
  static constexpr double FIRST_MARGIN = 1.0 + 1e-9, MARGIN_GROWTH = 16.0;
};

// The coordinates of one side of a walk, largest score first, smallest index first on ties.
struct Queue {
  struct Entry {
    double score, norm;  // norm: of the largest change of the coordinate
    Index index;
  };

  static bool before(const Entry& a, const Entry& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  }

  std::vector<Entry> entries;
  double best = -INFINITY;       // the best score so far
  double threshold = -INFINITY;  // entries with a score up to this are not needed
  std::size_t max_entries = WalkSettings::MIN_ENTRIES;

  void clear() {
    entries.clear();
    threshold = -INFINITY;
  }
  void add(const Entry& entry) {
    entries.push_back(entry);
    best = std::max(best, entry.score);
  }
  // Keep the first entries, in any order, whose norms add up to more than `max_norm`. Finds the end
  // by bisection with partial sorting.
  void trim(double max_norm) {
    auto begin = entries.begin(), end = entries.end();
    for (double norm = 0.0; end - begin > 1;) {
      const auto middle = begin + (end - begin) / 2;
      std::nth_element(begin, middle, end, before);
      double half = norm;
      for (auto entry = begin; entry < middle; ++entry) half += entry->norm;
      if (half > max_norm) {
        end = middle;
      } else {
        begin = middle;
        norm = half;
      }
    }
    if (end < entries.end()) {
      entries.erase(end, entries.end());
      threshold = begin->score;
    }
    max_entries = WalkSettings::MIN_ENTRIES + 2 * entries.size();
  }
  void sort() { std::sort(entries.begin(), entries.end(), before); }
  // Whether no entry was dropped.
  bool is_whole() const { return threshold == -INFINITY; }
  // Whether coordinate p, with this score, is among the first `count` entries.
  bool holds(double score, Index p, std::size_t count) const {
    const Entry& last = entries[count - 1];
    return score > last.score || (score == last.score && p <= last.index);
  }
};

// Pair the coordinates of both queues in their order while the model decreases. The norm is
// weighted by the roots of the Lipschitz constants (null: by 1). False if the walk reached the end
// of a queue from which entries were dropped.
template <class A, class Score>
bool walk(const A& a, Score score, const std::array<Queue, 2>& queues, const double* lipschitz,
          double alpha, Step& step) {
  step.clear();
  const auto& [decreasing, increasing] = queues;
  const std::size_t n_decreasing = decreasing.entries.size(),
                    n_increasing = increasing.entries.size();
  if (n_decreasing == 0 || n_increasing == 0) return true;
  std::size_t s = 0, t = 0;
  double down = a.template max_decrease<double>(decreasing.entries[0].index), down_change = 0.0;
  double up = a.template max_increase<double>(increasing.entries[0].index), up_change = 0.0;
  double length = 0.0;
  while (s < n_decreasing && t < n_increasing) {
    const Index i = decreasing.entries[s].index, j = increasing.entries[t].index;
    const double width = lipschitz ? std::sqrt(lipschitz[i]) + std::sqrt(lipschitz[j]) : 2.0;
    const double slope = gap_of(a, i, j) - width * length / alpha;
    if (!(slope > 0)) break;
    const double full = alpha * slope / (width * width);
    const double amount = std::min({full, down, up});
    down_change += amount;
    up_change += amount;
    step.decrease += amount * (slope - 0.5 * width * width * amount / alpha);
    length += width * amount;
    if (amount == full) break;
    down -= amount;
    up -= amount;
    // With the scores of the ratio rules, the same coordinate can come up on both sides. Stop
    // there.
    if (down <= 0) {
      step.add(i, -a.template max_decrease<double>(i));
      down_change = 0.0;
      if (++s == n_decreasing) {
        if (!decreasing.is_whole()) return false;
      } else if (const Index next = decreasing.entries[s].index;
                 increasing.holds(score.template operator()<double>(next)[1], next, t + 1)) {
        s = n_decreasing;
      } else {
        down = a.template max_decrease<double>(next);
      }
    }
    if (up <= 0) {
      step.add(j, a.template max_increase<double>(j));
      up_change = 0.0;
      if (++t == n_increasing) {
        if (!increasing.is_whole()) return false;
      } else if (const Index next = increasing.entries[t].index;
                 decreasing.holds(score.template operator()<double>(next)[0], next,
                                  std::min(s + 1, n_decreasing))) {
        t = n_increasing;
      } else {
        up = a.template max_increase<double>(next);
      }
    }
  }
  if (down_change > 0 && s < n_decreasing) step.add(decreasing.entries[s].index, -down_change);
  if (up_change > 0 && t < n_increasing) step.add(increasing.entries[t].index, up_change);
  return true;
}

// Walk from the best scores of both sides. `max_norm(best score down, best score up)` bounds the
// norm of each side, so one pass over the coordinates can drop all but the first few of them. While
// the pass is under way, the best scores so far give the bound; if too few coordinates are kept,
// the pass is repeated. Returns the extremes: the first coordinates of both sides.
template <class A, class Score, class MaxNorm>
CheckedExtremes walk_from_ends(const A& a, Score score, MaxNorm max_norm, const double* lipschitz,
                               double alpha, Step& step) {
  constexpr Index CHUNK = WalkSettings::CHUNK_VECTORS * WIDTH;
  std::array<Queue, 2> queues;
  const auto max_change = [&](int k, Index p) {
    return k == 0 ? a.template max_decrease<double>(p) : a.template max_increase<double>(p);
  };
  for (double margin = WalkSettings::FIRST_MARGIN;; margin *= WalkSettings::MARGIN_GROWTH) {
    const auto trim = [&](int k) {
      // Not finite as long as one side is empty.
      const double norm = max_norm(queues[0].best, queues[1].best);
      queues[k].trim(std::isfinite(norm) ? margin * norm : INFINITY);
    };
    const auto offer = [&](int k, double value, Index p) {
      Queue& queue = queues[k];
      if (!(value > queue.threshold)) return;
      queue.add({value, max_change(k, p) * (lipschitz ? std::sqrt(lipschitz[p]) : 1.0), p});
      if (queue.entries.size() > queue.max_entries) trim(k);
    };
    for (Queue& queue : queues) queue.clear();
    Index p = 0;
    for (; p + CHUNK <= a.n; p += CHUNK) {
      std::array<std::array<Lanes, CHUNK / WIDTH>, 3> scores;
      std::array<Lanes, 3> best;
      for (int k = 0; k < 3; ++k) best[k] = all<Lanes>(-INFINITY);
      for (Index q = 0; q < CHUNK / WIDTH; ++q) {
        const std::array<Lanes, 3> at = score.template operator()<Lanes>(p + q * WIDTH);
        for (int k = 0; k < 3; ++k) {
          scores[k][q] = at[k];
          best[k] = maximum(at[k], best[k]);
        }
      }
      if (above(best[2], all<Lanes>(0.0))) break;
      for (int k = 0; k < 2; ++k) {
        if (!above(best[k], all<Lanes>(queues[k].threshold))) continue;
        for (Index q = 0; q < CHUNK / WIDTH; ++q)
          for_bits(above(scores[k][q], all<Lanes>(queues[k].threshold)),
                   [&](Index lane) { offer(k, scores[k][q][lane], p + q * WIDTH + lane); });
      }
    }
    for (; p < a.n; ++p) {
      const std::array<double, 3> at = score.template operator()<double>(p);
      if (at[2] > 0) return {{}, p};
      for (int k = 0; k < 2; ++k) offer(k, at[k], p);
    }
    for (int k = 0; k < 2; ++k) {
      trim(k);
      queues[k].sort();
    }
    if (walk(a, score, queues, lipschitz, alpha, step)) break;
  }
  const auto& [decreasing, increasing] = queues;
  if (decreasing.entries.empty() || increasing.entries.empty()) return {};
  const Index i = decreasing.entries[0].index, j = increasing.entries[0].index;
  return {
      {{a.template left_derivative<double>(i), i}, {-a.template right_derivative<double>(j), j}}};
}
