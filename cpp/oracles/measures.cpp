#include "measures.hpp"

#include <algorithm>
#include <cmath>

namespace pairstep {

namespace {

// Independent partial sums, so that additions need not wait for each other.
constexpr Index LANES = 8;

template <class Entry, class Term>
double sum_of(const Entry* entries, Index count, Term term) {
  double lanes[LANES] = {};
  Index k = 0;
  for (; k + LANES <= count; k += LANES)
    for (Index lane = 0; lane < LANES; ++lane) lanes[lane] += term(double(entries[k + lane]));
  for (; k < count; ++k) lanes[k % LANES] += term(double(entries[k]));
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Mean of some numbers and sum of squared distances from it. Joining two sets (Chan, Golub and
// LeVeque 1979) avoids the cancellation of large squares.
struct Moments {
  double count = 0.0, mean = 0.0, squares = 0.0;

  void join(const Moments& other) {
    if (other.count == 0) return;
    const double both = count + other.count, difference = other.mean - mean,
                 fraction = other.count / both;
    mean += difference * fraction;
    squares += other.squares + difference * difference * count * fraction;
    count = both;
  }
};

// Call function(entries, count) with the stored entries of each row.
template <class Function>
void each_row(const DataMatrix& data, Function function) {
  for (Index row = 0; row < data.rows; ++row) {
    if (data.starts)
      function(data.values + data.starts[row], data.starts[row + 1] - data.starts[row]);
    else if (data.dense) function(data.dense + row * data.features, data.features);
    else function(data.dense32 + row * data.features, data.features);
  }
}

}  // namespace

Measures measure(const DataMatrix& data) {
  Moments all;
  double largest = 0.0;
  each_row(data, [&](const auto* entries, Index count) {
    if (count == 0) return;
    const double square = sum_of(entries, count, [](double x) { return x * x; }),
                 mean = sum_of(entries, count, [](double x) { return x; }) / double(count);
    const auto distance = [&](double x) { return (x - mean) * (x - mean); };
    all.join({double(count), mean, sum_of(entries, count, distance)});
    if (!(square <= largest)) largest = square;  // keeps NaN
  });
  all.join({double(data.rows) * double(data.features) - all.count, 0.0, 0.0});
  return {all.squares / all.count, largest};
}

std::vector<double> rounded_mean(const DataMatrix& data) {
  std::vector<double> mean(std::size_t(data.features), 0.0);
  if (data.starts)
    for (Index e = 0; e < data.starts[data.rows]; ++e) mean[data.columns[e]] += data.values[e];
  else
    each_row(data, [&](const auto* entries, Index count) {
      for (Index k = 0; k < count; ++k) mean[k] += double(entries[k]);
    });
  for (double& entry : mean) {
    int exponent = 0;
    const double fraction = std::frexp(entry / double(data.rows), &exponent);
    entry = std::ldexp(double(float(fraction)), exponent);
  }
  return mean;
}

}  // namespace pairstep
