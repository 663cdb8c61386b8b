// Block principal pivoting (Judice and Pires, 1994) for small dense quadratic programs. Minimize
// over the free variables without their bounds. Then move every variable that left its bounds to
// the nearest one, free all variables at bounds whose derivative has the wrong sign, and repeat.
// The method is abandoned if it does not find the minimum within a few factorizations. Included
// once per instruction set.
//
// All arrays are padded to whole vectors. Variables beyond n have bounds, costs and values of 0,
// so they never become free.

class Pivoting {
 public:
  Pivoting(const Small& problem, const SharedCost& shared)
      : hessian_(problem.hessian),
        n_(problem.n),
        padded_(whole_vectors(n_)),
        total_(problem.total),
        tol_(problem.tol) {
    scratch_.fit(padded_ * (padded_ + 9));
    double* next = scratch_.data();
    for (double** array : {&x_, &lower_, &upper_, &linear_, &product_, &step_, &solved_, &inverse_,
                           &of_reference_, &factor_})
      next = (*array = next) + padded_;
    const auto copy = [&](const double* from, double* to) {
      std::copy_n(from, n_, to);
      std::fill(to + n_, to + padded_, 0.0);
    };
    copy(problem.lower, lower_);
    copy(problem.upper, upper_);
    copy(problem.linear, linear_);
    copy(problem.lower, x_);
    members_.resize(std::size_t(padded_ + 1));
    is_free_.assign(std::size_t(padded_ / WIDTH), 0);
    for (Index i = 0; i < n_; ++i) {
      is_free_[i / WIDTH] |= 1u << i % WIDTH;
      linear_size_ = std::max(linear_size_, shared.size_of(problem.linear[i]));
    }
    list_members();
  }

  Pivoted run() {
    // Give up after this many factorizations in a row without a new smallest number of misplaced
    // variables. The method may cycle, so a limit is needed; a larger one would cost more
    // factorizations in that case.
    constexpr int MAX_IDLE_ROUNDS = 3;
    // If the size of the terms of the gradient falls below this fraction of its largest value so
    // far, the terms vanish at the solution. A tolerance relative to their size there would be too
    // small, so the solve must start at another point.
    constexpr double VANISHING_SCALE = 1e-4;
    // Above this number of variables, other starts are better if the first round misplaces more
    // than half of the variables, because factorizations take most of the time.
    constexpr Index MAX_FOR_ANY_START = 100;
    Index fewest = n_ <= MAX_FOR_ANY_START ? n_ + 1 : n_ / 2 + 1;
    for (int idle = 0, round = 0; idle < MAX_IDLE_ROUNDS && size_ > 0; ++round) {
      if (reduce() == 0.0) break;
      if (!factorize()) {
        if (round == 0) return Pivoted::not_convex;
        break;
      }
      minimize();
      const Index wrong = exchange();
      if (wrong == 0 && scale_ < VANISHING_SCALE * largest_scale_) break;
      if (wrong == 0) return Pivoted::minimum;
      if (round == 0 && wrong >= fewest) break;
      idle = wrong < fewest ? 0 : idle + 1;
      fewest = std::min(wrong, fewest);
      list_members();
    }
    return Pivoted::many_at_bounds;
  }

  const double* x() const { return x_; }

 private:
  // Choose the first free variable as the reference, and list the others as members. The list is
  // padded with the reference.
  void list_members() {
    Index* next = members_.data();
    for (Index v = 0; v < padded_ / WIDTH; ++v)
      for_bits(is_free_[v], [&](Index k) { *next++ = v * WIDTH + k; });
    size_ = std::max<Index>(next - members_.data() - 1, 0);
    stride_ = whole_vectors(size_);
    std::fill(next, members_.data() + stride_ + 1, members_[0]);
  }

  // The entries of a row that belong to the members from `first` on.
  Lanes gather(const double* row, Index first) const {
    const Index* const member = members_.data() + 1 + first;
    if (member[WIDTH - 1] - member[0] == WIDTH - 1) return load<Lanes>(row + member[0]);
    Lanes entries;
    for (Index k = 0; k < WIDTH; ++k) entries[k] = row[member[k]];
    return entries;
  }

  // Set the factor to the Hessian reduced to the steps e_i - e_r, where r is the reference and i a
  // member, and add a ridge of the size of its rounding errors. Return the largest entry without
  // the ridge. The padding of a column is 0, because there i is the reference itself.
  double reduce() {
    const Index reference = members_[0];
    const double *const row = hessian_ + reference * n_, own = row[reference];
    for (Index b = 0; b < stride_; b += WIDTH) store(of_reference_ + b, gather(row, b));
    double curvature = std::abs(own);
    Lanes largest{};
    for (Index a = 0; a < size_; ++a) {
      const Index member = members_[a + 1];
      const double* const of_member = hessian_ + member * n_;
      const double common = of_member[reference] - own;
      double* const column = factor_ + a * stride_;
      for (Index b = a / WIDTH * WIDTH; b < stride_; b += WIDTH) {
        const Lanes entry = (gather(of_member, b) - load<Lanes>(of_reference_ + b)) - common;
        store(column + b, entry);
        largest = maximum(largest, maximum(entry, -entry));
      }
      curvature =
          std::max({curvature, std::abs(of_member[member]), std::abs(of_member[reference])});
    }
    const double ridge = ConvexitySettings::rounding * curvature;
    for (Index a = 0; a < size_; ++a) factor_[a * (stride_ + 1)] += ridge;
    return largest_lane(largest);
  }

