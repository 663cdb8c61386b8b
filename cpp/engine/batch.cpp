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

}  // namespace pairstep
