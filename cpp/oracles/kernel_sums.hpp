// Sums of kernel values, tile by tile and shared out among threads: gradients and decisions.
#pragma once

#include <vector>

#include "points.hpp"
#include "../core/team.hpp"

namespace pairstep {

// Share the panels of some columns out among the team: work(first, last) on as many as stay in the
// cache.
template <class Real, class Work>
void over_panels(const Points<Real>& columns, Team& team, const Work& work) {
  const Index panels = columns.panels();
  const Index fair = panels / (4 * team.size()) + 1;
  const Index at_once = std::min(columns.panels_at_once(), fair);
  team.run((panels + at_once - 1) / at_once,
           [&](Index part) { work(part * at_once, std::min((part + 1) * at_once, panels)); });
}

template <class Real>
void run_tiles(const Tiles<Real>& job, Team& team) {
  over_panels(*job.columns, team,
              [&](Index first, Index last) { isa().of<Real>().tiles(job, first, last); });
}

// sums[o * stride + c] += sum_r weights[r * outputs + o] k(query_r, column_c), in Real arithmetic.
// (For a precomputed kernel the value is query_r's entry of row column_c of `columns`.) Queries
// come in groups, group g from starts[g] on: each has `outputs` sums of its own, after those before
// it.
template <class Real>
void add_kernel(const KernelFunction& kernel, const DataMatrix& query_data,
                const std::vector<Index>& queries, const std::vector<Index>& starts,
                const double* weights, Index outputs, const DataMatrix& column_data,
                const std::vector<Index>& columns, double* sums, Index stride, Team& team);

}  // namespace pairstep
