// Whether a quadratic is convex where we look.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace pairstep {

// Is the quadratic convex along all moves of these accounts (members of a group side by side) that
// keep the sum of each group? No, but for what rounding does to a singular matrix, or yes.
enum class Convex : int { no, but_for_rounding, yes };
Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const std::vector<Index>& group);

}  // namespace pairstep
