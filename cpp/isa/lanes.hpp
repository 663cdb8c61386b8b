// Least squares with few columns, with one right-hand side per vector lane; see FewColumns in
// engine/batch.hpp. B is read from memory once: a few of its columns stay in the cache while their
// linear terms, solutions, gradients and certificates are computed. Included once per instruction
// set.

struct LanesSettings {
  // If a pivot of the factorization is below this, relative to the diagonal, it has lost too many
  // digits to cancellation, and all problems are left to `solve_batch`. A smaller value would give
  // inaccurate steps; a larger one would leave more problems to the slower method.
  static constexpr double MIN_PIVOT = 1e-9;
  // Maximum number of rounds per variable. Two nearly always suffice.
  static constexpr int MAX_ROUNDS_PER_VARIABLE = 8;
  // The active-set method aims at half of the tolerance that certifies a solution: each derivative
  // may deviate by this fraction of tol times its terms.
  static constexpr double TERM_FRACTION = 0.25;
  // The same relative to the scale of the gradient at the start, for problems where all terms of
  // the gradient vanish at the solution: half of NumericalPolicy::vanishing_scale.
  static constexpr double START_FRACTION = 0.5 * NumericalPolicy::vanishing_scale;
  // Maximum number of corrections of a sum. The first one leaves at most a rounding error.
  static constexpr int MAX_SUM_CORRECTIONS = 2;
  // Prefetch distance, in panels of two vectors of columns. A shorter distance would not hide the
  // latency of memory; a longer one would evict columns before they are used.
  static constexpr Index PREFETCH_PANELS = 2;
};

using Mask = decltype(Lanes{} < Lanes{});

inline Lanes magnitude(Lanes value) { return maximum(value, -value); }
inline bool any(Mask mask) { return largest_lane(mask ? all<Lanes>(1.0) : all<Lanes>(0.0)) > 0; }

// Solves min x'Gx/2 + c'x with sum(x) = total and bounds, where all lanes share G and have their
// own c and x. A primal active-set method: each round takes a Newton step on the free variables, up
// to the first bound. If no bound blocks it, the two variables that violate optimality most become
// free. Each lane has its own free set.
template <int N>
class ActiveSet {
 public:
  using Rows = std::array<Lanes, N>;
  using Masks = std::array<Mask, N>;

  explicit ActiveSet(const FewColumns& problem)
      : problem_(problem), definite_(made_definite(problem)), full_(definite_, movable()) {}

  // Whether the factorization is accurate for every free set. Its pivots are at least as large as
  // those of the full set, so it suffices to check the full set.
  bool are_definite() const {
    for (int i = 0; i < N; ++i) {
      const double pivot = 1.0 / full_.inverse[i][0];
      if (movable()[i][0] && !(pivot > LanesSettings::MIN_PIVOT * definite_[i * N + i]))
        return false;
    }
    return true;
  }

  // Returns the number of steps and whether they reached the optimum.
  std::pair<Lanes, Mask> solve(const Rows& c, Rows& x) const {
    Masks free = movable();
    for (int i = 0; i < N; ++i) x[i] = all<Lanes>(problem_.start[i]);
    Lanes steps = all<Lanes>(0.0), first_scale = steps;
    Mask solved = steps > 0.0, optimal_on_free = solved;
    const Index rounds =
        std::min<Index>(LanesSettings::MAX_ROUNDS_PER_VARIABLE * N, problem_.max_iter + 1);
    for (Index round = 0; round < rounds; ++round) {
      Rows gradient;
      Lanes scale = all<Lanes>(0.0), max_left = all<Lanes>(-INFINITY), min_right = -max_left;
      Lanes lowered_max_left = max_left, raised_min_right = min_right;  // by the tolerance
      for (int i = 0; i < N; ++i) {
        Lanes product = all<Lanes>(0.0);
        for (int j = 0; j < N; ++j)
          product = multiply_add(all<Lanes>(problem_.hessian[i * N + j]), x[j], product);
        gradient[i] = product + c[i];
        const Lanes terms = maximum(magnitude(product), magnitude(c[i])),
                    allowed = LanesSettings::TERM_FRACTION * problem_.tol * terms;
        scale = maximum(scale, terms);
        max_left = x[i] > lower(i) ? maximum(max_left, gradient[i]) : max_left;
        min_right = x[i] < upper(i) ? minimum(min_right, gradient[i]) : min_right;
        lowered_max_left =
            x[i] > lower(i) ? maximum(lowered_max_left, gradient[i] - allowed) : lowered_max_left;
        raised_min_right =
            x[i] < upper(i) ? minimum(raised_min_right, gradient[i] + allowed) : raised_min_right;
      }
      if (round == 0) first_scale = scale;
      solved |=
          (lowered_max_left <= raised_min_right) |
          (max_left - min_right <= LanesSettings::START_FRACTION * problem_.tol * first_scale);
      if (!any(~solved)) break;
      // If x is optimal on its free set, free the pair with the largest gap.
      for (int i = 0; i < N; ++i)
        free[i] |= optimal_on_free & (((gradient[i] == max_left) & (x[i] > lower(i))) |
                                      ((gradient[i] == min_right) & (x[i] < upper(i))));
      const Rows step =
          round == 0 ? full_.step(gradient, free) : Factor(definite_, free).step(gradient, free);
      optimal_on_free = take_step(x, free, step, solved);
      steps = solved ? steps : steps + 1.0;
    }
    return {steps, solved};
  }

