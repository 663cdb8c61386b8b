#include "convex.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../isa/dispatch.hpp"

namespace pairstep {

Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const Index* starts) {
  // The basis e_i - e_r, r the first account of i's group.
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
  const Index size = Index(member.size());
  if (size == 0) return Convex::yes;
  std::vector<double> reduced(std::size_t(size) * size);
  double largest = 0.0;
  for (Index a = 0; a < size; ++a) {
    const double *of_member = hessian + member[a] * n, *of_first = hessian + first[a] * n;
    for (Index b = a; b < size; ++b)  // the lower triangle, by columns
      reduced[a * size + b] =
          of_member[member[b]] - of_member[first[b]] - of_first[member[b]] + of_first[first[b]];
    largest = std::max({largest, std::abs(of_member[member[a]]), std::abs(of_first[first[a]])});
  }
  if (std::all_of(reduced.begin(), reduced.end(), [](double v) { return v == 0; }))
    return Convex::yes;
  for (const auto& [ridge, verdict] :
       {std::pair{1e-14, Convex::yes}, std::pair{1e-9, Convex::but_for_rounding}}) {
    std::vector<double> factor = reduced;
    for (Index a = 0; a < size; ++a) factor[a * size + a] += ridge * largest;
    if (isa().cholesky(factor.data(), size, size)) return verdict;
  }
  return Convex::no;
}

}  // namespace pairstep
