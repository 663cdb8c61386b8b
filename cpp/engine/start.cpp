#include "start.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "../core/certify.hpp"
#include "../core/convex.hpp"
#include "../core/feasible.hpp"
#include "../core/quadratic.hpp"
#include "../isa/dispatch.hpp"

namespace pairstep {

namespace {

enum class Found { minimum, many_at_bounds, not_convex };

// Block principal pivoting (Judice and Pires, 1994). Minimize over the free variables without their
// bounds. Then move every variable that left its bounds to the nearest one, free all variables at
// bounds whose derivative has the wrong sign, and repeat. The method is abandoned if it does not
// find the minimum within a few factorizations.
class Pivoting {
 public:
  Pivoting(const Small& problem, double* x)
      : problem_(problem), n_(problem.n), x_(x), gradient_(n_), free_(n_) {
    std::iota(free_.begin(), free_.end(), Index(0));
    shared_ = shared_costs(point(), problem.linear);
  }

  Found run() {
    // Give up after this many factorizations in a row without a new smallest number of misplaced
    // variables. The method may cycle, so a limit is needed; a larger one would cost more
    // factorizations in that case.
    constexpr int MAX_IDLE_ROUNDS = 3;
    // If the size of the terms of the gradient falls below this fraction of its largest value so
    // far, the terms vanish at the solution. A tolerance relative to their size there would be too
    // small, so the solve must start at another point.
    constexpr double VANISHING_SCALE = 1e-4;
    // If the first round misplaces more than half of the variables, other starts are better.
    Index fewest = n_ / 2 + 1;
    std::copy_n(problem_.lower, n_, x_);
    for (int idle = 0, round = 0; idle < MAX_IDLE_ROUNDS && free_.size() > 1; ++round) {
      reduced_.build(problem_.hessian, n_, {free_.begin() + 1, free_.end()},
                     std::vector<Index>(free_.size() - 1, free_[0]));
      if (reduced_.is_zero()) break;
      if (!reduced_.factorize(ConvexitySettings::rounding)) {
        if (round == 0) return Found::not_convex;
        break;
      }
      minimize();
      const Index wrong = exchange();
      if (wrong == 0 && scale_ < VANISHING_SCALE * largest_scale_) break;
      if (wrong == 0) return Found::minimum;
      if (round == 0 && wrong >= fewest) break;
      idle = wrong < fewest ? 0 : idle + 1;
      fewest = std::min(wrong, fewest);
    }
    return Found::many_at_bounds;
  }

 private:
  // Minimize over the free variables, without their bounds, while the others stay fixed.
  void minimize() {
    const Index first = free_[0], size = Index(free_.size()) - 1;
    const double missing = problem_.total - std::accumulate(x_, x_ + n_, 0.0);
    for (const Index i : free_) x_[i] += missing / double(size + 1);
    update_gradient();
    largest_scale_ = std::max(largest_scale_, scale_);
    step_.resize(size);
    for (Index a = 0; a < size; ++a) step_[a] = gradient_[first] - gradient_[free_[a + 1]];
    reduced_.solve(step_.data());
    for (Index a = 0; a < size; ++a) {
      x_[free_[a + 1]] += step_[a];
      x_[first] -= step_[a];
    }
  }

  // Move misplaced variables to a bound or into the free set, and return their number.
  Index exchange() {
    // A variable at a bound becomes free only if its derivative differs from the multiplier by more
    // than this fraction of the tolerance. Without a margin, rounding errors would free variables.
    // It is well below 1, so that the result satisfies the tolerance.
    constexpr double MARGIN_PER_TOLERANCE = 0.1;
    update_gradient();
    double multiplier = 0.0;
    for (const Index i : free_) multiplier += gradient_[i] / double(free_.size());
    const double margin = MARGIN_PER_TOLERANCE * problem_.tol * scale_;
    std::vector<Index> free;
    Index wrong = 0;
    auto member = free_.begin();
    for (Index i = 0; i < n_; ++i) {
      const double low = problem_.lower[i], high = problem_.upper[i];
      if (member != free_.end() && *member == i) {
        ++member;
        const double inside = std::clamp(x_[i], low, high);
        if (inside == x_[i]) free.push_back(i);
        else ++wrong;
        x_[i] = inside;
      } else if (low < high && (x_[i] == low ? gradient_[i] < multiplier - margin
                                             : gradient_[i] > multiplier + margin)) {
        free.push_back(i);
        ++wrong;
      }
    }
    free_ = std::move(free);
    return wrong;
  }

  void update_gradient() {
    quadratic(problem_.hessian, problem_.linear, n_, x_, gradient_.data());
    scale_ = terms_of(point(), problem_.linear, shared_.data()).gradient;
  }

  Point point() {
    return {n_, 1, starts_, gradient_.data(), x_, problem_.lower, problem_.upper, nullptr, nullptr};
  }

  const Small& problem_;
  Index n_;
  const Index starts_[2] = {0, n_};
  double* x_;
  // Size of the terms that cancel in the gradient: now, and the largest so far.
  double scale_ = 0.0, largest_scale_ = 0.0;
  std::vector<double> gradient_, step_;
  std::vector<Index> free_;
  std::vector<SharedCost> shared_;
  Reduced reduced_;
};

// Raise the variables from their lower bounds until the sum is reached, those with the smallest
// cost per unit first (see `fill`). At most one variable ends between its bounds.
void fill_smallest_first(const Small& problem, double* x) {
  const Index n = problem.n, starts[] = {0, n};
  std::vector<double> gradient(n), curvature(n);
  quadratic(problem.hessian, problem.linear, n, problem.lower, gradient.data());
  for (Index i = 0; i < n; ++i) curvature[i] = std::max(problem.hessian[i * (n + 1)], 0.0);
  fill(gradient.data(), curvature.data(), problem.lower, problem.upper, {1, starts, &problem.total},
       x);
}

}  // namespace

bool start(const Small& problem, double* x) {
  const Found found = Pivoting(problem, x).run();
  if (found == Found::not_convex) return false;
  if (found == Found::many_at_bounds) fill_smallest_first(problem, x);
  return true;
}

}  // namespace pairstep
