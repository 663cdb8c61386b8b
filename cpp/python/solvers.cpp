// Bindings for the solvers: coordinate descent on an explicit Hessian, the block solver over
// oracles, batches, and small dense problems.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "../engine/batch.hpp"
#include "../engine/block_solver.hpp"
#include "../engine/small.hpp"
#include "../engine/start.hpp"
#include "../isa/dispatch.hpp"
#include "../oracles/gram.hpp"
#include "../oracles/matrix.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "greedy_solve.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

auto ray_of(const Step& step) {
  return std::make_tuple(to_numpy(std::vector<Index>(step.index)),
                         to_numpy(std::vector<double>(step.delta)));
}

// A native oracle and the Python arrays it reads, which this struct keeps alive.
struct NativeOracle {
  std::unique_ptr<LocalOracle> oracle;
  nb::object arrays;
  int threads;
};

template <class Make>
NativeOracle native_oracle(nb::object arrays, int threads, Make make) {
  std::unique_ptr<LocalOracle> oracle =
      run_native([&](InterruptCheck& interrupt, WithoutGil&) -> std::unique_ptr<LocalOracle> {
        ThreadPool pool(threads, interrupt);
        return make(pool);
      });
  return {std::move(oracle), std::move(arrays), threads};
}

NativeOracle gram_oracle(const nb::object& A, const In& b, const In& ridge, const In& c,
                         const PointArrays& point, int threads, const std::optional<In>& weight) {
  const DataMatrix data = data_of(A);
  const Index n = data.starts ? data.rows : data.features,
              m = data.starts ? data.features : data.rows;
  require(!data.dense32, "A must be float64");
  require(n == point.n() && Index(ridge.shape(0)) == n && Index(c.shape(0)) == n &&
              Index(b.shape(0)) == m,
          "A must be m x n, b of length m, ridge, c and x of length n");
  require(!weight || (!data.starts && Index(weight->shape(0)) == m),
          "weight must have length m, and only a dense A can have weights");
  return native_oracle(
      nb::make_tuple(A, weight, b, ridge, c, point), threads, [&](ThreadPool& pool) {
        return std::make_unique<GramOracle>(data, weight ? weight->data() : nullptr, b.data(),
                                            ridge.data(), c.data(), point.with(nullptr), pool);
      });
}

NativeOracle matrix_oracle(const nb::object& Q, const In& linear, const PointArrays& point,
                           int threads) {
  const DataMatrix data = data_of(Q);
  require(
      data.rows == data.features && data.rows == point.n() && Index(linear.shape(0)) == data.rows,
      "Q must be n x n, linear and x of length n");
  return native_oracle(nb::make_tuple(Q, linear, point), threads, [&](ThreadPool& pool) {
    return std::make_unique<MatrixOracle>(data, nullptr, linear.data(), point.with(nullptr), true,
                                          pool);
  });
}

// An oracle implemented by a Python object; see pairstep.solve.oracle for the protocol.
class PythonOracle final : public Oracle {
 public:
  PythonOracle(nb::object object, Index n) : object_(std::move(object)), n_(n) {}

  // Must be called before each run: the oracle's methods take the GIL through this object.
  void set_gil(WithoutGil& without) { without_ = &without; }

