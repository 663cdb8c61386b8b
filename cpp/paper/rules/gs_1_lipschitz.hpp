// GS-1 with coordinate-wise Lipschitz constants: steepest descent in a weighted 1-norm within the
// bounds. Section 4 of the paper, eq. (GSL-1), and Lemma (Lisd); the NumPy form in
// src/pairstep/paper/rules/gs_1_lipschitz.py has the derivation. Included once per instruction set.
//
// The rule minimizes g'd + N^2 / (2 alpha) with N = sum_i root_i |d_i| and root_i = sqrt(L_i). Let
// rho = N / alpha be the penalty on a unit of the norm, and mu the multiplier of the sum. A
// coordinate decreases by its maximum if left derivative - rho root > mu, and increases by its
// maximum if right derivative + rho root < mu. The optimal rho and mu minimize the dual, which is
// convex:
//
//   alpha rho^2 / 2 + sum_i max_decrease_i (left_i - mu - rho root_i)+
//                   + sum_j max_increase_j (mu - right_j - rho root_j)+
//
// Its derivatives are alpha rho - N with respect to rho, and the total increase minus the total
// decrease with respect to mu.
#pragma once

#include "../collect.hpp"
#include "../rule.hpp"

namespace gs_1_lipschitz {

struct SteepestSettings {
  // Up to this number of coordinates, all are matched at once. For more coordinates, a sample first
  // shows which ones matter. A larger limit would sort longer lists in every match; a smaller one
  // would estimate from a sample of only a few coordinates.
  static constexpr Index MAX_UNSAMPLED = 512;
  // The sample takes one of this many coordinates. A larger stride makes the sample cheaper, but
  // the estimate worse.
  static constexpr Index MIN_SAMPLE_STRIDE = 8, MAX_SAMPLE_STRIDE = 64;
  // The sample consists of runs of this many consecutive coordinates, which are two cache lines of
  // doubles. Isolated coordinates would use one number of each cache line.
  static constexpr Index SAMPLE_RUN = 16;
  // Relative widths of the regions around the estimate that are tried one after the other. The
  // first width is used twice, because the second region is around a better estimate. If the
  // solution for each region lies outside it, all coordinates are matched. Wider regions have more
  // coordinates to match; narrower ones miss the solution more often.
  static constexpr std::array<double, 5> REGION_WIDTHS{0.25, 0.25, 0.5, 1.0, 2.0};
  // Cutting the polygon stops at this number of undecided coordinates, which are matched instead. A
  // larger number makes each match slower; a smaller one takes more cuts.
  static constexpr std::size_t MAX_UNDECIDED = 64;
  // Maximum number of cuts. Each leaves less than 2/3 of the area, so 64 leave less than 1e-11.
  static constexpr int MAX_CUTS = 64;
  // Cuts between two passes that drop decided coordinates. A pass after each cut would drop few.
  static constexpr int CUTS_PER_PASS = 4;
  // Relative rounding error of derivatives and ratios.
  static constexpr double ROUNDING = 1e-12;
  // After this number of shifts per element, std::sort replaces insertion sort, which takes
  // quadratic time unless the list is almost sorted.
  static constexpr std::size_t MAX_SHIFTS_PER_ELEMENT = 4;
};

// A coordinate on one side of the step. The score is the left derivative of a coordinate that
// decreases, and minus the right derivative of one that increases, so that both sides are alike.
struct Candidate {
  double score, root, max_change, key;
  Index index;
};
using Side = std::vector<Candidate>;

// The total change of some candidates and its part of the weighted norm.
struct TotalChange {
  double amount = 0.0, norm = 0.0;

  void add(const Candidate& candidate, double change) {
    amount += change;
    norm += change * candidate.root;
  }
};

// A point of the dual: the penalty rho and the multiplier of the sum.
struct DualPoint {
  double rho, multiplier;
};

// A convex polygon of dual points that contains the optimum.
class Region {
 public:
  Region(double rho, double low, double high)
      : corners_{{0.0, low}, {rho, low}, {rho, high}, {0.0, high}} {}

  // The center of gravity: each side of any line through it has less than 2/3 of the area.
  DualPoint center() const {
    const DualPoint first = corners_[0];
    double area = 0.0, rho = 0.0, multiplier = 0.0;
    for (std::size_t k = 2; k < corners_.size(); ++k) {
      const DualPoint a{corners_[k - 1].rho - first.rho,
                        corners_[k - 1].multiplier - first.multiplier};
      const DualPoint b{corners_[k].rho - first.rho, corners_[k].multiplier - first.multiplier};
      const double triangle = a.rho * b.multiplier - a.multiplier * b.rho;
      area += triangle;
      rho += triangle * (a.rho + b.rho);
      multiplier += triangle * (a.multiplier + b.multiplier);
    }
    if (!(area > 0)) return first;
    return {first.rho + rho / (3.0 * area), first.multiplier + multiplier / (3.0 * area)};
  }

