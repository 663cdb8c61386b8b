// What a kernel's parameters and limits ask of the data before a fit.
#pragma once

#include <vector>

#include "points.hpp"

namespace pairstep {

struct Measures {
  double variance;        // of all entries, zeros included
  double largest_square;  // squared norm of a row
};

Measures measure(const DataMatrix& data);

// The mean of the rows in the precision of float32, so that it is the same however the data are
// stored, but in the range of float64.
std::vector<double> rounded_mean(const DataMatrix& data);

}  // namespace pairstep
