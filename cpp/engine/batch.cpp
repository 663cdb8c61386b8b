#include "batch.hpp"

#include <algorithm>

#include "../core/team.hpp"

namespace pairstep {

void solve_batch(const Batch& batch) {
  constexpr Index CHUNK = 32;
  const Index chunks = (batch.count + CHUNK - 1) / CHUNK;
  Team team(int(std::min<Index>(batch.threads, chunks)));
  team.run(chunks, [&](Index chunk) {
    isa().solve_chunk(batch, chunk * CHUNK, std::min((chunk + 1) * CHUNK, batch.count));
  });
}

}  // namespace pairstep
