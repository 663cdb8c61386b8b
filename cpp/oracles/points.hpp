// Rows of a data matrix, laid out for the tile kernels (tiles.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "../core/team.hpp"
#include "../isa/dispatch.hpp"
#include "kernel_function.hpp"

namespace pairstep {

// The caller's matrix, dense rows of one of two types or CSR, and how its points are laid out.
struct DataMatrix {
  Index rows = 0, features = 0;
  const double* dense = nullptr;
  const float* dense32 = nullptr;
  const Index* starts = nullptr;  // CSR, columns in order
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;

  bool lay_sparse = false;            // whatever the matrix is
  std::vector<double> center;         // taken from every row, or empty: distances do not change
  std::vector<std::int32_t> centred;  // the columns in which it is not zero

  // Skipping zeros pays where most entries are. The mean matters to distances alone, and only
  // where norms are so large that their rounding is seen; around it far more digits are kept.
  // A column that is filled in a share p < 1/2 of the rows is let alone where zeros are skipped:
  // the mean, at best p of its entries' size, would fill it and save less than a bit.
  void lay_out(const KernelFunction& kernel, const double* mean) {
    constexpr double SPARSE = 0.3;
    const std::vector<double> filled = shares_filled();
    const auto average = [&](auto share) {
      double sum = 0.0;
      for (const double p : filled) sum += share(p);
      return features > 0 ? sum / double(features) : 1.0;
    };
    lay_sparse = average([](double p) { return p; }) < SPARSE;
    if (!mean || (lay_sparse && single_will_do(kernel, largest_square(nullptr, rows)))) return;
    lay_sparse = average([](double p) { return p < 0.5 ? p : 1.0; }) < SPARSE;
    center.assign(features, 0.0);
    for (Index k = 0; k < features; ++k)
      if (mean[k] != 0 && !(lay_sparse && filled[k] < 0.5)) {
        center[k] = mean[k];
        centred.push_back(std::int32_t(k));
      }
  }

  // As another matrix, so that points of both may meet.
  void lay_out_like(const DataMatrix& other) {
    lay_sparse = other.lay_sparse;
    center = other.center;
    centred = other.centred;
  }

  double at(Index row, Index k) const {
    return dense ? dense[row * features + k] : double(dense32[row * features + k]);
  }

  // function(entries), of whichever type a dense matrix has.
  template <class Function>
  void for_dense(Function function) const {
    if (dense) function(dense);
    else function(dense32);
  }

  // function(feature, value) for the entries of a row; zeros may be left out.
  template <class Function>
  void each(Index row, Function function) const {
    const auto centered = [&](Index k, double value) {
      return center.empty() ? value : value - center[k];
    };
    if (!starts) {
      for (Index k = 0; k < features; ++k) function(k, centered(k, at(row, k)));
      return;
    }
    auto absent = centred.begin();
    const auto absent_before = [&](Index k) {
      for (; absent != centred.end() && *absent < k; ++absent) function(*absent, -center[*absent]);
    };
    for (Index e = starts[row]; e < starts[row + 1]; ++e) {
      absent_before(columns[e]);
      function(Index(columns[e]), centered(columns[e], values[e]));
      if (absent != centred.end() && *absent == columns[e]) ++absent;
    }
    absent_before(features);
  }

  // The largest squared norm of some rows, or of all of them.
  double largest_square(const Index* which, Index count) const {
    double largest = 0.0;
    for (Index p = 0; p < count; ++p) {
      double square = 0.0;
      each(which ? which[p] : p, [&](Index, double value) { square += value * value; });
      largest = std::max(largest, square);
    }
    return largest;
  }

