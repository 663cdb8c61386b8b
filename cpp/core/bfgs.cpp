#include "bfgs.hpp"

#include <cmath>
#include <vector>

#include "inner.hpp"

namespace pairstep {

void divide_by_hessian(const Steps& steps, double* direction) {
  const auto [count, n, all_steps, all_changes, along, diagonal] = steps;
  std::vector<double> coefficients(count);
  for (Index k = count; k-- > 0;) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    coefficients[k] = dot(step, direction, n) / along[k];
    for (Index i = 0; i < n; ++i) direction[i] -= coefficients[k] * change[i];
  }
  for (Index i = 0; i < n; ++i) direction[i] /= diagonal[i];
  for (Index k = 0; k < count; ++k) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    const double coefficient = coefficients[k] - dot(change, direction, n) / along[k];
    for (Index i = 0; i < n; ++i) direction[i] += coefficient * step[i];
  }
}

void factor_hessian(const Steps& steps, double* rows) {
  const auto [count, n, all_steps, all_changes, along, diagonal] = steps;
  std::vector<double> projection(2 * count), product(n);  // F s, and B s
  for (Index k = 0; k < count; ++k) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    double *positive = rows + 2 * k * n, *negative = positive + n;
    times_vector(rows, 2 * k, n, step, projection.data());
    for (Index j = 1; j < 2 * k; j += 2) projection[j] = -projection[j];
    transposed_times_vector(rows, 2 * k, n, projection.data(), product.data());
    for (Index i = 0; i < n; ++i) product[i] += diagonal[i] * step[i];
    const double change_root = std::sqrt(along[k]),
                 product_root = std::sqrt(dot(step, product.data(), n));
    for (Index i = 0; i < n; ++i) {
      positive[i] = change[i] / change_root;
      negative[i] = product[i] / product_root;
    }
  }
}

}  // namespace pairstep
