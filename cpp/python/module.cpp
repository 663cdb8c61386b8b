// The Python module `pairstep._core`: types, constants and functions of arrays. Python validates
// the input and explains errors to users. The checks here only guard memory safety.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "../core/bfgs.hpp"
#include "../core/certify.hpp"
#include "../core/convex.hpp"
#include "../core/feasible.hpp"
#include "../engine/block_solver.hpp"
#include "../core/inner.hpp"
#include "../core/moving.hpp"
#include "../core/policy.hpp"
#include "../core/quadratic.hpp"
#include "../core/row_sums.hpp"
#include "../core/symmetry.hpp"
#include "../core/thread_pool.hpp"
#include "../isa/dispatch.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

// threadpoolctl looks for this symbol to distinguish this library from others named `_core`.
extern "C" NB_EXPORT const int pairstep_threads;
extern "C" const int pairstep_threads = 1;

namespace {

const double* linear_of(const std::optional<In>& linear, const Point& at) {
  require(!linear || Index(linear->shape(0)) == at.n, "linear must have the length of x");
  return linear ? linear->data() : nullptr;
}

double scale(const PointArrays& point, const In& gradient, const std::optional<In>& linear) {
  const Point at = point.with(gradient);
  return terms_of(at, linear_of(linear, at)).gradient;
}

void require_totals(const In& totals, const Point& at) {
  require(Index(totals.shape(0)) == (at.nested() ? 1 : at.n_groups),
          "totals must have one entry per group, or one entry if the groups are nested");
}

auto certify_(const PointArrays& point, const In& gradient, const std::optional<In>& linear,
              const std::optional<In>& totals) {
  const Point at = point.with(gradient);
  if (totals) require_totals(*totals, at);
  const double* constant = linear_of(linear, at);
  Certificate certificate;
  Terms terms;
  {
    const WithoutGil without;
    certificate = certify(at, totals ? totals->data() : nullptr);
    terms = terms_of(at, constant);
  }
  return std::make_tuple(certificate.violation, certificate.bound, certificate.nearby,
                         terms.gradient, terms.objective,
                         to_numpy(std::move(certificate.multiplier)), certificate.residual);
}

auto certify_quadratic(const PointArrays& point, const In& gradient, const In& linear,
                       const std::optional<In>& diagonal, const In& totals, double tol) {
  const Point at = point.with(gradient);
  require_totals(totals, at);
  for (const In* each : {&linear, diagonal ? &*diagonal : &linear})
    require(Index(each->shape(0)) == at.n, "linear and diagonal must have the length of x");
  Certificate certificate;
  Assessment assessment;
  {
    const WithoutGil without;
    certificate = certify(at, totals.data());
    assessment = assess(at, {linear.data(), diagonal ? diagonal->data() : nullptr}, certificate,
                        totals.data(), tol);
  }
  const auto& [terms, excess, unshared_residual] = assessment;
  return std::make_tuple(
      certificate.violation, certificate.bound, certificate.nearby, terms.gradient, terms.objective,
      to_numpy(std::move(certificate.multiplier)), certificate.residual, excess.violation,
      excess.allowed, excess.tolerance, unshared_residual, terms.constant, terms.curvature);
}

// Return an upper bound of sum_j |Q_ij x_j| that holds for every row i. It uses the Cauchy-Schwarz
// inequality |Q_ij| <= sqrt(Q_ii Q_jj) of a positive semidefinite Q.
double largest_product(const In& diagonal, const In& x) {
  require(diagonal.shape(0) == x.shape(0), "diagonal must have the length of x");
  double largest = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < x.shape(0); ++i) {
    const double root = std::sqrt(std::abs(diagonal.data()[i]));
    largest = std::max(largest, root);
    sum += root * std::abs(x.data()[i]);
  }
  return largest * sum;
}

// Return the largest size of an entry; NaN if one is NaN.
double largest_size(const In& x) {
  double largest = 0.0;
  bool is_number = true;
  for (std::size_t i = 0; i < x.shape(0); ++i) {
    const double size = std::abs(x.data()[i]);
    largest = std::max(largest, size);
    is_number &= size == size;
  }
  return is_number ? largest : NAN;
}

