// The kernel of some points with each other: the Hessian of a working set.
#pragma once

#include <algorithm>
#include <vector>

#include "../core/arena.hpp"
#include "kernel_sums.hpp"

namespace pairstep {

// hessian[r * q + c] = k(point r, point c). `room` is for the tiles, kept by who asks again: fresh
// memory would cost as much as they do.
template <class Real>
void kernel_block(const KernelFunction& kernel, const Points<Real>& some, Arena& room,
                  double* hessian, Team& team) {
  constexpr Index ROWS_AT_ONCE = 64;  // that one thread copies
  const Index q = some.count(), stride = some.padded();
  const std::vector<Real> blocks = some.blocks();
  const std::size_t bytes = std::size_t(q) * std::size_t(stride) * sizeof(Real);
  const auto values = static_cast<Real*>(room.fit(bytes));
  std::vector<Real*> rows(std::size_t(q), nullptr);
  for (Index r = 0; r < q; ++r) rows[r] = values + r * stride;
  Tiles<Real> job{kernel, &some, &some, blocks.data()};
  job.rows = rows.data();
  run_tiles(job, team);
  const Index parts = (q + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
  team.run(parts, [&](Index part) {
    for (Index r = part * ROWS_AT_ONCE; r < std::min(q, (part + 1) * ROWS_AT_ONCE); ++r)
      std::copy_n(rows[r], q, hessian + r * q);
  });
}

}  // namespace pairstep