  void select_candidates(Index count, bool with_free, Candidates& found) override {
    without_->with_gil([&] {
      const nb::object answer = object_.attr("select_candidates")(count, with_free);
      // The fourth entry, the noise of the gradient, is optional.
      std::tuple<Indices, In, double> without_noise;
      std::tuple<Indices, In, double, double> with_noise;
      if (nb::try_cast(answer, without_noise))
        with_noise = std::tuple_cat(without_noise, std::tuple(0.0));
      else if (!nb::try_cast(answer, with_noise))
        throw nb::type_error("select_candidates must return (indices, their gradients, scale)");
      const auto& [coordinates, gradient, scale, noise] = with_noise;
      require(coordinates.shape(0) == gradient.shape(0),
              "select_candidates must return one gradient per index");
      found.coordinates.assign(coordinates.data(), coordinates.data() + coordinates.shape(0));
      found.gradient.assign(gradient.data(), gradient.data() + gradient.shape(0));
      found.scale = scale;
      found.noise = noise;
      for (const Index i : found.coordinates)
        require(i >= 0 && i < n_, "select_candidates returned an index out of range");
      for (const double g : found.gradient)
        require(std::isfinite(g), "select_candidates returned a gradient that is not finite");
    });
  }
  void block(const std::vector<Index>& members, bool, double* hessian) override {
    const std::size_t q = members.size();
    without_->with_gil([&] {
      if (nb::hasattr(object_, "fill_block")) {
        const nb::ndarray<nb::numpy, double> out(hessian, {q, q}, nb::none());
        object_.attr("fill_block")(to_numpy(copy(members)), out);
        return;
      }
      Matrix block;
      if (!nb::try_cast(object_.attr("block")(to_numpy(copy(members))), block))
        throw nb::type_error("block must return a float64 matrix");
      require(block.shape(0) == q && block.shape(1) == q,
              "block must return a square matrix with one row per index");
      std::copy_n(block.data(), q * q, hessian);
    });
  }
  void update_gradient(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    without_->with_gil(
        [&] { object_.attr("update_gradient")(to_numpy(copy(moved)), to_numpy(copy(delta))); });
  }
  void recompute_gradient() override {
    without_->with_gil([&] { object_.attr("recompute_gradient")(); });
  }
  Index shrink(const std::vector<MultiplierInterval>& intervals) override {
    Index left = 0;
    without_->with_gil([&] {
      if (!nb::hasattr(object_, "shrink")) return;
      std::vector<double> derivatives;
      for (const MultiplierInterval& interval : intervals) {
        derivatives.push_back(interval.max_left);
        derivatives.push_back(interval.min_right);
      }
      left = nb::cast<Index>(
          object_.attr("shrink")(to_numpy(std::move(derivatives), {intervals.size(), 2})));
    });
    return left;
  }
  void unshrink() override {
    without_->with_gil([&] { object_.attr("unshrink")(); });
  }

 private:
  template <class T>
  static std::vector<T> copy(const std::vector<T>& values) {
    return values;
  }

  nb::object object_;
  Index n_;
  WithoutGil* without_ = nullptr;
};

// A run of the block solver with its oracle.
class BlockSolve {
 public:
  BlockSolve(const nb::object& oracle, const PointArrays& point, In totals, bool eager,
             std::size_t block_bytes)
      : kept_(oracle), point_(point), totals_(totals) {
    require(totals.shape(0) == (point.low ? 1 : point.starts.shape(0) - 1),
            "totals must have one entry per group, or one entry if the groups are nested");
    if (nb::isinstance<NativeOracle>(oracle)) native_ = nb::cast<NativeOracle*>(oracle);
    else python_ = std::make_unique<PythonOracle>(oracle, point.n());
    Oracle& used = native_ ? static_cast<Oracle&>(*native_->oracle) : *python_;
    solver_ = std::make_unique<BlockSolver>(
        used, point.with(nullptr),
        BlockTask{.totals = totals.data(), .eager = eager, .block_bytes = block_bytes});
  }

  StopReason run(double tol, Index max_iter, Index rounds, double seconds) {
    StopReason stop{};
    with_threads(seconds,
                 [&](ThreadPool& pool) { stop = solver_->run(tol, max_iter, rounds, pool); });
    return stop;
  }
  void conclude() {
    with_threads(INFINITY, [&](ThreadPool&) { solver_->conclude(); });
  }
  BlockSolver& solver() { return *solver_; }

 private:
  template <class Work>
  void with_threads(double seconds, Work work) {
    run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil& without) {
      ThreadPool pool(native_ ? native_->threads : 1, interrupt);
      if (native_) native_->oracle->lend(pool);
      else python_->set_gil(without);
      work(pool);
    });
  }

  nb::object kept_;
  PointArrays point_;
  In totals_;
  NativeOracle* native_ = nullptr;
  std::unique_ptr<PythonOracle> python_;
  std::unique_ptr<BlockSolver> solver_;
};

