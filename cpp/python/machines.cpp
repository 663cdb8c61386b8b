// The part of the Python module that is about support vector machines.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>

#include "../engine/machine.hpp"
#include "../oracles/kernel_sums.hpp"
#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pairstep;

namespace {

// (float64 matrix), (float32 matrix) or (starts, columns, values, features) of a CSR matrix.
using Csr = std::tuple<Indices, Indices32, In, Index>;

DataMatrix data_of(const nb::object& object, const std::optional<In>& center) {
  DataMatrix data;
  if (Csr csr; nb::try_cast(object, csr, false)) {
    const auto& [starts, columns, values, features] = csr;
    data.rows = Index(starts.shape(0)) - 1;
    data.features = features;
    require(data.rows >= 0 && starts(0) == 0 && columns.shape(0) == values.shape(0) &&
                starts(data.rows) == Index(columns.shape(0)),
            "starts must go from 0 to the number of values");
    for (Index r = 0; r < data.rows; ++r)
      require(starts(r) <= starts(r + 1), "starts must not fall");
    for (std::size_t e = 0; e < columns.shape(0); ++e)
      require(columns(e) >= 0 && columns(e) < features, "column out of range");
    data.starts = starts.data();
    data.columns = columns.data();
    data.values = values.data();
  } else if (Matrix dense; nb::try_cast(object, dense, false)) {
    data.rows = Index(dense.shape(0));
    data.features = Index(dense.shape(1));
    data.dense = dense.data();
  } else {
    const Matrix32 dense32 = nb::cast<Matrix32>(object, false);
    data.rows = Index(dense32.shape(0));
    data.features = Index(dense32.shape(1));
    data.dense32 = dense32.data();
  }
  require(!center || Index(center->shape(0)) == data.features,
          "center must have an entry per feature");
  // Skipping zeros pays where most entries are; a center would fill them.
  data.lay_sparse = data.density() < 0.3;
  if (center && !data.lay_sparse) data.center = center->data();
  return data;
}

KernelFunction kernel_of(const std::tuple<int, double, double, int>& kernel) {
  const auto [name, gamma, coef0, degree] = kernel;
  require(name >= 0 && name <= int(KernelName::precomputed), "unknown kernel");
  return {KernelName(name), gamma, coef0, degree};
}

std::vector<Index> indices_within(const Indices& indices, Index limit) {
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(indices(k) >= 0 && indices(k) < limit, "index out of range");
  return {indices.data(), indices.data() + indices.shape(0)};
}

// rows, linear, lower, upper, kink, starts, totals, z, gradient
using DualArrays = std::tuple<Indices, In, In, In, std::optional<In>, Indices, In, InOut, InOut>;

Dual dual_of(const DualArrays& arrays, const DataMatrix& data) {
  const auto& [rows, linear, lower, upper, kink, starts, totals, z, gradient] = arrays;
  const std::size_t n = z.shape(0);
  require(n > 0, "a dual must have variables");
  require(rows.shape(0) == n && linear.shape(0) == n && lower.shape(0) == n &&
              upper.shape(0) == n && gradient.shape(0) == n && (!kink || kink->shape(0) == n),
          "the arrays of a dual must have the same length");
  require_starts(starts, n);
  require(starts.shape(0) == totals.shape(0) + 1, "there must be one total per group");
  indices_within(rows, data.rows);
  return Dual{{Index(n), Index(totals.shape(0)), starts.data(), gradient.data(), z.data(),
               lower.data(), upper.data(), kink ? kink->data() : nullptr, nullptr},
              rows.data(),
              linear.data(),
              totals.data()};
}

// Solve duals over the rows of one matrix, side by side where there are several. The calling
// thread only waits: it answers signals and asks `keep_going`.
std::vector<std::tuple<int, Index, double>> solve_duals(
    const nb::object& X, const std::optional<In>& center,
    const std::tuple<int, double, double, int>& kernel, const std::vector<DualArrays>& arrays,
    double tol, Index max_iter, double seconds, std::size_t cache_bytes, int threads, bool single,
    int rule, const nb::object& keep_going) {
  MachineTask task{data_of(X, center), kernel_of(kernel), tol, max_iter, cache_bytes, single,
                   &rule_of(rule)};
  require(task.kernel.name != KernelName::precomputed ||
              (task.data.rows == task.data.features && !task.data.starts),
          "a precomputed kernel must be a square matrix");
  require(task.rule->guided(), "this rule is unguided");
  std::vector<Dual> duals;
  for (const DualArrays& dual : arrays) duals.push_back(dual_of(dual, task.data));
  const Index count = Index(duals.size());
  threads = std::max(threads, 1);
  // Threads over the duals where there are enough of them, else within each.
  const int side_by_side = count >= threads ? threads : 1;
  const int within = threads / side_by_side;
  task.cache_bytes /= std::size_t(side_by_side);

  Pulse pulse;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable done;
  std::atomic<Index> next = 0;
  int busy = side_by_side;
  // The largest first, so that none of them is left for the end.
  std::vector<Index> order(count);
  for (Index k = 0; k < count; ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return duals[a].point.n > duals[b].point.n; });
  std::vector<std::thread> workers;
  for (int w = 0; w < side_by_side; ++w)
    workers.emplace_back([&] {
      try {
        Team team(within);
        for (Index k = next++; k < count; k = next++) {
          solve_machine(task, duals[order[k]], team, pulse);
          ++pulse.solved;
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        pulse.stop = pulse.abandon = true;
      }
      const std::lock_guard lock(mutex);
      if (--busy == 0) done.notify_one();
    });
  const auto began = std::chrono::steady_clock::now();
  bool interrupted = false;
  {
    nb::gil_scoped_release release;
    std::unique_lock lock(mutex);
    while (!done.wait_for(lock, std::chrono::milliseconds(50), [&] { return busy == 0; })) {
      lock.unlock();
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds)
        pulse.stop = true;
      if (!interrupted) {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) {
          interrupted = true;
        } else if (!keep_going.is_none()) {
          PyObject* answer =
              PyObject_CallFunction(keep_going.ptr(), "dLL", double(pulse.violation),
                                    (long long)(pulse.iterations), (long long)(pulse.solved));
          if (!answer) interrupted = true;
          else if (PyObject_IsTrue(answer) == 0) pulse.stop = true;
          Py_XDECREF(answer);
        }
        if (interrupted) pulse.stop = pulse.abandon = true;
      }
      lock.lock();
    }
    lock.unlock();
    for (std::thread& worker : workers) worker.join();
  }
  if (interrupted) throw nb::python_error();
  if (failure) std::rethrow_exception(failure);
  std::vector<std::tuple<int, Index, double>> results;
  for (const Dual& dual : duals)
    results.emplace_back(int(dual.status), dual.iterations, dual.violation);
  return results;
}

