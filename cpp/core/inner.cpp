#include "inner.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "../isa/dispatch.hpp"
#include "subnormals.hpp"

namespace pairstep {

namespace {

struct ProductSettings {
  // Most numbers that are packed at once: 2 MiB, which stay in the cache while they are multiplied.
  static constexpr Index packed_numbers = 1 << 18;
  // A product with at most BLOCK_COLUMNS columns is split by rows. Each part has a separate n x n
  // result that must be added to the others. More parts than max_row_parts would need too much
  // memory, and with fewer rows than min_rows_per_part the addition would cost more than the split
  // saves.
  static constexpr Index max_row_parts = 16, min_rows_per_part = 2 * BLOCK_DEPTH;
  // Jobs per thread in a product of two matrices: several, to balance the load.
  static constexpr Index jobs_per_thread = 4;
  // Columns per job of a transposed product: 32 KiB of sums, which stay in the second-level cache.
  static constexpr Index columns_per_job = 4096;
};

// Number of parts of size `part` that cover `whole`.
Index parts(Index whole, Index part) { return (whole + part - 1) / part; }

// A range of rows of a matrix, packed into blocks of BLOCK_COLUMNS columns and BLOCK_DEPTH rows.
class Packed {
 public:
  explicit Packed(const Columns& columns, Index at_once = ProductSettings::packed_numbers)
      : set(isa()),
        columns_(columns),
        blocks_(parts(columns.count, BLOCK_COLUMNS)),
        width_(blocks_ == 1 ? parts(columns.count, BLOCK_COLUMNS / 4) * (BLOCK_COLUMNS / 4)
                            : BLOCK_COLUMNS),
        depth_(std::min(columns.rows, BLOCK_DEPTH)),
        chunks_(std::clamp(at_once / (blocks_ * width_ * depth_), Index(1),
                           parts(columns.rows, depth_))),
        memory_(chunks_ * blocks_ * width_ * depth_) {}

  // The layout of the blocks depends on the instruction set, so packing and multiplying must use
  // the same one even if another is chosen in between.
  const InstructionSet& set;

  Index blocks() const { return blocks_; }
  Index rows_at_once() const { return chunks_ * depth_; }
  // Pack the rows [first, last), at most `rows_at_once` of them.
  void pack_rows(Index first, Index last, ThreadPool& pool) {
    first_ = first;
    last_ = last;
    pool.run(chunks() * blocks_, [&](Index k) {
      const WithoutSubnormals flush(columns_.scale);
      const Index begin = first_ + k / blocks_ * depth_, block = k % blocks_;
      set.pack(columns_, block * BLOCK_COLUMNS, size(block), begin, std::min(begin + depth_, last_),
               memory_.data() + k * width_ * depth_);
    });
  }
  Index chunks() const { return parts(last_ - first_, depth_); }
  Index begin_of(Index chunk) const { return first_ + chunk * depth_; }
  Index depth_of(Index chunk) const { return std::min(depth_, last_ - begin_of(chunk)); }
  const double* block(Index chunk, Index block) {
    return memory_.data() + (chunk * blocks_ + block) * width_ * depth_;
  }
  // Number of columns in a block.
  Index size(Index block) const {
    return std::min(BLOCK_COLUMNS, columns_.count - block * BLOCK_COLUMNS);
  }

 private:
  const Columns columns_;
  Index blocks_, width_, depth_, chunks_, first_ = 0, last_ = 0;
  Aligned memory_;
};

// Add up the terms in eight partial sums: a single sum would be one chain of dependent additions,
// and its rounding error would be larger.
template <class Term>
double sum_of(Index count, const Term& term) {
  double part[8] = {};
  Index k = 0;
  for (; k + 8 <= count; k += 8)
    for (int lane = 0; lane < 8; ++lane) part[lane] += term(k + lane);
  double sum =
      ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
  for (; k < count; ++k) sum += term(k);
  return sum;
}

// Compute the Gram matrix block by block, the blocks in parallel.
void gram_by_blocks(Columns columns, const double* left, const double* right, double* out,
                    ThreadPool& pool) {
  const Index n = columns.count;
  columns.scale = left;
  // A single thread packs one chunk of rows at a time, because no other thread could multiply the
  // next chunk in the meantime.
  const Index at_once = pool.size() > 1 ? ProductSettings::packed_numbers : 1;
  Packed packed(columns, at_once);
  std::optional<Packed> right_side;  // only if it is scaled differently
  columns.scale = right;
  if (left != right) right_side.emplace(columns, at_once);
  Packed& other = right_side ? *right_side : packed;
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < packed.blocks(); ++i)
    for (Index j = i; j < packed.blocks(); ++j) pairs.emplace_back(i, j);
  for (Index first = 0; first < columns.rows; first += packed.rows_at_once()) {
    const Index last = std::min(first + packed.rows_at_once(), columns.rows);
    packed.pack_rows(first, last, pool);
    if (right_side) right_side->pack_rows(first, last, pool);
    pool.run(Index(pairs.size()), [&](Index k) {
      const WithoutSubnormals flush(left || right);
      const auto [i, j] = pairs[k];
      double* block = out + i * BLOCK_COLUMNS * n + j * BLOCK_COLUMNS;
      for (Index chunk = 0; chunk < packed.chunks(); ++chunk)
        packed.set.multiply({packed.block(chunk, i), other.block(chunk, j), packed.size(i),
                             packed.size(j), packed.depth_of(chunk), block, n,
                             packed.begin_of(chunk) > 0, i == j});
      if (last < columns.rows) return;
      for (Index c = j * BLOCK_COLUMNS; c < j * BLOCK_COLUMNS + packed.size(j); ++c)
        for (Index r = i * BLOCK_COLUMNS; r < std::min(i * BLOCK_COLUMNS + packed.size(i), c); ++r)
          out[c * n + r] = out[r * n + c];
    });
  }
}

// Compute the Gram matrix as a sum over ranges of rows, the ranges in parallel. The results are
// added up in order, so that the bits do not depend on the number of threads.
void gram_by_rows(const Columns& columns, const double* left, const double* right, double* out,
                  Index n_parts, ThreadPool& pool) {
  const Index size = columns.count * columns.count;
  const auto begin_of = [&](Index part) { return part * columns.rows / n_parts; };
  const auto from = [](const double* scale, Index k) { return scale ? scale + k : nullptr; };
  Aligned products(n_parts * size);
  pool.run(n_parts, [&](Index part) {
    const Index begin = begin_of(part);
    Columns rows = columns;
    rows.data += begin * columns.down;
    rows.rows = begin_of(part + 1) - begin;
    ThreadPool single(1, pool.interrupt());
    gram_by_blocks(rows, from(left, begin), from(right, begin), products.data() + part * size,
                   single);
  });
  std::copy_n(products.data(), size, out);
  for (Index part = 1; part < n_parts; ++part)
    for (Index k = 0; k < size; ++k) out[k] += products[part * size + k];
}

}  // namespace

