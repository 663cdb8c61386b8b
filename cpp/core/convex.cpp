#include "convex.hpp"

#include <algorithm>
#include <cmath>

#include "../isa/dispatch.hpp"

namespace pairstep {

void Reduced::build(const double* hessian, Index n, const std::vector<Index>& member,
                    const std::vector<Index>& first) {
  size_ = Index(member.size());
  largest_ = 0.0;
  matrix_.resize(std::size_t(size_ * size_));
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

bool Reduced::factorize(double ridge) {
  factor_ = matrix_;
  for (Index a = 0; a < size_; ++a) factor_[a * (size_ + 1)] += ridge * largest_;
  return isa().cholesky(factor_.data(), size_, size_);
}

void Reduced::solve(double* b) const {
  // Invert the diagonal first: divisions inside the loops would wait for each other. The backward
  // substitution keeps four partial sums for the same reason.
  std::vector<double> inverse(size_);
  for (Index c = 0; c < size_; ++c) inverse[c] = 1.0 / factor_[c * (size_ + 1)];
  for (Index c = 0; c < size_; ++c) {
    const double* column = factor_.data() + c * size_;
    const double solved = b[c] *= inverse[c];
    for (Index r = c + 1; r < size_; ++r) b[r] -= solved * column[r];
  }
  for (Index c = size_; c-- > 0;) {
    const double* column = factor_.data() + c * size_;
    double parts[4] = {};
    Index r = c + 1;
    for (; r + 4 <= size_; r += 4)
      for (Index k = 0; k < 4; ++k) parts[k] += b[r + k] * column[r + k];
    for (; r < size_; ++r) parts[0] += b[r] * column[r];
    b[c] = (b[c] - ((parts[0] + parts[2]) + (parts[1] + parts[3]))) * inverse[c];
  }
}

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
  Reduced reduced;
  reduced.build(hessian, n, member, first);
  if (reduced.is_zero() || reduced.factorize(ConvexitySettings::rounding)) return Convex::yes;
  return reduced.factorize(ConvexitySettings::max_rounding) ? Convex::but_for_rounding : Convex::no;
}

}  // namespace pairstep
