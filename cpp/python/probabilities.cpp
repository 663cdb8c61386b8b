// The part of the Python module that is about probabilities of classes.
#include <nanobind/stl/tuple.h>

#include "../core/probability.hpp"
#include "arrays.hpp"
#include "gil.hpp"

using namespace pairstep;
using namespace nb::literals;

namespace {

nb::object shuffled_(Index n, std::uint32_t seed) {
  require(n >= 0 && n < Index(1) << 32, "n must fit into 32 bits");
  return to_numpy(shuffled(n, seed));
}

std::tuple<double, double> fit_sigmoid_(const In& decisions, Index positives) {
  const Index n = Index(decisions.shape(0));
  require(positives >= 0 && positives <= n, "positives must be at most the number of decisions");
  const Sigmoid sigmoid =
      run_native([&](Pulse&, WithoutGil&) { return fit_sigmoid(decisions.data(), n, positives); });
  return {sigmoid.slope, sigmoid.offset};
}

nb::object couple_(const Matrix& decisions, const In& slopes, const In& offsets, Index classes,
                   int threads) {
  const Index rows = Index(decisions.shape(0)), pairs = Index(decisions.shape(1));
  require(classes >= 2 && pairs == classes * (classes - 1) / 2 && Index(slopes.shape(0)) == pairs &&
              Index(offsets.shape(0)) == pairs,
          "there must be a decision and a sigmoid for each pair of classes");
  std::vector<Sigmoid> sigmoids;
  for (Index k = 0; k < pairs; ++k) sigmoids.push_back({slopes(k), offsets(k)});
  std::vector<double> probabilities(std::size_t(rows * classes));
  run_native([&](Pulse& pulse, WithoutGil&) {
    Team team(threads, pulse);
    couple(decisions.data(), rows, sigmoids.data(), classes, probabilities.data(), team);
  });
  return to_numpy(std::move(probabilities), {std::size_t(rows), std::size_t(classes)});
}

}  // namespace

void register_probabilities(nb::module_& m) {
  m.def("shuffled", &shuffled_, "n"_a, "seed"_a,
        "0, ..., n - 1 in the random order that scikit-learn's LIBSVM cross-validates in.");
  m.def("fit_sigmoid", &fit_sigmoid_, "decisions"_a, "positives"_a,
        "(slope, offset) of 1 / (1 + exp(slope * decision + offset)), the probability of being "
        "positive, as the first `positives` samples are.");
  m.def("couple", &couple_, "decisions"_a, "slopes"_a, "offsets"_a, "classes"_a, "threads"_a,
        "Probabilities of the classes in each row, from its decisions for all pairs of them.");
}
