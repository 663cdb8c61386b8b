// Types that all parts of the native code use: points, steps, and the interface of the
// coordinate-descent solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "interrupt.hpp"

namespace pairstep {

using Index = std::int64_t;

class WorkerGroup;

// An array of doubles that starts on a cache line: a vector load across two lines takes twice as
// long.
class Aligned {
 public:
  explicit Aligned(Index n)
      : data_(static_cast<double*>(::operator new(std::size_t(n) * 8 + 64, CACHE_LINE))) {}
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() { ::operator delete(data_, CACHE_LINE); }
  double* data() { return data_; }
  double& operator[](Index i) { return data_[i]; }

 private:
  static constexpr std::align_val_t CACHE_LINE{64};  // bytes
  double* data_;
};

// The rows of a Hessian in float32, for single_steps (isa/single_steps.hpp). A row may be computed
// when it is first needed; it then stays valid as long as this object.
class HessianRows {
 public:
  virtual ~HessianRows() = default;
  virtual float diagonal(Index i) const = 0;
  // Set rows[i] for every i in `wanted`.
  virtual void compute(const std::vector<Index>& wanted, const float** rows) = 0;
  // Number of rows that take little longer to compute than one.
  virtual Index rows_at_once() const { return 1; }
};

// A change of a few coordinates that leaves their sum unchanged.
struct Step {
  std::vector<Index> index;
  std::vector<double> delta;
  double decrease = 0.0;  // predicted decrease of the objective

  void clear() {
    index.clear();
    delta.clear();
    decrease = 0.0;
  }
  // A step whose decrease underflows to 0 is still better than no step.
  bool beats(const Step& other) const {
    return !index.empty() && (other.index.empty() || decrease > other.decrease);
  }
  void add(Index i, double change) {
    index.push_back(i);
    delta.push_back(change);
  }
};

// A point of a problem in solver coordinates. Groups are contiguous: group k is
// [starts[k], starts[k+1]). Either each group has a separate total, or the groups are nested: all
// share one total, and the sum of group k lies in [low[k], high[k]].
struct Point {
  Index n;
  Index n_groups;
  const Index* starts;
  double* gradient;
  double* x;
  const double* lower;
  const double* upper;
  const double* l1;             // L1 weights k_i of the terms k_i |x_i - breakpoint_i|, or null
  const double* breakpoint;     // null if l1 is null
  const double* low = nullptr;  // limits of each group's sum if the groups are nested, or null
  const double* high = nullptr;

  bool nested() const { return low != nullptr; }
};

// The group that a coordinate belongs to.
inline Index group_of(const Point& point, Index coordinate) {
  return std::upper_bound(point.starts, point.starts + point.n_groups + 1, coordinate) -
         point.starts - 1;
}

// The sum constraints of a problem: one total per group, or one total for all nested groups.
struct Sums {
  Index n_groups;
  const Index* starts;
  const double* totals;
  const double *low = nullptr, *high = nullptr;

  bool nested() const { return low != nullptr; }
};

// Why a solver returned. Python maps these to the statuses of results (`pairstep.result.Status`).
enum class StopReason : int {
  optimal,          // the violation is within the tolerance
  max_iter,         // the iteration limit is reached
  stopped,          // the time limit has passed, or a callback stopped the solve
  stalled,          // coordinate descent: no further progress is possible
  imprecise,        // block solver: the violation does not decrease any further in the oracle's
                    // arithmetic
  unbounded,        // the objective seems to be unbounded below
  paused,           // block solver: the requested rounds are done; `run` continues
  solved_directly,  // paused after a direct solve: x is its result, with a violation that may be
                    // rounding error, or x is unchanged because the result was worse
};

// One row of the history per iteration.
struct Record {
  double value, violation, time;  // time in seconds
  Index moved;                    // number of coordinates that the step changed
  Index interior;                 // number of coordinates strictly between their bounds
};

// A quadratic problem and the options of the coordinate-descent solver.
struct GreedyTask {
  const double* hessian = nullptr;   // n x n, row-major, symmetric
  const float* hessian32 = nullptr;  // used instead of `hessian` if not null
  bool newton_phase = true;          // whether to try Newton steps on the free variables
  bool record = false;               // whether to record the history
  // Stop at this violation if the next step has negative curvature.
  double nonconvex_threshold = 0.0;
  // Whether to take a step with the most violating pair of a group when one coordinate has had the
  // smallest right derivative of the group for many steps.
  bool force_extreme_pair = false;
  Index steps_before = 0;  // that led to the point; they count as work since the last Newton phase
  WorkerGroup* worker_group = nullptr;  // threads for long passes over the coordinates
};

// A run of the coordinate-descent solver that can be paused and continued. The object keeps the
// solver's whole state, so the iterates do not depend on when or how often it is paused.
class GreedyRun {
 public:
  virtual ~GreedyRun() = default;

