// Oracle for quadratics with an explicit Hessian: a sparse matrix, or a dense matrix of float64 or
// float32. A problem may use only some rows and columns of a dense matrix (precomputed kernels).
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "points.hpp"
#include "derivatives.hpp"

namespace pairstep {

// Run job(0), ..., job(count - 1), on the pool's threads if the jobs read enough numbers.
template <class Job>
void run_if_worth(ThreadPool& pool, double numbers, Index count, const Job& job) {
  constexpr double MAX_SERIAL_NUMBERS = 1 << 18;  // read about as fast as threads wake up
  if (numbers > MAX_SERIAL_NUMBERS) return pool.run(count, job);
  for (Index k = 0; k < count; ++k) job(k);
}

// Some rows of a symmetric matrix, as runs of consecutive rows. Sums over runs read contiguous
// memory.
class Runs {
 public:
  // `rows` may be null for the first `count` rows.
  Runs(const Index* rows, Index count) : count_(count) {
    for (Index i = 0; i < count; ++i) {
      const Index row = rows ? rows[i] : i;
      last_ = std::max(last_, row);
      const bool next = i % SUMS_PER_JOB != 0 && row == runs_.back().row + runs_.back().count;
      if (!next) runs_.push_back({i, row, 0});
      ++runs_.back().count;
    }
  }

  // Whether runs are so short on average that entries are read one at a time.
  bool scattered() const { return MIN_MEAN_RUN * Index(runs_.size()) > count_; }
  // Whether the rows are spaced so closely that reading all rows up to the last one is as fast.
  bool closely_spaced() const { return last_ < MAX_SPACING * count_; }

  // to[i] = from[row i]
  template <class Entry, class Real>
  void copy(const Entry* from, Real* to) const {
    for (const Run& run : runs_) std::copy_n(from + run.row, run.count, to + run.at);
  }

  // sums[i] += sum_k weights[k] matrix(terms[k], row i)
  void add(const DataMatrix& matrix, const std::vector<Index>& terms, const double* weights,
           ThreadPool& pool, double* sums) const {
    if (runs_.size() > 1 && scattered() && closely_spaced()) {
      // Compute the sums for all rows up to the last one, and then keep only those of these rows.
      const Runs all(nullptr, last_ + 1);
      std::vector<double> every(std::size_t(all.count_), 0.0);
      all.add(matrix, terms, weights, pool, every.data());
      for (const Run& run : runs_)
        for (Index i = 0; i < run.count; ++i) sums[run.at + i] += every[run.row + i];
      return;
    }
    matrix.for_dense([&](const auto* entries) {
      using Real = std::remove_cvref_t<decltype(*entries)>;
      std::vector<const Real*> lines;
      for (const Index term : terms) lines.push_back(entries + term * matrix.features);
      const double work = double(terms.size()) * double(count_);
      run_if_worth(pool, work, (count_ + SUMS_PER_JOB - 1) / SUMS_PER_JOB, [&](Index part) {
        const auto before = [](const Run& run, Index at) { return run.at < at; };
        const auto begin =
                       std::lower_bound(runs_.begin(), runs_.end(), part * SUMS_PER_JOB, before),
                   end = std::lower_bound(begin, runs_.end(), (part + 1) * SUMS_PER_JOB, before);
        if (scattered()) {
          for (std::size_t k = 0; k < terms.size(); ++k)
            for (auto run = begin; run != end; ++run)
              for (Index i = 0; i < run->count; ++i)
                sums[run->at + i] += weights[k] * double(lines[k][run->row + i]);
          return;
        }
        // add_rows adds entry p of a line to entry p of the sums.
        for (auto run = begin; run != end; ++run)
          isa().of<Real>().add_rows(lines.data(), weights, Index(lines.size()), run->row,
                                    run->row + run->count, sums + run->at - run->row);
      });
    });
  }

 private:
  // Sums that one thread updates at a time. They stay in the first-level cache (4 KiB); fewer would
  // give shorter runs.
  static constexpr Index SUMS_PER_JOB = 512;
  // Mean number of rows per run below which entries are read one at a time, because a call for each
  // run would cost more than it saves.
  static constexpr Index MIN_MEAN_RUN = 8;
  // Mean distance between rows below which all rows are read. A cache line has 8 doubles, so almost
  // every line would be read anyway.
  static constexpr Index MAX_SPACING = 8;