auto excess_(const PointArrays& point, const In& gradient, const In& allowance) {
  const Point at = point.with(gradient);
  require(Index(allowance.shape(0)) == at.n, "allowance must have the length of x");
  const Excess excess = excess_over(at, allowance.data());
  return std::make_tuple(excess.violation, excess.allowed, excess.tolerance);
}

NumpyArray<Index> moving_(const PointArrays& point, const In& gradient, const In& multiplier,
                          double violation) {
  const Point at = point.with(gradient);
  require(!at.nested() && Index(multiplier.shape(0)) == at.n_groups,
          "multiplier must have one entry per group, and the groups must not be nested");
  return to_numpy(moving(at, multiplier.data(), violation));
}

Convex convex_along_(const Matrix& hessian, const std::optional<Indices>& index,
                     const Indices& starts) {
  const Index n = Index(hessian.shape(0));
  require(Index(hessian.shape(1)) == n, "hessian must be n x n");
  require_starts(starts, std::size_t(n));
  std::vector<Index> members(index ? index->shape(0) : n);
  for (std::size_t k = 0; k < members.size(); ++k) {
    members[k] = index ? (*index)(k) : Index(k);
    require(members[k] >= 0 && members[k] < n, "index must be in range(n)");
  }
  const WithoutGil without;
  return convex_along(hessian.data(), n, members, starts.data());
}

Index first_invalid_bound_(const In& lower, const In& upper, double limit) {
  require(lower.shape(0) == upper.shape(0), "lower and upper must have the same length");
  return first_invalid_bound(lower.data(), upper.data(), Index(lower.shape(0)), limit);
}

std::vector<std::tuple<double, double, double>> sum_ranges(const In& lower, const In& upper,
                                                           const Indices& starts, const In& low,
                                                           const In& high) {
  require_sums(lower.shape(0), lower, upper, starts, low, {}, {});
  require(low.shape(0) == high.shape(0), "low and high must have one entry per group");
  std::vector<std::tuple<double, double, double>> result;
  for (std::size_t k = 0; k < low.shape(0); ++k) {
    const SumRange range = range_of_sum(lower.data() + starts(k), upper.data() + starts(k),
                                        starts(k + 1) - starts(k), low(k), high(k));
    result.emplace_back(range.least, range.most, range.gap);
  }
  return result;
}

NumpyArray<double> project_(const In& y, const In& lower, const In& upper, const Indices& starts,
                            const In& totals, const std::optional<In>& low,
                            const std::optional<In>& high) {
  const Sums sums = require_sums(y.shape(0), lower, upper, starts, totals, low, high);
  std::vector<double> x(y.shape(0));
  {
    const WithoutGil without;
    project(y.data(), lower.data(), upper.data(), sums, x.data());
  }
  return to_numpy(std::move(x));
}

NumpyArray<double> fill_(const In& derivative, const In& curvature, const In& lower,
                         const In& upper, const Indices& starts, const In& totals,
                         const std::optional<In>& low, const std::optional<In>& high) {
  const std::size_t n = derivative.shape(0);
  require(curvature.shape(0) == n, "curvature must have the length of derivative");
  const Sums sums = require_sums(n, lower, upper, starts, totals, low, high);
  std::vector<double> x(n);
  fill(derivative.data(), curvature.data(), lower.data(), upper.data(), sums, x.data());
  return to_numpy(std::move(x));
}

void restore_sums_(const InOut& x, const In& lower, const In& upper, const Indices& starts,
                   const In& totals, const std::optional<In>& breakpoint,
                   const std::optional<In>& low, const std::optional<In>& high) {
  const Sums sums = require_sums(x.shape(0), lower, upper, starts, totals, low, high);
  require(!breakpoint || breakpoint->shape(0) == x.shape(0),
          "breakpoint must have the length of x");
  restore_sums(x.data(), lower.data(), upper.data(), sums,
               breakpoint ? breakpoint->data() : nullptr);
}

double two_coordinate_constant(const Matrix& hessian) {
  require(hessian.shape(0) == hessian.shape(1), "hessian must be square");
  const WithoutGil without;
  return isa().two_coordinate_constant(hessian.data(), Index(hessian.shape(0)));
}

