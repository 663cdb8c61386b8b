// Decision functions: support vectors, packed once for sums of kernel values at any number of new
// rows.
#pragma once

#include <atomic>
#include <vector>

#include "kernel_sums.hpp"

namespace pairstep {

// The constant by which centering changes the weighted sums of inner products of `rows` with a
// point, if the weights sum to 0: sum_k weights[k] center'(rows[k] - center).
double center_offset(const DataMatrix& data, const Index* rows, const double* weights, Index count);

// Whether float32 keeps the error of every weighted sum of kernel values within `allowed`. `square`
// is the largest squared norm of a point and `weight` the largest sum of absolute weights.
bool single_suffices(const KernelFunction& kernel, double square, double weight, double allowed);

class SupportVectors {
 public:
  // The data must outlive this object. A linear kernel of centered data requires weights that sum
  // to 0: sums of inner products then depend on the origin only by a constant.
  SupportVectors(const KernelFunction& kernel, DataMatrix data);
  ~SupportVectors();
  SupportVectors(const SupportVectors&) = delete;
  SupportVectors& operator=(const SupportVectors&) = delete;

  Index count() const { return data_.rows; }
  const DataMatrix& data() const { return data_; }

  // Set sums[(r * G + g) * outputs + o] to sum_s weights[o * count + s] k(x_r, support_s) over the
  // support vectors s of group g of G, which begins at groups[g]. Use float32 if that keeps the
  // error within `allowed`. A sum has the same bits for any number of threads. The other rows in X
  // can change its bits only by the choice of float32, which depends on the largest norm, and for a
  // linear kernel by the number of rows, which decides whether support vectors are combined.
  void decide(const double* weights, Index outputs, const std::vector<Index>& groups, DataMatrix X,
              double allowed, double* sums, ThreadPool& pool) const;

 private:
  template <class Real>
  using Packed = std::atomic<const Points<Real>*>;

  // Pack the points on first use. There is no lock, because a process that is forked while another
  // thread holds it would wait for it forever. Two threads may both pack the points; one copy is
  // kept.
  template <class Real>
  const Points<Real>& points(Packed<Real>& packed, const DataMatrix& data) const;

  template <class Real>
  void add(const KernelFunction& kernel, const Points<Real>& support, const double* weights,
           Index outputs, const std::vector<Index>& groups, const DataMatrix& X, double* sums,
           ThreadPool& pool) const;

  void add_offsets(const double* weights, Index outputs, const std::vector<Index>& groups,
                   Index rows, double* sums) const;

  const KernelFunction kernel_;
  const DataMatrix data_;
  DataMatrix uncentered_;  // for distances from differences
  double largest_square_ = 0.0;
  mutable Packed<float> single_ = nullptr;
  mutable Packed<double> double_ = nullptr, for_differences_ = nullptr;
  std::vector<long double> center_products_;  // center'(support_s - center), for a linear kernel
};

}  // namespace pairstep
