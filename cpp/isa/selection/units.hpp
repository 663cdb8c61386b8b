// Rescaling, so that a rule can multiply derivatives, distances, Lipschitz constants and step sizes
// with each other without overflow or underflow. If these numbers are too large or too small, the
// rule is called with a rescaled copy of the coordinates. The scales are powers of 2, so the choice
// does not depend on them. The NumPy form is src/pairstep/rules/units.py. Included once per
// instruction set.

struct UnitsSettings {
  // A rule is called without rescaling if gaps, step sizes and Lipschitz constants are in this
  // range. Every decrease of the model that matters then lies between 2^-500 and 2^800.
  static constexpr double SMALLEST = 0x1p-150, LARGEST = 0x1p150;
  // The same for the curvature of pairs, which takes the place of constants and step size.
  static constexpr double SMALLEST_CURVATURE = 0x1p-300, LARGEST_CURVATURE = 0x1p300;
  // In a rescaled copy, distances below MIN_SCALED_DISTANCE become 0, and derivatives, constants
  // and step sizes are clipped to MAX_SCALED. The numbers that determine the choice are about 1, so
  // their products with the limits neither underflow nor overflow.
  static constexpr double MIN_SCALED_DISTANCE = 0x1p-900, MAX_SCALED = 0x1p600;
};

template <class Curvature>
constexpr bool by_constants = std::is_same_v<Curvature, ByConstants>;

// The smallest and the largest of some numbers.
inline Range range_of(const double* values, Index n) {
  const auto found = argmax<2>(n, [&]<class T>(Index p) {
    return std::array<T, 2>{-load<T>(values + p), load<T>(values + p)};
  });
  return {-found[0].value, found[1].value};
}

// Whether the rule can be called without rescaling.
template <class A, class Curvature>
bool is_moderate(const A& a, const RuleInput<Curvature>& input) {
  using Settings = UnitsSettings;
  const auto moderate = [](double number) {
    return number >= Settings::SMALLEST && number <= Settings::LARGEST;
  };
  const Index i = input.ends.down.index, j = input.ends.up.index;
  const double gap = input.ends.gap(), slack = slack_of(a, i, j);
  if (!(moderate(gap) && slack >= Settings::SMALLEST)) return false;
  if (input.choice.rule->curved) {
    const double curvature = input.curvature.template operator()<double>(i, j);
    // With constants, every pair of i has at least half of this curvature.
    const double own = input.curvature.template operator()<double>(i, i);
    return !(curvature > Settings::LARGEST_CURVATURE) &&
           (!by_constants<Curvature> || own >= Settings::SMALLEST_CURVATURE);
  }
  return moderate(input.choice.alpha) && moderate(input.constants.least) &&
         moderate(input.constants.most);
}

// A copy of the coordinates in other units.
struct Scaled {
  Index n;
  std::vector<double> derivative_, left_derivative_, right_derivative_, max_decrease_,
      max_increase_;

  template <class T>
  T left_derivative(Index p) const {
    return load<T>(left_derivative_.data() + p);
  }
  template <class T>
  T right_derivative(Index p) const {
    return load<T>(right_derivative_.data() + p);
  }
  template <class T>
  T max_decrease(Index p) const {
    return load<T>(max_decrease_.data() + p);
  }
  template <class T>
  T max_increase(Index p) const {
    return load<T>(max_increase_.data() + p);
  }
  template <class T>
  T derivative(Index p) const {
    return load<T>(derivative_.data() + p);
  }
  template <class T>
  T suspect(Index) const {
    return all<T>(-INFINITY);
  }
};

// Powers of 2 that make the largest gap, the smallest Lipschitz constant and the largest possible
// amount about 1.
template <class A, class Curvature>
class Units {
 public:
  Units(const A& a, const RuleInput<Curvature>& input) : a_(a), input_(input) {
    const Choice& choice = input.choice;
    const double max_left = input.ends.down.value, min_right = -input.ends.up.value;
    // Use half of the gap if the gap itself overflows.
    const int gap = std::isfinite(input.ends.gap())
                        ? std::ilogb(input.ends.gap())
                        : 1 + std::ilogb(0.5 * max_left - 0.5 * min_right);
    by_derivative_ = -gap;
    if (uses_constants()) by_constant_ = -std::ilogb(range_of(choice.lipschitz, a.n).least);
    by_constant_ -= by_constant_ % 2;  // even: rules take square roots
    double down = 0.0, up = 0.0;
    for (Index p = 0; p < a.n; ++p) {
      if (can_decrease(p) && !(choice.rule->curved && p != input.ends.down.index))
        down = std::max(down, a.template max_decrease<double>(p));
      if (can_increase(p)) up = std::max(up, a.template max_increase<double>(p));
    }
    const double slack = std::min(down, up);
    int amount = std::ilogb(choice.alpha) + gap + by_constant_;
    if (choice.rule->curved && !by_constants<Curvature>) {
      const double curvature =
          input.curvature.template operator()<double>(input.ends.down.index, input.ends.up.index);
      amount = curvature > 0 && curvature <= MAX_DOUBLE ? gap - std::ilogb(curvature)
                                                        : std::numeric_limits<int>::max();
    }
    if (std::isfinite(slack)) amount = std::min(amount, std::ilogb(slack));
    by_amount_ = amount == std::numeric_limits<int>::max() ? 0 : -amount;
  }

