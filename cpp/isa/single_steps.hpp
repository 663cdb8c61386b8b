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
    Pair last{-1, -1, 0.0f};
    Index iterations = 0;
    for (; iterations < max_iter; ++iterations) {
      if (iterations % SingleStepsSettings::ITERATIONS_PER_CHECK == 0) {
        interrupt.poll();
        if (interrupt.stopped()) break;
      }
      const Ends ends = update(last);
      if (ends.down < 0 || !(double(ends.max_left) - double(ends.min_right) > goal)) break;
      last = choose(ends);
      if (last.j < 0 || !take(ends, last)) break;
    }
    return iterations;
  }

 private:
  typedef int Ints __attribute__((vector_size(PAIRSTEP_BYTES)));
  static constexpr Index WIDTH32 = Vector<float>::width;

  struct Pair {
    Index i, j;    // i decreases and j increases
    float amount;  // by this
  };
  struct Ends {
    Index down;  // the coordinate with the largest left derivative
    float max_left, min_right;
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

  // The index of the largest lane.
  static int best_lane(const float* values) {
    return int(std::max_element(values, values + WIDTH32) - values);
  }

  // Update the gradient after a step and find the extremes, in one pass.
  Ends update(const Pair& step) {
    const bool moved = step.i >= 0;
    const float* rows[2] = {hessian_ + std::max<Index>(step.i, 0) * point_.n,
                            hessian_ + std::max<Index>(step.j, 0) * point_.n};
    const float amount = moved ? step.amount : 0.0f;
    Floats max_left = Floats{} - INFINITY, min_right = Floats{} + INFINITY;
    Ints at{};
    for (Index p = 0; p < padded_; p += WIDTH32) {
      const Floats change = row_from(rows[1], p) - row_from(rows[0], p);
      const Floats g = load_as<Floats>(&gradient_[p]) + amount * change;
      std::memcpy(&gradient_[p], &g, sizeof g);
      const Floats left = g + load_as<Floats>(&left_[p]);
      const auto larger = left > max_left;
      max_left = larger ? left : max_left;
      at = larger ? Ints{} + int(p) : at;
      const Floats right = g + load_as<Floats>(&right_[p]);
      min_right = right < min_right ? right : min_right;
    }
    float lefts[WIDTH32], rights[WIDTH32];
    std::memcpy(lefts, &max_left, sizeof lefts);
    std::memcpy(rights, &min_right, sizeof rights);
    const int lane = best_lane(lefts);
    if (!(lefts[lane] > -INFINITY)) return {-1, 0.0f, 0.0f};
    return {at[lane] + lane, lefts[lane], *std::min_element(rights, rights + WIDTH32)};
  }

  // Choose the coordinate whose increase, with the decrease of ends.down, reduces the objective
  // most. The reduction is gain / curvature; such fractions are compared without a division.
  Pair choose(const Ends& ends) const {
    const Index i = ends.down;
    const float* row = hessian_ + i * point_.n;
    const float limit_of_i =
        float(std::min(position_of(point_, i).max_decrease, SingleStepsSettings::LARGEST));
    Floats best_gain{}, best_curvature = Floats{} + 1.0f;
    Ints at = Ints{} - 1;
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
    float gains[WIDTH32], curvatures[WIDTH32], quotients[WIDTH32];
    std::memcpy(gains, &best_gain, sizeof gains);
    std::memcpy(curvatures, &best_curvature, sizeof curvatures);
    for (Index k = 0; k < WIDTH32; ++k) quotients[k] = gains[k] / curvatures[k];
    const int lane = best_lane(quotients);
    if (at[lane] < 0 || !(quotients[lane] > 0)) return {-1, -1, 0.0f};
    return {i, at[lane] + lane, curvatures[lane]};
  }

  // Take the step of a pair, whose `amount` is its curvature before. Returns whether x changed.
  bool take(const Ends& ends, Pair& pair) {
    const auto [i, j, curvature] = pair;
    const Position at_i = position_of(point_, i), at_j = position_of(point_, j);
    const double gap = double(ends.max_left) - double(gradient_[j] + right_[j]);
    const double amount = std::min({gap / double(curvature), at_i.max_decrease, at_j.max_increase});
    if (!(amount > 0) || !std::isfinite(amount)) return false;
    double &x_i = point_.x[i], &x_j = point_.x[j];
    const double lowest = floor_at(point_, i, x_i), highest = ceiling_at(point_, j, x_j);
    const double before_i = x_i, before_j = x_j;
    x_i = amount >= at_i.max_decrease ? lowest : x_i - amount;
    x_j = amount >= at_j.max_increase ? highest : x_j + amount;
    enter(i);
    enter(j);
    pair.amount = float(amount);
    return x_i != before_i && x_j != before_j;
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
