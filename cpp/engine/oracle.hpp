// The interface between the block solver and a problem. An oracle keeps the gradient of a quadratic
// function whose Hessian may be too large to store: kernel matrices, A'A, explicit matrices, Python
// objects, and matrices that are spread over a cluster or held on a GPU.
//
// An oracle has ten virtual functions.
//
//   required   select_candidates           variables for the next working set, with their gradient
//              block (float64)             Hessian of a working set
//              update_gradient             apply a change of x
//              recompute_gradient          recompute the gradient from the problem, in float64
//   optional   is_single, block (float32)  Hessian blocks in float32; define both or neither
//              stored                      the whole Hessian, if it need not be copied
//              shrink, unshrink            leave out variables at bounds; define both or neither
//              solve_directly              solve the whole problem at once
#pragma once

#include <vector>

#include "../core/nested.hpp"

namespace pairstep {

// Variables that may enter the working set, with the gradient of the smooth part of the objective.
struct Candidates {
  std::vector<Index> coordinates;  // in any order; may repeat
  std::vector<double> gradient;    // one entry for each coordinate
  double scale = 1.0;  // size of the terms that cancel in the gradient; tol is relative to it
  double noise = 0.0;  // estimated rounding error of the gradient; 0 if it is not estimated
};

// The whole Hessian, row after row in the order of the variables: in one of the two types, or null.
struct StoredHessian {
  const double* wide = nullptr;
  const float* single = nullptr;
};

// Result of Oracle::solve_directly: not attempted, attempted without success, or x is set.
enum class DirectSolve { declined, failed, made };

class Oracle {
 public:
  virtual ~Oracle() = default;

  // Required. Find at least the `count` variables of each group with the largest left derivative
  // and the `count` with the smallest right derivative. Include every free variable if `with_free`.
  // After a shrink, only the variables that are left are considered.
  virtual void select_candidates(Index count, bool with_free, Candidates& found) = 0;

  // Required. Fill the q x q Hessian of the working set: hessian[a * q + b] belongs to members[a]
  // and members[b]. The members ascend. If `exact`, use the most accurate arithmetic available;
  // otherwise the cheapest.
  virtual void block(const std::vector<Index>& members, bool exact, double* hessian) = 0;

  // Optional. Return true if the Hessian is stored in float32. The solver then asks for float32
  // blocks, which halves the memory that is copied and that every step reads.
  virtual bool is_single() const { return false; }
  // Called only if is_single() returns true.
  virtual void block(const std::vector<Index>& /*members*/, float* /*hessian*/) {}

  // Optional. Return the whole Hessian if it is stored. A working set of all variables then needs
  // no copy of it. If is_single(), it must be in float32. After a solve on such a set, the solver
  // only calls recompute_gradient, which must then read x of all variables.
  virtual StoredHessian stored() const { return {}; }

  // Required. Bring the gradient up to date after x of the variables `moved` changed by `delta`.
  // The solver has changed x already.
  virtual void update_gradient(const std::vector<Index>& moved,
                               const std::vector<double>& delta) = 0;

  // Required. Recompute the gradient from x in float64. Variables that cannot have the largest left
  // or the smallest right derivative of their group may keep their old gradient, because the next
  // select_candidates then still gives the true violation.
  virtual void recompute_gradient() = 0;

  // Optional. Continue with the variables that can still improve the objective: those with a left
  // derivative above min_right or a right derivative below max_left of their group. Return their
  // number, or 0 if nothing was changed because too few variables would be left out.
  virtual Index shrink(const std::vector<MultiplierInterval>& /*intervals*/) { return 0; }
  // Undo the last shrink and bring the gradient of the variables it left out up to date.
  virtual void unshrink() {}

  // Optional. Set x to a point near the optimum of the whole problem. `free` is the number of free
  // variables. `many_rounds` says whether many rounds have passed since the last call that was not
  // declined, or since the start. Both help to decide whether a direct solve is cheaper than more
  // rounds.
  virtual DirectSolve solve_directly(Index /*free*/, bool /*many_rounds*/, const double* /*totals*/,
                                     std::vector<double>& /*x*/) {
    return DirectSolve::declined;
  }
};

}  // namespace pairstep
