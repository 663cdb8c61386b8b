#include "support_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace pairstep {

namespace {

struct DecisionSettings {
  // Rows that are processed together, and parts into which the support vectors are divided. If all
  // rows are processed together, each thread takes some of the parts. More rows read the support
  // vectors less often; more parts occupy more threads, but have more sums to add up.
  static constexpr Index max_rows = 48, max_parts = 8;
  // Limits on the memory of sums, which reduce the number of rows and parts if each row has many
  // sums: all parts of one row, and all parts of the rows that are processed together. The latter
  // should stay in the second-level cache.
  static constexpr Index max_bytes_per_row = Index(1) << 16, max_bytes_of_rows = Index(1) << 20;
  // With more rows than this, a linear kernel first combines its support vectors into one. This
  // takes about one pass over the support vectors, as much as the products with a block of rows.
  static constexpr Index max_rows_uncombined = 8;
  // If the rounding of norms could change a decision by more than this, distances are computed from
  // differences. A smaller value uses the slower differences more often.
  static constexpr double max_norm_rounding = 1e-7;
};

std::vector<Index> indices_up_to(Index count) {
  std::vector<Index> all(std::size_t(count), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The largest sum of absolute weights of an output and a group.
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

double center_offset(const DataMatrix& data, const Index* rows, const double* weights,
                     Index count) {
  long double sum = 0.0L;
  for (Index k = 0; k < count; ++k)
    if (weights[k] != 0) sum += weights[k] * data.center_product(rows[k]);
  return double(sum);
}

bool single_suffices(const KernelFunction& kernel, double square, double weight, double allowed) {
  return fits_single(kernel, square) &&
         kernel_bounds<float>(kernel, square).error * weight <= allowed;
}

SupportVectors::SupportVectors(const KernelFunction& kernel, DataMatrix data)
    : kernel_(kernel),
      data_(std::move(data)),
      uncentered_(data_),
      largest_square_(data_.largest_square(nullptr, data_.rows)) {
  if (needs_differences(kernel, largest_square_, INFINITY, DecisionSettings::max_norm_rounding))
    uncentered_.lay_out(kernel, nullptr);
  if (kernel.name == KernelName::linear && !data_.center.empty())
    for (Index row = 0; row < data_.rows; ++row)
      center_products_.push_back(data_.center_product(row));
}

SupportVectors::~SupportVectors() {
  delete single_.load();
  delete double_.load();
  delete for_differences_.load();
}

template <class Real>
const Points<Real>& SupportVectors::points(Packed<Real>& packed, const DataMatrix& data) const {
  const Points<Real>* known = packed.load();
  if (known) return *known;
  auto mine = std::make_unique<const Points<Real>>(data, indices_up_to(count()).data(), count());
  return *(packed.compare_exchange_strong(known, mine.get()) ? mine.release() : known);
}

void SupportVectors::decide(const double* weights, Index outputs, const std::vector<Index>& groups,
                            DataMatrix X, double allowed, double* sums, ThreadPool& pool) const {
  std::fill_n(sums, X.rows * outputs * (Index(groups.size()) - 1), 0.0);
  if (count() == 0 || X.rows == 0) return;
  const double weight = largest_weight(weights, count(), outputs, groups);
  // Whether to use differences does not depend on X: a new row with a much larger norm than the
  // support vectors has kernel values of about 0, whatever the rounding of its norm.
  if (needs_differences(kernel_, largest_square_, weight, DecisionSettings::max_norm_rounding)) {
    KernelFunction with_differences = kernel_;
    with_differences.differences = true;
    X.lay_out_like(uncentered_);
    return add(with_differences, points(for_differences_, uncentered_), weights, outputs, groups, X,
               sums, pool);
  }
  X.lay_out_like(data_);
  const bool single =
      allowed > 0 &&
      single_suffices(kernel_, std::max(largest_square_, X.largest_square(nullptr, X.rows)), weight,
                      allowed);
  if (single) add(kernel_, points(single_, data_), weights, outputs, groups, X, sums, pool);
  else add(kernel_, points(double_, data_), weights, outputs, groups, X, sums, pool);
  if (!center_products_.empty()) add_offsets(weights, outputs, groups, X.rows, sums);
}

void SupportVectors::add_offsets(const double* weights, Index outputs,
                                 const std::vector<Index>& groups, Index rows, double* sums) const {
  const Index n_groups = Index(groups.size()) - 1;
  for (std::size_t g = 0; g + 1 < groups.size(); ++g)
    for (Index o = 0; o < outputs; ++o) {
      long double offset = 0.0L;
      for (Index s = groups[g]; s < groups[g + 1]; ++s)
        offset += weights[o * count() + s] * center_products_[s];
      for (Index r = 0; r < rows; ++r)
        sums[(r * n_groups + Index(g)) * outputs + o] += double(offset);
    }
}

template <class Real>
void SupportVectors::add(const KernelFunction& kernel, const Points<Real>& support,
                         const double* weights, Index outputs, const std::vector<Index>& groups,
                         const DataMatrix& X, double* sums, ThreadPool& pool) const {
  const bool one_sum = outputs == 1 && groups.size() == 2;
  if (kernel.name == KernelName::linear && one_sum && support.panels() > 1 &&
      X.rows > DecisionSettings::max_rows_uncombined) {
    const double one = 1.0;
    return add(kernel, support.combine(indices_up_to(count()), weights), &one, 1, {0, 1}, X, sums,
               pool);
  }
  const std::vector<Index> rows = indices_up_to(X.rows);
  // The tiles expect the weights of a support vector contiguously, padded to full vectors.
  const Index padded =
      outputs == 1 ? 1 : (outputs + OUTPUTS_STEP - 1) / OUTPUTS_STEP * OUTPUTS_STEP;
  std::vector<double> by_vector;
  if (outputs > 1) {
    by_vector.assign(std::size_t(padded * support.count()), 0.0);
    for (Index o = 0; o < outputs; ++o)
      for (Index s = 0; s < support.count(); ++s)
        by_vector[std::size_t(s * padded + o)] = weights[o * support.count() + s];
  }
  const Index n_groups = Index(groups.size()) - 1, n_sums = padded * n_groups;
  const Index row_bytes = n_sums * Index(sizeof(double));
  // Each part has its own sums. The number of parts affects the bits of the result, so it must not
  // depend on the number of rows.
  const Index panels = support.panels(),
              parts = std::clamp<Index>(DecisionSettings::max_bytes_per_row / row_bytes, 1,
                                        std::min(DecisionSettings::max_parts, panels));
  const auto decide_some = [&](Index first, Index count, ThreadPool& within) {
    const Points<Real> queries(X, rows.data() + first, count);
    const std::vector<Real> blocks = queries.blocks();
    std::vector<double> totals(std::size_t(parts * n_sums * count), 0.0);
    within.run(parts, [&](Index part) {
      Tiles<Real> job{kernel, &support, &queries, blocks.data()};
      job.column_weights = outputs == 1 ? weights : by_vector.data();
      job.totals = totals.data() + part * n_sums * count;
      job.groups = &groups;
      job.outputs = padded;
      job.stride = n_sums;
      const Index last = (part + 1) * panels / parts, step = support.panels_at_once();
      for (Index panel = part * panels / parts; panel < last; panel += step)
        isa().of<Real>().tiles(job, panel, std::min(panel + step, last));
    });
    for (Index part = 0; part < parts; ++part)
      for (Index r = 0; r < count; ++r)
        for (Index g = 0; g < n_groups; ++g) {
          const double* from = totals.data() + (part * count + r) * n_sums + g * padded;
          double* to = sums + ((first + r) * n_groups + g) * outputs;
          for (Index o = 0; o < outputs; ++o) to[o] += from[o];
        }
  };
  Index at_once = std::clamp<Index>(DecisionSettings::max_bytes_of_rows / (parts * row_bytes), 1,
                                    DecisionSettings::max_rows);
  if (at_once > Points<Real>::BLOCK) at_once -= at_once % Points<Real>::BLOCK;
  const Index chunks = (X.rows + at_once - 1) / at_once;
  if (chunks == 1) return decide_some(0, X.rows, pool);
  pool.run(chunks, [&](Index chunk) {
    const Index first = chunk * X.rows / chunks, last = (chunk + 1) * X.rows / chunks;
    ThreadPool alone(1, pool.interrupt());
    decide_some(first, last - first, alone);
  });
}

}  // namespace pairstep
