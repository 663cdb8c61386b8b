// What every part of the core speaks of: points, moves, and how a rule is to choose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "pulse.hpp"

namespace pairstep {

using Index = std::int64_t;

class Crew;

// Memory that starts on a cache line: a vector load that straddles two costs twice.
class Aligned {
 public:
  explicit Aligned(Index n)
      : data_(static_cast<double*>(::operator new(std::size_t(n) * 8 + 64, LINE))) {}
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() { ::operator delete(data_, LINE); }
  double* data() { return data_; }
  double& operator[](Index i) { return data_[i]; }

 private:
  static constexpr std::align_val_t LINE{64};
  double* data_;
};

// What is known of a rule. Each is described where it is defined, in isa/rules, and nowhere else.
struct Rule {
  const char* name;
  const char* alias = nullptr;  // another name it goes by
  bool weighted = false;        // needs coordinate-wise Lipschitz constants
  bool uses_alpha = false;      // what it chooses depends on the step size
  bool one_norm = false;        // measures moves in the 1-norm
  bool curved = false;          // takes the curvature of pairs from the Hessian where it is at hand
  bool draws = false;           // random numbers
  bool in_turn = false;         // counts the pairs that came before
  int code = -1;                // its place in the list of all

  // Whether it looks at the prices to choose.
  constexpr bool guided() const { return !(draws || in_turn); }
};

// A change of a few coordinates that leaves their sum as it is.
struct Move {
  std::vector<Index> index;
  std::vector<double> delta;
  double decrease = 0.0;
  Index suspect = -1;  // a coordinate whose input is not valid

  void clear() {
    index.clear();
    delta.clear();
    decrease = 0.0;
  }
  // A move that gains too little for a number is still better than none.
  bool beats(const Move& other) const {
    return !index.empty() && (other.index.empty() || decrease > other.decrease);
  }
  void add(Index i, double change) {
    index.push_back(i);
    delta.push_back(change);
  }
};

// numpy.random's bit generator interface: the loop draws from the user's own generator.
struct BitGenerator {
  void* state;
  std::uint64_t (*next_uint64)(void*);
  std::uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  std::uint64_t (*next_raw)(void*);

  double uniform() { return next_double(state); }
};

// A point of the problem in accounts: groups are contiguous, group k is [starts[k], starts[k+1]).
// Each group has a total of its own; or, where there are limits, all share one total and the sum of
// each lies between its limits.
struct Point {
  Index n;
  Index n_groups;
  const Index* starts;
  double* gradient;
  double* x;
  const double* lower;
  const double* upper;
  const double* kink;           // weights of the kinks, or null
  const double* pivot;          // where they are
  const double* low = nullptr;  // limits of each group's sum under a total of all, or null
  const double* high = nullptr;

  bool nested() const { return low != nullptr; }
};

// The group that an account belongs to.
inline Index group_of(const Point& point, Index account) {
  return std::upper_bound(point.starts, point.starts + point.n_groups + 1, account) - point.starts -
         1;
}

// The sums of a problem, as in a point, with their totals: one for each group, or one for all.
struct Sums {
  Index n_groups;
  const Index* starts;
  const double* totals;
  const double *low = nullptr, *high = nullptr;

  bool nested() const { return low != nullptr; }
};

// How a rule is to choose: which, the step size of its model and what else it draws on.
struct Choice {
  const Rule* rule;
  double alpha;
  const double* lipschitz;  // coordinate-wise constants; null means all 1
  BitGenerator* random;     // for the random rules
  Index turn;               // for the cyclic rule
  Pulse* pulse = nullptr;   // of the call that is under way, if a long choice is to hear of it
  Crew* crew = nullptr;     // who shares long passes, if anybody does

  void beat() const {
    if (pulse) pulse->beat();
  }
};

// The curvature that the length of a move is computed with: the rule's own model (the move as it
// is), a multiple of the squared 1-norm, the coordinate-wise constants, or the Hessian.
enum class Step : int { model, norm, lipschitz, exact };

enum class Stop : int { converged, out_of_iterations, out_of_time, no_progress, unbounded };

// One row of the history per point visited.
struct Record {
  double value, violation, time;
  Index moved, interior;
};

// How the greedy gear is to go about a quadratic.
struct GreedyTask {
  const double* hessian;  // n x n, row-major, symmetric
  Choice choice;
  Step step;
  double one_norm_constant = 0.0;  // for Step::norm
  Index patience = 0;              // iterations without progress before giving up
  bool finish = false;             // whether to try Newton's method on the face
  bool record = false;
  bool tidy = false;                 // whether to trade with who stays the cheapest buyer
  const float* hessian32 = nullptr;  // the Hessian, where it is in float32
};

// A run of the greedy gear that can be paused and continued: what it has learnt lives as long as it
// does, so that its path depends neither on the clock nor on who looks on.
class GreedyRun {
 public:
  virtual ~GreedyRun() = default;

