// Cholesky factorization of a symmetric matrix (left-looking), and solves with the factor. Both are
// blocked and use the strips of strips.hpp. Included once per instruction set.
#pragma once

#include "strips.hpp"

// Up to this number of rows, the plain algorithm is used: copying the matrix into strips would cost
// more than the strips save.
constexpr Index MAX_UNBLOCKED_CHOLESKY = 28;

// Uninitialized memory, for numbers that are written before they are read. Clearing it would cost
// more than some of the computations that use it.
class Scratch {
 public:
  double* data() const { return data_.get(); }
  // The content is lost if the memory has to grow.
  void fit(Index size) {
    if (size <= size_) return;
    data_.reset();
    data_.reset(new (std::align_val_t(64)) double[std::size_t(size)]);
    size_ = size;
  }

 private:
  struct Delete {
    void operator()(double* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };
  std::unique_ptr<double[], Delete> data_;
  Index size_ = 0;
};

// The lower triangle of a matrix in strips of STRIP rows. A strip has one line of STRIP numbers per
// column, up to the diagonal. Entries above the diagonal and beyond the matrix are undefined.
struct Lower {
  double* strips;
  double* inverse;  // reciprocals of the diagonal of the factor
  Index n;

  double* strip(Index s) const { return strips + STRIP * STRIP * (s * (s + 1) / 2); }
  // The group of rows that begins at r, a multiple of GROUP.
  double* group(Index r) const { return strip(r / STRIP) + r % STRIP; }
  Index count() const { return (n + STRIP - 1) / STRIP; }
};

// Call f(line, column, first, last) for each line of the strips. `column` points to the same
// entries in the matrix; those in [first, last) belong to the lower triangle.
template <class Line>
inline void for_each_line(const Lower& lower, double* matrix, Index stride, Line f) {
  for (Index s = 0; s < lower.count(); ++s) {
    const Index top = s * STRIP, last = std::min(STRIP, lower.n - top);
    double* column = matrix + top;
    for (Index k = 0; k < top + last; ++k, column += stride)
      f(lower.strip(s) + k * STRIP, column, std::max(Index(0), k - top), last);
  }
}

// Factorize the diagonal block of `count` rows at `offset` in a strip, and the rows below it. False
// if a pivot is not positive and finite.
inline bool eliminate(double* tile, Index offset, Index count, double* inverse) {
  const Index first = offset / WIDTH * WIDTH;
  for (Index q = 0; q < count; ++q) {
    double* line = tile + q * STRIP;
    const double pivot = line[offset + q];
    if (!(pivot > 0 && pivot < INFINITY)) return false;
    const double root = std::sqrt(pivot);
    inverse[q] = 1.0 / root;
    for (Index r = first; r < STRIP; r += WIDTH)
      store(line + r, load<Lanes>(line + r) * inverse[q]);
    line[offset + q] = root;
    for (Index p = q + 1; p < count; ++p) {
      const Lanes factor = all<Lanes>(line[offset + p]);
      for (Index r = first; r < STRIP; r += WIDTH) {
        double* at = tile + p * STRIP + r;
        store(at, multiply_subtract(factor, load<Lanes>(line + r), load<Lanes>(at)));
      }
    }
  }
  std::fill(inverse + count, inverse + GROUP, 0.0);
  return true;
}

// tile := L^-1 tile, or L'^-1 tile if BACKWARD, where lines[q * stride + p] is L[p, q], or L[q, p].
template <bool BACKWARD, Index V>
[[gnu::always_inline]] inline void divide(Tile<V>& tile, const double* lines, Index stride,
                                          const double* inverse) {
#pragma GCC unroll 8
  for (Index step = 0; step < GROUP; ++step) {
    const Index q = BACKWARD ? GROUP - 1 - step : step;
    for (Index v = 0; v < V; ++v) tile.at[q][v] *= inverse[q];
#pragma GCC unroll 8
    for (Index left = step + 1; left < GROUP; ++left) {
      const Index p = BACKWARD ? GROUP - 1 - left : left;
      const Lanes factor = all<Lanes>(lines[q * stride + p]);
      for (Index v = 0; v < V; ++v)
        tile.at[p][v] = multiply_subtract(factor, tile.at[q][v], tile.at[p][v]);
    }
  }
}

// Subtract the products with the columns [from, from + depth) from the columns [begin, end) of a
// strip.
template <Index V>
inline void subtract_earlier(const Lower& lower, Index s, Index begin, Index end, Index from,
                             Index depth) {
  double* strip = lower.strip(s);
  for (Index c = begin; c < end; c += GROUP) {
    double* to = strip + c * STRIP;
    const Tile<V> taken =
        multiply<V>(lower.group(c) + from * STRIP, STRIP, strip + from * STRIP, depth);
    store_tile(load_tile<V>(to, STRIP) - taken, to, STRIP);
  }
}

// Factorize the columns [begin, end) of a strip, from left to right, given that the products with
// all columns before `begin` are subtracted. False if a pivot is not positive and finite.
template <Index V>
inline bool factorize_own(const Lower& lower, Index s, Index begin, Index end) {
  double* strip = lower.strip(s);
  for (Index c = begin; c < end; c += GROUP) {
    double *group = lower.group(c), *to = strip + c * STRIP;
    Tile<V> tile = load_tile<V>(to, STRIP) -
                   multiply<V>(group + begin * STRIP, STRIP, strip + begin * STRIP, c - begin);
    const bool diagonal = c / STRIP == s;
    if (!diagonal) divide<false>(tile, group + c * STRIP, STRIP, lower.inverse + c);
    store_tile(tile, to, STRIP);
    if (diagonal && !eliminate(to, c % STRIP, std::min(GROUP, lower.n - c), lower.inverse + c))
      return false;
  }
  return true;
}

// Factorize block columns from left to right. First subtract the products with all columns before
// the block, in chunks that stay in the second-level cache. Then factorize the block strip by
// strip.
inline bool factorize(const Lower& lower) {
  const auto rows = [&](Index s) { return std::min(STRIP, lower.n - s * STRIP); };
  for (Index begin = 0; begin < lower.n; begin += BLOCK_COLUMNS) {
    const auto end = [&](Index s) {
      return std::min({begin + BLOCK_COLUMNS, lower.n, (s + 1) * STRIP});
    };
    for (Index k = 0; k < begin; k += BLOCK_DEPTH)
      for (Index s = begin / STRIP; s < lower.count(); ++s)
        with_vectors(rows(s), [&](auto vectors) {
          subtract_earlier<vectors()>(lower, s, begin, end(s), k, std::min(BLOCK_DEPTH, begin - k));
        });
    for (Index s = begin / STRIP; s < lower.count(); ++s)
      if (!with_vectors(rows(s), [&](auto vectors) {
            return factorize_own<vectors()>(lower, s, begin, end(s));
          }))
        return false;
  }
  return true;
}

// The same without strips, for small matrices. The columns are padded to whole vectors with finite
// numbers, and `stride`, a multiple of WIDTH, apart. In the factor, the numbers above the diagonal
// that share a vector with it are 0.
inline bool factorize_small(double* matrix, Index n, Index stride, double* inverse) {
  const Index end = whole_vectors(n);
  for (Index c = 0; c < n; ++c) {
    double* const column = matrix + c * stride;
    const Index first = c / WIDTH * WIDTH;
    if (!(column[c] > 0 && column[c] < INFINITY)) return false;
    inverse[c] = 1.0 / std::sqrt(column[c]);
    for (Index r = first; r < c; ++r) column[r] = 0.0;
    for (Index r = first; r < end; r += WIDTH)
      store(column + r, load<Lanes>(column + r) * inverse[c]);
    for (Index p = c + 1; p < n; ++p) {
      const Lanes factor = all<Lanes>(column[p]);
      double* const to = matrix + p * stride;
      for (Index r = p / WIDTH * WIDTH; r < end; r += WIDTH)
        store(to + r, multiply_subtract(factor, load<Lanes>(column + r), load<Lanes>(to + r)));
    }
  }
  return true;
}

// Factorize a symmetric matrix in place. The lower triangle, whose columns are `stride` apart,
// becomes the factor; entries above the diagonal are neither read nor changed. False if the matrix
// is not positive definite or not finite; its content is undefined then.
inline bool cholesky(double* matrix, Index n, Index stride, Scratch& scratch) {
  if (n <= MAX_UNBLOCKED_CHOLESKY) {
    const Index padded = whole_vectors(n);
    scratch.fit(padded * (n + 1));
    double *const columns = scratch.data() + padded, *const inverse = scratch.data();
    for (Index c = 0; c < n; ++c) {
      std::fill_n(columns + c * padded, padded, 0.0);
      std::copy(matrix + c * stride + c, matrix + c * stride + n, columns + c * padded + c);
    }
    if (!factorize_small(columns, n, padded, inverse)) return false;
    for (Index c = 0; c < n; ++c)
      std::copy_n(columns + c * padded + c, n - c, matrix + c * stride + c);
    return true;
  }
  const Index strips = (n + STRIP - 1) / STRIP, padded = strips * STRIP;
  scratch.fit(padded * (padded + STRIP) / 2 + padded);
  const Lower lower{scratch.data() + padded, scratch.data(), n};
  for_each_line(lower, matrix, stride,
                [&](double* line, const double* column, Index first, Index last) {
                  for (Index r = 0; r < STRIP; ++r)
                    line[r] = r >= first && r < last ? column[r] : 0.0;
                });
  if (n % GROUP) {  // clear the columns that pad the last group
    double* strip = lower.strip(strips - 1);
    std::fill(strip + n * STRIP, strip + (n + GROUP - n % GROUP) * STRIP, 0.0);
  }
  if (!factorize(lower)) return false;
  for_each_line(lower, matrix, stride,
                [&](const double* line, double* column, Index first, Index last) {
                  for (Index r = 0; r < STRIP; ++r)
                    if (r >= first && r < last) column[r] = line[r];
                });
  return true;
}

inline bool cholesky(double* matrix, Index n, Index stride) {
  Scratch scratch;
  return cholesky(matrix, n, stride, scratch);
}

// b := (L L')^-1 b, for one short vector.
inline void substitute(const double* factor, Index n, Index stride, double* b) {
  double inverse[MAX_UNBLOCKED_CHOLESKY];  // a division in the loops would delay the next step
  for (Index c = 0; c < n; ++c) inverse[c] = 1.0 / factor[c * (stride + 1)];
  for (Index c = 0; c < n; ++c) {
    const double* const column = factor + c * stride;
    const double solved = b[c] *= inverse[c];
    for (Index r = c + 1; r < n; ++r) b[r] -= solved * column[r];
  }
  for (Index c = n; c-- > 0;) {
    const double* const column = factor + c * stride;
    double sum = 0.0;
    for (Index r = c + 1; r < n; ++r) sum += b[r] * column[r];
    b[c] = (b[c] - sum) * inverse[c];
  }
}

// b := (L L')^-1 b, for `count` vectors of length n that follow each other in memory. The columns
// of L are `stride` apart. The vectors are copied to strips, one vector per column of a strip.
inline void cholesky_solve(const double* factor, Index n, Index stride, double* b, Index count) {
  if (n <= MAX_UNBLOCKED_CHOLESKY && count < WIDTH) {  // most of a strip would be padding
    for (Index j = 0; j < count; ++j) substitute(factor, n, stride, b + j * n);
    return;
  }
  const Index padded = (n + GROUP - 1) / GROUP * GROUP, strips = (count + STRIP - 1) / STRIP;
  Aligned columns(strips * padded * STRIP), lines(padded * GROUP);
  std::fill_n(columns.data(), strips * padded * STRIP, 0.0);
  const auto line_of = [&](Index j, Index k) -> double& {
    return columns[(j / STRIP * padded + k) * STRIP + j % STRIP];
  };
  for (Index j = 0; j < count; ++j)
    for (Index k = 0; k < n; ++k) line_of(j, k) = b[j * n + k];
  const auto inside = [&](Index r, Index c) { return r < n && c <= r; };
  double inverse[GROUP] = {};
  const auto invert_diagonal = [&](Index c) {
    for (Index g = 0; g < GROUP; ++g)
      inverse[g] = c + g < n ? 1.0 / factor[(c + g) * stride + c + g] : 0.0;
  };
  // Subtract from the group of rows at r the products of `lines` with the rows [from, from +
  // depth), which are solved already. Then solve for the group, if its triangle is given.
  const auto solve = [&]<bool BACKWARD>(Index r, Index from, Index depth, const double* triangle) {
    for (Index s = 0; s < strips; ++s)
      with_vectors(std::min(STRIP, count - s * STRIP), [&](auto vectors) {
        constexpr Index V = vectors();
        double *strip = columns.data() + s * padded * STRIP, *to = strip + r * STRIP;
        Tile<V> tile =
            load_tile<V>(to, STRIP) - multiply<V>(lines.data(), GROUP, strip + from * STRIP, depth);
        if (triangle) divide<BACKWARD>(tile, triangle, GROUP, inverse);
        store_tile(tile, to, STRIP);
      });
  };
  for (Index begin = 0; begin < padded; begin += BLOCK_COLUMNS) {
    const Index end = std::min(begin + BLOCK_COLUMNS, padded);
    for (Index r = begin; r < padded; r += GROUP) {
      const Index known = std::min(r, end);
      for (Index k = begin; k < std::min(r + GROUP, end); ++k)
        for (Index g = 0; g < GROUP; ++g)
          lines[(k - begin) * GROUP + g] = inside(r + g, k) ? factor[k * stride + r + g] : 0.0;
      if (r < end) invert_diagonal(r);
      solve.template operator()<false>(r, begin, known - begin,
                                       r < end ? &lines[(r - begin) * GROUP] : nullptr);
    }
  }
  for (Index c = padded - GROUP; c >= 0; c -= GROUP) {
    // `solve` reads the rows below from the start of `lines`, so the triangle comes after them.
    const Index next = c + GROUP, depth = padded - next;
    for (Index g = 0; g < GROUP; ++g)
      for (Index k = c; k < padded; ++k)
        lines[(k < next ? depth + k - c : k - next) * GROUP + g] =
            inside(k, c + g) ? factor[(c + g) * stride + k] : 0.0;
    invert_diagonal(c);
    solve.template operator()<true>(c, next, depth, &lines[depth * GROUP]);
  }
  for (Index j = 0; j < count; ++j)
    for (Index k = 0; k < n; ++k) b[j * n + k] = line_of(j, k);
}
