// A thread pool for one native call. Its threads start with the call and end with it, so that none
// survives a fork or the end of the interpreter.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "types.hpp"

namespace pairstep {

class ThreadPool {
 public:
  // Use `size` threads including the calling one, or fewer if the system cannot start that many.
  ThreadPool(int size, InterruptCheck& interrupt) : interrupt_(interrupt) {
    threads_.reserve(std::size_t(std::max(size, 1)));
    try {
      for (int k = 1; k < size; ++k) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system cannot start more threads. Those that exist do the work.
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return int(threads_.size()) + 1; }
  InterruptCheck& interrupt() const { return interrupt_; }

  // Run job(0), ..., job(count - 1) in parallel and return when all are done. If a job throws, no
  // further jobs start, and the exception is rethrown here after all threads have finished. The
  // interrupt check is polled between jobs.
  void run(Index count, const std::function<void(Index)>& job) {
    if (threads_.empty() || count < 2) {
      for (Index k = 0; k < count; ++k) {
        interrupt_.poll();
        job(k);
      }
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      count_ = count;
      next_ = 0;
      busy_ = int(threads_.size());
      failure_ = nullptr;
      only_abandoned_ = false;
      ++round_;
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, POLL_INTERVAL, [this] { return busy_ == 0; })) {
      lock.unlock();
      try {
        interrupt_.poll();
      } catch (...) {
        fail();
      }
      lock.lock();
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // Time between two polls of the interrupt check while the calling thread waits for the others. It
  // is shorter than the interval between callbacks, so that waiting hardly delays them.
  static constexpr std::chrono::milliseconds POLL_INTERVAL{20};

  void work() {
    try {
      for (Index k = next_++; k < count_; k = next_++) {
        interrupt_.poll();
        (*job_)(k);
      }
    } catch (...) {
      fail();
    }
  }
  // Keep the current exception and start no further jobs. Call this only in a catch block. The
  // first exception is kept, except that any other exception replaces `Abandoned`, which is only a
  // consequence of it.
  void fail() {
    next_ = count_;
    const std::lock_guard lock(mutex_);
    try {
      throw;
    } catch (const Abandoned&) {
      if (!failure_) failure_ = std::current_exception(), only_abandoned_ = true;
    } catch (...) {
      if (!failure_ || only_abandoned_) failure_ = std::current_exception();
      only_abandoned_ = false;
    }
  }
  void serve() {
    Index last_round = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return ended_ || round_ != last_round; });
      if (ended_) return;
      last_round = round_;
      lock.unlock();
      work();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  InterruptCheck& interrupt_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(Index)>* job_ = nullptr;
  Index count_ = 0, round_ = 0;
  std::atomic<Index> next_ = 0;
  int busy_ = 0;
  bool ended_ = false, only_abandoned_ = false;
  std::exception_ptr failure_;
};

}  // namespace pairstep
