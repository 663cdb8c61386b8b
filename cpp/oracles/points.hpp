// Rows of a data matrix, packed for the kernel tiles (cpp/isa/tiles.hpp), which compute blocks of
// kernel values.
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

#include "../core/thread_pool.hpp"
#include "../isa/dispatch.hpp"
#include "kernel_function.hpp"

namespace pairstep {

// The caller's matrix, dense in float64 or float32 or sparse (CSR), and how its rows are packed.
struct DataMatrix {
  Index rows = 0, features = 0;
  const double* dense = nullptr;
  const float* dense32 = nullptr;
  const Index* starts = nullptr;  // CSR, columns in order
  const std::int32_t* columns = nullptr;
  const double* values = nullptr;

  bool lay_sparse = false;             // whether points skip zeros, however the matrix is stored
  std::vector<double> center;          // subtracted from every row, or empty
  std::vector<std::int32_t> centered;  // the columns in which the center is not zero

  // Choose the layout. Skipping zeros pays if most entries are zero. Subtracting the mean, unless
  // it is null, leaves distances unchanged and preserves many digits if norms are large compared
  // with distances. In a sparse layout, columns that fewer than half of the rows fill are not
  // centered: centering would fill them with nonzeros and save less than a bit.
  void lay_out(const KernelFunction& kernel, const double* mean) {
    const std::vector<double> filled = fractions_filled();
    const auto average = [&](auto cost) {
      double sum = 0.0;
      for (const double p : filled) sum += cost(p);
      return features > 0 ? sum / double(features) : 1.0;
    };
    lay_sparse = average([](double p) { return p; }) < MAX_SPARSE_FILL;
    center.clear();
    centered.clear();
    if (!mean) return;
    // Inner products depend on the origin, so all parts of the data must use the given center.
    const bool as_given = kernel.name == KernelName::linear;
    if (!as_given) {
      if (lay_sparse && single_will_do(kernel, largest_square(nullptr, rows))) return;
      lay_sparse = average([](double p) { return p < 0.5 ? p : 1.0; }) < MAX_SPARSE_FILL;
    }
    center.assign(features, 0.0);
    for (Index k = 0; k < features; ++k)
      if (mean[k] != 0 && (as_given || !(lay_sparse && filled[k] < 0.5))) {
        center[k] = mean[k];
        centered.push_back(std::int32_t(k));
      }
    if (as_given && double(centered.size()) > MAX_SPARSE_FILL * double(features))
      lay_sparse = false;
  }

  // The origin for a linear kernel whose weights sum to 0. It is empty if the mean is close to 0,
  // because centering would save no digits. Otherwise it is the mean, but 0 in those columns of a
  // sparse matrix that fewer than half of the rows fill.
  std::vector<double> linear_center(std::vector<double> mean) const {
    const std::vector<double> filled = fractions_filled();
    double sum = 0.0;
    for (const double p : filled) sum += p;
    if (!needs_centering(mean.data(), filled)) return {};
    if (!(sum < MAX_SPARSE_FILL * double(features))) return mean;
    for (Index k = 0; k < features; ++k)
      if (filled[k] < 0.5) mean[k] = 0.0;
    return mean;
  }

  // center'(row - center)
  long double center_product(Index row) const {
    long double sum = 0.0L;
    if (!center.empty())
      each(row, [&](Index k, double value) { sum += static_cast<long double>(center[k]) * value; });
    return sum;
  }

  // Use the layout of another matrix, which kernel values between points of both require.
  void lay_out_like(const DataMatrix& other) {
    lay_sparse = other.lay_sparse;
    center = other.center;
    centered = other.centered;
  }

  double at(Index row, Index k) const {
    return dense ? dense[row * features + k] : double(dense32[row * features + k]);
  }

  // Call function(entries) with the dense entries in their type.
  template <class Function>
  void for_dense(Function function) const {
    if (dense) function(dense);
    else function(dense32);
  }

