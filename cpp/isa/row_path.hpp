// A parametric active-set method for quadratic programs with rows; see engine/rows.hpp. Included
// once per instruction set.

struct RowsSettings {
  // Added to the diagonal of the free variables' Hessian, relative to its largest entry, so that it
  // is positive definite if Q is singular. Corrections against the exact residuals remove its
  // effect.
  static constexpr double ridge = 1e-11;
  // A row whose part outside of the other active rows is below this fraction of the row depends on
  // them. A larger value would treat rows that are nearly parallel as dependent.
  static constexpr double dependent = 1e-10;
  // Relative difference of two velocities that is rounding error.
  static constexpr double parallel = 1e-11;
  // Change of a derivative, relative to the largest, that is rounding error of 0.
  static constexpr double negligible = 1e-9;
  // Squared size of a row at the free variables, relative to its largest entry, that is the
  // rounding error of 0.
  static constexpr double zero = 1e-24;
  // At the beginning of the path, limits that the start violates are relaxed by the violation and
  // this fraction of it, times a random number between 1 and 2, so that rows become active one
  // after the other.
  static constexpr double relaxation = 0.1;
  // At the beginning of the path, derivatives at bounds and rows at limits get a distance of this
  // fraction of the largest derivative or term, times a random number between 1 and 2, from the
  // value at which they would change.
  static constexpr double margin = 1e-4;
  // In the size of a row's terms, variables count with at least this fraction of the largest.
  static constexpr double least_term = 1e-3;
  // Limit on changes of the active set, per variable and row. Typical numbers are well below 1.
  static constexpr Index max_changes = 20;
  static constexpr int max_corrections = 10;
  // Rounding errors of x are removed after this many changes.
  static constexpr Index changes_per_correction = 8;
  // If the part of a variable's curvature that the other free variables do not explain is below
  // this fraction, the Hessian is treated as singular: multiples of all active rows are added to
  // it, and it is factorized again after each change.
  static constexpr double singular = 1e-8;
  // Distance from a bound or center, relative to the largest variable, that is rounding error.
  static constexpr double near = 1e-13;
};

constexpr Index NONE = -1;

// Follows the solution of the problem with the linear term c + (1 - t) c_shift and row limits
// low - (1 - t) low_shift, high + (1 - t) high_shift, from t = 0 to t = 1.
class Path {
 public:
  Path(const RowsProblem& problem, const double* start, const bool* holds, unsigned seed)
      : p_(problem),
        n_(problem.n),
        k_(problem.rows),
        x_(start, start + n_),
        v_(k_),
        c_shift_(n_),
        low_shift_(k_),
        high_shift_(k_),
        variables_(n_),
        row_(k_),
        weight_(k_),
        width_(whole_vectors(k_)) {
    std::mt19937_64 random(seed);
    for (Index i = 0; i < n_; ++i) {
      variables_[i] = state_at(i, x_[i]);
      if (is_free(i)) free_.push_back(i);
    }
    product_ = times_hessian(x_);
    activities_ = times_rows(x_);
    relax_limits(holds, random);
    weigh_rows();
    while (factorize() == Factorized::dependent) drop_equal_row();
    fit_multipliers();
    shift_linear_term(random);
  }

  RowsAnswer run(InterruptCheck& interrupt) {
    const Index limit = RowsSettings::max_changes * (n_ + k_) + 100;
    Index changes = 0;
    while (t_ < 1.0) {
      interrupt.poll();
      if (++changes > limit || interrupt.stopped()) return answer(RowsAnswer::stalled, changes);
      const Factorized factorized = factorize();
      if (factorized == Factorized::failed) return answer(RowsAnswer::stalled, changes);
      if (factorized == Factorized::dependent) {
        if (!exchange()) return infeasible(changes);
        continue;
      }
      if (changes % RowsSettings::changes_per_correction == 0) correct();
      step();
    }
    hold_at_ends();
    is_stale_ = true;
    if (factorize() != Factorized::done) return answer(RowsAnswer::stalled, changes);
    for (int k = 0; k < RowsSettings::max_corrections; ++k) correct();
    for (Index i = 0; i < n_; ++i) x_[i] = std::clamp(x_[i], p_.lower[i], p_.upper[i]);
    return answer(RowsAnswer::optimal, changes);
  }

