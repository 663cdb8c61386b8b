// The kernels of the GPU oracle, compiled at run time by CuPy for one type of number (REAL: float,
// or double if DOUBLE is defined) and one kernel function (KERNEL: as in pairstep::KernelName).
//
// Points lie feature by feature: values[k * stride + p] is feature k of point p. Both numbers are
// padded with zeros, points to a multiple of EDGE and features to a multiple of SLAB.

typedef REAL Real;
typedef long long Index;

namespace {

constexpr int THREADS = 256;                  // 16 x 16
constexpr int WIDTH = 16 / sizeof(Real);      // numbers that are loaded at once
constexpr int EACH = 2 * WIDTH;               // a thread computes EACH x EACH values of a tile
constexpr int EDGE = 16 * EACH;               // a tile is EDGE points x EDGE queries
constexpr int SLAB = THREADS * WIDTH / EDGE;  // features at once: a vector per thread

struct alignas(16) Vector {
  Real at[WIDTH];
};

// Which points and queries of a tile a thread computes the values of; who shares its points, in its
// warp and in how many others; and how it multiplies.
#ifdef DOUBLE
// The tensor units multiply in double: a warp has 32 points x 16 queries, as eight products of
// 8 x 4 and 4 x 8 numbers. Lines of shared memory are padded so that no two threads of a half-warp
// ask for the same bank.
constexpr int PADDING = 4, LANES = 4, SHARES = 4;

__device__ inline int point_at(int i) {
  return threadIdx.x / 128 * 32 + i * 8 + threadIdx.x % 32 / 4;
}
__device__ inline int query_at(int j) {
  return threadIdx.x / 32 % 4 * 16 + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
}
__device__ inline int own_share() { return threadIdx.x / 32 % 4; }

__device__ inline void multiply(const Real (&some)[SLAB][EDGE + PADDING],
                                const Real (&others)[SLAB][EDGE + PADDING],
                                Real (&products)[EACH][EACH]) {
  const int feature = threadIdx.x % 4, place = threadIdx.x % 32 / 4;
  const auto query = [&](int k, int j) {
    return others[k][threadIdx.x / 32 % 4 * 16 + 8 * j + place];
  };
#if __CUDA_ARCH__ >= 900
  // Two products on top of each other and two side by side are one instruction.
  static_assert(SLAB == 8 && EACH == 4);
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    const Real a[4] = {some[feature][point_at(i)], some[feature][point_at(i + 1)],
                       some[feature + 4][point_at(i)], some[feature + 4][point_at(i + 1)]};
#pragma unroll
    for (int j = 0; j < 2; ++j)
      asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+d"(products[i][2 * j]), "+d"(products[i][2 * j + 1]), "+d"(products[i + 1][2 * j]),
            "+d"(products[i + 1][2 * j + 1])
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(query(feature, j)),
            "d"(query(feature + 4, j)));
  }
#else
#pragma unroll
  for (int k = feature; k < SLAB; k += 4) {
    const Real b[2] = {query(k, 0), query(k, 1)};
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const Real a = some[k][point_at(i)];
#pragma unroll
      for (int j = 0; j < 2; ++j)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(products[i][2 * j]), "+d"(products[i][2 * j + 1])
            : "d"(a), "d"(b[j]));
    }
  }
#endif
}
#else
// Two vectors of points, half a tile apart, times two of queries.
constexpr int PADDING = 0, LANES = 16, SHARES = 1;

__device__ inline int place(int thread, int e) {
  return e / WIDTH * (EDGE / 2) + thread * WIDTH + e % WIDTH;
}
__device__ inline int point_at(int i) { return place(threadIdx.x / 16, i); }
__device__ inline int query_at(int j) { return place(threadIdx.x % 16, j); }
__device__ inline int own_share() { return 0; }

__device__ inline Vector load(const Real* from) { return *reinterpret_cast<const Vector*>(from); }

__device__ inline void multiply(const Real (&some)[SLAB][EDGE + PADDING],
                                const Real (&others)[SLAB][EDGE + PADDING],
                                Real (&products)[EACH][EACH]) {
#pragma unroll
  for (int k = 0; k < SLAB; ++k) {
    const Vector a[2] = {load(&some[k][point_at(0)]), load(&some[k][point_at(WIDTH)])};
    const Vector b[2] = {load(&others[k][query_at(0)]), load(&others[k][query_at(WIDTH)])};
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
      for (int j = 0; j < EACH; ++j)
        products[i][j] += a[i / WIDTH].at[i % WIDTH] * b[j / WIDTH].at[j % WIDTH];
  }
}
#endif

struct Points {
  const Real* values;
  const Real* squares;  // squared norms
  Index stride;
};

