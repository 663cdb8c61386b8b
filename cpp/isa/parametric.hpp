// A parametric active-set method for quadratic programs with rows; see engine/parametric.hpp.
// Included once per instruction set.

struct ParametricSettings {
  // A row whose part outside of the other active rows is below this fraction of the row depends on
  // them. A larger value would treat rows that are nearly parallel as dependent.
  static constexpr double dependent = 1e-10;
  // Relative difference of two velocities that is rounding error.
  static constexpr double parallel = 1e-11;
  // Change of a derivative, relative to its terms, that is rounding error of 0.
  static constexpr double cancelled = 1e-13;
  // Change of a variable, relative to the largest, that is rounding error of 0.
  static constexpr double still = 1e-15;
  // Change of a derivative, relative to the largest, along dependent rows, that is rounding error.
  static constexpr double negligible = 1e-9;
  // Squared size of a vector, relative to what it was computed from, that is rounding error of 0:
  // of a row at the free variables, and of a direction that satisfies the active rows.
  static constexpr double zero = 1e-24;
  // At the beginning of a solve, limits that the start violates are relaxed by the violation and
  // this fraction of it, times a random number between 1 and 2, so that rows become active one
  // after the other.
  static constexpr double relaxation = 0.1;
  // At the beginning of a solve, derivatives at bounds and rows at limits get a distance of this
  // fraction of the largest derivative or term, times a random number between 1 and 2, from the
  // value at which they would change.
  static constexpr double margin = 1e-4;
  // In the size of a row's terms, variables count with at least this fraction of the largest.
  static constexpr double least_term = 1e-3;
  // Limit on changes of the active set, per variable and row. Typical numbers are well below 1.
  static constexpr Index max_changes = 20;
  // Limit on consecutive changes at the same point, per variable and row. More of them are a cycle.
  static constexpr Index max_changes_in_place = 2;
  static constexpr int max_corrections = 10;  // at the end of a solve
  static constexpr int refinements = 3;       // at the end of other paths
  // Rounding errors of x are removed after this many changes.
  static constexpr Index changes_per_correction = 8;
  // Distance from a bound or center, relative to the largest variable, that is rounding error.
  static constexpr double near = 1e-13;
};

constexpr Index NONE = -1;

class ParametricSolver final : public Parametric {
 public:
  explicit ParametricSolver(const QuadraticProgram& problem)
      : p_(problem),
        n_(problem.n),
        k_(problem.rows),
        lower_(problem.lower, problem.lower + n_),
        upper_(problem.upper, problem.upper + n_),
        linear_(problem.linear, problem.linear + n_),
        l1_(n_),
        low_(problem.low, problem.low + k_),
        high_(problem.high, problem.high + k_),
        linear_slope_(n_),
        l1_slope_(n_),
        low_slope_(k_),
        high_slope_(k_),
        v_(k_),
        variables_(n_),
        row_(k_),
        curvature_(problem),
        factor_(k_) {
    if (p_.l1) l1_.assign(p_.l1, p_.l1 + n_);
  }

  std::unique_ptr<Parametric> copy() const override {
    return std::make_unique<ParametricSolver>(*this);
  }

  // The path leads from a problem that `start` solves, with another linear term and other limits.
  Status solve(const double* start, const bool* holds, unsigned seed,
               InterruptCheck& interrupt) override {
    std::mt19937_64 random(seed);
    x_.assign(start, start + n_);
    for (Index i = 0; i < n_; ++i) {
      variables_[i] = state_at(i, x_[i]);
      if (is_free(i)) factor_.list(i);
    }
    set_products();
    relax_limits(holds, random);
    Factorized factorized;
    while ((factorized = factorize()) == Factorized::dependent)
      if (!drop_equal_row()) return stalled;
    if (factorized == Factorized::failed) return stalled;
    fit_multipliers();
    shift_linear_term(random);
    const Status status = advance(1.0, {}, nullptr, interrupt);
    if (status != arrived) return status;
    end_path(p_.linear, p_.low, p_.high);
    return polish() ? arrived : stalled;
  }

