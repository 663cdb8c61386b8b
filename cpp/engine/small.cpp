#include "small.hpp"

#include <algorithm>
#include <cmath>

#include "../core/feasible.hpp"
#include "../core/interrupt.hpp"
#include "../core/quadratic.hpp"
#include "../core/symmetry.hpp"
#include "../isa/dispatch.hpp"
#include "start.hpp"

namespace pairstep {

namespace {

struct SmallSettings {
  // Limit on the size of every number of the problem. x'Qx multiplies three of them, and the
  // product must stay below the largest double, 1.8e308.
  static constexpr double max_input = 1e100;
  // Limits the solve to milliseconds. Problems that need more are left to the general solver, which
  // can be interrupted.
  static constexpr Index max_iterations_per_variable = 100;
  // Maximum number of solver runs. The tolerance depends on the solution, so the first run may aim
  // at a wrong tolerance.
  static constexpr int max_runs = 3;
};

// Return whether the problem is feasible and symmetric, with numbers that cannot overflow.
bool is_ordinary(const Small& problem, InterruptCheck& interrupt) {
  const auto [hessian, linear, lower, upper, n, total, tol] = problem;
  const auto ordinary = [](double v) { return std::abs(v) < SmallSettings::max_input; };
  if (n < 1 || n > MAX_SMALL_VARIABLES || !ordinary(total) || !(tol >= 0)) return false;
  if (!std::all_of(linear, linear + n, ordinary) || !std::all_of(lower, lower + n, ordinary))
    return false;
  if (first_invalid_bound(lower, upper, n, SmallSettings::max_input) >= 0) return false;
  const SumRange range = range_of_sum(lower, upper, n, total, total);
  if (!(range.least <= total && total <= range.most)) return false;
  const Asymmetry checked = asymmetry(hessian, n, 1, interrupt);
  return checked.difference == 0.0 && checked.largest < SmallSettings::max_input;
}

// Set the gradient and return the value.
double evaluate(const Small& problem, const Point& point) {
  return quadratic(problem.hessian, problem.linear, point.n, point.x, point.gradient);
}

}  // namespace

std::optional<SmallAnswer> solve_small(const Small& problem) {
  InterruptCheck interrupt;
  if (!is_ordinary(problem, interrupt)) return {};
  const Index n = problem.n, starts[] = {0, n};
  const Sums sums{1, starts, &problem.total};
  std::vector<double> diagonal(n);
  for (Index i = 0; i < n; ++i) diagonal[i] = problem.hessian[i * (n + 1)];
  SmallAnswer answer{std::vector<double>(n), std::vector<double>(n), 0.0, 0.0, {}, 0};
  std::vector<double>& gradient = answer.gradient;
  const Point point{
      n,       1,      starts, gradient.data(), answer.x.data(), problem.lower, problem.upper,
      nullptr, nullptr};
  const std::vector<SharedCost> shared = shared_costs(point, problem.linear);
  if (!start(problem, shared[0], point.x)) return {};
  const auto is_restored_and_optimal = [&] {
    restore_sums(point.x, problem.lower, problem.upper, sums);
    answer.value = evaluate(problem, point);
    answer.certificate = certify(point, &problem.total);
    const Verdict verdict =
        verdict_of(point, {problem.linear, diagonal.data(), shared.data()}, answer.certificate,
                   &problem.total, answer.value, problem.tol);
    answer.tolerance = verdict.tolerance;
    return verdict.optimal;
  };
  if (is_restored_and_optimal()) return answer;
  const auto solver = isa().greedy({.hessian = problem.hessian}, n);
  solver->begin(point, answer.value);
  for (int run = 0; run < SmallSettings::max_runs; ++run) {
    const Index max_iter = SmallSettings::max_iterations_per_variable * n;
    if (solver->run(answer.tolerance, max_iter, interrupt) != StopReason::optimal) return {};
    answer.iterations = solver->iterations;
    if (solver->least_curvature < 0) return {};
    if (is_restored_and_optimal()) return answer;
    solver->renew(point, answer.value);
  }
  return {};
}

}  // namespace pairstep
