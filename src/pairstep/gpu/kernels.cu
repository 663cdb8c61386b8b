// The CUDA kernels that compute kernel values. CuPy compiles them at run time for one type of
// numbers (REAL: float, or double if DOUBLE is defined) and one kernel function (KERNEL: the number
// in pairstep::KernelName). With DIFFERENCES, which requires double, the distances of the RBF
// kernel are sums of squared differences.
//
// add_sums and kernel_matrix multiply tiles of points by tiles of queries through shared memory,
// with double buffering, and apply the kernel function to the products in registers.
//
// Points are stored feature by feature: values[k * stride + p] is feature k of point p. Points are
// padded with zeros to a multiple of EDGE, features to a multiple of SLAB. device.py repeats the
// constants that the caller needs, and vectors.cu stores the points.

typedef REAL Real;
typedef long long Index;

namespace {

constexpr int THREADS = 256;                  // 16 x 16
constexpr int WIDTH = 16 / sizeof(Real);      // numbers per 16-byte load
constexpr int EACH = 2 * WIDTH;               // a thread computes EACH x EACH values of a tile
constexpr int EDGE = 16 * EACH;               // a tile is EDGE points x EDGE queries
constexpr int SLAB = THREADS * WIDTH / EDGE;  // features per step: one vector per thread

struct alignas(16) Vector {
  Real at[WIDTH];
};

// The two layouts below say which points and queries of a tile a thread works on (point_at,
// query_at), how many lanes of its warp have the same points (LANES), how many warps have partial
// sums of the same points (PARTIAL_SUMS, and partial_sum: which of them this thread has), and how
// it multiplies.
#ifdef DOUBLE
// Tensor cores multiply in double: a warp has 32 points x 16 queries, as eight products of 8 x 4
// and 4 x 8 matrices. Rows in shared memory are padded so that no two threads of a half-warp access
// the same bank.
constexpr int PADDING = 4, LANES = 4, PARTIAL_SUMS = 4;

__device__ inline int point_at(int i) {
  return threadIdx.x / 128 * 32 + i * 8 + threadIdx.x % 32 / 4;
}
__device__ inline int query_at(int j) {
  return threadIdx.x / 32 % 4 * 16 + j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2;
}
__device__ inline int partial_sum() { return threadIdx.x / 32 % 4; }

__device__ inline void multiply(const Real (&some)[SLAB][EDGE + PADDING],
                                const Real (&others)[SLAB][EDGE + PADDING],
                                Real (&products)[EACH][EACH]) {
#ifdef DIFFERENCES
  // Squared distances instead of products: norms and products would lose too much to rounding.
#pragma unroll
  for (int k = 0; k < SLAB; ++k)
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
      for (int j = 0; j < EACH; ++j) {
        const Real apart = some[k][point_at(i)] - others[k][query_at(j)];
        products[i][j] += apart * apart;
      }
#else
  const int feature = threadIdx.x % 4, place = threadIdx.x % 32 / 4;
  const auto query = [&](int k, int j) {
    return others[k][threadIdx.x / 32 % 4 * 16 + 8 * j + place];
  };
#if __CUDA_ARCH__ >= 900
  // One m16n8k8 instruction replaces four of the m8n8k4 instructions below.
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
#endif
}
#else
// A thread multiplies two vectors of points, half a tile apart, by two such vectors of queries.
constexpr int PADDING = 0, LANES = 16, PARTIAL_SUMS = 1;

__device__ inline int place(int thread, int e) {
  return e / WIDTH * (EDGE / 2) + thread * WIDTH + e % WIDTH;
}
__device__ inline int point_at(int i) { return place(threadIdx.x / 16, i); }
__device__ inline int query_at(int j) { return place(threadIdx.x % 16, j); }
__device__ inline int partial_sum() { return 0; }

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

// Return the kernel of two points from their inner product (with DIFFERENCES: their squared
// distance) and squared norms.
__device__ inline Real kernel_of(Real product, Real square, Real other, const Function& function) {
  const Real gamma = Real(function.gamma), coef0 = Real(function.coef0);
#if KERNEL == 0
  return product;
#elif KERNEL == 1
  const Real base = gamma * product + coef0;
  Real power = 1;
  for (int k = 0; k < function.degree; ++k) power *= base;
  return power;
#elif KERNEL == 2 && defined(DIFFERENCES)
  return exponential(-gamma * product);
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

// Compute the inner products of one tile of points with several tiles of queries, and call
// consume(first query, products) after each tile. The next slab of features is loaded while the
// current one is multiplied.
template <class Consume>
__device__ void over_tiles(const Points& points, Index first_point, const Points& queries,
                           Index first_tile, Index last_tile, int slabs, Consume consume) {
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
    consume(tile * EDGE, products);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
      for (int j = 0; j < EACH; ++j) products[i][j] = 0;
  }
}

}  // namespace

