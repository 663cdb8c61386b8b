// Weighted sums of kernel values, which give gradients and decision functions. They are computed in
// tiles by all threads; the kernel matrix is never stored.
#pragma once

#include <vector>

#include "points.hpp"
#include "../core/thread_pool.hpp"

namespace pairstep {

// Call work(first, last) for ranges of panels that stay in the cache, on all threads.
template <class Real, class Work>
void over_panels(const Points<Real>& columns, ThreadPool& pool, const Work& work) {
  const Index panels = columns.panels();
  // More parts balance the load better if a thread is delayed, but each part reads all queries.
  constexpr Index PARTS_PER_THREAD = 4;
  const Index fair = panels / (PARTS_PER_THREAD * pool.size()) + 1;
  const Index at_once = std::min(columns.panels_at_once(), fair);
  pool.run((panels + at_once - 1) / at_once,
           [&](Index part) { work(part * at_once, std::min((part + 1) * at_once, panels)); });
}

template <class Real>
void run_tiles(const Tiles<Real>& job, ThreadPool& pool) {
  over_panels(*job.columns, pool,
              [&](Index first, Index last) { isa().of<Real>().tiles(job, first, last); });
}

// For each group g of queries, which begins at starts[g], add
//   sums[(g * outputs + o) * stride + c] += sum_r weights[r * outputs + o] k(query_r, column_c)
// over the queries r of the group, in Real arithmetic. For a precomputed kernel, k(query_r,
// column_c) is entry queries[r] of row columns[c] of `column_data`.
template <class Real>
void add_kernel(const KernelFunction& kernel, const DataMatrix& query_data,
                const std::vector<Index>& queries, const std::vector<Index>& starts,
                const double* weights, Index outputs, const DataMatrix& column_data,
                const std::vector<Index>& columns, double* sums, Index stride, ThreadPool& pool);

}  // namespace pairstep