  Status follow(const Direction& direction, double distance, const Cap& cap, Corners* corners,
                InterruptCheck& interrupt) override {
    linear_slope_.assign(direction.linear, direction.linear + n_);
    if (direction.l1) split_pieces(direction.l1);
    const Status status = advance(distance, cap, corners, interrupt);
    end_path(nullptr, nullptr, nullptr);
    if (status == arrived || status == capped) refine();
    if (corners && (corners->t.empty() || length_ > corners->t.back())) record(*corners, length_);
    return status;
  }

  Status move(Index i, double value, double lower, double upper,
              InterruptCheck& interrupt) override {
    if (value != x_[i]) {
      const bool down = value < x_[i];
      moving_ = i;
      velocity_ = value - x_[i];
      if (is_free(i)) {
        hold(i, !down);
      } else {
        added_row_ = NONE;
        added_variable_ = i;
        at_least_ = !down;
      }
      const Status status = advance(1.0, {}, nullptr, interrupt);
      moving_ = NONE;
      end_path(nullptr, nullptr, nullptr);
      if (status != arrived) return status;
      x_[i] = value;
      variables_[i] = {value, value, 0, false};
      refine();
    }
    lower_[i] = lower;
    upper_[i] = upper;
    if (is_free(i)) {
      Variable& own = variables_[i];
      own.least = std::max(own.least, lower);
      own.most = std::min(own.most, upper);
      if (x_[i] <= lower || x_[i] >= upper) hold(i, x_[i] <= lower);
    }
    return is_free(i) ? arrived : release_if_needed(i, interrupt);
  }

  const std::vector<double>& x() const override { return x_; }
  const std::vector<double>& multipliers() const override {
    return is_infeasible_ ? dependency_ : v_;
  }
  const std::vector<double>& derivatives() const override { return z_; }
  double t() const override { return length_; }
  Index changes() const override { return changes_; }
  double value() const override {
    double sum = 0.0;
    for (Index i = 0; i < n_; ++i) {
      sum += x_[i] * (0.5 * product_[i] + linear_[i]);
      if (l1_[i] != 0) sum += l1_[i] * std::abs(x_[i] - p_.center[i]);
    }
    return sum;
  }

 private:
  enum class Row { inactive, at_low, at_high, equal };
  enum class Factorized { done, dependent, failed };

  // A free variable moves within the piece [least, most], on which its L1 term has the slope
  // side * l1. A held variable has least == most.
  struct Variable {
    double least, most;
    int side;
    bool free;
  };

  bool is_free(Index i) const { return variables_[i].free; }
  bool is_fixed(Index i) const { return lower_[i] == upper_[i]; }
  bool has_l1(Index i) const { return p_.center && (l1_[i] > 0 || l1_slope_[i] > 0); }
  bool has_center(Index i) const {
    return has_l1(i) && lower_[i] < p_.center[i] && p_.center[i] < upper_[i];
  }
  // The side of the L1 term to the left and to the right of a value.
  int left_side(Index i, double value) const {
    return !has_l1(i) ? 0 : value <= p_.center[i] ? -1 : 1;
  }
  int right_side(Index i, double value) const {
    return !has_l1(i) ? 0 : value >= p_.center[i] ? 1 : -1;
  }

  Variable state_at(Index i, double value) const {
    const double low = lower_[i], high = upper_[i];
    if (value <= low || value >= high || (has_center(i) && value == p_.center[i]))
      return {value, value, 0, false};
    if (!has_center(i)) return {low, high, left_side(i, value), true};
    return value < p_.center[i] ? Variable{low, p_.center[i], -1, true}
                                : Variable{p_.center[i], high, 1, true};
  }

  // Set the change of the L1 weights. Centers of weights that were 0 become ends of pieces.
  void split_pieces(const double* l1_slope) {
    l1_slope_.assign(l1_slope, l1_slope + n_);
    for (Index i = 0; i < n_; ++i) {
      if (!is_free(i)) continue;
      variables_[i] = state_at(i, x_[i]);
      if (is_free(i)) continue;
      variables_[i].free = true;
      hold(i, true);
    }
  }

