// Bindings for SVMs over several processes: the partition of one process, and rows that other
// processes have sent.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <variant>

#include "../oracles/kernel_block.hpp"
#include "../oracles/partition.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Work>
void with_pool(int threads, Work work) {
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(std::max(threads, 1), interrupt);
    work(pool);
  });
}

std::vector<Index> vector_of(const Indices& indices) {
  return {indices.data(), indices.data() + indices.shape(0)};
}

void require_within(const Indices& indices, Index limit) {
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(indices(k) >= 0 && indices(k) < limit, "indices must be in range");
}

// Rows of a CSR matrix: starts, columns, values, number of features.
using SparseRows =
    std::tuple<NumpyArray<Index>, NumpyArray<std::int32_t>, NumpyArray<double>, Index>;

// Rows received from other processes. Computes kernel matrices of some of them.
class Library {
 public:
  Library(const KernelFunction& kernel, std::optional<In> center)
      : kernel_(kernel), center_(center) {}

  void append(const nb::object& X) {
    const DataMatrix rows = data_of(X);
    if (store_.count() == 0) store_.data().lay_out_like(data_for(kernel_, X, center_));
    store_.append(rows);
  }
  void fill_block(const Indices& places, bool exact, int threads, const InOutMatrix& out) {
    require_within(places, store_.count());
    const Index q = Index(places.shape(0));
    require(Index(out.shape(0)) == q && Index(out.shape(1)) == q,
            "out must be square, with one row per entry of places");
    with_pool(threads, [&](ThreadPool& pool) {
      if (exact) kernel_block(kernel_, points<double>(places), out.data(), q, pool);
      else kernel_block(kernel_, points<float>(places), out.data(), q, pool);
    });
  }
  // Return some rows in the form in which they were appended.
  std::variant<NumpyArray<double>, NumpyArray<float>, SparseRows> take(
      const Indices& places) const {
    require_within(places, store_.count());
    const DataMatrix& data = store_.data();
    if (data.dense) return dense(data.dense, places);
    if (data.dense32) return dense(data.dense32, places);
    std::vector<Index> starts = {0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    for (std::size_t k = 0; k < places.shape(0); ++k) {
      const Index begin = data.starts[places(k)], end = data.starts[places(k) + 1];
      columns.insert(columns.end(), data.columns + begin, data.columns + end);
      values.insert(values.end(), data.values + begin, data.values + end);
      starts.push_back(Index(columns.size()));
    }
    return SparseRows(to_numpy(std::move(starts)), to_numpy(std::move(columns)),
                      to_numpy(std::move(values)), data.features);
  }

 private:
  template <class Entry>
  NumpyArray<Entry> dense(const Entry* entries, const Indices& places) const {
    const Index features = store_.data().features;
    std::vector<Entry> rows;
    rows.reserve(places.shape(0) * std::size_t(features));
    for (std::size_t k = 0; k < places.shape(0); ++k) {
      const Entry* row = entries + places(k) * features;
      rows.insert(rows.end(), row, row + features);
    }
    return to_numpy(std::move(rows), {places.shape(0), std::size_t(features)});
  }
  template <class Real>
  Points<Real> points(const Indices& places) {
    return Points<Real>(store_.data(), places.data(), Index(places.shape(0)));
  }

  KernelFunction kernel_;
  std::optional<In> center_;
  RowStore store_;
};

// The rows of a partition, the rows of variables that have changed (movers), and the current dual.
class RowPartition {
 public:
  RowPartition(const nb::object& X, std::optional<In> center, const KernelFunction& kernel,
               int threads)
      : X_(X), center_(center), kernel_(kernel), threads_(threads) {
    data_ = data_for(kernel, X, center);
    store_.data().lay_out_like(data_);
  }

