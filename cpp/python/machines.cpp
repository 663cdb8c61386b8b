// The part of the Python module that is about support vector machines.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "../engine/machine.hpp"
#include "../oracles/kernel_matrix.hpp"
#include "../oracles/matrix.hpp"
#include "../oracles/measures.hpp"
#include "../oracles/support_vectors.hpp"
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

// One dual, as Python holds it; z is changed in place, the gradient is written, and read if it is
// `known` at the start.
struct DualArrays {
  Indices rows;
  In linear;
  PointArrays point;
  In totals;
  InOut gradient;
  bool known, closely;

  DualArrays(Indices rows, In linear, PointArrays point, In totals, InOut gradient, bool known,
             bool closely)
      : rows(rows),
        linear(linear),
        point(point),
        totals(totals),
        gradient(gradient),
        known(known),
        closely(closely) {
    const std::size_t n = std::size_t(point.n());
    require(n > 0, "a dual must have variables");
    require(rows.shape(0) == n && linear.shape(0) == n && gradient.shape(0) == n,
            "the arrays of a dual must have the same length");
    require(point.starts.shape(0) == totals.shape(0) + 1, "there must be one total per group");
  }

  Dual over(const DataMatrix& data) const {
    indices_within(rows, data.rows);
    return Dual{
        point.with(gradient.data()), rows.data(), linear.data(), totals.data(), known, closely};
  }
};

// Solve duals over the rows of one matrix, side by side where there are several. `keep_going` is
// asked now and then whether to go on.
nb::list solve_duals(const nb::object& X, const std::optional<In>& center,
                     const KernelFunction& kernel, const std::vector<DualArrays>& arrays,
                     double tol, Index max_iter, double seconds, std::size_t cache_bytes,
                     int threads, bool single, int rule, bool cold, const nb::object& keep_going,
                     Arenas* arenas) {
  MachineTask task{data_for(kernel, X, center),
                   kernel,
                   tol,
                   max_iter,
                   cache_bytes,
                   single,
                   &rule_of(rule),
                   cold};
  task.arenas = arenas;
  require(kernel.name != KernelName::precomputed ||
              (task.data.rows <= task.data.features && !task.data.starts),
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
                                  nb::cast(dual.certificate.multiplier)));
  return results;
}

// The kernel of some rows with each other, as float32 or float64.
template <class Real>
nb::object kernel_matrix_of(const KernelFunction& kernel, const DataMatrix& data,
                            const std::vector<Index>& rows, int threads) {
  std::unique_ptr<KernelMatrix<Real>> made;
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(std::max(threads, 1), pulse);
    made = std::make_unique<KernelMatrix<Real>>(kernel, data, rows, team);
  });
  const DataMatrix matrix = made->matrix();
  const Real* values = nullptr;
  if constexpr (std::is_same_v<Real, double>) values = matrix.dense;
  else values = matrix.dense32;
  nb::capsule owner(made.release(),
                    [](void* p) noexcept { delete static_cast<KernelMatrix<Real>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const Real>(
      values, {std::size_t(matrix.rows), std::size_t(matrix.features)}, owner));
}

nb::object kernel_matrix(const KernelFunction& kernel, const nb::object& X,
                         const std::optional<In>& center, const Indices& rows, bool single,
                         int threads) {
  const DataMatrix data = data_for(kernel, X, center);
  require(kernel.name != KernelName::precomputed, "a precomputed kernel is a matrix already");
  const auto make = single ? kernel_matrix_of<float> : kernel_matrix_of<double>;
  return make(kernel, data, indices_within(rows, data.rows), threads);
}

nb::object squared_distances(const nb::object& X, const std::optional<In>& center,
                             const Indices& rows, bool single, int threads) {
  const KernelFunction distance{KernelName::squared_distance, 1.0, 0.0, 1};
  return kernel_matrix(distance, X, center, rows, single, threads);
}

// exp(-gamma distances), over an array of the same shape.
template <class Real>
void rbf_of_distances(
    const nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>& distances,
    double gamma, const nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
    int threads) {
  const std::size_t rows = distances.shape(0), columns = distances.shape(1);
  require(out.shape(0) == rows && out.shape(1) == columns, "both must have the same shape");
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team(std::max(threads, 1), pulse).run(Index(rows), [&](Index row) {
      const std::size_t at = std::size_t(row) * columns;
      isa().of<Real>().rbf_of_distances(distances.data() + at, gamma, Index(columns),
                                        out.data() + at);
    });
  });
}

// Sums of rows of a symmetric matrix, at some of its columns.
struct RowSumArrays {
  Indices rows;
  Matrix weights;
  Indices columns;
  InOutMatrix sums;
};

void add_matrix_rows(const nb::object& matrix, const std::vector<RowSumArrays>& jobs, int threads) {
  const DataMatrix data = data_of(matrix);
  require(!data.starts, "the matrix must be dense");
  for (const RowSumArrays& job : jobs) {
    indices_within(job.rows, data.rows);
    indices_within(job.columns, data.rows);
    require(job.weights.shape(0) == job.rows.shape(0) &&
                job.sums.shape(0) == job.weights.shape(1) &&
                job.sums.shape(1) == job.columns.shape(0),
            "weights must be rows x outputs and sums outputs x columns");
  }
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team across(std::max(threads, 1), pulse);
    across.run(Index(jobs.size()), [&](Index k) {
      const RowSumArrays& job = jobs[std::size_t(k)];
      Team within(1, pulse);
      Runs(job.columns.data(), Index(job.columns.shape(0)))
          .add(data, {job.rows.data(), job.rows.data() + job.rows.shape(0)}, job.weights.data(),
               Index(job.weights.shape(1)), within, job.sums.data());
    });
  });
}

