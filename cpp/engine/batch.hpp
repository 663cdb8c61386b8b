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

// Solve all problems, in chunks of consecutive problems. The problems of a chunk are solved in
// order, each from `start` or from the previous solution, whichever has the lower objective. The
// chunks do not depend on the number of threads, so the results do not either.
void solve_batch(const Batch& batch, InterruptCheck& interrupt);

// Numbers of columns for which least squares with few columns is compiled. A matrix with a number
// in between is padded with columns of zeros, whose variables stay 0. More entries would mean less
// padding, but a larger library and longer compilation. With five (3, 6, 12, 20, 32), 14 to 16
// columns take 2.3 times as long as with 16.
constexpr std::array<int, 8> COMPILED_COLUMN_COUNTS{3, 4, 6, 8, 12, 16, 24, 32};
// Most columns of a problem for solve_few_columns.
constexpr Index MAX_FEW_COLUMNS = COMPILED_COLUMN_COUNTS.back();

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
  double *value, *violation, *bound;  // count; computed from the residual Ax - b
  Index* iterations;                  // count
  char* state;                        // count
  std::uint8_t* optimal;              // count
};

// Solve the problem of each column of B with the active-set method of isa/lanes.hpp, one problem
// per vector lane.
void solve_few_columns(const FewColumns& problem, InterruptCheck& interrupt);

}  // namespace pairstep
