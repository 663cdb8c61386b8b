// The Python module: a few functions over arrays. Validation is Python's work; here only the
// shapes that memory safety rests on are checked.
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
#include "../engine/block_gear.hpp"
#include "../core/inner.hpp"
#include "../core/moving.hpp"
#include "../core/quadratic.hpp"
#include "../core/row_sums.hpp"
#include "../core/symmetry.hpp"
#include "../core/team.hpp"
#include "../isa/dispatch.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

// By which threadpoolctl tells this library from others whose files are called `_core`.
extern "C" NB_EXPORT const int pairstep_threads;
extern "C" const int pairstep_threads = 1;

namespace {

nb::list rules() {
  nb::list result;
  for (const Rule& rule : isa().rules) {
    nb::dict about;
    about["code"] = rule.code;
    about["weighted"] = rule.weighted;
    about["uses_alpha"] = rule.uses_alpha;
    about["one_norm"] = rule.one_norm;
    about["curved"] = rule.curved;
    about["draws"] = rule.draws;
    about["in_turn"] = rule.in_turn;
    nb::list names;
    names.append(rule.name);
    if (rule.alias) names.append(rule.alias);
    result.append(nb::make_tuple(names, about));
  }
  return result;
}

nb::tuple propose(const PointArrays& point, const In& gradient, const ChoiceArrays& choice,
                  Index turn) {
  const Point at = point.with(gradient);
  Choice chosen = choice.of(at.n, turn);
  Move move;
  run_native([&](Pulse& pulse, WithoutGil&) {
    chosen.pulse = &pulse;
    isa().propose(at, chosen, move);
  });
  return nb::make_tuple(to_numpy(std::move(move.index)), to_numpy(std::move(move.delta)),
                        move.decrease, move.suspect);
}

const double* linear_of(const std::optional<In>& linear, const Point& at) {
  require(!linear || Index(linear->shape(0)) == at.n, "linear must have the length of x");
  return linear ? linear->data() : nullptr;
}

double scale(const PointArrays& point, const In& gradient, const std::optional<In>& linear) {
  const Point at = point.with(gradient);
  return terms_of(at, linear_of(linear, at)).gradient;
}

nb::tuple certify_(const PointArrays& point, const In& gradient, const std::optional<In>& linear) {
  const Point at = point.with(gradient);
  const double* constant = linear_of(linear, at);
  Certificate certificate;
  Terms terms;
  {
    const WithoutGil without;
    certificate = certify(at);
    terms = terms_of(at, constant);
  }
  return nb::make_tuple(certificate.violation, certificate.bound, certificate.nearby,
                        terms.gradient, terms.objective,
                        to_numpy(std::move(certificate.multiplier)));
}

nb::object moving_(const PointArrays& point, const In& gradient, const In& multiplier,
                   double violation) {
  const Point at = point.with(gradient);
  require(!at.nested() && Index(multiplier.shape(0)) == at.n_groups,
          "there must be a multiplier for each group");
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
    require(members[k] >= 0 && members[k] < n, "index out of range");
  }
  const WithoutGil without;
  return convex_along(hessian.data(), n, members, starts.data());
}

Index first_odd_(const In& lower, const In& upper, double limit) {
  require(lower.shape(0) == upper.shape(0), "bounds must have one length");
  return first_odd(lower.data(), upper.data(), Index(lower.shape(0)), limit);
}

nb::list spans(const In& lower, const In& upper, const Indices& starts, const In& low,
               const In& high) {
  require_sums(lower.shape(0), lower, upper, starts, low, {}, {});
  require(low.shape(0) == high.shape(0), "there must be one range per group");
  nb::list result;
  for (std::size_t k = 0; k < low.shape(0); ++k) {
    const Span span = span_of(lower.data() + starts(k), upper.data() + starts(k),
                              starts(k + 1) - starts(k), low(k), high(k));
    result.append(nb::make_tuple(span.least, span.most, span.miss));
  }
  return result;
}

nb::object project_(const In& y, const In& lower, const In& upper, const Indices& starts,
                    const In& totals, const std::optional<In>& low, const std::optional<In>& high) {
  const Sums sums = require_sums(y.shape(0), lower, upper, starts, totals, low, high);
  std::vector<double> x(y.shape(0));
  {
    const WithoutGil without;
    project(y.data(), lower.data(), upper.data(), sums, x.data());
  }
  return to_numpy(std::move(x));
}

