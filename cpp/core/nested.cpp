#include "nested.hpp"

#include <algorithm>
#include <cmath>

#include "sum.hpp"

namespace pairstep {

GroupSlack slacks_of(const Point& point, double rounding) {
  GroupSlack slacks;
  double all = 0.0;  // sum of |x_i|
  for (Index i = 0; i < point.n; ++i) all += std::abs(point.x[i]);
  for (Index g = 0; g < point.n_groups; ++g) {
    Sum sum;
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) sum.add(point.x[i]);
    const auto distance = [&](double limit, double sign) {
      if (std::isinf(limit)) return static_cast<double>(INFINITY);
      Sum rest = sum;  // a copy, so that the difference is rounded only once
      rest.add(-limit);
      const double slack = sign * rest.value();
      return slack > rounding * std::max(all, std::abs(limit)) ? slack : 0.0;
    };
    slacks.down.push_back(distance(point.low[g], 1.0));
    slacks.up.push_back(distance(point.high[g], -1.0));
    slacks.rounding.push_back(rounding * all);
  }
  return slacks;
}

MultiplierInterval across(const std::vector<MultiplierInterval>& groups, const GroupSlack& slacks) {
  MultiplierInterval all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (slacks.down[g] > 0) all.max_left = std::max(all.max_left, groups[g].max_left);
    if (slacks.up[g] > 0) all.min_right = std::min(all.min_right, groups[g].min_right);
  }
  return all;
}

void include_across(const MultiplierInterval& others, const GroupSlack& slacks,
                    std::vector<MultiplierInterval>& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (slacks.up[g] > 0) groups[g].max_left = std::max(groups[g].max_left, others.max_left);
    if (slacks.down[g] > 0) groups[g].min_right = std::min(groups[g].min_right, others.min_right);
  }
}

}  // namespace pairstep
