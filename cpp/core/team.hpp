// A team of threads for one native call: made when the call begins, gone when it ends, so that
// nothing outlives a fork or an interpreter.
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

#include "pulse.hpp"
#include "types.hpp"

namespace pairstep {

class Team {
 public:
  // As many threads as asked for, the calling one included, or as many as can be had.
  Team(int size, Pulse& pulse) : pulse_(pulse) {
    threads_.reserve(std::size_t(std::max(size, 1)));
    try {
      for (int k = 1; k < size; ++k) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system gives no more of them: the work is done by those that there are.
    }
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return int(threads_.size()) + 1; }
  Pulse& pulse() const { return pulse_; }

  // job(0), ..., job(count - 1), shared out among the threads; back when all are done. What a job
  // throws is thrown here, once no thread works any more. The pulse beats between jobs.
  void run(Index count, const std::function<void(Index)>& job) {
    if (threads_.empty() || count < 2) {
      for (Index k = 0; k < count; ++k) {
        pulse_.beat();
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
    while (!done_.wait_for(lock, PATIENCE, [this] { return busy_ == 0; })) {
      lock.unlock();
      try {
        pulse_.beat();
      } catch (...) {
        fail();
      }
      lock.lock();
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static constexpr std::chrono::milliseconds PATIENCE{20};

  void work() {
    try {
      for (Index k = next_++; k < count_; k = next_++) {
        pulse_.beat();
        (*job_)(k);
      }
    } catch (...) {
      fail();
    }
  }
  // Keep the first failure, but for `Abandoned`, which only follows another one; start no more
  // jobs.
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
    Index seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return over_ || round_ != seen; });
      if (over_) return;
      seen = round_;
      lock.unlock();
      work();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  Pulse& pulse_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(Index)>* job_ = nullptr;
  Index count_ = 0, round_ = 0;
  std::atomic<Index> next_ = 0;
  int busy_ = 0;
  bool over_ = false, only_abandoned_ = false;
  std::exception_ptr failure_;
};

}  // namespace pairstep