 private:
  enum class Row { inactive, at_low, at_high, equal };
  enum class Factorized { done, dependent, failed };

  // A free variable moves within the piece [least, most], on which its L1 term has one slope. A
  // held variable has least == most.
  struct Variable {
    double least, most, slope;
    bool free;
  };

  bool is_free(Index i) const { return variables_[i].free; }
  bool is_fixed(Index i) const { return p_.lower[i] == p_.upper[i]; }
  double l1(Index i) const { return p_.l1 ? p_.l1[i] : 0.0; }
  bool has_center(Index i) const {
    return l1(i) > 0 && p_.lower[i] < p_.center[i] && p_.center[i] < p_.upper[i];
  }
  // The slope of the L1 term to the left and to the right of a value.
  double left_slope(Index i, double value) const {
    return l1(i) == 0 ? 0.0 : value <= p_.center[i] ? -l1(i) : l1(i);
  }
  double right_slope(Index i, double value) const {
    return l1(i) == 0 ? 0.0 : value >= p_.center[i] ? l1(i) : -l1(i);
  }

  Variable state_at(Index i, double value) const {
    const double low = p_.lower[i], high = p_.upper[i];
    if (value <= low || value >= high || (has_center(i) && value == p_.center[i]))
      return {value, value, 0.0, false};
    if (!has_center(i)) return {low, high, left_slope(i, value), true};
    return value < p_.center[i] ? Variable{low, p_.center[i], -l1(i), true}
                                : Variable{p_.center[i], high, l1(i), true};
  }
  // The derivatives of the smooth part, minus G'v, at which a held variable stays.
  std::pair<double, double> allowed(Index i) const {
    const double value = variables_[i].least;
    if (is_fixed(i)) return {-INFINITY, INFINITY};
    return {value >= p_.upper[i] ? -INFINITY : -right_slope(i, value),
            value <= p_.lower[i] ? INFINITY : -left_slope(i, value)};
  }
  void release(Index i, bool upward) {
    const double value = variables_[i].least;
    const bool center = has_center(i);
    const double c = center ? p_.center[i] : 0.0;
    if (upward)
      variables_[i] = {value, center && value < c ? c : p_.upper[i], right_slope(i, value), true};
    else variables_[i] = {center && value > c ? c : p_.lower[i], value, left_slope(i, value), true};
    if (is_stale_ || is_singular_) free_.push_back(i);
    else is_singular_ = !append(i);
  }

  double linear(Index i) const { return p_.linear[i] + (1 - t_) * c_shift_[i]; }
  double low(Index r) const { return p_.low[r] - (1 - t_) * low_shift_[r]; }
  double high(Index r) const { return p_.high[r] + (1 - t_) * high_shift_[r]; }
  double limit(Index r) const { return row_[r] == Row::at_high ? high(r) : low(r); }
  // The derivative of the limit with respect to t.
  double limit_slope(Index r) const {
    return row_[r] == Row::at_high ? -high_shift_[r] : low_shift_[r];
  }
  const double* row(Index r) const { return p_.matrix + r * n_; }

