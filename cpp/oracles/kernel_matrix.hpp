// The kernel matrix of some rows of the data as a whole: for problems of which it is a small part
// of the work, or that share most of it. Values are computed in float64 and kept as Real; those of
// a precomputed kernel are laid side by side in the order of the rows.
#pragma once

#include <vector>

#include "kernel_sums.hpp"
#include "row_cache.hpp"

namespace pairstep {

template <class Real>
class KernelMatrix {
 public:
  KernelMatrix(const KernelFunction& kernel, const DataMatrix& data, const std::vector<Index>& rows,
               Team& team);

  // As a matrix at hand, in the order of the rows that it was made of. It has a few columns more
  // than rows.
  DataMatrix matrix() const;

  static std::size_t bytes(Index rows);

 private:
  Index count_;
  Arena arena_;
};

}  // namespace pairstep
