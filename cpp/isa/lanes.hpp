// Least squares with few columns, a right-hand side in each lane. B is read from memory once: a few
// columns stay in the cache while linear terms, solutions, gradients and certificates are computed.
// Included once per instruction set.

using Mask = decltype(Lanes{} < Lanes{});

inline Lanes magnitude(Lanes value) { return maximum(value, -value); }
inline bool any(Mask mask) { return largest_lane(mask ? all<Lanes>(1.0) : all<Lanes>(0.0)) > 0; }

// min x'Gx/2 + c'x with sum(x) = total and bounds; G is shared, c and x have a value per lane. An
// active-set method: Newton steps from face to face, each lane on its own.
template <int N>
class Faces {
 public:
  using Rows = std::array<Lanes, N>;
  using Masks = std::array<Mask, N>;

  explicit Faces(const FewColumns& problem)
      : problem_(problem), definite_(made_definite(problem)), largest_(definite_, movable()) {}

  // Whether every face can be factored: the pivots of a part are not below those of the whole.
  bool are_definite() const {
    for (int i = 0; i < N; ++i) {
      const double pivot = 1.0 / largest_.inverse[i][0];
      if (movable()[i][0] && !(pivot > SAFE_PIVOT * definite_[i * N + i])) return false;
    }
    return true;
  }

  // The number of steps and whether they led to the optimum.
  std::pair<Lanes, Mask> solve(const Rows& c, Rows& x) const {
    Masks free = movable();
    for (int i = 0; i < N; ++i) x[i] = all<Lanes>(problem_.start[i]);
    Lanes steps = all<Lanes>(0.0), first_scale = steps;
    Mask solved = steps > 0.0, at_best = solved;  // of its face
    const Index rounds = std::min<Index>(ROUNDS, problem_.max_iter + 1);
    for (Index round = 0; round < rounds; ++round) {
      Rows gradient;
      Lanes scale = all<Lanes>(0.0), dearest = all<Lanes>(-INFINITY), cheapest = -dearest;
      for (int i = 0; i < N; ++i) {
        Lanes product = all<Lanes>(0.0);
        for (int j = 0; j < N; ++j)
          product = multiply_add(all<Lanes>(problem_.hessian[i * N + j]), x[j], product);
        gradient[i] = product + c[i];
        scale = maximum(scale, maximum(magnitude(product), magnitude(c[i])));
        dearest = x[i] > lower(i) ? maximum(dearest, gradient[i]) : dearest;
        cheapest = x[i] < upper(i) ? minimum(cheapest, gradient[i]) : cheapest;
      }
      if (round == 0) first_scale = scale;
      solved |= dearest - cheapest <= 0.5 * problem_.tol * maximum(scale, 1e-6 * first_scale);
      if (!any(~solved)) break;
      // From the best point of a face, the pair is let go that gains most at first.
      for (int i = 0; i < N; ++i)
        free[i] |= at_best & (((gradient[i] == dearest) & (x[i] > lower(i))) |
                              ((gradient[i] == cheapest) & (x[i] < upper(i))));
      const Rows step =
          round == 0 ? largest_.step(gradient, free) : Face(definite_, free).step(gradient, free);
      at_best = advance(x, free, step, solved);
      steps = solved ? steps : steps + 1.0;
    }
    return {steps, solved};
  }

 private:
  static constexpr double SAFE_PIVOT = 1e-9;
  static constexpr int ROUNDS = 8 * N;  // two for each variable suffice nearly always

  using Matrix = std::array<double, N * N>;

  // A face and the LDL' of its part of the matrix; the others have rows of the identity.
  struct Face {
    std::array<Rows, N> below;  // L
    Rows inverse;               // of D
    Rows outward;               // the solution for a right-hand side of ones
    Lanes length;               // its sum

    Face(const Matrix& matrix, const Masks& free) : length{} {
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
      for (int i = 0; i < N; ++i) outward[i] = free[i] ? all<Lanes>(1.0) : all<Lanes>(0.0);
      solve(outward);
      for (const Lanes& each : outward) length += each;
    }

