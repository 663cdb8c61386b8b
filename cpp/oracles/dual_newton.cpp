#include "dual_newton.hpp"

#include <algorithm>
#include <cmath>

#include "../core/inner.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

// Newton steps at once, and, where they do not do, for each ridge on the way down to the problem's.
constexpr int STEPS = 12, STEPS_EACH = 40, HALVINGS = 30, REFINEMENTS = 2;
constexpr double MUCH_RIDGE = 1e3;

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
        x_(slopes_.size()) {}

  // The point, with what rounding has left of the sums spread over all free variables: one alone
  // would be seen to differ.
  std::vector<double> point() const {
    std::vector<double> x = x_;
    for (Index g = 0; g < point_.n_groups; ++g) {
      const Index begin = point_.starts[g], end = point_.starts[g + 1];
      for (int round = 0; round < REFINEMENTS; ++round) {
        long double missing = problem_.totals[g];
        for (Index i = begin; i < end; ++i) missing -= x[i];
        const double each =
            double(missing) / double(std::count(free_.begin() + begin, free_.begin() + end, 1));
        if (!std::isfinite(each)) break;
        for (Index i = begin; i < end; ++i)
          if (free_[i]) x[i] = std::min(std::max(x[i] + each, point_.lower[i]), point_.upper[i]);
      }
    }
    return x;
  }

  // For the ridge times `scale`. Whether the maximum was found.
  bool maximise(double scale, int steps) {
    scale_ = scale;
    set_slopes(y_.data(), slopes_.data());
    for (Index i = 0; i < point_.n; ++i) slopes_[i] += problem_.c[i];
    value_ = evaluate(y_, lambda_, slopes_, x_);
    mark_free();
    for (int step = 0; step < steps; ++step) {
      team_.pulse().beat();
      if (team_.pulse().stopped() || !find_direction()) return false;
      const std::vector<char> before = free_;
      const double length = advance();
      if (length == 0.0) return true;  // nothing rises any more but by rounding
      mark_free();
      if (length == 1.0 && free_ == before) return true;
    }
    return false;
  }

 private:
  Index rows() const { return problem_.m; }
  double inverse_weight(Index p) const { return problem_.weight ? 1.0 / problem_.weight[p] : 1.0; }
  double ridge(Index i) const { return scale_ * problem_.ridge[i]; }
  Index unknowns() const { return rows() + point_.n_groups; }

  template <class Part>
  void for_rows(Part part) {
    team_.run(rows(), [&](Index p) { part(p, problem_.A + p * point_.n); });
  }

  // out = A' by
  void set_slopes(const double* by, double* out) {
    std::fill_n(out, point_.n, 0.0);
    add_transposed(problem_.A, rows(), point_.n, by, out, team_);
  }

  // x and the value of the dual, where slopes = c + A'y.
  double evaluate(const std::vector<double>& y, const std::vector<double>& lambda,
                  const std::vector<double>& slopes, std::vector<double>& x) const {
    double value = 0.0;
    for (Index p = 0; p < rows(); ++p)
      value -= y[p] * (0.5 * inverse_weight(p) * y[p] + problem_.b[p]);
    for (Index g = 0; g < point_.n_groups; ++g) {
      double sum = lambda[g] * problem_.totals[g];
      for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i) {
        const double bend = ridge(i), slope = slopes[i] - lambda[g];
        x[i] = std::min(std::max(-slope / bend, point_.lower[i]), point_.upper[i]);
        sum += x[i] * (0.5 * bend * x[i] + slope);
      }
      value += sum;
    }
    return value;
  }

  void mark_free() {
    free_.resize(x_.size());
    for (Index i = 0; i < point_.n; ++i)
      free_[i] = x_[i] > point_.lower[i] && x_[i] < point_.upper[i];
  }

  // The Hessian is the Gram matrix of the columns (A_i, -e_g) / sqrt(ridge_i) of the free
  // variables, and the identity for y.
  bool find_direction() {
    const Index m = rows(), size = unknowns();
    std::vector<Index> who;
    std::vector<double> root, weight(x_.size(), 0.0);
    for (Index i = 0; i < point_.n; ++i) {
      if (!free_[i]) continue;
      who.push_back(i);
      root.push_back(1.0 / std::sqrt(ridge(i)));
      weight[i] = 1.0 / ridge(i);
    }
    const Index count = Index(who.size());
    Aligned scaled(std::max<Index>(m * count, 1)), block(m * m);
    Aligned hessian(size * size);
    std::fill_n(hessian.data(), size * size, 0.0);
    rise_.assign(std::size_t(size), 0.0);
    for_rows([&](Index p, const double* row) {
      double* const to = scaled.data() + p * count;
      for (Index k = 0; k < count; ++k) to[k] = root[k] * row[who[k]];
      double sum = -problem_.b[p] - inverse_weight(p) * y_[p];
      for (Index g = 0; g < point_.n_groups; ++g) {
        double own = 0.0;
        for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i) {
          sum += row[i] * x_[i];
          own += row[i] * weight[i];
        }
        hessian[p * size + m + g] = -own;  // the lower triangle, by columns
      }
      rise_[p] = sum;
    });
    gram({scaled.data(), count, m, 1, count}, block.data(), team_);
    for (Index p = 0; p < m; ++p) {
      std::copy_n(block.data() + p * m + p, m - p, hessian.data() + p * size + p);
      hessian[p * size + p] += inverse_weight(p);
    }
    for (Index g = 0; g < point_.n_groups; ++g) {
      double all = 0.0, own = 0.0, sum = problem_.totals[g];
      for (Index i = point_.starts[g]; i < point_.starts[g + 1]; ++i) {
        sum -= x_[i];
        own += weight[i];
        all += 1.0 / ridge(i);
      }
      // Where nobody of a group is free, a little of what all of them would add.
      hessian[(m + g) * (size + 1)] = own + 1e-12 * all;
      rise_[m + g] = sum;
    }
    direction_ = rise_;
    if (problem_.weight) {
      if (!solve_indefinite(hessian.data(), size, direction_.data())) return false;
    } else {
      if (!isa().cholesky(hessian.data(), size, size)) return false;
      isa().cholesky_solve(hessian.data(), size, size, direction_.data(), 1);
    }
    return std::all_of(direction_.begin(), direction_.end(),
                       [](double d) { return std::isfinite(d); });
  }

  // As far along the direction as the dual rises enough. The length of the step.
  double advance() {
    const Index m = rows();
    double slope = 0.0;
    for (Index k = 0; k < unknowns(); ++k) slope += rise_[k] * direction_[k];
    std::vector<double> along(x_.size()), y(y_), lambda(lambda_), slopes(slopes_), x(x_);
    set_slopes(direction_.data(), along.data());
    const double rounding = 1e-14 * std::abs(value_);
    double length = 1.0;
    for (int halving = 0; halving < HALVINGS; ++halving, length *= 0.5) {
      for (Index p = 0; p < m; ++p) y[p] = y_[p] + length * direction_[p];
      for (Index g = 0; g < point_.n_groups; ++g)
        lambda[g] = lambda_[g] + length * direction_[m + g];
      for (Index i = 0; i < point_.n; ++i) slopes[i] = slopes_[i] + length * along[i];
      const double value = evaluate(y, lambda, slopes, x);
      const bool rises = value >= value_ + 1e-4 * length * slope - rounding;
      if (!rises && !problem_.weight) continue;
      y_.swap(y);
      lambda_.swap(lambda);
      slopes_.swap(slopes);
      x_.swap(x);
      value_ = value;
      return length;
    }
    return 0.0;
  }

  const Ridged& problem_;
  const Point& point_;
  Team& team_;
  std::vector<double> y_, lambda_, slopes_, x_, rise_, direction_;
  std::vector<char> free_;
  double value_ = 0.0, scale_ = 1.0;
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
    dual.maximise(1.0, REFINEMENTS);  // from slopes that are computed anew
    x = dual.point();
    return true;
  }
  return false;
}

}  // namespace pairstep
