// Bindings for support vector machines: dual problems, kernel matrices, and decisions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "../core/one_vs_one.hpp"
#include "../engine/leave_out.hpp"
#include "../engine/sample.hpp"
#include "../engine/svm.hpp"
#include "../oracles/kernel_matrix.hpp"
#include "../oracles/matrix.hpp"
#include "../oracles/measures.hpp"
#include "../oracles/precise.hpp"
#include "../oracles/support_vectors.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

std::vector<Index> indices_within(const Indices& indices, Index limit) {
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(indices(k) >= 0 && indices(k) < limit, "indices must be in range");
  return {indices.data(), indices.data() + indices.shape(0)};
}

// Dual problems as Python holds them: one after the other in the same arrays, with a row of
// `starts` and of `totals` for each. z changes in place and the gradient is written. If `known`,
// the gradient of the starting point is read from the same array first.
struct DualsArrays {
  Indices rows;
  In linear, lower, upper;
  std::optional<In> l1;
  IndexMatrix starts;
  Matrix totals;
  InOut z, gradient;
  bool known, closely;  // closely: whether to solve small duals more accurately than tol
  std::vector<double> breakpoint;

  DualsArrays(Indices rows, In linear, In lower, In upper, std::optional<In> l1, IndexMatrix starts,
              Matrix totals, InOut z, InOut gradient, bool known, bool closely)
      : rows(rows),
        linear(linear),
        lower(lower),
        upper(upper),
        l1(l1),
        starts(starts),
        totals(totals),
        z(z),
        gradient(gradient),
        known(known),
        closely(closely),
        breakpoint(l1 ? z.shape(0) : 0) {
    const std::size_t n = z.shape(0);
    require(rows.shape(0) == n && linear.shape(0) == n && lower.shape(0) == n &&
                upper.shape(0) == n && gradient.shape(0) == n && (!l1 || l1->shape(0) == n),
            "rows, linear, lower, upper, l1 and gradient must have the length of z");
    require(starts.shape(0) == totals.shape(0) && starts.shape(1) == groups() + 1 && groups() > 0,
            "totals must have one entry per group");
    Index total = 0;
    for (std::size_t k = 0; k < count(); ++k) {
      const Index* own = starts.data() + k * starts.shape(1);
      require(own[0] == 0 && own[groups()] > 0 && own[groups()] <= Index(n) - total,
              "starts must go from 0 to the number of variables of a dual, which is at least one");
      require(std::is_sorted(own, own + starts.shape(1)), "starts must be ascending");
      total += own[groups()];
    }
    require(total == Index(n), "starts must go from 0 to n");
  }

  std::size_t count() const { return starts.shape(0); }
  std::size_t groups() const { return totals.shape(1); }

  std::vector<Dual> over(const DataMatrix& data) const {
    indices_within(rows, data.rows);
    std::vector<Dual> duals;
    duals.reserve(count());
    Index first = 0;
    for (std::size_t k = 0; k < count(); ++k) {
      const Index* own = starts.data() + k * starts.shape(1);
      const Index n = own[groups()];
      const Point point{n,
                        Index(groups()),
                        own,
                        gradient.data() + first,
                        z.data() + first,
                        lower.data() + first,
                        upper.data() + first,
                        l1 ? l1->data() + first : nullptr,
                        l1 ? breakpoint.data() + first : nullptr,
                        nullptr,
                        nullptr};
      duals.push_back({point, rows.data() + first, linear.data() + first,
                       totals.data() + k * groups(), known, closely});
      first += n;
    }
    return duals;
  }

  Dual only(const DataMatrix& data) const {
    require(count() == 1, "there must be one dual");
    return over(data).front();
  }
};

// Write how a solve ended; see `Outcome` in svm/engine.py. Return the end of the row.
double* write_outcome(const DualOutcome& outcome, double* to) {
  for (const double number :
       {double(outcome.status), double(outcome.iterations), outcome.certificate.violation,
        outcome.certificate.bound, outcome.scale, outcome.rounding})
    *to++ = number;
  return std::copy(outcome.certificate.multiplier.begin(), outcome.certificate.multiplier.end(),
                   to);
}

