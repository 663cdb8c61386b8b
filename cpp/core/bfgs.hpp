// Limited-memory BFGS approximation B of a Hessian (Nocedal and Wright, Numerical Optimization,
// 2nd edition, section 7.2). After a step s that changed the gradient by y, B becomes
// B - (Bs)(Bs)'/s'Bs + yy'/y's, which stays positive definite if y's > 0.
#pragma once

#include "types.hpp"

namespace pairstep {

// The steps from which B is built, oldest first.
struct Steps {
  Index count, n;
  const double *steps, *changes;  // s and y, one row each (count x n)
  const double* along;            // s'y of each step
  const double* diagonal;         // the diagonal matrix that B starts from
};

// direction := B^-1 direction, by the two-loop recursion.
void divide_by_hessian(const Steps& steps, double* direction);

// Write the matrix F, of 2 * count rows and n columns, for which
// B = diag(diagonal) + F' diag(1, -1, 1, -1, ...) F.
void factor_hessian(const Steps& steps, double* rows);

}  // namespace pairstep
