// Bindings for quadratic programs with rows (cpp/engine/rows.hpp).
#include "../engine/rows.hpp"

#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

nb::tuple rows_(std::optional<Matrix> hessian, std::optional<Matrix> factors,
                std::optional<In> diagonal, const In& linear, const In& lower, const In& upper,
                std::optional<In> l1, std::optional<In> center, const Matrix& matrix, const In& low,
                const In& high, const In& start, const In& holds, unsigned seed, double seconds) {
  const std::size_t n = linear.shape(0), rows = low.shape(0);
  require(hessian.has_value() != factors.has_value(), "either hessian or factors must be given");
  require(!hessian || (hessian->shape(0) == n && hessian->shape(1) == n), "hessian must be n x n");
  require(!factors || (factors->shape(1) == n && diagonal && diagonal->shape(0) == n),
          "factors must be m x n, and diagonal have n entries");
  require(lower.shape(0) == n && upper.shape(0) == n && start.shape(0) == n,
          "lower, upper and start must have n entries");
  require(matrix.shape(0) == rows && matrix.shape(1) == n && high.shape(0) == rows &&
              holds.shape(0) == rows,
          "matrix must be rows x n, and low, high and holds have an entry per row");
  require(
      l1.has_value() == center.has_value() && (!l1 || (l1->shape(0) == n && center->shape(0) == n)),
      "l1 and center must have n entries");
  const RowsProblem problem{.n = Index(n),
                            .rows = Index(rows),
                            .hessian = hessian ? hessian->data() : nullptr,
                            .factors = factors ? factors->data() : nullptr,
                            .diagonal = diagonal ? diagonal->data() : nullptr,
                            .m = factors ? Index(factors->shape(0)) : 0,
                            .linear = linear.data(),
                            .lower = lower.data(),
                            .upper = upper.data(),
                            .l1 = l1 ? l1->data() : nullptr,
                            .center = center ? center->data() : nullptr,
                            .matrix = matrix.data(),
                            .low = low.data(),
                            .high = high.data()};
  const std::unique_ptr<bool[]> holding(new bool[rows]);
  for (std::size_t r = 0; r < rows; ++r) holding[r] = holds.data()[r] != 0;
  RowsAnswer answer;
  run_native(seconds, {}, [&](InterruptCheck& interrupt, WithoutGil&) {
    answer = solve_rows(problem, start.data(), holding.get(), seed, interrupt);
  });
  return nb::make_tuple(int(answer.status), to_numpy(std::move(answer.x)),
                        to_numpy(std::move(answer.multipliers)), answer.changes);
}

}  // namespace

void register_rows(nb::module_& m) {
  m.def("rows", &rows_, "hessian"_a.none(), "factors"_a.none(), "diagonal"_a.none(), "linear"_a,
        "lower"_a, "upper"_a, "l1"_a.none(), "center"_a.none(), "matrix"_a, "low"_a, "high"_a,
        "start"_a, "holds"_a, nb::kw_only(), "seed"_a, "seconds"_a,
        "Return (status, x, multipliers, changes); see cpp/engine/rows.hpp.");
}