    // To the best point of the face, along which the sum stays.
    Rows step(const Rows& gradient, const Masks& free) const {
      Rows downhill;
      for (int i = 0; i < N; ++i) downhill[i] = free[i] ? -gradient[i] : all<Lanes>(0.0);
      solve(downhill);
      Lanes change = all<Lanes>(0.0);
      for (const Lanes& each : downhill) change += each;
      const Lanes multiplier = length > 0.0 ? change / length : all<Lanes>(0.0);
      for (int i = 0; i < N; ++i)
        downhill[i] = multiply_subtract(multiplier, outward[i], downhill[i]);
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

  // Along the plane of the sum a multiple of 11' changes nothing, but it makes G definite.
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

  // Go along the step up to the first bound, where variables stay. Whether nothing was in the way.
  Mask advance(Rows& x, Masks& free, const Rows& step, Mask solved) const {
    Lanes length = all<Lanes>(1.0);
    Rows reach, bound;
    for (int i = 0; i < N; ++i) {
      bound[i] = step[i] < 0.0 ? lower(i) : upper(i);
      reach[i] = step[i] == 0.0 ? all<Lanes>(INFINITY) : (bound[i] - x[i]) / step[i];
      length = minimum(reach[i], length);
    }
    for (int i = 0; i < N; ++i) {
      const Mask stays = (reach[i] <= length) & (length < 1.0);
      const Lanes to = minimum(maximum(x[i] + length * step[i], lower(i)), upper(i));
      x[i] = solved ? x[i] : stays ? bound[i] : to;
      free[i] &= ~stays | solved;
    }
    return length == 1.0;
  }

  const FewColumns& problem_;
  Matrix definite_;
  Face largest_;  // where everything that can move is free: all lanes begin there
};

// What is missing of the total: the sum is kept to twice the precision of a double.
template <int N>
Lanes missing_of(const std::array<Lanes, N>& x, double total) {
  Lanes high = all<Lanes>(0.0), low = high;
  for (int i = 0; i < N; ++i) {
    const Lanes before = high;
    high = before + x[i];
    const Lanes part = high - before;
    low += (before - (high - part)) + (x[i] - part);
  }
  return (total - high) - low;
}

// Rounding of the sums goes into a free variable, the largest that has room for it, as `settle`
// has it. Where the sums are right then.
template <int N>
Mask settle_lanes(std::array<Lanes, N>& x, const FewColumns& problem) {
  Lanes missing = missing_of<N>(x, problem.total);
  for (int round = 0; round < 2 && any(missing != 0.0); ++round) {
    std::array<Lanes, N> size;  // below 0 where it cannot take it
    Lanes largest = all<Lanes>(-1.0);
    for (int i = 0; i < N; ++i) {
      const Lanes to = x[i] + missing;
      const Mask inside =
          (minimum(x[i], to) > problem.lower[i]) & (maximum(x[i], to) < problem.upper[i]);
      size[i] = inside ? magnitude(x[i]) : all<Lanes>(-1.0);
      largest = maximum(size[i], largest);
    }
    for (int i = 0; i < N; ++i) {
      const Mask takes = (size[i] == largest) & (largest >= 0.0);
      x[i] = takes ? x[i] + missing : x[i];
      largest = takes ? all<Lanes>(-1.0) : largest;  // one is enough
    }
    missing = missing_of<N>(x, problem.total);
  }
  return magnitude(missing) <=
         0.5 * std::numeric_limits<double>::epsilon() * std::abs(problem.total);
}

// How good the points are: see core/certify.hpp, of which this is the case of one sum without
// kinks.
template <int N>
struct Quality {
  using Rows = std::array<Lanes, N>;

  Lanes violation, bound;
  Mask optimal;

  Quality(const Rows& gradient, const Rows& linear, const Rows& x, Lanes value,
          const FewColumns& problem) {
    Rows down, up;
    Lanes dearest = all<Lanes>(-INFINITY), cheapest = -dearest;
    Lanes largest = {}, scale = {}, product = {}, constant = {};
    for (int i = 0; i < N; ++i) {
      down[i] = x[i] - problem.lower[i];
      up[i] = problem.upper[i] - x[i];
      dearest = down[i] > 0 ? maximum(gradient[i], dearest) : dearest;
      cheapest = up[i] > 0 ? minimum(gradient[i], cheapest) : cheapest;
      largest = maximum(magnitude(x[i]), largest);
      const Lanes moving = gradient[i] - linear[i];
      scale = maximum(scale, maximum(magnitude(moving), magnitude(linear[i])));
      product += x[i] * moving;
      constant += x[i] * linear[i];
    }
    violation = maximum(dearest - cheapest, Lanes{});
    bound = gain_of(gradient, down, up);
    const Lanes size = maximum(maximum(0.5 * magnitude(product), magnitude(constant)), value);
    const Lanes allowed = GAIN * problem.tol * size;
    Mask little = (bound <= allowed) | (violation <= ROUNDED * scale);
    if (any(~little)) {  // nearby less may be left
      for (int i = 0; i < N; ++i) {
        down[i] = minimum(down[i], largest);
        up[i] = minimum(up[i], largest);
      }
      little |= gain_of(gradient, down, up) <= allowed;
    }
    optimal = (violation <= problem.tol * scale) & little;
  }