  // Keep the side on which a convex function with these derivatives at `at` can be smaller than at
  // `at`. False if rounding leaves no polygon.
  bool cut(const DualPoint& at, double by_rho, double by_multiplier) {
    const auto rise = [&](const DualPoint& corner) {
      return by_rho * (corner.rho - at.rho) + by_multiplier * (corner.multiplier - at.multiplier);
    };
    std::vector<DualPoint> kept;
    for (std::size_t k = 0; k < corners_.size(); ++k) {
      const DualPoint &corner = corners_[k], &next = corners_[(k + 1) % corners_.size()];
      const double here = rise(corner), there = rise(next);
      if (here <= 0) kept.push_back(corner);
      if ((here < 0 && there > 0) || (here > 0 && there < 0)) {
        const double fraction = here / (here - there);
        kept.push_back({corner.rho + fraction * (next.rho - corner.rho),
                        corner.multiplier + fraction * (next.multiplier - corner.multiplier)});
      }
    }
    if (kept.size() < 3) return false;
    corners_.swap(kept);
    return true;
  }

  // The range of rho root + sign multiplier over the polygon.
  Range cost(double root, double sign) const {
    Range range{INFINITY, -INFINITY};
    for (const DualPoint& corner : corners_) {
      const double cost = corner.rho * root + sign * corner.multiplier;
      range = {std::min(range.least, cost), std::max(range.most, cost)};
    }
    return range;
  }

