// How near a point is to its optimum, derived from the problem alone, apart from any solver.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

struct Certificate {
  double violation = 0.0;  // max over groups of max down-price - min up-price, at least 0
  double bound = 0.0;      // Frank-Wolfe gap: at least f(x) - f* where f is convex
  // The same where no account goes further than the largest of its group is: what is left to gain
  // near the point, however wide the bounds are.
  double nearby = 0.0;
  std::vector<double> multiplier;  // one per group: between the two prices
};

Certificate certify(const Point& point);

}  // namespace pairstep
