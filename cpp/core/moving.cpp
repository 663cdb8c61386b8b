#include "moving.hpp"

namespace pairstep {

std::vector<Index> moving(const Point& point, const double* multiplier, double violation) {
  std::vector<Index> members;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const auto for_free = [&](auto visit) {
      for (Index i = begin; i < end; ++i)
        if (const Standing at = standing_of(point, i); at.is_free())
          visit(point.gradient[i] + at.up_shift);
    };
    double count = 0.0, sum = 0.0, distance = 0.0;
    for_free([&](double price) { ++count, sum += price; });
    const double usual = count > 0 ? sum / count : multiplier[group];
    for_free([&](double price) { distance += std::abs(price - usual); });
    const double near = count > 0 ? distance / count : violation;
    for (Index i = begin; i < end; ++i) {
      const Standing at = standing_of(point, i);  // without room there is no price
      const bool sells = point.gradient[i] + at.down_shift >= usual - near,
                 buys = point.gradient[i] + at.up_shift <= usual + near;
      if (sells || buys) members.push_back(i);
    }
  }
  return members;
}

}  // namespace pairstep