  // Call the rule R with the rescaled coordinates, and scale its step back.
  template <class R>
  void call(Step& step) const {
    const Index n = a_.n;
    std::vector<double> constants;
    Choice choice = input_.choice;
    choice.alpha = std::min(std::ldexp(choice.alpha, by_amount_ - by_derivative_ + by_constant_),
                            UnitsSettings::MAX_SCALED);
    if (uses_constants()) {
      for (Index p = 0; p < n; ++p)
        constants.push_back(
            std::min(std::ldexp(choice.lipschitz[p], by_constant_), UnitsSettings::MAX_SCALED));
      choice.lipschitz = constants.data();
    }
    const Scaled coordinates = scaled();
    const auto curvature = scaled_curvature(choice);
    RuleInput<std::remove_const_t<decltype(curvature)>> input{choice, extremes(coordinates),
                                                              curvature};
    if (uses_constants()) input.constants = range_of(choice.lipschitz, n);
    if (input.ends.open()) R::choose(coordinates, input, step);
    scale_back(coordinates, step);
  }

 private:
  bool uses_constants() const {
    return input_.choice.lipschitz && (input_.choice.rule->weighted || input_.choice.rule->curved);
  }
  bool can_decrease(Index p) const {
    return a_.template left_derivative<double>(p) > -input_.ends.up.value;
  }
  bool can_increase(Index p) const {
    return a_.template right_derivative<double>(p) < input_.ends.down.value;
  }

  double scaled_derivative(double derivative) const {
    return std::clamp(std::ldexp(derivative, by_derivative_), -UnitsSettings::MAX_SCALED,
                      UnitsSettings::MAX_SCALED);
  }

  auto scaled_curvature(const Choice& choice) const {
    if constexpr (by_constants<Curvature>) {
      return ByConstants{choice.lipschitz, choice.alpha};
    } else {
      // Scale in two steps, because the whole power of 2 may be out of range.
      const int power = std::clamp(by_derivative_ - by_amount_, -2000, 2000);
      const double first = std::ldexp(1.0, power / 2), second = std::ldexp(1.0, power - power / 2);
      return [this, first, second]<class T>(Index i, Index p) -> T {
        return input_.curvature.template operator()<T>(i, p) * first * second;
      };
    }
  }

  Scaled scaled() const {
    Scaled copy{a_.n, {}, {}, {}, {}, {}};
    for (Index p = 0; p < a_.n; ++p) {
      const double down = std::ldexp(a_.template max_decrease<double>(p), by_amount_);
      const double up = std::ldexp(a_.template max_increase<double>(p), by_amount_);
      const bool decreases = down >= UnitsSettings::MIN_SCALED_DISTANCE,
                 increases = up >= UnitsSettings::MIN_SCALED_DISTANCE;
      copy.derivative_.push_back(scaled_derivative(a_.template derivative<double>(p)));
      copy.max_decrease_.push_back(decreases ? down : 0.0);
      copy.max_increase_.push_back(increases ? up : 0.0);
      copy.left_derivative_.push_back(
          decreases ? scaled_derivative(a_.template left_derivative<double>(p)) : -INFINITY);
      copy.right_derivative_.push_back(
          increases ? scaled_derivative(a_.template right_derivative<double>(p)) : INFINITY);
    }
    return copy;
  }

  // A change that uses all of max_decrease or max_increase does so exactly in the original units.
  void scale_back(const Scaled& coordinates, Step& step) const {
    double least = INFINITY;
    bool finite = true;
    for (std::size_t k = 0; k < step.index.size(); ++k) {
      const Index p = step.index[k];
      const bool down = step.delta[k] < 0;
      const double size = std::abs(step.delta[k]);
      const double slack =
          down ? a_.template max_decrease<double>(p) : a_.template max_increase<double>(p);
      const bool is_full =
          size >= (down ? coordinates.max_decrease_[p] : coordinates.max_increase_[p]);
      const double amount = std::min(is_full ? slack : std::ldexp(size, -by_amount_), slack);
      step.delta[k] = std::copysign(amount, step.delta[k]);
      least = std::min(least, amount);
      finite = finite && amount <= MAX_DOUBLE;
    }
    if (step.index.size() == 2)  // both changes must have exactly the same size
      for (double& delta : step.delta) delta = std::copysign(std::min(least, MAX_DOUBLE), delta);
    else if (!finite) step.clear();
    if (!(least > 0)) step.clear();
    step.decrease = std::min(std::ldexp(step.decrease, -by_amount_ - by_derivative_), MAX_DOUBLE);
  }

  const A& a_;
  const RuleInput<Curvature>& input_;
  int by_derivative_ = 0, by_constant_ = 0, by_amount_ = 0;
};
