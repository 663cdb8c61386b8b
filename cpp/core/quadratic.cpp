#include "quadratic.hpp"

#include "../isa/dispatch.hpp"

namespace pairstep {

double quadratic(const double* Q, const double* c, Index n, const double* x, double* gradient) {
  isa().times(Q, x, n, gradient);
  double value = 0.0;
  for (Index i = 0; i < n; ++i) {
    value += x[i] * (0.5 * gradient[i] + c[i]);
    gradient[i] += c[i];
  }
  return value;
}

}  // namespace pairstep
