#include "small.hpp"

#include <algorithm>
#include <cmath>

#include "../core/feasible.hpp"
#include "../core/pulse.hpp"
#include "../core/quadratic.hpp"
#include "../core/symmetry.hpp"
#include "../isa/dispatch.hpp"
#include "start.hpp"

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
  const Point point{
      n,       1,      starts, gradient.data(), answer.x.data(), problem.lower, problem.upper,
      nullptr, nullptr};
  if (!start(problem, point.x)) return {};
  const auto is_settled_and_optimal = [&] {
    settle(point.x, problem.lower, problem.upper, sums);
    answer.value = derive(problem, point);
    answer.certificate = certify(point);
    const Terms terms = terms_of(point, problem.linear);
    answer.tolerance = problem.tol * terms.gradient;
    return is_optimal(answer.certificate, terms, answer.value, problem.tol);
  };
  if (is_settled_and_optimal()) return answer;
  const auto gear = isa().automatic(problem.hessian, n);
  gear->begin(point, answer.value);
  if (gear->run(answer.tolerance, LONGEST * n, pulse) != Stop::converged) return {};
  answer.iterations = gear->iterations;
  if (gear->least_curvature < 0 || !is_settled_and_optimal()) return {};
  return answer;
}

}  // namespace pairstep