 private:
  using Matrix = std::array<double, N * N>;

  // The LDL' factorization of the matrix on the free variables. Other variables have rows of the
  // identity.
  struct Factor {
    std::array<Rows, N> below;  // L
    Rows inverse;               // of D
    Rows ones_solution;         // the solution for a right-hand side of ones
    Lanes ones_sum;             // its sum

    Factor(const Matrix& matrix, const Masks& free) : ones_sum{} {
      Rows pivots;  // D
      for (int j = 0; j < N; ++j) {
        Rows scaled;  // a row of L D
        for (int k = 0; k < j; ++k) scaled[k] = below[j][k] * pivots[k];
        for (int i = j; i < N; ++i) {
          Lanes value =
              free[i] & free[j] ? all<Lanes>(matrix[i * N + j]) : all<Lanes>(i == j ? 1.0 : 0.0);
          for (int k = 0; k < j; ++k) value = multiply_subtract(below[i][k], scaled[k], value);
          if (i == j) pivots[j] = value, inverse[j] = 1.0 / value;
          else below[i][j] = value * inverse[j];
        }
      }
      for (int i = 0; i < N; ++i) ones_solution[i] = free[i] ? all<Lanes>(1.0) : all<Lanes>(0.0);
      solve(ones_solution);
      for (const Lanes& each : ones_solution) ones_sum += each;
    }

    // The Newton step on the free variables that keeps the sum.
    Rows step(const Rows& gradient, const Masks& free) const {
      Rows downhill;
      for (int i = 0; i < N; ++i) downhill[i] = free[i] ? -gradient[i] : all<Lanes>(0.0);
      solve(downhill);
      Lanes change = all<Lanes>(0.0);
      for (const Lanes& each : downhill) change += each;
      const Lanes multiplier = ones_sum > 0.0 ? change / ones_sum : all<Lanes>(0.0);
      for (int i = 0; i < N; ++i)
        downhill[i] = multiply_subtract(multiplier, ones_solution[i], downhill[i]);
      return downhill;
    }

   private:
    void solve(Rows& b) const {
      for (int i = 0; i < N; ++i)
        for (int k = 0; k < i; ++k) b[i] = multiply_subtract(below[i][k], b[k], b[i]);
      for (int i = N - 1; i >= 0; --i) {
        b[i] = b[i] * inverse[i];
        for (int k = i + 1; k < N; ++k) b[i] = multiply_subtract(below[k][i], b[k], b[i]);
      }
    }
  };

  // Adding a multiple of 11' does not change the problem, because the sum is fixed. It makes G
  // positive definite if G is positive definite for steps that keep the sum.
  static Matrix made_definite(const FewColumns& problem) {
    double mean = 0.0;
    for (int i = 0; i < N; ++i) mean += problem.hessian[i * N + i] / N;
    Matrix definite;
    for (int i = 0; i < N * N; ++i) definite[i] = problem.hessian[i] + mean;
    return definite;
  }

  Masks movable() const {
    Masks movable;
    for (int i = 0; i < N; ++i) movable[i] = lower(i) < upper(i);
    return movable;
  }
  Lanes lower(int i) const { return all<Lanes>(problem_.lower[i]); }
  Lanes upper(int i) const { return all<Lanes>(problem_.upper[i]); }