  // Start at a point with a correct gradient. From then on x and the gradient change in place.
  virtual void begin(const Point& point, double value) = 0;
  // Continue after x was changed slightly (its sums restored) and the gradient recomputed.
  virtual void renew(const Point& point, double value) = 0;
  // Iterate until the violation is at most `threshold` or `iterations` reaches `max_iter`.
  virtual StopReason run(double threshold, Index max_iter, InterruptCheck& interrupt) = 0;
  // Work of the steps since the last Newton phase (or since the start), as a multiple of the work
  // of a Newton phase.
  virtual double work_in_newton_phases() const = 0;

  Index iterations = 0;
  double value = 0.0, violation = 0.0;
  double least_curvature = 0.0;  // most negative relative curvature of a step so far
  Index curved[2] = {-1, -1};    // the coordinates of that step
  Step ray;  // after StopReason::unbounded: a direction of unbounded decrease (to be verified)
  std::vector<Record> history;
};

// See symmetry.hpp.
struct Asymmetry {
  double difference = 0.0, largest = 0.0;  // max |M_ij - M_ji| and max |M_ij|
  Index i = 0, j = 0;                      // where the difference is largest
  double least_pair = 0.0;                 // the smallest M_ii + M_jj - 2 M_ij, at most 0
};

// The position of a coordinate relative to its bounds and its breakpoint. The shifts are what the
// L1 term adds to the gradient to give the left and the right derivative. The left shift is -inf if
// a bound prevents a decrease, and the right shift is +inf if a bound prevents an increase.
// max_decrease and max_increase are the distances to the next bound or breakpoint.
struct Position {
  double left_shift, right_shift, max_decrease, max_increase;

  bool is_free() const { return max_decrease > 0 && max_increase > 0 && left_shift == right_shift; }
};

// The nearest bound or breakpoint below and above x.
inline double floor_at(const Point& point, Index i, double x) {
  const bool above = point.l1 && x > point.breakpoint[i];
  return above ? std::max(point.lower[i], point.breakpoint[i]) : point.lower[i];
}
inline double ceiling_at(const Point& point, Index i, double x) {
  const bool below = point.l1 && x < point.breakpoint[i];
  return below ? std::min(point.upper[i], point.breakpoint[i]) : point.upper[i];
}

inline Position position_at(const Point& point, Index i, double x) {
  const double weight = point.l1 ? point.l1[i] : 0.0;
  const double max_decrease = x - floor_at(point, i, x), max_increase = ceiling_at(point, i, x) - x;
  const bool falls = point.l1 && x <= point.breakpoint[i];
  const bool rises = !point.l1 || x >= point.breakpoint[i];
  return {max_decrease > 0 ? (falls ? -weight : weight) : -INFINITY,
          max_increase > 0 ? (rises ? weight : -weight) : INFINITY, max_decrease, max_increase};
}
inline Position position_of(const Point& point, Index i) {
  return position_at(point, i, point.x[i]);
}

// The positions of all coordinates, one array per member, and the gradient.
struct PositionTable {
  Index n;
  const double* gradient;
  double *left_shift, *right_shift, *max_decrease, *max_increase;

  PositionTable slice(Index begin, Index end) const {
    return {end - begin,         gradient + begin,     left_shift + begin,
            right_shift + begin, max_decrease + begin, max_increase + begin};
  }
  void update(const Point& point, Index i) {
    const Position now = position_of(point, i);
    left_shift[i] = now.left_shift;
    right_shift[i] = now.right_shift;
    max_decrease[i] = now.max_decrease;
    max_increase[i] = now.max_increase;
  }
};

// A position table that owns its memory.
struct OwnPositionTable : PositionTable {
  Aligned memory[4];

  explicit OwnPositionTable(Index size)
      : memory{Aligned(size), Aligned(size), Aligned(size), Aligned(size)} {
    n = size;
    left_shift = memory[0].data();
    right_shift = memory[1].data();
    max_decrease = memory[2].data();
    max_increase = memory[3].data();
  }

  void update_all(const Point& point) {
    gradient = point.gradient;
    for (Index i = 0; i < n; ++i) update(point, i);
  }
};

// The coordinates with the largest left derivatives and with the smallest right derivatives, best
// first.
struct TopCandidates {
  std::vector<Index> decreasing, increasing;
};

}  // namespace pairstep