  // Limits of the derivative of a held variable, and their change per unit of t.
  struct Allowed {
    double least, most, least_slope, most_slope;
  };
  Allowed allowed(Index i) const {
    const double value = variables_[i].least;
    if (is_fixed(i) || i == moving_) return {-INFINITY, INFINITY, 0.0, 0.0};
    const int right = right_side(i, value), left = left_side(i, value);
    return {value >= upper_[i] ? -INFINITY : -right * l1(i),
            value <= lower_[i] ? INFINITY : -left * l1(i), -right * l1_slope_[i],
            -left * l1_slope_[i]};
  }

  double linear(Index i) const { return linear_[i] + t_ * linear_slope_[i]; }
  double l1(Index i) const { return l1_[i] + t_ * l1_slope_[i]; }
  double low(Index r) const { return low_[r] + t_ * low_slope_[r]; }
  double high(Index r) const { return high_[r] + t_ * high_slope_[r]; }
  double limit(Index r) const { return row_[r] == Row::at_high ? high(r) : low(r); }
  double limit_slope(Index r) const {
    return row_[r] == Row::at_high ? high_slope_[r] : low_slope_[r];
  }
  const double* row(Index r) const { return curvature_.row(r); }

  // Set Qx and Gx.
  void set_products() {
    curvature_.times_hessian(x_, product_);
    if (added_ > 0) add_multiple(added_, x_.data(), product_.data(), n_);
    curvature_.times_rows(x_, activities_);
  }

  // Set z = Qx + c - G'v.
  void set_derivatives() {
    z_ = product_;
    for (Index i = 0; i < n_; ++i) z_[i] += linear(i);
    curvature_.subtract_rows(v_, z_);
  }

  // Relax the limits of rows that the start violates or that are at a limit.
  void relax_limits(const bool* holds, std::mt19937_64& random) {
    std::uniform_real_distribution<double> between(1.0, 2.0);
    double largest = 0.0;
    for (const double value : x_) largest = std::max(largest, std::abs(value));
    for (Index r = 0; r < k_; ++r) {
      if (holds[r] && low_[r] == high_[r]) {
        row_[r] = Row::equal;
        continue;
      }
      double terms = 0.0;
      for (Index i = 0; i < n_; ++i)
        terms = std::max(terms,
                         std::abs(row(r)[i]) *
                             std::max(std::abs(x_[i]), ParametricSettings::least_term * largest));
      const auto shift = [&](double beyond) {
        const double apart = ParametricSettings::margin * terms * between(random);
        const double relaxed =
            std::max(beyond, 0.0) * ParametricSettings::relaxation * between(random);
        return beyond > -apart ? beyond + relaxed + apart : 0.0;
      };
      low_slope_[r] = shift(low_[r] - activities_[r]);
      low_[r] -= low_slope_[r];
      high_slope_[r] = -shift(activities_[r] - high_[r]);
      high_[r] -= high_slope_[r];
    }
  }

  // Shift the linear term such that the start is optimal.
  void shift_linear_term(std::mt19937_64& random) {
    std::uniform_real_distribution<double> between(1.0, 2.0);
    set_derivatives();
    double size = 0.0;
    for (Index i = 0; i < n_; ++i)
      size = std::max({size, std::abs(product_[i]), std::abs(linear_[i])});
    for (Index i = 0; i < n_; ++i) {
      if (!is_free(i) && is_fixed(i)) continue;
      double wanted;
      if (is_free(i)) {
        wanted = -variables_[i].side * l1(i);
      } else {
        const double margin = ParametricSettings::margin * size * between(random);
        const auto [least, most, unused, also_unused] = allowed(i);
        wanted = std::isinf(least)           ? std::min(z_[i], most - margin)
                 : std::isinf(most)          ? std::max(z_[i], least + margin)
                 : most - least > 2 * margin ? std::clamp(z_[i], least + margin, most - margin)
                                             : 0.5 * (least + most);
      }
      linear_slope_[i] = z_[i] - wanted;
      linear_[i] -= linear_slope_[i];
    }
  }

