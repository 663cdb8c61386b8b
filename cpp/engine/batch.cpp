#include "batch.hpp"

#include <algorithm>
#include <vector>

#include "../core/thread_pool.hpp"

namespace pairstep {

void solve_batch(const Batch& batch, InterruptCheck& interrupt) {
  // Longer chunks offer more problems a start from the previous solution. Shorter ones balance the
  // load better.
  constexpr Index PROBLEMS_PER_CHUNK = 32;
  const Index chunks = (batch.count + PROBLEMS_PER_CHUNK - 1) / PROBLEMS_PER_CHUNK;
  ThreadPool pool(int(std::min<Index>(batch.threads, chunks)), interrupt);
  pool.run(chunks, [&](Index chunk) {
    const Index begin = chunk * PROBLEMS_PER_CHUNK,
                end = std::min(begin + PROBLEMS_PER_CHUNK, batch.count);
    for (Index k = begin; k < end; ++k) std::copy_n(batch.start, batch.n, batch.x + k * batch.n);
    if (!interrupt.stopped()) isa().solve_chunk(batch, begin, end, interrupt);
  });
}

namespace {

// A copy of a matrix, padded with zeros on the right and below.
std::vector<double> padded(const double* matrix, Index rows, Index columns, Index to_rows,
                           Index to_columns) {
  std::vector<double> wide(std::size_t(to_rows * to_columns));
  for (Index i = 0; i < rows; ++i)
    std::copy_n(matrix + i * columns, columns, wide.data() + i * to_columns);
  return wide;
}

void solve_padded(const FewColumns& problem, InterruptCheck& interrupt) {
  // Numbers of B per job: 128 KiB, which leaves most of a second-level cache to other data.
  constexpr Index NUMBERS_PER_JOB = 1 << 14;
  // Columns of B per job. The minimum is two of the widest vectors (AVX-512), and the width of a
  // job is a multiple of it, so that only the last job has empty lanes. If B has few rows, the
  // maximum keeps a job small enough to balance the load.
  constexpr Index MIN_COLUMNS = 16, MAX_COLUMNS = 256;
  const Index width =
      std::clamp(NUMBERS_PER_JOB / std::max<Index>(problem.m, 1) / MIN_COLUMNS * MIN_COLUMNS,
                 MIN_COLUMNS, MAX_COLUMNS);
  const Index chunks = (problem.count + width - 1) / width;
  ThreadPool pool(int(std::min<Index>(problem.threads, chunks)), interrupt);
  pool.run(chunks, [&](Index chunk) {
    const Index begin = chunk * width, end = std::min(begin + width, problem.count);
    if (!interrupt.stopped()) isa().solve_few_columns(problem, begin, end);
  });
}

}  // namespace

void solve_few_columns(const FewColumns& problem, InterruptCheck& interrupt) {
  const Index n = problem.n, width = *std::lower_bound(COMPILED_COLUMN_COUNTS.begin(),
                                                       COMPILED_COLUMN_COUNTS.end(), n);
  const auto row = [&](const double* values) { return padded(values, 1, n, 1, width); };
  const auto A = padded(problem.A, problem.m, n, problem.m, width);
  const auto hessian = padded(problem.hessian, n, n, width, width);
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
  solve_padded(wide, interrupt);
}

}  // namespace pairstep