  std::vector<double> times_hessian(const std::vector<double>& x) const {
    std::vector<double> product(n_);
    if (p_.hessian) {
      times(p_.hessian, x.data(), n_, product.data());
      return product;
    }
    for (Index i = 0; i < n_; ++i) product[i] = p_.diagonal[i] * x[i];
    for (Index f = 0; f < p_.m; ++f) {
      const double* const factor = p_.factors + f * n_;
      const double sum = dot(factor, x.data(), n_);
      for (Index i = 0; i < n_; ++i) product[i] += sum * factor[i];
    }
    return product;
  }
  std::vector<double> times_rows(const std::vector<double>& x) const {
    std::vector<double> product(k_);
    for (Index r = 0; r < k_; ++r) product[r] = dot(row(r), x.data(), n_);
    return product;
  }
  // vector - sum_r weights_r row_r
  void subtract_rows(const std::vector<double>& weights, std::vector<double>& vector) const {
    for (Index r = 0; r < k_; ++r) {
      if (weights[r] == 0.0) continue;
      add_multiple(-weights[r], row(r), vector.data(), n_);
    }
  }
  // Qx + c - G'v
  std::vector<double> reduced() const {
    std::vector<double> z = product_;
    for (Index i = 0; i < n_; ++i) z[i] += linear(i);
    subtract_rows(v_, z);
    return z;
  }

  // Relax the limits of rows that the start violates or that are at a limit.
  void relax_limits(const bool* holds, std::mt19937_64& random) {
    std::uniform_real_distribution<double> between(1.0, 2.0);
    double largest = 0.0;
    for (const double value : x_) largest = std::max(largest, std::abs(value));
    for (Index r = 0; r < k_; ++r) {
      if (holds[r] && p_.low[r] == p_.high[r]) {
        row_[r] = Row::equal;
        continue;
      }
      double terms = 0.0;
      for (Index i = 0; i < n_; ++i)
        terms = std::max(terms, std::abs(row(r)[i]) *
                                    std::max(std::abs(x_[i]), RowsSettings::least_term * largest));
      const auto shift = [&](double beyond) {
        const double apart = RowsSettings::margin * terms * between(random);
        const double relaxed = std::max(beyond, 0.0) * RowsSettings::relaxation * between(random);
        return beyond > -apart ? beyond + relaxed + apart : 0.0;
      };
      low_shift_[r] = shift(p_.low[r] - activities_[r]);
      high_shift_[r] = shift(activities_[r] - p_.high[r]);
    }
  }

  // Set the multiples of a a' for rows a that may be added to the Hessian, so that they are about
  // as large as its diagonal.
  void weigh_rows() {
    for (Index i = 0; i < n_; ++i) largest_ = std::max(largest_, hessian_diagonal(i));
    if (!(largest_ > 0)) largest_ = 1.0;
    for (Index r = 0; r < k_; ++r) {
      double square = 0.0;
      for (Index i = 0; i < n_; ++i) square = std::max(square, row(r)[i] * row(r)[i]);
      weight_[r] = square > 0 ? largest_ / square : 1.0;
    }
  }
  double hessian_diagonal(Index i) const {
    if (p_.hessian) return p_.hessian[i * (n_ + 1)];
    double sum = p_.diagonal[i];
    for (Index f = 0; f < p_.m; ++f) sum += p_.factors[f * n_ + i] * p_.factors[f * n_ + i];
    return sum;
  }

  // Shift the linear term such that the start is optimal.
  void shift_linear_term(std::mt19937_64& random) {
    std::uniform_real_distribution<double> between(1.0, 2.0);
    const std::vector<double> z = reduced();
    double size = 0.0;
    for (Index i = 0; i < n_; ++i)
      size = std::max({size, std::abs(product_[i]), std::abs(p_.linear[i])});
    for (Index i = 0; i < n_; ++i) {
      if (is_free(i)) {
        c_shift_[i] = -(z[i] + variables_[i].slope);
        continue;
      }
      if (is_fixed(i)) continue;
      const double margin = RowsSettings::margin * size * between(random);
      const auto [least, most] = allowed(i);
      const double wanted = std::isinf(least)  ? std::min(z[i], most - margin)
                            : std::isinf(most) ? std::max(z[i], least + margin)
                            : most - least > 2 * margin
                                ? std::clamp(z[i], least + margin, most - margin)
                                : 0.5 * (least + most);
      c_shift_[i] = wanted - z[i];
    }
  }

  // List the active rows. The row that was added last comes last, so that a dependency is
  // attributed to it.
  void list_active() {
    active_.clear();
    for (Index r = 0; r < k_; ++r)
      if (row_[r] != Row::inactive && r != added_row_) active_.push_back(r);
    if (added_row_ != NONE && row_[added_row_] != Row::inactive) active_.push_back(added_row_);
  }

