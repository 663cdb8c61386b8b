// Sums of a function over the rows of a matrix, with one row per lane; see core/row_sums.hpp.
// Included once per instruction set; uses fused multiply-adds if the CPU has them.

// log(x) for x > 0, as in fdlibm: x = 2^k (1 + f) with 1 + f near 1, s = f / (2 + f), and a
// polynomial for log(1 + f) = 2s + 2/3 s^3 + ... The error is below one unit in the last place.
inline Lanes logarithm(Lanes x) {
  typedef std::int64_t Bits __attribute__((vector_size(PAIRSTEP_BYTES)));
  // The bits of sqrt(1/2), and the mask of the fraction bits.
  constexpr std::int64_t ROOT_OF_HALF_BITS = 0x3FE6A09E667F3BCD, FRACTION_MASK = 0xFFFFFFFFFFFFF;
  // 1.5 * 2^52: the low bits of MAGIC + k are those of the integer k.
  constexpr double MAGIC = 6755399441055744.0;
  constexpr std::int64_t MAGIC_BITS = 0x4338000000000000;
  Bits bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits -= ROOT_OF_HALF_BITS;
  const Bits power = bits >> 52;
  bits = (bits & FRACTION_MASK) + ROOT_OF_HALF_BITS;
  Lanes reduced, k;
  std::memcpy(&reduced, &bits, sizeof reduced);
  const Bits shifted = power + MAGIC_BITS;
  std::memcpy(&k, &shifted, sizeof k);
  k -= MAGIC;
  const Lanes f = reduced - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  Lanes series = all<Lanes>(1.479819860511658591e-01);
  for (const double c :
       {1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
        2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01})
    series = multiply_add(series, z, all<Lanes>(c));
  const Lanes rest = s * (half + z * series);
  return k * 6.93147180369123816490e-01 - ((half - (rest + k * 1.90821492927058770002e-10)) - f);
}

// A function value, its derivative, and the square root of its second derivative. The second
// derivative itself could overflow or underflow if the numbers of a row are tiny.
struct Jet {
  Lanes value, slope, root;
};

// -log(u + rest), where `rest` is the rounding error of u.
[[gnu::always_inline]] inline Jet minus_log(Lanes u, Lanes rest) {
  const Lanes inverse = 1.0 / u, one = all<Lanes>(1.0);
  // The correction by `rest` matters near u = 1, where the logarithm can be as small as `rest`.
  const Lanes value = -(logarithm(u > 0 ? u : one) + rest * inverse);
  return {u > 0 ? value : all<Lanes>(INFINITY), -inverse, inverse};
}

// log(1 + exp(-u)).
[[gnu::always_inline]] inline Jet logistic(Lanes u, Lanes) {
  const Lanes zero = {}, minus_size = u < 0 ? u : -u,
              power = exponential(minus_size);  // exp(-|u|) cannot overflow
  const Lanes whole = 1.0 + power, inverse = 1.0 / whole;
  const Lanes minus_slope = u > 0 ? power * inverse : inverse;  // 1 / (1 + exp(u))
  // log(1 + power), corrected for the rounding error of the sum.
  const Lanes log_of_whole = logarithm(whole) + (power - (whole - 1.0)) * inverse;
  return {log_of_whole + (u < 0 ? -u : zero), -minus_slope, square_root(power) * inverse};
}

// sums_over_lanes returns a vector whose k-th lane is the sum over the lanes of sums[k]. Each round
// adds lanes in pairs and halves the number of vectors.
template <Index APART, Index... LANE>
inline Lanes added_in_pairs(Lanes a, Lanes b, std::integer_sequence<Index, LANE...>) {
  // Blocks of 2 APART lanes: the first halves of a and b, plus their second halves.
  constexpr auto from = [](Index lane) {
    const Index begin = lane / (2 * APART) * (2 * APART), at = lane - begin;
    return at < APART ? begin + at : WIDTH + begin + at - APART;
  };
  return __builtin_shufflevector(a, b, from(LANE)...) +
         __builtin_shufflevector(a, b, from(LANE) + APART...);
}
template <Index COUNT = WIDTH>
inline Lanes sums_over_lanes(Lanes* sums) {
  if constexpr (COUNT == 1) return sums[0];
  else {
    constexpr Index HALF = COUNT / 2;
    for (Index r = 0; r < HALF; ++r)
      sums[r] =
          added_in_pairs<HALF>(sums[r], sums[r + HALF], std::make_integer_sequence<Index, WIDTH>());
    return sums_over_lanes<HALF>(sums);
  }
}

// Inner products of WIDTH rows with x; rows may repeat. If n is not a multiple of WIDTH, the last
// vector of a row overlaps the one before, and `ending` has zeros for the overlap.
inline Lanes inner_products(const double* const* rows, Index n, const double* x,
                            const double* ending) {
  if (n < WIDTH) {
    Lanes products = {};
    for (Index r = 0; r < WIDTH; ++r)
      for (Index j = 0; j < n; ++j) products[r] += rows[r][j] * x[j];
    return products;
  }
  Lanes sums[WIDTH] = {};
  const auto add = [&](Index j, const double* factor) {
    const Lanes at = load<Lanes>(factor);
    for (Index r = 0; r < WIDTH; ++r) sums[r] = multiply_add(load<Lanes>(rows[r] + j), at, sums[r]);
  };
  for (Index j = 0; j + WIDTH <= n; j += WIDTH) add(j, x + j);
  if (n % WIDTH != 0) add(n - WIDTH, ending);
  return sums_over_lanes(sums);
}