  // Start at a point whose gradient is right; its x and gradient are changed in place from then on.
  virtual void begin(const Point& point, double value) = 0;
  // Go on from a point that was settled, with a gradient that was computed anew.
  virtual void renew(const Point& point, double value) = 0;
  // Until the violation is at most `threshold`, or `max_iter` iterations are made in all.
  virtual Stop run(double threshold, Index max_iter, Pulse& pulse) = 0;
  // How many tries of the finish the steps since its last one have cost, or since the beginning.
  virtual double tries_forgone() const = 0;

  Index iterations = 0;
  double value = 0.0, violation = 0.0;
  double least_curvature = 0.0;  // most negative relative curvature met along a move
  Index curved[2] = {-1, -1};    // and the coordinates it was met at
  std::vector<Record> history;
};

struct Asymmetry {
  double difference = 0.0, largest = 0.0;
  Index i = 0, j = 0;
  double least_pair = 0.0;  // the smallest H_ii + H_jj - 2 H_ij, at most 0
};

// Where an account stands: what a bound or a kink adds to its gradient, which gives its prices, and
// how far it may go before the next bound or kink. No price where there is no room.
struct Standing {
  double down_shift, up_shift, down_room, up_room;

  bool is_free() const { return down_room > 0 && up_room > 0 && down_shift == up_shift; }
};

// Where account i ends up if it is emptied, and if it is filled, from x.
inline double floor_at(const Point& point, Index i, double x) {
  const bool above = point.kink && x > point.pivot[i];
  return above ? std::max(point.lower[i], point.pivot[i]) : point.lower[i];
}
inline double ceiling_at(const Point& point, Index i, double x) {
  const bool below = point.kink && x < point.pivot[i];
  return below ? std::min(point.upper[i], point.pivot[i]) : point.upper[i];
}

inline Standing standing_at(const Point& point, Index i, double x) {
  const double weight = point.kink ? point.kink[i] : 0.0;
  const double down_room = x - floor_at(point, i, x), up_room = ceiling_at(point, i, x) - x;
  const bool falls = point.kink && x <= point.pivot[i];
  const bool rises = !point.kink || x >= point.pivot[i];
  return {down_room > 0 ? (falls ? -weight : weight) : -INFINITY,
          up_room > 0 ? (rises ? weight : -weight) : INFINITY, down_room, up_room};
}
inline Standing standing_of(const Point& point, Index i) {
  return standing_at(point, i, point.x[i]);
}

// The standings of all accounts, an array for each number, with the gradient they belong to.
struct Ledger {
  Index n;
  const double* gradient;
  double *down_shift, *up_shift, *down_room, *up_room;

  Ledger slice(Index begin, Index end) const {
    return {end - begin,      gradient + begin,  down_shift + begin,
            up_shift + begin, down_room + begin, up_room + begin};
  }
  void enter(const Point& point, Index i) {
    const Standing now = standing_of(point, i);
    down_shift[i] = now.down_shift;
    up_shift[i] = now.up_shift;
    down_room[i] = now.down_room;
    up_room[i] = now.up_room;
  }
};

// A ledger with its memory.
struct OwnLedger : Ledger {
  Aligned memory[4];

  explicit OwnLedger(Index size)
      : memory{Aligned(size), Aligned(size), Aligned(size), Aligned(size)} {
    n = size;
    down_shift = memory[0].data();
    up_shift = memory[1].data();
    down_room = memory[2].data();
    up_room = memory[3].data();
  }

  void enter_all(const Point& point) {
    gradient = point.gradient;
    for (Index i = 0; i < n; ++i) enter(point, i);
  }
};

// The accounts whose prices are furthest out, best first: the dearest sellers, the cheapest buyers.
struct Outliers {
  std::vector<Index> sellers, buyers;
};

}  // namespace pairstep
