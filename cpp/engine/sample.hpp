// Starting points for large SVM duals from the duals of random samples. An SVM with bounds C on n
// rows resembles one with bounds 4 C on a quarter of the rows. A rough solution of the smaller dual
// predicts which variables of the larger one will be at their lower and at their upper bounds.
// docs/theory/sample.md describes the method.
#pragma once

#include "svm.hpp"

namespace pairstep {

// How duals are sampled. The Python driver of the other back ends (src/pairstep/svm/driver.py)
// reads these values as its defaults.
struct SampleSettings {
  // Each sample has about this many times the rows of the one before it. A larger ratio predicts
  // each solution from fewer rows; a smaller one adds samples to solve.
  static constexpr int GROWTH = 4;
  // Fewest variables in a sample. A dual with fewer than GROWTH * MIN_SIZE variables is not
  // sampled, because solving the dual itself is as fast.
  static constexpr Index MIN_SIZE = 2000;
  // A sample is solved to this multiple of the tolerance, because its solution only serves as a
  // starting point. A smaller multiple would spend more time on samples; a larger one would predict
  // fewer bounds correctly.
  static constexpr double TOLERANCE_FACTOR = 30;
  // Smallest fraction of a sample's variables that must be at a nonzero bound. A sample predicts
  // which variables are at these bounds. With fewer of them, the prediction saves less than it
  // costs.
  static constexpr double MIN_AT_BOUND = 0.02;
};

// Move a large dual to the point that the solutions of its samples predict, each sample
// SampleSettings::GROWTH times as large as the one before. Leave the dual unchanged if it is too
// small to be sampled, if a bound is infinite, if a sample is infeasible, or if few variables of a
// sample are at a nonzero bound, because then there is little to predict.
void start_from_samples(const SvmTask& task, Dual& dual, ThreadPool& pool, SvmProgress& progress);

}  // namespace pairstep
