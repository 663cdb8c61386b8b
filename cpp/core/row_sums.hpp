// Sums of a scalar function over the rows of a matrix,
// f(x) = sum_i weight_i phi(factor_i a_i'x + offset_i), the common form of likelihoods, log growth
// rates and losses. The Hessian is A' diag(weight_i factor_i^2 phi''_i) A.
#pragma once

#include <algorithm>
#include <cmath>

#include "thread_pool.hpp"
#include "types.hpp"

namespace pairstep {

enum class RowFunction {
  minus_log,  // -log(u), infinite where u is not positive
  logistic,   // log(1 + exp(-u))
};

struct RowSum {
  RowFunction phi;
  const double* matrix;  // m x n, by rows
  Index m, n;
  const double *factor, *offset, *weight;  // one number per row; a null factor means 1
};

// Sizes of the derivatives at x over the rows with a positive weight, from which rounding errors
// can be bounded without another pass over the matrix.
struct DerivativeSizes {
  double sum = 0.0;                           // of weight_i |factor_i phi'(u_i)|
  double curvature = 0.0;                     // sum of weight_i factor_i^2 phi''(u_i)
  double largest = 0.0, smallest = INFINITY;  // of |phi'(u_i)|

  void include(const DerivativeSizes& other) {
    sum += other.sum;
    curvature += other.curvature;
    largest = std::max(largest, other.largest);
    smallest = std::min(smallest, other.smallest);
  }
};

// Return f(x) and write its gradient and the roots r_i = sqrt(weight_i factor_i^2 phi''(u_i)). The
// Hessian is S'S, where S has the rows r_i a_i. If f(x) is infinite, the gradient and the roots are
// not valid. The matrix is read once, and subnormal numbers (below 1e-308) count
// as 0. The bits do not depend on the number of threads.
double row_sum(const RowSum& sum, const double* x, double* gradient, double* root,
               DerivativeSizes& sizes, ThreadPool& pool);

}  // namespace pairstep
