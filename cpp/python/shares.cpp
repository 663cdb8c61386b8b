// The part of the Python module that is about kernel machines over several processes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "../oracles/kernel_block.hpp"
#include "../oracles/share.hpp"
#include "data.hpp"
#include "gil.hpp"
#include "problem.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Work>
void with_team(int threads, Work work) {
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(std::max(threads, 1), pulse);
    work(team);
  });
}

std::vector<Index> vector_of(const Indices& indices) {
  return {indices.data(), indices.data() + indices.shape(0)};
}

void require_within(const Indices& indices, Index limit) {
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(indices(k) >= 0 && indices(k) < limit, "index out of range");
}

// Rows that have come from elsewhere, and the kernel of some of them with each other.
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
            "out must be square, a row per place");
    with_team(threads, [&](Team& team) {
      if (exact) kernel_block(kernel_, points<double>(places), out.data(), q, team);
      else kernel_block(kernel_, points<float>(places), out.data(), q, team);
    });
  }
  // Some rows, as they came.
  nb::object take(const Indices& places) const {
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
    return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(columns)),
                          to_numpy(std::move(values)), data.features);
  }

 private:
  template <class Entry>
  nb::object dense(const Entry* entries, const Indices& places) const {
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

// The rows of a share, the rows of movers, and the dual that is being solved.
class ShareOfRows {
 public:
  ShareOfRows(const nb::object& X, std::optional<In> center, const KernelFunction& kernel,
              int threads)
      : X_(X), center_(center), kernel_(kernel), threads_(threads) {
    data_ = data_for(kernel, X, center);
    store_.data().lay_out_like(data_);
  }

  // A dual of which these accounts are here; (largest, sum) of squared norms.
  nb::tuple begin(const Indices& accounts, const Indices& rows, const In& linear,
                  const PointArrays& point, Index whole, std::size_t cache_bytes, bool single) {
    const std::size_t n = std::size_t(point.n());
    require(accounts.shape(0) == n && rows.shape(0) == n && linear.shape(0) == n,
            "the arrays of a dual must have the same length");
    require_within(rows, data_.rows);
    require_within(accounts, whole);
    kept_ = nb::make_tuple(accounts, rows, linear, point);
    movers_ = 0;
    share_.reset();
    const ShareTask task{kernel_,     data_,         accounts.data(),
                         rows.data(), linear.data(), point.with(nullptr),
                         whole,       cache_bytes};
    run_native([&](Pulse&, WithoutGil&) { share_ = make_share(task, store_, single); });
    n_ = task.point.n;
    groups_ = task.point.n_groups;
    return nb::make_tuple(share_->largest_square, share_->sum_of_squares);
  }
  void append(const nb::object& X) { store_.append(data_of(X)); }
  void introduce(const Indices& accounts, const Indices& slots) {
    require(accounts.shape(0) == slots.shape(0), "a mover needs an account and a slot");
    require_within(slots, store_.count());
    share().introduce(vector_of(accounts), vector_of(slots));
    movers_ += Index(accounts.shape(0));
  }
  void advance(const Indices& movers, const In& x, const Flags& free) {
    require(movers.shape(0) == x.shape(0) && movers.shape(0) == free.shape(0),
            "movers, x and free must have the same length");
    require_within(movers, movers_);
    with_team(threads_,
              [&](Team& team) { share().advance(vector_of(movers), x.data(), free.data(), team); });
  }
  nb::tuple survey(Index count, bool with_free) {
    Survey found;
    run_native([&](Pulse&, WithoutGil&) { share().survey(count, with_free, found); });
    return nb::make_tuple(to_numpy(std::move(found.accounts)), to_numpy(std::move(found.gradient)));
  }
  nb::tuple verify(const Matrix& markets, double margin, bool anew) {
    Share::Verified verified{};
    with_team(threads_, [&](Team& team) {
      verified = share().verify(markets_of(markets), margin, anew, team);
    });
    return nb::make_tuple(verified.count, verified.error);
  }
  nb::object markets() {
    std::vector<double> prices;
    for (const Market& market : share().markets()) {
      prices.push_back(market.dearest);
      prices.push_back(market.cheapest);
    }
    return to_numpy(std::move(prices), {std::size_t(groups_), 2});
  }
  Index active(const Matrix& markets) { return share().active(markets_of(markets)); }
  void shrink(const Matrix& markets) { share().shrink(markets_of(markets)); }
  void unshrink() {
    with_team(threads_, [&](Team& team) { share().unshrink(team); });
  }
  nb::object gradient() {
    const double* known = share().gradient();
    return to_numpy(std::vector<double>(known, known + n_));
  }

 private:
  Share& share() {
    require(share_ != nullptr, "no dual has begun");
    return *share_;
  }
  std::vector<Market> markets_of(const Matrix& prices) const {
    require(Index(prices.shape(0)) == groups_ && prices.shape(1) == 2,
            "markets must have the dearest and the cheapest price of each group");
    std::vector<Market> markets(prices.shape(0));
    for (std::size_t g = 0; g < markets.size(); ++g) {
      markets[g].dearest = prices(g, 0);
      markets[g].cheapest = prices(g, 1);
    }
    return markets;
  }

  nb::object X_;
  std::optional<In> center_;
  KernelFunction kernel_;
  int threads_;
  DataMatrix data_;
  RowStore store_;
  nb::object kept_;  // the arrays of the dual
  std::unique_ptr<Share> share_;
  Index n_ = 0, groups_ = 0, movers_ = 0;
};

}  // namespace

