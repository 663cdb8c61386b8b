// The gradient of a kernel dual, or of some of its variables, with shrinking and a cache of kernel
// rows. KernelOracle and Partition share this class.
//
// Shrinking (Joachims 1999) continues with the variables that can still improve the objective. Each
// shrink adds a level that has the packed points, the derivatives and the cached rows of only these
// variables. Undoing a shrink removes its level and updates the gradient of the variables that were
// left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "derivatives.hpp"
#include "kernel_sums.hpp"
#include "row_cache.hpp"

namespace pairstep {

// The variables that a ShrinkableGradient is for.
struct GradientTask {
  const KernelFunction& kernel;
  const DataMatrix& data;
  const Index* rows;         // of the data, one per variable
  const Index* coordinates;  // numbers of the variables in the whole problem, ascending; null: all
  const double* linear;      // the gradient at x = 0
  std::size_t cache_bytes;   // for kernel rows
  Index max_rows;            // number of kernel rows that may ever be cached
  Arena* memory = nullptr;   // reused for the cache; may be null
};

template <class Real>
class ShrinkableGradient {
 public:
  // All variables, or those that a shrink has left of the level above.
  struct Level {
    std::vector<Index> coordinates;  // in the whole problem, ascending
    std::vector<Index> parents;      // indices in the level above; empty on the first level
    Points<Real> points;
    Derivatives derivatives;
    RowCache<Real> cache;
    std::vector<double> x_before;  // the owner's x when the level began

    // Index of a variable on this level, or -1.
    Index place(Index coordinate) const {
      const auto found = std::lower_bound(coordinates.begin(), coordinates.end(), coordinate);
      return found != coordinates.end() && *found == coordinate ? found - coordinates.begin() : -1;
    }
  };

  // The gradient starts as `task.linear`, and the owner adds the terms that depend on x. The data,
  // kernel and arrays of the task must outlive this object.
  ShrinkableGradient(const GradientTask& task, const Point& point)
      : task_(task),
        cache_bytes_(std::min(task.cache_bytes, bytes_of_rows(task.max_rows, point.n))) {
    if (task.memory) {
      task.memory->fit(cache_bytes_);
    } else {
      own_ = std::make_unique<Arena>(cache_bytes_);
      cache_bytes_ = own_->bytes();
    }
    std::vector<Index> coordinates(std::size_t(point.n));
    if (task.coordinates) std::copy_n(task.coordinates, point.n, coordinates.begin());
    else std::iota(coordinates.begin(), coordinates.end(), 0);
    Points<Real> points(task.data, task.rows, point.n);
    const Index length = points.padded();
    levels_.push_back(std::unique_ptr<Level>(new Level{std::move(coordinates),
                                                       {},
                                                       std::move(points),
                                                       Derivatives(point, length - point.n),
                                                       empty_cache(length),
                                                       {}}));
    std::copy_n(task.linear, point.n, first().derivatives.gradient());
  }

  Level& first() { return *levels_.front(); }
  const Level& first() const { return *levels_.front(); }
  Level& level() { return *levels_.back(); }
  const Level& level() const { return *levels_.back(); }

  void select_candidates(Index count, bool with_free, Candidates& found) const {
    level().derivatives.select_candidates(count, with_free, level().coordinates.data(), found);
  }

  std::vector<MultiplierInterval> intervals() const {
    std::vector<MultiplierInterval> intervals;
    for (Index g = 0; g < level().derivatives.point().n_groups; ++g)
      intervals.push_back(level().derivatives.interval(g));
    return intervals;
  }

  // Set x of a variable on every level that has it. The gradient is not updated.
  void set_x(Index coordinate, double x) {
    for (const auto& one : levels_)
      if (const Index p = one->place(coordinate); p >= 0) one->derivatives.set_x(p, x);
  }

  // sums[c] += sum_k weights[k] k(query k, row columns[c] of the data), in Value arithmetic.
  template <class Value>
  void add_sums(const DataMatrix& query_data, const std::vector<Index>& queries,
                const std::vector<double>& weights, const std::vector<Index>& columns, double* sums,
                ThreadPool& pool) const {
    add_kernel<Value>(task_.kernel, query_data, queries, {0, Index(queries.size())}, weights.data(),
                      1, task_.data, columns, sums, Index(columns.size()), pool);
  }

  // Add delta[k] times the kernel rows at positions[k] < `count` to the gradient of this level.
  // Rows come from the cache or from source.take(positions); a linear kernel needs only their sum,
  // source.combine(positions, delta). should_keep(position) says whether to cache a computed row.
  template <class Source, class Predicate>
  void add_rows(const Source& source, const std::vector<Index>& positions, const double* delta,
                Index count, Predicate should_keep, ThreadPool& pool) {
    Level& here = level();
    std::vector<Index> missing;
    std::vector<double> missing_delta, cached_delta;
    std::vector<const Real*> cached;
    std::vector<Real*> computed;
    Points<Real> queries;
    if (task_.kernel.name == KernelName::linear) {  // K delta = X (X' delta)
      queries = source.combine(positions, delta);
      missing_delta = {1.0};
      computed = {nullptr};
    } else {
      here.cache.resize(count);
      here.cache.next_age();
      for (std::size_t k = 0; k < positions.size(); ++k) {
        if (here.cache.holds(positions[k])) {
          here.cache.touch(positions[k]);
          cached.push_back(here.cache.row(positions[k]));
          cached_delta.push_back(delta[k]);
        } else {
          missing.push_back(positions[k]);
          missing_delta.push_back(delta[k]);
        }
      }
      computed = here.cache.claim(missing, should_keep);
      queries = source.take(missing);
    }
    const std::vector<Real> blocks = queries.blocks();
    Tiles<Real> job{task_.kernel, &here.points, &queries, blocks.data()};
    job.rows = computed.data();
    job.weights = missing_delta.data();
    job.sums = here.derivatives.gradient();
    const auto& native = isa().of<Real>();
    over_panels(here.points, pool, [&](Index begin, Index end) {
      native.tiles(job, begin, end);
      native.add_rows(cached.data(), cached_delta.data(), Index(cached.size()), begin * PANEL,
                      end * PANEL, here.derivatives.gradient());
    });
  }

