// Rows of a data matrix, laid out for the tile kernels (tiles.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../isa/dispatch.hpp"

namespace pairstep {

enum class KernelName : int { linear, poly, rbf, sigmoid, precomputed };

struct KernelFunction {
  KernelName name;
  double gamma, coef0;
  int degree;
};

// The caller's matrix: dense rows of one of two types, or CSR.
struct DataMatrix {
  Index rows = 0, features = 0;
  const double* dense = nullptr;
  const float* dense32 = nullptr;
  const Index* starts = nullptr;  // CSR
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;
  const double* center = nullptr;  // taken from every row: distances do not change
  bool lay_sparse = false;         // how points are laid out, whatever the matrix is

  double at(Index row, Index k) const {
    return dense ? dense[row * features + k] : double(dense32[row * features + k]);
  }

  // function(feature, value) for the entries of a row; zeros may be left out if there is no center.
  template <class Function>
  void each(Index row, Function function) const {
    if (starts && !center) {
      for (Index e = starts[row]; e < starts[row + 1]; ++e) function(Index(columns[e]), values[e]);
    } else if (starts) {
      Index e = starts[row];
      for (Index k = 0; k < features; ++k) {
        const bool stored = e < starts[row + 1] && columns[e] == k;
        function(k, (stored ? values[e] : 0.0) - center[k]);
        e += stored;
      }
    } else {
      for (Index k = 0; k < features; ++k)
        function(k, center ? at(row, k) - center[k] : at(row, k));
    }
  }

  // The share of entries that are not zero, judged by about a million of them.
  double density() const {
    if (rows == 0 || features == 0) return 1.0;
    const Index stride = std::max<Index>(1, rows * features / 1'000'000);
    Index filled = 0, seen = 0;
    for (Index row = 0; row < rows; row += stride, ++seen) {
      if (starts) filled += starts[row + 1] - starts[row];
      else
        for (Index k = 0; k < features; ++k) filled += at(row, k) != 0.0;
    }
    return double(filled) / (double(seen) * double(features));
  }
};

// Dense points lie in panels of PANEL columns, feature by feature, so that a vector of columns is
// loaded at once; sparse ones as the rows of a CSR matrix.
template <class Real>
class Points {
 public:
  static constexpr Index PANEL = 48;  // a multiple of every vector width times three
  static constexpr Index BLOCK = 8;   // queries that are packed side by side

  Points() = default;

  // Some rows of a data matrix, in the order given.
  Points(const DataMatrix& data, const Index* rows, Index count)
      : count_(count), features_(data.features), sparse_(data.lay_sparse) {
    squares_.assign(padded(), Real(0));
    if (sparse_) starts_.assign(1, 0);
    else values_.assign(std::size_t(padded()) * features_, Real(0));
    for (Index p = 0; p < count; ++p) {
      double square = 0.0;
      data.each(rows[p], [&](Index k, double entry) {
        const Real value = Real(entry);
        square += double(value) * double(value);
        if (!sparse_) {
          values_[place(p) + k * PANEL] = value;
        } else if (value != 0) {
          columns_.push_back(std::int32_t(k));
          values_.push_back(value);
        }
      });
      if (sparse_) starts_.push_back(Index(columns_.size()));
      squares_[p] = Real(square);
    }
  }

  // Some of these points, in the order given.
  Points take(const std::vector<Index>& chosen) const {
    Points other;
    other.count_ = Index(chosen.size());
    other.features_ = features_;
    other.sparse_ = sparse_;
    other.squares_.assign(other.padded(), Real(0));
    if (sparse_) {
      other.starts_.assign(1, 0);
      for (const Index p : chosen) {
        other.columns_.insert(other.columns_.end(), columns_.begin() + starts_[p],
                              columns_.begin() + starts_[p + 1]);
        other.values_.insert(other.values_.end(), values_.begin() + starts_[p],
                             values_.begin() + starts_[p + 1]);
        other.starts_.push_back(Index(other.columns_.size()));
      }
    } else {
      other.values_.assign(std::size_t(other.padded()) * features_, Real(0));
      for (Index p = 0; p < other.count_; ++p) {
        const Real* from = values_.data() + place(chosen[p]);
        Real* to = other.values_.data() + other.place(p);
        for (Index k = 0; k < features_; ++k) to[k * PANEL] = from[k * PANEL];
      }
    }
    for (Index p = 0; p < other.count_; ++p) other.squares_[p] = squares_[chosen[p]];
    return other;
  }

