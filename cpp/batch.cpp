#include "batch.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace pairstep {

namespace {

constexpr Index CHUNK = 32;

}  // namespace

void solve_batch(const Batch& batch) {
  const Index chunks = (batch.count + CHUNK - 1) / CHUNK;
  std::atomic<Index> next{0};
  const auto work = [&] {
    for (Index chunk; (chunk = next.fetch_add(1)) < chunks;)
      kernels().solve_chunk(batch, chunk * CHUNK, std::min((chunk + 1) * CHUNK, batch.count));
  };
  std::vector<std::thread> helpers;
  for (Index t = 1; t < std::min<Index>(batch.threads, chunks); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace pairstep