// Numbers of an outcome before the multipliers of its groups.
constexpr std::size_t OUTCOME_NUMBERS = 6;

// Whether to continue, given the violation, the iterations and the number of solved duals.
using KeepGoing = nb::typed<nb::callable, bool(double, Index, Index)>;

// Call solve(task, threads, interrupt, progress) without the GIL. The callback `keep_going` is
// called regularly and returns whether to continue.
template <class Solve>
void run_svm_task(const SvmTask& task, double seconds, int threads,
                  const std::optional<KeepGoing>& keep_going, Solve solve) {
  SvmProgress progress;
  const auto callback = [&](InterruptCheck& interrupt) {
    if (!keep_going) return;
    const nb::object answer = (*keep_going)(progress.violation.load(), progress.iterations.load(),
                                            progress.solved.load());
    if (!nb::cast<bool>(answer)) interrupt.stop();
  };
  run_native(seconds, callback, [&](InterruptCheck& interrupt, WithoutGil&) {
    solve(task, std::max(threads, 1), interrupt, progress);
  });
}

// Return the task of duals over the rows of one matrix.
SvmTask svm_task(const nb::object& X, const std::optional<In>& center, const KernelFunction& kernel,
                 double tol, Index max_iter, std::size_t cache_bytes, bool single, bool cold,
                 Arenas* arenas) {
  SvmTask task{data_for(kernel, X, center), kernel, tol, max_iter, cache_bytes, single, cold};
  task.arenas = arenas;
  require(kernel.name != KernelName::precomputed ||
              (task.data.rows <= task.data.features && !task.data.starts),
          "a precomputed kernel must be a square matrix");
  return task;
}

NumpyArray<double> solve_duals(const nb::object& X, const std::optional<In>& center,
                               const KernelFunction& kernel, const DualsArrays& arrays, double tol,
                               Index max_iter, double seconds, std::size_t cache_bytes, int threads,
                               bool single, bool cold, const std::optional<KeepGoing>& keep_going,
                               Arenas* arenas) {
  const SvmTask task =
      svm_task(X, center, kernel, tol, max_iter, cache_bytes, single, cold, arenas);
  std::vector<Dual> duals = arrays.over(task.data);
  run_svm_task(task, seconds, threads, keep_going,
               [&](const SvmTask& task, auto&&... how) { solve_svm_duals(task, duals, how...); });
  const std::size_t width = OUTCOME_NUMBERS + arrays.groups();
  std::vector<double> outcomes(duals.size() * width);
  for (std::size_t k = 0; k < duals.size(); ++k)
    write_outcome(duals[k].outcome, outcomes.data() + k * width);
  return to_numpy(std::move(outcomes), {duals.size(), width});
}