void gram(const Columns& columns, double* out, ThreadPool& pool) {
  gram(columns, nullptr, nullptr, out, pool);
}

void gram(const Columns& columns, const double* left, const double* right, double* out,
          ThreadPool& pool) {
  const Index n = columns.count;
  if (columns.rows == 0 || n == 0) return std::fill(out, out + n * n, 0.0);
  const Index n_parts =
      std::min(columns.rows / ProductSettings::min_rows_per_part, ProductSettings::max_row_parts);
  if (n > BLOCK_COLUMNS || n_parts < 2) return gram_by_blocks(columns, left, right, out, pool);
  gram_by_rows(columns, left, right, out, n_parts, pool);
}

void inner(const Columns& left, const Columns& right, double* out, ThreadPool& pool) {
  if (left.rows == 0 || left.count == 0 || right.count == 0)
    return std::fill(out, out + left.count * right.count, 0.0);
  Packed packed(left);
  const Index blocks = parts(right.count, BLOCK_COLUMNS),
              jobs = std::min(blocks, ProductSettings::jobs_per_thread * pool.size());
  for (Index first = 0; first < left.rows; first += packed.rows_at_once()) {
    packed.pack_rows(first, std::min(first + packed.rows_at_once(), left.rows), pool);
    pool.run(jobs, [&](Index job) {
      Aligned packed_right(BLOCK_COLUMNS * std::min(left.rows, BLOCK_DEPTH));
      for (Index j = job * blocks / jobs; j < (job + 1) * blocks / jobs; ++j) {
        const Index size = std::min(BLOCK_COLUMNS, right.count - j * BLOCK_COLUMNS);
        for (Index chunk = 0; chunk < packed.chunks(); ++chunk) {
          const Index begin = packed.begin_of(chunk), depth = packed.depth_of(chunk);
          packed.set.pack(right, j * BLOCK_COLUMNS, size, begin, begin + depth,
                          packed_right.data());
          for (Index i = 0; i < packed.blocks(); ++i)
            packed.set.multiply({packed.block(chunk, i), packed_right.data(), packed.size(i), size,
                                 depth, out + i * BLOCK_COLUMNS * right.count + j * BLOCK_COLUMNS,
                                 right.count, begin > 0, false});
        }
      }
    });
  }
}

void times_vector(const double* matrix, Index m, Index n, const double* x, double* out) {
  for (Index p = 0; p < m; ++p) out[p] = dot(matrix + p * n, x, n);
}

double dot(const double* a, const double* b, Index n) {
  return sum_of(n, [a, b](Index k) { return a[k] * b[k]; });
}

double gathered_product(const double* row, const Index* index, Index count, const double* weights) {
  return sum_of(count, [=](Index k) { return row[index[k]] * weights[k]; });
}

void transposed_times_vector(const double* matrix, Index m, Index n, const double* r, double* out) {
  std::fill_n(out, n, 0.0);
  InterruptCheck interrupt;
  ThreadPool single(1, interrupt);
  add_transposed(matrix, m, n, r, out, single);
}

void add_transposed(const double* matrix, Index m, Index n, const double* r, double* sums,
                    ThreadPool& pool) {
  std::vector<const double*> rows(std::size_t(m), nullptr);
  for (Index p = 0; p < m; ++p) rows[p] = matrix + p * n;
  constexpr Index WIDTH = ProductSettings::columns_per_job;
  pool.run(parts(n, WIDTH), [&](Index job) {
    isa().of<double>().add_rows(rows.data(), r, m, job * WIDTH, std::min((job + 1) * WIDTH, n),
                                sums);
  });
}

}  // namespace pairstep
