// Compensated summation with Knuth's two-sum. Rounding errors of the sum, and of the sum of these
// errors, are added up separately.
#pragma once

#include <cmath>

namespace pairstep {

// A running sum with three times the precision of a double, for terms that cancel.
struct Sum {
  double high = 0.0, low = 0.0, rest = 0.0;

  void add(double value) { rest += two_sum(low, two_sum(high, value)); }
  double value() const { return high + (low + rest); }

 private:
  // Add a value to the sum and return the rounding error.
  static double two_sum(double& sum, double value) {
    const double before = sum;
    sum = before + value;
    const double part = sum - before;
    return (before - (sum - part)) + (value - part);
  }
};

}  // namespace pairstep