  // Make the end of a path the problem that further paths start from. The arguments are its exact
  // values, if they are known.
  void end_path(const double* linear_end, const double* low_end, const double* high_end) {
    for (Index i = 0; i < n_; ++i) {
      linear_[i] = linear_end ? linear_end[i] : linear(i);
      l1_[i] = std::max(l1(i), 0.0);
    }
    for (Index r = 0; r < k_; ++r) {
      low_[r] = low_end ? low_end[r] : low(r);
      high_[r] = high_end ? high_end[r] : high(r);
    }
    length_ = t_;
    t_ = 0.0;
    for (std::vector<double>* slope : {&linear_slope_, &l1_slope_, &low_slope_, &high_slope_})
      std::fill(slope->begin(), slope->end(), 0.0);
  }

  // Follow the path to t = distance.
  Status advance(double distance, const Cap& cap, Corners* corners, InterruptCheck& interrupt) {
    const Index first = changes_, limit = ParametricSettings::max_changes * (n_ + k_) + 100,
                limit_in_place = ParametricSettings::max_changes_in_place * (n_ + k_) + 50;
    Index in_place = 0;
    bool has_moved = true;
    t_ = 0.0;
    is_stale_ = is_stale_ || is_flat_;
    is_flat_ = false;
    set_derivatives();
    while (t_ < distance) {
      interrupt.poll();
      if (changes_ - first > limit || in_place > limit_in_place || interrupt.stopped())
        return stalled;
      const Factorized factorized = factorize();
      if (factorized == Factorized::failed) return stalled;
      ++changes_;
      if (factorized == Factorized::dependent) {
        if (exchange()) continue;
        is_infeasible_ = true;
        return infeasible;
      }
      if ((changes_ - first) % ParametricSettings::changes_per_correction == 0) correct();
      if (corners && has_moved) record(*corners, t_);
      const auto [what, unused, moved_by] = step(distance, cap, corners);
      has_moved = moved_by > 0;
      in_place = has_moved ? 0 : in_place + 1;
      if (what == Event::at_cap) return capped;
      if (what == Event::none) break;
    }
    return arrived;
  }

  // The bounds of a held variable have changed, so its derivative may have the wrong sign. Follow
  // the path from a linear term with which it has the right one.
  Status release_if_needed(Index i, InterruptCheck& interrupt) {
    set_derivatives();
    const Allowed range = allowed(i);
    const double wanted = std::clamp(z_[i], range.least, range.most), before = linear_[i];
    if (wanted == z_[i]) return arrived;
    linear_slope_[i] = z_[i] - wanted;
    linear_[i] -= linear_slope_[i];
    const Status status = advance(1.0, {}, nullptr, interrupt);
    end_path(nullptr, nullptr, nullptr);
    if (status != arrived) return status;
    linear_[i] = before;
    refine();
    return arrived;
  }

  // Append the current point to the corners.
  void record(Corners& corners, double t) const {
    corners.t.push_back(t);
    corners.x.insert(corners.x.end(), x_.begin(), x_.end());
    corners.multipliers.insert(corners.multipliers.end(), v_.begin(), v_.end());
  }

  // Move variables that are at an end of their piece up to rounding errors to that end, and remove
  // rounding errors from the others.
  bool polish() {
    is_last_ = true;
    is_stale_ = is_stale_ || added_ > 0;
    if (factorize() == Factorized::done) correct();
    hold_at_ends();
    is_stale_ = true;
    const bool is_done = factorize() == Factorized::done;
    for (int k = 0; is_done && k < ParametricSettings::max_corrections; ++k) correct();
    is_last_ = false;
    if (!is_done) return false;
    for (Index i = 0; i < n_; ++i) x_[i] = std::clamp(x_[i], lower_[i], upper_[i]);
    return true;
  }

  // Remove rounding errors, unless active rows depend on each other; and the effect of the ridge,
  // if the end of the path is a solution without it.
  void refine() {
    if (factorize() != Factorized::done) return;
    for (int k = 0; k < ParametricSettings::refinements; ++k) correct();
    if (added_ == 0) return;
    is_flat_ = false;
    is_stale_ = true;
    if (factorize() == Factorized::done && !is_flat_)
      for (int k = 0; k < ParametricSettings::refinements; ++k) correct();
  }

  // List the active rows. The row that was added last comes last, so that a dependency is
  // attributed to it.
  void list_active() {
    active_.clear();
    for (Index r = 0; r < k_; ++r)
      if (row_[r] != Row::inactive && r != added_row_) active_.push_back(r);
    if (added_row_ != NONE && row_[added_row_] != Row::inactive) active_.push_back(added_row_);
  }

