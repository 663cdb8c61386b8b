#include "dual_newton.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../core/inner.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

struct DualNewtonSettings {
  // Maximum number of Newton steps with the ridge of the problem. Usually about five suffice.
  static constexpr int max_steps = 12;
  static constexpr double usual_steps = 5.0;  // for the estimate of the cost
  // If max_steps do not suffice, start again with first_ridge times the ridge, and multiply this by
  // ridge_factor after each maximization. A factor closer to 1 needs more maximizations, but each
  // starts closer to its solution.
  static constexpr double first_ridge = 1e6, ridge_factor = 0.1;
  static constexpr int max_steps_per_ridge = 40;
  // Newton steps in x that remove the rounding error of the dual. Each costs one solve.
  static constexpr int refinements = 3;
  // A line search ends at this slope, relative to the slope at its start. A smaller value evaluates
  // more slopes per step; a larger one takes more steps.
  static constexpr double final_slope = 0.01;
  static constexpr double slope_rounding = 1e-14;  // relative rounding error of a slope
  // Added to the diagonal entry of each group, relative to the entry if all variables were free. It
  // keeps the Hessian of the dual positive definite if a group has no free variables.
  static constexpr double least_diagonal = 1e-12;
};

// Solve a symmetric system, given by the columns of its lower triangle, by Gaussian elimination
// with partial pivoting.
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

