// Steps across groups that share one total, where the sum of each group has limits. Included once
// per instruction set.
#pragma once

#include "coordinates.hpp"

// The coordinates as a step across groups sees them: no coordinate can change by more than the sum
// of its group. A step may also pair two coordinates of the same group; the limit is then tighter
// than necessary, which does no harm, because steps inside a group are chosen separately.
class CrossGroup {
 public:
  // Compute everything from the point. Does nothing if each group has its own total.
  void reset(const Point& point, const PositionTable& own) {
    if (!point.nested()) return;
    slacks_ = slacks_of(point);
    if (!table_ || table_->n != point.n) table_ = std::make_unique<OwnPositionTable>(point.n);
    table_->gradient = own.gradient;
    for (Index group = 0; group < point.n_groups; ++group) enter(point, own, group);
  }

  TableView view() const { return TableView(*table_); }
  const GroupSlack& slacks() const { return slacks_; }

  // The extremes over all groups, from the extremes of each group.
  Extremes ends(const Point& point, const std::vector<Extremes>& of_groups) const {
    Extremes best;
    for (Index g = 0; g < point.n_groups; ++g) {
      const auto& [down, up] = of_groups[g];
      if (slacks_.down[g] > 0 && down.value > best.down.value)
        best.down = {down.value, point.starts[g] + down.index};
      if (slacks_.up[g] > 0 && up.value > best.up.value)
        best.up = {up.value, point.starts[g] + up.index};
    }
    return best;
  }

  // The largest multiple of a step that keeps the sums of all groups within their limits.
  double max_multiple(const Point& point, const Step& step) const {
    double most = INFINITY;
    for_groups(point, step, [&](Index g, double change) {
      if (change != 0)
        most = std::min(most, (change < 0 ? slacks_.down[g] : slacks_.up[g]) / std::abs(change));
    });
    return most;
  }

  // A step of several coordinates of a group can change its sum by more than the limit, although
  // each of them is within the limit. Shorten the step then. Its model is convex, so the decrease
  // shrinks at most in proportion.
  void shorten(const Point& point, Step& step) const {
    const double fraction = max_multiple(point, step);
    if (!(fraction < 1)) return;
    for (double& delta : step.delta) delta *= fraction;
    step.decrease *= fraction;
    if (!(fraction > 0)) step.clear();
  }

  // Update after a step, which is already entered in `own`.
  void update(const Point& point, const PositionTable& own, const Step& step) {
    for_groups(point, step, [&](Index g, double change) {
      if (change != 0) {
        slacks_.down[g] = slack_after(slacks_.down[g], change, slacks_.rounding[g]);
        slacks_.up[g] = slack_after(slacks_.up[g], -change, slacks_.rounding[g]);
      }
      enter(point, own, g);
    });
  }

 private:
  // If changes inside a group cancel, rounding leaves a small change of the group's sum. A change
  // of the sum up to this fraction of the sum of the absolute changes counts as 0. A larger value
  // would ignore real changes of the sum; a smaller one would count rounding errors.
  static constexpr double SUM_ROUNDING = 1e-12;

  // A slack within rounding error becomes exactly 0, so that the sum counts as at its limit.
  static double slack_after(double slack, double change, double min_rounding) {
    const double left = slack + change;
    const double rounding =
        std::max(min_rounding, NumericalPolicy::sum_rounding * std::max(slack, std::abs(change)));
    return std::isinf(slack) || left > rounding ? left : 0.0;
  }

  void enter(const Point& point, const PositionTable& own, Index group) {
    const double down = slacks_.down[group], up = slacks_.up[group];
    for (Index p = point.starts[group]; p < point.starts[group + 1]; ++p) {
      table_->left_shift[p] = down > 0 ? own.left_shift[p] : -INFINITY;
      table_->right_shift[p] = up > 0 ? own.right_shift[p] : INFINITY;
      table_->max_decrease[p] = std::min(own.max_decrease[p], down);
      table_->max_increase[p] = std::min(own.max_increase[p], up);
    }
  }

  // Call visit(group, change of its sum) for each group that the step changes.
  template <class Visit>
  void for_groups(const Point& point, const Step& step, Visit visit) const {
    struct Part {
      Index group;
      double delta;
    };
    std::vector<Part> parts;
    for (std::size_t k = 0; k < step.index.size(); ++k)
      parts.push_back({group_of(point, step.index[k]), step.delta[k]});
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.group < b.group; });
    for (std::size_t k = 0; k < parts.size();) {
      const Index group = parts[k].group;
      double change = 0.0, size = 0.0;
      for (; k < parts.size() && parts[k].group == group; ++k) {
        change += parts[k].delta;
        size += std::abs(parts[k].delta);
      }
      visit(group, std::abs(change) > SUM_ROUNDING * size ? change : 0.0);
    }
  }

  GroupSlack slacks_;
  std::unique_ptr<OwnPositionTable> table_;
};
