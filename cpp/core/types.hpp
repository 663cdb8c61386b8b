// What every part of the core speaks of: points, moves, and how a rule is to choose.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace pairstep {

using Index = std::int64_t;

// Memory that starts on a cache line: a vector load that straddles two costs twice.
class Aligned {
 public:
  explicit Aligned(Index n)
      : data_(static_cast<double*>(std::aligned_alloc(64, (std::size_t(n) * 8 + 64) / 64 * 64))) {
    if (!data_) throw std::bad_alloc();
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() { std::free(data_); }
  double* data() { return data_; }
  double& operator[](Index i) { return data_[i]; }

 private:
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
struct Point {
  Index n;
  Index n_groups;
  const Index* starts;
  double* gradient;
  double* x;
  const double* lower;
  const double* upper;
  const double* kink;   // weights of the kinks, or null
  const double* pivot;  // where they are
};

// How a rule is to choose: which, the step size of its model and what else it draws on.
struct Choice {
  const Rule* rule;
  double alpha;
  const double* lipschitz;  // coordinate-wise constants; null means all 1
  BitGenerator* random;     // for the random rules
  Index turn;               // for the cyclic rule
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

// The greedy gear's task and, after the call, what it did.
struct Greedy {
  const double* hessian;  // n x n, row-major, symmetric
  Choice choice;
  Step step;
  double one_norm_constant;  // for Step::norm
  double threshold;          // stop when the violation is at most this
  Index max_iter;
  double seconds;  // give control back after this long
  double value;    // objective at x; kept up to date
  Index patience;  // iterations without progress before giving up
  bool finish;     // whether to try Newton's method on the face
  bool record;
  const std::atomic<bool>* stop = nullptr;  // where set, give control back
  Index iterations = 0;
  double violation = 0.0;
  double least_curvature = 0.0;  // most negative relative curvature met along a move
  Index curved[2] = {-1, -1};    // and the coordinates it was met at
  std::vector<Record> history;
};

struct Asymmetry {
  double difference = 0.0, largest = 0.0;
  Index i = 0, j = 0;
  double least_pair = 0.0;  // the smallest H_ii + H_jj - 2 H_ij, at most 0
};

// Where the accounts of a point stand: what a bound or a kink adds to their prices, and the rooms.
struct Standing {
  double *down_shift, *up_shift, *down_room, *up_room;
};

// The accounts whose prices are furthest out, best first: the dearest sellers, the cheapest buyers.
struct Outliers {
  std::vector<Index> sellers, buyers;
  double dearest, cheapest;
};

}  // namespace pairstep
