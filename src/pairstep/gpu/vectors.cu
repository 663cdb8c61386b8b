// The CUDA kernels that compute no kernel values: storing points, sums of rows of a stored matrix,
// submatrices, updates of vectors, and the selection of candidates for a working set.
//
// CuPy could do most of this with array expressions. But it compiles every expression separately
// the first time, which takes longer than this file.

typedef long long Index;

namespace {

constexpr int THREADS = 256;
constexpr int OUTPUTS = 4;  // that add_rows computes in one launch

// Store rows of a matrix as points (see kernels.cu), with their squared norms.
template <class Source, class Real>
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

// parts[(y * outputs + o) * count + p] = sum_k weights[o * n_rows + k] matrix[rows[k], columns[p]],
// over the y-th part of the rows. A thread has one column. Without `rows`
// or `columns`, all of them are used.
template <class Entry>
__device__ void add_rows(const Entry* matrix, Index width, const Index* rows, const double* weights,
                         Index n_rows, int outputs, const Index* columns, Index count,
                         double* parts) {
  __shared__ const Entry* starts[THREADS];
  __shared__ double factors[OUTPUTS][THREADS];
  const Index p = Index(blockIdx.x) * THREADS + threadIdx.x;
  const Index column = p < count ? (columns ? columns[p] : p) : 0;
  const Index each = (n_rows + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * each;
  const Index end = begin + each < n_rows ? begin + each : n_rows;
  double sums[OUTPUTS] = {};
  for (Index first = begin; first < end; first += THREADS) {
    const Index k = first + threadIdx.x;
    __syncthreads();
    // Rows past the end have the weight 0.
    const Index used = k < end ? k : begin;
    starts[threadIdx.x] = matrix + (rows ? rows[used] : used) * width;
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o)
      factors[o][threadIdx.x] = o < outputs && k < end ? weights[o * n_rows + k] : 0.0;
    __syncthreads();
    const int some = end - first < THREADS ? int(end - first + 7) / 8 * 8 : THREADS;
    for (int j = 0; j < some; j += 8) {
      Entry values[8];  // loaded together, so that the loads overlap
#pragma unroll
      for (int e = 0; e < 8; ++e) values[e] = starts[j + e][column];
#pragma unroll
      for (int o = 0; o < OUTPUTS; ++o)
        if (o < outputs)
#pragma unroll
          for (int e = 0; e < 8; ++e) sums[o] += factors[o][j + e] * double(values[e]);
    }
  }
  if (p >= count) return;
#pragma unroll
  for (int o = 0; o < OUTPUTS; ++o)
    if (o < outputs) parts[(Index(blockIdx.y) * outputs + o) * count + p] = sums[o];
}

}  // namespace

// Named by the types of the matrix and of the points.
extern "C" __global__ void pack_float32_float32(const float* X, const Index* rows,
                                                const double* center, Index count, Index stride,
                                                int features, int padded, float* values,
                                                float* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}
extern "C" __global__ void pack_float32_float64(const float* X, const Index* rows,
                                                const double* center, Index count, Index stride,
                                                int features, int padded, double* values,
                                                double* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}
extern "C" __global__ void pack_float64_float32(const double* X, const Index* rows,
                                                const double* center, Index count, Index stride,
                                                int features, int padded, float* values,
                                                float* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}
