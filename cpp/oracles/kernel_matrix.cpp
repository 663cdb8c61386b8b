#include "kernel_matrix.hpp"

#include <algorithm>

namespace pairstep {

namespace {

constexpr Index PANEL = Points<double>::PANEL;

Index padded(Index count) { return (count + PANEL - 1) / PANEL * PANEL; }

}  // namespace

std::size_t KernelMatrix::bytes(Index rows) {
  return std::size_t(rows) * std::size_t(padded(rows)) * sizeof(double);
}

// Each pair of rows once: a panel of columns with the rows from its own on, and then turned over.
KernelMatrix::KernelMatrix(const KernelFunction& kernel, const DataMatrix& data,
                           const std::vector<Index>& rows, Team& team)
    : count_(Index(rows.size())), arena_(bytes(count_)) {
  const Points<double> points(data, rows.data(), count_, &team);
  const std::vector<double> blocks = points.blocks();
  std::vector<double*> lines;
  for (Index r = 0; r < count_; ++r)
    lines.push_back(static_cast<double*>(arena_.data()) + r * padded(count_));
  over_panels(points, team, [&](Index first, Index last) {
    const Index begin = first * PANEL, end = std::min(last * PANEL, count_);
    Tiles<double> job{kernel, &points, &points, blocks.data()};
    job.first_query = begin;
    job.rows = lines.data();
    isa().of<double>().tiles(job, first, last);
    for (Index below = end; below < count_; below += PANEL)
      for (Index c = begin; c < end; ++c)
        for (Index r = below; r < std::min(below + PANEL, count_); ++r) lines[c][r] = lines[r][c];
  });
}

DataMatrix KernelMatrix::matrix() const {
  DataMatrix matrix;
  matrix.rows = count_;
  matrix.features = padded(count_);
  matrix.dense = static_cast<const double*>(arena_.data());
  return matrix;
}

}  // namespace pairstep
