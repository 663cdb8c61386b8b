#include "rows.hpp"

#include "../isa/dispatch.hpp"

namespace pairstep {

RowsAnswer solve_rows(const RowsProblem& problem, const double* start, const bool* holds,
                      unsigned seed, InterruptCheck& interrupt) {
  return isa().follow_rows(problem, start, holds, seed, interrupt);
}

}  // namespace pairstep
