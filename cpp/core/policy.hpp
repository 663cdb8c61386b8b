// Numerical policy: the thresholds that decide when a solve may stop and when a difference counts
// as rounding error. The native solvers use these values, and Python reads the tolerances as
// `_core.NumericalPolicy`, so that a point which one part of the library accepts as optimal is not
// rejected by another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace pairstep {

struct NumericalPolicy {
  // Largest improvement of the objective that an optimal point may leave within reach, in units of
  // `tol` times the size of the objective. The KKT violation alone does not suffice: it is relative
  // to the derivatives, so one huge derivative could hide the improvement that other variables
  // still offer. A smaller value makes solves longer without changing the violation they report.
  static constexpr double gain_per_tol = 100.0;

  // Rounding error of a derivative, relative to the terms that cancel in it. This is 45 times the
  // machine epsilon: the error of a sum grows with the root of the number of its terms, so this
  // covers sums of about 2000 products.
  static constexpr double gradient_rounding = 1e-14;

  // A difference of two numbers counts as zero if it is below this fraction of their size. The
  // sums of x are exact only within an ulp of the largest variable, so single ulps mean nothing.
  static constexpr double sum_rounding = 8.0 * std::numeric_limits<double>::epsilon();

  // The terms of the gradient may all vanish at the optimum, and a tolerance relative to them would
  // vanish too. The scale therefore counts as at least this fraction of the scale at the start. A
  // larger value would accept less accurate solutions of such problems. A smaller one would bring
  // the tolerance close to the rounding error of the gradient.
  static constexpr double vanishing_scale = 1e-6;

  // Consecutive iterations in which neither the objective nor the violation decreases, after which
  // the coordinate-descent solver gives up: a constant plus a multiple of the number of variables,
  // so that every variable has a few chances to take part in a step. Larger values spend more time
  // on solves that have stalled. Smaller ones may give up during a slow phase.
  static constexpr std::int64_t base_patience = 1000;
  static constexpr std::int64_t patience_per_variable = 10;

  static constexpr std::int64_t patience(std::int64_t n) {
    return base_patience + patience_per_variable * n;
  }

  // Largest KKT violation of an optimal point, relative to the current scale of the gradient's
  // terms, or to `vanishing_scale` times their scale at the start if that is larger.
  static constexpr double violation_tolerance(double tol, double scale, double first_scale) {
    return tol * std::max(scale, vanishing_scale * first_scale);
  }
};

}  // namespace pairstep