// sums[(y * outputs + o) * sums_stride + p] += sum_q weights[o * queries.stride + q] k(point p,
// query q), over the y-th part of the queries. Each CUDA block has one tile of points and writes
// only their sums. The sum over a tile of queries has type Real, the sum over tiles is double.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    add_sums(const Real* values, const Real* norms, Index stride, Index count,
             const Real* query_values, const Real* query_norms, Index query_stride, int features,
             double gamma, double coef0, int degree, const Real* weights, int outputs, double* sums,
             Index sums_stride) {
  const Points points{values, norms, stride}, queries{query_values, query_norms, query_stride};
  const Function function{gamma, coef0, degree};
  extern __shared__ double totals[];  // PARTIAL_SUMS x outputs x EDGE
  const Index first = Index(blockIdx.x) * EDGE;
  const Index tiles = queries.stride / EDGE, tiles_each = (tiles + gridDim.y - 1) / gridDim.y;
  const Index first_tile = blockIdx.y * tiles_each, last_tile = min(first_tile + tiles_each, tiles);
  if (first_tile >= last_tile) return;
  for (int t = threadIdx.x; t < PARTIAL_SUMS * outputs * EDGE; t += THREADS) totals[t] = 0.0;
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
      // Add up the lanes with the same points, in a fixed order for reproducible results.
#pragma unroll
                 for (int i = 0; i < EACH; ++i) {
                   for (int step = LANES / 2; step > 0; step /= 2)
                     parts[i] += __shfl_xor_sync(0xffffffffu, parts[i], step);
                   if (threadIdx.x % LANES == 0)
                     totals[(partial_sum() * outputs + o) * EDGE + point_at(i)] += double(parts[i]);
                 }
               }
             });
  __syncthreads();
  for (int t = threadIdx.x; t < outputs * EDGE; t += THREADS) {
    const Index p = first + t % EDGE;
    double sum = 0.0;
    for (int k = 0; k < PARTIAL_SUMS; ++k) sum += totals[k * outputs * EDGE + t];
    if (p < count) sums[(Index(blockIdx.y) * outputs + t / EDGE) * sums_stride + p] += sum;
  }
}

#ifdef DOUBLE  // matrices are never computed from float
namespace {

// matrix[p * columns + q] = k(point p, query q)
template <class Entry>
__device__ void store_values(const Points& points, Index rows, const Points& queries, Index columns,
                             int features, const Function& function, Entry* matrix) {
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
                         Entry(kernel_of(products[i][j], square, queries.squares[q], function));
                 }
               }
             });
}

}  // namespace

// The kernel matrix in float64, for the block of a working set.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matrix_float64(const Real* values, const Real* norms, Index stride, Index rows,
                   const Real* query_values, const Real* query_norms, Index query_stride,
                   Index columns, int features, double gamma, double coef0, int degree,
                   double* matrix) {
  store_values(Points{values, norms, stride}, rows, Points{query_values, query_norms, query_stride},
               columns, features, Function{gamma, coef0, degree}, matrix);
}

// The kernel matrix rounded to float32, which many duals share.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matrix_float32(const Real* values, const Real* norms, Index stride, Index rows,
                   const Real* query_values, const Real* query_norms, Index query_stride,
                   Index columns, int features, double gamma, double coef0, int degree,
                   float* matrix) {
  store_values(Points{values, norms, stride}, rows, Points{query_values, query_norms, query_stride},
               columns, features, Function{gamma, coef0, degree}, matrix);
}
#endif