  // Add the entries of row `i` of the Hessian at the variables `at`, from position `begin` on.
  void add_hessian(Index i, const std::vector<Index>& at, Index begin, double* to) const {
    const Index size = Index(at.size());
    if (p_.hessian) {
      const double* const own = p_.hessian + i * n_;
      for (Index a = begin; a < size; ++a) to[a] += own[at[a]];
    } else {
      for (Index f = 0; f < p_.m; ++f) {
        const double *const factor = p_.factors + f * n_, own = factor[i];
        for (Index a = begin; a < size; ++a) to[a] += own * factor[at[a]];
      }
      for (Index a = begin; a < size; ++a)
        if (at[a] == i) to[a] += p_.diagonal[i];
    }
    // Multiples of a a' for active rows a change no solution. They make the matrix definite where
    // the rows decide.
    for (Index r = 0; r < k_; ++r) {
      if (!is_added(r) || row(r)[i] == 0) continue;
      const double by = weight_[r] * row(r)[i];
      for (Index a = begin; a < size; ++a) to[a] += by * row(r)[at[a]];
    }
  }
  // Whether a multiple of the row is added to the Hessian.
  bool is_added(Index r) const {
    return row_[r] == Row::equal || (is_singular_ && row_[r] != Row::inactive);
  }

  // Factorize the Hessian of the free variables from scratch. False if it is not positive definite.
  bool factorize_free() {
    const Index size = Index(free_.size());
    reserve(size);
    for (Index a = 0; a < size; ++a) {
      double* const column = factor_.data() + a * stride_;
      std::fill_n(column, size, 0.0);
      add_hessian(free_[a], free_, a, column);
      column[a] += RowsSettings::ridge * largest_;
    }
    if (size > 0 && !cholesky(factor_.data(), size, stride_, scratch_)) return false;
    for (Index a = 0; a < size; ++a) {
      double* const own = rows_.data() + a * width_;
      for (Index r = 0; r < k_; ++r) own[r] = row(r)[free_[a]];
    }
    for (Index c = 0; c < size; ++c) {
      const double* const column = factor_.data() + c * stride_;
      double* const own = rows_.data() + c * width_;
      for (Index r = 0; r < width_; ++r) own[r] /= column[c];
      for (Index a = c + 1; a < size; ++a)
        subtract(own, column[a], rows_.data() + a * width_, width_);
    }
    return true;
  }
  // Make room for one more free variable.
  void reserve(Index size) {
    if (size < stride_) return;
    const Index stride = whole_vectors(size + size / 2 + 8), before = stride_;
    std::vector<double> larger(std::size_t(stride * stride));
    for (Index c = 0; c < before; ++c)
      std::copy_n(factor_.data() + c * before, before, larger.data() + c * stride);
    factor_.swap(larger);
    rows_.resize(std::size_t(stride * width_));
    stride_ = stride;
  }
  static void subtract(const double* from, double by, double* to, Index size) {
    for (Index r = 0; r < size; r += WIDTH)
      store(to + r, multiply_subtract(all<Lanes>(by), load<Lanes>(from + r), load<Lanes>(to + r)));
  }

  // Add a variable to the factor. False if the Hessian becomes nearly singular.
  bool append(Index i) {
    const Index size = Index(free_.size());
    reserve(size + 1);
    free_.push_back(i);
    std::vector<double> last(std::size_t(size + 1));
    add_hessian(i, free_, 0, last.data());
    const double own = last[size] + RowsSettings::ridge * largest_;
    double rest = own;
    double* const of_rows = rows_.data() + size * width_;
    for (Index r = 0; r < k_; ++r) of_rows[r] = row(r)[i];
    std::fill(of_rows + k_, of_rows + width_, 0.0);
    for (Index c = 0; c < size; ++c) {
      double* const column = factor_.data() + c * stride_;
      const double solved = last[c] / column[c];
      for (Index a = c + 1; a < size; ++a) last[a] -= solved * column[a];
      column[size] = solved;
      rest -= solved * solved;
      subtract(rows_.data() + c * width_, solved, of_rows, width_);
    }
    if (!(rest > RowsSettings::singular * own)) return false;
    const double root = std::sqrt(rest);
    factor_[size * stride_ + size] = root;
    for (Index r = 0; r < width_; ++r) of_rows[r] /= root;
    return true;
  }

