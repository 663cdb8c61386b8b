// Sums of kernel values for the decisions of many duals on the same samples. The pairs of many
// classes share their rows, so a block of kernel values is read once for all duals and all C, and
// their sums are a matrix product.
#pragma once

#include <span>
#include <vector>

#include "../core/thread_pool.hpp"
#include "svm.hpp"

namespace pairstep {

// For each chain and each C that was solved, set sums[j] = sum_i z_i matrix(row i, columns[j]). If
// the pool is stopped, some sums are not set.
void compute_sums(const DataMatrix& matrix, std::span<const Index> columns,
                  std::vector<DualChain>& chains, ThreadPool& pool);

}  // namespace pairstep
