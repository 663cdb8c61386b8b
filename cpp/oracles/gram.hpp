// Oracle for least squares and factor models: f(x) = |Ax - b|^2/2 + sum_i ridge_i x_i^2/2 + c'x.
// The squares may have weights of any sign. The n x n matrix A'A is never formed: the block of a
// working set W is A_W'A_W, and a change of x_W by delta changes the residual by A_W delta.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/inner.hpp"
#include "dual_newton.hpp"
#include "points.hpp"
#include "derivatives.hpp"

namespace pairstep {

class GramOracle final : public LocalOracle {
 public:
  // A dense `matrix` is A, by rows. A sparse one is the transpose of A, so that its rows are the
  // columns of A.
  GramOracle(const DataMatrix& matrix, const double* weight, const double* b, const double* ridge,
             const double* c, const Point& point, ThreadPool& pool)
      : LocalOracle(pool),
        matrix_(matrix),
        weight_(weight),
        b_(b),
        ridge_(ridge),
        c_(c),
        derivatives_(point) {
    // The constant part of the gradient, c - A'b, for the scale of the terms that cancel in it.
    linear_.assign(std::size_t(point.n), 0.0);
    residual_.assign(std::size_t(rows()), 0.0);
    for (Index p = 0; p < rows(); ++p) residual_[p] = -b[p];
    add_transposed(linear_.data());
    for (Index i = 0; i < point.n; ++i) linear_[i] += c[i];
    recompute_gradient();
  }

  void select_candidates(Index count, bool with_free, Candidates& found) override {
    derivatives_.select_candidates(count, with_free, nullptr, found);
    found.scale = canceling_scale(derivatives_.point(), derivatives_.gradient(), linear_.data());
  }

  void block(const std::vector<Index>& members, bool, double* hessian) override {
    const std::size_t q = members.size();
    if (matrix_.starts) sparse_block(members, hessian);
    else
      gram({matrix_.dense, matrix_.rows, Index(q), matrix_.features, 1, members.data()}, weight_,
           nullptr, hessian, pool());
    for (std::size_t a = 0; a < q; ++a) hessian[a * (q + 1)] += ridge_[members[a]];
  }

  void update_gradient(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    for (const Index i : moved) derivatives_.enter(i);
    add_columns(moved, delta.data());
    set_gradient();
  }

  void recompute_gradient() override {
    const Support support(derivatives_.point());
    for (Index p = 0; p < rows(); ++p) residual_[p] = -b_[p];
    add_columns(support.coordinates, support.weights.data());
    set_gradient();
  }

  DirectSolve solve_directly(Index free, bool many_rounds, const double* totals,
                             std::vector<double>& x) override {
    const Point& point = derivatives_.point();
    // Compare with the cost of one Newton step on the block of the free variables.
    const double block = double(free) * double(free) * double(free);
    if (!many_rounds && block < cost_of_dual_newton(rows(), point.n)) return DirectSolve::declined;
    if (2 * rows() > point.n) return DirectSolve::declined;  // the dual is not much smaller
    if (matrix_.starts || point.l1 || point.nested()) return DirectSolve::declined;
    if (!std::all_of(ridge_, ridge_ + point.n, [](double r) { return r > 0; }))
      return DirectSolve::declined;
    std::vector<double> multiplier;
    for (Index g = 0; g < point.n_groups; ++g) {
      const auto [max_left, min_right] = derivatives_.interval(g);  // one may be infinite
      multiplier.push_back(!std::isfinite(max_left)    ? min_right
                           : !std::isfinite(min_right) ? max_left
                                                       : 0.5 * (max_left + min_right));
    }
    const bool made = dual_newton({matrix_.dense, rows(), weight_, b_, ridge_, c_, totals}, point,
                                  weighted_, multiplier, x, pool());
    return made ? DirectSolve::made : DirectSolve::failed;
  }

 private:
  Index rows() const { return matrix_.starts ? matrix_.features : matrix_.rows; }

  // gradient = A' diag(weight) residual + ridge x + c
  void set_gradient() {
    const Point& point = derivatives_.point();
    double* gradient = derivatives_.gradient();
    for (Index i = 0; i < point.n; ++i) gradient[i] = ridge_[i] * point.x[i] + c_[i];
    add_transposed(gradient);
  }

  // residual += A[:, columns] weights
  void add_columns(const std::vector<Index>& columns, const double* weights) {
    if (matrix_.starts) {
      for (std::size_t k = 0; k < columns.size(); ++k)
        matrix_.each(columns[k],
                     [&](Index p, double value) { residual_[p] += weights[k] * value; });
      return;
    }
    const Index m = rows(), parts = 4 * pool().size();
    pool().run(parts, [&](Index part) {
      for (Index p = part * m / parts; p < (part + 1) * m / parts; ++p) {
        const double* row = matrix_.dense + p * matrix_.features;
        residual_[p] += gathered_product(row, columns.data(), Index(columns.size()), weights);
      }
    });
  }

  // sums += A' diag(weight) residual
  void add_transposed(double* sums) {
    const Index n = derivatives_.count();
    if (matrix_.starts) {
      for (Index i = 0; i < n; ++i)
        matrix_.each(i, [&](Index p, double value) { sums[i] += value * residual_[p]; });
      return;
    }
    weighted_ = residual_;
    for (Index p = 0; weight_ && p < rows(); ++p) weighted_[p] *= weight_[p];
    pairstep::add_transposed(matrix_.dense, rows(), n, weighted_.data(), sums, pool());
  }

  void sparse_block(const std::vector<Index>& members, double* hessian) {
    const std::size_t q = members.size();
    scattered_.resize(std::size_t(rows()), 0.0);
    for (std::size_t a = 0; a < q; ++a) {
      matrix_.each(members[a], [&](Index p, double value) { scattered_[p] += value; });
      for (std::size_t b = 0; b <= a; ++b) {
        double sum = 0.0;
        matrix_.each(members[b], [&](Index p, double value) { sum += value * scattered_[p]; });
        hessian[a * q + b] = hessian[b * q + a] = sum;
      }
      matrix_.each(members[a], [&](Index p, double) { scattered_[p] = 0.0; });
    }
  }

  const DataMatrix matrix_;
  const double *weight_, *b_, *ridge_, *c_;
  Derivatives derivatives_;
  std::vector<double> linear_, residual_, weighted_, scattered_;
};

}  // namespace pairstep
