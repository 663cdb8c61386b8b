// What the block gear asks of a problem, however large or far away: four questions. Whoever answers
// them can be solved: kernel tiles, a Gram matrix, a matrix, a Python object, a cluster, a GPU.
#pragma once

#include <vector>

#include "../core/nested.hpp"

namespace pairstep {

// The accounts worth a look, with the gradient of the smooth part of the objective there.
struct Survey {
  std::vector<Index> accounts;  // in any order
  std::vector<double> gradient;
  double scale = 1.0;  // what the tolerance is relative to: the size of what cancels in gradients
  double noise = 0.0;  // how far rounding may have put gradients off since they were verified
};

enum class Leap { declined, failed, made };

class Oracle {
 public:
  virtual ~Oracle() = default;

  // At least the `count` dearest sellers and the `count` cheapest buyers of each group and, if
  // asked, every free account.
  virtual void survey(Index count, bool with_free, Survey& found) = 0;

  // Their part of the Hessian: hessian[a * q + b] for the accounts members[a] and members[b], in
  // rising order. `exact`: as exact as can be had, else as cheap.
  virtual void block(const std::vector<Index>& members, bool exact, double* hessian) = 0;

  // Who has the Hessian in float32, exactly, is asked for blocks in float32: half as much to copy
  // and, in every step, to read.
  virtual bool is_single() const { return false; }
  virtual void block(const std::vector<Index>& /*members*/, float* /*hessian*/) {}

  // These accounts have moved (x is up to date): so are all gradients after this.
  virtual void advance(const std::vector<Index>& moved, const std::vector<double>& delta) = 0;

  // Gradients anew in float64, from the problem: of all accounts, or of those that could be the
  // dearest or the cheapest, so that the next survey tells the true violation.
  virtual void verify() = 0;

  // Shrinking, for who can: go on with only those accounts that can trade at these prices (the
  // cheapest and the dearest of each group), and take back the last shrinking, which brings the
  // others up to date. `shrink` tells how many are left, 0 where it does not pay; then nothing has
  // changed. In between, surveys tell of the accounts that are left.
  virtual Index shrink(const std::vector<Market>& /*markets*/) { return 0; }
  virtual void unshrink() {}

  // For who can solve the whole at once: a point near the optimum. Declined by who cannot, or where
  // it would not pay: `free` accounts are free, and the rounds are many or not.
  virtual Leap leap(Index /*free*/, bool /*many_rounds*/, const double* /*totals*/,
                    std::vector<double>& /*x*/) {
    return Leap::declined;
  }
};

}  // namespace pairstep
