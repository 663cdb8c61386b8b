// Least squares and factor models: f(x) = |Ax - b|^2/2 + sum_i ridge_i x_i^2/2 + c'x, the squares
// with weights of any sign if there are weights. The n x n matrix A'A is never formed: a block of
// it is A_W'A_W, and a move changes the residual by A_W delta.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/inner.hpp"
#include "dual_newton.hpp"
#include "points.hpp"
#include "prices.hpp"

namespace pairstep {

class GramOracle final : public LocalOracle {
 public:
  // A by rows, or, sparse, by columns: then `matrix` is the transpose, in rows.
  GramOracle(const DataMatrix& matrix, const double* weight, const double* b, const double* ridge,
             const double* c, const Point& point, Team& team)
      : LocalOracle(team),
        matrix_(matrix),
        weight_(weight),
        b_(b),
        ridge_(ridge),
        c_(c),
        prices_(point) {
    // The part of the gradient that no x changes, for the scale of what cancels in it.
    linear_.assign(std::size_t(point.n), 0.0);
    residual_.assign(std::size_t(rows()), 0.0);
    for (Index p = 0; p < rows(); ++p) residual_[p] = -b[p];
    add_transposed(linear_.data());
    for (Index i = 0; i < point.n; ++i) linear_[i] += c[i];
    verify();
  }

  void survey(Index count, bool with_free, Survey& found) override {
    prices_.survey(count, with_free, nullptr, found);
    found.scale = cancelling(prices_.point(), prices_.gradient(), linear_.data());
  }

  void block(const std::vector<Index>& members, bool, double* hessian) override {
    const std::size_t q = members.size();
    if (matrix_.starts) sparse_block(members, hessian);
    else
      gram({matrix_.dense, matrix_.rows, Index(q), matrix_.features, 1, members.data()}, weight_,
           nullptr, hessian, team());
    for (std::size_t a = 0; a < q; ++a) hessian[a * (q + 1)] += ridge_[members[a]];
  }

  void advance(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    for (const Index i : moved) prices_.enter(i);
    add_columns(moved, delta.data());
    price();
  }

  void verify() override {
    const Support support(prices_.point());
    for (Index p = 0; p < rows(); ++p) residual_[p] = -b_[p];
    add_columns(support.accounts, support.weights.data());
    price();
  }

  Leap leap(Index free, bool many_rounds, const double* totals, std::vector<double>& x) override {
    const Point& point = prices_.point();
    const double block = double(free) * double(free) * double(free);  // a step on it
    if (!many_rounds && block < cost_of_dual_newton(rows(), point.n)) return Leap::declined;
    if (2 * rows() > point.n) return Leap::declined;
    if (matrix_.starts || point.kink || point.nested()) return Leap::declined;
    if (!std::all_of(ridge_, ridge_ + point.n, [](double r) { return r > 0; }))
      return Leap::declined;
    std::vector<double> multiplier;
    for (Index g = 0; g < point.n_groups; ++g) {
      const auto [dearest, cheapest] = prices_.market(g);  // one may be infinite
      multiplier.push_back(!std::isfinite(dearest)    ? cheapest
                           : !std::isfinite(cheapest) ? dearest
                                                      : 0.5 * (dearest + cheapest));
    }
    const bool made = dual_newton({matrix_.dense, rows(), weight_, b_, ridge_, c_, totals}, point,
                                  weighted_, multiplier, x, team());
    return made ? Leap::made : Leap::failed;
  }

 private:
  Index rows() const { return matrix_.starts ? matrix_.features : matrix_.rows; }

  // gradient := A' residual + ridge x + c
  void price() {
    const Point& point = prices_.point();
    double* gradient = prices_.gradient();
    for (Index i = 0; i < point.n; ++i) gradient[i] = ridge_[i] * point.x[i] + c_[i];
    add_transposed(gradient);
  }

  // residual += A[:, who] weights
  void add_columns(const std::vector<Index>& who, const double* weights) {
    if (matrix_.starts) {
      for (std::size_t k = 0; k < who.size(); ++k)
        matrix_.each(who[k], [&](Index p, double value) { residual_[p] += weights[k] * value; });
      return;
    }
    const Index m = rows(), parts = 4 * team().size();
    team().run(parts, [&](Index part) {
      for (Index p = part * m / parts; p < (part + 1) * m / parts; ++p) {
        const double* row = matrix_.dense + p * matrix_.features;
        residual_[p] += gathered_product(row, who.data(), Index(who.size()), weights);
      }
    });
  }

  // sums += A' diag(weight) residual
  void add_transposed(double* sums) {
    const Index n = prices_.count();
    if (matrix_.starts) {
      for (Index i = 0; i < n; ++i)
        matrix_.each(i, [&](Index p, double value) { sums[i] += value * residual_[p]; });
      return;
    }
    weighted_ = residual_;
    for (Index p = 0; weight_ && p < rows(); ++p) weighted_[p] *= weight_[p];
    pairstep::add_transposed(matrix_.dense, rows(), n, weighted_.data(), sums, team());
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
  Prices prices_;
  std::vector<double> linear_, residual_, weighted_, scattered_;
};

}  // namespace pairstep
