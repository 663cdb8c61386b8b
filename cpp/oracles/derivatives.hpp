// The gradient and the one-sided derivatives of all variables of a problem, or of some of them, in
// the memory of this process; and estimates of their rounding errors.
#pragma once

#include <limits>
#include <vector>

#include "../core/thread_pool.hpp"
#include "../engine/oracle.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

class Derivatives {
 public:
  // For all variables of a point. x stays where the solver keeps it; the gradient is stored here,
  // followed by `padding` unused entries that tiles may overwrite.
  explicit Derivatives(const Point& point, Index padding = 0)
      : point_(point), table_(point.n), gradient_(std::size_t(point.n + padding), 0.0) {
    point_.gradient = gradient_.data();
    enter_all();
  }

  // For some variables of `whole`, in ascending order, with copies of x, bounds and L1 terms.
  Derivatives(const Derivatives& whole, std::vector<Index> coordinates, Index padding)
      : Derivatives(std::move(coordinates), whole, padding) {
    enter_all();
  }

  Derivatives(const Derivatives&) = delete;
  Derivatives& operator=(const Derivatives&) = delete;

  const Point& point() const { return point_; }
  const PositionTable& table() const { return table_; }
  double* gradient() { return gradient_.data(); }
  const double* gradient() const { return gradient_.data(); }
  Index count() const { return point_.n; }

  double left_derivative(Index p) const { return gradient_[p] + table_.left_shift[p]; }
  double right_derivative(Index p) const { return gradient_[p] + table_.right_shift[p]; }
  bool is_free(Index p) const {
    return table_.max_decrease[p] > 0 && table_.max_increase[p] > 0 &&
           table_.left_shift[p] == table_.right_shift[p];
  }
  MultiplierInterval interval(Index group) const {
    MultiplierInterval interval;
    for (Index p = point_.starts[group]; p < point_.starts[group + 1]; ++p) {
      interval.max_left = std::max(interval.max_left, left_derivative(p));
      interval.min_right = std::min(interval.min_right, right_derivative(p));
    }
    return interval;
  }

  // Update the table after x[p] changed.
  void enter(Index p) { table_.update(point_, p); }
  void enter_all() { table_.update_all(point_); }
  void set_x(Index p, double x) {
    point_.x[p] = x;
    enter(p);
  }

  // Implement Oracle::select_candidates. Variable p is reported as `coordinates[p]`, or as p if
  // `coordinates` is null.
  void select_candidates(Index count, bool with_free, const Index* coordinates,
                         Candidates& found) const {
    found.coordinates.clear();
    found.gradient.clear();
    const auto report = [&](Index p) {
      found.coordinates.push_back(coordinates ? coordinates[p] : p);
      found.gradient.push_back(gradient_[p]);
    };
    TopCandidates top_candidates;
    bool has_all = true;  // whether every variable is reported
    for (Index g = 0; g < point_.n_groups; ++g) {
      if (count >= point_.starts[g + 1] - point_.starts[g]) {
        for (Index p = point_.starts[g]; p < point_.starts[g + 1]; ++p) report(p);
        continue;
      }
      has_all = false;
      isa().top_candidates(table_, point_.starts[g], point_.starts[g + 1], count, top_candidates);
      for (const Index p : top_candidates.decreasing) report(p);
      for (const Index p : top_candidates.increasing) report(p);
    }
    if (!with_free || has_all) return;
    for (Index p = 0; p < point_.n; ++p)
      if (is_free(p)) report(p);
  }

 private:
  Derivatives(std::vector<Index> coordinates, const Derivatives& whole, Index padding)
      : point_(whole.point_),
        table_(Index(coordinates.size())),
        gradient_(coordinates.size() + std::size_t(padding), 0.0) {
    const auto pick = [&](const double* from, std::vector<double>& to) -> double* {
      if (!from) return nullptr;
      for (const Index i : coordinates) to.push_back(from[i]);
      return to.data();
    };
    const Point& from = whole.point_;
    for (Index g = 0; g <= from.n_groups; ++g)
      starts_.push_back(std::lower_bound(coordinates.begin(), coordinates.end(), from.starts[g]) -
                        coordinates.begin());
    point_.n = Index(coordinates.size());
    point_.starts = starts_.data();
    point_.x = pick(from.x, x_);
    point_.lower = pick(from.lower, lower_);
    point_.upper = pick(from.upper, upper_);
    point_.l1 = pick(from.l1, l1_);
    point_.breakpoint = pick(from.breakpoint, breakpoint_);
    point_.gradient = gradient_.data();
    for (std::size_t p = 0; p < coordinates.size(); ++p)
      gradient_[p] = whole.gradient_[coordinates[p]];
  }

