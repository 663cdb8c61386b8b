#include "dual_newton.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../core/inner.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// Newton steps at once, and, where they do not do, for each ridge on the way down to the problem's.
constexpr int STEPS = 12, STEPS_EACH = 40, REFINEMENTS = 3;
constexpr double MUCH_RIDGE = 1e6;
constexpr double FLAT = 0.01;  // of the slope at the start of a line search

// Solves a symmetric system, its lower triangle given by columns, by Gauss steps with pivots.
bool solve_indefinite(double* matrix, Index n, double* b) {
  for (Index c = 0; c < n; ++c)
    for (Index r = 0; r < c; ++r) matrix[c * n + r] = matrix[r * n + c];
  for (Index c = 0; c < n; ++c) {
    Index pivot = c;
    for (Index r = c + 1; r < n; ++r)
      if (std::abs(matrix[r * n + c]) > std::abs(matrix[pivot * n + c])) pivot = r;
    if (matrix[pivot * n + c] == 0.0) return false;
    std::swap_ranges(matrix + c * n, matrix + (c + 1) * n, matrix + pivot * n);
    std::swap(b[c], b[pivot]);
    for (Index r = c + 1; r < n; ++r) {
      const double ratio = matrix[r * n + c] / matrix[c * n + c];
      for (Index k = c; k < n; ++k) matrix[r * n + k] -= ratio * matrix[c * n + k];
      b[r] -= ratio * b[c];
    }
  }
  for (Index r = n; r-- > 0;) {
    for (Index k = r + 1; k < n; ++k) b[r] -= matrix[r * n + k] * b[k];
    b[r] /= matrix[r * (n + 1)];
  }
  return true;
}

// Where a falling function is 0, or within `close` of it, from its value at 0 on: 1 if it is close
// there, as it is once the free variables are the right ones. (Regula falsi, as Illinois has it.)
template <class Function>
double root_of(const Function& function, double at_0, double close) {
  constexpr double FURTHEST = 1 << 20;
  constexpr int ROUNDS = 40;
  double low = 0.0, high = 1.0, above = at_0, below = function(high);
  while (below > close && high < FURTHEST) {
    low = high;
    above = below;
    high *= 2.0;
    below = function(high);
  }
  double at = high, value = below;
  for (int round = 0, side = 0; round < ROUNDS && std::abs(value) > close && below < 0; ++round) {
    at = (low * below - high * above) / (below - above);
    value = function(at);
    const int now = value > 0 ? 1 : -1;
    if (now > 0) {
      low = at;
      above = value;
      if (side == now) below *= 0.5;
    } else {
      high = at;
      below = value;
      if (side == now) above *= 0.5;
    }
    side = now;
  }
  return at;
}

// With y = Ax - b as variables of their own, the Lagrangian of x and y falls apart into numbers:
//   x_i = clip((lambda_g - c_i - A_i'y) / ridge_i, lower_i, upper_i),
// and the dual, concave and piecewise quadratic in (y, lambda), is
//   -|y|^2/2 - b'y + lambda'totals + sum_i (ridge_i x_i / 2 + c_i + A_i'y - lambda_g) x_i.
// Where squares have weights w, y is w (Ax - b) and the first term y'(y / w)/2. With some below 0
// that is no longer concave; its saddle point is found by whole Newton steps, which change the free
// variables until they are right, or fail.
class Dual {
 public:
  Dual(const Ridged& problem, const Point& point, std::vector<double> y, std::vector<double> lambda,
       Team& team)
      : problem_(problem),
        point_(point),
        team_(team),
        y_(std::move(y)),
        lambda_(std::move(lambda)),
        slopes_(std::size_t(point.n)),
        x_(slopes_.size()),
        hessian_(unknowns() * unknowns()) {}

  // For the ridge times `scale`. Whether the maximum was found.
  bool maximise(double scale, int steps) {
    scale_ = scale;
    set_slopes(y_, lambda_, slopes_);
    for (Index i = 0; i < point_.n; ++i) slopes_[i] += problem_.c[i];
    set_x();
    for (int step = 0; step < steps; ++step) {
      team_.pulse().beat();
      if (team_.pulse().stopped()) return false;
      set_rise();
      set_hessian();
      direction_ = rise_;
      if (!solve(direction_)) return false;
      const std::vector<char> before = free_;
      const double length = advance();
      if (length == 0.0) return true;  // nothing rises any more but by rounding
      set_x();
      if (length == 1.0 && free_ == before) return true;
    }
    return false;
  }

