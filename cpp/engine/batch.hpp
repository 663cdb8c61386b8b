// Batches of quadratic programs that share their Hessian, sums and bounds and differ in their
// linear terms.
#pragma once

#include <array>

#include "../core/interrupt.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

struct Batch {
  const double* hessian;  // n x n, shared
  const double* linear;   // count x n: the linear term of each problem
  const double* start;    // n: a feasible point
  const double* totals;   // one per group, or a single one if the groups are nested
  Index n, n_groups, count;
  const Index* starts;  // n_groups + 1: where each group begins
  const double *lower, *upper;
  const double *low, *high;  // limits of the sums of nested groups, or null
  double tol;
  Index max_iter;
  int threads;
  double* x;          // count x n
  Index* iterations;  // count
  char* solved;       // count: 0 for problems that the time limit left unsolved
};

// Solve all problems. The problems of a chunk are solved in order, each from the better of `start`
// and the solution before it. Chunks do not depend on the number of threads, and so results do not.
void solve_batch(const Batch& batch, InterruptCheck& interrupt);

// Numbers of columns for which least squares with few columns is compiled. Numbers in between are
// padded with columns of zeros whose variables stay 0.
constexpr std::array<int, 13> WIDTHS{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32};
constexpr Index MAX_FEW_COLUMNS = WIDTHS.back();  // the largest number of columns

// Least squares with one matrix of few columns: min |Ax - b|^2/2 + ridge'x^2/2, sum(x) = total, for
// each column b of B.
struct FewColumns {
  enum State : char { unsolved, solved, invalid };  // unsolved: left to `solve_batch`

  const double *A, *B;           // m x n and m x count
  Index m, n, count, width = n;  // `width` includes the columns of zeros
  const double *hessian, *ridge, *start, *lower, *upper;
  double total, tol;
  Index max_iter;
  double most_squares;  // columns b with a larger sum of squares are invalid
  int threads;
  double* x;                          // n x count
  double *value, *violation, *bound;  // count; computed from the residual at x
  Index* iterations;                  // count
  char* state;                        // count
  std::uint8_t* optimal;              // count
};

void solve_few_columns(const FewColumns& problem, InterruptCheck& interrupt);

}  // namespace pairstep
