// Probabilities from decision values, step by step as LIBSVM has them: a sigmoid for each pair of
// classes (Platt 1999; Lin, Lin and Weng 2007), and the coupling of all pairs (Wu, Lin and Weng
// 2004).
#pragma once

#include <cstdint>
#include <vector>

#include "team.hpp"
#include "types.hpp"

namespace pairstep {

// 0, ..., n - 1 in the random order that scikit-learn's LIBSVM cross-validates in.
std::vector<Index> shuffled(Index n, std::uint32_t seed);

// P(positive | decision) = 1 / (1 + exp(slope * decision + offset)).
struct Sigmoid {
  double slope, offset;
};

// The sigmoid that is most likely to have made the labels: the first `positives` of n samples are
// positive. Labels count as a little less than certain, so that few samples do not make it steep.
Sigmoid fit_sigmoid(const double* decisions, Index n, Index positives);

// The probabilities of `classes` classes in each row, from the row's decisions for all pairs of
// them: (0, 1), (0, 2), ..., positive for the first.
void couple(const double* decisions, Index rows, const Sigmoid* sigmoids, Index classes,
            double* probabilities, Team& team);

}  // namespace pairstep
