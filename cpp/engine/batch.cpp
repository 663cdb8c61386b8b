#include "batch.hpp"

#include <algorithm>
#include <vector>

#include "../core/team.hpp"

namespace pairstep {

void solve_batch(const Batch& batch, Pulse& pulse) {
  constexpr Index CHUNK = 32;
  const Index chunks = (batch.count + CHUNK - 1) / CHUNK;
  Team team(int(std::min<Index>(batch.threads, chunks)), pulse);
  team.run(chunks, [&](Index chunk) {
    const Index begin = chunk * CHUNK, end = std::min(begin + CHUNK, batch.count);
    for (Index k = begin; k < end; ++k) std::copy_n(batch.start, batch.n, batch.x + k * batch.n);
    if (!pulse.stopped()) isa().solve_chunk(batch, begin, end, pulse);
  });
}

namespace {

// A matrix, or a vector as its row, with columns of zeros beside it, and rows below.
std::vector<double> widened(const double* matrix, Index rows, Index columns, Index to_rows,
                            Index to_columns) {
  std::vector<double> wide(std::size_t(to_rows * to_columns));
  for (Index i = 0; i < rows; ++i)
    std::copy_n(matrix + i * columns, columns, wide.data() + i * to_columns);
  return wide;
}

void solve_widened(const FewColumns& problem, Pulse& pulse) {
  // As many columns as the second-level cache holds beside other things.
  constexpr Index CACHED = 1 << 14, MOST = 256, LEAST = 16;  // two of the widest vectors
  const Index width =
      std::clamp(CACHED / std::max<Index>(problem.m, 1) / LEAST * LEAST, LEAST, MOST);
  const Index chunks = (problem.count + width - 1) / width;
  Team team(int(std::min<Index>(problem.threads, chunks)), pulse);
  team.run(chunks, [&](Index chunk) {
    const Index begin = chunk * width, end = std::min(begin + width, problem.count);
    if (!pulse.stopped()) isa().solve_few_columns(problem, begin, end);
  });
}

}  // namespace

void solve_few_columns(const FewColumns& problem, Pulse& pulse) {
  const Index n = problem.n, width = *std::lower_bound(WIDTHS.begin(), WIDTHS.end(), n);
  const auto row = [&](const double* values) { return widened(values, 1, n, 1, width); };
  const auto A = widened(problem.A, problem.m, n, problem.m, width);
  const auto hessian = widened(problem.hessian, n, n, width, width);
  const auto ridge = row(problem.ridge), start = row(problem.start);
  const auto lower = row(problem.lower), upper = row(problem.upper);
  FewColumns wide = problem;
  wide.width = width;
  wide.A = A.data();
  wide.hessian = hessian.data();
  wide.ridge = ridge.data();
  wide.start = start.data();
  wide.lower = lower.data();
  wide.upper = upper.data();
  solve_widened(wide, pulse);
}

}  // namespace pairstep