void register_shares(nb::module_& m) {
  nb::class_<Library>(m, "Library", "Rows of data that lie elsewhere.")
      .def(nb::init<KernelFunction, std::optional<In>>(), "kernel"_a, "center"_a.none())
      .def("append", &Library::append, "X"_a, "More rows, of the same type as those before.")
      .def("fill_block", &Library::fill_block, "places"_a, "exact"_a, "threads"_a, "out"_a,
           "The kernel of some rows with each other, from float64 or float32.")
      .def("take", &Library::take, "places"_a, "Some rows, as they came.");
  nb::class_<ShareOfRows>(m, "Share", "A share of a kernel machine; see cpp/oracles/share.hpp.")
      .def(nb::init<const nb::object&, std::optional<In>, KernelFunction, int>(), "X"_a,
           "center"_a.none(), "kernel"_a, "threads"_a)
      .def("begin", &ShareOfRows::begin, "accounts"_a, "rows"_a, "linear"_a, "point"_a, "whole"_a,
           "cache_bytes"_a, "single"_a,
           "A dual of which these accounts are here: (largest, sum) of squared norms.")
      .def("append", &ShareOfRows::append, "X"_a, "Rows of movers to keep.")
      .def("introduce", &ShareOfRows::introduce, "accounts"_a, "slots"_a, "More movers, at 0.")
      .def("advance", &ShareOfRows::advance, "movers"_a, "x"_a, "free"_a, "Movers are at x now.")
      .def("survey", &ShareOfRows::survey, "count"_a, "with_free"_a, "(accounts, gradients)")
      .def("verify", &ShareOfRows::verify, "markets"_a, "margin"_a, "anew"_a,
           "Prices near the dearest and the cheapest anew: (how many, largest error).")
      .def("markets", &ShareOfRows::markets, "The dearest and the cheapest price of each group.")
      .def("active", &ShareOfRows::active, "markets"_a, "How many can trade at these prices.")
      .def("shrink", &ShareOfRows::shrink, "markets"_a, "Go on with only these.")
      .def("unshrink", &ShareOfRows::unshrink, "Take the last shrinking back.")
      .def("gradient", &ShareOfRows::gradient, "Of all accounts that are here.");
}
