// Data matrices as they cross from Python.
#pragma once

#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "../oracles/points.hpp"
#include "arrays.hpp"

namespace pairstep {

// A float64 matrix, a float32 matrix, or (starts, columns, values, features) of a CSR matrix. The
// `center` is taken from every row of dense data.
DataMatrix data_of(const nb::object& object, const std::optional<In>& center = std::nullopt);

}  // namespace pairstep
