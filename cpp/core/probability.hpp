// Class probabilities from SVM decision values, with the algorithms and constants of LIBSVM: a
// sigmoid for each pair of classes (Platt 1999; Lin, Lin and Weng 2007), and the coupling of all
// pairs into probabilities of the classes (Wu, Lin and Weng 2004, second method).
#pragma once

#include <cstdint>
#include <vector>

#include "thread_pool.hpp"
#include "types.hpp"

namespace pairstep {

// Return 0, ..., n - 1 in the random order in which scikit-learn's version of LIBSVM assigns
// samples to folds.
std::vector<Index> shuffled(Index n, std::uint32_t seed);

// P(positive | decision) = 1 / (1 + exp(slope * decision + offset)).
struct Sigmoid {
  double slope, offset;
};

// Fit a sigmoid to labeled decisions by maximum likelihood; the first `positives` of the n samples
// are positive. As in Platt's method, the targets are slightly below 1 and above 0, which keeps the
// sigmoid from becoming too steep when there are few samples.
Sigmoid fit_sigmoid(const double* decisions, Index n, Index positives);

// Compute the probabilities of the classes in each row from the row's decisions for all pairs of
// classes, in the order (0, 1), (0, 2), ...; a positive decision is for the first class of the
// pair.
void couple(const double* decisions, Index rows, const Sigmoid* sigmoids, Index classes,
            double* probabilities, ThreadPool& pool);

}  // namespace pairstep
