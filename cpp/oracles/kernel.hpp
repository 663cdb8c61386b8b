// Kernel machines: the Hessian is a kernel matrix over rows of data, computed tile by tile when it
// is needed and never held as a whole.
#pragma once

#include <memory>
#include <vector>

#include "kernel_block.hpp"
#include "prices.hpp"
#include "row_cache.hpp"

namespace pairstep {

// min z'Kz/2 + linear'z + sum kink |z| over some rows of the data.
struct KernelDual {
  DataMatrix data;
  KernelFunction kernel;
  const Index* rows;  // of each account
  const double* linear;
  double tol;
  std::size_t cache_bytes;  // for kernel rows
};

template <class Real>
class KernelOracle final : public LocalOracle {
 public:
  KernelOracle(const KernelDual& dual, const Point& point, Team& team);

  void survey(Index count, bool with_free, Survey& found) override;
  void block(const std::vector<Index>& members, bool exact, double* hessian) override;
  void advance(const std::vector<Index>& moved, const std::vector<double>& delta) override;
  void verify() override;
  Index shrink(const std::vector<Market>& markets) override;
  void unshrink() override;

  const double* gradient() { return levels_.front()->prices.gradient(); }

 private:
  static constexpr Index PANEL = Points<Real>::PANEL;

  // The whole problem, or the part that a shrinking has left of the level above.
  struct Level {
    std::vector<Index> account;  // in the whole, in rising order; empty: all of them
    std::vector<Index> parent;   // in the level above
    Points<Real> points;
    Prices prices;
    RowCache<Real> cache;
    std::vector<double> x_before;  // where the accounts were when the level began

    Index in_whole(Index p) const { return account.empty() ? p : account[p]; }
    Index place(Index i) const;
  };

  Level& level() { return *levels_.back(); }
  std::vector<Index> rows_of(const std::vector<Index>& accounts) const;
  // Row by row of the kernel matrix: sums[c] += sum_k weights[k] K(rows[k], columns[c]).
  template <class Value>
  void add(const std::vector<Index>& rows, const std::vector<double>& weights,
           const std::vector<Index>& columns, double* sums);

  const KernelDual dual_;
  Arena arena_;  // shared by the caches of all levels: only the deepest one is in use
  std::vector<std::unique_ptr<Level>> levels_;
  double rounding_ = 0.0;        // of one kernel value, at most
  double usual_rounding_ = 0.0;  // between points of the usual size: outliers are few
};

}  // namespace pairstep
