#include "row_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "../isa/dispatch.hpp"
#include "subnormals.hpp"

namespace pairstep {

double row_sum(const RowSum& sum, const double* x, double* gradient, double* root, Team& team) {
  constexpr Index PARTS = 64, LEAST_ROWS = 128;  // rows that are worth a thread's while
  const Index m = sum.m, n = sum.n;
  const Index parts = std::clamp(m / LEAST_ROWS, Index(1), PARTS);
  std::vector<double> values(std::size_t(parts), 0.0), gradients(std::size_t(parts * n), 0.0);
  std::atomic<bool> outside = false;
  team.run(parts, [&](Index part) {
    if (outside) return;
    const WithoutSubnormals flush(true);
    values[part] =
        isa().row_sum(sum, x, part * m / parts, (part + 1) * m / parts, &gradients[part * n], root);
    if (!std::isfinite(values[part])) outside = true;
  });
  if (outside) return std::numeric_limits<double>::infinity();
  std::fill_n(gradient, n, 0.0);
  double value = 0.0;
  for (Index part = 0; part < parts; ++part) {
    value += values[part];
    for (Index j = 0; j < n; ++j) gradient[j] += gradients[part * n + j];
  }
  return value;
}

}  // namespace pairstep