struct Function {
  double gamma, coef0;
  int degree;
};

__device__ inline float exponential(float x) { return exp2f(1.44269504f * x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float hyperbolic_tangent(float x) { return tanhf(x); }
__device__ inline double hyperbolic_tangent(double x) { return tanh(x); }

// The kernel of two points, from their inner product and squared norms.
__device__ inline Real kernel_of(Real product, Real square, Real other, const Function& function) {
  const Real gamma = Real(function.gamma), coef0 = Real(function.coef0);
#if KERNEL == 0
  return product;
#elif KERNEL == 1
  const Real base = gamma * product + coef0;
  Real power = 1;
  for (int k = 0; k < function.degree; ++k) power *= base;
  return power;
#elif KERNEL == 2
  const Real distance = square + other - 2 * product;
  return exponential(-gamma * (distance > 0 ? distance : Real(0)));
#else
  return hyperbolic_tangent(gamma * product + coef0);
#endif
}

__device__ inline Vector fetch(const Points& from, Index first, int slab) {
  const int row = threadIdx.x / (EDGE / WIDTH), column = threadIdx.x % (EDGE / WIDTH) * WIDTH;
  return *reinterpret_cast<const Vector*>(from.values + (Index(slab) * SLAB + row) * from.stride +
                                          first + column);
}

// The inner products of one tile of points with some tiles of queries: finish(first query,
// products) after each. The next slab of features is on its way while one is worked on.
template <class Finish>
__device__ void over_tiles(const Points& points, Index first_point, const Points& queries,
                           Index first_tile, Index last_tile, int slabs, Finish finish) {
  __shared__ alignas(16) Real some[2][SLAB][EDGE + PADDING], others[2][SLAB][EDGE + PADDING];
  const int row = threadIdx.x / (EDGE / WIDTH), column = threadIdx.x % (EDGE / WIDTH) * WIDTH;
  Real products[EACH][EACH] = {};
  Vector next = fetch(points, first_point, 0);
  Vector next_query = fetch(queries, first_tile * EDGE, 0);
  int buffer = 0;
  for (Index tile = first_tile; tile < last_tile; ++tile) {
    for (int slab = 0; slab < slabs; ++slab, buffer ^= 1) {
      *reinterpret_cast<Vector*>(&some[buffer][row][column]) = next;
      *reinterpret_cast<Vector*>(&others[buffer][row][column]) = next_query;
      __syncthreads();
      const bool wraps = slab + 1 == slabs;
      if (!wraps || tile + 1 < last_tile) {
        next = fetch(points, first_point, wraps ? 0 : slab + 1);
        next_query = fetch(queries, (tile + wraps) * EDGE, wraps ? 0 : slab + 1);
      }
      multiply(some[buffer], others[buffer], products);
    }
    finish(tile * EDGE, products);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
      for (int j = 0; j < EACH; ++j) products[i][j] = 0;
  }
}

// Rows of a matrix as points, with their squared norms.
template <class Source>
__device__ void pack(const Source* X, const Index* rows, const double* center, Index count,
                     Index stride, int features, int padded, Real* values, Real* squares) {
  const Index p = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p >= stride) return;
  const Source* row = p < count ? X + (rows ? rows[p] : p) * features : nullptr;
  double square = 0;
#pragma unroll 8
  for (int k = 0; k < padded; ++k) {
    const double value = row && k < features ? double(row[k]) - center[k] : 0.0;
    values[k * stride + p] = Real(value);
    square += value * value;
  }
  squares[p] = Real(square);
}

}  // namespace

extern "C" __global__ void pack_float(const float* X, const Index* rows, const double* center,
                                      Index count, Index stride, int features, int padded,
                                      Real* values, Real* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}
extern "C" __global__ void pack_double(const double* X, const Index* rows, const double* center,
                                       Index count, Index stride, int features, int padded,
                                       Real* values, Real* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}

