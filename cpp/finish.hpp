// The finish: Newton's method on the face of free variables. It turns the slow linear tail of
// coordinate descent into a few factorisations.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace pairstep {

// The free accounts of a point: prices, how far each may go, and the group it belongs to
// (members of a group side by side, groups in rising order).
struct Face {
  std::vector<Index> index, group;
  std::vector<double> price, down_room, up_room;

  Index size() const { return Index(index.size()); }
};

// Roughly how many multiplications one Newton step on k of n free accounts costs, in units of the
// greedy gear's vector passes (a factorisation runs at several times their rate).
inline double cost_of_newton(double k, double n) { return k * k * k / 24.0 + k * k + k * n; }

// Minimise the quadratic on the face, each group's sum fixed; accounts that meet a room stay there
// and the rest goes on. `delta` is within the rooms (exactly a room where one is met). Returns by
// how much the objective falls; 0 means that the face has nothing to give. `work` grows by the
// cost of what was done.
double newton_on_face(const double* hessian, Index n, const Face& face, std::vector<double>& delta,
                      double& work);

// Is the quadratic convex along all moves of these accounts (grouped as in a Face) that keep the
// sum of each group? No, but for what rounding does to a singular matrix, or yes.
enum class Convex : int { no, but_for_rounding, yes };
Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const std::vector<Index>& group);

}  // namespace pairstep
