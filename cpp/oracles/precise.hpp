// Precise gradients of a kernel dual for a few rows: distances from differences, inner products and
// sums in long double. They measure the rounding error of the gradients that the solver kept.
#pragma once

#include <vector>

#include "../core/thread_pool.hpp"
#include "points.hpp"

namespace pairstep {

struct PreciseGradient {
  double value;
  double terms;  // sum of the absolute values of its terms
};

class PreciseKernel {
 public:
  // Represents the function sum_j weights[j] k(., rows[j]). Inner products are relative to the
  // center of the data, which changes the values of a linear kernel.
  PreciseKernel(const KernelFunction& kernel, const DataMatrix& data, std::vector<Index> rows,
                std::vector<double> weights);

  // Return sum_j weights[j] k(row, rows[j]) + linear.
  PreciseGradient at(Index row, double linear) const;

  // Approximate number of multiplications in one call of at().
  double work() const;

 private:
  long double kernel_of(Index row, Index other, const std::vector<double>& spread) const;

  const KernelFunction kernel_;
  const DataMatrix& data_;
  const std::vector<Index> rows_;
  const std::vector<double> weights_;
  std::vector<long double> combined_;  // linear kernel: sum_j weights[j] x_j
  std::vector<double> sizes_;          // linear kernel: sum_j |weights[j] x_j|
};

// Rounding errors in the gradient of a dual.
struct Rounding {
  double error = 0.0;  // largest error found or expected
  double extra = 0.0;  // to be added to the violation that the gradient shows
};

// Compare the gradient of min z'Kz/2 + linear'z at a point with precise values, for the rows that
// determine the violation and a few others. If the difference matters compared with `tol`, replace
// all gradients by precise ones. If that would take too long, set `extra` instead.
Rounding examine(const KernelFunction& kernel, const DataMatrix& data, const Index* rows,
                 const double* linear, Point& point, double tol, ThreadPool& pool);

}  // namespace pairstep
