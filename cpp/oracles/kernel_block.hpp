// The kernel matrix of some points: the Hessian of a working set or of a whole dual.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernel_sums.hpp"

namespace pairstep {

// Set values[r * stride + c] = k(point r, point c), where `stride` is the length of a row in
// memory. Each pair of points is computed once. A job takes some panels of columns and the rows
// from there on, a few rows at a time, and copies them to the transposed position while they are in
// the cache.
template <class Real, class Value>
void kernel_block(const KernelFunction& kernel, const Points<Real>& some, Value* values,
                  Index stride, ThreadPool& pool) {
  constexpr Index PANEL = Points<Real>::PANEL;
  // More rows at a time might leave the cache before they are copied; fewer would read each panel
  // of columns more often.
  constexpr Index ROWS_AT_ONCE = 4 * PANEL;
  const Index q = some.count();
  const std::vector<Real> blocks = some.blocks();
  over_panels(some, pool, [&](Index first, Index last) {
    const Index begin = first * PANEL, width = (last - first) * PANEL,
                end = std::min(begin + width, q);
    Tiles<Real> job{kernel, &some, &some, blocks.data()};
    std::vector<Real*> lines(std::size_t(q), nullptr);
    job.rows = lines.data();
    // Tiles write whole panels of Real. They write to a buffer if a panel exceeds the row or if the
    // values have another type.
    bool in_place = false;
    if constexpr (std::is_same_v<Real, Value>) {
      in_place = begin + width <= stride;
      if (in_place)
        for (Index r = begin; r < q; ++r) lines[r] = values + r * stride;
    }
    std::unique_ptr<Real[]> buffer;
    if (!in_place) {
      buffer = std::make_unique_for_overwrite<Real[]>(std::size_t(ROWS_AT_ONCE * width));
      job.first_column = begin;
      for (Index r = begin; r < q; ++r)
        lines[r] = buffer.get() + (r - begin) % ROWS_AT_ONCE * width;
    }
    for (Index top = begin; top < q; top += ROWS_AT_ONCE) {
      pool.interrupt().poll();  // one job may take more than a second
      const Index bottom = std::min(top + ROWS_AT_ONCE, q);
      job.first_query = top;
      job.last_query = bottom;
      isa().of<Real>().tiles(job, first, last);
      if (!in_place)
        for (Index r = top; r < bottom; ++r)
          std::copy_n(lines[r], end - begin, values + r * stride + begin);
      for (Index below = std::max(top, end); below < bottom; below += PANEL)
        for (Index c = begin; c < end; ++c)
          for (Index r = below; r < std::min(below + PANEL, bottom); ++r)
            values[c * stride + r] = values[r * stride + c];
    }
  });
}

}  // namespace pairstep