  // Remove a variable from the factor, with Givens rotations of the columns after it.
  void remove(Index i) {
    const Index place = std::find(free_.begin(), free_.end(), i) - free_.begin(),
                size = Index(free_.size()) - 1;
    free_.erase(free_.begin() + place);
    for (Index c = 0; c <= size; ++c) {
      double* const column = factor_.data() + c * stride_;
      std::copy(column + place + 1, column + size + 1, column + place);
    }
    // Row a of the factor now ends at column a + 1 if a >= place.
    for (Index c = place; c < size; ++c) {
      double *const left = factor_.data() + c * stride_, *const right = left + stride_;
      const double length = std::hypot(left[c], right[c]), cosine = left[c] / length,
                   sine = right[c] / length;
      for (Index a = c; a < size; ++a) {
        const double l = left[a], r = right[a];
        left[a] = cosine * l + sine * r;
        right[a] = cosine * r - sine * l;
      }
      double *const upper = rows_.data() + c * width_, *const lower = upper + width_;
      for (Index k = 0; k < width_; ++k) {
        const double u = upper[k], l = lower[k];
        upper[k] = cosine * u + sine * l;
        lower[k] = cosine * l - sine * u;
      }
    }
  }

  // Factorize the Schur complement of the active rows, after the factor of the free variables if
  // that has to be renewed. If the rows depend on each other, `dependency_` has the weights with
  // which they cancel.
  Factorized factorize() {
    if (is_stale_ || is_singular_) {
      if (!factorize_free()) {
        if (is_singular_) return Factorized::failed;  // not convex
        is_singular_ = true;
        if (!factorize_free()) return Factorized::failed;
      }
      is_stale_ = false;
    }
    list_active();
    const Index size = Index(free_.size()), count = Index(active_.size());
    const Index wide = whole_vectors(count);
    compact_.assign(std::size_t(size * wide), 0.0);
    for (Index a = 0; a < size; ++a)
      for (Index c = 0; c < count; ++c) compact_[a * wide + c] = rows_[a * width_ + active_[c]];
    schur_.assign(std::size_t(count * wide), 0.0);
    for (Index a = 0; a < size; ++a) {
      const double* const own = compact_.data() + a * wide;
      for (Index c = 0; c < count; ++c)
        if (own[c] != 0) subtract(own, -own[c], schur_.data() + c * wide, whole_vectors(c + 1));
    }
    wide_ = wide;
    for (Index c = 0; c < count; ++c) {
      double* const own = schur_.data() + c * wide;
      const double before = own[c];
      for (Index d = 0; d < c; ++d) {
        const double* const other = schur_.data() + d * wide;
        own[d] = (own[d] - dot(own, other, d)) / other[d];
      }
      const double rest = before - dot(own, own, c);
      const double smallest = RowsSettings::zero / weight_[active_[c]];
      if (!(rest > RowsSettings::dependent * before) || !(before > smallest)) {
        find_dependency(c);
        return Factorized::dependent;
      }
      own[c] = std::sqrt(rest);
    }
    return Factorized::done;
  }

  // Row c of the active rows is a combination of those before it.
  void find_dependency(Index c) {
    std::vector<double> w(schur_.begin() + c * wide_, schur_.begin() + c * wide_ + c);
    for (Index d = c; d-- > 0;) {
      w[d] /= schur_[d * wide_ + d];
      for (Index e = 0; e < d; ++e) w[e] -= schur_[d * wide_ + e] * w[d];
    }
    dependency_.assign(k_, 0.0);
    dependency_[active_[c]] = 1.0;
    for (Index d = 0; d < c; ++d) dependency_[active_[d]] = -w[d];
  }