  // Call function(feature, value) for the centered entries of a row. Zeros may be skipped.
  template <class Function>
  void each(Index row, Function function) const {
    const auto shifted = [&](Index k, double value) {
      return center.empty() ? value : value - center[k];
    };
    if (!starts) {
      for (Index k = 0; k < features; ++k) function(k, shifted(k, at(row, k)));
      return;
    }
    auto absent = centered.begin();
    const auto absent_before = [&](Index k) {
      for (; absent != centered.end() && *absent < k; ++absent) function(*absent, -center[*absent]);
    };
    for (Index e = starts[row]; e < starts[row + 1]; ++e) {
      absent_before(columns[e]);
      function(Index(columns[e]), shifted(columns[e], values[e]));
      if (absent != centered.end() && *absent == columns[e]) ++absent;
    }
    absent_before(features);
  }

  // The largest squared norm of the rows `which`, or of the first `count` rows if it is null.
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
  // Fraction of nonzeros below which zeros are skipped. A larger value uses the sparse layout, with
  // its irregular memory access, for more matrices; a smaller one computes with more zeros.
  static constexpr double MAX_SPARSE_FILL = 0.3;

  // Whether the mean, in the columns that at least half of the rows fill, is so far from 0 compared
  // with the distances of the rows from it that inner products lose digits.
  bool needs_centering(const double* mean, const std::vector<double>& filled) const {
    // Ratio of the squared norm of the mean to the mean squared distance from it. A larger limit
    // would accept inner products with larger rounding errors; a smaller one would center data for
    // which it saves little.
    constexpr double MAX_UNCENTERED_RATIO = 100.0;
    double of_mean = 0.0, of_rows = 0.0;  // squared norms
    for (Index k = 0; k < features; ++k)
      if (filled[k] >= 0.5) of_mean += mean[k] * mean[k];
    for (Index row = 0; row < rows; ++row)
      each(row, [&](Index, double value) { of_rows += value * value; });
    return of_mean > 0 && of_mean > MAX_UNCENTERED_RATIO * (of_rows / double(rows) - of_mean);
  }

  // The fraction of rows in which each column is not zero. For a large dense matrix it is an
  // estimate from some of the rows.
  std::vector<double> fractions_filled() const {
    std::vector<double> filled(features, rows > 0 ? 0.0 : 1.0);
    // Read at least this many entries and rows, if the matrix has that many. More would make the
    // estimate better, but would take longer.
    constexpr Index MIN_ENTRIES = 1'000'000, MIN_ROWS = 32;
    const Index stride =
        starts ? 1 : std::max<Index>(1, std::min(rows * features / MIN_ENTRIES, rows / MIN_ROWS));
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
      for (double& fraction : filled) fraction /= double(seen);
    return filled;
  }
};

// Buffers in which tiles store sparse queries densely, one line per feature and one buffer per
// thread. A buffer is all zero while it is not in use: whoever takes it must clear what it has
// written before giving it back. Buffers are kept as long as the points, because clearing a new one
// would cost more than its use.
template <class Real>
class Lines {
 public:
  // Queries at a time: two vectors of floats with AVX-512. More of them would read each sparse
  // entry less often, but would need larger buffers.
  static constexpr Index WIDTH = 32;

  explicit Lines(Index features) : size_(std::size_t(features) * WIDTH * sizeof(Real) + ALIGN) {}

  Real* take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      all_.emplace_back(std::calloc(size_, 1), &std::free);  // untouched pages cost nothing
      void* memory = all_.back().get();
      if (!memory) throw std::bad_alloc();
      std::size_t slack = size_;
      idle_.push_back(static_cast<Real*>(std::align(ALIGN, size_ - ALIGN, memory, slack)));
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

// Packed points. Dense points are stored in panels of PANEL points, feature by feature, so that a
// vector load reads one feature of several points; sparse points as the rows of a CSR matrix.
template <class Real>
class Points {
 public:
  // Points per panel: a multiple of three vectors of any instruction set, the width of a register
  // tile (DENSE_VECTORS in isa/tiles.hpp).
  static constexpr Index PANEL = 48;
  // Queries that are packed together: the largest height of a register tile (DENSE_ROWS).
  static constexpr Index BLOCK = 8;