nb::object fill_(const In& price, const In& curvature, const In& lower, const In& upper,
                 const Indices& starts, const In& totals, const std::optional<In>& low,
                 const std::optional<In>& high) {
  const std::size_t n = price.shape(0);
  require(curvature.shape(0) == n, "curvature must have the length of price");
  const Sums sums = require_sums(n, lower, upper, starts, totals, low, high);
  std::vector<double> x(n);
  fill(price.data(), curvature.data(), lower.data(), upper.data(), sums, x.data());
  return to_numpy(std::move(x));
}

void settle_(const InOut& x, const In& lower, const In& upper, const Indices& starts,
             const In& totals, const std::optional<In>& pivot, const std::optional<In>& low,
             const std::optional<In>& high) {
  const Sums sums = require_sums(x.shape(0), lower, upper, starts, totals, low, high);
  require(!pivot || pivot->shape(0) == x.shape(0), "pivot must have the length of x");
  settle(x.data(), lower.data(), upper.data(), sums, pivot ? pivot->data() : nullptr);
}

double two_coordinate_constant(const Matrix& hessian) {
  require(hessian.shape(0) == hessian.shape(1), "hessian must be square");
  const WithoutGil without;
  return isa().two_coordinate_constant(hessian.data(), Index(hessian.shape(0)));
}

template <class Array>
nb::tuple asymmetry_(const Array& matrix, int threads) {
  require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
  const Asymmetry found = run_native([&](Pulse& pulse, WithoutGil&) {
    return asymmetry(matrix.data(), Index(matrix.shape(0)), threads, pulse);
  });
  return nb::make_tuple(found.difference, found.largest, found.i, found.j, found.least_pair);
}

nb::tuple quadratic_(const Matrix& Q, const In& c, const In& x) {
  const std::size_t n = x.shape(0);
  require(Q.shape(0) == n && Q.shape(1) == n && c.shape(0) == n, "Q must be n x n, c of length n");
  std::vector<double> gradient(n);
  double value = 0.0;
  {
    const WithoutGil without;
    value = quadratic(Q.data(), c.data(), Index(n), x.data(), gradient.data());
  }
  return nb::make_tuple(value, to_numpy(std::move(gradient)));
}

nb::object times(const Matrix& matrix, const In& x) {
  require(matrix.shape(0) == matrix.shape(1) && matrix.shape(0) == x.shape(0),
          "matrix must be n x n and x of length n");
  std::vector<double> product(x.shape(0));
  {
    const WithoutGil without;
    isa().times(matrix.data(), x.data(), Index(x.shape(0)), product.data());
  }
  return to_numpy(std::move(product));
}

double bare_pass(const std::vector<In>& arrays) {
  std::vector<const double*> pointers;
  for (const In& array : arrays) {
    require(array.shape(0) == arrays[0].shape(0), "arrays must have the same length");
    pointers.push_back(array.data());
  }
  require(!arrays.empty(), "no arrays");
  return isa().bare_pass(pointers.data(), Index(pointers.size()), Index(arrays[0].shape(0)));
}

double bare_updates(const Matrix& hessian, const InOut& gradient, const Indices& indices) {
  const Index n = Index(gradient.shape(0));
  require(Index(hessian.shape(0)) == n && Index(hessian.shape(1)) == n, "hessian must be n x n");
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < indices.shape(0); k += 2) {
    require(indices(k) >= 0 && indices(k) < n && indices(k + 1) >= 0 && indices(k + 1) < n,
            "index out of range");
    sum += isa().bare_update(hessian.data(), gradient.data(), n, indices(k), indices(k + 1), 1e-9);
  }
  return sum;
}

nb::tuple certify_rows(const Matrix& gradient, const Matrix& linear, const Matrix& x,
                       const In& value, const In& lower, const In& upper, const Indices& starts,
                       const std::optional<In>& low, const std::optional<In>& high, double tol,
                       int threads) {
  const std::size_t count = x.shape(0), n = x.shape(1);
  for (const Matrix* each : {&gradient, &linear})
    require(each->shape(0) == count && each->shape(1) == n, "gradients must be count x n");
  require(value.shape(0) == count, "value must have length count");
  require(lower.shape(0) == n && upper.shape(0) == n, "bounds must have length n");
  require_starts(starts, n);
  require_limits(starts, low, high);
  std::vector<double> violation(count), bound(count);
  std::vector<std::uint8_t> optimal(count);
  run_native([&](Pulse& pulse, WithoutGil&) {
    constexpr Index CHUNK = 256;
    const Index chunks = (Index(count) + CHUNK - 1) / CHUNK;
    Team team(int(std::min<Index>(threads, chunks)), pulse);
    team.run(chunks, [&](Index chunk) {
      for (Index k = chunk * CHUNK; k < std::min((chunk + 1) * CHUNK, Index(count)); ++k) {
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
        optimal[k] = is_optimal(c, terms_of(point, linear.data() + k * n), value.data()[k], tol);
      }
    });
  });
  return nb::make_tuple(to_numpy(std::move(violation)), to_numpy(std::move(bound)),
                        to_numpy(std::move(optimal)));
}

