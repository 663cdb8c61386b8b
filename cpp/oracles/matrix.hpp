// Quadratics whose Hessian is a matrix at hand: dense rows of float64 or float32, which may be some
// rows of a larger matrix (precomputed kernels), or sparse.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "points.hpp"
#include "prices.hpp"

namespace pairstep {

// job(0), ..., job(count - 1), by the team if they read so many numbers that it is worth waking up.
template <class Job>
void run_if_worth(Team& team, double numbers, Index count, const Job& job) {
  constexpr double WAKING = 1 << 18;
  if (numbers > WAKING) return team.run(count, job);
  for (Index k = 0; k < count; ++k) job(k);
}

// Some rows of a symmetric matrix, as runs of rows side by side: sums over them read its memory in
// order.
class Runs {
 public:
  // `rows`: null for the first `count` ones.
  Runs(const Index* rows, Index count) : count_(count) {
    for (Index i = 0; i < count; ++i) {
      const Index row = rows ? rows[i] : i;
      last_ = std::max(last_, row);
      const bool next = i % WIDTH != 0 && row == runs_.back().row + runs_.back().count;
      if (!next) runs_.push_back({i, row, 0});
      ++runs_.back().count;
    }
  }

  // Whether rows are all over the matrix: then they are read one number at a time.
  bool scattered() const { return SHORT * Index(runs_.size()) > count_; }
  // Whether so many of the rows up to the last are among them that all can be read as fast.
  bool close() const { return last_ < FAR * count_; }

  // to[i] = from[row i]
  template <class Entry, class Real>
  void copy(const Entry* from, Real* to) const {
    for (const Run& run : runs_) std::copy_n(from + run.row, run.count, to + run.at);
  }

  // sums[o * count + i] += sum_k weights[k * outputs + o] matrix(who[k], row i)
  void add(const DataMatrix& matrix, const std::vector<Index>& who, const double* weights,
           Index outputs, Team& team, double* sums) const {
    if (runs_.size() > 1 && scattered() && close()) {
      // Those between are summed up as well, and left out then: lines are read in order.
      const Runs all(nullptr, last_ + 1);
      std::vector<double> every(std::size_t(outputs * all.count_), 0.0);
      all.add(matrix, who, weights, outputs, team, every.data());
      for (Index o = 0; o < outputs; ++o)
        for (const Run& run : runs_)
          for (Index i = 0; i < run.count; ++i)
            sums[o * count_ + run.at + i] += every[o * all.count_ + run.row + i];
      return;
    }
    matrix.for_dense([&](const auto* entries) {
      using Real = std::remove_cvref_t<decltype(*entries)>;
      const double work = double(who.size()) * double(count_ * outputs);
      run_if_worth(team, work, (count_ + WIDTH - 1) / WIDTH, [&](Index part) {
        const auto before = [](const Run& run, Index at) { return run.at < at; };
        const auto begin = std::lower_bound(runs_.begin(), runs_.end(), part * WIDTH, before),
                   end = std::lower_bound(begin, runs_.end(), (part + 1) * WIDTH, before);
        if (scattered()) {
          for (std::size_t k = 0; k < who.size(); ++k) {
            const Real* line = entries + who[k] * matrix.features;
            for (Index o = 0; o < outputs; ++o)
              for (auto run = begin; run != end; ++run)
                for (Index i = 0; i < run->count; ++i)
                  sums[o * count_ + run->at + i] +=
                      weights[k * outputs + o] * double(line[run->row + i]);
          }
          return;
        }
        // With several outputs a piece of a few rows stays in the cache for all of them.
        const Index all = Index(who.size()), at_once = outputs == 1 ? all : ROWS;
        std::vector<const Real*> from;
        std::vector<double> own;
        for (auto run = begin; run != end; ++run)
          for (Index first = 0; first < all; first += at_once)
            for (Index o = 0; o < outputs; ++o) {
              from.clear();
              own.clear();
              for (Index k = first; k < std::min(first + at_once, all); ++k) {
                const double weight = weights[k * outputs + o];
                if (weight == 0) continue;
                from.push_back(entries + who[k] * matrix.features + run->row);
                own.push_back(weight);
              }
              isa().of<Real>().add_rows(from.data(), own.data(), Index(own.size()), 0, run->count,
                                        sums + o * count_ + run->at);
            }
      });
    });
  }

 private:
  static constexpr Index WIDTH = 512;  // sums that one thread goes over at once
  static constexpr Index ROWS = 64;    // and rows, for one output after the other
  static constexpr Index SHORT = 8;    // runs that are not worth a call each
  static constexpr Index FAR = 8;      // rows from one to the next that cost more than to skip them

  struct Run {
    Index at, row, count;
  };

  Index count_, last_ = -1;  // the last row
  std::vector<Run> runs_;    // none goes beyond a multiple of WIDTH
};

// f(x) = x'Qx/2 + linear'x with Q_ij = matrix(rows[i], rows[j]).
class MatrixOracle final : public LocalOracle {
 public:
  // `relative`: whether the tolerance is relative to what cancels in the gradient. `known`: the
  // gradient at the start, or null.
  MatrixOracle(const DataMatrix& matrix, const Index* rows, const double* linear,
               const Point& point, bool relative, Team& team, const double* known = nullptr)
      : LocalOracle(team),
        matrix_(matrix),
        rows_(rows),
        linear_(linear),
        relative_(relative),
        prices_(point),
        runs_(rows, point.n) {
    if (known) std::copy_n(known, point.n, prices_.gradient());
    else verify();
  }

  void survey(Index count, bool with_free, Survey& found) override {
    prices_.survey(count, with_free, nullptr, found);
    found.scale = relative_ ? cancelling(prices_.point(), prices_.gradient(), linear_) : 1.0;
  }
  void block(const std::vector<Index>& members, bool, double* hessian) override {
    if (matrix_.starts) sparse_block(members, hessian);
    else dense_block(members, hessian);
  }
  bool is_single() const override { return matrix_.dense32 != nullptr; }
  void block(const std::vector<Index>& members, float* hessian) override {
    dense_block(members, hessian);
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
    std::vector<Index> rows;
    for (const Index i : who) rows.push_back(row(i));
    runs_.add(matrix_, rows, weights.data(), 1, team(), gradient);
  }

  template <class Real>
  void dense_block(const std::vector<Index>& members, Real* hessian) {
    const std::size_t q = members.size();
    std::vector<Index> rows;
    for (const Index i : members) rows.push_back(row(i));
    const Runs columns(rows.data(), Index(q));
    const bool scattered = columns.scattered();
    matrix_.for_dense([&](const auto* entries) {
      run_if_worth(team(), double(q) * double(q), Index(q), [&](Index a) {
        const auto* from = entries + rows[a] * matrix_.features;
        Real* to = hessian + a * Index(q);
        if (!scattered) return columns.copy(from, to);
        for (std::size_t b = 0; b < q; ++b) to[b] = Real(from[rows[b]]);
      });
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
  const Runs runs_;
  std::vector<Index> place_;  // of an account among the members of a block
};

}  // namespace pairstep