  // The point, without what rounding has put into it: of x_i, as a difference of prices that is
  // divided by a small ridge. Newton steps on the free variables in x itself, by Woodbury's
  // formula: with u = A dx and the gradient's part r that is left,
  //   dx = (r + dlambda - A'u) / ridge,
  // a system in (u, dlambda) with the Hessian of the dual.
  std::vector<double> refined() {
    set_hessian();
    const Index n = point_.n, m = rows();
    std::vector<double> y(y_.size()), gradient(x_.size()), step(x_.size());
    for (int round = 0; round < REFINEMENTS; ++round) {
      for_rows([&](Index p, const double* row) {
        times_vector(row, 1, n, x_.data(), &y[p]);
        y[p] = (y[p] - problem_.b[p]) / inverse_weight(p);
      });
      set_slopes(y, lambda_, gradient);
      for (Index i = 0; i < n; ++i) {
        gradient[i] += problem_.c[i] + ridge(i) * x_[i];
        step[i] = free_[i] ? -gradient[i] / ridge(i) : 0.0;
      }
      std::vector<double> change(std::size_t(unknowns()), 0.0);
      for_rows(
          [&](Index p, const double* row) { times_vector(row, 1, n, step.data(), &change[p]); });
      for_groups([&](Index g, Index begin, Index end) {
        long double missing = problem_.totals[g];
        for (Index i = begin; i < end; ++i) missing -= x_[i] + (long double)step[i];
        change[m + g] = double(missing);
      });
      if (!solve(change)) break;
      const std::vector<double> change_of_lambda(change.begin() + m, change.end());
      change.resize(std::size_t(m));
      set_slopes(change, change_of_lambda, gradient);
      for (Index i = 0; i < n; ++i)
        if (free_[i]) x_[i] = within_bounds(i, x_[i] + step[i] - gradient[i] / ridge(i));
      for (Index g = 0; g < point_.n_groups; ++g) lambda_[g] += change_of_lambda[g];
    }
    return x_;
  }

 private:
  Index rows() const { return problem_.m; }
  double inverse_weight(Index p) const { return problem_.weight ? 1.0 / problem_.weight[p] : 1.0; }
  double ridge(Index i) const { return scale_ * problem_.ridge[i]; }
  Index unknowns() const { return rows() + point_.n_groups; }
  double within_bounds(Index i, double x) const {
    return std::min(std::max(x, point_.lower[i]), point_.upper[i]);
  }

  template <class Part>
  void for_rows(Part part) {
    team_.run(rows(), [&](Index p) { part(p, problem_.A + p * point_.n); });
  }

  template <class Part>
  void for_groups(Part part) const {
    for (Index g = 0; g < point_.n_groups; ++g) part(g, point_.starts[g], point_.starts[g + 1]);
  }

  // slopes = A'y - lambda
  void set_slopes(const std::vector<double>& y, const std::vector<double>& lambda,
                  std::vector<double>& slopes) {
    for_groups([&](Index g, Index begin, Index end) {
      std::fill(slopes.begin() + begin, slopes.begin() + end, -lambda[g]);
    });
    add_transposed(problem_.A, rows(), point_.n, y.data(), slopes.data(), team_);
  }

  void set_x() {
    free_.resize(x_.size());
    for (Index i = 0; i < point_.n; ++i) {
      x_[i] = within_bounds(i, -slopes_[i] / ridge(i));
      free_[i] = x_[i] > point_.lower[i] && x_[i] < point_.upper[i];
    }
  }

  // The gradient of the dual.
  void set_rise() {
    rise_.assign(std::size_t(unknowns()), 0.0);
    for_rows([&](Index p, const double* row) {
      times_vector(row, 1, point_.n, x_.data(), &rise_[p]);
      rise_[p] -= problem_.b[p] + inverse_weight(p) * y_[p];
    });
    for_groups([&](Index g, Index begin, Index end) {
      rise_[rows() + g] =
          problem_.totals[g] - std::accumulate(x_.begin() + begin, x_.begin() + end, 0.0);
    });
  }

