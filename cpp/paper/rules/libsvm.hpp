// LIBSVM's rule, of the default solver (isa/libsvm.hpp), with curvatures from Lipschitz constants.
// Where the Hessian is stored, descent.hpp calls it with those of the Hessian. The NumPy form is
// src/pairstep/paper/rules/libsvm.py. Included once per instruction set.
#pragma once

#include "../rule.hpp"
#include "../../isa/libsvm.hpp"

namespace libsvm {

struct Libsvm {
  static constexpr Rule about{.name = "libsvm", .curved = true};

  template <class A>
  static void choose(const A& a, const RuleInput& input, Step& step) {
    const ByConstants curvature{input.choice.lipschitz, input.choice.alpha};
    choose_moderate_pair(a, input.ends, curvature, nullptr, step);
  }
};

using Rules = RuleList<Libsvm>;

}  // namespace libsvm
