#include "kernel_sums.hpp"

#include <algorithm>
#include <numeric>

namespace pairstep {

namespace {

// sum_k weights[k] row[who[k]], in parts that need not wait for each other.
template <class Entry>
double sum_of(const Entry* row, const Index* who, const double* weights, Index count) {
  double parts[4] = {};
  Index k = 0;
  for (; k + 4 <= count; k += 4)
    for (Index p = 0; p < 4; ++p) parts[p] += weights[k + p] * double(row[who[k + p]]);
  for (; k < count; ++k) parts[0] += weights[k] * double(row[who[k]]);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

}  // namespace

template <class Real>
void add_kernel(const KernelFunction& kernel, const DataMatrix& query_data,
                const std::vector<Index>& queries, const std::vector<Index>& starts,
                const double* weights, Index outputs, const DataMatrix& column_data,
                const std::vector<Index>& columns, double* sums, Index stride, Team& team) {
  if (queries.empty() || columns.empty()) return;
  const Index groups = Index(starts.size()) - 1;
  if (kernel.name == KernelName::precomputed) {
    column_data.for_dense([&](const auto* entries) {
      team.run(Index(columns.size()), [&](Index c) {
        const auto* row = entries + columns[c] * column_data.features;
        std::vector<double> sum(std::size_t(outputs), 0.0);
        for (Index g = 0; g < groups; ++g) {
          if (outputs == 1) {
            sums[g * stride + c] += sum_of(row, queries.data() + starts[g], weights + starts[g],
                                           starts[g + 1] - starts[g]);
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
  constexpr Index AT_ONCE = 4096;  // bounds the memory of the packed points
  std::vector<double> padded;
  for (Index first = 0; first < Index(columns.size()); first += AT_ONCE * 4) {
    const Index here = std::min(AT_ONCE * 4, Index(columns.size()) - first);
    const Points<Real> some(column_data, columns.data() + first, here);
    for (Index g = 0; g < groups; ++g) {
      padded.assign(outputs * some.padded(), 0.0);
      for (Index q = starts[g]; q < starts[g + 1]; q += AT_ONCE) {
        const Index count = std::min(AT_ONCE, starts[g + 1] - q);
        Points<Real> asked(query_data, queries.data() + q, count);
        const double* weight = weights + q * outputs;
        const double one = 1.0;
        if (kernel.name == KernelName::linear && outputs == 1) {
          std::vector<Index> all(count);
          std::iota(all.begin(), all.end(), 0);
          asked = asked.combine(all, weight);
          weight = &one;
        }
        const std::vector<Real> blocks = asked.blocks();
        Tiles<Real> job{kernel, &some, &asked, blocks.data()};
        job.weights = weight;
        job.outputs = outputs;
        job.sums = padded.data();
        job.stride = some.padded();
        run_tiles(job, team);
      }
      for (Index o = 0; o < outputs; ++o)
        for (Index c = 0; c < here; ++c)
          sums[(g * outputs + o) * stride + first + c] += padded[o * some.padded() + c];
    }
  }
}

template void add_kernel<float>(const KernelFunction&, const DataMatrix&, const std::vector<Index>&,
                                const std::vector<Index>&, const double*, Index, const DataMatrix&,
                                const std::vector<Index>&, double*, Index, Team&);
template void add_kernel<double>(const KernelFunction&, const DataMatrix&,
                                 const std::vector<Index>&, const std::vector<Index>&,
                                 const double*, Index, const DataMatrix&, const std::vector<Index>&,
                                 double*, Index, Team&);

}  // namespace pairstep