template <class Array>
auto asymmetry_(const Array& matrix, int threads) {
  require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
  const Asymmetry found = run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    return asymmetry(matrix.data(), Index(matrix.shape(0)), threads, interrupt);
  });
  return std::make_tuple(found.difference, found.largest, found.i, found.j, found.least_pair);
}

auto quadratic_(const Matrix& Q, const In& c, const In& x) {
  const std::size_t n = x.shape(0);
  require(Q.shape(0) == n && Q.shape(1) == n && c.shape(0) == n,
          "Q must be n x n and c of length n, where n is the length of x");
  std::vector<double> gradient(n);
  double value = 0.0;
  {
    const WithoutGil without;
    value = quadratic(Q.data(), c.data(), Index(n), x.data(), gradient.data());
  }
  return std::make_tuple(value, to_numpy(std::move(gradient)));
}

NumpyArray<double> times(const Matrix& matrix, const In& x) {
  require(matrix.shape(0) == matrix.shape(1) && matrix.shape(0) == x.shape(0),
          "matrix must be n x n and x of length n");
  std::vector<double> product(x.shape(0));
  {
    const WithoutGil without;
    isa().times(matrix.data(), x.data(), Index(x.shape(0)), product.data());
  }
  return to_numpy(std::move(product));
}

auto certify_rows(const Matrix& gradient, const Matrix& linear, const In& diagonal, const Matrix& x,
                  const In& value, const In& lower, const In& upper, const Indices& starts,
                  const std::optional<In>& low, const std::optional<In>& high, double tol,
                  int threads) {
  const std::size_t count = x.shape(0), n = x.shape(1);
  for (const Matrix* each : {&gradient, &linear})
    require(each->shape(0) == count && each->shape(1) == n,
            "gradient and linear must have the shape of x");
  require(value.shape(0) == count, "value must have one entry per row of x");
  require(diagonal.shape(0) == n, "diagonal must have one entry per column of x");
  require(lower.shape(0) == n && upper.shape(0) == n,
          "lower and upper must have one entry per column of x");
  require_starts(starts, n);
  require_limits(starts, low, high);
  std::vector<double> violation(count), bound(count);
  std::vector<std::uint8_t> optimal(count);
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    // Smaller jobs would spend a larger share of their time on being started.
    constexpr Index ROWS_PER_JOB = 256;
    const Index jobs = (Index(count) + ROWS_PER_JOB - 1) / ROWS_PER_JOB;
    ThreadPool pool(int(std::min<Index>(threads, jobs)), interrupt);
    pool.run(jobs, [&](Index job) {
      const Index end = std::min((job + 1) * ROWS_PER_JOB, Index(count));
      for (Index k = job * ROWS_PER_JOB; k < end; ++k) {
        const Point point{Index(n),
                          Index(starts.shape(0)) - 1,
                          starts.data(),
                          const_cast<double*>(gradient.data()) + k * n,
                          const_cast<double*>(x.data()) + k * n,
                          lower.data(),
                          upper.data(),
                          nullptr,
                          nullptr,
                          low ? low->data() : nullptr,
                          low ? high->data() : nullptr};
        const Certificate c = certify(point);
        violation[k] = c.violation;
        bound[k] = c.bound;
        optimal[k] = verdict_of(point, {linear.data() + k * n, diagonal.data()}, c, nullptr,
                                value.data()[k], tol)
                         .optimal;
      }
    });
  });
  return std::make_tuple(to_numpy(std::move(violation)), to_numpy(std::move(bound)),
                         to_numpy(std::move(optimal)));
}

using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

Columns columns_of(const Strided& matrix) {
  return {matrix.data(), Index(matrix.shape(0)), Index(matrix.shape(1)), matrix.stride(0),
          matrix.stride(1)};
}

// Return an uninitialized matrix. NumPy allocates it, because NumPy requests huge pages.
InOutMatrix new_matrix(Index rows, Index columns) {
  return nb::cast<InOutMatrix>(
      nb::module_::import_("numpy").attr("empty")(nb::make_tuple(rows, columns)));
}