  // The one point sum_p weight_p x_p.
  Points combine(const std::vector<Index>& chosen, const double* weight) const {
    std::vector<double> sum(features_, 0.0);
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      const Index p = chosen[c];
      if (sparse_)
        for (Index e = starts_[p]; e < starts_[p + 1]; ++e)
          sum[columns_[e]] += weight[c] * values_[e];
      else
        for (Index k = 0; k < features_; ++k) sum[k] += weight[c] * values_[place(p) + k * PANEL];
    }
    Points other;
    other.count_ = 1;
    other.features_ = features_;
    other.sparse_ = sparse_;
    other.squares_.assign(other.padded(), Real(0));
    if (sparse_) {
      for (Index k = 0; k < features_; ++k)
        if (sum[k] != 0) {
          other.columns_.push_back(std::int32_t(k));
          other.values_.push_back(Real(sum[k]));
        }
      other.starts_ = {0, Index(other.columns_.size())};
    } else {
      other.values_.assign(std::size_t(other.padded()) * features_, Real(0));
      for (Index k = 0; k < features_; ++k) other.values_[k * PANEL] = Real(sum[k]);
    }
    return other;
  }

  // Points as queries: dense ones in blocks of BLOCK, feature by feature.
  std::vector<Real> blocks() const {
    if (sparse_) return {};
    const Index n_blocks = (count_ + BLOCK - 1) / BLOCK;
    std::vector<Real> packed(std::size_t(n_blocks) * features_ * BLOCK);
    for (Index p = 0; p < n_blocks * BLOCK && p < padded(); ++p) {
      const Real* from = values_.data() + place(p);
      Real* to = packed.data() + (p / BLOCK) * features_ * BLOCK + p % BLOCK;
      for (Index k = 0; k < features_; ++k) to[k * BLOCK] = from[k * PANEL];
    }
    return packed;
  }

  Index count() const { return count_; }
  Index features() const { return features_; }
  bool sparse() const { return sparse_; }
  Index panels() const { return (count_ + PANEL - 1) / PANEL; }
  Index padded() const { return panels() * PANEL; }
  const Real* panel(Index p) const { return values_.data() + p * features_ * PANEL; }
  const Real* squares() const { return squares_.data(); }
  const Index* starts() const { return starts_.data(); }
  const std::int32_t* columns() const { return columns_.data(); }
  const Real* values() const { return values_.data(); }

  // Panels that together stay in the second-level cache while queries pass over them.
  Index panels_at_once() const {
    const double each = sparse_ && count_ > 0
                            ? 12.0 * double(columns_.size()) / double(count_) * PANEL
                            : double(features_ * PANEL) * sizeof(Real);
    return std::max<Index>(1, Index(300e3 / (each + 1.0)));
  }

 private:
  Index place(Index p) const { return (p / PANEL) * features_ * PANEL + p % PANEL; }

  Index count_ = 0, features_ = 0;
  bool sparse_ = false;
  std::vector<Real> values_, squares_;
  std::vector<Index> starts_;
  std::vector<std::int32_t> columns_;
};

// Kernel values of queries (rows) with points (columns), for some of the panels of columns.
template <class Real>
struct Tiles {
  KernelFunction kernel;
  const Points<Real>* columns;
  const Points<Real>* queries;
  const Real* blocks;  // queries->blocks()
  // What becomes of the value of query r with column c:
  Real* const* rows = nullptr;      // it is written to rows[r][c],
  const double* weights = nullptr;  // and weights[r * outputs + o] times it is added to
  double* sums = nullptr;           // sums[o * stride + c].
  Index outputs = 1, stride = 0;
};

}  // namespace pairstep
