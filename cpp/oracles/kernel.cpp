#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pairstep {

namespace {

struct KernelOracleSettings {
  // Shrink only if at most this fraction of the variables remains. A new level copies their points
  // and begins with an empty cache, so a larger fraction would save less than that costs.
  static constexpr double max_active = 0.7;
  // Recompute the gradient of a variable if its derivative differs from the extreme of its group by
  // at most this multiple of the largest known error. A larger multiple recomputes more variables
  // at once; a smaller one needs more rounds and may overlook a larger error.
  static constexpr double error_margin = 8;
};

struct KernelRowsSettings {
  // Dense rows with at least this many features are computed in blocks. The kernel values of a
  // block read each feature of the columns once. With fewer features, that saves less than choosing
  // rows that may not be needed costs (measured with 60 to 256 features).
  static constexpr Index min_features_in_blocks = 96;
};

// Kernel rows that are computed when they are needed and kept in the cache of a level.
class KernelRows final : public HessianRows {
 public:
  using Level = ShrinkableGradient<float>::Level;

  KernelRows(const KernelFunction& kernel, Level& level)
      : level_(level),
        blocks_(level.points.blocks()),
        job_{kernel, &level.points, &level.points, blocks_.data()},
        rows_(std::size_t(level.points.count()), nullptr) {
    job_.rows = rows_.data();
    level.cache.resize(level.points.count());
  }

  float diagonal(Index i) const override {
    return float(kernel_of_itself(job_.kernel, double(level_.points.squares()[i])));
  }

  void compute(const std::vector<Index>& wanted, const float** rows) override {
    std::vector<float*> to = level_.cache.claim(wanted, [](Index) { return true; });
    for (std::size_t k = 0; k < wanted.size(); ++k) rows[wanted[k]] = to[k];
    if (wanted.size() == 1) {  // without a copy of the point
      const Index i = wanted.front();
      rows_[i] = to.front();
      job_.first_query = i;
      job_.last_query = i + 1;
      return isa().for_float.tiles(job_, 0, level_.points.panels());
    }
    const Points<float> queries = level_.points.take(wanted);
    const std::vector<float> blocks = queries.blocks();
    Tiles<float> job{job_.kernel, &level_.points, &queries, blocks.data()};
    job.rows = to.data();
    isa().for_float.tiles(job, 0, level_.points.panels());
  }

  Index rows_at_once() const override {
    if (level_.points.sparse()) return Lines<float>::WIDTH;
    const bool is_long = level_.points.features() >= KernelRowsSettings::min_features_in_blocks;
    return is_long ? Points<float>::BLOCK : 1;
  }

 private:
  Level& level_;
  const std::vector<float> blocks_;
  Tiles<float> job_;
  std::vector<float*> rows_;
};

}  // namespace

template <class Real>
KernelOracle<Real>::KernelOracle(const KernelDual& dual, const Point& point, ThreadPool& pool,
                                 const double* known)
    : LocalOracle(pool),
      dual_(dual),
      whole_(point),
      gradient_({dual_.kernel, dual_.data, dual_.rows, nullptr, dual_.linear, dual_.cache_bytes,
                 point.n, dual_.memory},
                point) {
  const Index n = point.n;
  const Real* squares = gradient_.first().points.squares();
  rounding_ =
      kernel_bounds<Real>(dual.kernel, double(*std::max_element(squares, squares + n))).error;
  const double mean = std::accumulate(squares, squares + n, 0.0) / double(n);
  usual_rounding_ = kernel_bounds<Real>(dual.kernel, mean).error;
  noise_ = std::make_unique<Noise>(point, n, [&](Index i) {
    return kernel_bounds<Real>(dual.kernel, double(squares[i])).largest;
  });
  if (known) {
    std::copy_n(known, n, gradient_.first().derivatives.gradient());
    return;
  }
  const Support support(point);
  gradient_.template add_sums<Real>(dual_.data, rows_of(support.coordinates), support.weights,
                                    {dual_.rows, dual_.rows + n},
                                    gradient_.first().derivatives.gradient(), pool);
}

template <class Real>
std::vector<Index> KernelOracle<Real>::rows_of(const std::vector<Index>& coordinates) const {
  std::vector<Index> rows;
  rows.reserve(coordinates.size());
  for (const Index i : coordinates) rows.push_back(dual_.rows[i]);
  return rows;
}