  // Solve  H dx - A'dv = r,  A dx = e  over the free variables and active rows.
  void solve_system(std::vector<double> r, const std::vector<double>& e, std::vector<double>& dx,
                    std::vector<double>& dv) const {
    const Index size = Index(free_.size()), count = Index(active_.size());
    for (Index c = 0; c < count; ++c) {
      const Index own = active_[c];
      if (!is_added(own) || e[c] == 0) continue;
      for (Index a = 0; a < size; ++a) r[a] += weight_[own] * e[c] * row(own)[free_[a]];
    }
    for (Index c = 0; c < size; ++c) {
      const double* const column = factor_.data() + c * stride_;
      const double solved = r[c] /= column[c];
      for (Index a = c + 1; a < size; ++a) r[a] -= solved * column[a];
    }
    std::vector<double> y(e);
    for (Index a = 0; a < size; ++a)
      for (Index c = 0; c < count; ++c) y[c] -= r[a] * compact_[a * wide_ + c];
    for (Index c = 0; c < count; ++c) {
      const double* const own = schur_.data() + c * wide_;
      y[c] = (y[c] - dot(own, y.data(), c)) / own[c];
    }
    for (Index c = count; c-- > 0;) {
      const double* const own = schur_.data() + c * wide_;
      y[c] /= own[c];
      for (Index d = 0; d < c; ++d) y[d] -= own[d] * y[c];
    }
    for (Index a = 0; a < size; ++a) r[a] += dot(compact_.data() + a * wide_, y.data(), count);
    for (Index c = size; c-- > 0;) {
      const double* const column = factor_.data() + c * stride_;
      r[c] = (r[c] - dot(column + c + 1, r.data() + c + 1, size - c - 1)) / column[c];
    }
    dx.assign(n_, 0.0);
    dv.assign(k_, 0.0);
    for (Index a = 0; a < size; ++a) dx[free_[a]] = r[a];
    for (Index c = 0; c < count; ++c) dv[active_[c]] = y[c];
  }

  // What is missing in the derivatives of the free variables.
  std::vector<double> missing_derivatives() const {
    const std::vector<double> z = reduced();
    std::vector<double> missing;
    for (const Index i : free_) missing.push_back(-(z[i] + variables_[i].slope));
    return missing;
  }

  // Set the multipliers of the equal rows by least squares over the free variables.
  void fit_multipliers() {
    std::vector<double> dx;
    solve_system(missing_derivatives(), std::vector<double>(active_.size()), dx, v_);
  }

  // Remove the errors that rounding and the ridge have left.
  void correct() {
    std::vector<double> missing, dx, dv;
    for (const Index r : active_) missing.push_back(limit(r) - dot(row(r), x_.data(), n_));
    solve_system(missing_derivatives(), missing, dx, dv);
    for (Index i = 0; i < n_; ++i) x_[i] += dx[i];
    for (Index r = 0; r < k_; ++r) v_[r] += dv[r];
    product_ = times_hessian(x_);
    activities_ = times_rows(x_);
  }

  // Where a path ends: what happens, to which variable or row.
  struct Event {
    enum What { none, hold, free_up, free_down, activate_low, activate_high, deactivate };
    What what = none;
    Index which = NONE;
    double at = INFINITY;

    void include(What kind, Index index, double distance) {
      distance = std::max(distance, 0.0);
      if (distance < at) *this = {kind, index, distance};
    }
  };

  // Include where the derivative z of a held variable, which changes by dz, frees it.
  void include_release(Index i, double z, double dz, Event& next) const {
    const auto [least, most] = allowed(i);
    if (dz < 0 && std::isfinite(least)) next.include(Event::free_up, i, (least - z) / dz);
    if (dz > 0 && std::isfinite(most)) next.include(Event::free_down, i, (most - z) / dz);
  }