  // Start a dual of which these coordinates belong to this partition. Return the largest and the
  // sum of the squared norms of their rows.
  auto begin(const Indices& coordinates, const Indices& rows, const In& linear,
             const PointArrays& point, Index whole, std::size_t cache_bytes, bool single) {
    const std::size_t n = std::size_t(point.n());
    require(coordinates.shape(0) == n && rows.shape(0) == n && linear.shape(0) == n,
            "coordinates, rows and linear must have the length of x");
    require_within(rows, data_.rows);
    require_within(coordinates, whole);
    kept_ = nb::make_tuple(coordinates, rows, linear, point);
    movers_ = 0;
    partition_.reset();
    const PartitionTask task{kernel_,     data_,         coordinates.data(),
                             rows.data(), linear.data(), point.with(nullptr),
                             whole,       cache_bytes};
    run_native(
        [&](InterruptCheck&, WithoutGil&) { partition_ = make_partition(task, store_, single); });
    n_ = task.point.n;
    groups_ = task.point.n_groups;
    return std::make_tuple(partition_->largest_square, partition_->sum_of_squares);
  }
  void append(const nb::object& X) { store_.append(data_of(X)); }
  void introduce(const Indices& coordinates, const Indices& slots) {
    require(coordinates.shape(0) == slots.shape(0),
            "coordinates and slots must have the same length");
    require_within(slots, store_.count());
    partition().introduce(vector_of(coordinates), vector_of(slots));
    movers_ += Index(coordinates.shape(0));
  }
  void update_gradient(const Indices& movers, const In& x, const Flags& free) {
    require(movers.shape(0) == x.shape(0) && movers.shape(0) == free.shape(0),
            "movers, x and free must have the same length");
    require_within(movers, movers_);
    with_pool(threads_, [&](ThreadPool& pool) {
      partition().update_gradient(vector_of(movers), x.data(), free.data(), pool);
    });
  }
  auto select_candidates(Index count, bool with_free) {
    Candidates found;
    run_native([&](InterruptCheck&, WithoutGil&) {
      partition().select_candidates(count, with_free, found);
    });
    return std::make_tuple(to_numpy(std::move(found.coordinates)),
                           to_numpy(std::move(found.gradient)));
  }
  auto recompute_gradient(const Matrix& intervals, double margin, bool restart) {
    Recomputed verified{};
    with_pool(threads_, [&](ThreadPool& pool) {
      verified = partition().recompute_gradient(intervals_of(intervals), margin, restart, pool);
    });
    return std::make_tuple(verified.count, verified.error);
  }
  NumpyArray<double> intervals() {
    std::vector<double> derivatives;
    for (const MultiplierInterval& interval : partition().intervals()) {
      derivatives.push_back(interval.max_left);
      derivatives.push_back(interval.min_right);
    }
    return to_numpy(std::move(derivatives), {std::size_t(groups_), 2});
  }
  Index active(const Matrix& intervals) { return partition().active(intervals_of(intervals)); }
  void shrink(const Matrix& intervals) { partition().shrink(intervals_of(intervals)); }
  void unshrink() {
    with_pool(threads_, [&](ThreadPool& pool) { partition().unshrink(pool); });
  }
  NumpyArray<double> gradient() {
    const double* values = partition().gradient();
    return to_numpy(std::vector<double>(values, values + n_));
  }

 private:
  Partition& partition() {
    require(partition_ != nullptr, "call begin first");
    return *partition_;
  }
  std::vector<MultiplierInterval> intervals_of(const Matrix& derivatives) const {
    require(Index(derivatives.shape(0)) == groups_ && derivatives.shape(1) == 2,
            "intervals must have one row (max_left, min_right) per group");
    std::vector<MultiplierInterval> intervals(derivatives.shape(0));
    for (std::size_t g = 0; g < intervals.size(); ++g) {
      intervals[g].max_left = derivatives(g, 0);
      intervals[g].min_right = derivatives(g, 1);
    }
    return intervals;
  }

  nb::object X_;
  std::optional<In> center_;
  KernelFunction kernel_;
  int threads_;
  DataMatrix data_;
  RowStore store_;
  nb::object kept_;  // keeps the arrays of the dual alive
  std::unique_ptr<Partition> partition_;
  Index n_ = 0, groups_ = 0, movers_ = 0;
};

}  // namespace

void register_partitions(nb::module_& m) {
  nb::class_<Library>(m, "Library", "Rows of data received from other processes.")
      .def(nb::init<KernelFunction, std::optional<In>>(), "kernel"_a, "center"_a.none())
      .def("append", &Library::append, "X"_a, "Append rows of the same type as those before.")
      .def("fill_block", &Library::fill_block, "places"_a, "exact"_a, "threads"_a, "out"_a,
           "Write the kernel matrix of some rows, computed in float64 if `exact`, else in float32.")
      .def("take", &Library::take, "places"_a,
           "Return some rows in the form in which they were appended.");
  nb::class_<RowPartition>(
      m, "Partition",
      "The rows of one process in a distributed SVM; see cpp/oracles/partition.hpp.")
      .def(nb::init<const nb::object&, std::optional<In>, KernelFunction, int>(), "X"_a,
           "center"_a.none(), "kernel"_a, "threads"_a)
      .def("begin", &RowPartition::begin, "coordinates"_a, "rows"_a, "linear"_a, "point"_a,
           "whole"_a, "cache_bytes"_a, "single"_a,
           "Start a dual with `whole` coordinates, of which the given ones belong to this "
           "partition. Return the largest and the sum of the squared norms of their rows.")
      .def("append", &RowPartition::append, "X"_a, "Store rows of variables that change.")
      .def("introduce", &RowPartition::introduce, "coordinates"_a, "slots"_a,
           "Add variables that change, currently at 0, with the slots of their stored rows.")
      .def("update_gradient", &RowPartition::update_gradient, "movers"_a, "x"_a, "free"_a,
           "Update the gradient after the variables `movers` have changed to x.")
      .def("select_candidates", &RowPartition::select_candidates, "count"_a, "with_free"_a,
           "Return the coordinates with the most violating derivatives and their gradients.")
      .def("recompute_gradient", &RowPartition::recompute_gradient, "intervals"_a, "margin"_a,
           "restart"_a,
           "Recompute the derivatives within `margin` of the ends of the intervals. Return their "
           "number and the largest error found.")
      .def("intervals", &RowPartition::intervals,
           "Return the largest left and the smallest right derivative of each group.")
      .def("active", &RowPartition::active, "intervals"_a,
           "Return the number of coordinates that shrinking to these intervals would keep.")
      .def("shrink", &RowPartition::shrink, "intervals"_a,
           "Continue with only the coordinates that can still change.")
      .def("unshrink", &RowPartition::unshrink, "Continue with all coordinates again.")
      .def("gradient", &RowPartition::gradient,
           "Return the gradient of all coordinates of this partition.");
}
