// Pair steps with the gradient in float32, for the first part of a solve whose Hessian is stored in
// float32 and whose tolerance is far above the rounding error of float32, as in most SVM duals. A
// vector has twice as many lanes, and half as much memory is read, as with float64. The pairs are
// those of LIBSVM's rule (rules/libsvm.hpp), except where rounding decides. x stays in float64 and
// within its bounds. The coordinate-descent solver (greedy.hpp) continues with an exact gradient.
// Included once per instruction set.

struct SingleStepsSettings {
  // Rounding error of the gradient after thousands of updates, relative to its largest entry. A
  // violation near it cannot be reduced in float32.
  static constexpr double ROUNDING = 0x1p-19;
  // Larger derivatives and distances could overflow in products of two of them.
  static constexpr double LARGEST = 0x1p60;
  // Curvature below this, relative to the diagonal, may be rounding error.
  static constexpr float MIN_CURVATURE = 0x1p-20f;
  static constexpr Index ITERATIONS_PER_CHECK = 256;  // between two checks for interrupts
};

class SingleSteps {
 public:
  SingleSteps(const Point& point, const float* hessian)
      : point_(point), hessian_(hessian), padded_((point.n + WIDTH32 - 1) / WIDTH32 * WIDTH32) {
    for (std::vector<float>* each : {&gradient_, &left_, &right_, &max_increase_, &diagonal_})
      each->assign(std::size_t(padded_), 0.0f);
    for (Index p = point.n; p < padded_; ++p) {
      left_[p] = -INFINITY;
      right_[p] = INFINITY;
    }
    for (Index p = 0; p < point.n; ++p) {
      gradient_[p] = float(point.gradient[p]);
      largest_ = std::max(largest_, std::abs(point.gradient[p]));
      diagonal_[p] = hessian[p * (point.n + 1)];
      enter(p);
    }
  }

  // Take steps until the violation is at most `threshold` or the rounding error. Returns their
  // number.
  Index run(double threshold, Index max_iter, InterruptCheck& interrupt) {
    if (!(largest_ < SingleStepsSettings::LARGEST)) return 0;
    const double goal = std::max(threshold, SingleStepsSettings::ROUNDING * largest_);
    Index iterations = 0, extreme = -1, since = 0;
    Ends ends = update(0, 0, 0.0f);
    for (; iterations < max_iter; ++iterations) {
      if (iterations % SingleStepsSettings::ITERATIONS_PER_CHECK == 0) {
        interrupt.poll();
        if (interrupt.stopped()) break;
      }
      if (ends.down < 0 || ends.up < 0) break;
      if (!(double(ends.max_left) - double(ends.min_right) > goal)) break;
      // As in greedy.hpp, take a step with a coordinate that has been extreme for many steps.
      const bool persists = ends.up == extreme;
      Candidate other;
      if (!persists || iterations - since <= GreedySettings::MAX_ITERATIONS_AS_EXTREME) {
        other = choose(ends);
        if (!persists) since = iterations;
      } else {
        other = {ends.up, curvature_of(ends.down, ends.up)};
        since = iterations;
      }
      extreme = ends.up;
      if (other.index < 0) break;
      const double amount = take(ends, other);
      if (!(amount > 0)) break;
      ends = update(ends.down, other.index, float(amount));
    }
    return iterations;
  }

 private:
  typedef int Ints __attribute__((vector_size(PAIRSTEP_BYTES)));
  static constexpr Index WIDTH32 = Vector<float>::width;

  // The coordinates with the largest left and the smallest right derivative; -1 if there is none.
  struct Ends {
    Index down, up;
    float max_left, min_right;
  };
  // A coordinate that may increase, and the curvature of its pair.
  struct Candidate {
    Index index = -1;
    float curvature = 0.0f;
  };

  // Enter x of coordinate p into the tables.
  void enter(Index p) {
    const Position at = position_of(point_, p);
    left_[p] = float(at.left_shift);
    right_[p] = float(at.right_shift);
    max_increase_[p] = float(std::min(at.max_increase, SingleStepsSettings::LARGEST));
  }

  // The entries of a row from p on. Those behind its end are 0.
  Floats row_from(const float* row, Index p) const {
    if (p + WIDTH32 <= point_.n) return load_as<Floats>(row + p);
    Floats rest{};
    std::memcpy(&rest, row + p, std::size_t(point_.n - p) * sizeof(float));
    return rest;
  }

  // The largest lane: its value, and the position that `at` has for it.
  static std::pair<float, Index> largest_lane(const Floats& values, const Ints& at) {
    int lane = 0;
    for (int k = 1; k < int(WIDTH32); ++k)
      if (values[k] > values[lane]) lane = k;
    return {values[lane], Index(at[lane]) + lane};
  }