// Find a positive argument at which a decreasing function is within `tolerance` of 0, by regula
// falsi with the Illinois modification. `at_0` is the value of the function at 0. The first trial,
// 1, is the root if the set of free variables does not change on the way.
template <class Function>
double root_of(const Function& function, double at_0, double tolerance) {
  constexpr double MAX_ARGUMENT = 1 << 20;  // the search for a negative value doubles 20 times
  constexpr int MAX_ROUNDS = 40;            // as many as bisection needs for 12 digits
  double low = 0.0, high = 1.0, above = at_0, below = function(high);
  while (below > tolerance && high < MAX_ARGUMENT) {
    low = high;
    above = below;
    high *= 2.0;
    below = function(high);
  }
  double at = high, value = below;
  for (int round = 0, side = 0; round < MAX_ROUNDS && std::abs(value) > tolerance && below < 0;
       ++round) {
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

// With y = Ax - b as separate variables, the Lagrangian of x and y separates:
//   x_i = clip((lambda_g - c_i - A_i'y) / ridge_i, lower_i, upper_i),
// and the dual, concave and piecewise quadratic in (y, lambda), is
//   -|y|^2/2 - b'y + lambda'totals + sum_i (ridge_i x_i / 2 + c_i + A_i'y - lambda_g) x_i.
// If the squares have weights w, y is w (Ax - b) and the first term is y'(y / w)/2. Negative
// weights make the function indefinite. Its saddle point is then found by full Newton steps, which
// either reach the right set of free variables or fail.
class Dual {
 public:
  Dual(const Ridged& problem, const Point& point, std::vector<double> y, std::vector<double> lambda,
       ThreadPool& pool)
      : problem_(problem),
        point_(point),
        pool_(pool),
        y_(std::move(y)),
        lambda_(std::move(lambda)),
        slopes_(std::size_t(point.n)),
        x_(slopes_.size()),
        hessian_(unknowns() * unknowns()) {}

  // Maximize the dual for the ridge times `scale`. Return whether the maximum was found.
  bool maximize(double scale, int steps) {
    scale_ = scale;
    set_slopes(y_, lambda_, slopes_);
    for (Index i = 0; i < point_.n; ++i) slopes_[i] += problem_.c[i];
    set_x();
    for (int step = 0; step < steps; ++step) {
      pool_.interrupt().poll();
      if (pool_.interrupt().stopped()) return false;
      set_dual_gradient();
      set_hessian();
      direction_ = dual_gradient_;
      if (!solve(direction_)) return false;
      const std::vector<char> before = free_;
      const double length = search_along_direction();
      if (length == 0.0) return true;  // no further increase above rounding
      set_x();
      if (length == 1.0 && free_ == before) return true;
    }
    return false;
  }

  // Return x with its rounding errors removed. They come from the division of a difference of
  // derivatives by a small ridge. Newton steps in x itself on the free variables correct them, by
  // Woodbury's formula: with u = A dx and the remaining gradient r,
  //   dx = (r + dlambda - A'u) / ridge,
  // a system in (u, dlambda) with the Hessian of the dual.
  std::vector<double> refined() {
    set_hessian();
    const Index n = point_.n, m = rows();
    std::vector<double> y(y_.size()), gradient(x_.size()), step(x_.size());
    for (int round = 0; round < DualNewtonSettings::refinements; ++round) {
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
    pool_.run(rows(), [&](Index p) { part(p, problem_.A + p * point_.n); });
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
    add_transposed(problem_.A, rows(), point_.n, y.data(), slopes.data(), pool_);
  }

  void set_x() {
    free_.resize(x_.size());
    for (Index i = 0; i < point_.n; ++i) {
      x_[i] = within_bounds(i, -slopes_[i] / ridge(i));
      free_[i] = x_[i] > point_.lower[i] && x_[i] < point_.upper[i];
    }
  }

  void set_dual_gradient() {
    dual_gradient_.assign(std::size_t(unknowns()), 0.0);
    for_rows([&](Index p, const double* row) {
      times_vector(row, 1, point_.n, x_.data(), &dual_gradient_[p]);
      dual_gradient_[p] -= problem_.b[p] + inverse_weight(p) * y_[p];
    });
    for_groups([&](Index g, Index begin, Index end) {
      dual_gradient_[rows() + g] =
          problem_.totals[g] - std::accumulate(x_.begin() + begin, x_.begin() + end, 0.0);
    });
  }

  // Set minus the Hessian of the dual: the Gram matrix of the columns (A_i, -e_g) / sqrt(ridge_i)
  // of the free variables, plus the inverse weights (1 without weights) on the diagonal for y. Only
  // the lower triangle is set, by columns.
  void set_hessian() {
    const Index m = rows(), size = unknowns();
    std::vector<Index> free;
    std::vector<double> root;
    for (Index i = 0; i < point_.n; ++i) {
      if (!free_[i]) continue;
      free.push_back(i);
      root.push_back(1.0 / std::sqrt(ridge(i)));
    }
    const Index count = Index(free.size());
    Aligned scaled(std::max<Index>(m * count, 1)), block(m * m);
    std::fill_n(hessian_.data(), size * size, 0.0);
    for_rows([&](Index p, const double* row) {
      double* const to = scaled.data() + p * count;
      for (Index k = 0; k < count; ++k) to[k] = root[k] * row[free[k]];
      for (Index g = 0, k = 0; g < point_.n_groups; ++g) {
        const Index first = k;
        while (k < count && free[k] < point_.starts[g + 1]) ++k;
        double& entry = hessian_[p * size + m + g];
        times_vector(to + first, 1, k - first, root.data() + first, &entry);
        entry *= -1.0;
      }
    });
    gram({scaled.data(), count, m, 1, count}, block.data(), pool_);
    for (Index p = 0; p < m; ++p) {
      std::copy_n(block.data() + p * m + p, m - p, hessian_.data() + p * size + p);
      hessian_[p * size + p] += inverse_weight(p);
    }
    for_groups([&](Index g, Index begin, Index end) {
      double of_all = 0.0, of_free = 0.0;
      for (Index i = begin; i < end; ++i) {
        of_all += 1.0 / ridge(i);
        if (free_[i]) of_free += 1.0 / ridge(i);
      }
      hessian_[(m + g) * (size + 1)] = of_free + DualNewtonSettings::least_diagonal * of_all;
    });
  }

  // Replace b by the solution of the Newton system. Return whether it is finite.
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

  // Move near the maximum of the dual along the direction. Return the length of the step.
  double search_along_direction() {
    const Index m = rows();
    const double first =
        std::inner_product(dual_gradient_.begin(), dual_gradient_.end(), direction_.begin(), 0.0);
    std::vector<double> along(x_.size());
    set_slopes(direction_, {direction_.begin() + m, direction_.end()}, along);
    // Slope and curvature of the terms that do not depend on x.
    double fixed_slope = 0.0, curvature = 0.0;
    double size = 0.0;  // of the terms that depend on x
    for (Index p = 0; p < m; ++p) {
      fixed_slope -= direction_[p] * (problem_.b[p] + inverse_weight(p) * y_[p]);
      curvature += direction_[p] * inverse_weight(p) * direction_[p];
    }
    for (Index g = 0; g < point_.n_groups; ++g)
      fixed_slope += direction_[m + g] * problem_.totals[g];
    for (Index i = 0; i < point_.n; ++i) size += std::abs(along[i] * x_[i]);
    const double rounding = DualNewtonSettings::slope_rounding * (size + std::abs(fixed_slope));
    if (!problem_.weight && first <= rounding) return 0.0;
    const auto slope = [&](double length) {
      double sum = fixed_slope - length * curvature;
      for (Index i = 0; i < point_.n; ++i)
        sum += along[i] * within_bounds(i, -(slopes_[i] + length * along[i]) / ridge(i));
      return sum;
    };
    const double length =
        problem_.weight
            ? 1.0
            : root_of(slope, first, std::max(DualNewtonSettings::final_slope * first, rounding));
    for (Index p = 0; p < m; ++p) y_[p] += length * direction_[p];
    for (Index g = 0; g < point_.n_groups; ++g) lambda_[g] += length * direction_[m + g];
    for (Index i = 0; i < point_.n; ++i) slopes_[i] += length * along[i];
    return length;
  }

  const Ridged& problem_;
  const Point& point_;
  ThreadPool& pool_;
  std::vector<double> y_, lambda_;
  std::vector<double> slopes_, x_;  // slopes = c + A'y - lambda
  std::vector<double> dual_gradient_, direction_;
  std::vector<char> free_;
  Aligned hessian_;
  double scale_ = 1.0;
};

}  // namespace

double cost_of_dual_newton(Index m, Index n) {
  return DualNewtonSettings::usual_steps * double(n) * double(m) * (4.0 + 0.5 * double(m));
}

bool dual_newton(const Ridged& problem, const Point& point, const std::vector<double>& residual,
                 const std::vector<double>& multiplier, std::vector<double>& x, ThreadPool& pool) {
  // A small ridge makes the dual nearly piecewise linear, so that Newton steps are short. A larger
  // ridge makes it smoother, and its maximum is a starting point for a smaller ridge.
  using Settings = DualNewtonSettings;
  for (const double first : {1.0, Settings::first_ridge}) {
    if (first > 1.0 && problem.weight) break;
    Dual dual(problem, point, residual, multiplier, pool);
    bool found = false;
    for (double scale = first; scale > 0.5; scale *= Settings::ridge_factor)
      found =
          dual.maximize(scale, first > 1.0 ? Settings::max_steps_per_ridge : Settings::max_steps);
    if (!found) continue;
    x = dual.refined();
    return true;
  }
  return false;
}

}  // namespace pairstep
