// Kernel values, computed tile by tile; see Tiles in oracles/points.hpp. A tile is a few queries
// times a panel of columns: their inner products or squared distances, then the kernel function
// while the tile is in the first-level cache, then the sums or copies that the job asks for.
// Included once per instruction set.

struct TileSettings {
  // Queries per register tile of dense products. With three vectors of columns the accumulators fit
  // into the vector registers.
  static constexpr int DENSE_ROWS = PAIRSTEP_REGISTERS == 32 ? 8 : 4;
  static constexpr int DENSE_VECTORS = 3;
  // Queries per tile of sparse products: the width of the buffer that they are scattered into.
  static constexpr Index SPARSE_ROWS = Lines<double>::WIDTH;
  // Queries per register tile of sums with several outputs. Their accumulators, a vector of weights
  // and a broadcast value fit into 16 vector registers. Fewer queries would load each vector of
  // weights more often.
  static constexpr Index OUTPUT_ROWS = 8;
};

// exp(x) = 2^n exp(r) with |r| <= log(2)/2. Adding 1.5 * 2^(mantissa bits) rounds x / log(2) to the
// integer n and leaves n in the low bits. A shift then moves n into the exponent. MAGIC is that
// constant.
inline Floats exponential(Floats x) {
  typedef std::int32_t Bits __attribute__((vector_size(PAIRSTEP_BYTES)));
  // Below SMALLEST the result is 0, and above LARGEST it is that of LARGEST: both are near the
  // limits of the exponent.
  constexpr float SMALLEST = -87.3f, LARGEST = 88.0f, MAGIC = 12582912.0f;
  const Floats zero = {};
  const Floats at = x < SMALLEST ? zero + SMALLEST : (x > LARGEST ? zero + LARGEST : x);
  const Floats shifted = multiply_add(at, zero + 1.44269504f, zero + MAGIC);
  const Floats n = shifted - MAGIC;
  Floats r = multiply_add(n, zero - 0.693145752f, at);
  r = multiply_add(n, zero - 1.42860677e-6f, r);
  Floats p = zero + 1.9875691500e-4f;  // the coefficients of Cephes' expf
  p = multiply_add(p, r, zero + 1.3981999507e-3f);
  p = multiply_add(p, r, zero + 8.3334519073e-3f);
  p = multiply_add(p, r, zero + 4.1665795894e-2f);
  p = multiply_add(p, r, zero + 1.6666665459e-1f);
  p = multiply_add(p, r, zero + 5.0000001201e-1f);
  p = multiply_add(p * r, r, r) + 1.0f;
  Bits bits, power;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&power, &shifted, sizeof power);
  bits += power << 23;
  Floats value;
  std::memcpy(&value, &bits, sizeof value);
  return x < SMALLEST ? zero : value;
}

inline Doubles exponential(Doubles x) {
  typedef std::int64_t Bits __attribute__((vector_size(PAIRSTEP_BYTES)));
  constexpr double SMALLEST = -708.0, LARGEST = 709.0, MAGIC = 6755399441055744.0;
  const Doubles zero = {};
  const Doubles at = x < SMALLEST ? zero + SMALLEST : (x > LARGEST ? zero + LARGEST : x);
  const Doubles shifted = multiply_add(at, zero + 1.4426950408889634, zero + MAGIC);
  const Doubles n = shifted - MAGIC;
  Doubles r = multiply_add(n, zero - 0.693147180369123816490, at);
  r = multiply_add(n, zero - 1.90821492927058770002e-10, r);
  constexpr double TAYLOR[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                               1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                               1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
  Doubles p = zero + TAYLOR[0];
  for (int k = 1; k < 12; ++k) p = multiply_add(p, r, zero + TAYLOR[k]);
  p = multiply_add(p * r, r, r) + 1.0;
  Bits bits, power;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&power, &shifted, sizeof power);
  bits += power << 52;
  Doubles value;
  std::memcpy(&value, &bits, sizeof value);
  return x < SMALLEST ? zero : value;
}

