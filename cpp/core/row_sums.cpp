#include "row_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "inner.hpp"
#include "../isa/dispatch.hpp"
#include "subnormals.hpp"

namespace pairstep {

namespace {

// A function of one number and its derivatives; the second as its root, which neither over- nor
// underflows where the numbers of a row are tiny.
struct Jet {
  double value, slope, root;
};

Jet minus_log(double u) {
  if (!(u > 0)) return {std::numeric_limits<double>::infinity(), 0.0, 0.0};
  return {-std::log(u), -1 / u, 1 / u};
}

Jet logistic(double u) {
  const double small = std::exp(-std::abs(u)), share = 1 / (1 + small);  // nothing overflows
  const double miss = u > 0 ? small * share : share;                     // 1 / (1 + exp(u))
  return {std::log1p(small) + std::max(-u, 0.0), -miss, std::sqrt(small) * share};
}

// Rows that are worth a thread's while; rows whose numbers stay in the second-level cache between
// the product that reads them and the one that adds them up.
constexpr Index PARTS = 64, LEAST_ROWS = 128, CACHED = 1 << 14;

template <class Phi>
double row_sum(const RowSum& sum, const double* x, double* gradient, double* root, Team& team,
               Phi phi) {
  const Index m = sum.m, n = sum.n;
  const Index parts = std::clamp(m / LEAST_ROWS, Index(1), PARTS);
  const Index at_once = std::max(CACHED / std::max(n, Index(1)), Index(1));
  std::vector<double> values(std::size_t(parts), 0.0), gradients(std::size_t(parts * n), 0.0);
  std::atomic<bool> outside = false;
  team.run(parts, [&](Index part) {
    const WithoutSubnormals flush(true);
    std::vector<double> u(std::size_t(std::min(at_once, m)));
    std::vector<const double*> rows(u.size());
    const Index last = (part + 1) * m / parts;
    for (Index first = part * m / parts; first < last && !outside; first += at_once) {
      const Index count = std::min(at_once, last - first);
      times_vector(sum.matrix + first * n, count, n, x, u.data());
      for (Index k = 0; k < count; ++k) {
        const Index i = first + k;
        rows[k] = sum.matrix + i * n;
        const double weight = sum.weight[i];
        if (weight == 0.0) {  // what does not count cannot be outside
          u[k] = root[i] = 0.0;
          continue;
        }
        const Jet jet = phi(u[k] + sum.offset[i]);
        values[part] += weight * jet.value;
        u[k] = weight * jet.slope;
        root[i] = std::sqrt(weight) * jet.root;
      }
      if (!std::isfinite(values[part])) outside = true;
      else isa().of<double>().add_rows(rows.data(), u.data(), count, 0, n, &gradients[part * n]);
    }
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

}  // namespace

double row_sum(const RowSum& sum, const double* x, double* gradient, double* root, Team& team) {
  switch (sum.phi) {
    case RowFunction::minus_log: return row_sum(sum, x, gradient, root, team, minus_log);
    case RowFunction::logistic: return row_sum(sum, x, gradient, root, team, logistic);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace pairstep
