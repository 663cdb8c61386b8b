// One-vs-one classification: classes from the decision values of all pairs of classes. Pairs are in
// the order (0, 1), (0, 2), ..., (1, 2), ...; a positive decision is for the first class of its
// pair.
#pragma once

#include "thread_pool.hpp"

namespace pairstep {

// Compute the decision of every pair of classes in every row. With P pairs, pairs[r * P + p] is the
// sum over the support vectors of both classes of pair p, plus intercept[p]. `sums` has k - 1
// values per row for each of the k classes; that of class i against class j is at position j, or j
// - 1 if j > i.
void pair_decisions(const double* sums, Index rows, Index classes, const double* intercept,
                    double* pairs, ThreadPool& pool);

// Find the class with the most votes in each row, and the first such class in a tie. A decision of
// 0 is a vote for the second class of its pair, as in LIBSVM.
void vote(const double* pairs, Index rows, Index classes, Index* winners, ThreadPool& pool);

// Compute one decision per class as scikit-learn does for decision_function_shape="ovr": the number
// of votes plus a term below 1/3 in size that grows with the sum of the class's decisions. Here a
// decision of 0 is a vote for the first class.
void one_vs_rest(const double* pairs, Index rows, Index classes, double* decisions,
                 ThreadPool& pool);

}  // namespace pairstep
