// A chunk of the problems of a batch, solved one after the other; see engine/batch.hpp. Included
// once per instruction set.

struct BatchSettings {
  // Maximum number of runs of the solver per problem. The gradient is recomputed before each run,
  // because the updated gradient accumulates rounding error. A run without iterations confirms the
  // solution, so usually there are fewer runs.
  static constexpr int MAX_RUNS = 4;
  // The solver aims at this fraction of the tolerance, which leaves the rest for rounding error.
  static constexpr double TOL_FRACTION = 0.5;
};

// x'Qx / 2 + linear'x, given the product Qx.
inline double value_of(const double* x, const double* product, const double* linear, Index n) {
  double value = 0.0;
  for (Index i = 0; i < n; ++i) value += x[i] * (0.5 * product[i] + linear[i]);
  return value;
}

inline void solve_chunk(const Batch& batch, Index begin, Index end, InterruptCheck& interrupt) {
  const Index n = batch.n;
  // All problems use the memory and the Cholesky factor of this solver.
  Greedy solver({.hessian = batch.hessian}, batch.hessian, n);
  Aligned at_start(n), product(n), gradient(n);
  times(batch.hessian, batch.start, n, at_start.data());
  for (Index k = begin; k < end; ++k) {
    double* x = batch.x + k * n;
    const double* linear = batch.linear + k * n;
    // Start at the previous solution if its value is lower than that of the common start.
    const double* from = batch.start;
    const double* from_product = at_start.data();
    if (k > begin && value_of(x - n, product.data(), linear, n) <
                         value_of(batch.start, at_start.data(), linear, n)) {
      from = x - n;
      from_product = product.data();
    }
    std::copy_n(from, n, x);
    std::copy_n(from_product, n, product.data());
    const Point point{n,       batch.n_groups, batch.starts, gradient.data(),
                      x,       batch.lower,    batch.upper,  nullptr,
                      nullptr, batch.low,      batch.high};
    double first_scale = 0.0;
    for (int run = 0; run < BatchSettings::MAX_RUNS; ++run) {
      double scale = 0.0;  // the largest of the terms that cancel in the gradient
      for (Index i = 0; i < n; ++i) {
        gradient[i] = product[i] + linear[i];
        scale = std::max({scale, std::abs(product[i]), std::abs(linear[i])});
      }
      if (run == 0) {
        solver.begin(point, 0.0);
        first_scale = scale;
      } else {
        solver.renew(point, solver.value);
      }
      const Index before = solver.iterations;
      const double threshold = NumericalPolicy::violation_tolerance(
          BatchSettings::TOL_FRACTION * batch.tol, scale, first_scale);
      solver.run(threshold, batch.max_iter, interrupt);
      restore_sums(x, batch.lower, batch.upper,
                   {batch.n_groups, batch.starts, batch.totals, batch.low, batch.high});
      times(batch.hessian, x, n, product.data());
      if (solver.iterations == before || interrupt.stopped()) break;
    }
    batch.iterations[k] = solver.iterations;
    if (interrupt.stopped()) return;
    batch.solved[k] = 1;
  }
}