NumpyArray<double> solve_chains(const nb::object& X, const std::optional<In>& center,
                                const KernelFunction& kernel, const DualsArrays& arrays,
                                double C_before, const In& Cs, const Indices& columns,
                                const InOutMatrix& z, const InOutMatrix& gradient,
                                const std::optional<InOutCube>& sums, double tol, Index max_iter,
                                double seconds, std::size_t cache_bytes, int threads, bool single,
                                bool cold, const std::optional<KeepGoing>& keep_going,
                                Arenas* arenas) {
  const SvmTask task =
      svm_task(X, center, kernel, tol, max_iter, cache_bytes, single, cold, arenas);
  const std::size_t count = Cs.shape(0), n = arrays.z.shape(0);
  require(arrays.groups() == 1, "the dual of a chain must have one group");
  require(z.shape(0) == count && z.shape(1) == n && gradient.shape(0) == count &&
              gradient.shape(1) == n,
          "z and gradient must be C x variables");
  require(!sums || kernel.name == KernelName::precomputed, "sums need a precomputed kernel");
  require(!sums || (sums->shape(0) == arrays.count() && sums->shape(1) == count &&
                    sums->shape(2) == columns.shape(0)),
          "sums must be duals x C x columns");
  const std::vector<Index> decided = indices_within(columns, task.data.rows);
  std::vector<DualChain> chains;
  Index first = 0;
  for (const Dual& unit : arrays.over(task.data)) {
    const std::size_t sums_before = chains.size() * count * columns.shape(0);
    chains.push_back({unit, C_before, Cs.data(), Index(count), z.data() + first,
                      gradient.data() + first, sums ? sums->data() + sums_before : nullptr,
                      Index(n)});
    first += unit.point.n;
  }
  run_svm_task(task, seconds, threads, keep_going, [&](const SvmTask& task, auto&&... how) {
    solve_svm_chains(task, chains, decided, how...);
  });
  constexpr std::size_t WIDTH = OUTCOME_NUMBERS + 1;
  std::vector<double> outcomes(chains.size() * count * WIDTH,
                               std::numeric_limits<double>::quiet_NaN());
  for (std::size_t k = 0; k < chains.size(); ++k) {
    double* to = outcomes.data() + k * count * WIDTH;
    for (const DualOutcome& outcome : chains[k].outcomes) to = write_outcome(outcome, to);
  }
  return to_numpy(std::move(outcomes), {chains.size(), count, WIDTH});
}

auto examine_(const nb::object& X, const std::optional<In>& center, const KernelFunction& kernel,
              const DualsArrays& arrays, double tol, int threads) {
  const DataMatrix data = data_for(kernel, X, center);
  Dual dual = arrays.only(data);
  Rounding found;
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    found = examine(kernel, data, dual.rows, dual.linear, dual.point, tol, pool);
  });
  return std::make_tuple(found.error, found.extra);
}

bool needs_differences_(const KernelFunction& kernel, const nb::object& X,
                        const std::optional<In>& center, double weight, double allowed) {
  if (kernel.name != KernelName::rbf) return false;
  const DataMatrix data = data_for(kernel, X, center);
  return needs_differences(kernel, data.largest_square(nullptr, data.rows), weight, allowed);
}

double center_offset_(const KernelFunction& kernel, const nb::object& X, const In& center,
                      const Indices& rows, const In& weights) {
  const DataMatrix data = data_for(kernel, X, center);
  indices_within(rows, data.rows);
  require(rows.shape(0) == weights.shape(0), "weights must have one entry per row");
  return center_offset(data, rows.data(), weights.data(), Index(rows.shape(0)));
}

using FloatArray = std::variant<NumpyArray<float>, NumpyArray<double>>;

// Return the kernel matrix of some rows, or None if the time ran out.
template <class Real>
std::optional<FloatArray> kernel_matrix_of(const KernelFunction& kernel, const DataMatrix& data,
                                           const std::vector<Index>& rows, int threads,
                                           double seconds) {
  std::unique_ptr<KernelMatrix<Real>> made;
  const bool in_time = run_native_in_time(seconds, [&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    made = std::make_unique<KernelMatrix<Real>>(kernel, data, rows, pool);
  });
  if (!in_time) return {};
  const DataMatrix matrix = made->matrix();
  const Real* values = nullptr;
  if constexpr (std::is_same_v<Real, double>) values = matrix.dense;
  else values = matrix.dense32;
  nb::capsule owner(made.release(),
                    [](void* p) noexcept { delete static_cast<KernelMatrix<Real>*>(p); });
  return NumpyArray<Real>(nb::cast(nb::ndarray<nb::numpy, const Real>(
      values, {std::size_t(matrix.rows), std::size_t(matrix.features)}, owner)));
}