// tanh from exp or, below MAX_SERIES_ARGUMENT where 1 - power would cancel, from its power series.
// The first term that is left out there is below 1e-16 of the result.
template <class V>
inline V hyperbolic_tangent(V x) {
  using Real = std::remove_cvref_t<decltype(x[0])>;
  constexpr Real MAX_SERIES_ARGUMENT = Real(0.15);
  const V size = x < 0 ? -x : x;
  const V power = exponential(-2 * size);
  const V from_exp = (1 - power) / (1 + power);
  const V square = x * x;
  V series = V{};
  for (const double c : {-929569.0 / 638512875, 21844.0 / 6081075, -1382.0 / 155925, 62.0 / 2835,
                         -17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0})
    series = multiply_add(series, square, V{} + Real(c));
  return size < MAX_SERIES_ARGUMENT ? x * series : (x < 0 ? -from_exp : from_exp);
}

template <class Real>
void exponentials(const Real* x, Index n, Real* out) {
  using V = typename Vector<Real>::type;
  Index p = 0;
  for (; p + Vector<Real>::width <= n; p += Vector<Real>::width) {
    const V value = exponential(load_as<V>(x + p));
    std::memcpy(out + p, &value, sizeof value);
  }
  if (p < n) {
    V last = {};
    std::memcpy(&last, x + p, (n - p) * sizeof(Real));
    last = exponential(last);
    std::memcpy(out + p, &last, (n - p) * sizeof(Real));
  }
}

// Apply the kernel function to a row of inner products with the columns or, if
// `kernel.differences`, of squared distances. `square` is |query|^2, and `squares` those of the
// columns.
template <class Real>
inline void apply_kernel(const KernelFunction& kernel, Real square, const Real* squares,
                         Real* values, Index count) {
  using V = typename Vector<Real>::type;
  constexpr Index WIDE = Vector<Real>::width;
  const auto each = [&](auto function) {
    for (Index c = 0; c < count; c += WIDE) {
      const V value = function(load_as<V>(values + c), load_as<V>(squares + c));
      std::memcpy(values + c, &value, sizeof value);
    }
  };
  const Real gamma = Real(kernel.gamma), coef0 = Real(kernel.coef0);
  const V none = {};
  const auto distance = [&](V dot, V other) {
    const V square_of_it = (other + square) - 2 * dot;
    return square_of_it < 0 ? none : square_of_it;  // keeps NaN
  };
  switch (kernel.name) {
    case KernelName::rbf:
      if (kernel.differences) {
        each([&](V squared, V) { return exponential(-gamma * squared); });
        break;
      }
      each([&](V dot, V other) { return exponential(-gamma * distance(dot, other)); });
      break;
    case KernelName::squared_distance:
      if (!kernel.differences) each(distance);
      break;
    case KernelName::poly:
      each([&](V dot, V) {
        V base = gamma * dot + coef0, power = none + 1;
        for (int degree = kernel.degree; degree > 0; degree /= 2) {
          if (degree % 2) power *= base;
          base *= base;
        }
        return power;
      });
      break;
    case KernelName::sigmoid:
      each([&](V dot, V) { return hyperbolic_tangent(V(gamma * dot + coef0)); });
      break;
    default: break;
  }
}

