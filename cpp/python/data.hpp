// Data matrices (dense or CSR) as arguments of the bindings.
#pragma once

#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "../oracles/points.hpp"
#include "arrays.hpp"

namespace pairstep {

// Convert a float64 matrix, a float32 matrix, or the tuple (starts, columns, values, features) of a
// CSR matrix. The result refers to the memory of the object.
DataMatrix data_of(const nb::object& object);

// The same, prepared for a kernel. The rows are taken relative to `center` if one is given and the
// kernel allows it.
DataMatrix data_for(const KernelFunction& kernel, const nb::object& object,
                    const std::optional<In>& center);

}  // namespace pairstep