  Point point_;
  OwnPositionTable table_;
  std::vector<double> gradient_;
  std::vector<double> x_, lower_, upper_, l1_, breakpoint_;  // copies, if only some variables
  std::vector<Index> starts_;
};

// An oracle that works in this process, with the threads of the current call. `lend` sets them.
class LocalOracle : public Oracle {
 public:
  explicit LocalOracle(ThreadPool& pool) : pool_(&pool) {}
  void lend(ThreadPool& pool) { pool_ = &pool; }

 protected:
  ThreadPool& pool() { return *pool_; }

 private:
  ThreadPool* pool_;
};

// Result of recomputing part of a gradient.
struct Recomputed {
  Index count;   // gradients that were recomputed
  double error;  // largest difference from the gradient before
};

// The variables that are not 0, and their values.
struct Support {
  std::vector<Index> coordinates;
  std::vector<double> weights;

  explicit Support(const Point& point) {
    for (Index i = 0; i < point.n; ++i)
      if (point.x[i] != 0) {
        coordinates.push_back(i);
        weights.push_back(point.x[i]);
      }
  }
};

// Estimate of the float64 rounding error of the gradient at the variables that determine the
// violation: about eps sum_j |x_j K_ij|, where |K_ij| <= sqrt(K_ii K_jj).
class Noise {
 public:
  // For the first n variables of a point; diagonal(i) returns K_ii.
  template <class Diagonal>
  Noise(const Point& point, Index n, Diagonal diagonal) : roots_(std::size_t(n)) {
    double sum = 0.0;
    for (Index i = 0; i < n; ++i) {
      roots_[i] = std::sqrt(std::abs(double(diagonal(i))));
      largest_ = std::max(largest_, roots_[i]);
      sum += std::max(std::abs(point.lower[i]), std::abs(point.upper[i])) * roots_[i];
    }
    most_ = std::numeric_limits<double>::epsilon() * largest_ * sum;
  }

  // At the candidates with the extreme derivatives of each group, from x of all variables.
  double at(const Point& point, const Candidates& found) const {
    if (most_ <= NEGLIGIBLE_ERROR) return most_;
    double sum = 0.0;
    for (Index i = 0; i < point.n; ++i) sum += std::abs(point.x[i]) * roots_[i];
    const double most = std::numeric_limits<double>::epsilon() * largest_ * sum;
    if (most <= NEGLIGIBLE_ERROR) return most;
    struct Extreme {
      double derivative;
      Index coordinate;
    };
    std::vector<Extreme> max_left(std::size_t(point.n_groups), {-INFINITY, -1}),
        min_right(std::size_t(point.n_groups), {INFINITY, -1});
    for (std::size_t k = 0; k < found.coordinates.size(); ++k) {
      const Index i = found.coordinates[k], g = group_of(point, i);
      const Position here = position_of(point, i);
      const double left = found.gradient[k] + here.left_shift,
                   right = found.gradient[k] + here.right_shift;
      if (left > max_left[g].derivative) max_left[g] = {left, i};
      if (right < min_right[g].derivative) min_right[g] = {right, i};
    }
    double root = 0.0;
    for (const auto* side : {&max_left, &min_right})
      for (const Extreme& one : *side)
        if (one.coordinate >= 0) root = std::max(root, roots_[one.coordinate]);
    return std::numeric_limits<double>::epsilon() * root * sum;
  }

 private:
  // Error of a derivative that is far below any useful tolerance: an upper bound of at most this is
  // not refined.
  static constexpr double NEGLIGIBLE_ERROR = 1e-9;

  std::vector<double> roots_;
  double largest_ = 0.0;
  double most_ = 0.0;  // upper bound for every point within the bounds
};

// Size of the terms that cancel in the gradient of a quadratic: the largest entry of |Qx|, |c| and
// the L1 weights.
inline double canceling_scale(const Point& point, const double* gradient, const double* linear) {
  double scale = 0.0;
  for (Index i = 0; i < point.n; ++i)
    scale = std::max({scale, std::abs(gradient[i] - linear[i]), std::abs(linear[i]),
                      point.l1 ? point.l1[i] : 0.0});
  return scale;
}

}  // namespace pairstep
