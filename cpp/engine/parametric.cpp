#include "parametric.hpp"

#include "../isa/dispatch.hpp"

namespace pairstep {

std::unique_ptr<Parametric> make_parametric(const QuadraticProgram& problem) {
  return isa().parametric(problem);
}

}  // namespace pairstep