  // Factorize the Hessian of the free variables from scratch, with multiples of the equal rows. If
  // it is singular, add multiples of all active rows; they change, so there are no updates.
  bool factorize_free() {
    std::vector<Index> equal;
    for (Index r = 0; r < k_; ++r)
      if (row_[r] == Row::equal) equal.push_back(r);
    curvature_.add(std::move(equal));
    is_stale_ = is_singular_ = false;
    FreeFactor::Matrix matrix = factor_.factorize(curvature_, 0.0);
    if (matrix != FreeFactor::Matrix::definite) {
      is_singular_ = true;
      list_active();
      curvature_.add(active_);
      matrix = factor_.factorize(curvature_, curvature_.ridge());
    }
    // If even the rows leave a direction without curvature, the problem may have no solution
    // between two corners. Then the ridge becomes a part of it until the end of the path.
    is_flat_ = is_flat_ || matrix == FreeFactor::Matrix::singular;
    const double added = is_flat_ && !is_last_ ? curvature_.ridge() : 0.0;
    if (added != added_) {
      added_ = added;
      set_products();
      set_derivatives();
    }
    return matrix != FreeFactor::Matrix::indefinite;
  }

  // Factorize the Schur complement of the active rows, after the factor of the free variables if
  // that has to be renewed. If the rows depend on each other, `dependency_` has the weights with
  // which they cancel.
  Factorized factorize() {
    if ((is_stale_ || is_singular_) && !factorize_free()) return Factorized::failed;  // not convex
    list_active();
    const Index size = factor_.size(), count = Index(active_.size());
    const Index wide = whole_vectors(count);
    compact_.assign(std::size_t(size * wide), 0.0);
    for (Index a = 0; a < size; ++a)
      for (Index c = 0; c < count; ++c) compact_[a * wide + c] = factor_.row_entry(a, active_[c]);
    schur_.assign(std::size_t(count * wide), 0.0);
    for (Index a = 0; a < size; ++a) {
      const double* const own = compact_.data() + a * wide;
      for (Index c = 0; c < count; ++c)
        if (own[c] != 0)
          FreeFactor::subtract(own, -own[c], schur_.data() + c * wide, whole_vectors(c + 1));
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
      const double smallest = ParametricSettings::zero / curvature_.weight(active_[c]);
      if (!(rest > ParametricSettings::dependent * before) || !(before > smallest)) {
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

  // Solve  H dx - A'dv = r,  A dx = e  over the free variables and active rows; set dx_ and dv_.
  void solve_system(std::vector<double> r, const std::vector<double>& e) {
    const std::vector<Index>& free = factor_.free();
    const Index size = factor_.size(), count = Index(active_.size());
    for (const Index own : curvature_.added()) {
      const double value = e[std::find(active_.begin(), active_.end(), own) - active_.begin()];
      if (value == 0) continue;
      for (Index a = 0; a < size; ++a) r[a] += curvature_.weight(own) * value * row(own)[free[a]];
    }
    factor_.solve_lower(r.data());
    const double before = dot(r.data(), r.data(), size);
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
    // At a vertex the rows leave no direction: what is left is rounding error.
    if (dot(r.data(), r.data(), size) <= ParametricSettings::zero * before)
      std::fill(r.begin(), r.end(), 0.0);
    factor_.solve_upper(r.data());
    dx_.assign(n_, 0.0);
    dv_.assign(k_, 0.0);
    for (Index a = 0; a < size; ++a) dx_[free[a]] = r[a];
    for (Index c = 0; c < count; ++c) dv_[active_[c]] = y[c];
  }

  // What is missing in the derivatives of the free variables.
  std::vector<double> missing_derivatives() {
    set_derivatives();
    std::vector<double> missing;
    for (const Index i : factor_.free()) missing.push_back(-(z_[i] + variables_[i].side * l1(i)));
    return missing;
  }

  // Set the multipliers of the equal rows by least squares over the free variables.
  void fit_multipliers() {
    solve_system(missing_derivatives(), std::vector<double>(active_.size()));
    v_ = dv_;
  }

  // Remove the errors that rounding and the ridge have left.
  void correct() {
    std::vector<double> missing;
    for (const Index r : active_) missing.push_back(limit(r) - dot(row(r), x_.data(), n_));
    solve_system(missing_derivatives(), missing);
    for (Index i = 0; i < n_; ++i) x_[i] += dx_[i];
    for (Index r = 0; r < k_; ++r) v_[r] += dv_[r];
    set_products();
    set_derivatives();
  }

  // Where a straight piece of the path ends: what happens, to which variable or row.
  struct Event {
    enum What { none, hold, free_up, free_down, activate_low, activate_high, deactivate, at_cap };
    What what = none;
    Index which = NONE;
    double at = INFINITY;

    void include(What kind, Index index, double distance) {
      distance = std::max(distance, 0.0);
      if (distance < at) *this = {kind, index, distance};
    }
  };

  // Include where the derivative z of a held variable, which changes by dz, frees it.
  void include_release(Index i, double dz, Event& next) const {
    const Allowed range = allowed(i);
    const double to_least = dz - range.least_slope, to_most = dz - range.most_slope;
    if (to_least < 0 && std::isfinite(range.least))
      next.include(Event::free_up, i, (range.least - z_[i]) / to_least);
    if (to_most > 0 && std::isfinite(range.most))
      next.include(Event::free_down, i, (range.most - z_[i]) / to_most);
  }

  // Set the changes of x, Qx, Gx, v and z per unit of t, where the active set stays.
  void set_velocities() {
    const std::vector<Index>& free = factor_.free();
    std::vector<double> of_linear, of_limits;
    for (const Index i : free)
      of_linear.push_back(-(linear_slope_[i] + variables_[i].side * l1_slope_[i]));
    for (const Index r : active_) of_limits.push_back(limit_slope(r));
    if (moving_ != NONE) {
      std::vector<double> column(free.size());
      curvature_.add_entries(moving_, free, 0, column.data());
      for (Index a = 0; a < factor_.size(); ++a) of_linear[a] -= velocity_ * column[a];
      for (std::size_t c = 0; c < active_.size(); ++c)
        of_limits[c] -= velocity_ * row(active_[c])[moving_];
      // The multiples of rows that the Hessian contains act on the value that the rows have left.
      for (const Index r : curvature_.added())
        for (Index a = 0; a < factor_.size(); ++a)
          of_linear[a] += velocity_ * curvature_.weight(r) * row(r)[moving_] * row(r)[free[a]];
    }
    solve_system(of_linear, of_limits);
    if (moving_ != NONE) dx_[moving_] = velocity_;
    double largest = 0.0;
    for (const double change : dx_) largest = std::max(largest, std::abs(change));
    for (double& change : dx_)
      if (std::abs(change) <= ParametricSettings::still * largest) change = 0.0;
    curvature_.times_hessian(dx_, dproduct_);
    if (added_ > 0) add_multiple(added_, dx_.data(), dproduct_.data(), n_);
    curvature_.times_rows(dx_, dactivity_);
    dz_ = dproduct_;
    for (Index i = 0; i < n_; ++i) dz_[i] += linear_slope_[i];
    curvature_.subtract_rows(dv_, dz_);
    // A change that is only rounding error of its terms would free a variable that must stay.
    for (Index i = 0; i < n_; ++i) {
      const double terms = std::abs(dproduct_[i]) + std::abs(linear_slope_[i]);
      if (std::abs(dz_[i]) <= ParametricSettings::cancelled * terms) dz_[i] = 0.0;
    }
  }

  // Follow the path to the next change of the active set, and make it.
  Event step(double distance, const Cap& cap, Corners* corners) {
    set_velocities();
    Event next;
    next.at = distance - t_;
    for (Index i = 0; i < n_; ++i) {
      if (!is_free(i)) {
        include_release(i, dz_[i], next);
        continue;
      }
      if (dx_[i] < 0) next.include(Event::hold, i, (variables_[i].least - x_[i]) / dx_[i]);
      if (dx_[i] > 0) next.include(Event::hold, i, (variables_[i].most - x_[i]) / dx_[i]);
    }
    for (Index r = 0; r < k_; ++r) include_row(r, next);
    if (cap.measure != Cap::none) next.include(Event::at_cap, NONE, distance_to(cap));
    if (next.what == Event::none && std::isinf(next.at)) {
      if (corners) corners->ray = dx_;
      next.at = 0.0;
      return next;
    }
    for (Index i = 0; i < n_; ++i) {
      x_[i] += next.at * dx_[i];
      product_[i] += next.at * dproduct_[i];
      z_[i] += next.at * dz_[i];
    }
    for (Index r = 0; r < k_; ++r) {
      v_[r] += next.at * dv_[r];
      activities_[r] += next.at * dactivity_[r];
    }
    t_ = next.what == Event::none ? distance : t_ + next.at;
    make(next);
    return next;
  }

  // Include where a row reaches a limit, or its multiplier 0.
  void include_row(Index r, Event& next) const {
    // Limits that move together with the row, up to rounding errors, are not reached.
    const double to_low = low_slope_[r] - dactivity_[r], to_high = dactivity_[r] - high_slope_[r],
                 apart = ParametricSettings::parallel * std::abs(dactivity_[r]);
    if (row_[r] == Row::inactive) {
      if (to_low > apart && std::isfinite(low_[r]))
        next.include(Event::activate_low, r, (activities_[r] - low(r)) / to_low);
      if (to_high > apart && std::isfinite(high_[r]))
        next.include(Event::activate_high, r, (high(r) - activities_[r]) / to_high);
    } else if ((row_[r] == Row::at_low && dv_[r] < 0) || (row_[r] == Row::at_high && dv_[r] > 0)) {
      next.include(Event::deactivate, r, -v_[r] / dv_[r]);
    }
  }

  // The change of t after which the measure of x is at its limit; infinite if it does not get there
  // on this piece of the path.
  double distance_to(const Cap& cap) const {
    double value = -cap.limit, slope = 0.0, curvature = 0.0;
    if (cap.measure == Cap::distance) {
      for (Index i = 0; i < n_; ++i) {
        const double from = x_[i] - p_.center[i];
        value += std::abs(from);
        slope += is_free(i) ? variables_[i].side * dx_[i] : 0.0;
      }
      const double at = -value / slope;
      return at >= 0 ? at : INFINITY;
    }
    for (Index i = 0; i < n_; ++i) {
      const double from = x_[i] - cap.b[i];
      value += from * (product_[i] - cap.product[i]);
      slope += from * dproduct_[i];
      curvature += dx_[i] * dproduct_[i];
    }
    // value + 2 slope at + curvature at^2 = 0: the smallest root that is not negative
    const double root = slope * slope - curvature * value;
    if (root < 0) return INFINITY;
    const double q = -(slope + std::copysign(std::sqrt(root), slope));
    double found = INFINITY;
    for (const double at : {q / curvature, value / q})
      if (at >= 0 && at < found) found = at;
    return found;
  }

  void make(const Event& event) {
    const Index which = event.which;
    added_row_ = added_variable_ = NONE;
    switch (event.what) {
      case Event::none:
      case Event::at_cap: break;
      case Event::hold: hold(which, dx_[which] < 0); break;
      case Event::free_up: release(which, true); break;
      case Event::free_down: release(which, false); break;
      case Event::activate_low:
      case Event::activate_high:
        row_[which] = event.what == Event::activate_low ? Row::at_low : Row::at_high;
        added_row_ = which;
        break;
      case Event::deactivate: deactivate(which); break;
    }
  }

  void release(Index i, bool upward) {
    const double value = variables_[i].least;
    const bool center = has_center(i);
    const double c = center ? p_.center[i] : 0.0;
    if (upward)
      variables_[i] = {value, center && value < c ? c : upper_[i], right_side(i, value), true};
    else variables_[i] = {center && value > c ? c : lower_[i], value, left_side(i, value), true};
    if (is_stale_ || is_singular_) factor_.list(i);
    else is_stale_ = !factor_.append(i, curvature_);
  }
  void hold(Index i, bool at_least) {
    if (is_stale_ || is_singular_) factor_.unlist(i);
    else factor_.remove(i);
    if (moving_ == NONE || i != moving_)
      x_[i] = at_least ? variables_[i].least : variables_[i].most;
    variables_[i] = {x_[i], x_[i], 0, false};
    added_row_ = NONE;
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
    const double near = ParametricSettings::near * largest;
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
      factor_.list(i);
      is_stale_ = true;
    }
  }

  // The active rows depend on each other over the free variables. Change the multipliers along the
  // dependency, in the direction that the new constraint needs, until another constraint can be
  // dropped. False if there is none: then no point satisfies all of them.
  bool exchange() {
    std::vector<double>& w = dependency_;
    std::vector<double> dz(n_);
    curvature_.subtract_rows(w, dz);
    double sign = 0.0;
    if (added_row_ != NONE && w[added_row_] != 0)
      sign = (row_[added_row_] == Row::at_high ? -1.0 : 1.0) * (w[added_row_] > 0 ? 1.0 : -1.0);
    else if (added_variable_ != NONE && dz[added_variable_] != 0)
      // At the lower end of a piece, the derivative of a held variable may only grow.
      sign = (at_least_ ? 1.0 : -1.0) * (dz[added_variable_] > 0 ? 1.0 : -1.0);
    else return drop_equal_row();
    for (double& value : w) value *= sign;
    for (double& value : dz) value *= sign;
    double scale = 0.0;
    for (const double value : dz) scale = std::max(scale, std::abs(value));
    Event next;
    for (Index i = 0; i < n_; ++i) {
      if (is_free(i) || std::abs(dz[i]) <= ParametricSettings::negligible * scale) continue;
      const Allowed range = allowed(i);
      if (dz[i] < 0 && std::isfinite(range.least))
        next.include(Event::free_up, i, (range.least - z_[i]) / dz[i]);
      if (dz[i] > 0 && std::isfinite(range.most))
        next.include(Event::free_down, i, (range.most - z_[i]) / dz[i]);
    }
    for (Index r = 0; r < k_; ++r) {
      if (r == added_row_) continue;
      if ((row_[r] == Row::at_low && w[r] < 0) || (row_[r] == Row::at_high && w[r] > 0))
        next.include(Event::deactivate, r, -v_[r] / w[r]);
    }
    if (next.what == Event::none) return false;
    for (Index r = 0; r < k_; ++r) v_[r] += next.at * w[r];
    for (Index i = 0; i < n_; ++i) z_[i] += next.at * dz[i];
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

  QuadraticProgram p_;
  Index n_, k_;
  std::vector<double> lower_, upper_;
  // The problem at t = 0, and its changes per unit of t.
  std::vector<double> linear_, l1_, low_, high_;
  std::vector<double> linear_slope_, l1_slope_, low_slope_, high_slope_;
  double t_ = 0.0, length_ = 0.0;
  std::vector<double> x_, v_;
  std::vector<double> product_, activities_, z_;             // Qx, Gx and Qx + c - G'v
  std::vector<double> dx_, dv_, dproduct_, dactivity_, dz_;  // changes per unit of t
  std::vector<Variable> variables_;
  std::vector<Row> row_;
  std::vector<Index> active_;
  Curvature curvature_;
  FreeFactor factor_;
  bool is_stale_ = true;      // whether the factor must be computed from scratch
  bool is_singular_ = false;  // whether that is needed after every change
  bool is_last_ = false;      // whether the path is over, and only corrections follow
  bool is_flat_ = false;      // whether a direction had no curvature on this path
  double added_ = 0.0;        // to the diagonal of Q, if so
  // L^-1 times the columns of the active rows (one line per free variable), and the factor of their
  // Schur complement.
  std::vector<double> compact_, schur_;
  Index wide_ = 0;                  // length of lines of `compact_` and `schur_`
  std::vector<double> dependency_;  // weights with which active rows cancel
  bool is_infeasible_ = false;
  Index moving_ = NONE;  // the variable that `move` moves
  double velocity_ = 0.0;
  // The constraint that was added last; for a variable, whether at the lower end of its piece.
  Index added_row_ = NONE, added_variable_ = NONE;
  bool at_least_ = false;
  Index changes_ = 0;
};

std::unique_ptr<Parametric> parametric(const QuadraticProgram& problem) {
  return std::make_unique<ParametricSolver>(problem);
}
