// The part of the Python module that solves: the greedy gear, the block gear over oracles, batches.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <utility>

#include "../engine/batch.hpp"
#include "../engine/block_gear.hpp"
#include "../isa/dispatch.hpp"
#include "../oracles/gram.hpp"
#include "../oracles/matrix.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

// A run of the greedy gear, with the arrays it works on.
class GreedySolve {
 public:
  GreedySolve(Matrix hessian, const PointArrays& point, In gradient, double value,
              ChoiceArrays choice, Step step, double one_norm_constant, Index patience, bool finish,
              bool record)
      : hessian_(hessian),
        point_(point),
        choice_(choice),
        gradient_(point.n()) {  // a copy, for it is to start on a cache line
    const Index n = point.n();
    require(Index(hessian.shape(0)) == n && Index(hessian.shape(1)) == n, "hessian must be n x n");
    require(step != Step::lipschitz || choice.lipschitz, "this step needs lipschitz");
    gear_ = isa().greedy(
        {hessian.data(), choice.of(n, 0), step, one_norm_constant, patience, finish, record}, n);
    gear_->begin(at(gradient), value);
  }

  void renew(const In& gradient, double value) { gear_->renew(at(gradient), value); }

  Stop run(double threshold, Index max_iter, double seconds) {
    return run_native(seconds, {}, [&](Pulse& pulse, WithoutGil&) {
      return gear_->run(threshold, max_iter, pulse);
    });
  }

  GreedyRun& gear() { return *gear_; }

  nb::object take_history() {
    std::vector<double> rows;
    for (const Record& r : gear_->history)
      rows.insert(rows.end(), {r.value, r.violation, double(r.moved), double(r.interior), r.time});
    const std::size_t count = gear_->history.size();
    gear_->history.clear();
    return to_numpy(std::move(rows), {count, 5});
  }

 private:
  Point at(const In& gradient) {
    require(Index(gradient.shape(0)) == point_.n(), "gradient must have the length of x");
    std::copy_n(gradient.data(), point_.n(), gradient_.data());
    return point_.with(gradient_.data());
  }

  Matrix hessian_;
  PointArrays point_;
  ChoiceArrays choice_;
  Aligned gradient_;
  std::unique_ptr<GreedyRun> gear_;
};

// An oracle over arrays, which it keeps alive.
struct NativeOracle {
  std::unique_ptr<LocalOracle> oracle;
  nb::object arrays;
  int threads;
};

