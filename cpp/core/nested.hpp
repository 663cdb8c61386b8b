// Nested groups: all groups share one total, and the sum of each group lies between limits. A step
// within a group keeps its sum, so the limits do not matter. A step between two groups changes both
// sums and can go only as far as their limits allow.
#pragma once

#include <cmath>
#include <vector>

#include "policy.hpp"
#include "types.hpp"

namespace pairstep {

// How far the sum of each group may decrease and increase. The slack is 0 if the sum is closer to
// its limit than the rounding error.
struct GroupSlack {
  std::vector<double> down, up;
  std::vector<double> rounding;  // rounding error of each sum
};

// Compute the slacks of nested groups from the point. The group sums add up to the total only
// within the rounding error of the total, so `rounding` is relative to the sum of all |x_i|, even
// for a small group.
GroupSlack slacks_of(const Point& point, double rounding = NumericalPolicy::sum_rounding);

// The multipliers that are valid for a group: at least the largest left derivative of its
// coordinates and at most the smallest right derivative. Empty (max_left > min_right) if a step
// within the group improves the objective.
struct MultiplierInterval {
  double max_left = -INFINITY, min_right = INFINITY;
};

// The multipliers that are valid across groups: only groups whose sums have slack count.
MultiplierInterval across(const std::vector<MultiplierInterval>& groups, const GroupSlack& slacks);

// Include the coordinates of other groups in each group's interval, where the slack of its sum
// allows a step between them: max_left becomes the largest left derivative that an increasing
// coordinate of the group can be paired with, and min_right the smallest right derivative for a
// decreasing one.
void include_across(const MultiplierInterval& others, const GroupSlack& slacks,
                    std::vector<MultiplierInterval>& groups);

}  // namespace pairstep
