#include "nested.hpp"

#include <algorithm>
#include <cmath>

#include "sum.hpp"

namespace pairstep {

GroupRooms rooms_of(const Point& point) {
  GroupRooms rooms;
  for (Index g = 0; g < point.n_groups; ++g) {
    Sum sum;
    double largest = 0.0;
    for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i) {
      sum.add(point.x[i]);
      largest = std::max(largest, std::abs(point.x[i]));
    }
    const auto distance = [&](double limit, double sign) {
      if (std::isinf(limit)) return static_cast<double>(INFINITY);
      Sum rest = sum;  // rounded once
      rest.add(-limit);
      const double room = sign * rest.value();
      return room > GRAIN * std::max(largest, std::abs(limit)) ? room : 0.0;
    };
    rooms.down.push_back(distance(point.low[g], 1.0));
    rooms.up.push_back(distance(point.high[g], -1.0));
    rooms.grain.push_back(GRAIN * largest);
  }
  return rooms;
}

Market across(const std::vector<Market>& groups, const GroupRooms& rooms) {
  Market all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (rooms.down[g] > 0) all.dearest = std::max(all.dearest, groups[g].dearest);
    if (rooms.up[g] > 0) all.cheapest = std::min(all.cheapest, groups[g].cheapest);
  }
  return all;
}

void open_to(const Market& others, const GroupRooms& rooms, std::vector<Market>& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (rooms.up[g] > 0) groups[g].dearest = std::max(groups[g].dearest, others.dearest);
    if (rooms.down[g] > 0) groups[g].cheapest = std::min(groups[g].cheapest, others.cheapest);
  }
}

}  // namespace pairstep
