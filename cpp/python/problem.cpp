#include "problem.hpp"

namespace pairstep {

PointArrays::PointArrays(InOut x, In lower, In upper, std::optional<In> l1,
                         std::optional<In> breakpoint, Indices starts, std::optional<In> low,
                         std::optional<In> high)
    : x(x),
      lower(lower),
      upper(upper),
      l1(l1),
      breakpoint(breakpoint),
      starts(starts),
      low(low),
      high(high) {
  const std::size_t n = x.shape(0);
  require(lower.shape(0) == n && upper.shape(0) == n, "lower and upper must have the length of x");
  require(!l1 || (breakpoint && l1->shape(0) == n && breakpoint->shape(0) == n),
          "l1 and breakpoint must have the length of x");
  require_starts(starts, n);
  require_limits(starts, low, high);
}

Point PointArrays::with(const double* gradient) const {
  return Point{n(),
               Index(starts.shape(0)) - 1,
               starts.data(),
               const_cast<double*>(gradient),
               x.data(),
               lower.data(),
               upper.data(),
               l1 ? l1->data() : nullptr,
               l1 ? breakpoint->data() : nullptr,
               low ? low->data() : nullptr,
               low ? high->data() : nullptr};
}

Point PointArrays::with(const In& gradient) const {
  require(Index(gradient.shape(0)) == n(), "gradient must have the length of x");
  return with(gradient.data());
}

ChoiceArrays::ChoiceArrays(int rule, double alpha, std::optional<In> lipschitz,
                           nb::object generator)
    : rule(&rule_of(rule)), alpha(alpha), lipschitz(lipschitz), generator(generator) {
  require(!this->rule->draws || !generator.is_none(),
          "generator: this rule needs a random generator");
  require(!this->rule->weighted || lipschitz,
          "lipschitz: this rule needs coordinate-wise Lipschitz constants");
}

Choice ChoiceArrays::of(Index n, Index turn) const {
  require(!lipschitz || Index(lipschitz->shape(0)) == n, "lipschitz must have the length of x");
  require(turn >= 0, "turn must not be negative");
  BitGenerator* random = nullptr;
  if (!generator.is_none()) {
    random = static_cast<BitGenerator*>(PyCapsule_GetPointer(generator.ptr(), "BitGenerator"));
    if (!random) throw nb::python_error();
  }
  return {rule, alpha, lipschitz ? lipschitz->data() : nullptr, random, turn, nullptr};
}

}  // namespace pairstep
