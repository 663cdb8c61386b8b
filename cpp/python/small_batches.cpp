// Bindings for batches of small quadratic programs and for the derivatives of their solutions
// (cpp/engine/small_batch.hpp, cpp/engine/sensitivity.hpp).
#include <nanobind/stl/tuple.h>

#include "../engine/sensitivity.hpp"
#include "../engine/small.hpp"
#include "../engine/small_batch.hpp"
#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

using Matrices = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The numbers of `count` problems, or of all problems if there is one item. All items must have
// `size` numbers.
template <class Array>
PerProblem per_problem(const Array& array, std::size_t count, std::size_t size,
                       const char* message) {
  const std::size_t items = array.shape(0);
  require((items == count || items == 1) && array.size() == items * size, message);
  return {array.data(), items == 1 ? 0 : Index(size)};
}

auto small_batch(const Matrices& hessian, const Matrix& linear, const In& total,
                 const Matrix& lower, const Matrix& upper, std::size_t count, double tol,
                 double seconds, int threads) {
  const std::size_t n = hessian.shape(2);
  require(n >= 1 && Index(n) <= MAX_SMALL_VARIABLES, "n must be between 1 and MAX_SMALL_VARIABLES");
  std::vector<double> x(count * n), gradient(count * n);
  std::vector<double> value(count), violation(count), tolerance(count), bound(count),
      multiplier(count);
  std::vector<Index> iterations(count);
  std::vector<std::uint8_t> state(count, SmallBatch::not_reached);
  const SmallBatch batch{
      .n = Index(n),
      .count = Index(count),
      .hessian = per_problem(hessian, count, n * n, "hessian must be (1 or count) x n x n"),
      .linear = per_problem(linear, count, n, "linear must be (1 or count) x n"),
      .lower = per_problem(lower, count, n, "lower must be (1 or count) x n"),
      .upper = per_problem(upper, count, n, "upper must be (1 or count) x n"),
      .total = per_problem(total, count, 1, "total must have 1 or count entries"),
      .tol = tol,
      .threads = threads,
      .x = x.data(),
      .gradient = gradient.data(),
      .value = value.data(),
      .violation = violation.data(),
      .tolerance = tolerance.data(),
      .bound = bound.data(),
      .multiplier = multiplier.data(),
      .iterations = iterations.data(),
      .state = state.data()};
  run_native(seconds, {},
             [&](InterruptCheck& interrupt, WithoutGil&) { solve_small_batch(batch, interrupt); });
  return std::make_tuple(to_numpy(std::move(x), {count, n}),
                         to_numpy(std::move(gradient), {count, n}), to_numpy(std::move(value)),
                         to_numpy(std::move(iterations)), to_numpy(std::move(violation)),
                         to_numpy(std::move(tolerance)), to_numpy(std::move(bound)),
                         to_numpy(std::move(multiplier)), to_numpy(std::move(state)));
}

auto kkt_systems(const Matrices& hessian, const Matrices& constraints, const Matrix& diagonal,
                 const Flags& free, const Matrix& r, const Matrix& s, int threads) {
  const std::size_t count = free.shape(0), n = free.shape(1), rows = s.shape(1);
  require(r.shape(0) == count && r.shape(1) == n && s.shape(0) == count,
          "r must be count x n, and s count x rows");
  std::vector<double> w(count * n), m(count * rows);
  std::vector<std::uint8_t> singular(count);
  const KktSystems systems{
      .n = Index(n),
      .rows = Index(rows),
      .count = Index(count),
      .hessian = per_problem(hessian, count, n * n, "hessian must be (1 or count) x n x n"),
      .constraints =
          per_problem(constraints, count, rows * n, "constraints must be (1 or count) x rows x n"),
      .diagonal = per_problem(diagonal, count, n, "diagonal must be (1 or count) x n"),
      .free = free.data(),
      .r = r.data(),
      .s = s.data(),
      .threads = threads,
      .w = w.data(),
      .m = m.data(),
      .singular = singular.data()};
  run_native(
      [&](InterruptCheck& interrupt, WithoutGil&) { solve_kkt_systems(systems, interrupt); });
  return std::make_tuple(to_numpy(std::move(w), {count, n}), to_numpy(std::move(m), {count, rows}),
                         to_numpy(std::move(singular)));
}

NumpyArray<double> matrix_derivatives_(const Matrix& w, const Matrix& x, int threads) {
  const std::size_t count = w.shape(0), n = w.shape(1);
  require(x.shape(0) == count && x.shape(1) == n, "w and x must have the same shape");
  double* const result = new double[count * n * n];  // not cleared: it may be large
  nb::capsule owner(result, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    matrix_derivatives(w.data(), x.data(), Index(n), Index(count), threads, result, interrupt);
  });
  return nb::cast(nb::ndarray<nb::numpy, double>(result, {count, n, n}, owner));
}

}  // namespace

void register_small_batches(nb::module_& m) {
  m.attr("SOLVED") = int(SmallBatch::optimal);
  m.def("small_batch", &small_batch, "hessian"_a, "linear"_a, "total"_a, "lower"_a, "upper"_a,
        nb::kw_only(), "count"_a, "tol"_a, "seconds"_a, "threads"_a,
        "Solve `count` problems as `small` does. Each argument has one item per problem or one for "
        "all. Return (x, gradient, value, iterations, violation, tolerance, bound, multiplier, "
        "state). Problems that were declined or not reached are left 0.");
  m.def("kkt_systems", &kkt_systems, "hessian"_a, "constraints"_a, "diagonal"_a, "free"_a, "r"_a,
        "s"_a, nb::kw_only(), "threads"_a,
        "Return (w, m, singular): the solutions of the systems of cpp/engine/sensitivity.hpp.");
  m.def("matrix_derivatives", &matrix_derivatives_, "w"_a, "x"_a, nb::kw_only(), "threads"_a,
        "Return -(w x' + x w') / 2 for each row of w and x.");
}