  // Recompute the gradient of the variables whose left or right derivative is within `margin` of
  // their group's interval, except those recomputed since the last `restart`. The new values are
  // task.linear plus what add_terms(rows, sums) adds. Undo all shrinks before calling this.
  template <class AddTerms>
  Recomputed recompute_near(const std::vector<MultiplierInterval>& intervals, double margin,
                            bool restart, const AddTerms& add_terms) {
    Derivatives& derivatives = first().derivatives;
    const Point& point = derivatives.point();
    if (restart) recomputed_.assign(std::size_t(point.n), 0);
    std::vector<Index> close, rows;
    std::vector<double> exact;
    for (Index g = 0; g < point.n_groups; ++g)
      for (Index i = point.starts[g]; i < point.starts[g + 1]; ++i)
        if (!recomputed_[i] &&
            (derivatives.left_derivative(i) >= intervals[g].max_left - margin ||
             derivatives.right_derivative(i) <= intervals[g].min_right + margin)) {
          close.push_back(i);
          rows.push_back(task_.rows[i]);
          exact.push_back(task_.linear[i]);
          recomputed_[i] = 1;
        }
    add_terms(rows, exact.data());
    double error = 0.0;
    for (std::size_t k = 0; k < close.size(); ++k) {
      double& known = derivatives.gradient()[close[k]];
      error = std::max(error, std::abs(exact[k] - known));
      known = exact[k];
    }
    return {Index(close.size()), error};
  }

  // Indices on this level of the variables that can still improve the objective.
  std::vector<Index> active(const std::vector<MultiplierInterval>& intervals) const {
    const Derivatives& derivatives = level().derivatives;
    const Point& point = derivatives.point();
    std::vector<Index> active;
    for (Index g = 0; g < point.n_groups; ++g)
      for (Index p = point.starts[g]; p < point.starts[g + 1]; ++p)
        if (derivatives.left_derivative(p) > intervals[g].min_right ||
            derivatives.right_derivative(p) < intervals[g].max_left)
          active.push_back(p);
    return active;
  }

  // Add a level with the `active` variables of this one. `x` is kept as Level::x_before, so that
  // the owner can compute the change of x when the level is removed.
  void shrink(std::vector<Index> active, std::vector<double> x) {
    Level& here = level();
    std::vector<Index> coordinates;
    for (const Index p : active) coordinates.push_back(here.coordinates[p]);
    Points<Real> points = here.points.take(active);
    const Index left = Index(active.size()), length = points.padded();
    levels_.push_back(std::unique_ptr<Level>(new Level{
        std::move(coordinates), active, std::move(points),
        Derivatives(here.derivatives, active, length - left), empty_cache(length), std::move(x)}));
  }

  // Remove the last level and update the gradient of the variables that it left out.
  // add_change(level, rows, sums) must add to `sums` the effect on the gradient of these rows of
  // all changes of x since the level began.
  template <class AddChange>
  void unshrink(const AddChange& add_change) {
    const std::unique_ptr<Level> part = std::move(levels_.back());
    levels_.pop_back();
    Level& here = level();
    double* gradient = here.derivatives.gradient();
    std::vector<char> active(std::size_t(here.derivatives.count()), 0);
    for (std::size_t p = 0; p < part->parents.size(); ++p) {
      active[part->parents[p]] = 1;
      gradient[part->parents[p]] = part->derivatives.gradient()[p];
    }
    std::vector<Index> restored, rows;
    for (Index p = 0; p < here.derivatives.count(); ++p)
      if (!active[p]) {
        restored.push_back(p);
        rows.push_back(task_.rows[first().place(here.coordinates[p])]);
      }
    std::vector<double> sums(restored.size(), 0.0);
    add_change(*part, rows, sums.data());
    for (std::size_t k = 0; k < restored.size(); ++k) gradient[restored[k]] += sums[k];
    // The removed level has overwritten the rows of this one, which shared its memory.
    here.cache = empty_cache(here.points.padded());
  }

 private:
  static constexpr Index PANEL = Points<Real>::PANEL;

  static std::size_t bytes_of_rows(Index rows, Index n) {
    const Index panels = (n + PANEL - 1) / PANEL;
    return std::size_t(rows) * std::size_t(panels * PANEL) * sizeof(Real);
  }

  // A cache without rows. The caches of all levels share their memory, because only the last one is
  // in use.
  RowCache<Real> empty_cache(Index length) const {
    return RowCache<Real>(task_.memory ? *task_.memory : *own_, cache_bytes_, length, 0);
  }

  const GradientTask task_;
  std::size_t cache_bytes_;
  std::unique_ptr<Arena> own_;  // if the task has no memory
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<char> recomputed_;  // variables that recompute_near has recomputed
};

}  // namespace pairstep