 private:
  // The share of rows in which each column is not zero; of a dense matrix as about a million
  // entries tell.
  std::vector<double> shares_filled() const {
    std::vector<double> filled(features, rows > 0 ? 0.0 : 1.0);
    constexpr Index ENTRIES = 1'000'000, ROWS = 32;  // to look at, at least
    const Index stride =
        starts ? 1 : std::max<Index>(1, std::min(rows * features / ENTRIES, rows / ROWS));
    Index seen = 0;
    for (Index row = 0; row < rows; row += stride, ++seen) {
      if (starts)
        for (Index e = starts[row]; e < starts[row + 1]; ++e) ++filled[columns[e]];
      else
        for_dense([&](const auto* entries) {
          for (Index k = 0; k < features; ++k)
            filled[k] += entries[row * features + k] != 0 ? 1.0 : 0.0;
        });
    }
    if (seen > 0)
      for (double& share : filled) share /= double(seen);
    return filled;
  }
};

// Memory in which the tiles spread out sparse queries, a line per feature: for each thread its own,
// all zero while nobody has it. It is kept, for clearing it would cost more than its use, as long
// as the points that it is for.
template <class Real>
class Lines {
 public:
  static constexpr Index WIDTH = 32;  // queries at once: two vectors or more of them

  explicit Lines(Index features) : size_(std::size_t(features) * WIDTH * sizeof(Real) + ALIGN) {}

  Real* take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      all_.emplace_back(std::calloc(size_, 1), &std::free);  // pages that are not used cost nothing
      void* memory = all_.back().get();
      if (!memory) throw std::bad_alloc();
      std::size_t room = size_;
      idle_.push_back(static_cast<Real*>(std::align(ALIGN, size_ - ALIGN, memory, room)));
    }
    Real* lines = idle_.back();
    idle_.pop_back();
    return lines;
  }
  void give_back(Real* lines) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(lines);
  }

 private:
  static constexpr std::size_t ALIGN = 64;
  std::size_t size_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> all_;
  std::vector<Real*> idle_;
};

// Dense points lie in panels of PANEL columns, feature by feature, so that a vector of columns is
// loaded at once; sparse ones as the rows of a CSR matrix.
template <class Real>
class Points {
 public:
  static constexpr Index PANEL = 48;  // a multiple of every vector width times three
  static constexpr Index BLOCK = 8;   // queries that are packed side by side

  Points() = default;

  // Some rows of a data matrix, in the order given; dense ones by the team, if there is one.
  Points(const DataMatrix& data, const Index* rows, Index count, Team* team = nullptr)
      : count_(count), features_(data.features), sparse_(data.lay_sparse) {
    squares_.assign(padded(), Real(0));
    if (sparse_) starts_.assign(1, 0);
    else values_.assign(std::size_t(padded()) * features_, Real(0));
    if (sparse_) lines_ = std::make_shared<Lines<Real>>(features_);
    if (sparse_) {
      pack_sparse(data, rows);
      return;
    }
    const auto pack_panel = [&](Index panel) {
      if (data.starts) pack_spread(data, rows, panel * PANEL);
      else
        data.for_dense([&](const auto* entries) {
          pack([&](Index p) { return entries + rows[p] * features_; }, data.center, panel * PANEL);
        });
    };
    if (team) team->run(panels(), pack_panel);
    else
      for (Index panel = 0; panel < panels(); ++panel) pack_panel(panel);
  }

