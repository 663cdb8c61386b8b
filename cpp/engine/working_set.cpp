#include "working_set.hpp"

#include <algorithm>
#include <numeric>

namespace pairstep {

double violation_of(const Point& point, const Candidates& candidates,
                    std::vector<MultiplierInterval>& intervals) {
  intervals.assign(std::size_t(point.n_groups), {});
  for (std::size_t k = 0; k < candidates.coordinates.size(); ++k) {
    const Position at = position_of(point, candidates.coordinates[k]);
    MultiplierInterval& interval = intervals[group_of(point, candidates.coordinates[k])];
    interval.max_left = std::max(interval.max_left, candidates.gradient[k] + at.left_shift);
    interval.min_right = std::min(interval.min_right, candidates.gradient[k] + at.right_shift);
  }
  double violation = 0.0;
  for (const MultiplierInterval& interval : intervals)
    violation = std::max(violation, interval.max_left - interval.min_right);
  if (!point.nested()) return violation;
  const GroupSlack slacks = slacks_of(point);
  const MultiplierInterval all = across(intervals, slacks);
  include_across(all, slacks, intervals);
  return std::max(violation, all.max_left - all.min_right);
}

void choose_members(const Point& point, const Candidates& candidates,
                    const std::vector<MultiplierInterval>& intervals, Index count, bool with_free,
                    WorkingSet& set) {
  struct Ranked {
    double excess;  // difference from the best derivative on the other side, or from the multiplier
    std::size_t k;  // index among the candidates
  };
  // Ties go to the smaller index, so that the choice does not depend on the candidates' order.
  const auto better = [&](const Ranked& a, const Ranked& b) {
    return a.excess > b.excess ||
           (a.excess == b.excess && candidates.coordinates[a.k] < candidates.coordinates[b.k]);
  };
  const auto keep_best = [&](std::vector<Ranked>& some, Index most) {
    if (Index(some.size()) <= most) return;
    std::nth_element(some.begin(), some.begin() + most, some.end(), better);
    some.resize(std::size_t(most));
  };
  // Groups that share a total also share the places in the working set.
  const std::size_t pools = point.nested() ? 1 : intervals.size();
  std::vector<std::vector<Ranked>> decreasing(pools), increasing(pools);
  std::vector<Ranked> free;
  for (std::size_t k = 0; k < candidates.coordinates.size(); ++k) {
    const Index group = group_of(point, candidates.coordinates[k]);
    const std::size_t pool = point.nested() ? 0 : std::size_t(group);
    const MultiplierInterval& interval = intervals[group];
    const Position at = position_of(point, candidates.coordinates[k]);
    const double left = candidates.gradient[k] + at.left_shift,
                 right = candidates.gradient[k] + at.right_shift;
    if (left > interval.min_right) decreasing[pool].push_back({left - interval.min_right, k});
    if (right < interval.max_left) increasing[pool].push_back({interval.max_left - right, k});
    if (with_free && at.is_free()) {
      const double multiplier = 0.5 * (interval.max_left + interval.min_right);
      free.push_back({std::abs(left - multiplier), k});
    }
  }
  std::vector<std::size_t> chosen;
  for (auto* side : {&decreasing, &increasing})
    for (std::vector<Ranked>& some : *side) {
      keep_best(some, count);
      for (const Ranked& one : some) chosen.push_back(one.k);
    }
  keep_best(free, set.max_free);
  for (const Ranked& one : free) chosen.push_back(one.k);
  std::sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) {
    return candidates.coordinates[a] < candidates.coordinates[b];
  });
  set.members.clear();
  set.gradient.clear();
  for (const std::size_t k : chosen) {
    if (!set.members.empty() && set.members.back() == candidates.coordinates[k]) continue;
    set.members.push_back(candidates.coordinates[k]);
    set.gradient.push_back(candidates.gradient[k]);
  }
}

void choose_all(const Point& point, const Candidates& candidates, WorkingSet& set) {
  set.members.resize(std::size_t(point.n));
  std::iota(set.members.begin(), set.members.end(), 0);
  set.gradient.resize(std::size_t(point.n));
  for (std::size_t k = 0; k < candidates.coordinates.size(); ++k)
    set.gradient[candidates.coordinates[k]] = candidates.gradient[k];
}

}  // namespace pairstep
