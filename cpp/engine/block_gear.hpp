// The block gear: for problems whose Hessian is not at hand as a whole. Each round surveys the
// prices, takes a working set, runs the greedy gear on its block of the Hessian and advances the
// prices. Written once, against an oracle.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/arena.hpp"
#include "block_solve.hpp"
#include "oracle.hpp"

namespace pairstep {

struct BlockTask {
  const double* totals;  // of each group, or of all where they are nested
  const Rule* rule;
  // Whether blocks are cheap against rounds: then the free accounts are in every working set, the
  // finish is tried from the start, and each block is solved well.
  bool eager;
  double beyond = 1.0;  // solve so many times further than asked for before looking closely
  std::size_t block_bytes = 1 << 27;  // for the Hessian of a working set
  bool at_hand = false;  // whether blocks are copied from a Hessian that is there as a whole
};

// `imprecise`: the violation does not fall any further in the oracle's arithmetic. `leapt`: paused
// after a leap to the optimum that left a violation, which may be rounding.
enum class BlockStop : int { optimal, max_iter, stopped, imprecise, unbounded, paused, leapt };

class BlockGear {
 public:
  BlockGear(Oracle& oracle, const Point& point, const BlockTask& task);

  // Until the violation, verified, is at most `tol` times the scale that the oracle tells,
  // `max_iter` iterations are made in all, or `rounds` more rounds are. May be called again to go
  // on.
  BlockStop run(double tol, Index max_iter, Index rounds, Pulse& pulse);

  // Make the sums exact, and learn the true violation where it is.
  void conclude();

  Index iterations = 0;
  Index moved = 0;               // accounts that moved in the last round
  double violation = 0.0;        // by the last survey
  double scale = 1.0;            // what the tolerance is relative to
  double least_curvature = 0.0;  // most negative relative curvature met along a move

 private:
  // How the rounds go, on one level of shrinking.
  struct Pace {
    Index size;              // of the outliers in a working set
    double first = -1.0;     // the violation of the first survey
    double best = INFINITY;  // the least violation so far, counted in halvings
    int since = 0;           // rounds since the violation was last halved
    double forgone = 0.0;    // tries of the finish that steps in vain have cost since then
    int idle = 0;            // rounds since the objective last fell
    bool finish = false;     // whether Newton's method may end a block
  };

  // Where all terms of the gradient vanish at the optimum nothing is left to compare with: then a
  // millionth of what would have done at the start does.
  double tolerance() const { return tol_ * std::max(scale, 1e-6 * first_scale_); }
  double goal() const { return tolerance() / task_.beyond; }
  Pace& pace() { return levels_.back(); }

  void survey(Index count);
  bool verify();
  bool no_use_in_verifying_again() const;
  void note_progress();
  bool is_stuck();
  bool leap();
  bool shrink();
  void unshrink();
  BlockStop work_on_block(Index max_iter, Pulse& pulse);
  void move_to(const std::vector<Index>& accounts, const std::vector<double>& x);
  void move_all_to(const std::vector<double>& x);
  void settle_sums();

  Oracle& oracle_;
  const Point point_;
  const BlockTask task_;
  Survey found_;
  std::vector<Market> markets_;
  WorkingSet set_;
  Arena block_;               // the Hessian of a working set
  std::vector<Pace> levels_;  // the whole problem, and a level for each shrinking
  Index rounds_ = 0;
  double tol_ = 0.0, first_scale_ = -1.0;
  double fallen_ = 0.0;              // of the objective, so far
  double best_verified_ = INFINITY;  // the least violation that was verified
  int fruitless_ = 0;                // verifications since one last showed progress
  int leaps_ = 0;                    // tried, the last in this round:
  Index leapt_ = 0;
  bool with_free_;  // whether the free accounts are in every working set
};

}  // namespace pairstep
