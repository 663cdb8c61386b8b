#include "kernel_matrix.hpp"

#include "kernel_block.hpp"

namespace pairstep {

namespace {

constexpr Index PANEL = Points<double>::PANEL;

Index padded(Index count) { return (count + PANEL - 1) / PANEL * PANEL; }

}  // namespace

template <class Real>
std::size_t KernelMatrix<Real>::bytes(Index rows) {
  return std::size_t(rows) * std::size_t(padded(rows)) * sizeof(Real);
}

template <class Real>
KernelMatrix<Real>::KernelMatrix(const KernelFunction& kernel, const DataMatrix& data,
                                 const std::vector<Index>& rows, ThreadPool& pool)
    : count_(Index(rows.size())), arena_(bytes(count_)) {
  if (!arena_.data()) throw std::bad_alloc();
  const auto values = static_cast<Real*>(arena_.data());
  if (kernel.name == KernelName::precomputed) {
    data.for_dense([&](const auto* entries) {
      pool.run(count_, [&](Index r) {
        const auto* row = entries + rows[r] * data.features;
        for (Index c = 0; c < count_; ++c) values[r * padded(count_) + c] = Real(row[rows[c]]);
      });
    });
    return;
  }
  const Points<double> points(data, rows.data(), count_, &pool);
  kernel_block(kernel, points, values, padded(count_), pool);
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