void add_kernel_(const std::tuple<int, double, double, int>& kernel, const nb::object& support,
                 const std::optional<In>& center, const Indices& queries, const Matrix& weights,
                 const nb::object& X, const Indices& columns, const InOutMatrix& sums, int threads,
                 bool single) {
  const KernelFunction function = kernel_of(kernel);
  const DataMatrix from = data_of(support, center);
  DataMatrix to = data_of(X, center);
  to.lay_sparse = from.lay_sparse;
  to.center = from.center;
  const bool precomputed = function.name == KernelName::precomputed;
  require(!precomputed || !to.starts, "a precomputed kernel must be dense");
  const std::vector<Index> asked = indices_within(queries, precomputed ? to.features : from.rows),
                           given = indices_within(columns, to.rows);
  const Index outputs = Index(weights.shape(1));
  require(weights.shape(0) == asked.size() && Index(sums.shape(0)) == outputs &&
              sums.shape(1) == given.size(),
          "weights must be queries x outputs and sums outputs x columns");
  require(precomputed || from.features == to.features, "both must have the same features");
  require(!to.starts == !from.starts, "both must be dense or sparse");
  nb::gil_scoped_release release;
  Team team(std::max(threads, 1));
  const auto add = single ? add_kernel<float> : add_kernel<double>;
  const std::atomic<bool> stop = false;
  add(function, from, asked, weights.data(), outputs, to, given, sums.data(), Index(given.size()),
      team, stop);
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
  m.def(
      "solve_duals", &solve_duals, "X"_a, "center"_a.none(), "kernel"_a, "duals"_a, "tol"_a,
      "max_iter"_a, "seconds"_a, "cache_bytes"_a, "threads"_a, "single"_a, "rule"_a,
      "keep_going"_a.none(),
      "Solve duals over the rows of one matrix in place: (status, iterations, violation) of each.");
  m.def("exponentials", &exponentials<float>, nb::arg("x").noconvert());
  m.def("exponentials", &exponentials<double>, nb::arg("x").noconvert());
  m.def("add_kernel", &add_kernel_, "kernel"_a, "support"_a, "center"_a.none(), "queries"_a,
        "weights"_a, "X"_a, "columns"_a, "sums"_a, "threads"_a, "single"_a,
        "sums[o, c] += sum_r weights[r, o] k(support[queries[r]], X[columns[c]]).");
}
