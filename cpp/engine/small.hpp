// Small dense quadratic programs, x'Qx/2 + c'x with one sum and bounds, solved in a single call,
// because several calls from Python would take longer than the solve itself.
#pragma once

#include <optional>
#include <vector>

#include "../core/certify.hpp"
#include "../core/types.hpp"

namespace pairstep {

struct Small {
  const double* hessian;  // n x n
  const double *linear, *lower, *upper;
  Index n;
  double total, tol;
};

struct SmallAnswer {
  std::vector<double> x, gradient;
  double value, tolerance;
  Certificate certificate;
  Index iterations;
};

// The largest n for solve_small, which checks the convexity of the whole of Q in O(n^3). For larger
// problems this check may take longer than the solve.
constexpr Index MAX_SMALL_VARIABLES = 300;

// Return the optimum if it is found and verified. Return nothing for every problem that needs more
// work or a message: numbers that are not finite or very large, a Q that is not exactly symmetric
// or not convex, infeasible bounds, slow convergence.
std::optional<SmallAnswer> solve_small(const Small& problem);

}  // namespace pairstep
