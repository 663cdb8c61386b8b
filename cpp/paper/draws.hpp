// Random draws of coordinates. Included once per instruction set.
#pragma once

#include "../isa/simd.hpp"

// Draws coordinates with probabilities proportional to their Lipschitz constants: O(n) to set up,
// O(log n) per draw.
class WeightedPairs {
 public:
  void set_up(const double* constants, Index n) {
    total_.resize(n + 1);
    add_up(constants, n, 1.0);
    if (total_[n] > SMALLEST_SUM && total_[n] < LARGEST_SUM) return;
    // Scale by a power of 2, so that the sums neither overflow nor underflow.
    const double largest = n > 0 ? *std::max_element(constants, constants + n) : 1.0;
    add_up(constants, n, std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000)));
  }
  bool ready() const { return !total_.empty(); }
  // Return an index in [begin, end) other than `without` (-1: any), given a uniform number.
  Index draw(double uniform, Index begin, Index end, Index without) const {
    const double skip = without < 0 ? 0.0 : total_[without + 1] - total_[without];
    double goal = total_[begin] + uniform * (total_[end] - total_[begin] - skip);
    if (without >= 0 && goal >= total_[without]) goal += skip;
    const auto first = total_.begin() + begin + 1, last = total_.begin() + end;
    Index i = std::upper_bound(first, last, goal) - total_.begin() - 1;
    if (i == without) i += i + 1 < end ? 1 : -1;
    return i;
  }

 private:
  // A sum in this range is used as it is. The margin to the limits of a double keeps terms that are
  // far smaller than the sum from underflowing.
  static constexpr double SMALLEST_SUM = 1e-250, LARGEST_SUM = 1e250;

  void add_up(const double* constants, Index n, double unit) {
    for (Index i = 0; i < n; ++i) total_[i + 1] = total_[i] + constants[i] * unit;
  }

  std::vector<double> total_;  // total_[i]: the sum of the first i constants
};

// The coordinates [begin, end) that share a sum.
struct Members {
  Index begin, end;

  Index size() const { return end - begin; }
};

// The coordinates that coordinate i can be paired with: its group, or all if groups share a total.
inline Members members_of(const Point& point, Index i) {
  if (point.nested()) return {0, point.n};
  const Index* const above = std::upper_bound(point.starts, point.starts + point.n_groups + 1, i);
  return {above[-1], above[0]};
}