  // Take the step up to the first bound. Variables that reach a bound are no longer free. Returns
  // whether no bound blocked the step.
  Mask take_step(Rows& x, Masks& free, const Rows& step, Mask solved) const {
    Lanes length = all<Lanes>(1.0);
    Rows reach, bound;
    for (int i = 0; i < N; ++i) {
      bound[i] = step[i] < 0.0 ? lower(i) : upper(i);
      reach[i] = step[i] == 0.0 ? all<Lanes>(INFINITY) : (bound[i] - x[i]) / step[i];
      length = minimum(reach[i], length);
    }
    for (int i = 0; i < N; ++i) {
      const Mask blocked = (reach[i] <= length) & (length < 1.0);
      const Lanes to = minimum(maximum(x[i] + length * step[i], lower(i)), upper(i));
      x[i] = solved ? x[i] : blocked ? bound[i] : to;
      free[i] &= ~blocked | solved;
    }
    return length == 1.0;
  }

  const FewColumns& problem_;
  Matrix definite_;
  Factor full_;  // of all variables that are not fixed by their bounds: all lanes start with it
};

// total - sum(x). The sum is computed with twice the precision of a double.
template <int N>
Lanes deficit_of(const std::array<Lanes, N>& x, double total) {
  Lanes high = all<Lanes>(0.0), low = high;
  for (int i = 0; i < N; ++i) {
    const Lanes before = high;
    high = before + x[i];
    const Lanes part = high - before;
    low += (before - (high - part)) + (x[i] - part);
  }
  return (total - high) - low;
}

// Correct the rounding error of the sums, as `restore_sums` does: add the deficit to the largest
// variable that stays strictly between its bounds. Returns the lanes whose sum is correct now.
template <int N>
Mask restore_lane_sums(std::array<Lanes, N>& x, const FewColumns& problem) {
  Lanes deficit = deficit_of<N>(x, problem.total);
  for (int k = 0; k < LanesSettings::MAX_SUM_CORRECTIONS && any(deficit != 0.0); ++k) {
    std::array<Lanes, N> size;  // negative if the variable cannot take the correction
    Lanes largest = all<Lanes>(-1.0);
    for (int i = 0; i < N; ++i) {
      const Lanes to = x[i] + deficit;
      const Mask inside =
          (minimum(x[i], to) > problem.lower[i]) & (maximum(x[i], to) < problem.upper[i]);
      size[i] = inside ? magnitude(x[i]) : all<Lanes>(-1.0);
      largest = maximum(size[i], largest);
    }
    for (int i = 0; i < N; ++i) {
      const Mask chosen = (size[i] == largest) & (largest >= 0.0);
      x[i] = chosen ? x[i] + deficit : x[i];
      largest = chosen ? all<Lanes>(-1.0) : largest;  // choose only one
    }
    deficit = deficit_of<N>(x, problem.total);
  }
  return magnitude(deficit) <=
         0.5 * std::numeric_limits<double>::epsilon() * std::abs(problem.total);
}

// Violation, suboptimality bound and optimality test of the solutions. This is core/certify.hpp for
// one sum without L1 terms.
template <int N>
struct Certificates {
  using Rows = std::array<Lanes, N>;

  Lanes violation, bound;
  Mask optimal;

  Certificates(const Rows& gradient, const Rows& linear, const Rows& x, Lanes value,
               const FewColumns& problem) {
    Rows down, up;
    Lanes max_left = all<Lanes>(-INFINITY), min_right = -max_left;
    Lanes largest = {}, scale = {}, product = {}, constant = {};
    Rows terms;
    for (int i = 0; i < N; ++i) {
      down[i] = x[i] - problem.lower[i];
      up[i] = problem.upper[i] - x[i];
      max_left = down[i] > 0 ? maximum(gradient[i], max_left) : max_left;
      min_right = up[i] > 0 ? minimum(gradient[i], min_right) : min_right;
      largest = maximum(magnitude(x[i]), largest);
      const Lanes quadratic = gradient[i] - linear[i];
      terms[i] = maximum(magnitude(quadratic), magnitude(linear[i]));
      scale = maximum(scale, terms[i]);
      product += x[i] * quadratic;
      constant += x[i] * linear[i];
    }
    violation = maximum(max_left - min_right, Lanes{});
    bound = suboptimality(gradient, down, up);
    const Lanes size = maximum(maximum(0.5 * magnitude(product), magnitude(constant)), value);
    const Lanes allowed = NumericalPolicy::gain_per_tol * problem.tol * size;
    for (int i = 0; i < N; ++i) {
      const Lanes own = problem.hessian[i * (N + 1)] * magnitude(x[i]);
      terms[i] = maximum(terms[i], minimum(own, scale));
    }
    const auto within = [&](double tol) {
      Lanes lowered_left = all<Lanes>(-INFINITY), raised_right = -lowered_left;
      for (int i = 0; i < N; ++i) {
        const Lanes allowed_term = 0.5 * tol * terms[i];
        lowered_left =
            down[i] > 0 ? maximum(gradient[i] - allowed_term, lowered_left) : lowered_left;
        raised_right = up[i] > 0 ? minimum(gradient[i] + allowed_term, raised_right) : raised_right;
      }
      return lowered_left <= raised_right;
    };
    const Mask reached = within(problem.tol);
    Mask near_optimal = (bound <= allowed) | within(NumericalPolicy::gradient_rounding);
    if (any(~near_optimal)) {  // the bound within a distance of max |x| may be smaller
      for (int i = 0; i < N; ++i) {
        down[i] = minimum(down[i], largest);
        up[i] = minimum(up[i], largest);
      }
      near_optimal |= suboptimality(gradient, down, up) <= allowed;
    }
    optimal = reached & near_optimal;
  }