auto batch(const Matrix& hessian, const Matrix& linear, const In& start, const In& lower,
           const In& upper, const Indices& starts, const In& totals, const std::optional<In>& low,
           const std::optional<In>& high, double tol, Index max_iter, double seconds, int threads) {
  const std::size_t n = start.shape(0), count = linear.shape(0);
  require(hessian.shape(0) == n && hessian.shape(1) == n && linear.shape(1) == n,
          "hessian must be n x n and linear count x n");
  const Sums sums = require_sums(n, lower, upper, starts, totals, low, high);
  std::vector<double> x(count * n);
  std::vector<Index> iterations(count);
  std::vector<char> solved(count);
  run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil&) {
    solve_batch({hessian.data(), linear.data(), start.data(), totals.data(), Index(n),
                 sums.n_groups, Index(count), starts.data(), lower.data(), upper.data(), sums.low,
                 sums.high, tol, max_iter, threads, x.data(), iterations.data(), solved.data()},
                interrupt);
  });
  return std::make_tuple(to_numpy(std::move(x), {count, n}), to_numpy(std::move(iterations)),
                         to_numpy(std::vector<std::uint8_t>(solved.begin(), solved.end())));
}

auto few_columns(const Matrix& A, const Matrix& B, const Matrix& hessian, const In& ridge,
                 const In& start, const In& lower, const In& upper, double total, double tol,
                 Index max_iter, double most_squares, double seconds, int threads) {
  const std::size_t m = A.shape(0), n = A.shape(1), count = B.shape(1);
  require(Index(n) <= MAX_FEW_COLUMNS && B.shape(0) == m,
          "A must have few columns, and the rows of B");
  require(hessian.shape(0) == n && hessian.shape(1) == n, "hessian must be n x n");
  for (const In* each : {&ridge, &start, &lower, &upper})
    require(each->shape(0) == n,
            "ridge, start, lower and upper must have one entry per column of A");
  std::vector<double> x(n * count), value(count), violation(count), bound(count);
  std::vector<Index> iterations(count);
  std::vector<char> state(count);
  std::vector<std::uint8_t> optimal(count);
  run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil&) {
    solve_few_columns({.A = A.data(),
                       .B = B.data(),
                       .m = Index(m),
                       .n = Index(n),
                       .count = Index(count),
                       .hessian = hessian.data(),
                       .ridge = ridge.data(),
                       .start = start.data(),
                       .lower = lower.data(),
                       .upper = upper.data(),
                       .total = total,
                       .tol = tol,
                       .max_iter = max_iter,
                       .most_squares = most_squares,
                       .threads = threads,
                       .x = x.data(),
                       .value = value.data(),
                       .violation = violation.data(),
                       .bound = bound.data(),
                       .iterations = iterations.data(),
                       .state = state.data(),
                       .optimal = optimal.data()},
                      interrupt);
  });
  return std::make_tuple(to_numpy(std::move(x), {n, count}), to_numpy(std::move(value)),
                         to_numpy(std::move(iterations)),
                         to_numpy(std::vector<std::uint8_t>(state.begin(), state.end())),
                         to_numpy(std::move(violation)), to_numpy(std::move(bound)),
                         to_numpy(std::move(optimal)));
}

std::optional<NumpyArray<double>> small_start(const Matrix& hessian, const In& linear,
                                              const In& lower, const In& upper, double total,
                                              double tol) {
  const std::size_t n = linear.shape(0);
  require(hessian.shape(0) == n && hessian.shape(1) == n, "hessian must be n x n");
  require(n > 0 && lower.shape(0) == n && upper.shape(0) == n,
          "lower and upper must have the length of linear");
  std::vector<double> x(n);
  const Small problem{hessian.data(), linear.data(), lower.data(), upper.data(),
                      Index(n),       total,         tol};
  bool found = false;
  {
    const WithoutGil without;
    const Index starts[] = {0, Index(n)};
    const Point point{Index(n),     1,       starts, nullptr, nullptr, lower.data(),
                      upper.data(), nullptr, nullptr};
    found = start(problem, shared_costs(point, problem.linear)[0], x.data());
  }
  if (!found) return {};
  return to_numpy(std::move(x));
}

// Read a Python float or int. Return false if it is anything else or too large.
bool take_number(nb::handle given, double& number) {
  if (!PyFloat_Check(given.ptr()) && !PyLong_CheckExact(given.ptr())) return false;
  number = PyFloat_AsDouble(given.ptr());
  if (!PyErr_Occurred()) return true;
  PyErr_Clear();  // an integer too large for a double
  return false;
}

// Read n numbers from an array of length n or from one number that stands for all of them. Return
// false if it is anything else.
bool take_numbers(nb::handle given, std::size_t n, std::vector<double>& numbers) {
  In array;
  if (double number; take_number(given, number)) numbers.assign(n, number);
  else if (nb::try_cast(given, array, false) && array.shape(0) == n)
    numbers.assign(array.data(), array.data() + n);
  else return false;
  return true;
}

