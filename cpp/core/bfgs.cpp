#include "bfgs.hpp"

#include <cmath>
#include <vector>

#include "inner.hpp"

namespace pairstep {

namespace {

double dot(const double* a, const double* b, Index n) {
  double sum = 0.0;
  times_vector(a, 1, n, b, &sum);
  return sum;
}

}  // namespace

void divide_by_hessian(const Steps& steps, double* direction) {
  const auto [count, n, all_steps, all_changes, along, diagonal] = steps;
  std::vector<double> shares(count);
  for (Index k = count; k-- > 0;) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    shares[k] = dot(step, direction, n) / along[k];
    for (Index i = 0; i < n; ++i) direction[i] -= shares[k] * change[i];
  }
  for (Index i = 0; i < n; ++i) direction[i] /= diagonal[i];
  for (Index k = 0; k < count; ++k) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    const double share = shares[k] - dot(change, direction, n) / along[k];
    for (Index i = 0; i < n; ++i) direction[i] += share * step[i];
  }
}

void factor_hessian(const Steps& steps, double* rows) {
  const auto [count, n, all_steps, all_changes, along, diagonal] = steps;
  std::vector<double> across(2 * count), bent(n);
  for (Index k = 0; k < count; ++k) {
    const double *step = all_steps + k * n, *change = all_changes + k * n;
    double *added = rows + 2 * k * n, *taken = added + n;
    times_vector(rows, 2 * k, n, step, across.data());
    for (Index j = 1; j < 2 * k; j += 2) across[j] = -across[j];
    transposed_times_vector(rows, 2 * k, n, across.data(), bent.data());
    for (Index i = 0; i < n; ++i) bent[i] += diagonal[i] * step[i];
    const double change_root = std::sqrt(along[k]),
                 bent_root = std::sqrt(dot(step, bent.data(), n));
    for (Index i = 0; i < n; ++i) {
      added[i] = change[i] / change_root;
      taken[i] = bent[i] / bent_root;
    }
  }
}

}  // namespace pairstep
