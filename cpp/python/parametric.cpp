// Bindings for quadratic programs with rows, followed along a parameter (engine/parametric.hpp).
#include <nanobind/stl/tuple.h>

#include "../engine/parametric.hpp"

#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

// Keeps the arrays that the solver refers to.
class Problem {
 public:
  Problem(std::optional<Matrix> hessian, std::optional<Matrix> factors, std::optional<In> diagonal,
          In linear, In lower, In upper, std::optional<In> l1, std::optional<In> center,
          Matrix matrix, In low, In high)
      : hessian_(std::move(hessian)),
        factors_(std::move(factors)),
        diagonal_(std::move(diagonal)),
        center_(std::move(center)),
        matrix_(std::move(matrix)),
        linear_(std::move(linear)),
        low_(std::move(low)),
        high_(std::move(high)),
        n_(linear_.shape(0)) {
    const std::size_t n = n_, rows = low_.shape(0);
    require(hessian_.has_value() != factors_.has_value(),
            "either hessian or factors must be given");
    require(!hessian_ || (hessian_->shape(0) == n && hessian_->shape(1) == n),
            "hessian must be n x n");
    require(!factors_ || (factors_->shape(1) == n && diagonal_ && diagonal_->shape(0) == n),
            "factors must be m x n, and diagonal have n entries");
    require(lower.shape(0) == n && upper.shape(0) == n, "lower and upper must have n entries");
    require(matrix_.shape(0) == rows && matrix_.shape(1) == n && high_.shape(0) == rows,
            "matrix must be rows x n, and low and high have an entry per row");
    require(!l1 || (center_ && l1->shape(0) == n), "l1 needs center and n entries");
    require(!center_ || center_->shape(0) == n, "center must have n entries");
    solver_ = make_parametric({.n = Index(n),
                               .rows = Index(rows),
                               .hessian = hessian_ ? hessian_->data() : nullptr,
                               .factors = factors_ ? factors_->data() : nullptr,
                               .diagonal = data_or_null(diagonal_),
                               .m = factors_ ? Index(factors_->shape(0)) : 0,
                               .linear = linear_.data(),
                               .lower = lower.data(),
                               .upper = upper.data(),
                               .l1 = data_or_null(l1),
                               .center = data_or_null(center_),
                               .matrix = matrix_.data(),
                               .low = low_.data(),
                               .high = high_.data()});
  }

  Problem(const Problem& other)
      : hessian_(other.hessian_),
        factors_(other.factors_),
        diagonal_(other.diagonal_),
        center_(other.center_),
        matrix_(other.matrix_),
        linear_(other.linear_),
        low_(other.low_),
        high_(other.high_),
        n_(other.n_),
        solver_(other.solver_->copy()) {}

  int solve(const In& start, const In& holds, unsigned seed, double seconds) {
    require(start.shape(0) == n_ && holds.shape(0) == low_.shape(0),
            "start must have n entries, and holds an entry per row");
    const std::unique_ptr<bool[]> holding(new bool[low_.shape(0)]);
    for (std::size_t r = 0; r < low_.shape(0); ++r) holding[r] = holds.data()[r] != 0;
    return run(seconds, [&](InterruptCheck& interrupt) {
      return solver_->solve(start.data(), holding.get(), seed, interrupt);
    });
  }

  auto follow(const In& linear, std::optional<In> l1, double distance, int measure,
              std::optional<In> b, std::optional<In> product, double limit, bool corners,
              double seconds) {
    require(linear.shape(0) == n_ && (!l1 || (center_ && l1->shape(0) == n_)),
            "linear and l1 must have n entries, and l1 needs center");
    const Cap cap{.measure = Cap::Measure(measure),
                  .b = data_or_null(b),
                  .product = data_or_null(product),
                  .limit = limit};
    require(cap.measure != Cap::variance ||
                (b && product && b->shape(0) == n_ && product->shape(0) == n_),
            "a limit of the variance needs b and product");
    require(cap.measure != Cap::distance || center_, "a limit of the distance needs center");
    Corners found;
    const int status = run(seconds, [&](InterruptCheck& interrupt) {
      const Direction direction{.linear = linear.data(), .l1 = data_or_null(l1)};
      return solver_->follow(direction, distance, cap, corners ? &found : nullptr, interrupt);
    });
    return std::make_tuple(status, to_numpy(std::move(found.t)), to_numpy(std::move(found.x)),
                           to_numpy(std::move(found.multipliers)), to_numpy(std::move(found.ray)));
  }

  int move(Index i, double value, double lower, double upper, double seconds) {
    require(i >= 0 && std::size_t(i) < n_, "i must be the number of a variable");
    require(lower <= value && value <= upper, "value must be within the bounds");
    return run(seconds, [&](InterruptCheck& interrupt) {
      return solver_->move(i, value, lower, upper, interrupt);
    });
  }

  const Parametric& solver() const { return *solver_; }

 private:
  template <class Work>
  int run(double seconds, Work work) {
    Parametric::Status status{};
    run_native(seconds, {},
               [&](InterruptCheck& interrupt, WithoutGil&) { status = work(interrupt); });
    return int(status);
  }

  std::optional<Matrix> hessian_, factors_;
  std::optional<In> diagonal_, center_;
  Matrix matrix_;
  In linear_, low_, high_;
  std::size_t n_;
  std::unique_ptr<Parametric> solver_;
};

}  // namespace

void register_parametric(nb::module_& m) {
  nb::class_<Problem>(m, "Parametric", "See cpp/engine/parametric.hpp.")
      .def(nb::init<std::optional<Matrix>, std::optional<Matrix>, std::optional<In>, In, In, In,
                    std::optional<In>, std::optional<In>, Matrix, In, In>(),
           "hessian"_a.none(), "factors"_a.none(), "diagonal"_a.none(), "linear"_a, "lower"_a,
           "upper"_a, "l1"_a.none(), "center"_a.none(), "matrix"_a, "low"_a, "high"_a)
      .def("copy", [](const Problem& p) { return Problem(p); })
      .def("solve", &Problem::solve, "start"_a, "holds"_a, nb::kw_only(), "seed"_a = 0,
           "seconds"_a = INFINITY, "Solve the problem; return the status.")
      .def("follow", &Problem::follow, "linear"_a, "l1"_a.none() = nb::none(), nb::kw_only(),
           "distance"_a = INFINITY, "measure"_a = 0, "b"_a.none() = nb::none(),
           "product"_a.none() = nb::none(), "limit"_a = 0.0, "corners"_a = false,
           "seconds"_a = INFINITY,
           "Change the problem; return (status, t, x, multipliers, ray) with the corners.")
      .def("move", &Problem::move, "i"_a, "value"_a, "lower"_a, "upper"_a, nb::kw_only(),
           "seconds"_a = INFINITY, "Move a variable and change its bounds; return the status.")
      .def_prop_ro("value", [](const Problem& p) { return p.solver().value(); })
      .def_prop_ro("x", [](const Problem& p) { return to_numpy(std::vector(p.solver().x())); })
      .def_prop_ro("multipliers",
                   [](const Problem& p) { return to_numpy(std::vector(p.solver().multipliers())); })
      .def_prop_ro("t", [](const Problem& p) { return p.solver().t(); })
      .def_prop_ro("changes", [](const Problem& p) { return p.solver().changes(); });
}
