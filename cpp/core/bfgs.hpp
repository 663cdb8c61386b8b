// Limited-memory BFGS approximation B of a Hessian (Nocedal and Wright, Numerical Optimization,
// 2nd edition, section 7.2). After a step s that changed the gradient by y, B becomes
// B - (Bs)(Bs)'/s'Bs + yy'/y's, which stays positive definite if y's > 0.
#pragma once

#include "types.hpp"

namespace pairstep {

struct Steps {
  Index count, n;
  const double *steps, *changes;  // s and y, one row each (count x n)
  const double* along;            // s'y of each step
  const double* diagonal;         // the diagonal matrix that B starts from
};

// direction := B^-1 direction, by the two-loop recursion.
void divide_by_hessian(const Steps& steps, double* direction);

// The 2 count x n matrix F for which B = diag(diagonal) + F' diag(1, -1, 1, -1, ...) F.
void factor_hessian(const Steps& steps, double* rows);

}  // namespace pairstep