extern "C" __global__ void pack_float64_float64(const double* X, const Index* rows,
                                                const double* center, Index count, Index stride,
                                                int features, int padded, double* values,
                                                double* squares) {
  pack(X, rows, center, count, stride, features, padded, values, squares);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_rows_float32(const float* matrix, Index width, const Index* rows, const double* weights,
                     Index n_rows, int outputs, const Index* columns, Index count, double* parts) {
  add_rows(matrix, width, rows, weights, n_rows, outputs, columns, count, parts);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    add_rows_float64(const double* matrix, Index width, const Index* rows, const double* weights,
                     Index n_rows, int outputs, const Index* columns, Index count, double* parts) {
  add_rows(matrix, width, rows, weights, n_rows, outputs, columns, count, parts);
}

// sums[o * stride + p] += sum over y of parts[(y * outputs + o) * count + p]
extern "C" __global__ void add_parts(const double* parts, int n_parts, int outputs, Index count,
                                     double* sums, Index stride) {
  const Index p = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (p >= count) return;
  double sum = 0.0;
  for (Index y = 0; y < n_parts; ++y) sum += parts[(y * outputs + blockIdx.y) * count + p];
  sums[blockIdx.y * stride + p] += sum;
}

// part[i * count + j] = matrix[rows[i], rows[j]], plus the ridge on the diagonal
extern "C" __global__ void submatrix(const double* matrix, Index width, const Index* rows,
                                     Index count, double ridge, double* part) {
  const Index j = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const Index column = rows[j];
  for (Index i = blockIdx.y; i < count; i += gridDim.y)
    part[i * count + j] = matrix[rows[i] * width + column] + (i == j ? ridge : 0.0);
}

extern "C" __global__ void diagonal(const double* matrix, Index width, double* entries) {
  const Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < width) entries[i] = matrix[i * width + i];
}

extern "C" __global__ void scatter(double* target, const Index* indices, const double* values,
                                   Index count) {
  const Index k = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < count) target[indices[k]] = values[k];
}

// Select candidates for a working set in four passes, without sorting. A pair of variables violates
// the conditions if the left derivative of one exceeds the right derivative of the other. So the
// left derivatives above the smallest right derivative of their group, and the right derivatives
// below the largest left one, are counted in BINS bins of equal width. The outermost bins that
// together hold `wanted` variables are selected as a whole.

namespace {

constexpr int BINS = 2048;

__device__ inline double infinity() { return __longlong_as_double(0x7ff0000000000000); }

struct Coordinates {
  const double *gradient, *x, *lower, *upper, *l1;  // L1 terms, if any, are centered at 0
  const Index* starts;                              // first variable of each group

