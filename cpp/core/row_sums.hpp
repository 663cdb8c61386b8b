// Sums of one function over the rows of a matrix, f(x) = sum_i weight_i phi(factor_i a_i'x +
// offset_i): what likelihoods, growth rates and losses have in common. Their Hessian is A'
// diag(weight factor^2 phi'') A.
#pragma once

#include "team.hpp"
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
  const double *factor, *offset, *weight;  // of each row; without factors they are 1
};

// f(x), its gradient, and the roots of weight_i factor_i^2 phi''(u_i), by which the rows are scaled
// in a Hessian A'A. Where f is infinite the others are not computed. The matrix is read once;
// numbers below 1e-308 in it count as 0. The bits do not depend on the number of threads.
double row_sum(const RowSum& sum, const double* x, double* gradient, double* root, Team& team);

}  // namespace pairstep
