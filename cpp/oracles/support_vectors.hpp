// Support vectors, laid out once for the decisions on any number of new rows.
#pragma once

#include <atomic>
#include <vector>

#include "kernel_sums.hpp"

namespace pairstep {

// Whether float32 keeps the error of every sum of kernel values of points of this squared norm
// within `allowed`; `weight` is the largest sum of the sizes of weights.
bool single_suffices(const KernelFunction& kernel, double square, double weight, double allowed);

class SupportVectors {
 public:
  // The data must stay where they are.
  SupportVectors(const KernelFunction& kernel, DataMatrix data);
  ~SupportVectors();
  SupportVectors(const SupportVectors&) = delete;
  SupportVectors& operator=(const SupportVectors&) = delete;

  Index count() const { return data_.rows; }
  const DataMatrix& data() const { return data_; }

  // sums[(g * outputs + o) * X.rows + r] += sum_s weights[o * count + s] k(x_r, support_s) over the
  // support vectors of group g, which begins at groups[g]; in float32 where that keeps their error
  // within `allowed`. Neither the other rows nor the threads change the bits of a sum.
  void decide(const double* weights, Index outputs, const std::vector<Index>& groups, DataMatrix X,
              double allowed, double* sums, Team& team) const;

 private:
  template <class Real>
  using Kept = std::atomic<const Points<Real>*>;

  // Without a lock, which a process forked meanwhile would wait for: threads may both lay them out.
  template <class Real>
  const Points<Real>& points(Kept<Real>& kept) const;

  template <class Real>
  void add(const Points<Real>& support, const double* weights, Index outputs,
           const std::vector<Index>& groups, const DataMatrix& X, double* sums, Team& team) const;

  const KernelFunction kernel_;
  const DataMatrix data_;
  double largest_square_ = 0.0;
  mutable Kept<float> single_ = nullptr;
  mutable Kept<double> double_ = nullptr;
};

}  // namespace pairstep