// The first `count` numbers at p, at most WIDTH, followed by zeros.
inline Lanes load_some(const double* p, Index count) {
  if (count >= WIDTH) return load<Lanes>(p);
  Lanes some = {};
  for (Index k = 0; k < count; ++k) some[k] = p[k];
  return some;
}

inline void store_some(double* p, Lanes value, Index count) {
  if (count >= WIDTH) return store(p, value);
  for (Index k = 0; k < count; ++k) p[k] = value[k];
}

// sums[j] += sum_r weight_r rows[r][j] for n >= WIDTH columns, V vectors of columns at a time. The
// last vector ends at the last column; columns that it shares with the one before are added once.
template <Index V = 4>
inline void add_weighted(const double* const* rows, const double* weights, Index count, Index n,
                         double* sums, Index first = 0) {
  const auto column = [&](Index v) { return std::min(first + v * WIDTH, n - WIDTH); };
  for (; first + (V - 1) * WIDTH < n; first += V * WIDTH) {
    Lanes sum[V] = {};
    for (Index r = 0; r < count; ++r) {
      const Lanes weight = all<Lanes>(weights[r]);
      for (Index v = 0; v < V; ++v)
        sum[v] = multiply_add(weight, load<Lanes>(rows[r] + column(v)), sum[v]);
    }
    for (Index v = 0; v < V; ++v)
      for (Index j = first + v * WIDTH; j < std::min(first + (v + 1) * WIDTH, n); ++j)
        sums[j] += sum[v][j - column(v)];
  }
  if constexpr (V > 1) add_weighted<V - 1>(rows, weights, count, n, sums, first);
}

template <class Phi>
double row_sum(const RowSum& sum, const double* x, Index begin, Index end, double* gradient,
               double* root, DerivativeSizes& sizes, Phi phi) {
  // Rows are processed in chunks of at most MAX_CHUNK_NUMBERS numbers (128 KiB), but at least WIDTH
  // rows. A chunk stays in the second-level cache between the inner products and the sum of the
  // gradient. MAX_CHUNK_ROWS limits the arrays on the stack.
  constexpr Index MAX_CHUNK_NUMBERS = 1 << 14, MAX_CHUNK_ROWS = 128;
  static_assert(MAX_CHUNK_ROWS % WIDTH == 0);
  const Index n = sum.n,
              at_once = std::clamp(MAX_CHUNK_NUMBERS / n / WIDTH * WIDTH, WIDTH, MAX_CHUNK_ROWS);
  double ending[WIDTH] = {};
  for (Index k = 0; n >= WIDTH && k < n % WIDTH; ++k) ending[WIDTH - 1 - k] = x[n - 1 - k];
  const double* rows[MAX_CHUNK_ROWS];
  double slopes[MAX_CHUNK_ROWS];
  Lanes value = {}, slope_sum = {}, curvature = {}, largest = {},
        minus_smallest = all<Lanes>(-INFINITY);
  for (Index first = begin; first < end; first += at_once) {
    const Index count = std::min(at_once, end - first);
    for (Index k = 0; k < at_once; ++k)  // pad with the last row; the padding gets weight 0
      rows[k] = sum.matrix + std::min(first + k, end - 1) * n;
    for (Index k = 0; k < count; k += WIDTH) {
      const Index i = first + k, members = end - i;
      const Lanes weight = load_some(sum.weight + i, members), zero = {};
      const Lanes offset = load_some(sum.offset + i, members);
      const Lanes factor = sum.factor ? load_some(sum.factor + i, members) : all<Lanes>(1.0);
      const Lanes product = factor * inner_products(rows + k, n, x, ending);
      const Lanes u = product + offset, part = u - product;
      const Jet jet = phi(u, (product - (u - part)) + (offset - part));  // Knuth's two-sum
      // A row without weight does not make the value infinite.
      value += weight == 0 ? zero : weight * jet.value;
      store(slopes + k, weight == 0 ? zero : weight * factor * jet.slope);
      const Lanes size = factor < 0 ? -factor : factor;
      const Lanes own_root = weight == 0 ? zero : square_root(weight) * size * jet.root;
      store_some(root + i, own_root, members);
      // Both functions decrease, so their slopes are negative.
      const Lanes minus_slope = weight == 0 ? zero : -jet.slope;
      slope_sum += weight * size * minus_slope;
      curvature += own_root * own_root;
      largest = maximum(largest, minus_slope);
      minus_smallest = maximum(minus_smallest, weight == 0 ? minus_smallest : jet.slope);
    }
    if (!(largest_lane(value) < INFINITY)) return INFINITY;
    if (n >= WIDTH) add_weighted(rows, slopes, count, n, gradient);
    else add_rows<double>(rows, slopes, count, 0, n, gradient);
  }
  double total = 0.0;
  for (Index lane = 0; lane < WIDTH; ++lane) {
    total += value[lane];
    sizes.include({slope_sum[lane], curvature[lane], largest[lane], -minus_smallest[lane]});
  }
  return total;
}

double row_sum(const RowSum& sum, const double* x, Index begin, Index end, double* gradient,
               double* root, DerivativeSizes& sizes) {
  const auto of = [&](auto phi) { return row_sum(sum, x, begin, end, gradient, root, sizes, phi); };
  switch (sum.phi) {
    case RowFunction::minus_log: return of([](Lanes u, Lanes rest) { return minus_log(u, rest); });
    case RowFunction::logistic: return of([](Lanes u, Lanes rest) { return logistic(u, rest); });
  }
  return NAN;
}
