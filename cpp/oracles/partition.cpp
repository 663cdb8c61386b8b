#include "partition.hpp"

#include <algorithm>
#include <numeric>

#include "shrinking.hpp"

namespace pairstep {

namespace {

// Movers whose rows are packed at a time. More would need more memory for the packed rows; fewer
// would pass over the gradient more often.
constexpr Index MOVERS_AT_ONCE = 4096;

template <class Real>
class KernelPartition final : public Partition {
 public:
  KernelPartition(const PartitionTask& task, const RowStore& store)
      : task_(task),
        store_(store),
        gradient_({task_.kernel, task_.data, task_.rows, task_.coordinates, task_.linear,
                   task_.cache_bytes, task_.whole},
                  task.point) {
    const Index n = task.point.n;
    const Real* squares = gradient_.first().points.squares();
    sum_of_squares = std::accumulate(squares, squares + n, 0.0);
    largest_square = n > 0 ? double(*std::max_element(squares, squares + n)) : 0.0;
  }

  void introduce(const std::vector<Index>& coordinates, const std::vector<Index>& slots) override {
    coordinate_.insert(coordinate_.end(), coordinates.begin(), coordinates.end());
    slot_.insert(slot_.end(), slots.begin(), slots.end());
    x_.resize(coordinate_.size(), 0.0);
    free_.resize(coordinate_.size(), 0);
  }

  void update_gradient(const std::vector<Index>& movers, const double* x, const bool* free,
                       ThreadPool& pool) override {
    std::vector<double> delta;
    for (std::size_t k = 0; k < movers.size(); ++k) {
      const Index m = movers[k];
      delta.push_back(x[k] - x_[m]);
      x_[m] = x[k];
      free_[m] = free[k];
      gradient_.set_x(coordinate_[m], x[k]);
    }
    const StoredRows stored{store_.data(), slot_};
    for (Index first = 0; first < Index(movers.size()); first += MOVERS_AT_ONCE) {
      const Index last = std::min(first + MOVERS_AT_ONCE, Index(movers.size()));
      gradient_.add_rows(
          stored, {movers.begin() + first, movers.begin() + last}, delta.data() + first,
          Index(coordinate_.size()), [&](Index m) { return free_[m] != 0; }, pool);
    }
  }

  void select_candidates(Index count, bool with_free, Candidates& found) const override {
    gradient_.select_candidates(count, with_free, found);
  }

  Recomputed recompute_gradient(const std::vector<MultiplierInterval>& intervals, double margin,
                                bool restart, ThreadPool& pool) override {
    return gradient_.recompute_near(intervals, margin, restart,
                                    [&](const std::vector<Index>& rows, double* sums) {
                                      add_movers<double>(x_, rows, sums, pool);
                                    });
  }

  std::vector<MultiplierInterval> intervals() const override { return gradient_.intervals(); }

  Index active(const std::vector<MultiplierInterval>& intervals) const override {
    return Index(gradient_.active(intervals).size());
  }

  void shrink(const std::vector<MultiplierInterval>& intervals) override {
    gradient_.shrink(gradient_.active(intervals), x_);
  }

  void unshrink(ThreadPool& pool) override {
    gradient_.unshrink([&](const auto& part, const std::vector<Index>& rows, double* sums) {
      std::vector<double> change = x_;
      for (std::size_t m = 0; m < part.x_before.size(); ++m) change[m] -= part.x_before[m];
      add_movers<Real>(change, rows, sums, pool);
    });
  }

  const double* gradient() const override { return gradient_.first().derivatives.point().gradient; }

 private:
  // The rows of movers, as a source for ShrinkableGradient::add_rows.
  struct StoredRows {
    const DataMatrix& data;
    const std::vector<Index>& slot;

    Points<Real> take(const std::vector<Index>& movers) const {
      std::vector<Index> slots;
      for (const Index m : movers) slots.push_back(slot[m]);
      return Points<Real>(data, slots.data(), Index(slots.size()));
    }
    Points<Real> combine(const std::vector<Index>& movers, const double* weights) const {
      std::vector<Index> all(movers.size());
      std::iota(all.begin(), all.end(), 0);
      return take(movers).combine(all, weights);
    }
  };

  // sums[c] += sum over movers m of weights[m] k(mover m, row rows[c] of the data)
  template <class Value>
  void add_movers(const std::vector<double>& weights, const std::vector<Index>& rows, double* sums,
                  ThreadPool& pool) const {
    std::vector<Index> slots;
    std::vector<double> nonzero;
    for (std::size_t m = 0; m < weights.size(); ++m)
      if (weights[m] != 0) {
        slots.push_back(slot_[m]);
        nonzero.push_back(weights[m]);
      }
    gradient_.template add_sums<Value>(store_.data(), slots, nonzero, rows, sums, pool);
  }

  const PartitionTask task_;
  const RowStore& store_;
  ShrinkableGradient<Real> gradient_;
  std::vector<Index> coordinate_, slot_;  // of each mover, in the whole problem and in the store
  std::vector<double> x_;                 // of each mover
  std::vector<char> free_;                // movers whose kernel rows are cached
};

}  // namespace

std::unique_ptr<Partition> make_partition(const PartitionTask& task, const RowStore& store,
                                          bool single) {
  if (single) return std::make_unique<KernelPartition<float>>(task, store);
  return std::make_unique<KernelPartition<double>>(task, store);
}

}  // namespace pairstep
