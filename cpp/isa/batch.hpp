// A few problems of a batch, one after the other. Included once per instruction set.

inline double value_of(const double* x, const double* product, const double* linear, Index n) {
  double value = 0.0;
  for (Index i = 0; i < n; ++i) value += x[i] * (0.5 * product[i] + linear[i]);
  return value;
}

inline void solve_chunk(const Batch& batch, Index begin, Index end) {
  const Index n = batch.n;
  Bench bench(batch.hessian, n);
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
    for (Index i = 0; i < n; ++i) gradient[i] = from_product[i] + linear[i];

    Point point{n,           batch.n_groups, batch.starts, gradient.data(), x,
                batch.lower, batch.upper,    nullptr,      nullptr};
    Greedy task{};
    task.hessian = batch.hessian;
    task.choice = {Rules::find<libsvm::Libsvm>(), 1.0, nullptr, nullptr, 0};
    task.step = Step::exact;
    task.max_iter = batch.max_iter;
    task.seconds = INFINITY;
    task.patience = 1000 + 10 * n;
    task.finish = true;
    task.record = false;
    // The running gradient drifts: look again with a fresh one before believing it.
    for (int look = 0; look < 4; ++look) {
      double largest = 0.0;
      for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(gradient[i]));
      task.threshold = 0.5 * batch.tol * (1.0 + largest);
      const Index before = task.iterations;
      greedy_on(point, task, bench);
      settle(x, batch.lower, batch.upper, batch.starts, batch.totals, batch.n_groups);
      times(batch.hessian, x, n, product.data());
      for (Index i = 0; i < n; ++i) gradient[i] = product[i] + linear[i];
      if (task.iterations == before) break;
    }
    batch.iterations[k] = task.iterations;
  }
}
