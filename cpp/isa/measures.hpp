// Constants of a quadratic, and the bare memory passes that benchmarks measure against.
// Included once per instruction set.

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

// The largest |H_ij - H_ji| and where, the largest |H_ij| (NaN where an entry is not finite), and
// the least curvature of a pair: all in one pass.
template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n) {
  constexpr Index TILE =
      64;  // two tiles fit the first-level cache, so columns cost no more than rows
  Asymmetry result;
  std::vector<double> diagonal(n);
  for (Index i = 0; i < n; ++i) diagonal[i] = matrix[i * n + i];
  double sum = 0.0;  // becomes NaN or inf with any entry, which a maximum would hide
  for (Index row = 0; row < n; row += TILE)
    for (Index column = row; column < n; column += TILE)
      for (Index i = row; i < std::min(row + TILE, n); ++i) {
        double difference = 0.0, largest = 0.0, total = 0.0, least = 0.0;
        const Index first = column == row ? i : column;
        for (Index j = first; j < std::min(column + TILE, n); ++j) {
          const double a = matrix[i * n + j], b = matrix[j * n + i];
          difference = std::max(difference, std::abs(a - b));
          largest = std::max(largest, std::max(std::abs(a), std::abs(b)));
          total += a * 0.0 + b * 0.0;
          least = std::min(least, diagonal[i] + diagonal[j] - 2.0 * a);
        }
        sum += total;
        result.least_pair = std::min(result.least_pair, least);
        result.largest = std::max(result.largest, largest);
        if (difference > result.difference) {
          result.difference = difference;
          result.i = i;
          for (Index j = first; j < std::min(column + TILE, n); ++j)
            if (std::abs(double(matrix[i * n + j]) - double(matrix[j * n + i])) == difference)
              result.j = j;
        }
      }
  if (sum != 0.0) result.largest = NAN;
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
