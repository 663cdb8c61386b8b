// Coordinates that are likely to change in the next steps, given the current derivatives.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

// Return the coordinates that a pair step would change if the group's multiplier were within a
// margin of its estimate. The estimate is the mean derivative of the free coordinates and the
// margin their mean distance from it. (The violation would be a poor margin, because a single
// coordinate can determine it.) Without free coordinates they are the given multiplier and
// violation. The pair with the largest violation is always included. Groups must not be nested.
std::vector<Index> moving(const Point& point, const double* multiplier, double violation);

}  // namespace pairstep
