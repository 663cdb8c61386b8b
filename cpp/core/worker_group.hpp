// Parallel loops of a few microseconds. Waking a sleeping thread would take longer than such a
// loop, so the workers wait for the next one in a busy loop (spinning).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "thread_pool.hpp"

namespace pairstep {

// The leading thread offers parts of a loop to the workers and does those that no worker has taken
// by the time it gets to them. A worker that is late, asleep or missing therefore costs nothing.
// The result does not depend on which thread does a part.
class WorkerGroup {
 public:
  // Most threads, including the leader. The loops are too short for more: every worker adds to the
  // time that the leader needs to offer the parts.
  static constexpr Index MAX_THREADS = 4;
  // Fewest elements in a part. Handing over a smaller part takes as long as computing it.
  static constexpr Index MIN_ELEMENTS_PER_PART = 768;

  using Job = void (*)(void* context, Index part, Index begin, Index end);

  explicit WorkerGroup(Index size) : size_(std::min(size, MAX_THREADS)) {}
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  Index size() const { return size_; }

  // Run job(context, part, begin, end) for parts that cover the elements [0, n). Return the number
  // of parts when all are done.
  Index run(Index n, Job job, void* context) {
    const Index parts = std::min(size_, n / MIN_ELEMENTS_PER_PART);
    if (parts < 2) {
      job(context, 0, 0, n);
      return 1;
    }
    task_ = {job, context, n, parts};
    ++loop_;
    for (Index part = 1; part < parts; ++part)
      slots_[part].store({loop_, Stage::offered}, std::memory_order_release);
    task_.run(0);
    for (Index part = 1; part < parts; ++part) {
      State offered{loop_, Stage::offered};
      if (slots_[part].compare_exchange_strong(offered, {loop_, Stage::done})) {
        task_.run(part);
        continue;
      }
      for (Index k = 1; slots_[part].load(std::memory_order_acquire).stage != Stage::done; ++k)
        wait(k);
    }
    return parts;
  }

  // Loop of worker number `worker`: do the parts offered to it until `dismiss` is called.
  void serve(Index worker, InterruptCheck& interrupt) {
    for (Index idle = 1; !dismissed_.load(std::memory_order_relaxed); ++idle) {
      State now = slots_[worker].load(std::memory_order_relaxed);
      if (now.stage == Stage::offered &&
          slots_[worker].compare_exchange_strong(now, {now.loop, Stage::taken})) {
        task_.run(worker);
        slots_[worker].store({now.loop, Stage::done}, std::memory_order_release);
        idle = 0;
        continue;
      }
      if (idle % SPINS_PER_YIELD == 0) interrupt.poll();
      wait(idle);
      if (idle > SPINS_BEFORE_SLEEP) std::this_thread::sleep_for(SLEEP);
    }
  }

  // Let the workers end their loops.
  void dismiss() { dismissed_ = true; }

 private:
  enum class Stage : std::uint32_t { done, offered, taken };
  // The loop number makes an exchange fail if the worker has read the state of an earlier loop.
  struct State {
    std::uint32_t loop;
    Stage stage;
  };
  // One per cache line, so that workers do not slow each other down.
  struct alignas(64) Slot : std::atomic<State> {
    Slot() : std::atomic<State>(State{0, Stage::done}) {}
  };
  struct Task {
    Job job;
    void* context;
    Index n, parts;

    // Parts begin at multiples of 64, so that two parts never write to the same cache line.
    Index bound(Index part) const { return part == parts ? n : n * part / parts / 64 * 64; }
    void run(Index part) const { job(context, part, bound(part), bound(part + 1)); }
  };

  // Spins (pause instructions) between two yields to other threads, and between two polls of the
  // interrupt check. Fewer would slow down the response to an offer. More would keep the core from
  // other threads for longer.
  static constexpr Index SPINS_PER_YIELD = 1 << 10;
  // Spins without an offer after which a worker sleeps between its checks, so that it does not keep
  // a core busy while the leader runs no loops; and how long it sleeps each time. A sleeping worker
  // misses the loops that the leader finishes alone in the meantime.
  static constexpr Index SPINS_BEFORE_SLEEP = 1 << 16;
  static constexpr std::chrono::microseconds SLEEP{50};

  static void wait(Index spins) {
    if (spins % SPINS_PER_YIELD == 0) std::this_thread::yield();
#if defined(__x86_64__)
    else __builtin_ia32_pause();
#elif defined(__aarch64__)
    else __asm__ volatile("isb");  // stalls for longer than the hint `yield` does on current CPUs
#endif
  }

  const Index size_;
  Task task_{};
  std::uint32_t loop_ = 0;
  Slot slots_[MAX_THREADS];
  std::atomic<bool> dismissed_ = false;
};

// Call work(worker_group), with the threads of the pool as its workers.
template <class Work>
void with_worker_group(ThreadPool& pool, Work work) {
  WorkerGroup worker_group(pool.size());
  pool.run(worker_group.size(), [&](Index worker) {
    if (worker > 0) return worker_group.serve(worker, pool.interrupt());
    struct Dismissal {
      WorkerGroup& worker_group;
      ~Dismissal() { worker_group.dismiss(); }
    } when_done{worker_group};
    work(worker_group);
  });
}

}  // namespace pairstep