InOutMatrix inner_(const Strided& left, const Strided& right, int threads) {
  require(left.shape(0) == right.shape(0), "left and right must have the same number of rows");
  const InOutMatrix product = new_matrix(Index(left.shape(1)), Index(right.shape(1)));
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(threads, interrupt);
    inner(columns_of(left), columns_of(right), product.data(), pool);
  });
  return product;
}

const double* scale_of(const std::optional<In>& scale, const Strided& matrix) {
  require(!scale || scale->shape(0) == matrix.shape(0),
          "left and right must have one entry per row");
  return scale ? scale->data() : nullptr;
}

InOutMatrix gram_(const Strided& matrix, const std::optional<Indices>& columns, int threads,
                  const std::optional<In>& left, const std::optional<In>& right) {
  Columns all = columns_of(matrix);
  const double *left_scale = scale_of(left, matrix), *right_scale = scale_of(right, matrix);
  if (columns) {
    for (std::size_t k = 0; k < columns->shape(0); ++k)
      require((*columns)(k) >= 0 && (*columns)(k) < all.count,
              "columns must be valid column indices of matrix");
    all.count = Index(columns->shape(0));
    all.which = columns->data();
  }
  const InOutMatrix product = new_matrix(all.count, all.count);
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(threads, interrupt);
    gram(all, left_scale, right_scale, product.data(), pool);
  });
  return product;
}

auto row_sum_(RowFunction phi, const Matrix& matrix, const std::optional<In>& factor,
              const In& offset, const In& weight, const In& x, int threads) {
  const std::size_t m = matrix.shape(0), n = matrix.shape(1);
  require((!factor || factor->shape(0) == m) && offset.shape(0) == m && weight.shape(0) == m &&
              x.shape(0) == n,
          "factor, offset and weight must have one entry per row of matrix, x one per column");
  std::vector<double> gradient(n), root(m);
  double value = 0.0;
  DerivativeSizes sizes;
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(threads, interrupt);
    value = row_sum({phi, matrix.data(), Index(m), Index(n), factor ? factor->data() : nullptr,
                     offset.data(), weight.data()},
                    x.data(), gradient.data(), root.data(), sizes, pool);
  });
  return std::make_tuple(
      value, to_numpy(std::move(gradient)), to_numpy(std::move(root)),
      std::make_tuple(sizes.sum, sizes.curvature, sizes.largest, sizes.smallest));
}

template <class Product>
NumpyArray<double> vector_product(const Matrix& matrix, const In& x, std::size_t from,
                                  std::size_t to, Product product) {
  require(matrix.shape(from) == x.shape(0),
          "the vector must have the matching length of the matrix");
  std::vector<double> out(matrix.shape(to));
  {
    const WithoutGil without;
    product(matrix.data(), Index(matrix.shape(0)), Index(matrix.shape(1)), x.data(), out.data());
  }
  return to_numpy(std::move(out));
}

Steps steps_of(const Matrix& steps, const Matrix& changes, const In& along, const In& diagonal) {
  const std::size_t count = steps.shape(0), n = steps.shape(1);
  require(changes.shape(0) == count && changes.shape(1) == n && along.shape(0) == count &&
              diagonal.shape(0) == n,
          "steps and changes must be count x n, along of length count, diagonal of length n");
  return {Index(count), Index(n), steps.data(), changes.data(), along.data(), diagonal.data()};
}

NumpyArray<double> divide_by_hessian_(const Matrix& steps, const Matrix& changes, const In& along,
                                      const In& diagonal, const In& direction) {
  const Steps all = steps_of(steps, changes, along, diagonal);
  require(direction.shape(0) == steps.shape(1),
          "direction must have one entry per column of steps");
  std::vector<double> result(direction.data(), direction.data() + direction.shape(0));
  {
    const WithoutGil without;
    divide_by_hessian(all, result.data());
  }
  return to_numpy(std::move(result));
}

InOutMatrix factor_hessian_(const Matrix& steps, const Matrix& changes, const In& along,
                            const In& diagonal) {
  const Steps all = steps_of(steps, changes, along, diagonal);
  const InOutMatrix rows = new_matrix(2 * all.count, all.n);
  const WithoutGil without;
  factor_hessian(all, rows.data());
  return rows;
}

