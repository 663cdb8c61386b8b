// Which accounts would trade at prices near the present ones.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

// The price of a group is the mean over its free accounts, give or take their mean distance from
// it: of the violation one account alone would decide. Without free accounts it is the multiplier,
// give or take the violation. The dearest seller and the cheapest buyer are among them. Groups have
// totals of their own.
std::vector<Index> moving(const Point& point, const double* multiplier, double violation);

}  // namespace pairstep
