#include "moving.hpp"

namespace pairstep {

std::vector<Index> moving(const Point& point, const double* multiplier, double violation) {
  std::vector<Index> members;
  for (Index group = 0; group < point.n_groups; ++group) {
    const Index begin = point.starts[group], end = point.starts[group + 1];
    const auto for_free = [&](auto visit) {
      for (Index i = begin; i < end; ++i)
        if (const Position at = position_of(point, i); at.is_free())
          visit(point.gradient[i] + at.right_shift);
    };
    double count = 0.0, sum = 0.0, distance = 0.0;
    for_free([&](double derivative) { ++count, sum += derivative; });
    const double estimate = count > 0 ? sum / count : multiplier[group];
    for_free([&](double derivative) { distance += std::abs(derivative - estimate); });
    const double margin = count > 0 ? distance / count : violation;
    for (Index i = begin; i < end; ++i) {
      // The shift is infinite in a direction in which the coordinate cannot go.
      const Position at = position_of(point, i);
      const bool decreases = point.gradient[i] + at.left_shift >= estimate - margin,
                 increases = point.gradient[i] + at.right_shift <= estimate + margin;
      if (decreases || increases) members.push_back(i);
    }
  }
  return members;
}

}  // namespace pairstep