// sums[(y * outputs + o) * count + p] += sum_q weights[o * queries.stride + q] k(point p, query q),
// over the y-th share of the queries: a tile of points per block, nothing else is ever written.
// Within a tile of queries sums are of type Real, across them in double.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    add_sums(const Real* values, const Real* norms, Index stride, Index count,
             const Real* query_values, const Real* query_norms, Index query_stride, int features,
             double gamma, double coef0, int degree, const Real* weights, int outputs,
             double* sums) {
  const Points points{values, norms, stride}, queries{query_values, query_norms, query_stride};
  const Function function{gamma, coef0, degree};
  extern __shared__ double totals[];  // SHARES x outputs x EDGE
  const Index first = Index(blockIdx.x) * EDGE;
  const Index tiles = queries.stride / EDGE, share = (tiles + gridDim.y - 1) / gridDim.y;
  const Index first_tile = blockIdx.y * share, last_tile = min(first_tile + share, tiles);
  if (first_tile >= last_tile) return;
  for (int t = threadIdx.x; t < SHARES * outputs * EDGE; t += THREADS) totals[t] = 0.0;
  Real squares[EACH];
  for (int i = 0; i < EACH; ++i) squares[i] = points.squares[first + point_at(i)];
  over_tiles(points, first, queries, first_tile, last_tile, features / SLAB,
             [&](Index query, Real(&products)[EACH][EACH]) {
#pragma unroll
               for (int j = 0; j < EACH; ++j) {
                 const Real other = queries.squares[query + query_at(j)];
#pragma unroll
                 for (int i = 0; i < EACH; ++i)
                   products[i][j] = kernel_of(products[i][j], squares[i], other, function);
               }
               for (int o = 0; o < outputs; ++o) {
                 Real parts[EACH] = {};
#pragma unroll
                 for (int j = 0; j < EACH; ++j) {
                   const Real weight = weights[o * queries.stride + query + query_at(j)];
#pragma unroll
                   for (int i = 0; i < EACH; ++i) parts[i] += weight * products[i][j];
                 }
      // The threads with the same points: always in the same order.
#pragma unroll
                 for (int i = 0; i < EACH; ++i) {
                   for (int step = LANES / 2; step > 0; step /= 2)
                     parts[i] += __shfl_xor_sync(0xffffffffu, parts[i], step);
                   if (threadIdx.x % LANES == 0)
                     totals[(own_share() * outputs + o) * EDGE + point_at(i)] += double(parts[i]);
                 }
               }
             });
  __syncthreads();
  for (int t = threadIdx.x; t < outputs * EDGE; t += THREADS) {
    const Index p = first + t % EDGE;
    double sum = 0.0;
    for (int k = 0; k < SHARES; ++k) sum += totals[k * outputs * EDGE + t];
    if (p < count) sums[(Index(blockIdx.y) * outputs + t / EDGE) * count + p] += sum;
  }
}

// matrix[p * columns + q] = k(point p, query q), for a block of a working set.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    kernel_matrix(const Real* values, const Real* norms, Index stride, Index rows,
                  const Real* query_values, const Real* query_norms, Index query_stride,
                  Index columns, int features, double gamma, double coef0, int degree,
                  double* matrix) {
  const Points points{values, norms, stride}, queries{query_values, query_norms, query_stride};
  const Function function{gamma, coef0, degree};
  const Index first = Index(blockIdx.x) * EDGE, tile = blockIdx.y;
  over_tiles(points, first, queries, tile, tile + 1, features / SLAB,
             [&](Index query, Real(&products)[EACH][EACH]) {
#pragma unroll
               for (int i = 0; i < EACH; ++i) {
                 const Index p = first + point_at(i);
                 const Real square = points.squares[p];
#pragma unroll
                 for (int j = 0; j < EACH; ++j) {
                   const Index q = query + query_at(j);
                   if (p < rows && q < columns)
                     matrix[p * columns + q] =
                         double(kernel_of(products[i][j], square, queries.squares[q], function));
                 }
               }
             });
}

// A survey in four passes that sort nothing. The prices between the cheapest buyer and the dearest
// seller of a group are counted in BINS bins of equal width; the bins furthest out that hold
// `count` accounts together are handed over as a whole.

namespace {

constexpr int BINS = 2048;

__device__ inline double endless() { return __longlong_as_double(0x7ff0000000000000); }

struct Accounts {
  const double *gradient, *x, *lower, *upper, *kink;  // the kinks, if any, are at 0
  const Index* starts;                                // of the groups

