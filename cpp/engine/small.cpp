#include "small.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../core/convex.hpp"
#include "../core/feasible.hpp"
#include "../core/pulse.hpp"
#include "../core/quadratic.hpp"
#include "../core/symmetry.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

constexpr double LARGE = 1e100;  // products of larger numbers overflow
constexpr Index LONGEST = 100;   // iterations for each variable: a matter of milliseconds

bool is_ordinary(const Small& problem, Pulse& pulse) {
  const auto [hessian, linear, lower, upper, n, total, tol] = problem;
  const auto ordinary = [](double v) { return std::abs(v) < LARGE; };
  if (n < 1 || n > SMALL || !ordinary(total) || !(tol >= 0)) return false;
  if (!std::all_of(linear, linear + n, ordinary) || !std::all_of(lower, lower + n, ordinary))
    return false;
  if (first_odd(lower, upper, n, LARGE) >= 0) return false;
  const Span span = span_of(lower, upper, n, total, total);
  if (!(span.least <= total && total <= span.most)) return false;
  const Asymmetry checked = asymmetry(hessian, n, 1, pulse);
  return checked.difference == 0.0 && checked.largest < LARGE;
}

double derive(const Small& problem, const Point& point) {
  return quadratic(problem.hessian, problem.linear, point.n, point.x, point.gradient);
}

}  // namespace

std::optional<SmallAnswer> solve_small(const Small& problem) {
  Pulse pulse;
  if (!is_ordinary(problem, pulse)) return {};
  const Index n = problem.n, starts[] = {0, n};
  const Sums sums{1, starts, &problem.total};
  SmallAnswer answer{std::vector<double>(n), std::vector<double>(n), 0.0, 0.0, {}, 0};
  std::vector<double>& gradient = answer.gradient;
  std::vector<double> curvature(n);
  const Point point{
      n,       1,      starts, gradient.data(), answer.x.data(), problem.lower, problem.upper,
      nullptr, nullptr};
  std::copy_n(problem.lower, n, point.x);
  derive(problem, point);
  for (Index i = 0; i < n; ++i) curvature[i] = std::max(problem.hessian[i * (n + 1)], 0.0);
  fill(gradient.data(), curvature.data(), problem.lower, problem.upper, sums, point.x);
  answer.value = derive(problem, point);
  const double first_scale = terms_of(point, problem.linear).gradient;

  const auto gear = isa().automatic(problem.hessian, n);
  gear->begin(point, answer.value);
  if (gear->run(problem.tol * first_scale, LONGEST * n, pulse) != Stop::converged) return {};
  if (gear->least_curvature < 0) return {};

  settle(point.x, problem.lower, problem.upper, sums);
  answer.value = derive(problem, point);
  answer.certificate = certify(point);
  answer.iterations = gear->iterations;
  const Terms terms = terms_of(point, problem.linear);
  answer.tolerance = problem.tol * terms.gradient;
  if (!is_optimal(answer.certificate, terms, answer.value, problem.tol)) return {};
  std::vector<Index> all(n);
  std::iota(all.begin(), all.end(), 0);
  if (convex_along(problem.hessian, n, all, starts) != Convex::yes) return {};
  return answer;
}

}  // namespace pairstep
