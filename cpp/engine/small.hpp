// A small dense quadratic, x'Qx/2 + c'x with one sum and bounds, from its numbers to the verdict in
// one call: such a problem is solved in less time than a few calls from Python take.
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

// The largest n: up to it the whole of Q is checked for convexity.
constexpr Index SMALL = 300;

// The optimum, where it is plain that this is one. Nothing for whatever needs a closer look or a
// message: numbers that are odd, a Q that is not quite symmetric or convex, a solve that is long.
std::optional<SmallAnswer> solve_small(const Small& problem);

}  // namespace pairstep