  __device__ double left_derivative(Index i) const {
    if (!(x[i] > lower[i])) return -infinity();
    return gradient[i] + (l1 ? (x[i] > 0 ? l1[i] : -l1[i]) : 0.0);
  }
  __device__ double right_derivative(Index i) const {
    if (!(x[i] < upper[i])) return infinity();
    return gradient[i] + (l1 ? (x[i] < 0 ? -l1[i] : l1[i]) : 0.0);
  }
  __device__ bool is_free(Index i) const {
    return x[i] > lower[i] && x[i] < upper[i] && !(l1 && x[i] == 0 && l1[i] != 0);
  }
};

// The state of the selection in one group; all zeros at the beginning.
struct Group {
  unsigned long long max_left;   // ordered(largest left derivative)
  unsigned long long min_right;  // ordered(-smallest right derivative)
  int left_count[BINS];          // variables per bin, the most violating in the last bin
  int right_count[BINS];
  int left_cut, right_cut;  // the first bin that is selected
};

struct Found {
  Index coordinate;
  double gradient;
};

// Map numbers to positive integers in the same order, for atomicMax, and back.
__device__ unsigned long long ordered(double x) {
  const unsigned long long bits = __double_as_longlong(x);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ double number(unsigned long long key) {
  return __longlong_as_double(key >> 63 ? key & ~(1ull << 63) : ~key);
}

struct MultiplierInterval {
  double max_left, min_right, bins_per_unit;

  __device__ explicit MultiplierInterval(const Group& group)
      : max_left(number(group.max_left)), min_right(-number(group.min_right)) {
    bins_per_unit = BINS / (max_left - min_right);
  }
  // The bin of a variable whose derivative exceeds the opposite extreme by `excess`, or -1.
  __device__ int bin(double excess) const {
    return excess > 0 ? min(int(excess * bins_per_unit), BINS - 1) : -1;
  }
  __device__ int left_bin(double derivative) const { return bin(derivative - min_right); }
  __device__ int right_bin(double derivative) const { return bin(max_left - derivative); }
};

// Return the first of the last bins that together hold at least `wanted` variables.
__device__ int cut_of(const int* counts, int wanted) {
  int total = 0, bin = BINS;
  while (bin > 0 && total < wanted) total += counts[--bin];
  return bin;
}

}  // namespace

// Pass 1: the extreme derivatives of each group. blockIdx.y is the group in passes 1, 2 and 4.
extern "C" __global__ void scan_extremes(const double* gradient, const double* x,
                                         const double* lower, const double* upper, const double* l1,
                                         const Index* starts, Group* groups) {
  const Coordinates coordinates{gradient, x, lower, upper, l1, starts};
  double max_left = -infinity(), min_right = infinity();
  const Index end = coordinates.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = coordinates.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    max_left = fmax(max_left, coordinates.left_derivative(i));
    min_right = fmin(min_right, coordinates.right_derivative(i));
  }
  for (int step = 16; step > 0; step /= 2) {
    max_left = fmax(max_left, __shfl_xor_sync(0xffffffffu, max_left, step));
    min_right = fmin(min_right, __shfl_xor_sync(0xffffffffu, min_right, step));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMax(&groups[blockIdx.y].max_left, ordered(max_left));
  atomicMax(&groups[blockIdx.y].min_right, ordered(-min_right));
}

// Pass 2: count the variables of each bin.
extern "C" __global__ void scan_count(const double* gradient, const double* x, const double* lower,
                                      const double* upper, const double* l1, const Index* starts,
                                      Group* groups) {
  const Coordinates coordinates{gradient, x, lower, upper, l1, starts};
  __shared__ int left_count[BINS], right_count[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) left_count[bin] = right_count[bin] = 0;
  __syncthreads();
  Group& group = groups[blockIdx.y];
  const MultiplierInterval interval(group);
  const Index end = coordinates.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = coordinates.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    const int down = interval.left_bin(coordinates.left_derivative(i));
    const int up = interval.right_bin(coordinates.right_derivative(i));
    if (down >= 0) atomicAdd(&left_count[down], 1);
    if (up >= 0) atomicAdd(&right_count[up], 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
    if (left_count[bin]) atomicAdd(&group.left_count[bin], left_count[bin]);
    if (right_count[bin]) atomicAdd(&group.right_count[bin], right_count[bin]);
  }
}

// Pass 3: find the first bin to select. One CUDA block per group and direction.
extern "C" __global__ void scan_cut(Group* groups, int wanted) {
  __shared__ int counts[BINS];
  Group& group = groups[blockIdx.x / 2];
  const bool is_left = blockIdx.x % 2 == 0;
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    counts[bin] = is_left ? group.left_count[bin] : group.right_count[bin];
  __syncthreads();
  if (threadIdx.x == 0) (is_left ? group.left_cut : group.right_cut) = cut_of(counts, wanted);
}

// Pass 4: collect the variables of the selected bins and, with with_free, the free ones. found[0]
// has their number and the number of those from the bins; the variables follow in any order. The
// variables with the extreme derivatives are always included, even if no pair violates the
// conditions.
extern "C" __global__ void scan_collect(const double* gradient, const double* x,
                                        const double* lower, const double* upper, const double* l1,
                                        const Index* starts, const Group* groups, int with_free,
                                        Found* found) {
  const Coordinates coordinates{gradient, x, lower, upper, l1, starts};
  const Group& group = groups[blockIdx.y];
  const MultiplierInterval interval(group);
  unsigned long long* count = reinterpret_cast<unsigned long long*>(&found[0].coordinate);
  unsigned long long* outliers = reinterpret_cast<unsigned long long*>(&found[0].gradient);
  const Index end = coordinates.starts[blockIdx.y + 1], step = Index(gridDim.x) * blockDim.x;
  for (Index i = coordinates.starts[blockIdx.y] + Index(blockIdx.x) * blockDim.x + threadIdx.x;
       i < end; i += step) {
    const double down = coordinates.left_derivative(i), up = coordinates.right_derivative(i);
    const bool out = interval.left_bin(down) >= group.left_cut ||
                     interval.right_bin(up) >= group.right_cut ||
                     (down == interval.max_left && down > -infinity()) ||
                     (up == interval.min_right && up < infinity());
    if (out) atomicAdd(outliers, 1ull);
    if (out || (with_free && coordinates.is_free(i)))
      found[1 + atomicAdd(count, 1ull)] = {i, coordinates.gradient[i]};
  }
}
