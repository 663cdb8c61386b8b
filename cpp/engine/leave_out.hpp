// Optima of a dual without one of its samples, from the optimum with all of them: decremental
// learning (Cauwenberghs and Poggio, "Incremental and decremental support vector machine learning",
// 2000), for all samples with one factorization.
//
// Let F be the free variables of the optimum and B = [K_FF A'; A 0], where A has a row of ones per
// group. While F stays free, all variables and derivatives are linear in the other variables; the
// coefficients are those of the principal pivot transform of K with respect to F. A removal changes
// the state of a few more variables: some leave F at a bound, others become free. Their values
// follow from a small linear system in the transformed matrix. The states are found by block
// principal pivoting (Judice and Pires, "A block principal pivoting algorithm for large-scale
// strictly monotone linear complementarity problems", 1994), and if that fails, as it does where
// kernel rows are nearly dependent, by following the solution while the sample's variables shrink
// to 0, from one change of a state to the next.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "../core/thread_pool.hpp"
#include "../oracles/matrix.hpp"

namespace pairstep {

// The optimum of a dual with an explicit kernel matrix, and its transform. Matrices are row-major.
struct LeaveOutTask {
  DataMatrix matrix;
  Point point;        // at the optimum, with its gradient; breakpoints are 0
  const Index* rows;  // of the matrix, one per variable
  const double* linear;
  const double* multiplier;  // of each group's sum
  std::vector<Index> free;   // F: variables with an invertible B
  const double* inverse;     // of B
  // inverse times [K_Fj; A_j], a column per variable j; and its transpose.
  const double *transform, *transposed;
  // Columns of the transformed matrix, and the variables they belong to. Others are computed when
  // they are needed, which takes longer.
  std::vector<Index> known;
  const double* columns;
  double tol;
  std::size_t cache_bytes;  // for columns of the transformed matrix
};

// A sample to leave out: its variables are fixed at 0, and the totals change.
struct LeftOut {
  const Index* variables;
  Index count;
  const double* total_change;  // one per group
};

struct WithoutSample {
  bool optimal = false;    // otherwise the rest is not set, and another solver is needed
  double violation = 0.0;  // of the remaining variables, with verified gradients
  double sum = 0.0;        // (K z) of the first variable that is left out
  std::vector<double> multiplier;
};

class LeaveOut {
 public:
  explicit LeaveOut(const LeaveOutTask& task);
  // Safe to call from several threads.
  WithoutSample solve(const LeftOut& left_out) const;

 private:
  friend class Repair;
  double entry(Index i, Index j) const { return task_.matrix.at(task_.rows[i], task_.rows[j]); }
  void compute_column(Index variable, double* column) const;
  // A column of the transformed matrix: from the cache, or else in `own`, which is filled.
  const double* column(Index variable, std::vector<double>& own) const;

  const LeaveOutTask task_;
  const Index n_, m_, size_;        // variables, free ones, rows of B
  std::vector<Index> place_;        // of each variable in `free`, or -1
  std::vector<Index> group_;        // of each variable
  std::vector<double> slope_;       // of the L1 term at each free variable
  std::vector<double> low_, high_;  // range of each free variable in which it stays free
  // Of the derivatives at each other variable; infinite for the free ones, which do not limit them.
  std::vector<double> left_shift_, right_shift_;
  double slack_;                       // distance beyond a bound that counts as a rounding error
  std::vector<double> reduced_;        // derivatives minus multipliers
  std::vector<double> newton_step_;    // Newton step on F: changes of the free z, then minus those
                                       // of the multipliers
  std::vector<double> newton_change_;  // what this step adds to reduced_
  Index max_cached_;
  mutable std::atomic<Index> cached_ = 0;
  mutable std::vector<std::atomic<const double*>> columns_;
  mutable std::vector<std::unique_ptr<double[]>> owned_;
  const Runs runs_;
};

}  // namespace pairstep
