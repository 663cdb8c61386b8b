#include "sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "../core/thread_pool.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

struct KktSettings {
  // A pivot below this fraction of the largest diagonal entry is rounding error of a pivot of 0.
  static constexpr double rounding = 1e-13;
  // Added to the diagonal of a singular matrix, relative to its largest entry. It selects one of
  // the solutions: nearly the smallest. A smaller ridge would be lost in rounding errors.
  static constexpr double ridge = 1e-9;
};

// A positive semidefinite matrix (only its lower triangle is used), factorized as it is or, if it
// is singular, with a ridge.
class Factor {
 public:
  // Takes the matrix by columns and returns whether it is singular.
  bool factorize(const std::vector<double>& matrix, Index n) {
    n_ = n;
    double largest = 0.0;
    for (Index i = 0; i < n; ++i) largest = std::max(largest, matrix[i * (n + 1)]);
    if (try_with(matrix, 0.0, largest)) return false;
    if (!(largest > 0)) largest = 1.0;
    for (double ridge = KktSettings::ridge; ridge < 1; ridge *= 100)
      if (try_with(matrix, ridge * largest, 0.0)) break;
    return true;
  }
  void solve(double* b, Index count) const {
    if (n_ > 0) isa().cholesky_solve(factor_.data(), n_, n_, b, count);
  }

 private:
  bool try_with(const std::vector<double>& matrix, double ridge, double largest) {
    factor_ = matrix;
    for (Index i = 0; i < n_; ++i) factor_[i * (n_ + 1)] += ridge;
    if (!isa().cholesky(factor_.data(), n_, n_)) return false;
    for (Index i = 0; i < n_; ++i) {
      const double pivot = factor_[i * (n_ + 1)];
      if (pivot * pivot <= KktSettings::rounding * largest) return false;
    }
    return true;
  }

  Index n_ = 0;
  std::vector<double> factor_;
};

class KktSystem {
 public:
  // Solve system k. The Hessian need not be positive definite on F, only on the steps that the
  // constraints allow. Adding a multiple of a a' for each row a of A makes it positive definite. It
  // does not change the solution w if the same multiple of a (a'w), which is known, is added to r.
  void solve(const KktSystems& systems, Index k) {
    const Index n = systems.n;
    const double *hessian = systems.hessian[k], *diagonal = systems.diagonal[k];
    const std::uint8_t* const is_free = systems.free + k * n;
    free_.clear();
    for (Index i = 0; i < n; ++i)
      if (is_free[i]) free_.push_back(i);
    const Index size = Index(free_.size());
    matrix_.resize(std::size_t(size * size));
    double largest = 0.0;
    for (Index a = 0; a < size; ++a) {
      const double* const row = hessian + free_[a] * n;
      for (Index b = a; b < size; ++b) matrix_[a * size + b] = row[free_[b]];
      matrix_[a * (size + 1)] += diagonal[free_[a]];
      largest = std::max(largest, std::abs(matrix_[a * (size + 1)]));
    }
    double *const w = systems.w + k * n, *const m = systems.m + k * systems.rows;
    std::fill_n(w, n, 0.0);
    std::fill_n(m, systems.rows, 0.0);
    choose_rows(systems, k, largest);
    const bool hessian_is_singular = factor_.factorize(matrix_, size);
    // Solve for the right-hand side and for the rows together.
    const Index rows = Index(rows_.size());
    solved_.assign(columns_.begin(), columns_.end());
    factor_.solve(solved_.data(), rows + 1);
    schur_.resize(std::size_t(rows * rows));
    multipliers_.resize(std::size_t(rows));
    for (Index a = 0; a < rows; ++a) {
      multipliers_[a] = product(column(a + 1), solved(0)) - systems.s[k * systems.rows + rows_[a]];
      for (Index b = a; b < rows; ++b) schur_[a * rows + b] = product(column(a + 1), solved(b + 1));
    }
    const bool rows_are_dependent = schur_factor_.factorize(schur_, rows);
    schur_factor_.solve(multipliers_.data(), 1);
    for (Index a = 0; a < rows; ++a) {
      m[rows_[a]] = multipliers_[a];
      for (Index i = 0; i < size; ++i) solved(0)[i] -= multipliers_[a] * solved(a + 1)[i];
    }
    for (Index a = 0; a < size; ++a) w[free_[a]] = solved(0)[a];
    systems.singular[k] = hessian_is_singular || rows_are_dependent || without_free_variable_;
  }

 private:
  // Keep the rows that have a free variable, and add them to the matrix and the right-hand side.
  void choose_rows(const KktSystems& systems, Index k, double largest) {
    const Index n = systems.n, size = Index(free_.size());
    rows_.clear();
    without_free_variable_ = false;
    columns_.resize(std::size_t(size));
    for (Index a = 0; a < size; ++a) columns_[a] = systems.r[k * n + free_[a]];
    for (Index row = 0; row < systems.rows; ++row) {
      const double* const entries = systems.constraints[k] + row * n;
      double squares = 0.0;
      for (const Index i : free_) squares += entries[i] * entries[i];
      if (!(squares > 0)) {
        without_free_variable_ = true;
        continue;
      }
      rows_.push_back(row);
      for (const Index i : free_) columns_.push_back(entries[i]);
      const double weight = (largest > 0 ? largest : 1.0) / squares;
      const double* const added = columns_.data() + columns_.size() - std::size_t(size);
      for (Index a = 0; a < size; ++a) {
        for (Index b = a; b < size; ++b) matrix_[a * size + b] += weight * added[a] * added[b];
        columns_[a] += weight * systems.s[k * systems.rows + row] * added[a];
      }
    }
  }
  double* column(Index c) { return columns_.data() + std::size_t(c) * free_.size(); }
  double* solved(Index c) { return solved_.data() + std::size_t(c) * free_.size(); }
  double product(const double* a, const double* b) const {
    return std::inner_product(a, a + free_.size(), b, 0.0);
  }

  std::vector<Index> free_, rows_;
  std::vector<double> matrix_;            // lower triangle by columns
  std::vector<double> columns_, solved_;  // the right-hand side and the rows; before and after
  std::vector<double> schur_, multipliers_;
  Factor factor_, schur_factor_;
  bool without_free_variable_ = false;  // of some row, so that its sum cannot change
};

}  // namespace

void solve_kkt_systems(const KktSystems& systems, InterruptCheck& interrupt) {
  constexpr Index SYSTEMS_PER_JOB = 4;  // as in `solve_small_batch`
  const Index jobs = (systems.count + SYSTEMS_PER_JOB - 1) / SYSTEMS_PER_JOB;
  ThreadPool pool(int(std::min<Index>(systems.threads, jobs)), interrupt);
  pool.run(jobs, [&](Index job) {
    const Index end = std::min((job + 1) * SYSTEMS_PER_JOB, systems.count);
    KktSystem system;
    for (Index k = job * SYSTEMS_PER_JOB; k < end; ++k) system.solve(systems, k);
  });
}

void matrix_derivatives(const double* w, const double* x, Index n, Index count, int threads,
                        double* result, InterruptCheck& interrupt) {
  ThreadPool pool(int(std::min<Index>(threads, count)), interrupt);
  pool.run(count, [&](Index k) {
    const double *const own_w = w + k * n, *const own_x = x + k * n;
    for (Index i = 0; i < n; ++i) {
      double* const row = result + (k * n + i) * n;
      const double wi = -0.5 * own_w[i], xi = -0.5 * own_x[i];
      for (Index j = 0; j < n; ++j) row[j] = wi * own_x[j] + xi * own_w[j];
    }
  });
}

}  // namespace pairstep
