// The part of the Python module that is about support vector machines.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "../engine/machine.hpp"
#include "../oracles/kernel_sums.hpp"
#include "../oracles/measures.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

std::vector<Index> indices_within(const Indices& indices, Index limit) {
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(indices(k) >= 0 && indices(k) < limit, "index out of range");
  return {indices.data(), indices.data() + indices.shape(0)};
}

// One dual, as Python holds it; z is changed in place, the gradient is written.
struct DualArrays {
  Indices rows;
  In linear;
  PointArrays point;
  In totals;
  InOut gradient;

  DualArrays(Indices rows, In linear, PointArrays point, In totals, InOut gradient)
      : rows(rows), linear(linear), point(point), totals(totals), gradient(gradient) {
    const std::size_t n = std::size_t(point.n());
    require(n > 0, "a dual must have variables");
    require(rows.shape(0) == n && linear.shape(0) == n && gradient.shape(0) == n,
            "the arrays of a dual must have the same length");
    require(point.starts.shape(0) == totals.shape(0) + 1, "there must be one total per group");
  }

  Dual over(const DataMatrix& data) const {
    indices_within(rows, data.rows);
    return Dual{point.with(gradient.data()), rows.data(), linear.data(), totals.data()};
  }
};

// Solve duals over the rows of one matrix, side by side where there are several. `keep_going` is
// asked now and then whether to go on.
nb::list solve_duals(const nb::object& X, const std::optional<In>& center,
                     const KernelFunction& kernel, const std::vector<DualArrays>& arrays,
                     double tol, Index max_iter, double seconds, std::size_t cache_bytes,
                     int threads, bool single, int rule, bool cold, const nb::object& keep_going) {
  MachineTask task{data_for(kernel, X, center),
                   kernel,
                   tol,
                   max_iter,
                   cache_bytes,
                   single,
                   &rule_of(rule),
                   cold};
  require(kernel.name != KernelName::precomputed ||
              (task.data.rows == task.data.features && !task.data.starts),
          "a precomputed kernel must be a square matrix");
  require(task.rule->guided(), "this rule is unguided");
  std::vector<Dual> duals;
  for (const DualArrays& dual : arrays) duals.push_back(dual.over(task.data));
  MachineProgress progress;
  const auto ask = [&](Pulse& pulse) {
    if (keep_going.is_none()) return;
    const nb::object answer =
        keep_going(progress.violation.load(), progress.iterations.load(), progress.solved.load());
    if (!nb::cast<bool>(answer)) pulse.stop();
  };
  run_native(seconds, ask, [&](Pulse& pulse, WithoutGil&) {
    solve_machines(task, duals, std::max(threads, 1), pulse, progress);
  });
  nb::list results;
  for (Dual& dual : duals)
    results.append(nb::make_tuple(dual.status, dual.iterations, dual.certificate.violation,
                                  dual.certificate.bound, dual.scale,
                                  to_numpy(std::move(dual.certificate.multiplier))));
  return results;
}

// Whether float32 keeps the error of every sum within `allowed`.
bool single_suffices(const KernelFunction& kernel, double square, const Matrix& weights,
                     const std::vector<Index>& starts, double allowed) {
  if (!(allowed > 0) || !fits_single(kernel, square)) return false;
  const double error = reach<float>(kernel, square).error;
  for (std::size_t g = 0; g + 1 < starts.size(); ++g) {
    std::vector<double> sizes(weights.shape(1), 0.0);
    for (Index r = starts[g]; r < starts[g + 1]; ++r)
      for (std::size_t o = 0; o < sizes.size(); ++o) sizes[o] += std::abs(weights(r, o));
    for (const double size : sizes)
      if (error * size > allowed) return false;
  }
  return true;
}

