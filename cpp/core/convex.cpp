#include "convex.hpp"

#include <algorithm>
#include <cmath>

#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// The Hessian reduced to the steps e_member[a] - e_first[a], which leave all sums unchanged.
class Reduced {
 public:
  // Entries of `first` that are equal must be adjacent.
  Reduced(const double* hessian, Index n, const std::vector<Index>& member,
          const std::vector<Index>& first);
  bool is_zero() const;
  // Whether the matrix is positive definite after adding `ridge` times the largest curvature of a
  // coordinate to its diagonal.
  bool is_definite(double ridge) const;

 private:
  Index size_;
  double largest_ = 0.0;
  std::vector<double> matrix_;  // lower triangle, stored by columns
};

Reduced::Reduced(const double* hessian, Index n, const std::vector<Index>& member,
                 const std::vector<Index>& first)
    : size_(Index(member.size())), matrix_(std::size_t(size_ * size_)) {
  // Columns with the same reference coordinate are contiguous; `run_end` is where their run ends.
  std::vector<Index> run_end(member.size());
  for (Index b = size_; b-- > 0;)
    run_end[b] = b + 1 < size_ && first[b + 1] == first[b] ? run_end[b + 1] : b + 1;
  for (Index a = 0; a < size_; ++a) {
    const double *of_member = hessian + member[a] * n, *of_first = hessian + first[a] * n;
    double* row = matrix_.data() + a * size_;
    for (Index b = a; b < size_;) {
      // The term that all columns of the run share.
      const double common = of_member[first[b]] - of_first[first[b]];
      for (const Index end = run_end[b]; b < end; ++b)
        row[b] = (of_member[member[b]] - of_first[member[b]]) - common;
    }
    largest_ = std::max({largest_, std::abs(of_member[member[a]]), std::abs(of_first[first[a]]),
                         std::abs(of_member[first[a]])});
  }
}

bool Reduced::is_zero() const {
  for (Index a = 0; a < size_; ++a)
    for (Index b = a; b < size_; ++b)
      if (matrix_[a * size_ + b] != 0) return false;
  return true;
}

bool Reduced::is_definite(double ridge) const {
  std::vector<double> factor = matrix_;
  for (Index a = 0; a < size_; ++a) factor[a * (size_ + 1)] += ridge * largest_;
  return isa().cholesky(factor.data(), size_, size_);
}

}  // namespace

Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const Index* starts) {
  // Basis: e_i - e_r, where r is the first of the given coordinates in i's group.
  std::vector<Index> member, first;
  Index reference = -1, end = 0;
  for (const Index i : index) {
    if (i >= end) {
      while (i >= end) end = *++starts;
      reference = i;
      continue;
    }
    member.push_back(i);
    first.push_back(reference);
  }
  const Reduced reduced(hessian, n, member, first);
  if (reduced.is_zero() || reduced.is_definite(ConvexitySettings::rounding)) return Convex::yes;
  return reduced.is_definite(ConvexitySettings::max_rounding) ? Convex::but_for_rounding
                                                              : Convex::no;
}

}  // namespace pairstep
