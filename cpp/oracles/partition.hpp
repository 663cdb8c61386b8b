// A partition of a distributed kernel SVM dual: the gradient of the variables whose rows are in
// this process. The partitions together implement the oracle of the block solver; see
// pairstep.dask.
//
// A variable of any partition becomes a mover when it changes for the first time. Movers are
// numbered in the same order on all partitions, and every partition stores copies of their rows.
#pragma once

#include <memory>
#include <vector>

#include "derivatives.hpp"
#include "row_store.hpp"

namespace pairstep {

struct PartitionTask {
  KernelFunction kernel;
  DataMatrix data;           // the rows of this partition
  const Index* coordinates;  // numbers of its variables in the whole problem, ascending
  const Index* rows;         // of the data, one per variable
  const double* linear;
  Point point;              // of the variables of this partition, all 0 at the start
  Index whole;              // number of variables of the whole problem
  std::size_t cache_bytes;  // for kernel rows
};

class Partition {
 public:
  virtual ~Partition() = default;

  // Add movers with x = 0: their numbers in the whole problem and their rows in the store.
  virtual void introduce(const std::vector<Index>& coordinates,
                         const std::vector<Index>& slots) = 0;
  // Set x of these movers and update the gradient. Kernel rows are cached if the mover is `free`.
  virtual void update_gradient(const std::vector<Index>& movers, const double* x, const bool* free,
                               ThreadPool& pool) = 0;
  virtual void select_candidates(Index count, bool with_free, Candidates& found) const = 0;
  // Recompute in float64 the gradient of variables whose derivatives are within `margin` of the
  // intervals of the whole problem, except those recomputed since the last `restart`.
  virtual Recomputed recompute_gradient(const std::vector<MultiplierInterval>& intervals,
                                        double margin, bool restart, ThreadPool& pool) = 0;
  // The multiplier interval of each group, from the variables of this partition.
  virtual std::vector<MultiplierInterval> intervals() const = 0;
  // The number of variables that `shrink` would leave.
  virtual Index active(const std::vector<MultiplierInterval>& intervals) const = 0;
  // As Oracle::shrink and Oracle::unshrink, with the intervals of the whole problem.
  virtual void shrink(const std::vector<MultiplierInterval>& intervals) = 0;
  virtual void unshrink(ThreadPool& pool) = 0;

  virtual const double* gradient() const = 0;

  double largest_square = 0.0, sum_of_squares = 0.0;  // largest and sum of squared norms of points
};

// Make a partition with kernel values in float32 (`single`) or float64. The store must outlive it.
std::unique_ptr<Partition> make_partition(const PartitionTask& task, const RowStore& store,
                                          bool single);

}  // namespace pairstep
