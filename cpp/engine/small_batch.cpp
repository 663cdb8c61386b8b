#include "small_batch.hpp"

#include <algorithm>

#include "../core/thread_pool.hpp"
#include "small.hpp"

namespace pairstep {

void solve_small_batch(const SmallBatch& batch, InterruptCheck& interrupt) {
  // A solve of a few variables takes a microsecond, about as long as handing out ten jobs. Larger
  // jobs would leave one thread without work at the end.
  constexpr Index PROBLEMS_PER_JOB = 4;
  const Index n = batch.n, jobs = (batch.count + PROBLEMS_PER_JOB - 1) / PROBLEMS_PER_JOB;
  ThreadPool pool(int(std::min<Index>(batch.threads, jobs)), interrupt);
  pool.run(jobs, [&](Index job) {
    const Index end = std::min((job + 1) * PROBLEMS_PER_JOB, batch.count);
    for (Index k = job * PROBLEMS_PER_JOB; k < end; ++k) {
      if (interrupt.stopped()) return;
      const std::optional<SmallAnswer> answer =
          solve_small({batch.hessian[k], batch.linear[k], batch.lower[k], batch.upper[k], n,
                       *batch.total[k], batch.tol});
      batch.state[k] = answer ? SmallBatch::optimal : SmallBatch::declined;
      if (!answer) continue;
      std::copy_n(answer->x.data(), n, batch.x + k * n);
      std::copy_n(answer->gradient.data(), n, batch.gradient + k * n);
      batch.value[k] = answer->value;
      batch.violation[k] = answer->certificate.violation;
      batch.tolerance[k] = answer->tolerance;
      batch.bound[k] = answer->certificate.bound;
      batch.multiplier[k] = answer->certificate.multiplier[0];
      batch.iterations[k] = answer->iterations;
    }
  });
}

}  // namespace pairstep