  // Some of these points, in the order given.
  Points take(const std::vector<Index>& chosen) const {
    Points other;
    other.count_ = Index(chosen.size());
    other.features_ = features_;
    other.sparse_ = sparse_;
    other.lines_ = lines_;
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
    other.lines_ = lines_;
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
    static_assert(PANEL % BLOCK == 0);  // a block lies within a panel
    const Index n_blocks = (count_ + BLOCK - 1) / BLOCK;
    std::vector<Real> packed(std::size_t(n_blocks) * features_ * BLOCK);
    Real* to = packed.data();
    for (Index block = 0; block < n_blocks; ++block) {
      const Real* from = values_.data() + place(block * BLOCK);
      for (Index k = 0; k < features_; ++k, to += BLOCK)
        std::memcpy(to, from + k * PANEL, BLOCK * sizeof(Real));
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
  Lines<Real>& lines() const { return *lines_; }

  // Panels that together stay in the second-level cache while queries pass over them.
  Index panels_at_once() const {
    const double each = sparse_ && count_ > 0
                            ? 12.0 * double(columns_.size()) / double(count_) * PANEL
                            : double(features_ * PANEL) * sizeof(Real);
    return std::max<Index>(1, Index(300e3 / (each + 1.0)));
  }

 private:
  Index place(Index p) const { return (p / PANEL) * features_ * PANEL + p % PANEL; }

  void pack_sparse(const DataMatrix& data, const Index* rows) {
    for (Index p = 0; p < count_; ++p) {
      double square = 0.0;
      data.each(rows[p], [&](Index k, double entry) {
        const Real value = Real(entry);
        square += double(value) * double(value);
        if (value == 0) return;
        columns_.push_back(std::int32_t(k));
        values_.push_back(value);
      });
      starts_.push_back(Index(columns_.size()));
      squares_[p] = Real(square);
    }
  }

  // A panel of sparse rows, which are spread out first: single numbers would go far apart.
  void pack_spread(const DataMatrix& data, const Index* rows, Index first) {
    std::vector<double> spread(std::size_t(std::min(PANEL, count_ - first) * features_), 0.0);
    const auto line = [&](Index p) { return spread.data() + (p - first) * features_; };
    for (Index p = first; p < std::min(first + PANEL, count_); ++p)
      for (Index e = data.starts[rows[p]]; e < data.starts[rows[p] + 1]; ++e)
        line(p)[data.columns[e]] = data.values[e];
    pack(line, data.center, first);
  }

  // A panel of dense rows, of which `line` tells where they begin, a few features at a time so that
  // what is written stays close.
  template <class Line>
  void pack(const Line& line, const std::vector<double>& center, Index first) {
    constexpr Index FEW = 8;
    const Index last = std::min(first + PANEL, count_);
    double squares[PANEL] = {};
    for (Index begin = 0; begin < features_; begin += FEW) {
      const Index end = std::min(begin + FEW, features_);
      for (Index p = first; p < last; ++p) {
        const auto* row = line(p);
        Real* to = values_.data() + place(p);
        for (Index k = begin; k < end; ++k) {
          const Real value = Real(double(row[k]) - (center.empty() ? 0.0 : center[k]));
          squares[p - first] += double(value) * double(value);
          to[k * PANEL] = value;
        }
      }
    }
    for (Index p = first; p < last; ++p) squares_[p] = Real(squares[p - first]);
  }

  Index count_ = 0, features_ = 0;
  bool sparse_ = false;
  std::vector<Real> values_, squares_;
  std::vector<Index> starts_;
  std::vector<std::int32_t> columns_;
  std::shared_ptr<Lines<Real>> lines_;  // of sparse points
};

// Kernel values of queries (rows) with points (columns), for some of the panels of columns.
template <class Real>
struct Tiles {
  KernelFunction kernel;
  const Points<Real>* columns;
  const Points<Real>* queries;
  const Real* blocks;                                                     // queries->blocks()
  Index first_query = 0, last_query = std::numeric_limits<Index>::max();  // the last is not meant
  Index first_column = 0;
  // What becomes of the value of query r with column c:
  Real* const* rows = nullptr;      // it is written to rows[r][c - first_column],
  const double* weights = nullptr;  // and weights[r * outputs + o] times it is added to
  double* sums = nullptr;           // sums[o * stride + c],
  // or column_weights[o * columns->count() + c] times it is added to totals[s * stride + r], where
  // s is o, after those of the groups of columns before that of c.
  const double* column_weights = nullptr;
  double* totals = nullptr;
  const std::vector<Index>* groups = nullptr;  // where they begin, and the number of columns
  Index outputs = 1, stride = 0;
};

}  // namespace pairstep