std::optional<FloatArray> kernel_matrix(const KernelFunction& kernel, const nb::object& X,
                                        const std::optional<In>& center, const Indices& rows,
                                        bool single, int threads, double seconds) {
  const DataMatrix data = data_for(kernel, X, center);
  require(kernel.name != KernelName::precomputed, "kernel must not be precomputed");
  const auto make = single ? kernel_matrix_of<float> : kernel_matrix_of<double>;
  return make(kernel, data, indices_within(rows, data.rows), threads, seconds);
}

std::optional<FloatArray> squared_distances(const nb::object& X, const std::optional<In>& center,
                                            const Indices& rows, bool single, int threads,
                                            double seconds) {
  const KernelFunction distance{KernelName::squared_distance, 1.0, 0.0, 1};
  return kernel_matrix(distance, X, center, rows, single, threads, seconds);
}

// Write exp(-gamma distances). Return false if the time ran out.
template <class Real>
bool rbf_of_distances(
    const nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>& distances,
    double gamma, const nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out,
    int threads, double seconds) {
  const std::size_t rows = distances.shape(0), columns = distances.shape(1);
  require(out.shape(0) == rows && out.shape(1) == columns, "both must have the same shape");
  return run_native_in_time(seconds, [&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool(std::max(threads, 1), interrupt).run(Index(rows), [&](Index row) {
      const std::size_t at = std::size_t(row) * columns;
      isa().of<Real>().rbf_of_distances(distances.data() + at, gamma, Index(columns),
                                        out.data() + at);
    });
  });
}

void start_scaled_(const PointArrays& point, const InOut& gradient, const In& linear,
                   double ratio) {
  require(Index(gradient.shape(0)) == point.n() && Index(linear.shape(0)) == point.n(),
          "gradient and linear must have the length of x");
  Point moved = point.with(gradient.data());
  start_scaled(moved, linear.data(), ratio);
}

// Largest sum of |weights| of one output over one group of queries.
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
  const std::vector<Index> from_rows =
                               indices_within(queries, precomputed ? to.features : from.rows),
                           to_rows = indices_within(columns, to.rows);
  std::vector<Index> starts = {0, Index(from_rows.size())};
  if (groups) {
    require_starts(*groups, from_rows.size());
    starts.assign(groups->data(), groups->data() + groups->shape(0));
  }
  const Index outputs = Index(weights.shape(1));
  require(weights.shape(0) == from_rows.size() &&
              sums.shape(0) == (starts.size() - 1) * weights.shape(1) &&
              sums.shape(1) == to_rows.size(),
          "weights must be queries x outputs and sums (groups of outputs) x columns");
  require(precomputed || from.features == to.features,
          "support and X must have the same number of features");
  require(!to.starts == !from.starts, "support and X must both be dense or both be sparse");
  to.lay_out_like(from);
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    const bool single =
        !precomputed && allowed > 0 &&
        single_suffices(function,
                        std::max(from.largest_square(from_rows.data(), Index(from_rows.size())),
                                 to.largest_square(to_rows.data(), Index(to_rows.size()))),
                        largest_weight(weights, starts), allowed);
    ThreadPool pool(std::max(threads, 1), interrupt);
    const auto add = single ? add_kernel<float> : add_kernel<double>;
    add(function, from, from_rows, starts, weights.data(), outputs, to, to_rows, sums.data(),
        Index(to_rows.size()), pool);
  });
}

// Support vectors as Python holds them. Their packed form is created at the first use and reused.
struct SupportVectorsOf {
  nb::object support;  // keeps the memory alive
  SupportVectors vectors;

  SupportVectorsOf(const KernelFunction& kernel, const nb::object& support,
                   const std::optional<In>& center)
      : support(support), vectors(kernel, data_for(kernel, support, center)) {
    require(kernel.name != KernelName::precomputed, "kernel must not be precomputed");
  }

