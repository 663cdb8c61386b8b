// Oracle for kernel SVM duals. The Hessian is a kernel matrix over rows of data. Its values are
// computed in tiles when they are needed and never stored as a whole.
#pragma once

#include <memory>
#include <vector>

#include "kernel_block.hpp"
#include "shrinking.hpp"

namespace pairstep {

// min z'Kz/2 + linear'z + sum l1 |z| over some rows of the data.
struct KernelDual {
  DataMatrix data;
  KernelFunction kernel;
  const Index* rows;  // one per variable
  const double* linear;
  double tol;
  std::size_t cache_bytes;  // for kernel rows
  Arena* memory = nullptr;  // reused for kernel rows; may be null
};

// Real is the type of kernel values and cached rows; the gradient is always in float64.
template <class Real>
class KernelOracle final : public LocalOracle {
 public:
  // `known` is the gradient at x, or null.
  KernelOracle(const KernelDual& dual, const Point& point, ThreadPool& pool,
               const double* known = nullptr);

  void select_candidates(Index count, bool with_free, Candidates& found) override;
  void block(const std::vector<Index>& members, bool exact, double* hessian) override;
  void update_gradient(const std::vector<Index>& moved, const std::vector<double>& delta) override;
  void recompute_gradient() override;
  Index shrink(const std::vector<MultiplierInterval>& intervals) override;
  void unshrink() override;

  // Take pair steps on all variables at once, in float32, until the violation is at most
  // `threshold` or its rounding error (isa/single_steps.hpp). Kernel rows are computed when they
  // are first needed, and kept. There must be one group, and the cache must have room for all rows.
  // Returns the number of steps. Only for float32.
  Index take_single_steps(double threshold, Index max_iter);

  const double* gradient() { return gradient_.first().derivatives.gradient(); }

 private:
  using Level = typename ShrinkableGradient<Real>::Level;

  std::vector<Index> rows_of(const std::vector<Index>& coordinates) const;

  const KernelDual dual_;
  const Point whole_;  // points to the solver's x; its gradient is not used
  ShrinkableGradient<Real> gradient_;
  std::unique_ptr<const Noise> noise_;  // of float64
  double rounding_ = 0.0;               // bound on the rounding error of a kernel value
  double usual_rounding_ = 0.0;         // the same for points of average norm, without outliers
};

}  // namespace pairstep