// Return the entries of a square float64 matrix, stored by rows or by columns, or null if it is
// anything else. For a symmetric matrix the order is the same; `solve_small` checks the symmetry.
const double* take_symmetric(nb::handle given, std::size_t& n) {
  const auto take = [&](auto array) -> const double* {
    if (!nb::try_cast(given, array, false) || array.shape(0) != array.shape(1)) return nullptr;
    n = array.shape(0);
    return array.data();  // `given` keeps the memory alive
  };
  const double* rows = take(Matrix());
  return rows ? rows : take(MatrixByColumns());
}

nb::handle numpy_empty;  // numpy.empty, stored because looking it up takes longer than calling it

// Copy numbers into a new NumPy array. For a few numbers, this is faster than `to_numpy`, which has
// to create an object that owns the memory.
nb::object copied(const std::vector<double>& values) {
  nb::object array = numpy_empty(values.size());
  Py_buffer memory;
  if (PyObject_GetBuffer(array.ptr(), &memory, PyBUF_WRITABLE) != 0) nb::raise_python_error();
  std::copy(values.begin(), values.end(), static_cast<double*>(memory.buf));
  PyBuffer_Release(&memory);
  return array;
}

nb::object small(nb::handle Q, nb::handle c, nb::handle total, nb::handle lower, nb::handle upper,
                 nb::handle tol) {
  std::vector<double> linear, low, high;
  std::size_t n = 0;
  const double* const hessian = take_symmetric(Q, n);
  if (!hessian || Index(n) > MAX_SMALL_VARIABLES) return nb::none();
  Small problem{hessian, nullptr, nullptr, nullptr, Index(n), 0.0, 0.0};
  if (!take_numbers(c, n, linear) || !take_numbers(lower, n, low) ||
      !take_numbers(upper, n, high) || !take_number(total, problem.total) ||
      !take_number(tol, problem.tol))
    return nb::none();
  problem.linear = linear.data();
  problem.lower = low.data();
  problem.upper = high.data();
  std::optional<SmallAnswer> answer;
  {
    const WithoutGil without;
    answer = solve_small(problem);
  }
  if (!answer) return nb::bool_(false);
  const Certificate& certificate = answer->certificate;
  return nb::make_tuple(copied(answer->x), copied(answer->gradient), answer->value,
                        answer->iterations, certificate.violation, answer->tolerance,
                        certificate.bound, certificate.multiplier[0]);
}

}  // namespace

