// Groups under one total: the sum of each lies between limits. An exchange inside a group knows
// nothing of them; one across the boundaries of two groups goes as far as their sums may.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "types.hpp"

namespace pairstep {

// What is this small against the numbers that it is the difference of is their rounding.
constexpr double GRAIN = 8.0 * std::numeric_limits<double>::epsilon();

// How far the sum of each group may fall and rise. A sum that is no further from its limit than
// rounding puts it is on it.
struct GroupRooms {
  std::vector<double> down, up;
  std::vector<double> grain;  // the rounding of the accounts
};

// From the point alone; for nested groups.
GroupRooms rooms_of(const Point& point);

// The prices at which a group trades: of its dearest seller, of its cheapest buyer.
struct Market {
  double dearest = -INFINITY, cheapest = INFINITY;
};

// What the groups that have room offer each other.
Market across(const std::vector<Market>& groups, const GroupRooms& rooms);

// Let every group also trade with what is offered across: its dearest seller is then the dearest
// that its buyers can trade with, its cheapest buyer the cheapest for its sellers.
void open_to(const Market& others, const GroupRooms& rooms, std::vector<Market>& groups);

}  // namespace pairstep
