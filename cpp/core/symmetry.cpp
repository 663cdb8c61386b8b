#include "symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../isa/dispatch.hpp"
#include "thread_pool.hpp"

namespace pairstep {

template <class Real>
Asymmetry asymmetry(const Real* matrix, Index n, int threads, InterruptCheck& interrupt) {
  std::vector<double> diagonal(n);
  for (Index i = 0; i < n; ++i) diagonal[i] = matrix[i * (n + 1)];
  const auto within = [&](Index begin, Index end) {
    if constexpr (sizeof(Real) == sizeof(float))
      return isa().asymmetry32(matrix, n, diagonal.data(), begin, end);
    else return isa().asymmetry(matrix, n, diagonal.data(), begin, end);
  };
  if (n <= SYMMETRY_BLOCK) return within(0, n);
  const Index parts = (n + SYMMETRY_BLOCK - 1) / SYMMETRY_BLOCK;
  std::vector<Asymmetry> found(parts);
  ThreadPool pool(int(std::min<Index>(threads, parts)), interrupt);
  pool.run(parts, [&](Index part) {
    const Index begin = part * SYMMETRY_BLOCK;
    found[part] = within(begin, std::min(begin + SYMMETRY_BLOCK, n));
  });
  Asymmetry all;
  for (const Asymmetry& part : found) {
    all.least_pair = std::min(all.least_pair, part.least_pair);
    all.largest =
        part.largest > all.largest || std::isnan(part.largest) ? part.largest : all.largest;
    if (!(part.difference > all.difference)) continue;
    all.difference = part.difference;
    all.i = part.i;
    all.j = part.j;
  }
  return all;
}

template Asymmetry asymmetry(const double*, Index, int, InterruptCheck&);
template Asymmetry asymmetry(const float*, Index, int, InterruptCheck&);

}  // namespace pairstep