 private:
  std::vector<DualPoint> corners_;
};

// Cut the region until at most `max_undecided` candidates remain in `sides`. A candidate that
// changes by its maximum everywhere in the region goes to `decided`; one that changes nowhere in it
// is dropped.
inline Region narrow(std::array<Side, 2>& sides, std::array<Side, 2>& decided, double alpha,
                     double max_rho, std::size_t max_undecided) {
  using Settings = SteepestSettings;
  constexpr std::array<double, 2> MULTIPLIER_SIGN{1.0, -1.0};
  std::array<double, 2> best_score{-INFINITY, -INFINITY};
  std::array<TotalChange, 2> decided_total;
  for (int k = 0; k < 2; ++k)
    for (const Candidate& candidate : sides[k])
      best_score[k] = std::max(best_score[k], candidate.score);
  Region region(max_rho, -best_score[1], best_score[0]);
  for (int cut = 1; cut <= Settings::MAX_CUTS && sides[0].size() + sides[1].size() > max_undecided;
       ++cut) {
    const DualPoint at = region.center();
    std::array<TotalChange, 2> total = decided_total;
    for (int k = 0; k < 2; ++k)
      for (const Candidate& t : sides[k])
        total[k].add(
            t, t.score - at.rho * t.root > MULTIPLIER_SIGN[k] * at.multiplier ? t.max_change : 0.0);
    const double norm = total[0].norm + total[1].norm;
    if (!region.cut(at, alpha * at.rho - norm, total[1].amount - total[0].amount)) break;
    if (cut % Settings::CUTS_PER_PASS != 0) continue;
    for (int k = 0; k < 2; ++k)
      std::erase_if(sides[k], [&](const Candidate& t) {
        const auto [least, most] = region.cost(t.root, MULTIPLIER_SIGN[k]);
        const double rounding =
            Settings::ROUNDING * (std::abs(t.score) + std::abs(least) + std::abs(most));
        if (t.score > most + rounding) {
          decided_total[k].add(t, t.max_change);
          decided[k].push_back(t);
          return true;
        }
        return t.score < least - rounding;
      });
  }
  return region;
}

// Sort by score - rho root. Successive calls have similar rho, so the lists are almost sorted
// already and insertion sort comes first.
inline void sort_by_key(Side& side, double rho) {
  for (Candidate& t : side) t.key = t.score - rho * t.root;
  const auto before = [](const Candidate& p, const Candidate& q) {
    return p.key > q.key || (p.key == q.key && p.index < q.index);
  };
  std::size_t shifts_left = SteepestSettings::MAX_SHIFTS_PER_ELEMENT * side.size();
  for (std::size_t k = 1; k < side.size(); ++k) {
    if (!before(side[k], side[k - 1])) continue;
    const Candidate inserted = side[k];
    std::size_t to = k;
    for (; to > 0 && before(inserted, side[to - 1]); --to) side[to] = side[to - 1];
    side[to] = inserted;
    if (k - to > shifts_left) return std::sort(side.begin(), side.end(), before);
    shifts_left -= k - to;
  }
}

// The best step if each unit of the weighted norm costs rho: pair the largest keys of both sides
// while their sum is positive. Returns the norm. Sorts `sides`; `changes` receives the size of the
// change of each candidate, in the new order.
inline double match(std::array<Side, 2>& sides, double rho,
                    std::array<std::vector<double>, 2>& changes) {
  for (int k = 0; k < 2; ++k) {
    sort_by_key(sides[k], rho);
    changes[k].assign(sides[k].size(), 0.0);
  }
  auto& [decreasing, increasing] = sides;
  auto& [decreases, increases] = changes;
  double norm = 0.0;
  for (std::size_t s = 0, t = 0; s < decreasing.size() && t < increasing.size();) {
    if (!(decreasing[s].key + increasing[t].key > 0)) break;
    const double down = decreasing[s].max_change - decreases[s],
                 up = increasing[t].max_change - increases[t];
    const double amount = std::min(down, up);
    decreases[s] += amount;
    increases[t] += amount;
    norm += amount * (decreasing[s].root + increasing[t].root);
    if (down <= amount) decreases[s] = decreasing[s].max_change, ++s;
    if (up <= amount) increases[t] = increasing[t].max_change, ++t;
  }
  return norm;
}

// The pair with the largest ratio gap / (root + root), by Dinkelbach's iteration.
struct BestRatio {
  double ratio = 0.0;
  std::size_t s = 0, t = 0;  // positions of the pair in the two sides
};

inline BestRatio largest_ratio(const std::array<Side, 2>& sides) {
  const auto best_key = [](const Side& side, double rho) {
    std::size_t best = 0;
    double most = -INFINITY;
    for (std::size_t k = 0; k < side.size(); ++k)
      if (const double key = side[k].score - rho * side[k].root; key > most) {
        most = key;
        best = k;
      }
    return best;
  };
  const auto& [decreasing, increasing] = sides;
  BestRatio best;
  if (decreasing.empty() || increasing.empty()) return best;
  for (double rho = 0.0;;) {
    const std::size_t s = best_key(decreasing, rho), t = best_key(increasing, rho);
    rho = (decreasing[s].score + increasing[t].score) / (decreasing[s].root + increasing[t].root);
    if (!(rho > best.ratio)) return best;
    best = {rho, s, t};
  }
}

// Find the rho in `range` with N(rho) = alpha rho by bisection, where `norm` is the part of N that
// is already decided. Uses the geometric mean until both ends have similar size, and ends when no
// number lies between them.
inline Range bisect(std::array<Side, 2>& sides, double norm, const Choice& choice, Range range) {
  std::array<std::vector<double>, 2> changes;
  auto [below, above] = range;
  const auto middle_of = [](double low, double high) {
    return low > 0 && high > 4.0 * low ? std::sqrt(low) * std::sqrt(high) : 0.5 * (low + high);
  };
  for (double middle; below < (middle = middle_of(below, above)) && middle < above;) {
    choice.poll();  // each round may sort thousands of candidates
    if (norm + match(sides, middle, changes) > choice.alpha * middle) below = middle;
    else above = middle;
  }
  return {below, above};
}

// What is known about the optimum: rho, an interval that contains the multiplier of the sum, and
// the mean root of the coordinates that change.
struct Optimum {
  double rho = 0.0, multiplier_low = -INFINITY, multiplier_high = INFINITY, mean_root = 0.0;
};

// The norm of the best step is at most alpha times the largest ratio, which limits every change.
inline BestRatio limit_changes(std::array<Side, 2>& sides, double alpha) {
  const BestRatio best = largest_ratio(sides);
  for (Side& side : sides)
    for (Candidate& t : side) t.max_change = std::min(t.max_change, alpha * best.ratio / t.root);
  return best;
}

// Compute the best step of these candidates.
template <class A>
Optimum steepest(const A& a, std::array<Side, 2> sides, const Choice& choice, Step& step) {
  step.clear();
  const double alpha = choice.alpha;
  const BestRatio best = limit_changes(sides, alpha);
  if (!(best.ratio > 0)) return {};
  const Candidate &down = sides[0][best.s], &up = sides[1][best.t];
  const double width = down.root + up.root;
  if (alpha * best.ratio / width <= std::min(down.max_change, up.max_change)) {
    best_pair_step(a, down.index, up.index, width * width, alpha, step);
    return {best.ratio, best.ratio * up.root - up.score, down.score - best.ratio * down.root,
            0.5 * width};
  }
  std::array<Side, 2> decided;
  // At max_rho the best step is empty, in spite of rounding.
  const double max_rho = best.ratio * (1.0 + SteepestSettings::ROUNDING);
  const Region region = narrow(sides, decided, alpha, max_rho, SteepestSettings::MAX_UNDECIDED);
  // The decided changes of the two sides differ. Give each side an artificial candidate, which is
  // matched first, for the excess of its decided changes over those of the other side.
  std::array<TotalChange, 2> decided_total;
  for (int k = 0; k < 2; ++k)
    for (const Candidate& t : decided[k]) decided_total[k].add(t, t.max_change);
  for (int k = 0; k < 2; ++k) {
    const double excess = std::max(decided_total[k].amount - decided_total[1 - k].amount, 0.0);
    sides[k].push_back({INFINITY, 0.0, excess, 0.0, -1});
  }
  const double norm = decided_total[0].norm + decided_total[1].norm;
  const auto [below, above] = bisect(sides, norm, choice, region.cost(1.0, 0.0));

  // The norm may jump at rho. The matchings on both sides of the jump are optimal, so combine them
  // to reach N = alpha rho.
  struct Change {
    Index index;
    double by[2];  // in the matching at `below`, and in that at `above`
  };
  std::vector<Change> changes;
  constexpr std::array<double, 2> SIGN{-1.0, 1.0};
  for (int k = 0; k < 2; ++k)
    for (const Candidate& t : decided[k])
      changes.push_back({t.index, {SIGN[k] * t.max_change, SIGN[k] * t.max_change}});
  double norms[2];
  std::array<std::vector<double>, 2> sizes;
  for (int end = 0; end < 2; ++end) {
    norms[end] = norm + match(sides, end ? above : below, sizes);
    for (int k = 0; k < 2; ++k)
      for (std::size_t t = 0; t < sides[k].size(); ++t)
        if (const double by = SIGN[k] * sizes[k][t]; by != 0 && sides[k][t].index >= 0)
          changes.push_back({sides[k][t].index, {end ? 0.0 : by, end ? by : 0.0}});
  }
  // Merge the changes of each coordinate. If constants differ a lot, a coordinate may decrease in
  // one matching and increase in the other.
  std::sort(changes.begin(), changes.end(),
            [](const Change& p, const Change& q) { return p.index < q.index; });
  std::size_t count = 0;
  for (const Change& change : changes)
    if (count > 0 && changes[count - 1].index == change.index)
      for (int end = 0; end < 2; ++end) changes[count - 1].by[end] += change.by[end];
    else changes[count++] = change;
  changes.resize(count);
  const double jump = norms[0] - norms[1];
  const double fraction =
      jump > 0 ? std::min(std::max((alpha * above - norms[1]) / jump, 0.0), 1.0) : 0.0;
  Optimum optimum{above};
  // Among increasing coordinates. No decreasing coordinate has a left derivative below it.
  double largest_right = -INFINITY;
  for (const Change& change : changes) {
    const auto [longer, shorter] = change.by;
    const double delta = longer == shorter ? longer : shorter + fraction * (longer - shorter);
    if (delta == 0.0) continue;
    const Index p = change.index;
    const double penalty = above * std::sqrt(choice.lipschitz[p]);
    step.add(p, delta);
    if (delta > 0) {
      const double right = a.template right_derivative<double>(p);
      largest_right = std::max(largest_right, right);
      optimum.multiplier_low = std::max(optimum.multiplier_low, right + penalty);
    } else {
      optimum.multiplier_high =
          std::min(optimum.multiplier_high, a.template left_derivative<double>(p) - penalty);
    }
  }
  // Measured from largest_right, all terms are at least 0 and nothing cancels.
  double length = 0.0, linear = 0.0, size = 0.0;
  for (std::size_t k = 0; k < step.index.size(); ++k) {
    const Index p = step.index[k];
    const double delta = step.delta[k];
    length += std::sqrt(choice.lipschitz[p]) * std::abs(delta);
    size += std::abs(delta);
    linear += delta < 0 ? -delta * (a.template left_derivative<double>(p) - largest_right)
                        : delta * (largest_right - a.template right_derivative<double>(p));
  }
  step.decrease = std::max(linear - 0.5 * length * length / alpha, 0.0);
  optimum.mean_root = length / size;
  return optimum;
}

struct Gs1Lipschitz {
  static constexpr Rule about{.name = "gs-1-lipschitz", .weighted = true, .one_norm = true};
  static constexpr bool needs_range = true;

