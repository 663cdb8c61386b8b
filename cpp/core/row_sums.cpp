#include "row_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "../isa/dispatch.hpp"
#include "subnormals.hpp"

namespace pairstep {

double row_sum(const RowSum& sum, const double* x, double* gradient, double* root,
               DerivativeSizes& sizes, ThreadPool& pool) {
  // The parts do not depend on the number of threads, so the bits of the result do not either. Each
  // part has a separate gradient, so more parts need more memory and more additions. Parts with
  // fewer rows would be too little work for a job.
  constexpr Index MAX_PARTS = 64, MIN_ROWS_PER_PART = 128;
  const Index m = sum.m, n = sum.n;
  const Index parts = std::clamp(m / MIN_ROWS_PER_PART, Index(1), MAX_PARTS);
  std::vector<double> values(std::size_t(parts), 0.0), gradients(std::size_t(parts * n), 0.0);
  std::vector<DerivativeSizes> sizes_of(static_cast<std::size_t>(parts));
  std::atomic<bool> is_infinite = false;
  pool.run(parts, [&](Index part) {
    if (is_infinite) return;
    const WithoutSubnormals flush(true);
    values[part] = isa().row_sum(sum, x, part * m / parts, (part + 1) * m / parts,
                                 &gradients[part * n], root, sizes_of[part]);
    if (!std::isfinite(values[part])) is_infinite = true;
  });
  if (is_infinite) return std::numeric_limits<double>::infinity();
  std::fill_n(gradient, n, 0.0);
  double value = 0.0;
  for (Index part = 0; part < parts; ++part) {
    value += values[part];
    sizes.include(sizes_of[part]);
    for (Index j = 0; j < n; ++j) gradient[j] += gradients[part * n + j];
  }
  return value;
}

}  // namespace pairstep