// Inner products of ROWS packed queries with VECTORS vectors of columns of a dense panel, or their
// squared distances as sums of squared differences. `out` has rows of PANEL values.
template <class Real, int ROWS, int VECTORS, bool DISTANCES>
inline void dense_dots(const Real* queries, const Real* panel, Index features, Real* out) {
  using V = typename Vector<Real>::type;
  constexpr Index WIDE = Vector<Real>::width, PANEL = Points<Real>::PANEL,
                  BLOCK = Points<Real>::BLOCK;
  V sum[ROWS][VECTORS];
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < VECTORS; ++v) sum[r][v] = V{};
  for (Index k = 0; k < features; ++k) {
    V column[VECTORS];
    for (int v = 0; v < VECTORS; ++v) column[v] = load_as<V>(panel + k * PANEL + v * WIDE);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) {
      const V query = V{} + queries[k * BLOCK + r];
      for (int v = 0; v < VECTORS; ++v) {
        if constexpr (DISTANCES) {
          const V difference = query - column[v];
          sum[r][v] = multiply_add(difference, difference, sum[r][v]);
        } else {
          sum[r][v] = multiply_add(query, column[v], sum[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < VECTORS; ++v)
      std::memcpy(out + r * PANEL + v * WIDE, &sum[r][v], sizeof(V));
}

// The same for `count` queries, at most ROWS. Uses fewer rows if they suffice, and one vector of
// columns instead of three if it holds all columns.
template <class Real, int ROWS, bool DISTANCES>
inline void some_dots(Index count, Index columns, const Real* queries, const Real* panel,
                      Index features, Real* out) {
  if constexpr (ROWS > 1) {
    if (2 * count <= ROWS)
      return some_dots<Real, ROWS / 2, DISTANCES>(count, columns, queries, panel, features, out);
  }
  if (columns <= Vector<Real>::width)
    dense_dots<Real, ROWS, 1, DISTANCES>(queries, panel, features, out);
  else
    dense_dots<Real, ROWS, TileSettings::DENSE_VECTORS, DISTANCES>(queries, panel, features, out);
}

// Transpose a square of values that is 16 bytes wide: to[c][r] = from[r][c].
inline void transpose(const float* from, Index from_stride, float* to, Index to_stride) {
  typedef float Four __attribute__((vector_size(16)));
  const Four a = load_as<Four>(from), b = load_as<Four>(from + from_stride),
             c = load_as<Four>(from + 2 * from_stride), d = load_as<Four>(from + 3 * from_stride);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             ba = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four columns[4] = {
      __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
      __builtin_shufflevector(ba, dc, 0, 1, 4, 5), __builtin_shufflevector(ba, dc, 2, 3, 6, 7)};
  for (int k = 0; k < 4; ++k) std::memcpy(to + k * to_stride, &columns[k], sizeof(Four));
}
inline void transpose(const double* from, Index from_stride, double* to, Index to_stride) {
  typedef double Two __attribute__((vector_size(16)));
  const Two a = load_as<Two>(from), b = load_as<Two>(from + from_stride);
  const Two columns[2] = {__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3)};
  for (int k = 0; k < 2; ++k) std::memcpy(to + k * to_stride, &columns[k], sizeof(Two));
}

// Inner products of queries with the columns [begin, end) of sparse points. The queries are
// scattered into a dense array with SPARSE_ROWS numbers per feature.
template <class Real>
inline void sparse_dots(const Real* scattered, const Points<Real>& points, Index begin, Index end,
                        Real* out) {
  using V = typename Vector<Real>::type;
  constexpr Index SPARSE_ROWS = TileSettings::SPARSE_ROWS, WIDE = Vector<Real>::width,
                  VECTORS = SPARSE_ROWS / WIDE, PANEL = Points<Real>::PANEL,
                  SQUARE = 16 / sizeof(Real);
  alignas(64) Real by_column[PANEL * SPARSE_ROWS];
  std::fill(by_column + (end - begin) * SPARSE_ROWS, std::end(by_column), Real(0));
  const Index* starts = points.starts();
  for (Index c = begin; c < end; ++c) {
    V sum[VECTORS];
    for (Index v = 0; v < VECTORS; ++v) sum[v] = V{};
    for (Index e = starts[c]; e < starts[c + 1]; ++e) {
      const Real* line = scattered + Index(points.columns()[e]) * SPARSE_ROWS;
      const V value = V{} + points.values()[e];
      for (Index v = 0; v < VECTORS; ++v)
        sum[v] = multiply_add(value, load_as<V>(line + v * WIDE), sum[v]);
    }
    std::memcpy(by_column + (c - begin) * SPARSE_ROWS, sum, sizeof sum);
  }
  for (Index c = 0; c < PANEL; c += SQUARE)
    for (Index r = 0; r < SPARSE_ROWS; r += SQUARE)
      transpose(by_column + c * SPARSE_ROWS + r, SPARSE_ROWS, out + r * PANEL + c, PANEL);
}

// Squared distances between sparse queries and the columns [begin, end) of sparse points, as sums
// of squared differences. Both rows are sorted by feature and merged.
template <class Real>
inline void sparse_distances(const Points<Real>& queries, Index first, Index count,
                             const Points<Real>& points, Index begin, Index end, Real* out) {
  constexpr Index PANEL = Points<Real>::PANEL;
  constexpr std::int32_t NONE = std::numeric_limits<std::int32_t>::max();
  std::fill(out, out + count * PANEL, Real(0));
  for (Index r = 0; r < count; ++r) {
    const Index a_end = queries.starts()[first + r + 1];
    for (Index c = begin; c < end; ++c) {
      Index a = queries.starts()[first + r], b = points.starts()[c];
      const Index b_end = points.starts()[c + 1];
      Real sum = 0;
      while (a < a_end || b < b_end) {
        const std::int32_t left = a < a_end ? queries.columns()[a] : NONE,
                           right = b < b_end ? points.columns()[b] : NONE;
        Real difference = 0;
        if (left <= right) difference = queries.values()[a++];
        if (right <= left) difference -= points.values()[b++];
        sum += difference * difference;
      }
      out[r * PANEL + c - begin] = sum;
    }
  }
}

// Load the values of one vector of doubles, converted to double.
inline Doubles widen(const double* p) { return load_as<Doubles>(p); }
inline Doubles widen(const float* p) {
  typedef float Half __attribute__((vector_size(PAIRSTEP_BYTES / 2)));
  return __builtin_convertvector(load_as<Half>(p), Doubles);
}

template <class Real>
inline double weighted_sum(const Real* values, const double* weights, Index count) {
  constexpr Index WIDE = Vector<double>::width;
  Doubles sums = {};
  Index c = 0;
  for (; c + WIDE <= count; c += WIDE)
    sums = multiply_add(widen(values + c), load_as<Doubles>(weights + c), sums);
  double sum = 0.0;
  for (Index lane = 0; lane < WIDE; ++lane) sum += sums[lane];
  for (; c < count; ++c) sum += weights[c] * double(values[c]);
  return sum;
}

// totals[r * stride + o] += sum_c values[r * PANEL + c] weights[c * outputs + o] for R rows. The
// order of summation, and so the rounding, does not depend on R.
template <Index R, class Real>
inline void add_outputs(const Real* values, const double* weights, Index columns, Index outputs,
                        double* totals, Index stride) {
  constexpr Index PANEL = Points<Real>::PANEL, WIDE = Vector<double>::width;
  static_assert(OUTPUTS_STEP % WIDE == 0);
  for (Index o = 0; o < outputs; o += WIDE) {
    Doubles sums[R];
    for (Index r = 0; r < R; ++r) sums[r] = load_as<Doubles>(totals + r * stride + o);
    for (Index c = 0; c < columns; ++c) {
      const Doubles weight = load_as<Doubles>(weights + c * outputs + o);
#pragma GCC unroll 8
      for (Index r = 0; r < R; ++r)
        sums[r] = multiply_add(Doubles{} + double(values[r * PANEL + c]), weight, sums[r]);
    }
    for (Index r = 0; r < R; ++r) std::memcpy(totals + r * stride + o, &sums[r], sizeof sums[r]);
  }
}

// Add the weighted sums over the columns of a tile, separately for each group of columns.
template <class Real>
inline void add_totals(const Tiles<Real>& job, Index first, Index count, Index panel,
                       const Real* values) {
  constexpr Index PANEL = Points<Real>::PANEL, ROWS = TileSettings::OUTPUT_ROWS;
  const Index begin = panel * PANEL, end = std::min(begin + PANEL, job.columns->count());
  const std::vector<Index>& groups = *job.groups;
  Index g = std::upper_bound(groups.begin(), groups.end(), begin) - groups.begin() - 1;
  for (; g + 1 < Index(groups.size()) && groups[g] < end; ++g) {
    const Index from = std::max(begin, groups[g]), to = std::min(end, groups[g + 1]);
    const double* weights = job.column_weights + from * job.outputs;
    double* totals = job.totals + first * job.stride + g * job.outputs;
    const Real* some = values + (from - begin);
    Index r = 0;
    if (job.outputs == 1) {
      for (; r < count; ++r)
        totals[r * job.stride] += weighted_sum(some + r * PANEL, weights, to - from);
      continue;
    }
    for (; r + ROWS <= count; r += ROWS)
      add_outputs<ROWS>(some + r * PANEL, weights, to - from, job.outputs, totals + r * job.stride,
                        job.stride);
    for (; r < count; ++r)
      add_outputs<1>(some + r * PANEL, weights, to - from, job.outputs, totals + r * job.stride,
                     job.stride);
  }
}

// Apply the kernel function to a tile, and add or copy the values as the job says. `values` has a
// row of PANEL columns per query.
template <class Real>
inline void finish_tile(const Tiles<Real>& job, Index first, Index count, Index panel,
                        Real* values) {
  constexpr Index PANEL = Points<Real>::PANEL;
  const Index begin = panel * PANEL;
  const Real* squares = job.queries->squares();
  for (Index r = 0; r < count; ++r) {
    Real* row = values + r * PANEL;
    apply_kernel(job.kernel, squares[first + r], job.columns->squares() + begin, row, PANEL);
    if (job.rows && job.rows[first + r])
      std::memcpy(job.rows[first + r] + begin - job.first_column, row, PANEL * sizeof(Real));
  }
  if (job.column_weights) add_totals(job, first, count, panel, values);
  if (!job.weights) return;
  constexpr Index WIDE = Vector<double>::width;
  for (Index o = 0; o < job.outputs; ++o) {
    double* sums = job.sums + o * job.stride + begin;
    for (Index c = 0; c < PANEL; c += WIDE) {
      Doubles sum = load_as<Doubles>(sums + c);
      for (Index r = 0; r < count; ++r) {
        const double weight = job.weights[(first + r) * job.outputs + o];
        sum = multiply_add(widen(values + r * PANEL + c), Doubles{} + weight, sum);
      }
      std::memcpy(sums + c, &sum, sizeof sum);
    }
  }
}

// Compute the tiles of the panels [first_panel, last_panel) of dense points. DISTANCES is
// job.kernel.differences, known at compile time so that the inner loops are inlined.
template <class Real, bool DISTANCES>
void dense_tiles(const Tiles<Real>& job, Index first_panel, Index last_panel) {
  constexpr Index PANEL = Points<Real>::PANEL, BLOCK = Points<Real>::BLOCK;
  constexpr int ROWS = TileSettings::DENSE_ROWS;
  constexpr Index COLUMNS = TileSettings::DENSE_VECTORS * Vector<Real>::width;
  const Index count = std::min(job.queries->count(), job.last_query),
              features = job.columns->features();
  alignas(64) Real values[BLOCK * PANEL];
  Index here = 0;
  for (Index first = job.first_query; first < count; first += here) {
    here = std::min(BLOCK - first % BLOCK, count - first);
    const Real* block = job.blocks + (first - first % BLOCK) * features + first % BLOCK;
    for (Index panel = first_panel; panel < last_panel; ++panel) {
      const Real* columns = job.columns->panel(panel);
      const Index wide = std::min(PANEL, job.columns->count() - panel * PANEL);
      if (wide < PANEL) std::fill(std::begin(values), std::end(values), Real(0));
      for (Index c = 0; c < wide; c += COLUMNS)
        for (Index r = 0; r < here; r += ROWS)
          some_dots<Real, ROWS, DISTANCES>(here - r, wide - c, block + r, columns + c, features,
                                           values + r * PANEL + c);
      finish_tile(job, first, here, panel, values);
    }
  }
}

// The same for sparse points.
template <class Real>
void sparse_tiles(const Tiles<Real>& job, Index first_panel, Index last_panel) {
  constexpr Index PANEL = Points<Real>::PANEL, SPARSE_ROWS = TileSettings::SPARSE_ROWS;
  const Index count = std::min(job.queries->count(), job.last_query);
  Real* scattered = job.queries->lines().take();
  alignas(64) Real values[SPARSE_ROWS * PANEL];
  const Points<Real>& queries = *job.queries;
  for (Index first = job.first_query; first < count; first += SPARSE_ROWS) {
    const Index here = std::min(SPARSE_ROWS, count - first);
    const auto scatter = [&](bool set) {
      for (Index r = 0; r < here; ++r)
        for (Index e = queries.starts()[first + r]; e < queries.starts()[first + r + 1]; ++e)
          scattered[Index(queries.columns()[e]) * SPARSE_ROWS + r] =
              set ? queries.values()[e] : Real(0);
    };
    if (!job.kernel.differences) scatter(true);
    for (Index panel = first_panel; panel < last_panel; ++panel) {
      const Index begin = panel * PANEL, end = std::min(begin + PANEL, job.columns->count());
      if (job.kernel.differences)
        sparse_distances(queries, first, here, *job.columns, begin, end, values);
      else sparse_dots(scattered, *job.columns, begin, end, values);
      finish_tile(job, first, here, panel, values);
    }
    if (!job.kernel.differences) scatter(false);
  }
  job.queries->lines().give_back(scattered);
}

template <class Real>
void tiles(const Tiles<Real>& job, Index first_panel, Index last_panel) {
  if (job.columns->sparse()) sparse_tiles(job, first_panel, last_panel);
  else if (job.kernel.differences) dense_tiles<Real, true>(job, first_panel, last_panel);
  else dense_tiles<Real, false>(job, first_panel, last_panel);
}

// exp(-gamma d) of squared distances d, computed in float64 whatever their type.
template <class Real>
void rbf_of_distances(const Real* distances, double gamma, Index n, Real* out) {
  constexpr Index WIDE = Vector<double>::width;
  typedef Real Narrow __attribute__((vector_size(WIDE * sizeof(Real))));
  Index p = 0;
  for (; p + WIDE <= n; p += WIDE) {
    const Doubles value = exponential(-gamma * widen(distances + p));
    const Narrow narrow = __builtin_convertvector(value, Narrow);
    std::memcpy(out + p, &narrow, sizeof narrow);
  }
  for (; p < n; ++p) out[p] = Real(exponential(Doubles{} - gamma * double(distances[p]))[0]);
}

// sums[c] += sum_r weight_r rows[r][c] for c in [begin, end).
template <class Real>
void add_rows(const Real* const* rows, const double* weights, Index count, Index begin, Index end,
              double* sums) {
  Index r = 0;
  for (; r + 4 <= count; r += 4) {
    const Real *a = rows[r], *b = rows[r + 1], *c = rows[r + 2], *d = rows[r + 3];
    const double wa = weights[r], wb = weights[r + 1], wc = weights[r + 2], wd = weights[r + 3];
    for (Index p = begin; p < end; ++p)
      sums[p] += (wa * double(a[p]) + wb * double(b[p])) + (wc * double(c[p]) + wd * double(d[p]));
  }
  for (; r < count; ++r)
    for (Index p = begin; p < end; ++p) sums[p] += weights[r] * double(rows[r][p]);
}
