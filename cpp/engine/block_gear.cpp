#include "block_gear.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "../core/feasible.hpp"

namespace pairstep {

namespace {

// How many of the accounts furthest out a working set begins with, and how many it takes later: a
// round over many accounts costs so much that more of them should pay for it. Of a Hessian at hand
// no rows are computed in vain: it begins with as many as it takes later.
constexpr Index FIRST = 128, USUAL = 256, OF_MANY = 512, MANY_ACCOUNTS = 20'000;

// Rounds without a halving of the violation after which the free accounts are balanced all
// together.
constexpr int BALANCE_AFTER = 10;

// Newton's method is tried once steps that left their blocks unsolved have cost as much as so many
// tries of it would have since the violation was last halved. A large face, whose factorisations
// are dear, so waits longer than a small one, and blocks that steps solve never ask for it.
// Of a Hessian at hand the block is there for another try as soon as steps are in vain.
constexpr double FINISH_AFTER = 20, FINISH_AFTER_AT_HAND = 2;

// Members from which on a block of a Hessian at hand takes as long to copy as to solve.
constexpr Index LARGE = 1000;

// Below this share of the first violation the accounts that will be free in the end mostly are.
constexpr double END_GAME = 0.01;

// Rounds after which it is looked at whether the problem can be shrunk, and from how many accounts.
constexpr Index SHRINK_EVERY = 50, WORTH_SHRINKING = 4000;

// A violation of so many times what rounding does to the prices may be rounding, if it does not
// fall.
constexpr double DROWNED = 10;

// Verifications that may fail to show progress, and rounds in which the objective may fail to fall.
constexpr int FRUITLESS = 3, IDLE = 20;

// Leaps to the optimum that may be tried; and so many rounds are many: sparse solutions need fewer.
constexpr int LEAPS = 3;
constexpr Index MANY = 10;

}  // namespace

BlockGear::BlockGear(Oracle& oracle, const Point& point, const BlockTask& task)
    : oracle_(oracle), point_(point), task_(task), with_free_(task.eager) {
  levels_.push_back({.size = task.at_hand ? USUAL : FIRST, .finish = task.eager});
}

BlockStop BlockGear::run(double tol, Index max_iter, Index rounds, Team& team) {
  Pulse& pulse = team.pulse();
  tol_ = tol;
  fruitless_ = 0;
  for (; rounds > 0; --rounds) {
    pulse.beat();
    survey(pace().size);
    if (violation <= goal()) {
      if (levels_.size() > 1) {  // of the part; what the whole says its next survey tells
        unshrink();
        continue;
      }
      if (verify()) return BlockStop::optimal;
      if (no_use_in_verifying_again()) return BlockStop::imprecise;
      survey(pace().size);
    }
    if (iterations >= max_iter) return BlockStop::max_iter;
    if (pulse.stopped()) return BlockStop::stopped;
    note_progress();
    if (is_stuck()) {
      if (levels_.size() == 1) return BlockStop::imprecise;
      unshrink();
      continue;
    }
    if (leap()) {
      // What a leap has left is mostly rounding, which further rounds would only spread.
      return violation <= tolerance() && verify() ? BlockStop::optimal : BlockStop::leapt;
    }
    if (++rounds_ % SHRINK_EVERY == 0 && point_.n > WORTH_SHRINKING && shrink()) continue;
    if (const BlockStop stop = work_on_block(max_iter, team); stop != BlockStop::paused)
      return stop;
  }
  return BlockStop::paused;
}

void BlockGear::conclude() {
  while (levels_.size() > 1) unshrink();
  verify();
}

void BlockGear::survey(Index count) {
  oracle_.survey(count / 2, with_free_, found_);
  violation = trade(point_, found_, markets_);
  scale = found_.scale;
  if (first_scale_ < 0) first_scale_ = scale;
  if (pace().first < 0) pace().first = violation;
}

// The true violation, with exact sums. Whether it is within the tolerance.
bool BlockGear::verify() {
  settle_sums();
  oracle_.verify();
  survey(2);
  fruitless_ = violation < 0.5 * best_verified_ ? 0 : fruitless_ + 1;
  best_verified_ = std::min(best_verified_, violation);
  return violation <= tolerance();
}

bool BlockGear::no_use_in_verifying_again() const { return fruitless_ > FRUITLESS; }

void BlockGear::note_progress() {
  Pace& now = pace();
  if (violation < 0.5 * now.best) {
    now.best = violation;
    now.since = 0;
    now.forgone = 0.0;
    return;
  }
  ++now.since;
  now.finish |= now.forgone > (task_.at_hand ? FINISH_AFTER_AT_HAND : FINISH_AFTER);
  with_free_ |= now.finish || now.since > BALANCE_AFTER;
}

// Whether nothing falls any more, or what still falls is below what rounding does to the prices.
bool BlockGear::is_stuck() {
  const Pace& now = pace();
  if (now.idle > IDLE || !std::isfinite(violation)) return true;
  if (found_.noise == 0.0 || now.since <= BALANCE_AFTER + 2) return false;
  return violation < DROWNED * found_.noise ||
         (now.since > 100 && violation < END_GAME * now.first);
}

// Where free accounts are many, the oracle may know a way to the optimum at once. Whether accounts
// have moved, be it there and back because it did not lead nearer.
bool BlockGear::leap() {
  const bool many_rounds = rounds_ - leapt_ > MANY;
  if (!with_free_ || leaps_ == LEAPS || (leaps_ > 0 && !many_rounds)) return false;
  const Index free = std::count_if(found_.accounts.begin(), found_.accounts.end(),
                                   [&](Index i) { return standing_of(point_, i).is_free(); });
  std::vector<double> x;
  const Leap leap = oracle_.leap(free, many_rounds, task_.totals, x);
  if (leap == Leap::declined) return false;
  ++leaps_;
  leapt_ = rounds_;
  if (leap == Leap::failed) return false;
  ++iterations;
  const std::vector<double> before(point_.x, point_.x + point_.n);
  const double violation_before = violation;
  move_all_to(x);
  oracle_.verify();  // so far from where it was, differences would leave the rounding of what was
  survey(pace().size);
  if (violation < violation_before) return true;
  move_all_to(before);
  leaps_ = LEAPS;
  return true;
}

// An account that cannot trade at the prices of its group (on a bound or a kink, and beyond them)
// will hardly move again: go on without these. Whether that was right the surveys of the whole see
// later.
bool BlockGear::shrink() {
  const Index left = oracle_.shrink(markets_);
  if (left == 0) return false;
  pace().since = pace().idle = 0;
  levels_.push_back({.size = FIRST, .finish = task_.eager});
  return true;
}

void BlockGear::unshrink() {
  oracle_.unshrink();
  levels_.pop_back();
}

BlockStop BlockGear::work_on_block(Index max_iter, Team& team) {
  // Newton's method keeps its own copies in float64; without it only the block counts.
  const std::size_t entry = oracle_.is_single() && !pace().finish ? sizeof(float) : sizeof(double);
  set_.most_free =
      std::clamp<Index>(Index(std::sqrt(double(task_.block_bytes / entry))), USUAL, 8000);
  choose_members(point_, found_, markets_, pace().size / 2, with_free_, set_);
  const Index q = Index(set_.members.size());
  // A block that costs little is solved well, as is one that costs more than the steps in it, and
  // one that is all there is to the end. Otherwise many rounds are better than much work on prices
  // that the others will change.
  const bool dear = task_.at_hand && q > LARGE;
  const double share = q == point_.n        ? 0.0
                       : task_.eager        ? 0.02
                       : with_free_ && dear ? 0.03
                       : with_free_         ? 0.3
                                            : 0.1;
  const Index most = task_.eager ? 10'000 + 100 * q : (with_free_ ? 50 : 10) * q;
  const Effort effort{std::max(share * violation, 0.5 * goal()),
                      std::min(most, max_iter - iterations), pace().finish};
  const BlockOutcome outcome =
      oracle_.is_single() ? solve_in<float>(effort, team) : solve_in<double>(effort, team);
  iterations += std::max<Index>(outcome.iterations, 1);
  least_curvature = std::min(least_curvature, outcome.least_curvature);
  if (outcome.stop == Stop::unbounded) return BlockStop::unbounded;
  fallen_ += outcome.fall;
  pace().forgone += outcome.tries_forgone;
  pace().idle = outcome.fall > 1e-13 * fallen_ ? 0 : pace().idle + 1;
  move_to(set_.members, outcome.x);
  if (moved > 0) {
    const Index usual = point_.n < MANY_ACCOUNTS ? USUAL : OF_MANY;
    pace().size = std::max(usual, with_free_ ? q / 4 : 0);
    return BlockStop::paused;
  }
  // Nothing moves: the part is done; or the free accounts may help; or it is the end.
  if (levels_.size() > 1) {
    unshrink();
    return BlockStop::paused;
  }
  if (with_free_) {
    if (verify()) return BlockStop::optimal;
    if (no_use_in_verifying_again()) return BlockStop::imprecise;
  }
  with_free_ = pace().finish = true;
  return BlockStop::paused;
}

template <class Real>
BlockOutcome BlockGear::solve_in(const Effort& effort, Team& team) {
  const std::size_t q = set_.members.size();
  const auto hessian = static_cast<Real*>(memory().fit(q * q * sizeof(Real)));
  // Where free accounts are balanced, rounding must not bend flat valleys.
  if constexpr (std::is_same_v<Real, float>) oracle_.block(set_.members, hessian);
  else oracle_.block(set_.members, with_free_, hessian);
  return solve_block(point_, set_, hessian, *task_.rule, effort, team);
}

void BlockGear::move_to(const std::vector<Index>& accounts, const std::vector<double>& x) {
  std::vector<Index> who;
  std::vector<double> delta;
  for (std::size_t k = 0; k < accounts.size(); ++k) {
    double& at = point_.x[accounts[k]];
    if (x[k] == at) continue;
    who.push_back(accounts[k]);
    delta.push_back(x[k] - at);
    at = x[k];
  }
  moved = Index(who.size());
  if (moved > 0) oracle_.advance(who, delta);
}

// What rounding has left of the totals goes into free accounts, as a move like any other.
void BlockGear::settle_sums() {
  std::vector<double> settled(point_.x, point_.x + point_.n);
  settle(settled.data(), point_.lower, point_.upper,
         {point_.n_groups, point_.starts, task_.totals, point_.low, point_.high}, point_.pivot);
  move_all_to(settled);
}

void BlockGear::move_all_to(const std::vector<double>& x) {
  std::vector<Index> all(std::size_t(point_.n));
  std::iota(all.begin(), all.end(), 0);
  move_to(all, x);
}

}  // namespace pairstep
