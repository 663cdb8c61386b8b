#include "kernel_sums.hpp"

#include <algorithm>
#include <numeric>

namespace pairstep {

namespace {

// sum_k weights[k] row[indices[k]], in independent partial sums so that additions need not wait.
template <class Entry>
double gathered_sum(const Entry* row, const Index* indices, const double* weights, Index count) {
  double parts[4] = {};
  Index k = 0;
  for (; k + 4 <= count; k += 4)
    for (Index p = 0; p < 4; ++p) parts[p] += weights[k + p] * double(row[indices[k + p]]);
  for (; k < count; ++k) parts[0] += weights[k] * double(row[indices[k]]);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

}  // namespace

template <class Real>
void add_kernel(const KernelFunction& kernel, const DataMatrix& query_data,
                const std::vector<Index>& queries, const std::vector<Index>& starts,
                const double* weights, Index outputs, const DataMatrix& column_data,
                const std::vector<Index>& columns, double* sums, Index stride, ThreadPool& pool) {
  if (queries.empty() || columns.empty()) return;
  const Index groups = Index(starts.size()) - 1;
  if (kernel.name == KernelName::precomputed) {
    column_data.for_dense([&](const auto* entries) {
      pool.run(Index(columns.size()), [&](Index c) {
        const auto* row = entries + columns[c] * column_data.features;
        std::vector<double> sum(std::size_t(outputs), 0.0);
        for (Index g = 0; g < groups; ++g) {
          if (outputs == 1) {
            sums[g * stride + c] += gathered_sum(row, queries.data() + starts[g],
                                                 weights + starts[g], starts[g + 1] - starts[g]);
            continue;
          }
          std::fill(sum.begin(), sum.end(), 0.0);
          for (Index r = starts[g]; r < starts[g + 1]; ++r) {
            const double value = row[queries[r]];
            for (Index o = 0; o < outputs; ++o) sum[o] += weights[r * outputs + o] * value;
          }
          for (Index o = 0; o < outputs; ++o) sums[(g * outputs + o) * stride + c] += sum[o];
        }
      });
    });
    return;
  }
  // Queries and columns that are packed at a time. Larger numbers would need more memory for the
  // packed points; smaller ones would pack the queries more often.
  constexpr Index QUERIES_AT_ONCE = 4096, COLUMNS_AT_ONCE = 4 * QUERIES_AT_ONCE;
  std::vector<double> padded;
  for (Index first = 0; first < Index(columns.size()); first += COLUMNS_AT_ONCE) {
    const Index here = std::min(COLUMNS_AT_ONCE, Index(columns.size()) - first);
    const Points<Real> some(column_data, columns.data() + first, here);
    for (Index g = 0; g < groups; ++g) {
      padded.assign(outputs * some.padded(), 0.0);
      for (Index q = starts[g]; q < starts[g + 1]; q += QUERIES_AT_ONCE) {
        const Index count = std::min(QUERIES_AT_ONCE, starts[g + 1] - q);
        Points<Real> packed(query_data, queries.data() + q, count);
        const double* weight = weights + q * outputs;
        const double one = 1.0;
        if (kernel.name == KernelName::linear && outputs == 1) {  // X (sum_r weights[r] x_r)
          std::vector<Index> all(count);
          std::iota(all.begin(), all.end(), 0);
          packed = packed.combine(all, weight);
          weight = &one;
        }
        const std::vector<Real> blocks = packed.blocks();
        Tiles<Real> job{kernel, &some, &packed, blocks.data()};
        job.weights = weight;
        job.outputs = outputs;
        job.sums = padded.data();
        job.stride = some.padded();
        run_tiles(job, pool);
      }
      for (Index o = 0; o < outputs; ++o)
        for (Index c = 0; c < here; ++c)
          sums[(g * outputs + o) * stride + first + c] += padded[o * some.padded() + c];
    }
  }
}

template void add_kernel<float>(const KernelFunction&, const DataMatrix&, const std::vector<Index>&,
                                const std::vector<Index>&, const double*, Index, const DataMatrix&,
                                const std::vector<Index>&, double*, Index, ThreadPool&);
template void add_kernel<double>(const KernelFunction&, const DataMatrix&,
                                 const std::vector<Index>&, const std::vector<Index>&,
                                 const double*, Index, const DataMatrix&, const std::vector<Index>&,
                                 double*, Index, ThreadPool&);

}  // namespace pairstep
