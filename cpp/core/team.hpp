// A team of threads for one native call: made when the call begins, gone when it ends, so that
// nothing outlives a fork or an interpreter.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "types.hpp"

namespace pairstep {

class Team {
 public:
  explicit Team(int size) {
    for (int k = 1; k < size; ++k) threads_.emplace_back([this] { serve(); });
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

  // job(0), ..., job(count - 1), shared out among the threads; back when all are done.
  void run(Index count, const std::function<void(Index)>& job) {
    if (threads_.empty() || count < 2) {
      for (Index k = 0; k < count; ++k) job(k);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      count_ = count;
      next_ = 0;
      busy_ = int(threads_.size());
      ++round_;
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void work() {
    for (Index k = next_++; k < count_; k = next_++) (*job_)(k);
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

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(Index)>* job_ = nullptr;
  Index count_ = 0, round_ = 0;
  std::atomic<Index> next_ = 0;
  int busy_ = 0;
  bool over_ = false;
};

}  // namespace pairstep
