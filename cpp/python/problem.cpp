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

}  // namespace pairstep
