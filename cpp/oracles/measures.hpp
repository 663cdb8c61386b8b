// Statistics of the data that determine kernel parameters and arithmetic before a fit.
#pragma once

#include <vector>

#include "points.hpp"

namespace pairstep {

struct Measures {
  double variance;        // of all entries, including zeros
  double largest_square;  // largest squared norm of a row
};

Measures measure(const DataMatrix& data);

// The mean of the rows, rounded to 24 bits so that it is the same for data in float32 and float64,
// but with the exponent range of float64.
std::vector<double> rounded_mean(const DataMatrix& data);

}  // namespace pairstep
