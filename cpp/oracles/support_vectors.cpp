#include "support_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace pairstep {

namespace {

// New rows that pass over the support vectors together, and the parts of these that threads share
// out where there are no more rows.
constexpr Index ROWS = 48, PARTS = 8;

// From so many rows on it pays to join the support vectors of a linear kernel.
constexpr Index MANY = 8;

std::vector<Index> numbered(Index count) {
  std::vector<Index> all(std::size_t(count), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double largest_weight(const double* weights, Index count, Index outputs,
                      const std::vector<Index>& groups) {
  double largest = 0.0;
  for (Index o = 0; o < outputs; ++o)
    for (std::size_t g = 0; g + 1 < groups.size(); ++g) {
      double sum = 0.0;
      for (Index s = groups[g]; s < groups[g + 1]; ++s) sum += std::abs(weights[o * count + s]);
      largest = std::max(largest, sum);
    }
  return largest;
}

}  // namespace

bool single_suffices(const KernelFunction& kernel, double square, double weight, double allowed) {
  return fits_single(kernel, square) && reach<float>(kernel, square).error * weight <= allowed;
}

SupportVectors::SupportVectors(const KernelFunction& kernel, DataMatrix data)
    : kernel_(kernel),
      data_(std::move(data)),
      largest_square_(data_.largest_square(nullptr, data_.rows)) {}

SupportVectors::~SupportVectors() {
  delete single_.load();
  delete double_.load();
}

template <class Real>
const Points<Real>& SupportVectors::points(Kept<Real>& kept) const {
  const Points<Real>* known = kept.load();
  if (known) return *known;
  auto mine = std::make_unique<const Points<Real>>(data_, numbered(count()).data(), count());
  return *(kept.compare_exchange_strong(known, mine.get()) ? mine.release() : known);
}

void SupportVectors::decide(const double* weights, Index outputs, const std::vector<Index>& groups,
                            DataMatrix X, double allowed, double* sums, Team& team) const {
  if (count() == 0 || X.rows == 0) return;
  X.lay_out_like(data_);
  const bool single =
      allowed > 0 &&
      single_suffices(kernel_, std::max(largest_square_, X.largest_square(nullptr, X.rows)),
                      largest_weight(weights, count(), outputs, groups), allowed);
  if (single) add(points(single_), weights, outputs, groups, X, sums, team);
  else add(points(double_), weights, outputs, groups, X, sums, team);
}

template <class Real>
void SupportVectors::add(const Points<Real>& support, const double* weights, Index outputs,
                         const std::vector<Index>& groups, const DataMatrix& X, double* sums,
                         Team& team) const {
  const bool one_sum = outputs == 1 && groups.size() == 2;
  if (kernel_.name == KernelName::linear && one_sum && support.panels() > 1 && X.rows > MANY) {
    const double one = 1.0;
    return add(support.combine(numbered(count()), weights), &one, 1, {0, 1}, X, sums, team);
  }
  const std::vector<Index> rows = numbered(X.rows);
  const Index n_sums = outputs * (Index(groups.size()) - 1);
  const Index panels = support.panels(), parts = std::min(PARTS, panels);
  const auto decide_some = [&](Index first, Index count, Team& within) {
    const Points<Real> queries(X, rows.data() + first, count);
    const std::vector<Real> blocks = queries.blocks();
    std::vector<double> totals(std::size_t(parts * n_sums * count), 0.0);
    within.run(parts, [&](Index part) {
      Tiles<Real> job{kernel_, &support, &queries, blocks.data()};
      job.column_weights = weights;
      job.totals = totals.data() + part * n_sums * count;
      job.groups = &groups;
      job.outputs = outputs;
      job.stride = count;
      const Index last = (part + 1) * panels / parts, step = support.panels_at_once();
      for (Index panel = part * panels / parts; panel < last; panel += step)
        isa().of<Real>().tiles(job, panel, std::min(panel + step, last));
    });
    for (Index part = 0; part < parts; ++part)
      for (Index s = 0; s < n_sums; ++s)
        for (Index r = 0; r < count; ++r)
          sums[s * X.rows + first + r] += totals[(part * n_sums + s) * count + r];
  };
  const Index chunks = (X.rows + ROWS - 1) / ROWS;
  if (chunks == 1) return decide_some(0, X.rows, team);
  team.run(chunks, [&](Index chunk) {
    const Index first = chunk * X.rows / chunks, last = (chunk + 1) * X.rows / chunks;
    Team alone(1, team.pulse());
    decide_some(first, last - first, alone);
  });
}

}  // namespace pairstep
