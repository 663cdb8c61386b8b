#include "inner.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "../isa/dispatch.hpp"
#include "subnormals.hpp"

namespace pairstep {

namespace {

Index parts(Index whole, Index part) { return (whole + part - 1) / part; }

// Some rows of a matrix, packed block by block.
class Packed {
 public:
  static constexpr Index AT_ONCE = 1 << 18;  // numbers, which stay in the cache
  explicit Packed(const Columns& columns, Index at_once = AT_ONCE)
      : set(isa()),
        columns_(columns),
        blocks_(parts(columns.count, SIDE)),
        width_(blocks_ == 1 ? parts(columns.count, SIDE / 4) * (SIDE / 4) : SIDE),
        depth_(std::min(columns.rows, DEPTH)),
        chunks_(std::clamp(at_once / (blocks_ * width_ * depth_), Index(1),
                           parts(columns.rows, depth_))),
        memory_(chunks_ * blocks_ * width_ * depth_) {}

  // What one set of instructions has packed another cannot read.
  const InstructionSet& set;

  Index blocks() const { return blocks_; }
  Index rows_at_once() const { return chunks_ * depth_; }
  // The rows [first, last), which are not more than `rows_at_once`.
  void hold(Index first, Index last, Team& team) {
    first_ = first;
    last_ = last;
    team.run(chunks() * blocks_, [&](Index k) {
      const WithoutSubnormals flush(columns_.scale);
      const Index begin = first_ + k / blocks_ * depth_, block = k % blocks_;
      set.pack(columns_, block * SIDE, size(block), begin, std::min(begin + depth_, last_),
               memory_.data() + k * width_ * depth_);
    });
  }
  Index chunks() const { return parts(last_ - first_, depth_); }
  Index begin_of(Index chunk) const { return first_ + chunk * depth_; }
  Index depth_of(Index chunk) const { return std::min(depth_, last_ - begin_of(chunk)); }
  const double* block(Index chunk, Index block) {
    return memory_.data() + (chunk * blocks_ + block) * width_ * depth_;
  }
  // Columns of a block.
  Index size(Index block) const { return std::min(SIDE, columns_.count - block * SIDE); }

 private:
  const Columns columns_;
  Index blocks_, width_, depth_, chunks_, first_ = 0, last_ = 0;
  Aligned memory_;
};

// In eight sums side by side: a single one is a chain of additions, and rounds more.
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

// Threads share the blocks.
void gram_by_blocks(Columns columns, const double* left, const double* right, double* out,
                    Team& team) {
  const Index n = columns.count;
  columns.scale = left;
  // Alone one needs no store of packed rows for others to take from.
  const Index at_once = team.size() > 1 ? Packed::AT_ONCE : 1;
  Packed packed(columns, at_once);
  std::optional<Packed> apart;  // the other side, where it is scaled otherwise
  columns.scale = right;
  if (left != right) apart.emplace(columns, at_once);
  Packed& other = apart ? *apart : packed;
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < packed.blocks(); ++i)
    for (Index j = i; j < packed.blocks(); ++j) pairs.emplace_back(i, j);
  for (Index first = 0; first < columns.rows; first += packed.rows_at_once()) {
    const Index last = std::min(first + packed.rows_at_once(), columns.rows);
    packed.hold(first, last, team);
    if (apart) apart->hold(first, last, team);
    team.run(Index(pairs.size()), [&](Index k) {
      const WithoutSubnormals flush(left || right);
      const auto [i, j] = pairs[k];
      double* block = out + i * SIDE * n + j * SIDE;
      for (Index chunk = 0; chunk < packed.chunks(); ++chunk)
        packed.set.multiply({packed.block(chunk, i), other.block(chunk, j), packed.size(i),
                             packed.size(j), packed.depth_of(chunk), block, n,
                             packed.begin_of(chunk) > 0, i == j});
      if (last < columns.rows) return;
      for (Index c = j * SIDE; c < j * SIDE + packed.size(j); ++c)
        for (Index r = i * SIDE; r < std::min(i * SIDE + packed.size(i), c); ++r)
          out[c * n + r] = out[r * n + c];
    });
  }
}

// Threads share the rows, some of which have a product of their own; these are added up in order.
void gram_by_rows(const Columns& columns, const double* left, const double* right, double* out,
                  Index shares, Team& team) {
  const Index size = columns.count * columns.count;
  const auto begin_of = [&](Index share) { return share * columns.rows / shares; };
  const auto from = [](const double* scale, Index k) { return scale ? scale + k : nullptr; };
  Aligned products(shares * size);
  team.run(shares, [&](Index share) {
    const Index begin = begin_of(share);
    Columns some = columns;
    some.data += begin * columns.down;
    some.rows = begin_of(share + 1) - begin;
    Team alone(1, team.pulse());
    gram_by_blocks(some, from(left, begin), from(right, begin), products.data() + share * size,
                   alone);
  });
  std::copy_n(products.data(), size, out);
  for (Index share = 1; share < shares; ++share)
    for (Index k = 0; k < size; ++k) out[k] += products[share * size + k];
}

}  // namespace

