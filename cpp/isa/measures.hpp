// Constants of a quadratic (size, smoothness, asymmetry), and products with a matrix. Included once
// per instruction set.
#pragma once

#include "simd.hpp"

// The largest absolute value, or NaN if a number is not finite.
inline double largest(const double* values, Index n) {
  constexpr Index CHAINS = 4;  // independent accumulators, to hide the latency of an addition
  Lanes size[CHAINS] = {}, odd[CHAINS] = {};
  Index p = 0;
  for (; p + CHAINS * WIDTH <= n; p += CHAINS * WIDTH)
    for (Index c = 0; c < CHAINS; ++c) {
      const Lanes v = load<Lanes>(values + p + c * WIDTH);
      size[c] = maximum(v < 0 ? -v : v, size[c]);
      odd[c] += v * 0.0;  // NaN if v is not finite
    }
  double most = 0.0, sum = 0.0;
  for (Index c = 0; c < CHAINS; ++c) {
    most = std::max(most, largest_lane(size[c]));
    for (Index lane = 0; lane < WIDTH; ++lane) sum += odd[c][lane];
  }
  for (; p < n; ++p) {
    most = std::max(most, std::abs(values[p]));
    sum += values[p] * 0.0;
  }
  return sum == 0.0 ? most : NAN;
}

// The sum of squared differences of two vectors.
inline double squared_distance(const double* a, const double* b, Index n) {
  constexpr Index CHAINS = 4;  // independent accumulators, to hide the latency of an addition
  Lanes sums[CHAINS] = {};
  const auto add = [&](Lanes& sum, Index at) {
    const Lanes difference = load<Lanes>(a + at) - load<Lanes>(b + at);
    sum = multiply_add(difference, difference, sum);
  };
  Index p = 0;
  for (; p + CHAINS * WIDTH <= n; p += CHAINS * WIDTH)
    for (Index c = 0; c < CHAINS; ++c) add(sums[c], p + c * WIDTH);
  for (; p + WIDTH <= n; p += WIDTH) add(sums[0], p);
  const Lanes all_sums = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0.0;
  for (Index lane = 0; lane < WIDTH; ++lane) sum += all_sums[lane];
  for (; p < n; ++p) sum += (a[p] - b[p]) * (a[p] - b[p]);
  return sum;
}

// L2 = max_{i<j} (H_ii + H_jj - 2 H_ij) / 2, the 2-coordinate Lipschitz constant of eq.
// (L2-smooth); 0 if n < 2.
inline double two_coordinate_constant(const double* hessian, Index n) {
  std::vector<double> diagonal(n);
  for (Index i = 0; i < n; ++i) diagonal[i] = hessian[i * n + i];
  double largest = 0.0;
  for (Index i = 0; i + 1 < n; ++i) {
    const double *row = hessian + i * n + i + 1, *other = diagonal.data() + i + 1;
    const auto found = argmax<1>(n - i - 1, [&]<class T>(Index p) {
      return std::array<T, 1>{load<T>(other + p) - 2.0 * load<T>(row + p)};
    });
    largest = std::max(largest, 0.5 * (diagonal[i] + found[0].value));
  }
  return largest;
}

