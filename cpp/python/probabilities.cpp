// Bindings for class probabilities (cpp/core/probability.hpp).
#include <nanobind/stl/tuple.h>

#include "../core/probability.hpp"
#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

NumpyArray<Index> shuffled_(Index n, std::uint32_t seed) {
  require(n >= 0 && n < Index(1) << 32, "n must be at least 0 and below 2**32");
  return to_numpy(shuffled(n, seed));
}

std::tuple<double, double> fit_sigmoid_(const In& decisions, Index positives) {
  const Index n = Index(decisions.shape(0));
  require(positives >= 0 && positives <= n,
          "positives must be between 0 and the number of decisions");
  const Sigmoid sigmoid = run_native(
      [&](InterruptCheck&, WithoutGil&) { return fit_sigmoid(decisions.data(), n, positives); });
  return {sigmoid.slope, sigmoid.offset};
}

NumpyArray<double> couple_(const Matrix& decisions, const In& slopes, const In& offsets,
                           Index classes, int threads) {
  const Index rows = Index(decisions.shape(0)), pairs = Index(decisions.shape(1));
  require(classes >= 2 && pairs == classes * (classes - 1) / 2 && Index(slopes.shape(0)) == pairs &&
              Index(offsets.shape(0)) == pairs,
          "decisions, slopes and offsets must have one entry per pair of classes");
  std::vector<Sigmoid> sigmoids;
  for (Index k = 0; k < pairs; ++k) sigmoids.push_back({slopes(k), offsets(k)});
  std::vector<double> probabilities(std::size_t(rows * classes));
  run_native([&](InterruptCheck& interrupt, WithoutGil&) {
    ThreadPool pool(threads, interrupt);
    couple(decisions.data(), rows, sigmoids.data(), classes, probabilities.data(), pool);
  });
  return to_numpy(std::move(probabilities), {std::size_t(rows), std::size_t(classes)});
}

}  // namespace

void register_probabilities(nb::module_& m) {
  m.def(
      "shuffled", &shuffled_, "n"_a, "seed"_a,
      "Return 0, ..., n - 1 in the random order in which scikit-learn's LIBSVM assigns samples to "
      "folds.");
  m.def("fit_sigmoid", &fit_sigmoid_, "decisions"_a, "positives"_a,
        "Return (slope, offset) of the sigmoid 1 / (1 + exp(slope * decision + offset)) for the "
        "probability of being positive. The first `positives` samples are positive.");
  m.def("couple", &couple_, "decisions"_a, "slopes"_a, "offsets"_a, "classes"_a, "threads"_a,
        "Return the probabilities of the classes in each row, from its decisions for all pairs.");
}