  void decide(const Matrix& weights, const nb::object& X, const InOutMatrix& sums, int threads,
              double allowed, const std::optional<Indices>& starts) const {
    const DataMatrix rows = data_of(X), &own = vectors.data();
    std::vector<Index> groups = {0, vectors.count()};
    if (starts) {
      require_starts(*starts, std::size_t(vectors.count()));
      groups.assign(starts->data(), starts->data() + starts->shape(0));
    }
    require(Index(weights.shape(1)) == vectors.count() &&
                sums.shape(1) == (groups.size() - 1) * weights.shape(0) &&
                Index(sums.shape(0)) == rows.rows,
            "weights must be outputs x support vectors and sums rows x (groups of outputs)");
    require(rows.features == own.features, "support and X must have the same number of features");
    require(!rows.starts == !own.starts, "support and X must both be dense or both be sparse");
    run_native([&](InterruptCheck& interrupt, WithoutGil&) {
      ThreadPool pool(std::max(threads, 1), interrupt);
      vectors.decide(weights.data(), Index(weights.shape(0)), groups, rows, allowed, sums.data(),
                     pool);
    });
  }
};

// Solve a dual without each of some samples, from its optimum and the transform of its matrix.
auto leave_out(const nb::object& matrix, const DualsArrays& arrays, const In& multiplier,
               const Indices& free, const Matrix& inverse, const Matrix& transform,
               const Matrix& transposed, const Indices& known, const Matrix& columns, double tol,
               std::size_t cache_bytes, const IndexMatrix& out, const Matrix& total_changes,
               int threads, const std::optional<nb::typed<nb::callable, bool(Index)>>& keep_going) {
  LeaveOutTask task;
  task.matrix = data_of(matrix);
  require(!task.matrix.starts && task.matrix.rows <= task.matrix.features,
          "matrix must be dense and square");
  const Dual dual = arrays.only(task.matrix);
  const Index n = dual.point.n, groups = dual.point.n_groups;
  task.point = dual.point;
  task.rows = dual.rows;
  task.linear = dual.linear;
  task.multiplier = multiplier.data();
  task.free = indices_within(free, n);
  const std::size_t size = task.free.size() + std::size_t(groups);
  require(Index(multiplier.shape(0)) == groups && inverse.shape(0) == size &&
              inverse.shape(1) == size && transform.shape(0) == size &&
              Index(transform.shape(1)) == n && Index(transposed.shape(0)) == n &&
              transposed.shape(1) == size,
          "inverse and transform must have a row per free variable and group");
  task.inverse = inverse.data();
  task.transform = transform.data();
  task.transposed = transposed.data();
  task.known = indices_within(known, n);
  require(columns.shape(0) == known.shape(0) && Index(columns.shape(1)) == n,
          "columns must have a row per variable in known");
  task.columns = columns.data();
  task.tol = tol;
  task.cache_bytes = cache_bytes;
  const std::size_t count = out.shape(0);
  require(out.shape(1) > 0 && total_changes.shape(0) == count &&
              Index(total_changes.shape(1)) == groups,
          "total_changes must have a row per sample that is left out");
  for (std::size_t k = 0; k < count * out.shape(1); ++k)
    require(out.data()[k] >= 0 && out.data()[k] < n, "indices must be in range");
  std::vector<WithoutSample> found(count);
  std::atomic<Index> done = 0;
  const auto callback = [&](InterruptCheck& interrupt) {
    if (keep_going && !nb::cast<bool>((*keep_going)(done.load()))) interrupt.stop();
  };
  run_native(std::numeric_limits<double>::infinity(), callback,
             [&](InterruptCheck& interrupt, WithoutGil&) {
               const LeaveOut base(task);
               ThreadPool(std::max(threads, 1), interrupt).run(Index(count), [&](Index k) {
                 if (interrupt.stopped()) return;
                 const std::size_t at = std::size_t(k);
                 found[at] = base.solve({out.data() + at * out.shape(1), Index(out.shape(1)),
                                         total_changes.data() + at * std::size_t(groups)});
                 ++done;
               });
             });
  std::vector<double> violations, sums, multipliers;
  for (WithoutSample& one : found) {
    one.multiplier.resize(std::size_t(groups));
    violations.push_back(one.optimal ? one.violation : std::numeric_limits<double>::infinity());
    sums.push_back(one.sum);
    multipliers.insert(multipliers.end(), one.multiplier.begin(), one.multiplier.end());
  }
  return std::make_tuple(to_numpy(std::move(violations)), to_numpy(std::move(sums)),
                         to_numpy(std::move(multipliers), {count, std::size_t(groups)}));
}

