// The Python module: a few functions over arrays. Validation is Python's work; here only the
// shapes that memory safety rests on are checked.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "../core/blas.hpp"
#include "../core/certify.hpp"
#include "../core/convex.hpp"
#include "../core/feasible.hpp"
#include "../engine/batch.hpp"
#include "../isa/dispatch.hpp"
#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pairstep;

namespace {

Point point_of(const In& gradient, const In& x, const In& lower, const In& upper,
               const std::optional<In>& kink, const std::optional<In>& pivot,
               const Indices& starts) {
  const std::size_t n = x.shape(0);
  require(gradient.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n,
          "gradient, x, lower and upper must have the same length");
  require(!kink || (pivot && kink->shape(0) == n && pivot->shape(0) == n),
          "kink and pivot must have the length of x");
  require_starts(starts, n);
  return Point{Index(n),
               Index(starts.shape(0)) - 1,
               starts.data(),
               const_cast<double*>(gradient.data()),
               const_cast<double*>(x.data()),
               lower.data(),
               upper.data(),
               kink ? kink->data() : nullptr,
               kink ? pivot->data() : nullptr};
}

BitGenerator* bit_generator_of(const std::optional<nb::capsule>& capsule) {
  if (!capsule) return nullptr;
  auto* generator =
      static_cast<BitGenerator*>(PyCapsule_GetPointer(capsule->ptr(), "BitGenerator"));
  if (!generator) throw nb::python_error();
  return generator;
}

Choice choice_of(int rule, double alpha, const std::optional<In>& lipschitz,
                 const std::optional<nb::capsule>& bit_generator, Index turn, Index n) {
  require(!lipschitz || Index(lipschitz->shape(0)) == n, "lipschitz must have the length of x");
  const Choice choice{&rule_of(rule), alpha, lipschitz ? lipschitz->data() : nullptr,
                      bit_generator_of(bit_generator), turn};
  require(!choice.rule->draws || choice.random, "this rule needs a random generator");
  require(!choice.rule->weighted || choice.lipschitz, "this rule needs lipschitz");
  require(turn >= 0, "turn must not be negative");
  return choice;
}

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

nb::tuple propose(int rule, const In& gradient, const In& x, const In& lower, const In& upper,
                  const std::optional<In>& kink, const std::optional<In>& pivot,
                  const Indices& starts, double alpha, const std::optional<In>& lipschitz,
                  const std::optional<nb::capsule>& bit_generator, Index turn) {
  const Point point = point_of(gradient, x, lower, upper, kink, pivot, starts);
  const Choice choice = choice_of(rule, alpha, lipschitz, bit_generator, turn, point.n);
  Move move;
  {
    nb::gil_scoped_release release;
    isa().propose(point, choice, move);
  }
  return nb::make_tuple(to_numpy(std::move(move.index)), to_numpy(std::move(move.delta)),
                        move.decrease, move.suspect);
}

nb::tuple greedy(const Matrix& hessian, const InOut& gradient, const InOut& x, const In& lower,
                 const In& upper, const std::optional<In>& kink, const std::optional<In>& pivot,
                 const Indices& starts, int rule, double alpha, const std::optional<In>& lipschitz,
                 const std::optional<nb::capsule>& bit_generator, int step,
                 double one_norm_constant, double threshold, Index iterations, Index max_iter,
                 double seconds, double value, Index patience, bool finish, bool record) {
  Point point = point_of(In(gradient), In(x), lower, upper, kink, pivot, starts);
  require(Index(hessian.shape(0)) == point.n && Index(hessian.shape(1)) == point.n,
          "hessian must be n x n");
  require(step >= 0 && step <= int(Step::exact), "unknown step");
  require(step != int(Step::lipschitz) || lipschitz, "this step needs lipschitz");
  Greedy task{};
  task.hessian = hessian.data();
  task.choice = choice_of(rule, alpha, lipschitz, bit_generator, iterations, point.n);
  task.step = Step(step);
  task.one_norm_constant = one_norm_constant;
  task.threshold = threshold;
  task.max_iter = max_iter;
  task.seconds = seconds;
  task.value = value;
  task.patience = patience;
  task.finish = finish;
  task.record = record;
  task.iterations = iterations;
  Stop stop;
  {
    nb::gil_scoped_release release;
    stop = isa().greedy(point, task);
  }
  std::vector<double> history;
  for (const Record& r : task.history)
    history.insert(history.end(),
                   {r.value, r.violation, double(r.moved), double(r.interior), r.time});
  return nb::make_tuple(int(stop), task.iterations, task.value, task.violation,
                        task.least_curvature, nb::make_tuple(task.curved[0], task.curved[1]),
                        to_numpy(std::move(history), {task.history.size(), 5}));
}

nb::tuple certify_(const In& gradient, const In& x, const In& lower, const In& upper,
                   const std::optional<In>& kink, const std::optional<In>& pivot,
                   const Indices& starts) {
  const Point point = point_of(gradient, x, lower, upper, kink, pivot, starts);
  Certificate certificate;
  {
    nb::gil_scoped_release release;
    certificate = certify(point);
  }
  return nb::make_tuple(certificate.violation, certificate.bound,
                        to_numpy(std::move(certificate.multiplier)));
}

int convex_along_(const Matrix& hessian, const std::optional<Indices>& index,
                  const Indices& starts) {
  const Index n = Index(hessian.shape(0));
  require(Index(hessian.shape(1)) == n, "hessian must be n x n");
  require_starts(starts, std::size_t(n));
  std::vector<Index> members(index ? index->shape(0) : n);
  for (std::size_t k = 0; k < members.size(); ++k) {
    members[k] = index ? (*index)(k) : Index(k);
    require(members[k] >= 0 && members[k] < n, "index out of range");
  }
  nb::gil_scoped_release release;
  return int(convex_along(hessian.data(), n, members, starts.data()));
}

void check_sums(std::size_t n, const In& lower, const In& upper, const Indices& starts,
                const In& totals) {
  require(lower.shape(0) == n && upper.shape(0) == n, "bounds must have the length of x");
  require_starts(starts, n);
  require(starts.shape(0) == totals.shape(0) + 1, "there must be one total per group");
}

Index first_crossed_(const In& lower, const In& upper) {
  require(lower.shape(0) == upper.shape(0), "bounds must have one length");
  return first_crossed(lower.data(), upper.data(), Index(lower.shape(0)));
}

nb::list spans(const In& lower, const In& upper, const Indices& starts) {
  const std::size_t groups = starts.shape(0) - 1;
  require(lower.shape(0) == upper.shape(0), "bounds must have one length");
  require(starts.shape(0) >= 1 && starts(0) == 0 && std::size_t(starts(groups)) <= lower.shape(0),
          "starts must go from 0 to n");
  nb::list result;
  for (std::size_t k = 0; k < groups; ++k) {
    require(starts(k) <= starts(k + 1), "starts must not fall");
    const Span span =
        span_of(lower.data() + starts(k), upper.data() + starts(k), starts(k + 1) - starts(k));
    result.append(nb::make_tuple(span.least, span.most, span.size));
  }
  return result;
}

nb::object project_(const In& y, const In& lower, const In& upper, const Indices& starts,
                    const In& totals) {
  check_sums(y.shape(0), lower, upper, starts, totals);
  std::vector<double> x(y.shape(0));
  {
    nb::gil_scoped_release release;
    project(y.data(), lower.data(), upper.data(), starts.data(), totals.data(),
            Index(totals.shape(0)), x.data());
  }
  return to_numpy(std::move(x));
}

nb::object fill_(const In& price, const In& curvature, const In& lower, const In& upper,
                 const Indices& starts, const In& totals) {
  const std::size_t n = price.shape(0);
  require(curvature.shape(0) == n, "curvature must have the length of price");
  check_sums(n, lower, upper, starts, totals);
  std::vector<double> x(n);
  fill(price.data(), curvature.data(), lower.data(), upper.data(), starts.data(), totals.data(),
       Index(totals.shape(0)), x.data());
  return to_numpy(std::move(x));
}

void settle_(const InOut& x, const In& lower, const In& upper, const Indices& starts,
             const In& totals, const std::optional<In>& pivot) {
  check_sums(x.shape(0), lower, upper, starts, totals);
  require(!pivot || pivot->shape(0) == x.shape(0), "pivot must have the length of x");
  settle(x.data(), lower.data(), upper.data(), starts.data(), totals.data(), Index(totals.shape(0)),
         pivot ? pivot->data() : nullptr);
}

double two_coordinate_constant(const Matrix& hessian) {
  require(hessian.shape(0) == hessian.shape(1), "hessian must be square");
  nb::gil_scoped_release release;
  return isa().two_coordinate_constant(hessian.data(), Index(hessian.shape(0)));
}

nb::tuple asymmetry(const Matrix& matrix) {
  require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
  Asymmetry found;
  {
    nb::gil_scoped_release release;
    found = isa().asymmetry(matrix.data(), Index(matrix.shape(0)));
  }
  return nb::make_tuple(found.difference, found.largest, found.i, found.j, found.least_pair);
}

nb::object times(const Matrix& matrix, const In& x) {
  require(matrix.shape(0) == matrix.shape(1) && matrix.shape(0) == x.shape(0),
          "matrix must be n x n and x of length n");
  std::vector<double> product(x.shape(0));
  {
    nb::gil_scoped_release release;
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

nb::tuple batch(const Matrix& hessian, const Matrix& linear, const In& start, const In& lower,
                const In& upper, const Indices& starts, const In& totals, double tol,
                Index max_iter, int threads) {
  const std::size_t n = start.shape(0), count = linear.shape(0);
  require(hessian.shape(0) == n && hessian.shape(1) == n && linear.shape(1) == n,
          "hessian must be n x n and linear count x n");
  check_sums(n, lower, upper, starts, totals);
  std::vector<double> x(count * n);
  std::vector<Index> iterations(count);
  {
    nb::gil_scoped_release release;
    solve_batch({hessian.data(), linear.data(), start.data(), totals.data(), Index(n),
                 Index(totals.shape(0)), Index(count), starts.data(), lower.data(), upper.data(),
                 tol, max_iter, threads, x.data(), iterations.data()});
  }
  return nb::make_tuple(to_numpy(std::move(x), {count, n}), to_numpy(std::move(iterations)));
}

nb::object certify_rows(const Matrix& gradient, const Matrix& x, const In& lower, const In& upper,
                        const Indices& starts) {
  const std::size_t count = x.shape(0), n = x.shape(1);
  require(gradient.shape(0) == count && gradient.shape(1) == n, "gradient must be count x n");
  require(lower.shape(0) == n && upper.shape(0) == n, "bounds must have length n");
  require_starts(starts, n);
  const std::size_t groups = starts.shape(0);
  std::vector<double> rows(2 * count);
  {
    nb::gil_scoped_release release;
    for (std::size_t k = 0; k < count; ++k) {
      const Certificate c = certify(
          {Index(n), Index(groups) - 1, starts.data(), const_cast<double*>(gradient.data()) + k * n,
           const_cast<double*>(x.data()) + k * n, lower.data(), upper.data(), nullptr, nullptr});
      rows[2 * k] = c.violation;
      rows[2 * k + 1] = c.bound;
    }
  }
  return to_numpy(std::move(rows), {count, 2});
}

template <class Function>
void take(const nb::dict& exported, const char* name, Function& function) {
  const nb::object capsule = exported[name];
  function = reinterpret_cast<Function>(
      PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr())));
  if (!function) throw nb::python_error();
}

void use_blas(const nb::dict& of_blas, const nb::dict& of_lapack) {
  take(of_lapack, "dpotrf", blas.dpotrf);
  take(of_lapack, "dpotrs", blas.dpotrs);
  take(of_blas, "dsymv", blas.dsymv);
}

}  // namespace

