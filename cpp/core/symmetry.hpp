// Checks of a matrix that should be a Hessian: symmetry, finiteness and curvature of pairs.
#pragma once

#include "interrupt.hpp"
#include "types.hpp"

namespace pairstep {

// Return the largest |M_ij - M_ji| and its position, the largest |M_ij| (NaN if an entry is not
// finite), and the smallest M_ii + M_jj - 2 M_ij; if that is negative, the quadratic is not convex
// along a pair step. One parallel pass over the matrix.
template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n, int threads, InterruptCheck& interrupt);

}  // namespace pairstep
