// The linear systems that give derivatives of the solution of a quadratic program.
//
// Let x be a solution, F its free variables, H the Hessian of the objective on F, and A the rows of
// the constraints that are active (the sum, and groups at a limit), restricted to F. If the problem
// changes slightly, F and the active rows stay the same, so the change of x on F solves
//
//     [ H  A' ] [ w ]   [ r ]
//     [ A  0  ] [ m ] = [ s ]
//
// for some r and s. The same system, with r the derivative of a loss with respect to x and s = 0,
// gives the derivatives of the loss with respect to all numbers of the problem.
#pragma once

#include <cstdint>

#include "../core/interrupt.hpp"
#include "small_batch.hpp"

namespace pairstep {

struct KktSystems {
  Index n, rows, count;
  PerProblem hessian;        // n x n
  PerProblem constraints;    // rows x n
  PerProblem diagonal;       // n; added to the diagonal of the Hessian
  const std::uint8_t* free;  // count x n; 0 for variables that keep their value
  const double *r, *s;       // count x n and count x rows
  int threads;
  double *w, *m;  // count x n, 0 where not free, and count x rows
  // count; 1 if the solution is not unique, and one of them is returned, or if a row of A has no
  // free variable, and is ignored
  std::uint8_t* singular;
};

void solve_kkt_systems(const KktSystems& systems, InterruptCheck& interrupt);

// Set each n x n matrix of `result` to -(w x' + x w') / 2: the derivative of a loss with respect to
// a symmetric Hessian.
void matrix_derivatives(const double* w, const double* x, Index n, Index count, int threads,
                        double* result, InterruptCheck& interrupt);

}  // namespace pairstep