  // Follow the path to the next change of the active set, and make it.
  void step() {
    std::vector<double> of_linear, of_limits, dx, dv;
    for (const Index i : free_) of_linear.push_back(c_shift_[i]);
    for (const Index r : active_) of_limits.push_back(limit_slope(r));
    solve_system(of_linear, of_limits, dx, dv);
    const std::vector<double> dproduct = times_hessian(dx), dactivity = times_rows(dx),
                              z = reduced();
    std::vector<double> dz = dproduct;
    for (Index i = 0; i < n_; ++i) dz[i] -= c_shift_[i];
    subtract_rows(dv, dz);
    Event next;
    next.at = 1.0 - t_;
    for (Index i = 0; i < n_; ++i) {
      if (is_free(i)) {
        if (dx[i] < 0) next.include(Event::hold, i, (variables_[i].least - x_[i]) / dx[i]);
        if (dx[i] > 0) next.include(Event::hold, i, (variables_[i].most - x_[i]) / dx[i]);
      } else {
        include_release(i, z[i], dz[i], next);
      }
    }
    for (Index r = 0; r < k_; ++r) {
      // Limits that move together with the row, up to rounding errors, are not reached.
      const double to_low = low_shift_[r] - dactivity[r], to_high = dactivity[r] + high_shift_[r],
                   apart = RowsSettings::parallel * std::abs(dactivity[r]);
      if (row_[r] == Row::inactive) {
        if (to_low > apart && std::isfinite(p_.low[r]))
          next.include(Event::activate_low, r, (activities_[r] - low(r)) / to_low);
        if (to_high > apart && std::isfinite(p_.high[r]))
          next.include(Event::activate_high, r, (high(r) - activities_[r]) / to_high);
      } else if (row_[r] == Row::at_low && dv[r] < 0) {
        next.include(Event::deactivate, r, -v_[r] / dv[r]);
      } else if (row_[r] == Row::at_high && dv[r] > 0) {
        next.include(Event::deactivate, r, -v_[r] / dv[r]);
      }
    }
    for (Index i = 0; i < n_; ++i) {
      x_[i] += next.at * dx[i];
      product_[i] += next.at * dproduct[i];
    }
    for (Index r = 0; r < k_; ++r) {
      v_[r] += next.at * dv[r];
      activities_[r] += next.at * dactivity[r];
    }
    t_ = next.what == Event::none ? 1.0 : t_ + next.at;
    const Index which = next.which;
    added_row_ = added_variable_ = NONE;
    switch (next.what) {
      case Event::none: break;
      case Event::hold: hold(which, dx[which] < 0); break;
      case Event::free_up: release(which, true); break;
      case Event::free_down: release(which, false); break;
      case Event::activate_low:
      case Event::activate_high:
        row_[which] = next.what == Event::activate_low ? Row::at_low : Row::at_high;
        added_row_ = which;
        break;
      case Event::deactivate: deactivate(which); break;
    }
  }

  void hold(Index i, bool at_least) {
    if (is_stale_ || is_singular_) free_.erase(std::find(free_.begin(), free_.end(), i));
    else remove(i);
    x_[i] = at_least ? variables_[i].least : variables_[i].most;
    variables_[i] = {x_[i], x_[i], 0.0, false};
    added_variable_ = i;
    at_least_ = at_least;
  }
  void deactivate(Index r) {
    row_[r] = Row::inactive;
    v_[r] = 0.0;
  }

  // Hold the free variables that differ from an end of their piece only by rounding errors, unless
  // the active rows would then depend on each other.
  void hold_at_ends() {
    double largest = 0.0;
    for (const double value : x_) largest = std::max(largest, std::abs(value));
    const double near = RowsSettings::near * largest;
    for (Index i = 0; i < n_; ++i) {
      if (!is_free(i)) continue;
      const bool at_least = x_[i] - variables_[i].least <= near,
                 at_most = variables_[i].most - x_[i] <= near;
      if (!at_least && !at_most) continue;
      const Variable before = variables_[i];
      const double value = x_[i];
      hold(i, at_least);
      if (factorize() == Factorized::done) continue;
      variables_[i] = before;
      x_[i] = value;
      free_.push_back(i);
      is_stale_ = true;
    }
  }