  float curvature_of(Index i, Index j) const {
    const float both = diagonal_[i] + diagonal_[j];
    return std::max(both - 2.0f * hessian_[i * point_.n + j],
                    SingleStepsSettings::MIN_CURVATURE * both);
  }

  // Update the gradient after coordinate i decreased and j increased by an amount, and find the
  // extremes in the same pass.
  Ends update(Index i, Index j, float amount) {
    const float *row_i = hessian_ + i * point_.n, *row_j = hessian_ + j * point_.n;
    Floats max_left = Floats{} - INFINITY, max_minus_right = max_left;
    Ints at_left{}, at_right{};
    for (Index p = 0; p < padded_; p += WIDTH32) {
      const Floats g =
          load_as<Floats>(&gradient_[p]) + amount * (row_from(row_j, p) - row_from(row_i, p));
      std::memcpy(&gradient_[p], &g, sizeof g);
      const Floats left = g + load_as<Floats>(&left_[p]);
      const auto larger = left > max_left;
      max_left = larger ? left : max_left;
      at_left = larger ? Ints{} + int(p) : at_left;
      const Floats minus_right = -(g + load_as<Floats>(&right_[p]));
      const auto smaller = minus_right > max_minus_right;
      max_minus_right = smaller ? minus_right : max_minus_right;
      at_right = smaller ? Ints{} + int(p) : at_right;
    }
    const auto [left, down] = largest_lane(max_left, at_left);
    const auto [minus_right, up] = largest_lane(max_minus_right, at_right);
    return {left > -INFINITY ? down : -1, minus_right > -INFINITY ? up : -1, left, -minus_right};
  }

  // Choose the coordinate whose increase, with the decrease of ends.down, reduces the objective
  // most. The reduction is gain / curvature; such fractions are compared without a division.
  Candidate choose(const Ends& ends) const {
    const Index i = ends.down;
    const float* row = hessian_ + i * point_.n;
    const float limit_of_i =
        float(std::min(position_of(point_, i).max_decrease, SingleStepsSettings::LARGEST));
    Floats best_gain{}, best_curvature = Floats{} + 1.0f;
    Ints at{};
    for (Index p = 0; p < padded_; p += WIDTH32) {
      const Floats gap =
          ends.max_left - (load_as<Floats>(&gradient_[p]) + load_as<Floats>(&right_[p]));
      const Floats both = diagonal_[i] + load_as<Floats>(&diagonal_[p]);
      const Floats least = SingleStepsSettings::MIN_CURVATURE * both;
      const Floats exact = both - 2.0f * row_from(row, p);
      const Floats curvature = exact > least ? exact : least;
      const Floats own = load_as<Floats>(&max_increase_[p]);
      const Floats most = (own < limit_of_i ? own : Floats{} + limit_of_i) * curvature;
      const Floats scaled = most < gap ? most : gap;  // the best amount times the curvature
      const Floats gain = scaled * (gap - 0.5f * scaled);
      const auto better = (gap > 0.0f) & (gain * best_curvature > best_gain * curvature);
      best_gain = better ? gain : best_gain;
      best_curvature = better ? curvature : best_curvature;
      at = better ? Ints{} + int(p) : at;
    }
    const auto [gain, j] = largest_lane(best_gain / best_curvature, at);
    if (!(gain > 0)) return {};
    return {j, curvature_of(i, j)};
  }

  // Take the step of ends.down with another coordinate. Returns its amount, or 0 if x of one of
  // them does not change.
  double take(const Ends& ends, const Candidate& other) {
    const Index i = ends.down, j = other.index;
    const Position at_i = position_of(point_, i), at_j = position_of(point_, j);
    const double gap = double(ends.max_left) - double(gradient_[j] + right_[j]);
    const double amount =
        std::min({gap / double(other.curvature), at_i.max_decrease, at_j.max_increase});
    if (!(amount > 0) || !std::isfinite(amount)) return 0.0;
    double &x_i = point_.x[i], &x_j = point_.x[j];
    const double after_i = amount >= at_i.max_decrease ? floor_at(point_, i, x_i) : x_i - amount;
    const double after_j = amount >= at_j.max_increase ? ceiling_at(point_, j, x_j) : x_j + amount;
    if (after_i == x_i || after_j == x_j) return 0.0;
    x_i = after_i;
    x_j = after_j;
    enter(i);
    enter(j);
    return amount;
  }

  const Point point_;
  const float* hessian_;
  const Index padded_;
  std::vector<float> gradient_, left_, right_, max_increase_, diagonal_;
  double largest_ = 0.0;  // entry of the gradient, in size
};

// Take steps in float32 from a point of one group with a correct gradient. x changes in place, the
// gradient does not. Returns the number of steps.
inline Index single_steps(const Point& point, const float* hessian, double threshold,
                          Index max_iter, InterruptCheck& interrupt) {
  return SingleSteps(point, hessian).run(threshold, max_iter, interrupt);
}
