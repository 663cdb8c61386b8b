// A Hessian by BFGS. After a step s that changed the gradient by y, B becomes
// B - (Bs)(Bs)'/s'Bs + yy'/y's, which stays positive definite where y's > 0.
#pragma once

#include "types.hpp"

namespace pairstep {

struct Steps {
  Index count, n;
  const double *steps, *changes;  // count x n, by rows
  const double* along;            // the product of each step with its change
  const double* diagonal;         // what B begins with
};

// direction := B^-1 direction, by Nocedal's two loops.
void divide_by_hessian(const Steps& steps, double* direction);

// The 2 count x n matrix F for which B = diag(diagonal) + F' diag(1, -1, 1, -1, ...) F.
void factor_hessian(const Steps& steps, double* rows);

}  // namespace pairstep
