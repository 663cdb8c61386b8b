#include <algorithm>
#include <cmath>
#include <random>

#include "cardinality.hpp"

namespace pairstep {

std::vector<double> largest_diagonal(const double* matrix, Index n, InterruptCheck& interrupt) {
  constexpr double max_multiplications = 1e9;  // about half a second
  constexpr double precision = 1e-6;           // of the sum of d, relative to that of the matrix
  const Index rank = Index(std::ceil(std::sqrt(2.0 * double(n)))) + 1;
  const int max_sweeps =
      int(std::clamp(max_multiplications / (double(n) * double(n) * double(rank)), 20.0, 300.0));
  std::mt19937_64 random(0);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> factor(std::size_t(n * rank)), sum(rank), d(n);
  double trace = 0.0;
  for (Index i = 0; i < n; ++i) {
    double* const own = factor.data() + i * rank;
    double square = 0.0;
    for (Index r = 0; r < rank; ++r) {
      own[r] = uniform(random);
      square += own[r] * own[r];
    }
    for (Index r = 0; r < rank; ++r) own[r] /= std::sqrt(square);
    trace += matrix[i * (n + 1)];
  }
  double before = -INFINITY;
  for (int sweep = 0; sweep < max_sweeps && !interrupt.stopped(); ++sweep) {
    double total = 0.0;
    for (Index i = 0; i < n; ++i) {
      interrupt.poll();
      std::fill(sum.begin(), sum.end(), 0.0);
      for (Index j = 0; j < n; ++j) {
        if (j == i) continue;
        const double entry = matrix[i * n + j];
        const double* const other = factor.data() + j * rank;
        for (Index r = 0; r < rank; ++r) sum[r] += entry * other[r];
      }
      double square = 0.0;
      for (const double value : sum) square += value * value;
      // The row has length 1, or more if d would be negative.
      const double length = std::sqrt(square), own = matrix[i * (n + 1)];
      d[i] = std::max(own - length, 0.0);
      total += d[i];
      const double by = length > 0 ? std::max(1 / length, 1 / own) : 0.0;
      for (Index r = 0; r < rank && by > 0; ++r) factor[i * rank + r] = -by * sum[r];
    }
    if (std::abs(total - before) <= precision * trace) break;
    before = total;
  }
  return d;
}

}  // namespace pairstep
