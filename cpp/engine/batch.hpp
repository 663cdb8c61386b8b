// Many quadratics with one Hessian: the linear terms differ, the sums and bounds do not.
#pragma once

#include <array>

#include "../core/pulse.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

struct Batch {
  const double* hessian;  // n x n, shared
  const double* linear;   // count x n: the linear term of each problem
  const double* start;    // n: a feasible point to fall back on
  const double* totals;   // one per group, or one for all where they are nested
  Index n, n_groups, count;
  const Index* starts;
  const double *lower, *upper;
  const double *low, *high;  // limits of nested groups, or null
  double tol;
  Index max_iter;
  int threads;
  double* x;          // count x n
  Index* iterations;  // count
  char* solved;       // count: 0 where the time was up before
};

// Solve them all. Each chunk of problems is solved in order, from the better of the fall-back and
// the solution before; chunks do not depend on the number of threads, so neither does the result.
void solve_batch(const Batch& batch, Pulse& pulse);

// Least squares with one matrix of few columns: min |Ax - b|^2/2 + ridge'x^2/2, sum(x) = total, for
// each column b of B.
// There is code for these numbers of columns, and for those between with columns of zeros beside
// them, whose variables stay 0.
constexpr std::array<int, 13> WIDTHS{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32};
constexpr Index FEW = WIDTHS.back();

struct FewColumns {
  enum State : char { unsolved, solved, invalid };  // unsolved: a task for `solve_batch`

  const double *A, *B;           // m x n and m x count
  Index m, n, count, width = n;  // `width`: with the columns of zeros
  const double *hessian, *ridge, *start, *lower, *upper;
  double total, tol;
  Index max_iter;
  double most_squares;  // a column with a larger sum of squares is not valid
  int threads;
  double* x;                          // n x count
  double *value, *violation, *bound;  // count; from the residual at x
  Index* iterations;                  // count
  char* state;                        // count
  std::uint8_t* optimal;              // count
};

void solve_few_columns(const FewColumns& problem, Pulse& pulse);

}  // namespace pairstep
