#include "kernel_matrix.hpp"

#include <algorithm>
#include <memory>
#include <type_traits>

namespace pairstep {

namespace {

constexpr Index PANEL = Points<double>::PANEL;

Index padded(Index count) { return (count + PANEL - 1) / PANEL * PANEL; }

}  // namespace

template <class Real>
std::size_t KernelMatrix<Real>::bytes(Index rows) {
  return std::size_t(rows) * std::size_t(padded(rows)) * sizeof(Real);
}

// Each pair of rows once: a panel of columns with the rows from its own on, and then turned over.
template <class Real>
KernelMatrix<Real>::KernelMatrix(const KernelFunction& kernel, const DataMatrix& data,
                                 const std::vector<Index>& rows, Team& team)
    : count_(Index(rows.size())), arena_(bytes(count_)) {
  const Points<double> points(data, rows.data(), count_, &team);
  const std::vector<double> blocks = points.blocks();
  const Index stride = padded(count_);
  Real* const values = static_cast<Real*>(arena_.data());
  over_panels(points, team, [&](Index first, Index last) {
    const Index begin = first * PANEL, width = (last - first) * PANEL,
                end = std::min(begin + width, count_);
    Tiles<double> job{kernel, &points, &points, blocks.data()};
    job.first_query = begin;
    std::vector<double*> lines(std::size_t(count_), nullptr);
    std::unique_ptr<double[]> room;  // for what is to be rounded
    if constexpr (std::is_same_v<Real, double>) {
      for (Index r = begin; r < count_; ++r) lines[r] = values + r * stride;
    } else {
      room = std::make_unique_for_overwrite<double[]>(std::size_t((count_ - begin) * width));
      job.first_column = begin;
      for (Index r = begin; r < count_; ++r) lines[r] = room.get() + (r - begin) * width;
    }
    job.rows = lines.data();
    isa().of<double>().tiles(job, first, last);
    if constexpr (!std::is_same_v<Real, double>)
      for (Index r = begin; r < count_; ++r)
        std::copy_n(lines[r], width, values + r * stride + begin);
    for (Index below = end; below < count_; below += PANEL)
      for (Index c = begin; c < end; ++c)
        for (Index r = below; r < std::min(below + PANEL, count_); ++r)
          values[c * stride + r] = values[r * stride + c];
  });
}

template <class Real>
DataMatrix KernelMatrix<Real>::matrix() const {
  DataMatrix matrix;
  matrix.rows = count_;
  matrix.features = padded(count_);
  const Real* values = static_cast<const Real*>(arena_.data());
  if constexpr (std::is_same_v<Real, double>) matrix.dense = values;
  else matrix.dense32 = values;
  return matrix;
}

template class KernelMatrix<float>;
template class KernelMatrix<double>;

}  // namespace pairstep