  // The active rows depend on each other over the free variables. Change the multipliers along the
  // dependency, in the direction that the new constraint needs, until another constraint can be
  // dropped. False if there is none: then no point satisfies all of them.
  bool exchange() {
    std::vector<double>& w = dependency_;
    std::vector<double> dz(n_);
    subtract_rows(w, dz);
    double sign = 0.0;
    if (added_row_ != NONE && w[added_row_] != 0)
      sign = (row_[added_row_] == Row::at_high ? -1.0 : 1.0) * (w[added_row_] > 0 ? 1.0 : -1.0);
    else if (added_variable_ != NONE && dz[added_variable_] != 0)
      // At the lower end of a piece, the derivative of a held variable may only grow.
      sign = (at_least_ ? 1.0 : -1.0) * (dz[added_variable_] > 0 ? 1.0 : -1.0);
    else return drop_equal_row();
    for (double& value : w) value *= sign;
    for (double& value : dz) value *= sign;
    const std::vector<double> z = reduced();
    double scale = 0.0;
    for (const double value : dz) scale = std::max(scale, std::abs(value));
    Event next;
    for (Index i = 0; i < n_; ++i) {
      if (is_free(i) || std::abs(dz[i]) <= RowsSettings::negligible * scale) continue;
      include_release(i, z[i], dz[i], next);
    }
    for (Index r = 0; r < k_; ++r) {
      if (r == added_row_) continue;
      if ((row_[r] == Row::at_low && w[r] < 0) || (row_[r] == Row::at_high && w[r] > 0))
        next.include(Event::deactivate, r, -v_[r] / w[r]);
    }
    if (next.what == Event::none) return false;
    for (Index r = 0; r < k_; ++r) v_[r] += next.at * w[r];
    if (next.what == Event::deactivate) deactivate(next.which);
    else release(next.which, next.what == Event::free_up);
    return true;
  }

  // Of equal rows that repeat each other, drop the last one.
  bool drop_equal_row() {
    for (Index r = k_; r-- > 0;)
      if (dependency_[r] != 0 && row_[r] == Row::equal) {
        deactivate(r);
        is_stale_ = true;
        return true;
      }
    return false;
  }

  RowsAnswer answer(RowsAnswer::Status status, Index changes) { return {status, x_, v_, changes}; }
  RowsAnswer infeasible(Index changes) {
    return {RowsAnswer::infeasible, x_, dependency_, changes};
  }

  const RowsProblem& p_;
  Index n_, k_;
  double t_ = 0.0;
  std::vector<double> x_, v_, c_shift_, low_shift_, high_shift_;
  std::vector<Variable> variables_;
  std::vector<Row> row_;
  std::vector<double> product_, activities_;  // Qx and Gx
  std::vector<Index> free_, active_;
  // The lower factor L of the free variables' Hessian, by columns; L^-1 times the columns of all
  // rows (one line per free variable), and of the active rows; the factor of the Schur complement.
  std::vector<double> factor_, rows_, compact_, schur_, dependency_;
  std::vector<double> weight_;  // of row a in the multiples of a a' that are added to the Hessian
  Index width_, stride_ = 0, wide_ = 0;  // lengths of lines of `rows_`, `factor_` and `compact_`
  double largest_ = 0.0;                 // entry of the diagonal of Q
  bool is_stale_ = true;                 // whether the factor must be computed from scratch
  bool is_singular_ = false;
  Scratch scratch_;
  // The constraint that was added last.
  Index added_row_ = NONE, added_variable_ = NONE;
  bool at_least_ = false;
};

RowsAnswer follow_rows(const RowsProblem& problem, const double* start, const bool* holds,
                       unsigned seed, InterruptCheck& interrupt) {
  return Path(problem, start, holds, seed).run(interrupt);
}