// Require one decision per pair of classes, and return their number.
std::size_t require_pairs(Index classes, std::size_t decisions) {
  require(classes >= 2 && std::size_t(classes) * std::size_t(classes - 1) / 2 == decisions,
          "there must be one decision per pair of classes");
  return decisions;
}

NumpyArray<double> pair_decisions_(const Matrix& sums, const In& intercept, Index classes,
                                   int threads) {
  const std::size_t rows = sums.shape(0), pairs = require_pairs(classes, intercept.shape(0));
  require(sums.shape(1) == 2 * pairs, "sums must have two columns per pair of classes");
  std::vector<double> decisions(rows * pairs);
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    pair_decisions(sums.data(), Index(rows), classes, intercept.data(), decisions.data(), pool);
  });
  return to_numpy(std::move(decisions), {rows, pairs});
}

NumpyArray<Index> vote_(const Matrix& pairs, Index classes, int threads) {
  require_pairs(classes, pairs.shape(1));
  std::vector<Index> winners(pairs.shape(0));
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    vote(pairs.data(), Index(pairs.shape(0)), classes, winners.data(), pool);
  });
  return to_numpy(std::move(winners));
}

NumpyArray<double> one_vs_rest_(const Matrix& pairs, Index classes, int threads) {
  require_pairs(classes, pairs.shape(1));
  const std::size_t rows = pairs.shape(0);
  std::vector<double> decisions(rows * std::size_t(classes));
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    one_vs_rest(pairs.data(), Index(rows), classes, decisions.data(), pool);
  });
  return to_numpy(std::move(decisions), {rows, std::size_t(classes)});
}

// The vectorized exponential function of the kernel computations, exported for tests.
template <class Real>
FloatArray exponentials(
    const nb::ndarray<const Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>& x) {
  std::vector<Real> out(x.shape(0));
  isa().of<Real>().exponentials(x.data(), Index(x.shape(0)), out.data());
  return to_numpy(std::move(out));
}

}  // namespace