Blas pairstep::blas;

void register_machines(nb::module_& m);  // machines.cpp

NB_MODULE(_core, m) {
  m.doc() = "Native core of pairstep: functions over arrays, no state.";
  m.def("rules", &rules, "Every rule: its names, and what is known of it.");
  m.def("propose", &propose, "rule"_a, "gradient"_a, "x"_a, "lower"_a, "upper"_a, "kink"_a.none(),
        "pivot"_a.none(), "starts"_a, "alpha"_a, "lipschitz"_a.none(), "bit_generator"_a.none(),
        "turn"_a,
        "The move a rule chooses: (indices, delta, decrease, suspect), where suspect is the index "
        "of a "
        "coordinate that is outside its bounds or not finite, or -1.");
  m.def("greedy", &greedy, "hessian"_a, "gradient"_a, "x"_a, "lower"_a, "upper"_a, "kink"_a.none(),
        "pivot"_a.none(), "starts"_a, "rule"_a, "alpha"_a, "lipschitz"_a.none(),
        "bit_generator"_a.none(), "step"_a, "one_norm_constant"_a, "threshold"_a, "iterations"_a,
        "max_iter"_a, "seconds"_a, "value"_a, "patience"_a, "finish"_a, "record"_a,
        "Run the greedy gear for a slice of time; x and gradient are changed in place.\n\n"
        "Returns (stop, iterations, value, violation, least_curvature, curved, history).");
  m.def("certify", &certify_, "gradient"_a, "x"_a, "lower"_a, "upper"_a, "kink"_a.none(),
        "pivot"_a.none(), "starts"_a, "KKT violation, Frank-Wolfe gap, multiplier per group.");
  m.def("convex_along", &convex_along_, "hessian"_a, "index"_a.none(), "starts"_a,
        "Is a quadratic convex along all moves of these accounts (None: of all) within their "
        "groups? 0 no, 1 but "
        "for rounding, 2 yes.");
  m.def("first_crossed", &first_crossed_, "lower"_a, "upper"_a,
        "The first account whose bounds leave no number between them, or -1.");
  m.def("spans", &spans, "lower"_a, "upper"_a, "starts"_a,
        "Per group: the sums of the lower and of the upper bounds, and the size of their terms.");
  m.def("project", &project_, "y"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "The feasible point nearest to y.");
  m.def("fill", &fill_, "price"_a, "curvature"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "A feasible point with few accounts between their bounds, the cheapest filled first.");
  m.def("settle", &settle_, "x"_a, "lower"_a, "upper"_a, "starts"_a, "totals"_a,
        "pivot"_a.none() = nb::none(),
        "Absorb the rounding of each sum into a free coordinate, in place.");
  m.def("two_coordinate_constant", &two_coordinate_constant, "hessian"_a,
        "max_ij (H_ii + H_jj - 2 H_ij) / 2.");
  m.def("asymmetry", &asymmetry, "matrix"_a,
        "(max |M_ij - M_ji|, max |M_ij| or NaN where an entry is not finite, i, j, and "
        "min M_ii + M_jj - 2 M_ij).");
  m.def("times", &times, "matrix"_a, "x"_a, "Symmetric matrix times vector, by rows.");
  m.def("bare_pass", &bare_pass, "arrays"_a, "Read every element once: the floor of a rule.");
  m.def("bare_updates", &bare_updates, "hessian"_a, "gradient"_a, "indices"_a,
        "Gradient updates by pairs of rows: the floor of the greedy gear.");
  m.def("batch", &batch, "hessian"_a, "linear"_a, "start"_a, "lower"_a, "upper"_a, "starts"_a,
        "totals"_a, "tol"_a, "max_iter"_a, "threads"_a,
        "Solve many quadratics with one Hessian: (x, iterations), a row per problem.");
  m.def("certify_rows", &certify_rows, "gradient"_a, "x"_a, "lower"_a, "upper"_a, "starts"_a,
        "KKT violation and Frank-Wolfe gap of each row.");
  m.def("use_blas", &use_blas, "blas"_a, "lapack"_a,
        "Take the routines from the exported pointers of SciPy's cython_blas and cython_lapack.");
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
}
