// How far a matrix is from being symmetric.
#pragma once

#include "pulse.hpp"
#include "types.hpp"

namespace pairstep {

// The largest |M_ij - M_ji| and where, the largest |M_ij| (NaN where an entry is not finite), and
// the least M_ii + M_jj - 2 M_ij: below 0 the quadratic is not convex. One pass, by a team.
template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n, int threads, Pulse& pulse);

}  // namespace pairstep
