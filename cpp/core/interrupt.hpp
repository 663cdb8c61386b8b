// Interruption of native computations by signals, time limits and callbacks. Every long loop uses
// the same mechanism: it calls `InterruptCheck::poll` between pieces of work of a few milliseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

namespace pairstep {

// Thrown by `poll` in worker threads after the callback has thrown in the thread that owns the
// check. The owner rethrows the callback's exception.
struct Abandoned {};

class InterruptCheck {
 public:
  // `callback` is called about every CALLBACK_SECONDS, only by the thread that constructs this
  // object. It may call `stop`. If it throws, all threads that poll this object abandon their work.
  explicit InterruptCheck(double seconds = std::numeric_limits<double>::infinity(),
                          std::function<void(InterruptCheck&)> callback = {})
      : callback_(std::move(callback)), seconds_(seconds) {}
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  // Whether to stop early and return the current result: the time limit has passed, or `stop` was
  // called.
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  void stop() { stop_ = true; }

  void poll() {
    if (abandon_.load(std::memory_order_relaxed)) throw Abandoned{};
    if (std::this_thread::get_id() != owner_) return;
    const double now = elapsed();
    if (now >= seconds_) stop_ = true;
    if (!callback_ || now < next_) return;
    next_ = now + CALLBACK_SECONDS;
    try {
      callback_(*this);
    } catch (...) {
      stop_ = abandon_ = true;
      throw;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Seconds between two calls of the callback. A longer interval would delay the answer to Ctrl-C
  // noticeably. A shorter one would take Python's lock more than 20 times a second.
  static constexpr double CALLBACK_SECONDS = 0.05;

  const std::thread::id owner_ = std::this_thread::get_id();
  const Clock::time_point began_ = Clock::now();
  const std::function<void(InterruptCheck&)> callback_;
  const double seconds_;
  double next_ = CALLBACK_SECONDS;  // earliest time of the next call
  std::atomic<bool> stop_ = false, abandon_ = false;
};

}  // namespace pairstep
