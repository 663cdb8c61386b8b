// Pair steps with the Hessian and the gradient in float32, for the first part of a solve whose
// tolerance is far above the rounding error of float32, as in most SVM duals. A vector has twice as
// many lanes, and half as much memory is read, as with float64. The pairs are those of LIBSVM's
// rule (rules/libsvm.hpp), except where rounding decides. x stays in float64 and within its bounds.
// Another solver continues with an exact gradient. Included once per instruction set.

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
  SingleSteps(const Point& point, HessianRows& hessian)
      : point_(point),
        hessian_(hessian),
        padded_((point.n + WIDTH32 - 1) / WIDTH32 * WIDTH32),
        rows_(std::size_t(point.n), nullptr) {
    for (std::vector<float>* each : {&gradient_, &left_, &right_, &max_increase_, &diagonal_})
      each->assign(std::size_t(padded_), 0.0f);
    for (Index p = point.n; p < padded_; ++p) {
      left_[p] = -INFINITY;
      right_[p] = INFINITY;
    }
    for (Index p = 0; p < point.n; ++p) {
      gradient_[p] = float(point.gradient[p]);
      largest_ = std::max(largest_, std::abs(point.gradient[p]));
      diagonal_[p] = hessian.diagonal(p);
      enter(p);
    }
  }

  // Take steps until the violation is at most `threshold` or the rounding error. Returns their
  // number.
  Index run(double threshold, Index max_iter, InterruptCheck& interrupt) {
    if (!(largest_ < SingleStepsSettings::LARGEST)) return 0;
    const double goal = std::max(threshold, SingleStepsSettings::ROUNDING * largest_);
    Index iterations = 0, extreme = -1, since = 0;
    Ends& ends = ends_;
    ends = update(diagonal_.data(), diagonal_.data(), 0.0f);  // finds the extremes only
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
      ends = update(row(ends.down), row(other.index), float(amount));
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

  const float* row(Index i) {
    if (!rows_[i]) compute(i);
    return rows_[i];
  }

  // Compute row i together with those that are likely to be needed next: the rows of the
  // coordinates with the largest violations.
  void compute(Index i) {
    wanted_.assign(1, i);
    const std::size_t more = std::size_t(hessian_.rows_at_once() - 1);
    if (more > 0) {
      violations_.clear();
      for (Index p = 0; p < point_.n; ++p) {
        if (rows_[p] || p == i) continue;
        const float violation = std::max(gradient_[p] + left_[p] - ends_.min_right,
                                         ends_.max_left - (gradient_[p] + right_[p]));
        if (violation > 0) violations_.push_back({violation, p});
      }
      const std::size_t count = std::min(more, violations_.size());
      std::nth_element(violations_.begin(), violations_.begin() + std::ptrdiff_t(count),
                       violations_.end(), std::greater<>());
      for (std::size_t k = 0; k < count; ++k) wanted_.push_back(violations_[k].second);
    }
    hessian_.compute(wanted_, rows_.data());
  }

  // The entries of a row from p on. Those behind its end are 0.
  Floats row_from(const float* row, Index p) const {
    if (p + WIDTH32 <= point_.n) return load_as<Floats>(row + p);
    Floats rest{};
    std::memcpy(&rest, row + p, std::size_t(point_.n - p) * sizeof(float));
    return rest;
  }

  // The largest of some numbers in each lane, and their positions.
  struct Largest {
    Floats values = Floats{} - INFINITY;
    Ints at{};

    void include(const Floats& others, Index p) {
      const auto larger = others > values;
      values = larger ? others : values;
      at = larger ? Ints{} + int(p) : at;
    }
    void include(const Largest& other) {
      const auto larger = (other.values > values) | ((other.values == values) & (other.at < at));
      values = larger ? other.values : values;
      at = larger ? other.at : at;
    }

    // The largest number of all lanes, and its first position.
    std::pair<float, Index> of_all() const {
      float largest = -INFINITY;
      for (int lane = 0; lane < int(WIDTH32); ++lane) largest = std::max(largest, values[lane]);
      Index first = std::numeric_limits<Index>::max();
      for (int lane = 0; lane < int(WIDTH32); ++lane)
        if (values[lane] == largest) first = std::min(first, Index(at[lane]) + lane);
      return {largest, first};
    }
  };

  float curvature_of(Index i, Index j) {
    const float both = diagonal_[i] + diagonal_[j];
    return std::max(both - 2.0f * row(i)[j], SingleStepsSettings::MIN_CURVATURE * both);
  }

  // Update the gradient after coordinate i decreased and j increased by an amount, and find the
  // extremes in the same pass. Even and odd vectors have their own extremes, because a comparison
  // has to wait for the one before it.
  Ends update(const float* row_i, const float* row_j, float amount) {
    Largest left, minus_right, odd_left, odd_minus_right;
    const auto visit = [&](Index p, const Floats& of_i, const Floats& of_j, Largest& left,
                           Largest& minus_right) {
      const Floats g = load_as<Floats>(&gradient_[p]) + amount * (of_j - of_i);
      std::memcpy(&gradient_[p], &g, sizeof g);
      left.include(g + load_as<Floats>(&left_[p]), p);
      minus_right.include(-(g + load_as<Floats>(&right_[p])), p);
    };
    Index p = 0;
    for (; p + 2 * WIDTH32 <= point_.n; p += 2 * WIDTH32) {
      visit(p, load_as<Floats>(row_i + p), load_as<Floats>(row_j + p), left, minus_right);
      const Index q = p + WIDTH32;
      visit(q, load_as<Floats>(row_i + q), load_as<Floats>(row_j + q), odd_left, odd_minus_right);
    }
    for (; p < padded_; p += WIDTH32)
      visit(p, row_from(row_i, p), row_from(row_j, p), left, minus_right);
    left.include(odd_left);
    minus_right.include(odd_minus_right);
    const auto [max_left, down] = left.of_all();
    const auto [max_minus_right, up] = minus_right.of_all();
    return {max_left > -INFINITY ? down : -1, max_minus_right > -INFINITY ? up : -1, max_left,
            -max_minus_right};
  }

  // Choose the coordinate whose increase, with the decrease of ends.down, reduces the objective
  // most. The reduction is gain / curvature; such fractions are compared without a division.
  Candidate choose(const Ends& ends) {
    const Index i = ends.down;
    const float* row_i = row(i);
    const float limit_of_i =
        float(std::min(position_of(point_, i).max_decrease, SingleStepsSettings::LARGEST));
    struct Best {
      Floats gain{}, curvature = Floats{} + 1.0f;
      Ints at{};
    } best, odd_best;
    const auto visit = [&](Index p, const Floats& of_i, Best& best) {
      const Floats gap =
          ends.max_left - (load_as<Floats>(&gradient_[p]) + load_as<Floats>(&right_[p]));
      const Floats both = diagonal_[i] + load_as<Floats>(&diagonal_[p]);
      const Floats least = SingleStepsSettings::MIN_CURVATURE * both;
      const Floats exact = both - 2.0f * of_i;
      const Floats curvature = exact > least ? exact : least;
      const Floats own = load_as<Floats>(&max_increase_[p]);
      const Floats most = (own < limit_of_i ? own : Floats{} + limit_of_i) * curvature;
      const Floats scaled = most < gap ? most : gap;  // the best amount times the curvature
      const Floats gain = scaled * (gap - 0.5f * scaled);
      const auto better = (gap > 0.0f) & (gain * best.curvature > best.gain * curvature);
      best.gain = better ? gain : best.gain;
      best.curvature = better ? curvature : best.curvature;
      best.at = better ? Ints{} + int(p) : best.at;
    };
    Index p = 0;
    for (; p + 2 * WIDTH32 <= point_.n; p += 2 * WIDTH32) {
      visit(p, load_as<Floats>(row_i + p), best);
      visit(p + WIDTH32, load_as<Floats>(row_i + p + WIDTH32), odd_best);
    }
    for (; p < padded_; p += WIDTH32) visit(p, row_from(row_i, p), best);
    Largest reductions{best.gain / best.curvature, best.at};
    reductions.include({odd_best.gain / odd_best.curvature, odd_best.at});
    const auto [reduction, j] = reductions.of_all();
    if (!(reduction > 0)) return {};
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
  HessianRows& hessian_;
  const Index padded_;
  std::vector<const float*> rows_;  // null where a row has not been needed yet
  Ends ends_;
  std::vector<Index> wanted_;
  std::vector<std::pair<float, Index>> violations_;
  std::vector<float> gradient_, left_, right_, max_increase_, diagonal_;
  double largest_ = 0.0;  // entry of the gradient, in size
};

// Take steps in float32 from a point of one group with a correct gradient. x changes in place, the
// gradient does not. Returns the number of steps.
inline Index single_steps(const Point& point, HessianRows& hessian, double threshold,
                          Index max_iter, InterruptCheck& interrupt) {
  return SingleSteps(point, hessian).run(threshold, max_iter, interrupt);
}