void gram(const Columns& columns, double* out, Team& team) {
  gram(columns, nullptr, nullptr, out, team);
}

void gram(const Columns& columns, const double* left, const double* right, double* out,
          Team& team) {
  constexpr Index MOST_SHARES = 16, LEAST_ROWS = 2 * DEPTH;
  const Index n = columns.count;
  if (columns.rows == 0 || n == 0) return std::fill(out, out + n * n, 0.0);
  const Index shares = std::min(columns.rows / LEAST_ROWS, MOST_SHARES);
  if (n > SIDE || shares < 2) return gram_by_blocks(columns, left, right, out, team);
  gram_by_rows(columns, left, right, out, shares, team);
}

void inner(const Columns& left, const Columns& right, double* out, Team& team) {
  if (left.rows == 0 || left.count == 0 || right.count == 0)
    return std::fill(out, out + left.count * right.count, 0.0);
  Packed packed(left);
  const Index blocks = parts(right.count, SIDE), jobs = std::min(blocks, Index(4 * team.size()));
  for (Index first = 0; first < left.rows; first += packed.rows_at_once()) {
    packed.hold(first, std::min(first + packed.rows_at_once(), left.rows), team);
    team.run(jobs, [&](Index job) {
      Aligned passing(SIDE * std::min(left.rows, DEPTH));
      for (Index j = job * blocks / jobs; j < (job + 1) * blocks / jobs; ++j) {
        const Index size = std::min(SIDE, right.count - j * SIDE);
        for (Index chunk = 0; chunk < packed.chunks(); ++chunk) {
          const Index begin = packed.begin_of(chunk), depth = packed.depth_of(chunk);
          packed.set.pack(right, j * SIDE, size, begin, begin + depth, passing.data());
          for (Index i = 0; i < packed.blocks(); ++i)
            packed.set.multiply({packed.block(chunk, i), passing.data(), packed.size(i), size,
                                 depth, out + i * SIDE * right.count + j * SIDE, right.count,
                                 begin > 0, false});
        }
      }
    });
  }
}

void times_vector(const double* matrix, Index m, Index n, const double* x, double* out) {
  for (Index p = 0; p < m; ++p) {
    const double* row = matrix + p * n;
    out[p] = sum_of(n, [row, x](Index k) { return row[k] * x[k]; });
  }
}

double gathered_product(const double* row, const Index* who, Index count, const double* weights) {
  return sum_of(count, [=](Index k) { return row[who[k]] * weights[k]; });
}

void transposed_times_vector(const double* matrix, Index m, Index n, const double* r, double* out) {
  std::fill_n(out, n, 0.0);
  Pulse pulse;
  Team alone(1, pulse);
  add_transposed(matrix, m, n, r, out, alone);
}

void add_transposed(const double* matrix, Index m, Index n, const double* r, double* sums,
                    Team& team) {
  std::vector<const double*> rows(std::size_t(m), nullptr);
  for (Index p = 0; p < m; ++p) rows[p] = matrix + p * n;
  constexpr Index STRIPE = 4096;  // sums that stay in the second-level cache
  team.run(parts(n, STRIPE), [&](Index part) {
    isa().of<double>().add_rows(rows.data(), r, m, part * STRIPE, std::min((part + 1) * STRIPE, n),
                                sums);
  });
}

}  // namespace pairstep
