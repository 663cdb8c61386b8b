// Kernel functions and bounds on the rounding errors of their values.
#pragma once

#include <cmath>
#include <limits>

namespace pairstep {

// `squared_distance` is not a kernel; its exponential is `rbf`.
enum class KernelName : int { linear, poly, rbf, sigmoid, precomputed, squared_distance };

struct KernelFunction {
  KernelName name;
  double gamma, coef0;
  int degree;
  // Whether squared distances are computed as sums of squared differences, in float64. Otherwise
  // they are |x|^2 + |y|^2 - 2 x'y, which is faster but has the rounding error of the norms.
  bool differences = false;
};

// k(x, x) for a point with this squared norm.
inline double kernel_of_itself(const KernelFunction& kernel, double square) {
  switch (kernel.name) {
    case KernelName::rbf: return 1.0;
    case KernelName::sigmoid: return std::tanh(kernel.gamma * square + kernel.coef0);
    case KernelName::poly: return std::pow(kernel.gamma * square + kernel.coef0, kernel.degree);
    default: return square;
  }
}

// Bounds on the rounding error of a kernel value in Real arithmetic and on its absolute value, for
// points with squared norms of at most `square`.
struct KernelBounds {
  double error, largest;
};
template <class Real>
KernelBounds kernel_bounds(const KernelFunction& kernel, double square) {
  // Relative rounding error of the operations on a value: a few times the machine epsilon.
  const double relative_error = 4.0 * double(std::numeric_limits<Real>::epsilon());
  // Products that underflow have an absolute error that does not shrink with the points.
  const double size = square + double(std::numeric_limits<Real>::min()) / relative_error;
  const double gamma = std::abs(kernel.gamma), coef0 = std::abs(kernel.coef0);
  switch (kernel.name) {
    case KernelName::rbf:
      if (kernel.differences) return {relative_error, 1.0};
      return {relative_error * (1.0 + gamma * size), 1.0};
    case KernelName::sigmoid: return {relative_error * (1.0 + gamma * size + coef0), 1.0};
    case KernelName::linear: return {relative_error * size, square};
    case KernelName::poly:
      return {
          relative_error * (1.0 + kernel.degree) * std::pow(gamma * size + coef0, kernel.degree),
          std::pow(gamma * square + coef0, kernel.degree)};
    default: return {0.0, 1.0};
  }
}

// Whether the rounding of squared norms of at most `square` could cause an error of more than
// `allowed` in a weighted sum of kernel values that differences would avoid. `weight` is the sum of
// the absolute weights.
inline bool needs_differences(const KernelFunction& kernel, double square, double weight,
                              double allowed) {
  // Limit on gamma times a squared norm. Up to it, differences would reduce the bound on the error
  // by less than a factor of ten (see kernel_bounds), which is not worth their cost.
  constexpr double MAX_SCALED_SQUARE = 8.0;
  return kernel.name == KernelName::rbf &&
         !(std::abs(kernel.gamma) * square <= MAX_SCALED_SQUARE) &&
         !(kernel_bounds<double>(kernel, square).error * weight <= allowed);
}

// Whether no intermediate result of a kernel value overflows in float32.
inline bool fits_single(const KernelFunction& kernel, double square) {
  // The largest float32 is 3e38. The rest is a margin for sums and products with small factors.
  constexpr double MAX_SINGLE = 1e30;
  return !kernel.differences && square < MAX_SINGLE && std::abs(kernel.gamma) < MAX_SINGLE &&
         std::abs(kernel.coef0) < MAX_SINGLE &&
         kernel_bounds<float>(kernel, square).largest < MAX_SINGLE;
}

// Whether kernel values in float32 are accurate to about four digits, which suffices to begin a
// solve with them.
inline bool single_will_do(const KernelFunction& kernel, double square) {
  if (kernel.name == KernelName::precomputed) return false;
  constexpr double MAX_RELATIVE_ERROR = 1e-4;
  const KernelBounds values = kernel_bounds<float>(kernel, square);
  return fits_single(kernel, square) && values.error <= MAX_RELATIVE_ERROR * values.largest;
}

}  // namespace pairstep