  struct Run {
    // Position of the first row in the list, its number in the matrix, and the number of rows.
    Index at, row, count;
  };

  Index count_, last_ = -1;  // number of rows, largest row
  std::vector<Run> runs_;    // split at multiples of SUMS_PER_JOB
};

// f(x) = x'Qx/2 + linear'x with Q_ij = matrix(rows[i], rows[j]).
class MatrixOracle final : public LocalOracle {
 public:
  // `relative` says whether the tolerance is relative to the terms that cancel in the gradient. If
  // it is absolute, the rounding error is estimated. `known` is the gradient at x, or null.
  MatrixOracle(const DataMatrix& matrix, const Index* rows, const double* linear,
               const Point& point, bool relative, ThreadPool& pool, const double* known = nullptr)
      : LocalOracle(pool),
        matrix_(matrix),
        rows_(rows),
        linear_(linear),
        relative_(relative),
        derivatives_(point),
        noise_(point, relative ? 0 : point.n, [&](Index i) { return matrix.at(row(i), row(i)); }),
        runs_(rows, point.n) {
    if (known) std::copy_n(known, point.n, derivatives_.gradient());
    else recompute_gradient();
  }

  void select_candidates(Index count, bool with_free, Candidates& found) override {
    derivatives_.select_candidates(count, with_free, nullptr, found);
    found.scale =
        relative_ ? canceling_scale(derivatives_.point(), derivatives_.gradient(), linear_) : 1.0;
    found.noise = relative_ ? 0.0 : noise_.at(derivatives_.point(), found);
  }
  void block(const std::vector<Index>& members, bool, double* hessian) override {
    if (matrix_.starts) sparse_block(members, hessian);
    else dense_block(members, hessian);
  }
  bool is_single() const override { return matrix_.dense32 != nullptr; }
  void block(const std::vector<Index>& members, float* hessian) override {
    dense_block(members, hessian);
  }
  StoredHessian stored() const override {
    const bool is_whole = !rows_ && matrix_.features == derivatives_.count();
    return is_whole ? StoredHessian{matrix_.dense, matrix_.dense32} : StoredHessian{};
  }
  void update_gradient(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    for (const Index i : moved) derivatives_.enter(i);
    add(moved, delta);
  }
  void recompute_gradient() override {
    derivatives_.enter_all();
    const Support support(derivatives_.point());
    std::copy_n(linear_, derivatives_.count(), derivatives_.gradient());
    add(support.coordinates, support.weights);
  }

  const double* gradient() { return derivatives_.gradient(); }

 private:
  Index row(Index i) const { return rows_ ? rows_[i] : i; }

  // gradient += Q[:, columns] weights
  void add(const std::vector<Index>& columns, const std::vector<double>& weights) {
    double* gradient = derivatives_.gradient();
    if (matrix_.starts) {  // symmetric: columns are rows
      for (std::size_t k = 0; k < columns.size(); ++k)
        matrix_.each(columns[k], [&](Index i, double value) { gradient[i] += weights[k] * value; });
      return;
    }
    std::vector<Index> rows;
    for (const Index i : columns) rows.push_back(row(i));
    runs_.add(matrix_, rows, weights.data(), pool(), gradient);
  }

  template <class Real>
  void dense_block(const std::vector<Index>& members, Real* hessian) {
    const std::size_t q = members.size();
    std::vector<Index> rows;
    for (const Index i : members) rows.push_back(row(i));
    const Runs columns(rows.data(), Index(q));
    const bool scattered = columns.scattered();
    matrix_.for_dense([&](const auto* entries) {
      run_if_worth(pool(), double(q) * double(q), Index(q), [&](Index a) {
        const auto* from = entries + rows[a] * matrix_.features;
        Real* to = hessian + a * Index(q);
        if (!scattered) return columns.copy(from, to);
        for (std::size_t b = 0; b < q; ++b) to[b] = Real(from[rows[b]]);
      });
    });
  }

  void sparse_block(const std::vector<Index>& members, double* hessian) {
    const std::size_t q = members.size();
    place_.resize(std::size_t(derivatives_.count()), -1);
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
  Derivatives derivatives_;
  const Noise noise_;  // empty if the tolerance is relative
  const Runs runs_;
  std::vector<Index> place_;  // of a variable among the members of a block, -1 if it is not one
};

}  // namespace pairstep
