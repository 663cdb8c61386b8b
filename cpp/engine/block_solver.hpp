// The block solver, for problems whose Hessian is too large to store or to scan in every step.
//
// Each round selects a working set of variables, runs the coordinate-descent solver on the Hessian
// block of this set, and updates the gradient of all variables. This is the decomposition method of
// Joachims, "Making large-scale SVM learning practical" (1999), with the two-level working sets of
// ThunderSVM and cuML, extended in three ways: the free variables join the working set when
// progress is slow, Newton's method may solve a block, and shrinking is undone and checked before
// the solver stops. The solver knows a problem only through an Oracle.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/arena.hpp"
#include "../core/policy.hpp"
#include "block_solve.hpp"
#include "oracle.hpp"

namespace pairstep {

// Constants of the block solver. Most of them balance the cost of a round, which updates the
// gradient of all variables, against the cost of solving a block.
struct BlockSolverSettings {
  // Working set: number of most violating variables, half of them with large left derivatives and
  // half with small right ones. The first set is smaller because many of its Hessian rows are not
  // needed again: a factor model of 500 assets takes 1.3 times as long with a first set of 64 or
  // 256. Sets of 512 for large problems gain nothing: a fit of 60,000 rows of covtype takes 1.3
  // times as long with them.
  static constexpr Index first_set_size = 128;
  static constexpr Index set_size = 256;
  // With free variables in the set, the next set has at least one most violating variable per this
  // many members of the last set.
  static constexpr Index members_per_violating = 4;
  static constexpr Index max_free_members = 8000;  // bounds the O(q^2) memory and time of a block

  // Free variables join every working set after this many rounds without a halved violation. Fewer
  // rounds would make blocks large in problems that do not need it; more would prolong the slow
  // phase of those that do.
  static constexpr int rounds_before_free = 10;

  // Newton's method may solve a block once coordinate steps that left their blocks unsolved have
  // cost as much as this many Newton phases since the violation was last halved. In this unit,
  // large blocks, whose factorizations are expensive, wait longer. With 20 phases, an SVC of a
  // precomputed kernel (4000 rows of covtype, C = 1000, tol = 1e-5) takes 1.4 times as long.
  static constexpr double max_lost_newton_phases = 2;

  // Accuracy of a block: its violation is reduced to this fraction of the violation of the round. A
  // block is solved accurately if it is the whole problem or if solving it costs little. Otherwise
  // an accurate solution is not worth its cost, because the steps of other variables will change
  // the derivatives again. With 0.3, 4000 rows of a9a with C = 100 take 1.2 times as long.
  static constexpr double target_of_whole_problem = 0.0;
  static constexpr double target_of_cheap_block = 0.02;
  static constexpr double target_of_block = 0.1;
  static constexpr double target_of_goal = 0.5;  // never aim below this fraction of the final goal

  // Limit on the steps in a block: base + per member. More steps solve the block more accurately,
  // but for derivatives that the next rounds change again.
  static constexpr Index base_steps_of_cheap_block = 10'000;
  static constexpr Index steps_per_member_of_cheap_block = 100;
  static constexpr Index steps_per_member_with_free = 50;
  static constexpr Index steps_per_member_without_free = 10;
  static constexpr Index steps_per_member_in_noise = 2;  // more would only spread rounding errors

  // Shrinking is tried at this interval, for problems with more variables than the minimum. More
  // frequent attempts would leave out variables that change again. In smaller problems, a round is
  // so cheap that shrinking saves little.
  static constexpr Index rounds_between_shrinks = 50;
  static constexpr Index min_variables_to_shrink = 4000;

  // Largest violation that may be rounding error, in multiples of the estimated rounding error of
  // the gradient. The second limit applies in the late phase after many rounds. A violation above
  // it is never taken for rounding error, however slowly it decreases.
  static constexpr double max_noise_multiple = 10;
  static constexpr double max_noise_multiple_late = 1000;
  // Rounds without a halved violation after which it may be rounding error: the first number if the
  // tolerance is below the estimated rounding error, and the second one otherwise.
  static constexpr int rounds_in_noise = rounds_before_free + 2;
  static constexpr int rounds_above_noise = 100;
  // The late phase begins at this fraction of the first violation. By then the set of free
  // variables hardly changes.
  static constexpr double late_violation_fraction = 0.01;

  // Iteration limit for functions that turn out not to be convex: a constant plus a multiple of the
  // number of variables. Such functions may decrease very slowly for a very long time, so a
  // larger limit would mostly prolong solves that do not converge.
  static constexpr Index max_iterations_nonconvex = 200'000;
  static constexpr Index max_iterations_nonconvex_per_variable = 200;

  // Limits on the work since the violation was last halved: iterations (a constant plus a multiple
  // of the number of variables) and rounds. They bound a solve whose oracle understates its
  // rounding errors, or whose Hessian is so ill-conditioned that steps make almost no progress.
  // Fits that converge halve their violation many times within them (a9a with C = 100 takes 0.8
  // million iterations in all).
  static constexpr Index max_iterations_since_halved = 300'000;
  static constexpr Index max_iterations_since_halved_per_variable = 300;
  static constexpr Index max_rounds_since_halved = 5'000;