void register_solvers(nb::module_& m) {
  numpy_empty = nb::object(nb::module_::import_("numpy").attr("empty")).release();
  nb::class_<GreedySolve>(
      m, "GreedySolve", "A run of the coordinate-descent solver; x of its point changes in place.")
      .def(
          "__init__",
          [](GreedySolve* self, const Matrix& hessian, const PointArrays& point, const In& gradient,
             double value, bool record) {
            new (self) GreedySolve(hessian, point, gradient, value, [&](Index n) {
              return isa().greedy({.hessian = hessian.data(), .record = record}, n);
            });
          },
          "hessian"_a, "point"_a, "gradient"_a, "value"_a, nb::kw_only(), "record"_a)
      .def("renew", &GreedySolve::renew, "gradient"_a, "value"_a,
           "Continue with a recomputed gradient and value.")
      .def(
          "run", &GreedySolve::run, "threshold"_a, "max_iter"_a, "seconds"_a,
          "Iterate until the violation is at most `threshold`, `iterations` reaches `max_iter`, or "
          "`seconds` have passed.")
      .def("take_history", &GreedySolve::take_history,
           "Return the rows (value, violation, moved, interior, seconds) recorded since the last "
           "call.")
      .def_prop_ro("iterations", [](GreedySolve& s) { return s.solver().iterations; })
      .def_prop_ro("value", [](GreedySolve& s) { return s.solver().value; })
      .def_prop_ro("violation", [](GreedySolve& s) { return s.solver().violation; })
      .def_prop_ro("least_curvature", [](GreedySolve& s) { return s.solver().least_curvature; })
      .def_prop_ro("ray", [](GreedySolve& s) { return ray_of(s.solver().ray); })
      .def_prop_ro("curved", [](GreedySolve& s) {
        return std::make_tuple(s.solver().curved[0], s.solver().curved[1]);
      });

  nb::class_<NativeOracle>(m, "Oracle", "A native oracle for the block solver.");
  m.def("gram_oracle", &gram_oracle, "A"_a, "b"_a, "ridge"_a, "c"_a, "point"_a, "threads"_a,
        "weight"_a.none() = nb::none(),
        "Return the oracle of weight'(Ax - b)^2/2 + ridge'x^2/2 + c'x. A sparse A is given by the "
        "rows of its transpose and cannot have weights.");
  m.def("matrix_oracle", &matrix_oracle, "Q"_a, "linear"_a, "point"_a, "threads"_a,
        "Return the oracle of x'Qx/2 + linear'x, with Q dense or sparse by rows.");
  nb::class_<BlockSolve>(m, "BlockSolve",
                         "A run of the block solver; x of its point changes in place.")
      .def(nb::init<const nb::object&, const PointArrays&, In, bool, std::size_t>(), "oracle"_a,
           "point"_a, "totals"_a, "eager"_a, "block_bytes"_a = BlockTask{}.block_bytes)
      .def("run", &BlockSolve::run, "tol"_a, "max_iter"_a, "rounds"_a, "seconds"_a,
           "Iterate until the violation of a recomputed gradient is within the tolerance or a "
           "limit is reached.")
      .def("conclude", &BlockSolve::conclude,
           "Restore the sums exactly and recompute the gradient.")
      .def_prop_ro("iterations", [](BlockSolve& s) { return s.solver().iterations; })
      .def_prop_ro("moved", [](BlockSolve& s) { return s.solver().moved; })
      .def_prop_ro("violation", [](BlockSolve& s) { return s.solver().violation; })
      .def_prop_ro("scale", [](BlockSolve& s) { return s.solver().scale; })
      .def_prop_ro("ray", [](BlockSolve& s) { return ray_of(s.solver().ray); })
      .def_prop_ro("least_curvature", [](BlockSolve& s) { return s.solver().least_curvature; });

  m.def("batch", &batch, "hessian"_a, "linear"_a, "start"_a, "lower"_a, "upper"_a, "starts"_a,
        "totals"_a, "low"_a.none() = nb::none(), "high"_a.none() = nb::none(), nb::kw_only(),
        "tol"_a, "max_iter"_a, "seconds"_a, "threads"_a,
        "Solve many quadratics with one Hessian. Return (x, iterations, solved), one row per "
        "problem.");
  m.def(
      "few_columns", &few_columns, "A"_a, "B"_a, "hessian"_a, "ridge"_a, "start"_a, "lower"_a,
      "upper"_a, nb::kw_only(), "total"_a, "tol"_a, "max_iter"_a, "most_squares"_a, "seconds"_a,
      "threads"_a,
      "Solve a least-squares problem for each column of B; A has at most MAX_FEW_COLUMNS columns. "
      "Return (x, value, iterations, state, violation, bound, optimal), one column or entry per "
      "problem.");
  m.attr("MAX_FEW_COLUMNS") = MAX_FEW_COLUMNS;
  m.attr("UNSOLVED") = int(FewColumns::unsolved);
  m.attr("INVALID") = int(FewColumns::invalid);
  m.attr("MAX_SMALL_VARIABLES") = MAX_SMALL_VARIABLES;
  m.def("small_start", &small_start, "hessian"_a, "linear"_a, "lower"_a, "upper"_a, "total"_a,
        "tol"_a,
        "Return the point from which `small` starts, or None if the quadratic is not convex along "
        "steps that keep the sum.");
  m.def("small", &small,
        nb::sig("def small(Q: object, c: object, total: object, lower: object, upper: object, "
                "tol: object) -> tuple[numpy.ndarray[dtype=float64], numpy.ndarray[dtype=float64], "
                "float, int, float, float, float, float] | typing.Literal[False] | None"),
        "Q"_a.none(), "c"_a, "total"_a.none(), "lower"_a.none(), "upper"_a, "tol"_a.none(),
        "Solve a small dense quadratic in one call. Return (x, gradient, value, iterations, "
        "violation, tolerance, bound, multiplier), False if the general solver has to decide, or "
        "None if the arguments have another form.");
}