using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

Columns columns_of(const Strided& matrix) {
  return {matrix.data(), Index(matrix.shape(0)), Index(matrix.shape(1)), matrix.stride(0),
          matrix.stride(1)};
}

// NumPy's, for it has huge pages.
InOutMatrix new_matrix(Index rows, Index columns) {
  return nb::cast<InOutMatrix>(
      nb::module_::import_("numpy").attr("empty")(nb::make_tuple(rows, columns)));
}

InOutMatrix inner_(const Strided& left, const Strided& right, int threads) {
  require(left.shape(0) == right.shape(0), "left and right must have the same number of rows");
  const InOutMatrix product = new_matrix(Index(left.shape(1)), Index(right.shape(1)));
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(threads, pulse);
    inner(columns_of(left), columns_of(right), product.data(), team);
  });
  return product;
}

const double* scale_of(const std::optional<In>& scale, const Strided& matrix) {
  require(!scale || scale->shape(0) == matrix.shape(0), "there must be one scale per row");
  return scale ? scale->data() : nullptr;
}

InOutMatrix gram_(const Strided& matrix, const std::optional<Indices>& columns, int threads,
                  const std::optional<In>& left, const std::optional<In>& right) {
  Columns all = columns_of(matrix);
  const double *left_scale = scale_of(left, matrix), *right_scale = scale_of(right, matrix);
  if (columns) {
    for (std::size_t k = 0; k < columns->shape(0); ++k)
      require((*columns)(k) >= 0 && (*columns)(k) < all.count, "column out of range");
    all.count = Index(columns->shape(0));
    all.which = columns->data();
  }
  const InOutMatrix product = new_matrix(all.count, all.count);
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(threads, pulse);
    gram(all, left_scale, right_scale, product.data(), team);
  });
  return product;
}

nb::tuple row_sum_(RowFunction phi, const Matrix& matrix, const std::optional<In>& factor,
                   const In& offset, const In& weight, const In& x, int threads) {
  const std::size_t m = matrix.shape(0), n = matrix.shape(1);
  require((!factor || factor->shape(0) == m) && offset.shape(0) == m && weight.shape(0) == m &&
              x.shape(0) == n,
          "factor, offset and weight must have a number per row, x one per column");
  std::vector<double> gradient(n), root(m);
  double value = 0.0;
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(threads, pulse);
    value = row_sum({phi, matrix.data(), Index(m), Index(n), factor ? factor->data() : nullptr,
                     offset.data(), weight.data()},
                    x.data(), gradient.data(), root.data(), team);
  });
  return nb::make_tuple(value, to_numpy(std::move(gradient)), to_numpy(std::move(root)));
}

template <class Product>
nb::object vector_product(const Matrix& matrix, const In& x, std::size_t from, std::size_t to,
                          Product product) {
  require(matrix.shape(from) == x.shape(0), "the vector does not fit the matrix");
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
          "steps and changes must be count x n, along of length count, the diagonal of n");
  return {Index(count), Index(n), steps.data(), changes.data(), along.data(), diagonal.data()};
}

