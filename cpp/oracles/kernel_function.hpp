// A kernel function, and how far its values can be trusted.
#pragma once

#include <cmath>
#include <limits>

namespace pairstep {

// `squared_distance` is no kernel, but what `rbf` is an exponential of.
enum class KernelName : int { linear, poly, rbf, sigmoid, precomputed, squared_distance };

struct KernelFunction {
  KernelName name;
  double gamma, coef0;
  int degree;
};

// How far off a kernel value may be by rounding in Real arithmetic, and how large it may be, for
// points whose squared norms are at most `square`.
struct Reach {
  double error, largest;
};
template <class Real>
Reach reach(const KernelFunction& kernel, double square) {
  const double grain = 4.0 * double(std::numeric_limits<Real>::epsilon());
  // Products that underflow are off by their own size, however small the points are.
  const double size = square + double(std::numeric_limits<Real>::min()) / grain;
  const double gamma = std::abs(kernel.gamma), coef0 = std::abs(kernel.coef0);
  switch (kernel.name) {
    case KernelName::rbf: return {grain * (1.0 + gamma * size), 1.0};
    case KernelName::sigmoid: return {grain * (1.0 + gamma * size + coef0), 1.0};
    case KernelName::linear: return {grain * size, square};
    case KernelName::poly:
      return {grain * (1.0 + kernel.degree) * std::pow(gamma * size + coef0, kernel.degree),
              std::pow(gamma * square + coef0, kernel.degree)};
    default: return {0.0, 1.0};
  }
}

// Whether float32 can hold the numbers on the way to a kernel value.
inline bool fits_single(const KernelFunction& kernel, double square) {
  constexpr double LARGEST = 1e30;
  return square < LARGEST && std::abs(kernel.gamma) < LARGEST && std::abs(kernel.coef0) < LARGEST &&
         reach<float>(kernel, square).largest < LARGEST;
}

// Whether kernel values in float32 keep enough digits to be worth a start.
inline bool single_will_do(const KernelFunction& kernel, double square) {
  if (kernel.name == KernelName::precomputed) return false;
  const Reach values = reach<float>(kernel, square);
  return fits_single(kernel, square) && values.error <= 1e-4 * values.largest;
}

}  // namespace pairstep