  Points() = default;

  // Pack some rows of a data matrix in the given order; on all threads if there is a pool and the
  // layout is dense.
  Points(const DataMatrix& data, const Index* rows, Index count, ThreadPool* pool = nullptr)
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
    if (pool) pool->run(panels(), pack_panel);
    else
      for (Index panel = 0; panel < panels(); ++panel) pack_panel(panel);
  }

  // Some of these points, in the given order.
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

  // The single point sum_c weight[c] x_chosen[c].
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

  // The points as queries of tiles: dense points in blocks of BLOCK, feature by feature.
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

  // The number of panels that stay in the second-level cache while queries are compared with them.
  Index panels_at_once() const {
    // Bytes of panels that are processed together. More would evict the queries from the cache;
    // fewer would read the queries more often.
    constexpr double MAX_PANEL_BYTES = 300e3;
    constexpr double SPARSE_ENTRY_BYTES = 12.0;  // a double and a 32-bit column
    const double each = sparse_ && count_ > 0
                            ? SPARSE_ENTRY_BYTES * double(columns_.size()) / double(count_) * PANEL
                            : double(features_ * PANEL) * sizeof(Real);
    return std::max<Index>(1, Index(MAX_PANEL_BYTES / (each + 1.0)));
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

  // Pack a panel of sparse rows. They are made dense first, because writing their entries one by
  // one to the panel would jump through memory.
  void pack_spread(const DataMatrix& data, const Index* rows, Index first) {
    std::vector<double> spread(std::size_t(std::min(PANEL, count_ - first) * features_), 0.0);
    const auto line = [&](Index p) { return spread.data() + (p - first) * features_; };
    for (Index p = first; p < std::min(first + PANEL, count_); ++p)
      for (Index e = data.starts[rows[p]]; e < data.starts[rows[p] + 1]; ++e)
        line(p)[data.columns[e]] = data.values[e];
    pack(line, data.center, first);
  }

  // Pack a panel of dense rows, where line(p) is the beginning of row p. Only FEATURES_AT_ONCE
  // features are written at a time, so that the writes stay in the cache.
  template <class Line>
  void pack(const Line& line, const std::vector<double>& center, Index first) {
    constexpr Index FEATURES_AT_ONCE = 8;  // a cache line of a row of doubles
    const Index last = std::min(first + PANEL, count_);
    double squares[PANEL] = {};
    for (Index begin = 0; begin < features_; begin += FEATURES_AT_ONCE) {
      const Index end = std::min(begin + FEATURES_AT_ONCE, features_);
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
  std::shared_ptr<Lines<Real>> lines_;  // for sparse points
};

// Several outputs are padded to a multiple of this, which fills the vectors of any instruction set.
constexpr Index OUTPUTS_STEP = 8;

// A job for the kernel tiles: kernel values of queries (rows) and points (columns).
template <class Real>
struct Tiles {
  KernelFunction kernel;
  const Points<Real>* columns;
  const Points<Real>* queries;
  const Real* blocks;  // queries->blocks()
  Index first_query = 0;
  Index last_query = std::numeric_limits<Index>::max();  // exclusive
  Index first_column = 0;
  // The kernel value of query r and column c is stored in rows[r][c - first_column], unless rows[r]
  // is null, and weights[r * outputs + o] times it is added to sums[o * stride + c].
  Real* const* rows = nullptr;
  const double* weights = nullptr;
  double* sums = nullptr;
  // Or column_weights[c * outputs + o] times it is added to totals[r * stride + g * outputs + o],
  // where g is the group of column c. There is one output, or a multiple of OUTPUTS_STEP.
  const double* column_weights = nullptr;
  double* totals = nullptr;
  const std::vector<Index>* groups = nullptr;  // where each group begins, and the number of columns
  Index outputs = 1, stride = 0;
};

}  // namespace pairstep
