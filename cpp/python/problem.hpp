// What solvers are given, as Python holds it: structs of arrays, each with the native view of it.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"

namespace pairstep {

// A point of a problem in accounts; x is changed in place by who solves it.
struct PointArrays {
  InOut x;
  In lower, upper;
  std::optional<In> kink, pivot;
  Indices starts;
  std::optional<In> low, high;  // limits of the groups' sums, where they share a total

  PointArrays(InOut x, In lower, In upper, std::optional<In> kink, std::optional<In> pivot,
              Indices starts, std::optional<In> low, std::optional<In> high);

  Index n() const { return Index(x.shape(0)); }
  Point with(const double* gradient) const;
  Point with(const In& gradient) const;
};

// How a rule is to choose; the generator is NumPy's own.
struct ChoiceArrays {
  const Rule* rule;
  double alpha;
  std::optional<In> lipschitz;
  nb::object generator;

  ChoiceArrays(int rule, double alpha, std::optional<In> lipschitz, nb::object generator);

  Choice of(Index n, Index turn) const;
};

}  // namespace pairstep
