#include "batch.hpp"

#include <algorithm>

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

void solve_few_columns(const FewColumns& problem, Pulse& pulse) {
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

}  // namespace pairstep