 private:
  // The largest decrease of the linear model with these limits on the changes. By duality, it is a
  // minimum over the multiplier of the sum. One of the derivatives attains that minimum, so try
  // each of them as the multiplier.
  static Lanes suboptimality(const Rows& derivative, const Rows& down, const Rows& up) {
    Rows decrease = {};
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < i; ++j) {
        const Lanes difference = derivative[i] - derivative[j];
        decrease[i] = difference > 0   ? multiply_add(difference, up[j], decrease[i])
                      : difference < 0 ? multiply_subtract(difference, down[j], decrease[i])
                                       : decrease[i];
        decrease[j] = difference > 0   ? multiply_add(difference, down[i], decrease[j])
                      : difference < 0 ? multiply_subtract(difference, up[i], decrease[j])
                                       : decrease[j];
      }
    Lanes least = decrease[0];
    for (const Lanes& each : decrease) least = minimum(each, least);
    return least;
  }
};

// Two vectors of columns of B, so that each number of A is loaded once for both. The columns are
// read in place. The first pass reads them from memory and prefetches later columns.
template <int N>
class Panel {
 public:
  using Pair = std::array<Lanes, 2>;
  static constexpr Index STEP = 2 * WIDTH;

  // `count` columns from `first` on. Fewer than two vectors are copied to `edge` and padded with 0.
  Panel(const FewColumns& problem, Index first, Index count, Aligned& edge)
      : problem_(problem), columns_(problem.B + first), stride_(problem.count) {
    if (count >= STEP) return;
    for (Index k = 0; k < problem.m; ++k) {
      const double* const row = columns_ + k * stride_;
      double* const to = edge.data() + k * STEP;
      std::fill(std::copy(row, row + count, to), to + STEP, 0.0);
    }
    columns_ = edge.data();
    stride_ = STEP;
  }

  // Inner products with the columns of A, and squared norms.
  struct Products {
    std::array<Pair, N> with_A;
    Pair squares;
  };
  // For the columns of B.
  Products products() const {
    return sum([&](Index k) {
      const double* const b = columns_ + k * stride_;
      __builtin_prefetch(b + LanesSettings::PREFETCH_PANELS * STEP, 0, 2);
      __builtin_prefetch(b + LanesSettings::PREFETCH_PANELS * STEP + WIDTH, 0, 2);
      return Pair{load<Lanes>(b), load<Lanes>(b + WIDTH)};
    });
  }
  // For the residuals Ax - b.
  Products of_residuals(const std::array<Pair, N>& x) const {
    return sum([&](Index k) {
      const double* const b = columns_ + k * stride_;
      Lanes left = -load<Lanes>(b), right = -load<Lanes>(b + WIDTH);
#pragma GCC unroll 32
      for (int j = 0; j < N; ++j) {
        const Lanes a = all<Lanes>(problem_.A[k * N + j]);
        left = multiply_add(a, x[j][0], left);
        right = multiply_add(a, x[j][1], right);
      }
      return Pair{left, right};
    });
  }

 private:
  template <class Column>
  [[gnu::always_inline]] Products sum(Column column) const {
    Lanes left[N] = {}, right[N] = {}, left_squares = {}, right_squares = {};
    for (Index k = 0; k < problem_.m; ++k) {
      const auto [b, next] = column(k);
      left_squares = multiply_add(b, b, left_squares);
      right_squares = multiply_add(next, next, right_squares);
#pragma GCC unroll 32
      for (int j = 0; j < N; ++j) {
        const Lanes a = all<Lanes>(problem_.A[k * N + j]);
        left[j] = multiply_add(a, b, left[j]);
        right[j] = multiply_add(a, next, right[j]);
      }
    }
    Products sums{{}, {left_squares, right_squares}};
    for (int j = 0; j < N; ++j) sums.with_A[j] = {left[j], right[j]};
    return sums;
  }

