// The whole kernel matrix of some rows of the data, for duals that share most of it or for which it
// is a small part of the work. Values are computed in float64 and stored as Real. The values of a
// precomputed kernel are copied, so that they are contiguous in the order of the rows.
#pragma once

#include <vector>

#include "kernel_sums.hpp"
#include "row_cache.hpp"

namespace pairstep {

template <class Real>
class KernelMatrix {
 public:
  KernelMatrix(const KernelFunction& kernel, const DataMatrix& data, const std::vector<Index>& rows,
               ThreadPool& pool);

  // The result as a dense matrix, in the order of `rows`. It has a few unused columns at the end,
  // because tiles write whole panels.
  DataMatrix matrix() const;

  static std::size_t bytes(Index rows);

 private:
  Index count_;
  Arena arena_;
};

}  // namespace pairstep
