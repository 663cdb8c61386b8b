// The selection rules of the paper, and coordinate descent by a named rule. `minimize` uses
// neither.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "../core/types.hpp"

namespace pairstep::paper {

// Properties of a selection rule. Every rule states them in the file that defines it, in rules/.
struct Rule {
  const char* name;
  const char* alias = nullptr;  // a second name
  bool weighted = false;        // needs coordinate-wise Lipschitz constants
  bool uses_alpha = false;      // the choice depends on the step size
  bool one_norm = false;        // measures steps in the 1-norm
  bool curved = false;          // uses the curvature of pairs if the Hessian is explicit
  bool draws = false;           // uses random numbers
  bool in_turn = false;         // cyclic: uses the number of pairs chosen before
  int code = -1;                // position in the list of all rules

  // Whether the choice depends on the gradient.
  constexpr bool guided() const { return !(draws || in_turn); }
};

// The C interface of numpy.random's bit generators, so that native code draws from the generator
// that the caller passes.
struct BitGenerator {
  void* state;
  std::uint64_t (*next_uint64)(void*);
  std::uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  std::uint64_t (*next_raw)(void*);

  double uniform() { return next_double(state); }
};

// A rule and the inputs of its choice other than the point.
struct Choice {
  const Rule* rule;
  double alpha;             // step size of the rule's quadratic model
  const double* lipschitz;  // coordinate-wise constants; null means all 1
  BitGenerator* random;     // for the random rules
  Index turn;               // for the cyclic rule: number of pairs chosen before
  // Polled during long choices, if not null.
  InterruptCheck* interrupt = nullptr;

  void poll() const {
    if (interrupt) interrupt->poll();
  }
};

// Curvature used to compute the length of a step: that of the rule's own model (the step is taken
// as proposed), a multiple of the squared 1-norm, the coordinate-wise constants, or the Hessian.
enum class StepLength : int { model, norm, lipschitz, exact };

// How coordinate descent chooses steps and their lengths.
struct DescentOptions {
  Choice choice;
  StepLength step;
  double one_norm_constant;  // for StepLength::norm
  Index patience;            // iterations without progress after which the solver gives up
};

// The functions of this folder, compiled once per instruction set: at n = 1e6 every rule that uses
// the gradient is 1.3 to 2 times as fast with AVX2 as with the baseline, and gs-1 and the ratio
// rules another 1.25 to 1.35 times with AVX-512 (`python -m benchmarks.rules`).
struct Functions {
  std::span<const Rule> rules;  // the same for every set; the code of a rule is its position
  // The step of a rule at a point. Returns a coordinate with invalid input, or -1.
  Index (*propose)(const Point&, const Choice&, Step&);
  std::unique_ptr<GreedyRun> (*descent)(const GreedyTask&, const DescentOptions&, Index n);
  // Memory passes that serve as reference cost in benchmarks.
  double (*bare_pass)(const double* const* arrays, Index count, Index n);
  double (*bare_update)(const double* hessian, double* gradient, Index n, Index i, Index j,
                        double t);
};

// The functions for the instruction set in use (isa/dispatch.hpp).
const Functions& functions();

}  // namespace pairstep::paper
