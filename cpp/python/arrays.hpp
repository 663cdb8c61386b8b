// NumPy arrays as arguments and results of the bindings, with checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "../core/types.hpp"

namespace pairstep {

namespace nb = nanobind;

using In = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MatrixByColumns = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Matrix32 = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using InOutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using InOutCube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IndexMatrix = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices32 = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

inline const double* data_or_null(const std::optional<In>& array) {
  return array ? array->data() : nullptr;
}

// A NumPy array whose Python signature has the type of its numbers.
template <class T>
using NumpyArray = nb::typed<nb::object, nb::ndarray<nb::numpy, T>>;

// Return a NumPy array that takes over the memory of the vector.
template <class T>
NumpyArray<T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

template <class T>
NumpyArray<T> to_numpy(std::vector<T>&& values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

// Require that `starts` divides n coordinates into groups: ascending from 0 to n.
inline void require_starts(const Indices& starts, std::size_t n) {
  const std::size_t size = starts.shape(0);
  require(size >= 2 && starts(0) == 0 && std::size_t(starts(size - 1)) == n,
          "starts must go from 0 to n");
  for (std::size_t k = 1; k < size; ++k)
    require(starts(k - 1) <= starts(k), "starts must be ascending");
}

// Require that the limits of the group sums, if any, have one entry per group.
inline void require_limits(const Indices& starts, const std::optional<In>& low,
                           const std::optional<In>& high) {
  require(low.has_value() == high.has_value(), "low and high must be given together");
  require(!low || (low->shape(0) + 1 == starts.shape(0) && high->shape(0) + 1 == starts.shape(0)),
          "low and high must have one entry per group");
}

// Require that bounds and sums fit n coordinates, and return the sums: one total per group, or one
// total and limits of every group's sum.
inline Sums require_sums(std::size_t n, const In& lower, const In& upper, const Indices& starts,
                         const In& totals, const std::optional<In>& low,
                         const std::optional<In>& high) {
  require(lower.shape(0) == n && upper.shape(0) == n, "lower and upper must have the length of x");
  require_starts(starts, n);
  require_limits(starts, low, high);
  require(totals.shape(0) == (low ? 1 : starts.shape(0) - 1),
          "totals must have one entry per group, or one entry if low and high are given");
  return {Index(starts.shape(0)) - 1, starts.data(), totals.data(), low ? low->data() : nullptr,
          low ? high->data() : nullptr};
}

}  // namespace pairstep