 private:
  // What can be gained by trading within these rooms: the least over all prices at which they may
  // be sold and bought of what each gains then. One of the prices themselves is the best.
  static Lanes gain_of(const Rows& price, const Rows& down, const Rows& up) {
    Rows gain = {};
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < i; ++j) {
        const Lanes dearer = price[i] - price[j];
        gain[i] = dearer > 0   ? multiply_add(dearer, up[j], gain[i])
                  : dearer < 0 ? multiply_subtract(dearer, down[j], gain[i])
                               : gain[i];
        gain[j] = dearer > 0   ? multiply_add(dearer, down[i], gain[j])
                  : dearer < 0 ? multiply_subtract(dearer, up[i], gain[j])
                               : gain[j];
      }
    Lanes least = gain[0];
    for (const Lanes& each : gain) least = minimum(each, least);
    return least;
  }
};

// Two vectors of columns of B at a time, so that a number of A serves twice. They are read where
// they are: the first time from memory, where those after the next are asked for meanwhile.
template <int N>
class Panel {
 public:
  using Pair = std::array<Lanes, 2>;
  static constexpr Index STEP = 2 * WIDTH;

  // `count` columns from `first` on; fewer than two vectors are copied, with zeros after them.
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

  // Inner products with the columns of A, and of each with itself.
  struct Products {
    std::array<Pair, N> with_A;
    Pair squares;
  };
  // Of these columns.
  Products products() const {
    return sum([&](Index k) {
      const double* const b = columns_ + k * stride_;
      __builtin_prefetch(b + 2 * STEP, 0, 2);
      __builtin_prefetch(b + 2 * STEP + WIDTH, 0, 2);
      return Pair{load<Lanes>(b), load<Lanes>(b + WIDTH)};
    });
  }
  // Of Ax - b.
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

// The first lanes, as many as there are right-hand sides left.
inline void put(Lanes values, Index lanes, double* to) {
  if (lanes == WIDTH) store(to, values);
  else std::copy_n(reinterpret_cast<const double*>(&values), lanes, to);
}

template <int N>
void few_columns(const FewColumns& problem, Index begin, Index end) {
  using Rows = typename Faces<N>::Rows;
  const Faces<N> faces(problem);
  const bool definite = faces.are_definite();
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
      const auto [steps, solved] = faces.solve(c, x);
      const Mask settled = settle_lanes<N>(x, problem);
      linear[v] = c;
      const Index whole[] = {0, N};
      for (Index lane = 0; lane < lanes; ++lane) {
        const Index p = first + lane;
        if (!settled[lane]) {
          double row[N];
          for (int j = 0; j < N; ++j) row[j] = x[j][lane];
          settle(row, problem.lower, problem.upper, {1, whole, &problem.total});
          for (int j = 0; j < N; ++j) x[j][lane] = row[j];
        }
        problem.iterations[p] = Index(steps[lane]);
        problem.state[p] = !valid[v][lane]            ? FewColumns::invalid
                           : solved[lane] && definite ? FewColumns::solved
                                                      : FewColumns::unsolved;
      }
      for (int j = 0; j < problem.n; ++j) put(x[j], lanes, problem.x + j * problem.count + first);
      for (int j = 0; j < N; ++j) points[j][v] = x[j];
    }

    const auto with_residual = panel.of_residuals(points);
    for (int v = 0; v < 2; ++v) {
      const Index first = at + v * WIDTH, lanes = lanes_of(v);
      Rows gradient, x;
      Lanes value = with_residual.squares[v];
      for (int j = 0; j < N; ++j) {
        x[j] = points[j][v];
        const Lanes pull = problem.ridge[j] * points[j][v];
        value = multiply_add(pull, points[j][v], value);
        gradient[j] = valid[v] ? with_residual.with_A[j][v] + pull : all<Lanes>(0.0);
      }
      const Quality<N> quality(gradient, linear[v], x, 0.5 * value, problem);
      put(0.5 * value, lanes, problem.value + first);
      put(quality.violation, lanes, problem.violation + first);
      put(quality.bound, lanes, problem.bound + first);
      for (Index lane = 0; lane < lanes; ++lane)
        problem.optimal[first + lane] = quality.optimal[lane] != 0;
    }
  }
}

template <std::size_t... K>
void few_columns_of(std::index_sequence<K...>, const FewColumns& problem, Index begin, Index end) {
  ((problem.width == WIDTHS[K] ? few_columns<WIDTHS[K]>(problem, begin, end) : void()), ...);
}

inline void solve_few_columns(const FewColumns& problem, Index begin, Index end) {
  few_columns_of(std::make_index_sequence<WIDTHS.size()>(), problem, begin, end);
}