  bool factorize() {
    if (size_ <= MAX_UNBLOCKED_CHOLESKY) return factorize_small(factor_, size_, stride_, inverse_);
    if (!cholesky(factor_, size_, stride_, strips_)) return false;
    for (Index c = 0; c < size_; ++c) {
      double* const column = factor_ + c * stride_;
      inverse_[c] = 1.0 / column[c];
      std::fill(column + c / WIDTH * WIDTH, column + c, 0.0);
    }
    return true;
  }

  // step := (L L')^-1 step.
  void solve() {
    for (Index c = 0; c < size_; ++c) {
      const double* const column = factor_ + c * stride_;
      const double solved = solved_[c] = step_[c] * inverse_[c];
      for (Index r = c / WIDTH * WIDTH; r < stride_; r += WIDTH)
        store(step_ + r, multiply_subtract(all<Lanes>(solved), load<Lanes>(column + r),
                                           load<Lanes>(step_ + r)));
    }
    std::fill(step_, step_ + stride_, 0.0);
    for (Index c = size_; c-- > 0;) {
      const double* const column = factor_ + c * stride_;
      Lanes sum{};
      for (Index r = c / WIDTH * WIDTH; r < stride_; r += WIDTH)
        sum = multiply_add(load<Lanes>(column + r), load<Lanes>(step_ + r), sum);
      step_[c] = (solved_[c] - sum_of_lanes(sum)) * inverse_[c];
    }
  }

  // Minimize over the free variables, without their bounds, while the others stay fixed.
  void minimize() {
    const Index reference = members_[0];
    Lanes sum{};
    for (Index i = 0; i < padded_; i += WIDTH) sum += load<Lanes>(x_ + i);
    const double shift = (total_ - sum_of_lanes(sum)) / double(size_ + 1);
    for (Index a = 0; a <= size_; ++a) x_[members_[a]] += shift;
    update_product();
    largest_scale_ = std::max(largest_scale_, scale_);
    for (Index a = 0; a < stride_; ++a) step_[a] = gradient(reference) - gradient(members_[a + 1]);
    solve();
    double taken = 0.0;
    for (Index a = 0; a < size_; ++a) {
      x_[members_[a + 1]] += step_[a];
      taken += step_[a];
    }
    x_[reference] -= taken;
  }

  // Move misplaced variables to a bound or into the free set, and return their number.
  Index exchange() {
    // A variable at a bound becomes free only if its derivative differs from the multiplier by more
    // than this fraction of the tolerance. Without a margin, rounding errors would free variables.
    // It is well below 1, so that the result satisfies the tolerance.
    constexpr double MARGIN_PER_TOLERANCE = 0.1;
    update_product();
    double multiplier = 0.0;
    for (Index a = 0; a <= size_; ++a) multiplier += gradient(members_[a]);
    multiplier /= double(size_ + 1);
    const double margin = MARGIN_PER_TOLERANCE * tol_ * scale_;
    const Lanes low_multiplier = all<Lanes>(multiplier - margin),
                high_multiplier = all<Lanes>(multiplier + margin);
    Index wrong = 0;
    for (Index i = 0; i < padded_; i += WIDTH) {
      const Lanes x = load<Lanes>(x_ + i), low = load<Lanes>(lower_ + i),
                  high = load<Lanes>(upper_ + i),
                  derivative = load<Lanes>(product_ + i) + load<Lanes>(linear_ + i);
      unsigned& is_free = is_free_[i / WIDTH];
      const unsigned outside = is_free & (above(low, x) | above(x, high)), at_low = same(x, low),
                     falls = above(low_multiplier, derivative),
                     rises = above(derivative, high_multiplier),
                     freed = ~is_free & above(high, low) & ((at_low & falls) | (~at_low & rises));
      is_free = (is_free & ~outside) | freed;
      wrong += std::popcount(outside) + std::popcount(freed);
      store(x_ + i, minimum(maximum(x, low), high));
    }
    return wrong;
  }

  // Qx, and the size of the terms that cancel in the gradient.
  void update_product() {
    times(hessian_, x_, n_, product_);
    std::fill(product_ + n_, product_ + padded_, 0.0);
    Lanes largest = all<Lanes>(linear_size_);
    for (Index i = 0; i < padded_; i += WIDTH) {
      const Lanes product = load<Lanes>(product_ + i);
      largest = maximum(largest, maximum(product, -product));
    }
    scale_ = largest_lane(largest);
  }

  double gradient(Index i) const { return product_[i] + linear_[i]; }

  const double* hessian_;
  Index n_, padded_;
  double total_, tol_;
  double *x_, *lower_, *upper_, *linear_, *product_, *step_, *solved_, *inverse_, *of_reference_;
  double* factor_;                 // by columns, `stride_` apart
  Index size_ = 0, stride_ = 0;    // of the factor; the size is the number of members
  std::vector<unsigned> is_free_;  // one bit per variable, one entry per vector
  std::vector<Index> members_;     // the reference comes first
  // Size of the terms that cancel in the gradient: of the linear ones, of all, and the largest of
  // all so far.
  double linear_size_ = 0.0, scale_ = 0.0, largest_scale_ = 0.0;
  Scratch scratch_, strips_;
};

Pivoted pivot(const Small& problem, const SharedCost& shared, double* x) {
  Pivoting pivoting(problem, shared);
  const Pivoted found = pivoting.run();
  std::copy_n(pivoting.x(), problem.n, x);
  return found;
}
