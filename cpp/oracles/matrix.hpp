// Quadratics whose Hessian is a matrix at hand: dense rows of float64 or float32, which may be some
// rows of a larger matrix (precomputed kernels), or sparse.
#pragma once

#include <numeric>
#include <vector>

#include "points.hpp"
#include "prices.hpp"

namespace pairstep {

// f(x) = x'Qx/2 + linear'x with Q_ij = matrix(rows[i], rows[j]).
class MatrixOracle final : public LocalOracle {
 public:
  // `relative`: whether the tolerance is relative to what cancels in the gradient.
  MatrixOracle(const DataMatrix& matrix, const Index* rows, const double* linear,
               const Point& point, bool relative, Team& team)
      : LocalOracle(team),
        matrix_(matrix),
        rows_(rows),
        linear_(linear),
        relative_(relative),
        prices_(point) {
    verify();
  }

  void survey(Index count, bool with_free, Survey& found) override {
    prices_.survey(count, with_free, nullptr, found);
    found.scale = relative_ ? cancelling(prices_.point(), prices_.gradient(), linear_) : 1.0;
  }
  void block(const std::vector<Index>& members, bool, double* hessian) override {
    const std::size_t q = members.size();
    if (matrix_.starts) return sparse_block(members, hessian);
    for (std::size_t a = 0; a < q; ++a)
      for (std::size_t b = 0; b < q; ++b)
        hessian[a * q + b] = matrix_.at(row(members[a]), row(members[b]));
  }
  void advance(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    for (const Index i : moved) prices_.enter(i);
    add(moved, delta);
  }
  void verify() override {
    const Support support(prices_.point());
    std::copy_n(linear_, prices_.count(), prices_.gradient());
    add(support.accounts, support.weights);
  }

  const double* gradient() { return prices_.gradient(); }

 private:
  Index row(Index i) const { return rows_ ? rows_[i] : i; }

  // gradient += Q[:, who] weights
  void add(const std::vector<Index>& who, const std::vector<double>& weights) {
    double* gradient = prices_.gradient();
    if (matrix_.starts) {  // symmetric: columns are rows
      for (std::size_t k = 0; k < who.size(); ++k)
        matrix_.each(who[k], [&](Index i, double value) { gradient[i] += weights[k] * value; });
      return;
    }
    const Index n = prices_.count(), parts = 4 * team().size();
    team().run(parts, [&](Index part) {
      const Index begin = part * n / parts, end = (part + 1) * n / parts;
      for (std::size_t k = 0; k < who.size(); ++k) {
        const Index from = row(who[k]);
        for (Index i = begin; i < end; ++i) gradient[i] += weights[k] * matrix_.at(from, row(i));
      }
    });
  }

  void sparse_block(const std::vector<Index>& members, double* hessian) {
    const std::size_t q = members.size();
    place_.resize(std::size_t(prices_.count()), -1);
    for (std::size_t a = 0; a < q; ++a) place_[members[a]] = Index(a);
    std::fill_n(hessian, q * q, 0.0);
    for (std::size_t a = 0; a < q; ++a)
      matrix_.each(members[a], [&](Index i, double value) {
        if (place_[i] >= 0) hessian[a * q + std::size_t(place_[i])] += value;
      });
    for (const Index i : members) place_[i] = -1;
  }

  const DataMatrix matrix_;
  const Index* rows_;
  const double* linear_;
  const bool relative_;
  Prices prices_;
  std::vector<Index> place_;  // of an account among the members of a block
};

}  // namespace pairstep
