// Collection of positions by score. Included once per instruction set.
#pragma once

#include "../isa/simd.hpp"

// Append to out[k] each position whose k-th score is above 0.
template <int K, class Score>
inline void collect(Index n, std::array<std::vector<Index>*, K> out, Score score) {
  Index p = 0;
  for (; p + WIDTH <= n; p += WIDTH) {
    const std::array<Lanes, K> at = score.template operator()<Lanes>(p);
    std::array<unsigned, K> bits;
    unsigned any = 0;
    for (int k = 0; k < K; ++k) any |= bits[k] = above(at[k], all<Lanes>(0.0));
    if (any == 0) continue;
    for (int k = 0; k < K; ++k) for_bits(bits[k], [&](Index lane) { out[k]->push_back(p + lane); });
  }
  for (; p < n; ++p) {
    const std::array<double, K> at = score.template operator()<double>(p);
    for (int k = 0; k < K; ++k)
      if (at[k] > 0) out[k]->push_back(p);
  }
}
