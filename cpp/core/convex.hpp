// Whether a quadratic is convex where we look, and its minimum along moves that keep sums.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

// A quadratic as a function of the amounts that move from account first[a] to account member[a].
class Reduced {
 public:
  void take(const double* hessian, Index n, const std::vector<Index>& member,
            const std::vector<Index>& first);
  bool is_zero() const;
  // With this share of the largest curvature of an account added to the diagonal. False if the
  // matrix is not positive definite.
  bool factorise(double ridge);
  // b := matrix^-1 b.
  void solve(double* b) const;

 private:
  Index size_ = 0;
  double largest_ = 0.0;
  std::vector<double> matrix_, factor_;  // the lower triangles, by columns
};

// What rounding may take from a curvature of 0, as a share of the curvatures it is the rest of.
constexpr double ROUNDED_CURVATURE = 1e-14;

// Is the quadratic convex along all moves of these accounts, in rising order, that keep the sum of
// each group [starts[k], starts[k+1])? No, but for what rounding does to a singular matrix, or yes.
enum class Convex : int { no, but_for_rounding, yes };
Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const Index* starts);

}  // namespace pairstep
