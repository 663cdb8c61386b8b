// Quadratic programs with a limit on the number of nonzero variables ("names"), minimum holdings
// and fixed costs,
//
//   minimize x'Qx/2 + c'x + sum_i k_i |x_i - p_i| + sum_i f_i [x_i != 0]
//   subject to lower <= x <= upper,  low <= Gx <= high,
//              x_i = 0 or |x_i| >= h_i,  at most K variables are not 0,
//
// by branch and bound. The relaxations are perspective relaxations (Frangioni and Gentile 2006): a
// diagonal d with Q - diag(d) positive semidefinite is separated, and the terms of every variable,
// with its fixed cost, its minimum holding and the multiplier of the number of names, are replaced
// by their convex hull. The parametric active-set method solves them, started at the solution of
// the parent. Bounds do not rely on that solution: they are values of a Lagrangian that is
// minimized over all supports by sorting (Bertsimas and Cory-Wright 2022), less a rounding error.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../core/interrupt.hpp"
#include "../core/types.hpp"
#include "parametric.hpp"

namespace pairstep {

struct CardinalityProblem {
  QuadraticProgram program;
  // d, of which Q - diag(d) is positive semidefinite; with factors, program.diagonal.
  const double* separable;
  const double *holding, *cost;  // h and f
  Index max_names;
  double gap;  // to be proven, relative to the objective's size
  Index max_nodes;
};

struct CardinalityState {
  enum Status { proven, stopped, node_limit };
  Status status = stopped;
  bool has_point = false;
  std::vector<double> x;  // the best point found, if there is any
  double value = INFINITY;
  double bound = -INFINITY;  // infinite if no point is feasible
  // The size of the objective: |value|, but at least a small fraction of its terms, because a value
  // that is 0 but for rounding has no relative gap.
  double size = 0.0;
  Index nodes = 0;
};

// What is known about the variables when a search ends early.
struct CardinalityRest {
  double pruned = INFINITY;  // a bound for all points that are not in a stored node
  std::vector<double> live;  // 1 if a variable can be nonzero in a stored node, else 0
  // By how much the bound at the root grows with the entries of the separable part.
  std::vector<double> weights;
};

class CardinalitySearch {
 public:
  virtual ~CardinalitySearch() = default;
  // Search until the gap is proven or `interrupt` says to stop. `start` is a point whose support is
  // tried first, or null.
  virtual void run(const double* start, InterruptCheck& interrupt) = 0;
  // May be called while the search runs, by the callback of the interrupt check.
  virtual CardinalityState state() const = 0;
  virtual CardinalityRest rest() const = 0;
};

// The arrays that `problem` refers to must outlive the object.
std::unique_ptr<CardinalitySearch> make_cardinality_search(const CardinalityProblem& problem);

// A vector d >= 0 for which C - diag(d) is close to positive semidefinite and sum(d) is close to
// the largest possible (minimum trace factor analysis), for a positive semidefinite matrix C with a
// positive diagonal. It solves the dual problem, to minimize <C, X> with a diagonal of at least 1
// and X positive semidefinite, over factors of X, one row at a time (the mixing method; Wang, Chang
// and Kolter 2017).
std::vector<double> largest_diagonal(const double* matrix, Index n, InterruptCheck& interrupt);

}  // namespace pairstep
