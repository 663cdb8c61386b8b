#include "block_solver.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "../core/feasible.hpp"

namespace pairstep {

BlockSolver::BlockSolver(Oracle& oracle, const Point& point, const BlockTask& task)
    : oracle_(oracle), point_(point), task_(task), with_free_(task.eager) {
  levels_.push_back({.set_size = Settings::first_set_size, .newton_phase = task.eager});
}

StopReason BlockSolver::run(double tol, Index max_iter, Index rounds, ThreadPool& pool) {
  InterruptCheck& interrupt = pool.interrupt();
  if (tol != tol_) failed_checks_in_all_ = 0;
  tol_ = tol;
  failed_checks_ = 0;
  for (; rounds > 0; --rounds) {
    interrupt.poll();
    update_candidates(candidates_per_round());
    if (violation <= goal()) {
      if (levels_.size() > 1) {  // variables left out may still violate optimality
        unshrink();
        continue;
      }
      if (verify_optimality()) return StopReason::optimal;
      if (are_checks_exhausted()) return StopReason::imprecise;
      update_candidates(candidates_per_round());
    }
    if (iterations >= max_iter) return StopReason::max_iter;
    if (interrupt.stopped()) return StopReason::stopped;
    record_progress();
    if (is_stuck()) {
      if (levels_.size() == 1) return StopReason::imprecise;
      unshrink();
      continue;
    }
    if (try_direct_solve()) {
      // The violation after a direct solve is mostly rounding, which more rounds would only spread.
      return violation <= tolerance() && verify_optimality() ? StopReason::optimal
                                                             : StopReason::solved_directly;
    }
    if (++rounds_ % Settings::rounds_between_shrinks == 0 &&
        point_.n > Settings::min_variables_to_shrink && try_to_shrink())
      continue;
    if (const StopReason stop = work_on_block(max_iter, pool); stop != StopReason::paused)
      return stop;
  }
  return StopReason::paused;
}

void BlockSolver::conclude() {
  while (levels_.size() > 1) unshrink();
  verify_optimality();
}

// Update candidates_, the multiplier intervals and the violation.
void BlockSolver::update_candidates(Index count) {
  oracle_.select_candidates(count / 2, with_free_, candidates_);
  violation = violation_of(point_, candidates_, intervals_);
  scale = candidates_.scale;
  if (first_scale_ < 0) first_scale_ = scale;
  if (progress().first_violation < 0) progress().first_violation = violation;
}

// Restore exact sums, recompute the gradient in float64, and return whether the true violation is
// within the tolerance.
bool BlockSolver::verify_optimality() {
  restore_all_sums();
  if (!is_recomputed_) recompute_gradient();
  update_candidates(2);
  const bool halved = violation < 0.5 * best_verified_;
  failed_checks_ = halved ? 0 : failed_checks_ + 1;
  failed_checks_in_all_ = halved ? 0 : failed_checks_in_all_ + 1;
  best_verified_ = std::min(best_verified_, violation);
  return violation <= tolerance();
}

bool BlockSolver::are_checks_exhausted() const {
  return failed_checks_ > Settings::max_failed_checks ||
         failed_checks_in_all_ > Settings::max_failed_checks_in_all;
}

// Count the rounds without a halved violation. After many of them, allow Newton's method and add
// the free variables to the working set.
void BlockSolver::record_progress() {
  Progress& now = progress();
  if (violation < 0.5 * halved_violation_) {
    halved_violation_ = violation;
    iterations_at_halving_ = iterations;
    rounds_at_halving_ = rounds_;
  }
  if (violation < 0.5 * now.halved_violation) {
    now.halved_violation = violation;
    now.rounds_since_halved = 0;
    now.rounds_without_decrease = 0;
    now.lost_newton_phases = 0.0;
    return;
  }
  ++now.rounds_since_halved;
  now.newton_phase |= now.lost_newton_phases > Settings::max_lost_newton_phases;
  with_free_ |= now.newton_phase || now.rounds_since_halved > Settings::rounds_before_free;
}

// Return whether the violation has not been halved for longer than the settings allow.
bool BlockSolver::is_over_limits() const {
  const Index max_iterations = Settings::max_iterations_since_halved +
                               Settings::max_iterations_since_halved_per_variable * point_.n;
  return iterations - iterations_at_halving_ > max_iterations ||
         rounds_ - rounds_at_halving_ > Settings::max_rounds_since_halved;
}

// Return whether there is no progress, or only progress below the rounding error of the gradient.
bool BlockSolver::is_stuck() {
  const Progress& now = progress();
  const double noise = candidates_.noise;
  if (now.rounds_without_decrease > Settings::max_rounds_without_decrease) return true;
  if (!std::isfinite(violation) || is_over_limits()) return true;
  if (least_curvature < 0 &&
      iterations > Settings::max_iterations_nonconvex +
                       Settings::max_iterations_nonconvex_per_variable * point_.n)
    return true;
  if (noise == 0.0 || now.rounds_since_halved <= Settings::rounds_in_noise) return false;
  const bool for_long = now.rounds_since_halved > Settings::rounds_above_noise;
  return ((for_long || is_tolerance_below_noise()) &&
          violation < Settings::max_noise_multiple * noise) ||
         (for_long && violation < std::min(Settings::late_violation_fraction * now.first_violation,
                                           Settings::max_noise_multiple_late * noise));
}

// Let the oracle solve the whole problem at once, if it can and if that is cheaper than more
// rounds. Return whether it found a point. If the violation is not smaller there, restore x and
// attempt no further direct solves.
bool BlockSolver::try_direct_solve() {
  const bool many_rounds = rounds_ - last_direct_solve_ > Settings::rounds_between_direct_solves;
  if (!with_free_ || direct_solves_ == Settings::max_direct_solves ||
      (direct_solves_ > 0 && !many_rounds))
    return false;
  const Index free = std::count_if(candidates_.coordinates.begin(), candidates_.coordinates.end(),
                                   [&](Index i) { return position_of(point_, i).is_free(); });
  std::vector<double> x;
  const DirectSolve result = oracle_.solve_directly(free, many_rounds, task_.totals, x);
  if (result == DirectSolve::declined) return false;
  ++direct_solves_;
  last_direct_solve_ = rounds_;
  if (result == DirectSolve::failed) return false;
  ++iterations;
  const std::vector<double> before(point_.x, point_.x + point_.n);
  const double violation_before = violation;
  move_all_to(x);
  // After a change this large, an updated gradient would keep rounding errors of its old terms.
  recompute_gradient();
  update_candidates(candidates_per_round());
  if (violation < violation_before) return true;
  move_all_to(before);
  direct_solves_ = Settings::max_direct_solves;
  return true;
}

// Continue without the variables on a bound or breakpoint with which no step would decrease f: they
// rarely change again. They are checked when the shrink is undone. Return whether any were left
// out.
bool BlockSolver::try_to_shrink() {
  const Index left = oracle_.shrink(intervals_);
  if (left == 0) return false;
  progress().rounds_since_halved = progress().rounds_without_decrease = 0;
  levels_.push_back({.set_size = Settings::first_set_size, .newton_phase = task_.eager});
  return true;
}

void BlockSolver::unshrink() {
  oracle_.unshrink();
  levels_.pop_back();
}

// Fraction of the round's violation to which a block of q members is solved.
double BlockSolver::target_fraction(Index q) const {
  if (q == point_.n) return Settings::target_of_whole_problem;
  return task_.eager ? Settings::target_of_cheap_block : Settings::target_of_block;
}

// Limit on the steps in a block of q members.
Index BlockSolver::step_limit(Index q, bool may_be_rounding) const {
  if (may_be_rounding) return Settings::steps_per_member_in_noise * q;
  if (task_.eager)
    return Settings::base_steps_of_cheap_block + Settings::steps_per_member_of_cheap_block * q;
  return q * (with_free_ ? Settings::steps_per_member_with_free
                         : Settings::steps_per_member_without_free);
}

StopReason BlockSolver::work_on_block(Index max_iter, ThreadPool& pool) {
  // A float32 block needs 4 bytes per entry, unless Newton's method factorizes a copy in float64.
  const std::size_t entry =
      oracle_.is_single() && !progress().newton_phase ? sizeof(float) : sizeof(double);
  set_.max_free = std::clamp<Index>(Index(std::sqrt(double(task_.block_bytes / entry))),
                                    Settings::set_size, Settings::max_free_members);
  if (task_.whole) choose_all(point_, candidates_, set_);
  else choose_members(point_, candidates_, intervals_, progress().set_size / 2, with_free_, set_);
  const Index q = Index(set_.members.size());
  const bool may_be_rounding =
      is_tolerance_below_noise() && violation < Settings::max_noise_multiple * candidates_.noise;
  const Effort effort{
      .threshold = std::max(target_fraction(q) * violation, Settings::target_of_goal * goal()),
      .max_iter = std::min(step_limit(q, may_be_rounding), max_iter - iterations),
      .nonconvex_threshold = tolerance(),
      .newton_phase = progress().newton_phase && !may_be_rounding,
      .single_steps = task_.single_steps};
  const BlockOutcome outcome =
      oracle_.is_single() ? solve_in<float>(effort, pool) : solve_in<double>(effort, pool);
  iterations += std::max<Index>(outcome.iterations, 1);
  least_curvature = std::min(least_curvature, outcome.least_curvature);
  if (outcome.stop == StopReason::unbounded) {
    ray = outcome.ray;
    for (Index& i : ray.index) i = set_.members[i];
    return StopReason::unbounded;
  }
  total_decrease_ += outcome.decrease;
  Progress& now = progress();
  now.lost_newton_phases += outcome.lost_newton_phases;
  const bool decreased = outcome.decrease > Settings::min_relative_decrease * total_decrease_;
  now.rounds_without_decrease = decreased ? 0 : now.rounds_without_decrease + 1;
  if (task_.whole) replace_all(outcome.x);
  else move_to(set_.members, outcome.x);
  if (moved > 0) {
    now.set_size =
        std::max(Settings::set_size, with_free_ ? q / Settings::members_per_violating : 0);
    return StopReason::paused;
  }
  // No step in the block changed x. Undo a shrink if there is one; otherwise check the gradient if
  // the free variables were in the block, and add them with Newton's method if they were not.
  if (levels_.size() > 1) {
    unshrink();
    return StopReason::paused;
  }
  if (with_free_) {
    if (verify_optimality()) return StopReason::optimal;
    if (are_checks_exhausted()) return StopReason::imprecise;
  }
  with_free_ = now.newton_phase = true;
  return StopReason::paused;
}

template <class Real>
BlockOutcome BlockSolver::solve_in(const Effort& effort, ThreadPool& pool) {
  const std::size_t q = set_.members.size();
  if (Index(q) == point_.n) {
    const StoredHessian stored = oracle_.stored();
    const Real* hessian;
    if constexpr (std::is_same_v<Real, float>) hessian = stored.single;
    else hessian = stored.wide;
    if (hessian) return solve_block(point_, set_, hessian, effort, pool);
  }
  const auto hessian = static_cast<Real*>(memory().fit(q * q * sizeof(Real)));
  // Request accurate entries if the free variables are in the block: rounding could make the
  // curvature of almost flat directions negative.
  if constexpr (std::is_same_v<Real, float>) oracle_.block(set_.members, hessian);
  else oracle_.block(set_.members, with_free_, hessian);
  return solve_block(point_, set_, hessian, effort, pool);
}

// Set x of these variables and update the gradient.
void BlockSolver::move_to(const std::vector<Index>& coordinates, const std::vector<double>& x) {
  std::vector<Index> changed;
  std::vector<double> delta;
  for (std::size_t k = 0; k < coordinates.size(); ++k) {
    double& at = point_.x[coordinates[k]];
    if (x[k] == at) continue;
    changed.push_back(coordinates[k]);
    delta.push_back(x[k] - at);
    at = x[k];
  }
  moved = Index(changed.size());
  if (moved == 0) return;
  oracle_.update_gradient(changed, delta);
  is_recomputed_ = false;
}

// Set x of all variables, restore the sums, and recompute the gradient, which costs no more than an
// update after a change of most variables and needs no check afterwards.
void BlockSolver::replace_all(std::vector<double> x) {
  restore_sums_of(x);
  moved = 0;
  for (Index i = 0; i < point_.n; ++i) {
    moved += x[i] != point_.x[i];
    point_.x[i] = x[i];
  }
  if (moved > 0) recompute_gradient();
}

void BlockSolver::recompute_gradient() {
  oracle_.recompute_gradient();
  is_recomputed_ = true;
}

// Remove the rounding error of the sums by small changes of free variables, and update the
// gradient.
void BlockSolver::restore_all_sums() {
  std::vector<double> restored(point_.x, point_.x + point_.n);
  restore_sums_of(restored);
  move_all_to(restored);
}

void BlockSolver::restore_sums_of(std::vector<double>& x) const {
  restore_sums(x.data(), point_.lower, point_.upper,
               {point_.n_groups, point_.starts, task_.totals, point_.low, point_.high},
               point_.breakpoint);
}

void BlockSolver::move_all_to(const std::vector<double>& x) {
  std::vector<Index> all(std::size_t(point_.n));
  std::iota(all.begin(), all.end(), 0);
  move_to(all, x);
}

}  // namespace pairstep