template <class Make>
NativeOracle native_oracle(nb::object arrays, int threads, Make make) {
  std::unique_ptr<LocalOracle> oracle =
      run_native([&](Pulse& pulse, WithoutGil&) -> std::unique_ptr<LocalOracle> {
        Team team(threads, pulse);
        return make(team);
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
          "weight must have length m, and A be dense");
  return native_oracle(nb::make_tuple(A, weight, b, ridge, c, point), threads, [&](Team& team) {
    return std::make_unique<GramOracle>(data, weight ? weight->data() : nullptr, b.data(),
                                        ridge.data(), c.data(), point.with(nullptr), team);
  });
}

NativeOracle matrix_oracle(const nb::object& Q, const In& linear, const PointArrays& point,
                           int threads) {
  const DataMatrix data = data_of(Q);
  require(
      data.rows == data.features && data.rows == point.n() && Index(linear.shape(0)) == data.rows,
      "Q must be n x n, linear and x of length n");
  return native_oracle(nb::make_tuple(Q, linear, point), threads, [&](Team& team) {
    return std::make_unique<MatrixOracle>(data, nullptr, linear.data(), point.with(nullptr), true,
                                          team);
  });
}

// A Python object that answers the four questions; see pairstep.solve.oracle.
class PythonOracle final : public Oracle {
 public:
  PythonOracle(nb::object object, Index n) : object_(std::move(object)), n_(n) {}

  void lend(WithoutGil& without) { without_ = &without; }

  void survey(Index count, bool with_free, Survey& found) override {
    without_->with_gil([&] {
      const auto [accounts, gradient, scale] = ask<std::tuple<Indices, In, double>>(
          "survey", "survey must give (accounts, their gradients, scale)", count, with_free);
      require(accounts.shape(0) == gradient.shape(0),
              "survey must give a gradient for each account");
      found.accounts.assign(accounts.data(), accounts.data() + accounts.shape(0));
      found.gradient.assign(gradient.data(), gradient.data() + gradient.shape(0));
      found.scale = scale;
      for (const Index i : found.accounts)
        require(i >= 0 && i < n_, "survey names an account out of range");
      for (const double g : found.gradient)
        require(std::isfinite(g), "survey gives a gradient that is not finite");
    });
  }
  void block(const std::vector<Index>& members, bool, double* hessian) override {
    without_->with_gil([&] {
      const Matrix block =
          ask<Matrix>("block", "block must give a matrix", to_numpy(copy(members)));
      require(block.shape(0) == members.size() && block.shape(1) == members.size(),
              "block must be square, a row per member");
      std::copy_n(block.data(), members.size() * members.size(), hessian);
    });
  }
  void advance(const std::vector<Index>& moved, const std::vector<double>& delta) override {
    without_->with_gil(
        [&] { object_.attr("advance")(to_numpy(copy(moved)), to_numpy(copy(delta))); });
  }
  void verify() override {
    without_->with_gil([&] { object_.attr("verify")(); });
  }

 private:
  // What the object answers; where that is something else, say what it must be.
  template <class Answer, class... Arguments>
  Answer ask(const char* question, const char* must_be, const Arguments&... arguments) {
    Answer answer;
    if (!nb::try_cast(object_.attr(question)(arguments...), answer)) throw nb::type_error(must_be);
    return answer;
  }
  template <class T>
  static std::vector<T> copy(const std::vector<T>& values) {
    return values;
  }

  nb::object object_;
  Index n_;
  WithoutGil* without_ = nullptr;
};

// A run of the block gear, with the oracle it asks.
class BlockSolve {
 public:
  BlockSolve(const nb::object& oracle, const PointArrays& point, In totals, int rule, bool eager)
      : kept_(oracle), point_(point), totals_(totals) {
    require(totals.shape(0) + 1 == point.starts.shape(0), "there must be one total per group");
    if (nb::isinstance<NativeOracle>(oracle)) native_ = nb::cast<NativeOracle*>(oracle);
    else python_ = std::make_unique<PythonOracle>(oracle, point.n());
    Oracle& asked = native_ ? static_cast<Oracle&>(*native_->oracle) : *python_;
    gear_ = std::make_unique<BlockGear>(
        asked, point.with(nullptr),
        BlockTask{.totals = totals.data(), .rule = &rule_of(rule), .eager = eager});
  }

  BlockStop run(double tol, Index max_iter, Index rounds, double seconds) {
    BlockStop stop{};
    with_threads(seconds, [&](Pulse& pulse) { stop = gear_->run(tol, max_iter, rounds, pulse); });
    return stop;
  }
  void conclude() {
    with_threads(INFINITY, [&](Pulse&) { gear_->conclude(); });
  }
  BlockGear& gear() { return *gear_; }

 private:
  template <class Work>
  void with_threads(double seconds, Work work) {
    run_native(seconds, {}, [&](Pulse& pulse, WithoutGil& without) {
      Team team(native_ ? native_->threads : 1, pulse);
      if (native_) native_->oracle->lend(team);
      else python_->lend(without);
      work(pulse);
    });
  }

  nb::object kept_;
  PointArrays point_;
  In totals_;
  NativeOracle* native_ = nullptr;
  std::unique_ptr<PythonOracle> python_;
  std::unique_ptr<BlockGear> gear_;
};

nb::tuple batch(const Matrix& hessian, const Matrix& linear, const In& start, const In& lower,
                const In& upper, const Indices& starts, const In& totals, double tol,
                Index max_iter, double seconds, int threads) {
  const std::size_t n = start.shape(0), count = linear.shape(0);
  require(hessian.shape(0) == n && hessian.shape(1) == n && linear.shape(1) == n,
          "hessian must be n x n and linear count x n");
  require_sums(n, lower, upper, starts, totals);
  std::vector<double> x(count * n);
  std::vector<Index> iterations(count);
  std::vector<char> solved(count);
  run_native(seconds, {}, [&](Pulse& pulse, WithoutGil&) {
    solve_batch({hessian.data(), linear.data(), start.data(), totals.data(), Index(n),
                 Index(totals.shape(0)), Index(count), starts.data(), lower.data(), upper.data(),
                 tol, max_iter, threads, x.data(), iterations.data(), solved.data()},
                pulse);
  });
  return nb::make_tuple(to_numpy(std::move(x), {count, n}), to_numpy(std::move(iterations)),
                        to_numpy(std::vector<std::uint8_t>(solved.begin(), solved.end())));
}

}  // namespace

