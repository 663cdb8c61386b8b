// Bindings for quadratic programs with a limit on the number of names (engine/cardinality.hpp).
#include <nanobind/stl/tuple.h>

#include "../engine/cardinality.hpp"

#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

auto described(CardinalityState&& state) {
  std::optional<NumpyArray<double>> x;
  if (state.has_point) x = to_numpy(std::move(state.x));
  return std::make_tuple(int(state.status), x, state.value, state.bound, state.size, state.nodes);
}

// Its arguments are the numbers of `described`; it returns whether to stop.
using SearchCallback = nb::typed<nb::callable, bool(int, std::optional<NumpyArray<double>>, double,
                                                    double, double, Index)>;

// `callback` is called about 20 times a second.
auto solve_cardinality(const std::optional<Matrix>& hessian, const std::optional<Matrix>& factors,
                       const In& separable, const In& linear, const In& lower, const In& upper,
                       const std::optional<In>& l1, const std::optional<In>& center,
                       const Matrix& matrix, const In& low, const In& high, const In& holding,
                       const In& cost, Index max_names, double gap, Index max_nodes,
                       const std::optional<In>& start, double seconds,
                       const std::optional<SearchCallback>& callback) {
  const std::size_t n = linear.shape(0), rows = low.shape(0);
  require(hessian.has_value() != factors.has_value(), "either hessian or factors must be given");
  require(!hessian || (hessian->shape(0) == n && hessian->shape(1) == n), "hessian must be n x n");
  require(!factors || factors->shape(1) == n, "factors must be m x n");
  for (const In* vector : {&separable, &lower, &upper, &holding, &cost})
    require(vector->shape(0) == n, "vectors must have n entries");
  require(
      l1.has_value() == center.has_value() && (!l1 || (l1->shape(0) == n && center->shape(0) == n)),
      "l1 and center must have n entries");
  require(!start || start->shape(0) == n, "start must have n entries");
  require(matrix.shape(0) == rows && matrix.shape(1) == n && high.shape(0) == rows,
          "matrix must be rows x n, and low and high have an entry per row");
  const CardinalityProblem problem{.program = {.n = Index(n),
                                               .rows = Index(rows),
                                               .hessian = hessian ? hessian->data() : nullptr,
                                               .factors = factors ? factors->data() : nullptr,
                                               .diagonal = separable.data(),
                                               .m = factors ? Index(factors->shape(0)) : 0,
                                               .linear = linear.data(),
                                               .lower = lower.data(),
                                               .upper = upper.data(),
                                               .l1 = data_or_null(l1),
                                               .center = data_or_null(center),
                                               .matrix = matrix.data(),
                                               .low = low.data(),
                                               .high = high.data()},
                                   .separable = separable.data(),
                                   .holding = holding.data(),
                                   .cost = cost.data(),
                                   .max_names = max_names,
                                   .gap = gap,
                                   .max_nodes = max_nodes};
  const std::unique_ptr<CardinalitySearch> search = make_cardinality_search(problem);
  std::function<void(InterruptCheck&)> report;
  if (callback)
    report = [&](InterruptCheck& interrupt) {
      if (nb::cast<bool>((*callback)(*nb::cast(described(search->state()))))) interrupt.stop();
    };
  run_native(seconds, report, [&](InterruptCheck& interrupt, WithoutGil&) {
    search->run(data_or_null(start), interrupt);
  });
  CardinalityRest rest = search->rest();
  return std::make_tuple(described(search->state()), rest.pruned, to_numpy(std::move(rest.live)),
                         to_numpy(std::move(rest.weights)));
}

NumpyArray<double> find_largest_diagonal(const Matrix& matrix, double seconds) {
  require(matrix.shape(0) == matrix.shape(1), "matrix must be square");
  std::vector<double> found;
  run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil&) {
    found = largest_diagonal(matrix.data(), Index(matrix.shape(0)), interrupt);
  });
  return to_numpy(std::move(found));
}

}  // namespace

void register_cardinality(nb::module_& m) {
  m.def(
      "solve_cardinality", &solve_cardinality, "hessian"_a.none(), "factors"_a.none(),
      "separable"_a, "linear"_a, "lower"_a, "upper"_a, "l1"_a.none(), "center"_a.none(), "matrix"_a,
      "low"_a, "high"_a, "holding"_a, "cost"_a, nb::kw_only(), "max_names"_a, "gap"_a,
      "max_nodes"_a, "start"_a.none(), "seconds"_a, "callback"_a.none(),
      "Return (state, pruned, live, weights); the state is (status, x or None, value, bound, size, "
      "nodes). See cpp/engine/cardinality.hpp.");
  m.def("largest_diagonal", &find_largest_diagonal, "matrix"_a, nb::kw_only(), "seconds"_a,
        "Return d with nearly the largest sum for which C - diag(d) is nearly semidefinite.");
}
