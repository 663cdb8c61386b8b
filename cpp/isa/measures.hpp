// Constants of a quadratic, and the bare memory passes that benchmarks measure against.
// Included once per instruction set.

// The largest size of a number, NaN where one is not finite.
inline double largest(const double* values, Index n) {
  constexpr Index CHAINS = 4;
  Lanes size[CHAINS] = {}, odd[CHAINS] = {};
  Index p = 0;
  for (; p + CHAINS * WIDTH <= n; p += CHAINS * WIDTH)
    for (Index c = 0; c < CHAINS; ++c) {
      const Lanes v = load<Lanes>(values + p + c * WIDTH);
      size[c] = maximum(v < 0 ? -v : v, size[c]);
      odd[c] += v * 0.0;  // becomes NaN with a number that is not finite
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

// L2 = max_{i<j} (H_ii + H_jj - 2 H_ij) / 2, one pass over the rows; 0 where there is no pair.
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

// Of the rows [begin, end) and their mirrored columns, from the diagonal on: the largest
// |H_ij - H_ji| and where, the largest |H_ij| (NaN where an entry is not finite), and the least
// curvature of a pair, all in one pass. `begin` is a multiple of SQUARE.
template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n, const double* diagonal, Index begin, Index end) {
  using V = typename Vector<Real>::type;
  constexpr Index width = Vector<Real>::width;
  Asymmetry result;
  Real mirrored[SQUARE * SQUARE];  // the square below the diagonal, transposed
  Real own[SQUARE];                // the diagonal beside it
  V sum{};                         // becomes NaN with any entry that is not finite
  double rest = 0.0;
  for (Index row = begin; row < end; row += SQUARE)
    for (Index column = row; column < n; column += SQUARE) {
      const Index rows = std::min(SQUARE, end - row), columns = std::min(SQUARE, n - column);
      for (Index c = 0; c < columns; ++c) {
        own[c] = Real(diagonal[column + c]);
        for (Index r = 0; r < rows; ++r)
          mirrored[r * SQUARE + c] = matrix[(column + c) * n + row + r];
      }
      Real difference = 0, largest = 0, least = 0;
      V apart{}, size{}, bend{};
      for (Index r = 0; r < rows; ++r) {
        const Real *above = matrix + (row + r) * n + column, *below = mirrored + r * SQUARE;
        const Real pivot = Real(diagonal[row + r]);
        Index c = 0;
        for (; c + width <= columns; c += width) {
          const V a = load_as<V>(above + c), b = load_as<V>(below + c), gap = a - b, zero{};
          apart = maximum(apart, maximum(gap, -gap));
          size = maximum(maximum(size, maximum(a, -a)), maximum(b, -b));
          bend = minimum(bend, pivot + load_as<V>(own + c) - Real(2) * a);
          sum += zero * a + zero * b;
        }
        for (; c < columns; ++c) {
          const Real a = above[c], b = below[c];
          difference = std::max(difference, std::abs(a - b));
          largest = std::max({largest, std::abs(a), std::abs(b)});
          least = std::min(least, pivot + own[c] - Real(2) * a);
          rest += 0.0 * a + 0.0 * b;
        }
      }
      for (Index lane = 0; lane < width; ++lane) {
        difference = std::max(difference, apart[lane]);
        largest = std::max(largest, size[lane]);
        least = std::min(least, bend[lane]);
      }
      result.least_pair = std::min(result.least_pair, double(least));
      result.largest = std::max(result.largest, double(largest));
      if (!(difference > result.difference)) continue;
      result.difference = difference;
      for (Index r = rows; r-- > 0;)
        for (Index c = columns; c-- > 0;)
          if (std::abs(matrix[(row + r) * n + column + c] - mirrored[r * SQUARE + c]) ==
              difference) {
            result.i = row + r;
            result.j = column + c;
          }
    }
  for (Index lane = 0; lane < width; ++lane) rest += sum[lane];
  if (rest != 0.0) result.largest = NAN;
  return result;
}

// Symmetric matrix times vector, by the rows of its non-zeros.
inline void times(const double* matrix, const double* x, Index n, double* product) {
  Index first = -1;
  double by_first = 0.0;
  std::fill_n(product, n, 0.0);
  for (Index i = 0; i < n; ++i) {
    if (x[i] == 0.0) continue;
    if (first < 0) {  // two rows at a time halve the traffic of the product
      first = i;
      by_first = x[i];
      continue;
    }
    const double *a = matrix + first * n, *b = matrix + i * n, by_second = x[i];
    for (Index p = 0; p < n; ++p) product[p] += by_first * a[p] + by_second * b[p];
    first = -1;
  }
  if (first >= 0)
    for (Index p = 0; p < n; ++p) product[p] += by_first * matrix[first * n + p];
}

// The largest sum across the arrays: as little work as reading every element once allows.
inline double bare_pass(const double* const* arrays, Index count, Index n) {
  Lanes best = all<Lanes>(-INFINITY), also = best;
  Index p = 0;
  for (; p + 2 * WIDTH <= n; p += 2 * WIDTH) {
    Lanes sum = all<Lanes>(0.0), next = sum;
    for (Index k = 0; k < count; ++k) {
      sum = sum + load<Lanes>(arrays[k] + p);
      next = next + load<Lanes>(arrays[k] + p + WIDTH);
    }
    best = maximum(sum, best);
    also = maximum(next, also);
  }
  return largest_lane(maximum(best, also));
}

// gradient += t (row_j - row_i), and nothing else.
inline double bare_update(const double* hessian, double* gradient, Index n, Index i, Index j,
                          double t) {
  const double *from = hessian + i * n, *to = hessian + j * n;
  for (Index p = 0; p < n; ++p) gradient[p] += t * (to[p] - from[p]);
  return gradient[0];
}