  const FewColumns& problem_;
  const double* columns_;
  Index stride_;
};

// Store the first `lanes` lanes.
inline void store_lanes(Lanes values, Index lanes, double* to) {
  if (lanes == WIDTH) store(to, values);
  else std::copy_n(reinterpret_cast<const double*>(&values), lanes, to);
}

// Solve the problems [begin, end) with N columns, including columns of zeros.
template <int N>
void few_columns(const FewColumns& problem, Index begin, Index end) {
  using Rows = typename ActiveSet<N>::Rows;
  const ActiveSet<N> active_set(problem);
  const bool definite = active_set.are_definite();
  constexpr Index STEP = Panel<N>::STEP;
  Aligned edge((end - begin) % STEP ? problem.m * STEP : 0);
  for (Index at = begin; at < end; at += STEP) {
    const auto lanes_of = [&](int v) { return std::clamp<Index>(end - at - v * WIDTH, 0, WIDTH); };
    const Panel<N> panel(problem, at, end - at, edge);
    const auto with_b = panel.products();
    std::array<Rows, 2> linear;
    std::array<typename Panel<N>::Pair, N> points;
    Mask valid[2];
    for (int v = 0; v < 2; ++v) {
      const Index first = at + v * WIDTH, lanes = lanes_of(v);
      valid[v] = with_b.squares[v] <= problem.most_squares;
      Rows c, x;
      for (int j = 0; j < N; ++j) c[j] = valid[v] ? -with_b.with_A[j][v] : all<Lanes>(0.0);
      const auto [steps, solved] = active_set.solve(c, x);
      const Mask restored = restore_lane_sums<N>(x, problem);
      linear[v] = c;
      const Index whole[] = {0, N};
      for (Index lane = 0; lane < lanes; ++lane) {
        const Index p = first + lane;
        if (!restored[lane]) {
          double row[N];
          for (int j = 0; j < N; ++j) row[j] = x[j][lane];
          restore_sums(row, problem.lower, problem.upper, {1, whole, &problem.total});
          for (int j = 0; j < N; ++j) x[j][lane] = row[j];
        }
        problem.iterations[p] = Index(steps[lane]);
        problem.state[p] = !valid[v][lane]            ? FewColumns::invalid
                           : solved[lane] && definite ? FewColumns::solved
                                                      : FewColumns::unsolved;
      }
      for (int j = 0; j < problem.n; ++j)
        store_lanes(x[j], lanes, problem.x + j * problem.count + first);
      for (int j = 0; j < N; ++j) points[j][v] = x[j];
    }

    const auto with_residual = panel.of_residuals(points);
    for (int v = 0; v < 2; ++v) {
      const Index first = at + v * WIDTH, lanes = lanes_of(v);
      Rows gradient, x;
      Lanes value = with_residual.squares[v];
      for (int j = 0; j < N; ++j) {
        x[j] = points[j][v];
        const Lanes from_ridge = problem.ridge[j] * points[j][v];
        value = multiply_add(from_ridge, points[j][v], value);
        gradient[j] = valid[v] ? with_residual.with_A[j][v] + from_ridge : all<Lanes>(0.0);
      }
      const Certificates<N> certificates(gradient, linear[v], x, 0.5 * value, problem);
      store_lanes(0.5 * value, lanes, problem.value + first);
      store_lanes(certificates.violation, lanes, problem.violation + first);
      store_lanes(certificates.bound, lanes, problem.bound + first);
      for (Index lane = 0; lane < lanes; ++lane)
        problem.optimal[first + lane] = certificates.optimal[lane] != 0;
    }
  }
}

template <std::size_t... K>
void few_columns_of(std::index_sequence<K...>, const FewColumns& problem, Index begin, Index end) {
  ((problem.width == COMPILED_COLUMN_COUNTS[K]
        ? few_columns<COMPILED_COLUMN_COUNTS[K]>(problem, begin, end)
        : void()),
   ...);
}

inline void solve_few_columns(const FewColumns& problem, Index begin, Index end) {
  few_columns_of(std::make_index_sequence<COMPILED_COLUMN_COUNTS.size()>(), problem, begin, end);
}
