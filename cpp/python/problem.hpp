// Problem data as Python holds it: structs of NumPy arrays that convert to the native structs.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"

namespace pairstep {

// A point and its constraints (`Point`). Solvers change x in place.
struct PointArrays {
  InOut x;
  In lower, upper;
  std::optional<In> l1, breakpoint;
  Indices starts;
  std::optional<In> low, high;  // limits of the group sums if the groups are nested

  PointArrays(InOut x, In lower, In upper, std::optional<In> l1, std::optional<In> breakpoint,
              Indices starts, std::optional<In> low, std::optional<In> high);

  Index n() const { return Index(x.shape(0)); }
  Point with(const double* gradient) const;
  Point with(const In& gradient) const;
};

}  // namespace pairstep