template <class Real>
void KernelOracle<Real>::select_candidates(Index count, bool with_free, Candidates& found) {
  gradient_.select_candidates(count, with_free, found);
  found.scale = 1.0;  // the tolerance of an SVM is absolute
  found.noise = noise_->at(whole_, found);
  if (sizeof(Real) == sizeof(double)) return;
  // Errors of kernel values are nearly independent, so their squares add up.
  const Point& point = gradient_.level().derivatives.point();
  double square = 0.0;
  for (Index p = 0; p < point.n; ++p) square += point.x[p] * point.x[p];
  found.noise = std::max(found.noise, usual_rounding_ * std::sqrt(square));
}

template <class Real>
void KernelOracle<Real>::block(const std::vector<Index>& members, bool exact, double* hessian) {
  if (exact) {
    const std::vector<Index> rows = rows_of(members);
    const Points<double> some(dual_.data, rows.data(), Index(rows.size()));
    return kernel_block(dual_.kernel, some, hessian, some.count(), pool());
  }
  std::vector<Index> places;
  for (const Index i : members) places.push_back(gradient_.level().place(i));
  const Points<Real> some = gradient_.level().points.take(places);
  kernel_block(dual_.kernel, some, hessian, some.count(), pool());
}

template <class Real>
void KernelOracle<Real>::update_gradient(const std::vector<Index>& moved,
                                         const std::vector<double>& delta) {
  Level& here = gradient_.level();
  std::vector<Index> places;
  for (const Index i : moved) {
    places.push_back(here.place(i));
    gradient_.set_x(i, whole_.x[i]);
  }
  // A variable on a bound rarely changes again, so only the rows of free variables are cached.
  gradient_.add_rows(
      here.points, places, delta.data(), here.derivatives.count(),
      [&](Index p) { return here.derivatives.is_free(p); }, pool());
}

// Recompute the gradient of the variables whose derivatives are close to the extremes of their
// group. The margin is the largest of `tol`, a multiple of the error that the largest single x
// could cause, and a multiple of the largest error found so far. If errors are large, all variables
// may be recomputed.
template <class Real>
void KernelOracle<Real>::recompute_gradient() {
  const Support support(whole_);
  const std::vector<Index> support_rows = rows_of(support.coordinates);
  const auto add_terms = [&](const std::vector<Index>& rows, double* sums) {
    gradient_.template add_sums<double>(dual_.data, support_rows, support.weights, rows, sums,
                                        pool());
  };
  double largest = 0.0;
  for (const double weight : support.weights) largest = std::max(largest, std::abs(weight));
  double margin = std::max(dual_.tol, KernelOracleSettings::error_margin * largest * rounding_);
  for (bool restart = true;; restart = false) {
    const Recomputed found =
        gradient_.recompute_near(gradient_.intervals(), margin, restart, add_terms);
    if (found.count == 0) return;
    margin = std::max(margin, KernelOracleSettings::error_margin * found.error);
  }
}

template <class Real>
Index KernelOracle<Real>::shrink(const std::vector<MultiplierInterval>& intervals) {
  std::vector<Index> active = gradient_.active(intervals);
  const Index left = Index(active.size());
  const Point& point = gradient_.level().derivatives.point();
  if (left < 2 || double(left) > KernelOracleSettings::max_active * double(point.n)) return 0;
  std::vector<double> x;
  for (const Index p : active) x.push_back(point.x[p]);
  gradient_.shrink(std::move(active), std::move(x));
  return left;
}

template <class Real>
void KernelOracle<Real>::unshrink() {
  gradient_.unshrink([&](const Level& part, const std::vector<Index>& rows, double* sums) {
    const Point& now = part.derivatives.point();
    std::vector<Index> moved;
    std::vector<double> change;
    for (Index p = 0; p < now.n; ++p)
      if (now.x[p] != part.x_before[p]) {
        moved.push_back(dual_.rows[part.coordinates[p]]);
        change.push_back(now.x[p] - part.x_before[p]);
      }
    gradient_.template add_sums<Real>(dual_.data, moved, change, rows, sums, pool());
  });
}

template <>
Index KernelOracle<float>::take_single_steps(double threshold, Index max_iter) {
  const Index n = whole_.n;
  const std::vector<double> before(whole_.x, whole_.x + n);
  Point point = whole_;
  point.gradient = gradient_.level().derivatives.gradient();
  KernelRows rows(dual_.kernel, gradient_.level());
  const Index steps = isa().single_steps(point, rows, threshold, max_iter, pool().interrupt());
  std::vector<Index> moved;
  std::vector<double> delta;
  for (Index i = 0; i < n; ++i) {
    if (whole_.x[i] == before[i]) continue;
    moved.push_back(i);
    delta.push_back(whole_.x[i] - before[i]);
  }
  if (!moved.empty()) update_gradient(moved, delta);
  return steps;
}

template class KernelOracle<float>;
template class KernelOracle<double>;

}  // namespace pairstep