void register_solvers(nb::module_& m) {
  nb::class_<GreedySolve>(m, "GreedySolve",
                          "A run of the greedy gear; x of its point changes in place.")
      .def(nb::init<Matrix, const PointArrays&, In, double, ChoiceArrays, Step, double, Index, bool,
                    bool>(),
           "hessian"_a, "point"_a, "gradient"_a, "value"_a, "choice"_a, nb::kw_only(), "step"_a,
           "one_norm_constant"_a, "patience"_a, "finish"_a, "record"_a)
      .def("renew", &GreedySolve::renew, "gradient"_a, "value"_a,
           "Go on with a gradient that was computed anew.")
      .def("run", &GreedySolve::run, "threshold"_a, "max_iter"_a, "seconds"_a,
           "Until the violation is at most the threshold.")
      .def("take_history", &GreedySolve::take_history, "The rows recorded since the last call.")
      .def_prop_ro("iterations", [](GreedySolve& s) { return s.gear().iterations; })
      .def_prop_ro("value", [](GreedySolve& s) { return s.gear().value; })
      .def_prop_ro("violation", [](GreedySolve& s) { return s.gear().violation; })
      .def_prop_ro("least_curvature", [](GreedySolve& s) { return s.gear().least_curvature; })
      .def_prop_ro("curved", [](GreedySolve& s) {
        return nb::make_tuple(s.gear().curved[0], s.gear().curved[1]);
      });

  nb::class_<NativeOracle>(m, "Oracle", "What the block gear asks, answered by native code.");
  m.def(
      "gram_oracle", &gram_oracle, "A"_a, "b"_a, "ridge"_a, "c"_a, "point"_a, "threads"_a,
      "weight"_a.none() = nb::none(),
      "weight'(Ax - b)^2/2 + ridge'x^2/2 + c'x; a sparse A is given by the rows of its transpose, "
      "and has no weights.");
  m.def("matrix_oracle", &matrix_oracle, "Q"_a, "linear"_a, "point"_a, "threads"_a,
        "x'Qx/2 + linear'x, Q dense or by sparse rows.");
  nb::class_<BlockSolve>(m, "BlockSolve",
                         "A run of the block gear; x of its point changes in place.")
      .def(nb::init<const nb::object&, const PointArrays&, In, int, bool>(), "oracle"_a, "point"_a,
           "totals"_a, "rule"_a, "eager"_a)
      .def("run", &BlockSolve::run, "tol"_a, "max_iter"_a, "rounds"_a, "seconds"_a,
           "Until the violation, verified, is within the tolerance.")
      .def("conclude", &BlockSolve::conclude, "Make the sums exact and verify.")
      .def_prop_ro("iterations", [](BlockSolve& s) { return s.gear().iterations; })
      .def_prop_ro("moved", [](BlockSolve& s) { return s.gear().moved; })
      .def_prop_ro("violation", [](BlockSolve& s) { return s.gear().violation; })
      .def_prop_ro("scale", [](BlockSolve& s) { return s.gear().scale; })
      .def_prop_ro("least_curvature", [](BlockSolve& s) { return s.gear().least_curvature; });

  m.def("batch", &batch, "hessian"_a, "linear"_a, "start"_a, "lower"_a, "upper"_a, "starts"_a,
        "totals"_a, nb::kw_only(), "tol"_a, "max_iter"_a, "seconds"_a, "threads"_a,
        "Solve many quadratics with one Hessian: (x, iterations, solved), a row per problem.");
}