  // Minus its Hessian: the Gram matrix of the columns (A_i, -e_g) / sqrt(ridge_i) of the free
  // variables, and the identity for y. Its lower triangle, by columns.
  void set_hessian() {
    const Index m = rows(), size = unknowns();
    std::vector<Index> who;
    std::vector<double> root;
    for (Index i = 0; i < point_.n; ++i) {
      if (!free_[i]) continue;
      who.push_back(i);
      root.push_back(1.0 / std::sqrt(ridge(i)));
    }
    const Index count = Index(who.size());
    Aligned scaled(std::max<Index>(m * count, 1)), block(m * m);
    std::fill_n(hessian_.data(), size * size, 0.0);
    for_rows([&](Index p, const double* row) {
      double* const to = scaled.data() + p * count;
      for (Index k = 0; k < count; ++k) to[k] = root[k] * row[who[k]];
      for (Index g = 0, k = 0; g < point_.n_groups; ++g) {
        const Index first = k;
        while (k < count && who[k] < point_.starts[g + 1]) ++k;
        double& own = hessian_[p * size + m + g];
        times_vector(to + first, 1, k - first, root.data() + first, &own);
        own *= -1.0;
      }
    });
    gram({scaled.data(), count, m, 1, count}, block.data(), team_);
    for (Index p = 0; p < m; ++p) {
      std::copy_n(block.data() + p * m + p, m - p, hessian_.data() + p * size + p);
      hessian_[p * size + p] += inverse_weight(p);
    }
    for_groups([&](Index g, Index begin, Index end) {
      double all = 0.0, own = 0.0;
      for (Index i = begin; i < end; ++i) {
        all += 1.0 / ridge(i);
        if (free_[i]) own += 1.0 / ridge(i);
      }
      // Where nobody of a group is free, a little of what all of them would add.
      hessian_[(m + g) * (size + 1)] = own + 1e-12 * all;
    });
  }

  // Whether there is a finite solution, in place of b.
  bool solve(std::vector<double>& b) {
    const Index size = unknowns();
    Aligned factor(size * size);
    std::copy_n(hessian_.data(), size * size, factor.data());
    if (problem_.weight) {
      if (!solve_indefinite(factor.data(), size, b.data())) return false;
    } else {
      if (!isa().cholesky(factor.data(), size, size)) return false;
      isa().cholesky_solve(factor.data(), size, size, b.data(), 1);
    }
    return std::all_of(b.begin(), b.end(), [](double d) { return std::isfinite(d); });
  }

  // To where the dual is largest along the direction, or close to it. The length of the step.
  double advance() {
    const Index m = rows();
    const double first = std::inner_product(rise_.begin(), rise_.end(), direction_.begin(), 0.0);
    std::vector<double> along(x_.size());
    set_slopes(direction_, {direction_.begin() + m, direction_.end()}, along);
    double fixed = 0.0, bend = 0.0, size = 0.0;  // of the terms that do not depend on x
    for (Index p = 0; p < m; ++p) {
      fixed -= direction_[p] * (problem_.b[p] + inverse_weight(p) * y_[p]);
      bend += direction_[p] * inverse_weight(p) * direction_[p];
    }
    for (Index g = 0; g < point_.n_groups; ++g) fixed += direction_[m + g] * problem_.totals[g];
    for (Index i = 0; i < point_.n; ++i) size += std::abs(along[i] * x_[i]);
    const double rounding = 1e-14 * (size + std::abs(fixed));
    if (!problem_.weight && first <= rounding) return 0.0;
    const auto slope = [&](double length) {
      double sum = fixed - length * bend;
      for (Index i = 0; i < point_.n; ++i)
        sum += along[i] * within_bounds(i, -(slopes_[i] + length * along[i]) / ridge(i));
      return sum;
    };
    const double length =
        problem_.weight ? 1.0 : root_of(slope, first, std::max(FLAT * first, rounding));
    for (Index p = 0; p < m; ++p) y_[p] += length * direction_[p];
    for (Index g = 0; g < point_.n_groups; ++g) lambda_[g] += length * direction_[m + g];
    for (Index i = 0; i < point_.n; ++i) slopes_[i] += length * along[i];
    return length;
  }

  const Ridged& problem_;
  const Point& point_;
  Team& team_;
  std::vector<double> y_, lambda_;
  std::vector<double> slopes_, x_;  // slopes = c + A'y - lambda
  std::vector<double> rise_, direction_;
  std::vector<char> free_;
  Aligned hessian_;
  double scale_ = 1.0;
};

}  // namespace

double cost_of_dual_newton(Index m, Index n) {
  constexpr double USUAL_STEPS = 5.0;
  return USUAL_STEPS * double(n) * double(m) * (4.0 + 0.5 * double(m));
}

bool dual_newton(const Ridged& problem, const Point& point, const std::vector<double>& residual,
                 const std::vector<double>& multiplier, std::vector<double>& x, Team& team) {
  // With little ridge the dual is nearly a polyhedron, on which Newton's steps are short. With more
  // it is round, and its maximum is a start for less.
  for (const double first : {1.0, MUCH_RIDGE}) {
    if (first > 1.0 && problem.weight) break;
    Dual dual(problem, point, residual, multiplier, team);
    bool found = false;
    for (double scale = first; scale > 0.5; scale *= 0.1)
      found = dual.maximise(scale, first > 1.0 ? STEPS_EACH : STEPS);
    if (!found) continue;
    x = dual.refined();
    return true;
  }
  return false;
}

}  // namespace pairstep
