// Sums that are exact but for their last rounding.
#pragma once

#include <cmath>

namespace pairstep {

// Three times the precision of a double, for sums whose terms cancel.
struct Sum {
  double high = 0.0, low = 0.0, rest = 0.0;

  void add(double value) { rest += two_sum(low, two_sum(high, value)); }
  double value() const { return high + (low + rest); }

 private:
  // Adds to the sum and returns what rounding takes from it.
  static double two_sum(double& sum, double value) {
    const double before = sum;
    sum = before + value;
    const double part = sum - before;
    return (before - (sum - part)) + (value - part);
  }
};

}  // namespace pairstep