// For the entries of the rows [begin, end) from the diagonal on, and for the transposed entries:
// the largest |H_ij - H_ji| and its position, the largest |H_ij| (NaN if an entry is not finite),
// and the smallest curvature H_ii + H_jj - 2 H_ij of a pair, all in one pass. `begin` is a multiple
// of SYMMETRY_BLOCK.
template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n, const double* diagonal, Index begin, Index end) {
  using V = typename Vector<Real>::type;
  constexpr Index width = Vector<Real>::width;
  Asymmetry result;
  Real mirrored[SYMMETRY_BLOCK * SYMMETRY_BLOCK];  // the block below the diagonal, transposed
  Real own[SYMMETRY_BLOCK];                        // diagonal entries of its columns
  V sum{};                                         // NaN if an entry is not finite
  double rest = 0.0;
  for (Index row = begin; row < end; row += SYMMETRY_BLOCK)
    for (Index column = row; column < n; column += SYMMETRY_BLOCK) {
      const Index rows = std::min(SYMMETRY_BLOCK, end - row),
                  columns = std::min(SYMMETRY_BLOCK, n - column);
      // Of a block on the diagonal, the vectors that contain or follow the diagonal suffice.
      const bool on_diagonal = column == row;
      for (Index c = 0; c < columns; ++c) {
        own[c] = Real(diagonal[column + c]);
        const Index last = on_diagonal ? std::min(rows, (c / width + 1) * width) : rows;
        for (Index r = 0; r < last; ++r)
          mirrored[r * SYMMETRY_BLOCK + c] = matrix[(column + c) * n + row + r];
      }
      Real difference = 0, largest = 0, least = 0;
      V apart{}, size{}, curvature{};
      for (Index r = 0; r < rows; ++r) {
        const Real *above = matrix + (row + r) * n + column, *below = mirrored + r * SYMMETRY_BLOCK;
        const Real row_diagonal = Real(diagonal[row + r]);
        Index c = on_diagonal ? r / width * width : 0;
        for (; c + width <= columns; c += width) {
          const V a = load_as<V>(above + c), b = load_as<V>(below + c), gap = a - b, zero{};
          apart = maximum(apart, maximum(gap, -gap));
          size = maximum(maximum(size, maximum(a, -a)), maximum(b, -b));
          curvature = minimum(curvature, row_diagonal + load_as<V>(own + c) - Real(2) * a);
          sum += zero * a + zero * b;
        }
        for (; c < columns; ++c) {
          const Real a = above[c], b = below[c];
          difference = std::max(difference, std::abs(a - b));
          largest = std::max({largest, std::abs(a), std::abs(b)});
          least = std::min(least, row_diagonal + own[c] - Real(2) * a);
          rest += 0.0 * a + 0.0 * b;
        }
      }
      for (Index lane = 0; lane < width; ++lane) {
        difference = std::max(difference, apart[lane]);
        largest = std::max(largest, size[lane]);
        least = std::min(least, curvature[lane]);
      }
      result.least_pair = std::min(result.least_pair, double(least));
      result.largest = std::max(result.largest, double(largest));
      if (!(difference > result.difference)) continue;
      result.difference = difference;
      for (Index r = rows; r-- > 0;)
        for (Index c = columns; c-- > (on_diagonal ? r : 0);)
          if (std::abs(matrix[(row + r) * n + column + c] - mirrored[r * SYMMETRY_BLOCK + c]) ==
              difference) {
            result.i = row + r;
            result.j = column + c;
          }
    }
  for (Index lane = 0; lane < width; ++lane) rest += sum[lane];
  if (rest != 0.0) result.largest = NAN;
  return result;
}

// Product of a symmetric matrix with a vector, by rows; entries of x that are 0 are skipped.
inline void times(const double* matrix, const double* x, Index n, double* product) {
  // Rows that are added at once, so that `product` is read and written less often.
  constexpr Index TOGETHER = 4;
  // Entries of x that are searched at once for those that are not 0. Without a branch per entry:
  // the CPU could not predict it.
  constexpr Index SEARCHED = 64;
  std::fill_n(product, n, 0.0);
  Index nonzero[SEARCHED];
  for (Index begin = 0; begin < n; begin += SEARCHED) {
    Index count = 0;
    for (Index i = begin; i < std::min(begin + SEARCHED, n); ++i) {
      nonzero[count] = i;
      count += x[i] != 0.0;
    }
    Index k = 0;
    for (; k + TOGETHER <= count; k += TOGETHER) {
      const Index* const i = nonzero + k;
      const double *const a = matrix + i[0] * n, *const b = matrix + i[1] * n,
                          *const c = matrix + i[2] * n, *const d = matrix + i[3] * n;
      const double by_a = x[i[0]], by_b = x[i[1]], by_c = x[i[2]], by_d = x[i[3]];
      for (Index p = 0; p < n; ++p)
        product[p] += (by_a * a[p] + by_b * b[p]) + (by_c * c[p] + by_d * d[p]);
    }
    for (; k < count; ++k) {
      const double *const row = matrix + nonzero[k] * n, by = x[nonzero[k]];
      for (Index p = 0; p < n; ++p) product[p] += by * row[p];
    }
  }
}
