// Data matrices as they cross from Python.
#pragma once

#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "../oracles/points.hpp"
#include "arrays.hpp"

namespace pairstep {

// A float64 matrix, a float32 matrix, or (starts, columns, values, features) of a CSR matrix.
DataMatrix data_of(const nb::object& object);

// The same, laid out for a kernel, around `center` where one is given and matters.
DataMatrix data_for(const KernelFunction& kernel, const nb::object& object,
                    const std::optional<In>& center);

}  // namespace pairstep