  // For many coordinates, estimate the optimum from a sample. Then match only the coordinates that
  // can change in a region around it: at this rho or above, and at multipliers from low to high. If
  // the best step of these has its optimum in the region, no other coordinate can improve it. If
  // not, that optimum is the next estimate.
  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const Choice& choice = input.choice;
    if (a.n > SteepestSettings::MAX_UNSAMPLED) {
      Optimum estimate = estimate_by_sample(a, input);
      for (const double width : SteepestSettings::REGION_WIDTHS) {
        const double rho = estimate.rho / (1.0 + width),
                     margin = width * estimate.rho * estimate.mean_root,
                     low = estimate.multiplier_low - margin,
                     high = estimate.multiplier_high + margin;
        const auto sides = sides_in_region(a, choice.lipschitz, rho, low, high);
        choice.poll();
        const Optimum found = steepest(a, sides, choice, step);
        if (found.rho >= rho && found.multiplier_low >= low && found.multiplier_high <= high)
          return;
        if (found.rho > 0) estimate = found;
      }
    }
    steepest(a, sides_in_region(a, choice.lipschitz, 0.0, -INFINITY, INFINITY), choice, step);
  }

 private:
  template <class A>
  static std::array<Side, 2> sides_of(const A& a, const double* lipschitz,
                                      const std::array<std::vector<Index>, 2>& lists) {
    std::array<Side, 2> sides;
    for (int k = 0; k < 2; ++k) sides[k].reserve(lists[k].size());
    for (const Index p : lists[0])
      if (const double max_change = a.template max_decrease<double>(p); max_change > 0)
        sides[0].push_back(
            {a.template left_derivative<double>(p), std::sqrt(lipschitz[p]), max_change, 0, p});
    for (const Index p : lists[1])
      if (const double max_change = a.template max_increase<double>(p); max_change > 0)
        sides[1].push_back(
            {-a.template right_derivative<double>(p), std::sqrt(lipschitz[p]), max_change, 0, p});
    return sides;
  }