bool cholesky_(const InOutMatrix& matrix) {
  require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
  const WithoutGil without;
  return isa().cholesky(matrix.data(), Index(matrix.shape(0)), Index(matrix.shape(1)));
}

void cholesky_solve_(const Matrix& factor, const InOutMatrix& b) {
  require(factor.shape(0) == factor.shape(1) && b.shape(1) == factor.shape(0),
          "factor must be n x n and b count x n");
  const WithoutGil without;
  isa().cholesky_solve(factor.data(), Index(factor.shape(0)), Index(factor.shape(0)), b.data(),
                       Index(b.shape(0)));
}

}  // namespace

void register_svm(nb::module_& m);            // svm.cpp
void register_partitions(nb::module_& m);     // partitions.cpp
void register_probabilities(nb::module_& m);  // probabilities.cpp
void register_solvers(nb::module_& m);        // solvers.cpp
void register_parametric(nb::module_& m);     // parametric.cpp
void register_cardinality(nb::module_& m);    // cardinality.cpp
void register_small_batches(nb::module_& m);  // small_batches.cpp
void register_paper(nb::module_& m);          // paper.cpp

namespace {

void register_policy(nb::module_& m) {
  nb::class_<NumericalPolicy> policy(
      m, "NumericalPolicy",
      "Thresholds that decide when a solve may stop and what counts as rounding error; see "
      "cpp/core/policy.hpp for the reasons.");
  policy.attr("gain_per_tol") = NumericalPolicy::gain_per_tol;
  policy.attr("gradient_rounding") = NumericalPolicy::gradient_rounding;
  policy.attr("sum_rounding") = NumericalPolicy::sum_rounding;
  policy.attr("vanishing_scale") = NumericalPolicy::vanishing_scale;
  policy.attr("base_patience") = NumericalPolicy::base_patience;
  policy.def_static(
      "patience", &NumericalPolicy::patience, "n"_a,
      "Return the number of iterations without progress after which coordinate descent gives "
      "up, for rules that use the gradient.");
}

void register_types(nb::module_& m) {
  nb::enum_<StopReason>(m, "StopReason", "Why a native solver returned.")
      .value("optimal", StopReason::optimal, "The violation is within the tolerance.")
      .value("max_iter", StopReason::max_iter, "The iteration limit is reached.")
      .value("stopped", StopReason::stopped, "The time limit has passed, or a callback stopped it.")
      .value("stalled", StopReason::stalled, "No further progress is possible.")
      .value("imprecise", StopReason::imprecise,
             "The violation does not decrease any further in the oracle's arithmetic.")
      .value("unbounded", StopReason::unbounded, "The objective seems to be unbounded below.")
      .value("paused", StopReason::paused, "The requested rounds are done; call `run` again.")
      .value("solved_directly", StopReason::solved_directly,
             "Paused after a direct solve. x is its result, with a violation that may be rounding "
             "error, or x is unchanged because the result was worse.");
  nb::enum_<Convex>(m, "Convex", "Whether a quadratic is convex on a subspace.")
      .value("no", Convex::no)
      .value("but_for_rounding", Convex::but_for_rounding)
      .value("yes", Convex::yes);
  nb::enum_<RowFunction>(m, "RowFunction",
                         "Scalar function that is summed over the rows of a matrix.")
      .value("minus_log", RowFunction::minus_log)
      .value("logistic", RowFunction::logistic);
  nb::class_<PointArrays>(m, "Point",
                          "A point of a problem and its constraints; solvers change x in place.")
      .def(nb::init<InOut, In, In, std::optional<In>, std::optional<In>, Indices, std::optional<In>,
                    std::optional<In>>(),
           "x"_a.noconvert(), "lower"_a, "upper"_a, "l1"_a.none(), "breakpoint"_a.none(),
           "starts"_a, "low"_a.none() = nb::none(), "high"_a.none() = nb::none());
}

// A misspelled PAIRSTEP_ISA must not run another instruction set than the one that is being tested.
void refuse_unknown_instruction_set() {
  const char* unknown = unknown_instruction_set();
  if (!unknown) return;
  std::string names;
  for (const char* name : instruction_sets())
    names += (names.empty() ? "" : ", ") + std::string(name);
  throw nb::import_error(("PAIRSTEP_ISA=" + std::string(unknown) +
                          " is not an instruction set of this CPU; choose one of " + names)
                             .c_str());
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native core of pairstep: functions of arrays, and solvers that can be paused.";
  refuse_unknown_instruction_set();
  nb::set_leak_warnings(false);  // a daemon thread may hold a solve during shutdown
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Shutdown::begin));
  register_policy(m);
  register_types(m);
  register_solvers(m);
  register_parametric(m);
  register_cardinality(m);
  register_small_batches(m);
  m.def("moving", &moving_, "point"_a, "gradient"_a, "multiplier"_a, "violation"_a,
        "Return the coordinates that are likely to change in the next steps.");
  m.def("largest_product", &largest_product, "diagonal"_a, "x"_a,
        "Return an upper bound of sum_j |Q_ij x_j| for every i, given the diagonal of a positive "
        "semidefinite Q.");
  m.def("largest_size", &largest_size, "x"_a, "Return max |x_i|, or NaN if an entry is NaN.");
  m.def("excess", &excess_, "point"_a, "gradient"_a, "allowance"_a,
        "Return the KKT violation if each derivative may be wrong by its allowance, the allowances "
        "of the pair with this violation, and those of the pair with the largest violation without "
        "allowances.");
  m.def(
      "certify", &certify_, "point"_a, "gradient"_a, "linear"_a.none() = nb::none(),
      "totals"_a.none() = nb::none(),
      "Return the KKT violation, the Frank-Wolfe gap, the gap near the point, the size of the "
      "terms that cancel in the gradient and in the objective, the multipliers (of the groups; "
      "for nested groups, that of the total first), and the effect of the rounding of the sums on "
      "the objective.");
  m.def(
      "certify_quadratic", &certify_quadratic, "point"_a, "gradient"_a, "linear"_a,
      "diagonal"_a.none(), "totals"_a, "tol"_a,
      "Return what `certify` returns, then: the KKT violation beyond the tolerance, the tolerance "
      "of "
      "that pair, the tolerance of the pair with the largest violation, the effect of inexact sums "
      "without the common part of the linear term, what that part adds to the objective, and "
      "x'Qx.");
  m.def("scale", &scale, "point"_a, "gradient"_a, "linear"_a.none(),
        "Return the size of the terms that cancel in the gradient.");
  m.def(
      "convex_along", &convex_along_, "hessian"_a, "index"_a.none(), "starts"_a,
      "Return whether a quadratic is convex along all steps of these coordinates (None: all) that "
      "keep the sum of each group.");
  m.def("first_invalid_bound", &first_invalid_bound_, "lower"_a, "upper"_a, "limit"_a,
        "Return the first coordinate with lower > upper, a NaN, or a finite bound that is at least "
        "`limit` in size; -1 if there is none.");
  m.def("sum_ranges", &sum_ranges, "lower"_a, "upper"_a, "starts"_a, "low"_a, "high"_a,
        "Return for each group the sums of the lower and of the upper bounds, and the distance of "
        "this range from [low, high].");
  m.def("project", &project_, "y"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "low"_a.none() = nb::none(), "high"_a.none() = nb::none(),
        "Return the feasible point nearest to y.");
  m.def("fill", &fill_, "derivative"_a, "curvature"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "low"_a.none() = nb::none(), "high"_a.none() = nb::none(),
        "Return a feasible point with few coordinates between their bounds, raising those with the "
        "smallest cost first.");
  m.def("restore_sums", &restore_sums_, "x"_a.noconvert(), "lower"_a, "upper"_a, "starts"_a,
        "totals"_a, "breakpoint"_a.none() = nb::none(), "low"_a.none() = nb::none(),
        "high"_a.none() = nb::none(),
        "Absorb the rounding error of each sum into a free coordinate, in place.");
  m.def("two_coordinate_constant", &two_coordinate_constant, "hessian"_a,
        "Return max_ij (H_ii + H_jj - 2 H_ij) / 2.");
  m.def("asymmetry", &asymmetry_<Matrix32>, "matrix"_a.noconvert(), "threads"_a);
  m.def("asymmetry", &asymmetry_<Matrix>, "matrix"_a, "threads"_a,
        "Return max |M_ij - M_ji|, max |M_ij| (NaN if an entry is not finite), the indices i, j of "
        "the first maximum, and min M_ii + M_jj - 2 M_ij.");
  m.def("quadratic", &quadratic_, "Q"_a, "c"_a, "x"_a, "Return x'Qx/2 + c'x and its gradient.");
  m.def("times", &times, "matrix"_a, "x"_a, "Return a symmetric matrix times a vector.");
  m.def("certify_rows", &certify_rows, "gradient"_a, "linear"_a, "diagonal"_a, "x"_a, "value"_a,
        "lower"_a, "upper"_a, "starts"_a, "low"_a.none(), "high"_a.none(), nb::kw_only(), "tol"_a,
        "threads"_a,
        "Return for each row of x the violation, the bound, and whether it is certainly optimal.");
  m.def("inner", &inner_, "left"_a, "right"_a, "threads"_a,
        "Return left' right, with the same bits for any number of threads.");
  m.def("gram", &gram_, "matrix"_a, "columns"_a.none(), "threads"_a, "left"_a.none() = nb::none(),
        "right"_a.none() = nb::none(),
        "Return the inner products of columns (None: of all), with the same bits for any number of "
        "threads. The rows are scaled by `left` on one side and by `right` on the other.");
  m.def(
      "row_sum", &row_sum_, "phi"_a, "matrix"_a, "factor"_a.none(), "offset"_a, "weight"_a, "x"_a,
      "threads"_a,
      "Return f(x) = sum_i weight_i phi(factor_i a_i'x + offset_i), its gradient, the square roots "
      "of weight_i factor_i^2 phi'', and sizes: the sums of weight_i |factor_i phi'| and of "
      "weight_i factor_i^2 phi'', and the largest and smallest |phi'| of a row with weight. If "
      "f(x) is infinite, only it is valid.");
  m.def(
      "largest",
      [](const In& values) { return isa().largest(values.data(), Index(values.shape(0))); },
      "values"_a, "Return the largest absolute value; NaN if a number is not finite.");
  m.def(
      "dot",
      [](const In& a, const In& b) {
        require(a.shape(0) == b.shape(0), "a and b must have the same length");
        return dot(a.data(), b.data(), Index(a.shape(0)));
      },
      "a"_a, "b"_a,
      "Return a'b. Unlike a BLAS, this wakes no threads that keep spinning afterwards.");
  m.def("divide_by_hessian", &divide_by_hessian_, "steps"_a, "changes"_a, "along"_a, "diagonal"_a,
        "direction"_a, "Return the inverse of a BFGS Hessian times a vector.");
  m.def("factor_hessian", &factor_hessian_, "steps"_a, "changes"_a, "along"_a, "diagonal"_a,
        "Return F for which a BFGS Hessian is diag(diagonal) + F' diag(1, -1, 1, -1, ...) F.");
  m.def(
      "times_vector",
      [](const Matrix& A, const In& x) { return vector_product(A, x, 1, 0, times_vector); }, "A"_a,
      "x"_a, "Return A x.");
  m.def(
      "transposed_times_vector",
      [](const Matrix& A, const In& r) {
        return vector_product(A, r, 0, 1, transposed_times_vector);
      },
      "A"_a, "r"_a, "Return A' r.");
  m.def("cholesky", &cholesky_, "matrix"_a.noconvert(),
        "Factorize U'U = matrix in place, with U on and above the diagonal. Return False if the "
        "matrix is not positive definite.");
  m.def("cholesky_solve", &cholesky_solve_, "factor"_a, "b"_a.noconvert(),
        "Solve U'U x = b in place for each row of b.");
  m.def(
      "instruction_set", [] { return std::string(isa().name); },
      "Return the name of the instruction set in use.");
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (const char* name : instruction_sets()) names.emplace_back(name);
        return names;
      },
      "Return the names of the instruction sets that this CPU supports.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) { return use_instruction_set(name.c_str()); }, "name"_a,
      "Choose an instruction set by name. Return False if this CPU does not support it.");
  register_svm(m);
  register_partitions(m);
  register_probabilities(m);
  register_paper(m);
}
