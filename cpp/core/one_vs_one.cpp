#include "one_vs_one.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pairstep {

namespace {

// Decisions per job of the thread pool. A job then takes about ten microseconds: long enough to be
// worth handing to a thread, short enough to balance the load.
constexpr Index DECISIONS_PER_JOB = 1 << 15;

// Call work(begin, end) on ranges of rows, in parallel.
template <class Work>
void for_row_ranges(Index rows, Index pairs, ThreadPool& pool, const Work& work) {
  const Index rows_per_job = std::max<Index>(1, DECISIONS_PER_JOB / std::max<Index>(pairs, 1));
  pool.run((rows + rows_per_job - 1) / rows_per_job,
           [&](Index job) { work(job * rows_per_job, std::min(rows, (job + 1) * rows_per_job)); });
}

}  // namespace

void pair_decisions(const double* sums, Index rows, Index classes, const double* intercept,
                    double* pairs, ThreadPool& pool) {
  const Index outputs = classes - 1, n_pairs = classes * outputs / 2;
  for_row_ranges(rows, n_pairs, pool, [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      const double* of_row = sums + row * classes * outputs;
      double* to = pairs + row * n_pairs;
      const double* constant = intercept;
      for (Index i = 0; i < classes; ++i)
        for (Index j = i + 1; j < classes; ++j)
          *to++ = of_row[i * outputs + j - 1] + of_row[j * outputs + i] + *constant++;
    }
  });
}

void vote(const double* pairs, Index rows, Index classes, Index* winners, ThreadPool& pool) {
  const Index n_pairs = classes * (classes - 1) / 2;
  for_row_ranges(rows, n_pairs, pool, [&](Index begin, Index end) {
    std::vector<Index> votes;
    for (Index row = begin; row < end; ++row) {
      const double* decision = pairs + row * n_pairs;
      votes.assign(std::size_t(classes), 0);
      for (Index i = 0; i < classes; ++i) {
        Index won = 0;
        for (Index j = i + 1; j < classes; ++j) {
          const Index first = *decision++ > 0;
          won += first;
          votes[std::size_t(j)] += 1 - first;
        }
        votes[std::size_t(i)] += won;
      }
      winners[row] = std::max_element(votes.begin(), votes.end()) - votes.begin();
    }
  });
}

void one_vs_rest(const double* pairs, Index rows, Index classes, double* decisions,
                 ThreadPool& pool) {
  const Index n_pairs = classes * (classes - 1) / 2;
  for_row_ranges(rows, n_pairs, pool, [&](Index begin, Index end) {
    std::vector<double> confidence;
    for (Index row = begin; row < end; ++row) {
      const double* decision = pairs + row * n_pairs;
      double* to = decisions + row * classes;
      std::fill_n(to, classes, 0.0);
      confidence.assign(std::size_t(classes), 0.0);
      for (Index i = 0; i < classes; ++i)
        for (Index j = i + 1; j < classes; ++j) {
          const double value = *decision++;
          confidence[std::size_t(i)] += value;
          confidence[std::size_t(j)] -= value;
          to[value < 0 ? j : i] += 1.0;
        }
      for (Index i = 0; i < classes; ++i) {
        const double s = confidence[std::size_t(i)];
        to[i] += s / (3 * (std::abs(s) + 1));
      }
    }
  });
}

}  // namespace pairstep
