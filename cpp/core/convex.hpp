// Whether a quadratic is convex where we look.
#pragma once

#include <vector>

#include "types.hpp"

namespace pairstep {

// Is the quadratic convex along all moves of these accounts, in rising order, that keep the sum of
// each group [starts[k], starts[k+1])? No, but for what rounding does to a singular matrix, or yes.
enum class Convex : int { no, but_for_rounding, yes };
Convex convex_along(const double* hessian, Index n, const std::vector<Index>& index,
                    const Index* starts);

}  // namespace pairstep
