// A few problems of a batch, one after the other. Included once per instruction set.

inline double value_of(const double* x, const double* product, const double* linear, Index n) {
  double value = 0.0;
  for (Index i = 0; i < n; ++i) value += x[i] * (0.5 * product[i] + linear[i]);
  return value;
}

inline void solve_chunk(const Batch& batch, Index begin, Index end, Pulse& pulse) {
  const Index n = batch.n;
  Greedy gear(automatic_task(batch.hessian, n), batch.hessian,
              n);  // its memory and its factor serve one problem after the other
  Aligned at_start(n), product(n), gradient(n);
  times(batch.hessian, batch.start, n, at_start.data());
  for (Index k = begin; k < end; ++k) {
    double* x = batch.x + k * n;
    const double* linear = batch.linear + k * n;
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
    double at_first = 0.0;  // the scale at the start; all terms may vanish at the optimum
    // The running gradient drifts: look again with a fresh one before believing it.
    for (int look = 0; look < 4; ++look) {
      double scale = 0.0;  // of the terms that cancel in the gradient
      for (Index i = 0; i < n; ++i) {
        gradient[i] = product[i] + linear[i];
        scale = std::max({scale, std::abs(product[i]), std::abs(linear[i])});
      }
      if (look == 0) {
        gear.begin(point, 0.0);
        at_first = scale;
      } else {
        gear.renew(point, gear.value);
      }
      const Index before = gear.iterations;
      gear.run(0.5 * batch.tol * std::max(scale, 1e-6 * at_first), batch.max_iter, pulse);
      settle(x, batch.lower, batch.upper,
             {batch.n_groups, batch.starts, batch.totals, batch.low, batch.high});
      times(batch.hessian, x, n, product.data());
      if (gear.iterations == before || pulse.stopped()) break;
    }
    batch.iterations[k] = gear.iterations;
    if (pulse.stopped()) return;
    batch.solved[k] = 1;
  }
}