  // Limits on stagnation. Larger ones spend more time on solves that have reached the precision of
  // the oracle; smaller ones may end a solve that would still make progress. A check recomputes the
  // gradient; it fails if it does not halve the smallest violation that was verified before. The
  // limits on failed checks in a row are for one call of run() and for all calls with the same
  // tolerance.
  static constexpr int max_failed_checks = 3;
  static constexpr int max_failed_checks_in_all = 20;
  // A round makes no progress if the objective decreases by less than this fraction of its total
  // decrease so far, which may be rounding error, and the violation is not halved either. The limit
  // is on such rounds in a row.
  static constexpr double min_relative_decrease = 1e-13;
  static constexpr int max_rounds_without_decrease = 20;

  // Limit on the direct solves, and rounds that must pass between two of them. `many_rounds` of
  // Oracle::solve_directly says whether this many rounds have passed since the last direct solve,
  // or since the start: problems with sparse solutions are usually solved by then.
  static constexpr int max_direct_solves = 3;
  static constexpr Index rounds_between_direct_solves = 10;
};

struct BlockTask {
  const double* totals;  // one per group, or a single one if the groups are nested
  // Whether blocks are cheap compared with rounds. If so, the free variables are in every working
  // set, Newton's method is tried from the start, and each block is solved accurately.
  bool eager;
  double extra_accuracy = 1.0;  // reduce the violation to tol / extra_accuracy if rounding permits
  std::size_t block_bytes = 1 << 27;  // limit on the memory of a working set's Hessian
  bool single_steps = false;          // whether the first steps in a block may be in float32
  bool whole = false;                 // whether every working set has all variables
  Arena* memory = nullptr;            // reused for the Hessian of a working set; may be null
};

class BlockSolver {
 public:
  BlockSolver(Oracle& oracle, const Point& point, const BlockTask& task);

  // Run until the violation, verified by a recomputed gradient, is at most `tol` times the oracle's
  // scale, until `iterations` reaches `max_iter`, or for `rounds` rounds. A later call continues.
  // In large blocks, the pool's threads share the work of each step.
  StopReason run(double tol, Index max_iter, Index rounds, ThreadPool& pool);

  // Make the sums exact and recompute the violation of the whole problem.
  void conclude();

  Index iterations = 0;
  Index moved = 0;               // variables that changed in the last round
  double violation = 0.0;        // computed from the last candidates
  double scale = 1.0;            // Candidates::scale of the last candidates
  double least_curvature = 0.0;  // most negative relative curvature along any step
  Step ray;  // after StopReason::unbounded: the direction along which f seems to be unbounded

 private:
  using Settings = BlockSolverSettings;

  // Progress on one level of shrinking.
  struct Progress {
    Index set_size;                      // most violating variables in the next working set
    double first_violation = -1.0;       // negative before the first candidates
    double halved_violation = INFINITY;  // the violation when it was last halved
    int rounds_since_halved = 0;
    double lost_newton_phases = 0.0;  // cost of unsuccessful steps since the last halving
    int rounds_without_decrease = 0;  // of the objective, since the violation was halved
    bool newton_phase = false;        // whether Newton's method may solve a block
  };

  double tolerance() const {
    return NumericalPolicy::violation_tolerance(tol_, scale, first_scale_);
  }
  // The violation to reach. Extra accuracy is useless below the rounding error.
  double goal() const {
    return std::max(tolerance() / task_.extra_accuracy, std::min(tolerance(), candidates_.noise));
  }
  bool is_tolerance_below_noise() const { return candidates_.noise > tolerance(); }
  Progress& progress() { return levels_.back(); }
  Index candidates_per_round() { return task_.whole ? 2 * point_.n : progress().set_size; }
  Arena& memory() { return task_.memory ? *task_.memory : block_; }

  void update_candidates(Index count);
  bool verify_optimality();
  bool are_checks_exhausted() const;
  void record_progress();
  bool is_stuck();
  bool is_over_limits() const;
  bool try_direct_solve();
  bool try_to_shrink();
  void unshrink();
  StopReason work_on_block(Index max_iter, ThreadPool& pool);
  double target_fraction(Index q) const;
  Index step_limit(Index q, bool may_be_rounding) const;
  template <class Real>
  BlockOutcome solve_in(const Effort& effort, ThreadPool& pool);
  void move_to(const std::vector<Index>& coordinates, const std::vector<double>& x);
  void move_all_to(const std::vector<double>& x);
  void replace_all(std::vector<double> x);
  void recompute_gradient();
  void restore_all_sums();
  void restore_sums_of(std::vector<double>& x) const;

  Oracle& oracle_;
  const Point point_;
  const BlockTask task_;
  Candidates candidates_;
  std::vector<MultiplierInterval> intervals_;  // of each group, from the last candidates
  WorkingSet set_;
  Arena block_;                   // the Hessian of a working set
  std::vector<Progress> levels_;  // the whole problem, then one level per shrink
  Index rounds_ = 0;
  // The violation when it was last halved on any level, and the iterations and rounds until then.
  double halved_violation_ = INFINITY;
  Index iterations_at_halving_ = 0, rounds_at_halving_ = 0;
  double tol_ = 0.0, first_scale_ = -1.0;
  double total_decrease_ = 0.0;      // of the objective
  double best_verified_ = INFINITY;  // smallest violation of a recomputed gradient
  // Consecutive checks that did not halve best_verified_: in this run, and with this tolerance.
  int failed_checks_ = 0, failed_checks_in_all_ = 0;
  int direct_solves_ = 0;        // attempts so far
  Index last_direct_solve_ = 0;  // round of the last attempt
  bool is_recomputed_ = false;   // whether x is unchanged since the gradient was recomputed
  bool with_free_;               // whether the free variables are in every working set
};

}  // namespace pairstep