void add_kernel_(const KernelFunction& function, const nb::object& support,
                 const std::optional<In>& center, const Indices& queries, const Matrix& weights,
                 const nb::object& X, const Indices& columns, const InOutMatrix& sums, int threads,
                 double allowed, const std::optional<Indices>& groups) {
  const DataMatrix from = data_for(function, support, center);
  DataMatrix to = data_of(X);
  const bool precomputed = function.name == KernelName::precomputed;
  require(!precomputed || !to.starts, "a precomputed kernel must be dense");
  const std::vector<Index> asked = indices_within(queries, precomputed ? to.features : from.rows),
                           given = indices_within(columns, to.rows);
  std::vector<Index> starts = {0, Index(asked.size())};
  if (groups) {
    require_starts(*groups, asked.size());
    starts.assign(groups->data(), groups->data() + groups->shape(0));
  }
  const Index outputs = Index(weights.shape(1));
  require(weights.shape(0) == asked.size() &&
              sums.shape(0) == (starts.size() - 1) * weights.shape(1) &&
              sums.shape(1) == given.size(),
          "weights must be queries x outputs and sums (groups of outputs) x columns");
  require(precomputed || from.features == to.features, "both must have the same features");
  require(!to.starts == !from.starts, "both must be dense or sparse");
  to.lay_out_like(from);
  run_native([&](Pulse& pulse, WithoutGil&) {
    const double square = precomputed || !(allowed > 0)
                              ? 0.0
                              : std::max(from.largest_square(asked.data(), Index(asked.size())),
                                         to.largest_square(given.data(), Index(given.size())));
    const bool single = !precomputed && single_suffices(function, square, weights, starts, allowed);
    Team team(std::max(threads, 1), pulse);
    const auto add = single ? add_kernel<float> : add_kernel<double>;
    add(function, from, asked, starts, weights.data(), outputs, to, given, sums.data(),
        Index(given.size()), team);
  });
}

// The exponential of the tile kernels, for their tests.
template <class Real>
nb::object exponentials(
    const nb::ndarray<const Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>& x) {
  auto* out = new std::vector<Real>(x.shape(0));
  nb::capsule owner(out, [](void* p) noexcept { delete static_cast<std::vector<Real>*>(p); });
  isa().of<Real>().exponentials(x.data(), Index(x.shape(0)), out->data());
  return nb::cast(nb::ndarray<nb::numpy, Real>(out->data(), {out->size()}, owner));
}

}  // namespace

void register_machines(nb::module_& m) {
  nb::enum_<KernelName>(m, "KernelName")
      .value("linear", KernelName::linear)
      .value("poly", KernelName::poly)
      .value("rbf", KernelName::rbf)
      .value("sigmoid", KernelName::sigmoid)
      .value("precomputed", KernelName::precomputed);
  nb::class_<KernelFunction>(m, "Kernel", "A kernel function and its parameters.")
      .def(nb::init<KernelName, double, double, int>(), "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
  nb::class_<DualArrays>(m, "Dual", "min z'Kz/2 + linear'z + kinks over some rows of the data.")
      .def(nb::init<Indices, In, PointArrays, In, InOut>(), "rows"_a, "linear"_a, "point"_a,
           "totals"_a, "gradient"_a.noconvert());
  m.def("solve_duals", &solve_duals, "X"_a, "center"_a.none(), "kernel"_a, "duals"_a, nb::kw_only(),
        "tol"_a, "max_iter"_a, "seconds"_a, "cache_bytes"_a, "threads"_a, "single"_a, "rule"_a,
        "cold"_a, "keep_going"_a.none(),
        "Solve duals over the rows of one matrix in place: (status, iterations, violation, duality "
        "gap, "
        "size of the terms of the gradient, multipliers) of each.");
  m.def(
      "measure",
      [](const nb::object& X) {
        const Measures found = measure(data_of(X));
        return nb::make_tuple(found.variance, found.largest_square);
      },
      "X"_a, "The variance of all entries, and the largest squared norm of a row.");
  m.def(
      "rounded_mean", [](const nb::object& X) { return to_numpy(rounded_mean(data_of(X))); }, "X"_a,
      "The mean of the rows in the precision of float32.");
  m.def(
      "float32_rounding",
      [](const KernelFunction& kernel, double square) -> std::optional<double> {
        if (!single_will_do(kernel, square)) return {};
        return reach<float>(kernel, square).error;
      },
      "kernel"_a, "square"_a,
      "How far off a kernel value in float32 may be between points of this squared norm, or None "
      "where that is too far for a start.");
  m.def("exponentials", &exponentials<float>, nb::arg("x").noconvert());
  m.def("exponentials", &exponentials<double>, nb::arg("x").noconvert());
  m.def("add_kernel", &add_kernel_, "kernel"_a, "support"_a, "center"_a.none(), "queries"_a,
        "weights"_a, "X"_a, "columns"_a, "sums"_a.noconvert(), "threads"_a, "allowed"_a,
        "starts"_a.none() = nb::none(),
        "sums[o, c] += sum_r weights[r, o] k(support[queries[r]], X[columns[c]]), in float32 where "
        "that keeps their error within `allowed`; of each group of queries apart, if `starts` says "
        "where they begin, one after the other.");
}