void register_svm(nb::module_& m) {
  nb::enum_<KernelName>(m, "KernelName", "Kernel functions that native code computes.")
      .value("linear", KernelName::linear)
      .value("poly", KernelName::poly)
      .value("rbf", KernelName::rbf)
      .value("sigmoid", KernelName::sigmoid)
      .value("precomputed", KernelName::precomputed);
  nb::class_<KernelFunction>(m, "Kernel", "A kernel function and its parameters.")
      .def(nb::init<KernelName, double, double, int, bool>(), "name"_a, "gamma"_a, "coef0"_a,
           "degree"_a, "differences"_a = false);
  nb::class_<DualsArrays>(
      m, "Duals", "Problems min z'Kz/2 + linear'z + L1 terms, each over some rows of the data.")
      .def(nb::init<Indices, In, In, In, std::optional<In>, IndexMatrix, Matrix, InOut, InOut, bool,
                    bool>(),
           "rows"_a, "linear"_a, "lower"_a, "upper"_a, "l1"_a.none(), "starts"_a, "totals"_a,
           "z"_a.noconvert(), "gradient"_a.noconvert(), "known"_a = false, "closely"_a = true);
  nb::class_<SupportVectorsOf>(m, "SupportVectors",
                               "Support vectors, prepared for computing decisions.")
      .def(nb::init<const KernelFunction&, const nb::object&, const std::optional<In>&>(),
           "kernel"_a, "support"_a, "center"_a.none())
      .def("decide", &SupportVectorsOf::decide, "weights"_a, "X"_a, "sums"_a.noconvert(),
           "threads"_a, "allowed"_a, "starts"_a.none() = nb::none(),
           "Write sums[r, o] = sum_s weights[o, s] k(support[s], X[r]), in float32 if the error "
           "stays within `allowed`. If `starts` divides the support vectors into groups, write the "
           "sums of each group separately, one group after the other.");
  m.def("pair_decisions", &pair_decisions_, "sums"_a, "intercept"_a, "classes"_a, "threads"_a,
        "Return the decisions of all pairs of classes, positive for the first class, from the sums "
        "of each class.");
  m.def("vote", &vote_, "pairs"_a, "classes"_a, "threads"_a,
        "Return the class with the most votes in each row, and the first such class in a tie.");
  m.def("one_vs_rest", &one_vs_rest_, "pairs"_a, "classes"_a, "threads"_a,
        "Return one decision per class from those of all pairs, as scikit-learn does.");
  nb::class_<Arenas>(m, "Arenas", "Memory that solves reuse one after the other.")
      .def(nb::init<>());
  m.def("solve_duals", &solve_duals, "X"_a, "center"_a.none(), "kernel"_a, "duals"_a, nb::kw_only(),
        "tol"_a, "max_iter"_a, "seconds"_a, "cache_bytes"_a, "threads"_a, "single"_a, "cold"_a,
        "keep_going"_a.none(), "arenas"_a.none() = nb::none(),
        "Solve duals over the rows of one matrix in place. Return an array with a row per dual: "
        "stop reason, iterations, violation, duality gap, size of the terms of the gradient, "
        "rounding error of the gradient, multipliers.");
  m.def("leave_out", &leave_out, "matrix"_a, "dual"_a, "multiplier"_a, "free"_a, "inverse"_a,
        "transform"_a, "transposed"_a, "known"_a, "columns"_a, nb::kw_only(), "tol"_a,
        "cache_bytes"_a, "left_out"_a, "total_changes"_a, "threads"_a,
        "keep_going"_a.none() = nb::none(),
        "Solve a dual without each of some samples, whose variables are the rows of `left_out`, "
        "from its optimum. Return for each sample the violation, which is infinite if another "
        "solver is needed, (K z) at its first variable, and the multipliers.");
  m.def(
      "solve_chains", &solve_chains, "X"_a, "center"_a.none(), "kernel"_a, "duals"_a, "C_before"_a,
      "Cs"_a, "columns"_a, "z"_a.noconvert(), "gradient"_a.noconvert(), "sums"_a.noconvert().none(),
      nb::kw_only(), "tol"_a, "max_iter"_a, "seconds"_a, "cache_bytes"_a, "threads"_a, "single"_a,
      "cold"_a, "keep_going"_a.none(), "arenas"_a.none() = nb::none(),
      "Solve duals over the rows of one matrix for several C; their bounds are those for C = 1. "
      "Each C starts from the solution for the one before it. Write z and the gradient for each C. "
      "Return an array with the numbers that `solve_duals` returns, for each dual and C; NaN where "
      "the solve was stopped before.");
  m.def(
      "start_scaled", &start_scaled_, "point"_a, "gradient"_a.noconvert(), "linear"_a, "ratio"_a,
      "Move a solution and its gradient, in place, to a starting point for bounds that are `ratio` "
      "times as large. The point has the new bounds.");
  m.attr("SAMPLE_GROWTH") = SampleSettings::GROWTH;
  m.attr("SAMPLE_MIN_SIZE") = SampleSettings::MIN_SIZE;
  m.attr("SAMPLE_TOLERANCE_FACTOR") = SampleSettings::TOLERANCE_FACTOR;
  m.attr("SAMPLE_MIN_AT_BOUND") = SampleSettings::MIN_AT_BOUND;
  m.def(
      "examine", &examine_, "X"_a, "center"_a.none(), "kernel"_a, "dual"_a, "tol"_a, "threads"_a,
      "Compare the gradient of a dual with precise values and replace entries whose error matters "
      "against `tol`. Return the rounding error of the gradient and how much it may add to the "
      "violation.");
  m.def("needs_differences", &needs_differences_, "kernel"_a, "X"_a, "center"_a.none(), "weight"_a,
        "allowed"_a,
        "Return whether squared distances must be computed from differences: distances from norms "
        "would make sums of kernel values with weights of this size wrong by more than `allowed`, "
        "and differences would not.");
  m.def(
      "linear_center",
      [](const nb::object& X) -> std::optional<NumpyArray<double>> {
        const DataMatrix data = data_of(X);
        std::vector<double> center = data.linear_center(rounded_mean(data));
        if (center.empty()) return {};
        return to_numpy(std::move(center));
      },
      "X"_a,
      "Return the point to use as the origin for a linear kernel whose weights add up to 0, or "
      "None.");
  m.def(
      "center_offset", &center_offset_, "kernel"_a, "X"_a, "center"_a, "rows"_a, "weights"_a,
      "Return what centering subtracts from sums of inner products with these rows, whose weights "
      "add up to 0.");
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  m.def("kernel_matrix", &kernel_matrix, "kernel"_a, "X"_a, "center"_a.none(), "rows"_a, "single"_a,
        "threads"_a, "seconds"_a = no_limit,
        "Return the kernel matrix of some rows, computed in float64 and stored in float32 if "
        "`single`. It has a few more columns than rows, whose contents are undefined. Return None "
        "if it takes longer than `seconds`.");
  m.def(
      "squared_distances", &squared_distances, "X"_a, "center"_a.none(), "rows"_a, "single"_a,
      "threads"_a, "seconds"_a = no_limit,
      "Return the squared distances of some rows from each other, in the form of `kernel_matrix`.");
  const auto rbf = [&](auto function) {
    m.def("rbf_of_distances", function, "distances"_a.noconvert(), "gamma"_a, "out"_a.noconvert(),
          "threads"_a, "seconds"_a = no_limit,
          "Write the kernel matrix exp(-gamma distances) to `out`. Return False if it takes longer "
          "than `seconds`; then `out` is incomplete.");
  };
  rbf(&rbf_of_distances<float>);
  rbf(&rbf_of_distances<double>);
  m.def(
      "measure",
      [](const nb::object& X) {
        const Measures found = measure(data_of(X));
        return std::make_tuple(found.variance, found.largest_square);
      },
      "X"_a, "Return the variance of all entries and the largest squared norm of a row.");
  m.def(
      "rounded_mean", [](const nb::object& X) { return to_numpy(rounded_mean(data_of(X))); }, "X"_a,
      "Return the mean of the rows, rounded to float32.");
  m.def(
      "float32_rounding",
      [](const KernelFunction& kernel, double square) -> std::optional<double> {
        if (!single_will_do(kernel, square)) return {};
        return kernel_bounds<float>(kernel, square).error;
      },
      "kernel"_a, "square"_a,
      "Return the largest error of a kernel value in float32 between points of this squared norm, "
      "or None if it is too large even for the first phase of a solve.");
  m.def("exponentials", &exponentials<float>, nb::arg("x").noconvert());
  m.def("exponentials", &exponentials<double>, nb::arg("x").noconvert());
  m.def(
      "add_kernel", &add_kernel_, "kernel"_a, "support"_a, "center"_a.none(), "queries"_a,
      "weights"_a, "X"_a, "columns"_a, "sums"_a.noconvert(), "threads"_a, "allowed"_a,
      "starts"_a.none() = nb::none(),
      "Add sums[o, c] += sum_r weights[r, o] k(support[queries[r]], X[columns[c]]), in float32 if "
      "the error stays within `allowed`. If `starts` divides the queries into groups, add the sums "
      "of each group separately, one group after the other.");
}