  // The coordinates that decrease at (rho, low), and those that increase at (rho, high), with a
  // margin for rounding. The comparison uses squares, to avoid square roots.
  template <class A>
  static std::array<Side, 2> sides_in_region(const A& a, const double* lipschitz, double rho,
                                             double low, double high) {
    std::array<std::vector<Index>, 2> lists;
    collect<2>(a.n, {&lists[0], &lists[1]}, [&]<class T>(Index p) {
      const T cost = (rho * rho * (1.0 - SteepestSettings::ROUNDING)) * load<T>(lipschitz + p),
              no = all<T>(-1.0);
      const T down = a.template left_derivative<T>(p) - low,
              up = high - a.template right_derivative<T>(p);
      return std::array<T, 2>{down >= all<T>(0.0) ? down * down - cost : no,
                              up >= all<T>(0.0) ? up * up - cost : no};
    });
    return sides_of(a, lipschitz, lists);
  }

  // The optimum of a sample of the coordinates, with alpha reduced in proportion.
  template <class A>
  static Optimum estimate_by_sample(const A& a, const RuleInput& input) {
    using Settings = SteepestSettings;
    const Index stride = std::clamp<Index>(
        a.n / Settings::MAX_UNSAMPLED, Settings::MIN_SAMPLE_STRIDE, Settings::MAX_SAMPLE_STRIDE);
    std::vector<Index> list{input.ends.down.index, input.ends.up.index};
    for (Index p = 0; p < a.n; p += Settings::SAMPLE_RUN * stride)
      for (Index k = p; k < std::min(p + Settings::SAMPLE_RUN, a.n); ++k) list.push_back(k);
    std::array<Side, 2> sides = sides_of(a, input.choice.lipschitz, {list, list}), decided;
    const double alpha = input.choice.alpha / double(stride);
    const auto [ratio, s, t] = limit_changes(sides, alpha);
    const double root = 0.5 * (sides[0][s].root + sides[1][t].root);
    const DualPoint at = narrow(sides, decided, alpha, ratio, 0).center();
    TotalChange total;
    for (const Side& side : decided)
      for (const Candidate& candidate : side) total.add(candidate, candidate.max_change);
    return {at.rho, at.multiplier, at.multiplier,
            total.amount > 0 ? total.norm / total.amount : root};
  }
};

using Rules = RuleList<Gs1Lipschitz>;

}  // namespace gs_1_lipschitz