// The largest sum of the sizes of the weights of one output over one group of queries.
double largest_weight(const Matrix& weights, const std::vector<Index>& starts) {
  double largest = 0.0;
  for (std::size_t g = 0; g + 1 < starts.size(); ++g) {
    std::vector<double> sizes(weights.shape(1), 0.0);
    for (Index r = starts[g]; r < starts[g + 1]; ++r)
      for (std::size_t o = 0; o < sizes.size(); ++o) sizes[o] += std::abs(weights(r, o));
    for (const double size : sizes) largest = std::max(largest, size);
  }
  return largest;
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
    const bool single =
        !precomputed && allowed > 0 &&
        single_suffices(function,
                        std::max(from.largest_square(asked.data(), Index(asked.size())),
                                 to.largest_square(given.data(), Index(given.size()))),
                        largest_weight(weights, starts), allowed);
    Team team(std::max(threads, 1), pulse);
    const auto add = single ? add_kernel<float> : add_kernel<double>;
    add(function, from, asked, starts, weights.data(), outputs, to, given, sums.data(),
        Index(given.size()), team);
  });
}

// Support vectors as Python holds them: laid out when they are first used, and then kept.
struct SupportVectorsOf {
  nb::object support;  // whose memory is read
  SupportVectors vectors;

  SupportVectorsOf(const KernelFunction& kernel, const nb::object& support,
                   const std::optional<In>& center)
      : support(support), vectors(kernel, data_for(kernel, support, center)) {
    require(kernel.name != KernelName::precomputed, "a precomputed kernel has no vectors");
  }

  void decide(const Matrix& weights, const nb::object& X, const InOutMatrix& sums, int threads,
              double allowed, const std::optional<Indices>& starts) const {
    const DataMatrix rows = data_of(X), &known = vectors.data();
    std::vector<Index> groups = {0, vectors.count()};
    if (starts) {
      require_starts(*starts, std::size_t(vectors.count()));
      groups.assign(starts->data(), starts->data() + starts->shape(0));
    }
    require(Index(weights.shape(1)) == vectors.count() &&
                sums.shape(0) == (groups.size() - 1) * weights.shape(0) &&
                Index(sums.shape(1)) == rows.rows,
            "weights must be outputs x support vectors and sums (groups of outputs) x rows");
    require(rows.features == known.features, "both must have the same features");
    require(!rows.starts == !known.starts, "both must be dense or sparse");
    run_native([&](Pulse& pulse, WithoutGil&) {
      Team team(std::max(threads, 1), pulse);
      vectors.decide(weights.data(), Index(weights.shape(0)), groups, rows, allowed, sums.data(),
                     team);
    });
  }
};

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
      .def(nb::init<Indices, In, PointArrays, In, InOut, bool, bool>(), "rows"_a, "linear"_a,
           "point"_a, "totals"_a, "gradient"_a.noconvert(), "known"_a = false, "closely"_a = true);
  nb::class_<SupportVectorsOf>(m, "SupportVectors", "Support vectors, laid out for decisions.")
      .def(nb::init<const KernelFunction&, const nb::object&, const std::optional<In>&>(),
           "kernel"_a, "support"_a, "center"_a.none())
      .def("decide", &SupportVectorsOf::decide, "weights"_a, "X"_a, "sums"_a.noconvert(),
           "threads"_a, "allowed"_a, "starts"_a.none() = nb::none(),
           "sums[o, r] += sum_s weights[o, s] k(support[s], X[r]), in float32 where that keeps "
           "their error within `allowed`; of each group of support vectors apart, if `starts` says "
           "where they begin, one after the other.");
  nb::class_<Arenas>(m, "Arenas", "Memory of solves, kept from one to the next.").def(nb::init<>());
  m.def("solve_duals", &solve_duals, "X"_a, "center"_a.none(), "kernel"_a, "duals"_a, nb::kw_only(),
        "tol"_a, "max_iter"_a, "seconds"_a, "cache_bytes"_a, "threads"_a, "single"_a, "rule"_a,
        "cold"_a, "keep_going"_a.none(), "arenas"_a.none() = nb::none(),
        "Solve duals over the rows of one matrix in place: (status, iterations, violation, duality "
        "gap, "
        "size of the terms of the gradient, multipliers) of each.");
  m.def("kernel_matrix", &kernel_matrix, "kernel"_a, "X"_a, "center"_a.none(), "rows"_a, "single"_a,
        "threads"_a,
        "The kernel of some rows with each other, computed in float64, as float32 if `single`. A "
        "few columns more than rows: what is in them means nothing.");
  m.def("squared_distances", &squared_distances, "X"_a, "center"_a.none(), "rows"_a, "single"_a,
        "threads"_a, "Of some rows from each other, laid out as `kernel_matrix` is.");
  const auto rbf = [&](auto function) {
    m.def("rbf_of_distances", function, "distances"_a.noconvert(), "gamma"_a, "out"_a.noconvert(),
          "threads"_a, "The kernel matrix exp(-gamma distances), written to `out`.");
  };
  rbf(&rbf_of_distances<float>);
  rbf(&rbf_of_distances<double>);
  nb::class_<RowSumArrays>(m, "RowSum",
                           "sums[o, c] += sum_r weights[r, o] matrix[rows[r], columns[c]].")
      .def(nb::init<Indices, Matrix, Indices, InOutMatrix>(), "rows"_a, "weights"_a, "columns"_a,
           "sums"_a.noconvert());
  m.def("add_matrix_rows", &add_matrix_rows, "matrix"_a, "jobs"_a, "threads"_a,
        "Sums of rows of a symmetric matrix, in place.");
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