  __device__ double down_price(Index i) const {
    if (!(x[i] > lower[i])) return -endless();
    return gradient[i] + (kink ? (x[i] > 0 ? kink[i] : -kink[i]) : 0.0);
  }
  __device__ double up_price(Index i) const {
    if (!(x[i] < upper[i])) return endless();
    return gradient[i] + (kink ? (x[i] < 0 ? -kink[i] : kink[i]) : 0.0);
  }
  __device__ bool is_free(Index i) const {
    return x[i] > lower[i] && x[i] < upper[i] && !(kink && x[i] == 0 && kink[i] != 0);
  }
};

// What a survey knows of a group; zeros at the beginning.
struct Group {
  unsigned long long dearest,
      cheapest;                     // ordered as the prices are (and, for the cheapest, against)
  int sellers[BINS], buyers[BINS];  // how many there are in each bin, the furthest out last
  int seller_cut, buyer_cut;        // the first bins to hand over
};

struct Found {
  Index account;
  double gradient;
};

// Integers in the order of the numbers, above 0, and back.
__device__ unsigned long long ordered(double x) {
  const unsigned long long bits = __double_as_longlong(x);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ double number(unsigned long long key) {
  return __longlong_as_double(key >> 63 ? key & ~(1ull << 63) : ~key);
}

struct Market {
  double dearest, cheapest, bins_per_price;

  __device__ explicit Market(const Group& group)
      : dearest(number(group.dearest)), cheapest(-number(group.cheapest)) {
    bins_per_price = BINS / (dearest - cheapest);
  }
  // The bin of who is so far on the right side of the other's price, or -1.
  __device__ int bin(double gain) const {
    return gain > 0 ? min(int(gain * bins_per_price), BINS - 1) : -1;
  }
  __device__ int seller_bin(double price) const { return bin(price - cheapest); }
  __device__ int buyer_bin(double price) const { return bin(dearest - price); }
};

__device__ int cut_of(const int* counts, int wanted) {
  int total = 0, bin = BINS;
  while (bin > 0 && total < wanted) total += counts[--bin];
  return bin;
}

}  // namespace

// blockIdx.y is the group.
extern "C" __global__ void survey_extremes(const double* gradient, const double* x,
                                           const double* lower, const double* upper,
                                           const double* kink, const Index* starts, Group* groups) {
  const Accounts accounts{gradient, x, lower, upper, kink, starts};
  double dearest = -endless(), cheapest = endless();
  const Index end = accounts.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = accounts.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    dearest = fmax(dearest, accounts.down_price(i));
    cheapest = fmin(cheapest, accounts.up_price(i));
  }
  for (int step = 16; step > 0; step /= 2) {
    dearest = fmax(dearest, __shfl_xor_sync(0xffffffffu, dearest, step));
    cheapest = fmin(cheapest, __shfl_xor_sync(0xffffffffu, cheapest, step));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMax(&groups[blockIdx.y].dearest, ordered(dearest));
  atomicMax(&groups[blockIdx.y].cheapest, ordered(-cheapest));
}

extern "C" __global__ void survey_count(const double* gradient, const double* x,
                                        const double* lower, const double* upper,
                                        const double* kink, const Index* starts, Group* groups) {
  const Accounts accounts{gradient, x, lower, upper, kink, starts};
  __shared__ int sellers[BINS], buyers[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) sellers[bin] = buyers[bin] = 0;
  __syncthreads();
  Group& group = groups[blockIdx.y];
  const Market market(group);
  const Index end = accounts.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = accounts.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    const int seller = market.seller_bin(accounts.down_price(i));
    const int buyer = market.buyer_bin(accounts.up_price(i));
    if (seller >= 0) atomicAdd(&sellers[seller], 1);
    if (buyer >= 0) atomicAdd(&buyers[buyer], 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
    if (sellers[bin]) atomicAdd(&group.sellers[bin], sellers[bin]);
    if (buyers[bin]) atomicAdd(&group.buyers[bin], buyers[bin]);
  }
}

// A block per group and side.
extern "C" __global__ void survey_cut(Group* groups, int wanted) {
  __shared__ int counts[BINS];
  Group& group = groups[blockIdx.x / 2];
  const bool selling = blockIdx.x % 2 == 0;
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    counts[bin] = selling ? group.sellers[bin] : group.buyers[bin];
  __syncthreads();
  if (threadIdx.x == 0) (selling ? group.seller_cut : group.buyer_cut) = cut_of(counts, wanted);
}

// found[0] has the number of the accounts that follow, in any order, and how many of them are not
// there for being free alone. Where nobody can trade, the dearest and the cheapest are handed over.
extern "C" __global__ void survey_collect(const double* gradient, const double* x,
                                          const double* lower, const double* upper,
                                          const double* kink, const Index* starts,
                                          const Group* groups, int with_free, Found* found) {
  const Accounts accounts{gradient, x, lower, upper, kink, starts};
  const Group& group = groups[blockIdx.y];
  const Market market(group);
  unsigned long long* count = reinterpret_cast<unsigned long long*>(&found[0].account);
  unsigned long long* outliers = reinterpret_cast<unsigned long long*>(&found[0].gradient);
  const Index end = accounts.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = accounts.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    const double down = accounts.down_price(i), up = accounts.up_price(i);
    const bool out =
        market.seller_bin(down) >= group.seller_cut || market.buyer_bin(up) >= group.buyer_cut ||
        (down == market.dearest && down > -endless()) || (up == market.cheapest && up < endless());
    if (out) atomicAdd(outliers, 1ull);
    if (out || (with_free && accounts.is_free(i)))
      found[1 + atomicAdd(count, 1ull)] = {i, accounts.gradient[i]};
  }
}