nb::object divide_by_hessian_(const Matrix& steps, const Matrix& changes, const In& along,
                              const In& diagonal, const In& direction) {
  const Steps all = steps_of(steps, changes, along, diagonal);
  require(direction.shape(0) == steps.shape(1), "direction must be of length n");
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

void register_machines(nb::module_& m);       // machines.cpp
void register_shares(nb::module_& m);         // shares.cpp
void register_probabilities(nb::module_& m);  // probabilities.cpp
void register_solvers(nb::module_& m);        // solvers.cpp

namespace {

void register_types(nb::module_& m) {
  nb::enum_<Step>(m, "Step", "The curvature that the length of a move is computed with.")
      .value("model", Step::model)
      .value("norm", Step::norm)
      .value("lipschitz", Step::lipschitz)
      .value("exact", Step::exact);
  nb::enum_<Stop>(m, "Stop", "Why the greedy gear stopped.")
      .value("converged", Stop::converged)
      .value("out_of_iterations", Stop::out_of_iterations)
      .value("out_of_time", Stop::out_of_time)
      .value("no_progress", Stop::no_progress)
      .value("unbounded", Stop::unbounded);
  nb::enum_<BlockStop>(m, "BlockStop", "Why the block gear stopped.")
      .value("optimal", BlockStop::optimal)
      .value("max_iter", BlockStop::max_iter)
      .value("stopped", BlockStop::stopped)
      .value("imprecise", BlockStop::imprecise)
      .value("unbounded", BlockStop::unbounded)
      .value("paused", BlockStop::paused)
      .value("leapt", BlockStop::leapt);
  nb::enum_<Convex>(m, "Convex", "Whether a quadratic is convex where we look.")
      .value("no", Convex::no)
      .value("but_for_rounding", Convex::but_for_rounding)
      .value("yes", Convex::yes);
  nb::enum_<RowFunction>(m, "RowFunction", "What is summed over the rows of a matrix.")
      .value("minus_log", RowFunction::minus_log)
      .value("logistic", RowFunction::logistic);
  nb::class_<PointArrays>(m, "Point", "A point in accounts; x is changed by who solves it.")
      .def(nb::init<InOut, In, In, std::optional<In>, std::optional<In>, Indices, std::optional<In>,
                    std::optional<In>>(),
           "x"_a.noconvert(), "lower"_a, "upper"_a, "kink"_a.none(), "pivot"_a.none(), "starts"_a,
           "low"_a.none() = nb::none(), "high"_a.none() = nb::none());
  nb::class_<ChoiceArrays>(m, "Choice", "How a rule is to choose.")
      .def(nb::init<int, double, std::optional<In>, nb::object>(), "rule"_a, "alpha"_a,
           "lipschitz"_a.none(), "generator"_a.none());
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native core of pairstep: functions over arrays, and solves that can be paused.";
  nb::set_leak_warnings(false);  // a daemon thread may hold a solve when the interpreter closes
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Closing::begin));
  register_types(m);
  register_solvers(m);
  m.def("rules", &rules, "Every rule: its names, and what is known of it.");
  m.def("propose", &propose, "point"_a, "gradient"_a, "choice"_a, "turn"_a,
        "The move a rule chooses: (indices, delta, decrease, suspect), where suspect is the index "
        "of a coordinate that is outside its bounds or not finite, or -1.");
  m.def("moving", &moving_, "point"_a, "gradient"_a, "multiplier"_a, "violation"_a,
        "The accounts that would trade at prices near the present ones.");
  m.def("certify", &certify_, "point"_a, "gradient"_a, "linear"_a.none() = nb::none(),
        "KKT violation, Frank-Wolfe gap, the same nearby, the size of the terms that cancel in the "
        "gradient and in the objective, multiplier per group (under one total: its own first).");
  m.def("scale", &scale, "point"_a, "gradient"_a, "linear"_a.none(),
        "The size of the terms that cancel in the gradient.");
  m.def("convex_along", &convex_along_, "hessian"_a, "index"_a.none(), "starts"_a,
        "Is a quadratic convex along all moves of these accounts (None: of all) within their "
        "groups?");
  m.def("first_odd", &first_odd_, "lower"_a, "upper"_a, "limit"_a,
        "The first account whose bounds leave no number between them or are finite and not below "
        "the limit in size, or -1.");
  m.def("spans", &spans, "lower"_a, "upper"_a, "starts"_a, "low"_a, "high"_a,
        "Per group: the sums of the lower and of the upper bounds, and by how much they miss the "
        "range from low to high.");
  m.def("project", &project_, "y"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "low"_a.none() = nb::none(), "high"_a.none() = nb::none(),
        "The feasible point nearest to y.");
  m.def("fill", &fill_, "price"_a, "curvature"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "low"_a.none() = nb::none(), "high"_a.none() = nb::none(),
        "A feasible point with few accounts between their bounds, the cheapest filled first.");
  m.def("settle", &settle_, "x"_a.noconvert(), "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "pivot"_a.none() = nb::none(), "low"_a.none() = nb::none(), "high"_a.none() = nb::none(),
        "Absorb the rounding of each sum into a free coordinate, in place.");
  m.def("two_coordinate_constant", &two_coordinate_constant, "hessian"_a,
        "max_ij (H_ii + H_jj - 2 H_ij) / 2.");
  m.def("asymmetry", &asymmetry_<Matrix32>, "matrix"_a.noconvert(), "threads"_a);
  m.def("asymmetry", &asymmetry_<Matrix>, "matrix"_a, "threads"_a,
        "(max |M_ij - M_ji|, max |M_ij| or NaN where an entry is not finite, i, j, and "
        "min M_ii + M_jj - 2 M_ij).");
  m.def("quadratic", &quadratic_, "Q"_a, "c"_a, "x"_a, "x'Qx/2 + c'x and its gradient.");
  m.def("times", &times, "matrix"_a, "x"_a, "Symmetric matrix times vector, by rows.");
  m.def("bare_pass", &bare_pass, "arrays"_a, "Read every element once: the floor of a rule.");
  m.def("bare_updates", &bare_updates, "hessian"_a, "gradient"_a.noconvert(), "indices"_a,
        "Gradient updates by pairs of rows: the floor of the greedy gear.");
  m.attr("GAIN") = GAIN;
  m.attr("GRAIN") = GRAIN;
  m.attr("ROUNDED") = ROUNDED;
  m.def(
      "certify_rows", &certify_rows, "gradient"_a, "linear"_a, "x"_a, "value"_a, "lower"_a,
      "upper"_a, "starts"_a, "low"_a.none(), "high"_a.none(), nb::kw_only(), "tol"_a, "threads"_a,
      "For each row a violation, a bound, and whether it is optimal as `Task.is_optimal` has it.");
  m.def("inner", &inner_, "left"_a, "right"_a, "threads"_a,
        "left' right, with the same bits for any number of threads.");
  m.def("gram", &gram_, "matrix"_a, "columns"_a.none(), "threads"_a, "left"_a.none() = nb::none(),
        "right"_a.none() = nb::none(),
        "The inner products of columns (None: of all), with the same bits for any number of "
        "threads; the rows scaled by `left` on one side and by `right` on the other.");
  m.def("row_sum", &row_sum_, "phi"_a, "matrix"_a, "factor"_a.none(), "offset"_a, "weight"_a, "x"_a,
        "threads"_a,
        "f(x) = sum_i weight_i phi(a_i'x + offset_i), its gradient, and the roots of "
        "weight_i phi''; only f where it is infinite.");
  m.def(
      "largest",
      [](const In& values) { return isa().largest(values.data(), Index(values.shape(0))); },
      "values"_a, "The largest size of a number; NaN where one is not finite.");
  m.def(
      "dot",
      [](const In& a, const In& b) {
        require(a.shape(0) == b.shape(0), "a and b must be of one length");
        double sum = 0.0;
        times_vector(a.data(), 1, Index(a.shape(0)), b.data(), &sum);
        return sum;
      },
      "a"_a, "b"_a, "a'b; a BLAS would wake its threads for it, and leave them spinning.");
  m.def("divide_by_hessian", &divide_by_hessian_, "steps"_a, "changes"_a, "along"_a, "diagonal"_a,
        "direction"_a, "The inverse of a Hessian by BFGS times a vector.");
  m.def("factor_hessian", &factor_hessian_, "steps"_a, "changes"_a, "along"_a, "diagonal"_a,
        "F for which a Hessian by BFGS is diag(diagonal) + F' diag(1, -1, 1, -1, ...) F.");
  m.def(
      "times_vector",
      [](const Matrix& A, const In& x) { return vector_product(A, x, 1, 0, times_vector); }, "A"_a,
      "x"_a, "A x.");
  m.def(
      "transposed_times_vector",
      [](const Matrix& A, const In& r) {
        return vector_product(A, r, 0, 1, transposed_times_vector);
      },
      "A"_a, "r"_a, "A' r.");
  m.def("cholesky", &cholesky_, "matrix"_a.noconvert(),
        "Factorise U'U = matrix in place, U on and above the diagonal; False if the matrix is not "
        "positive definite.");
  m.def("cholesky_solve", &cholesky_solve_, "factor"_a, "b"_a.noconvert(),
        "Solve U'U x = b in place for each row of b.");
  m.def("instruction_set", [] { return std::string(isa().name); }, "The instruction set in use.");
  m.def(
      "instruction_sets",
      [] {
        std::vector<std::string> names;
        for (const char* name : instruction_sets()) names.emplace_back(name);
        return names;
      },
      "The instruction sets this processor can run.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) { return use_instruction_set(name.c_str()); }, "name"_a,
      "Choose an instruction set by name; False if this processor cannot run it.");
  register_machines(m);
  register_shares(m);
  register_probabilities(m);
}
