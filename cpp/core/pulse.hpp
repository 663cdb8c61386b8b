// Between native work and whoever may want it to end: signals, time limits, callbacks. One
// mechanism for every loop, however deep: work calls `beat` between pieces of a few milliseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

namespace pairstep {

// Thrown by `beat` in the other threads of a team once nobody wants the result any more. The thread
// that made the pulse throws what `ask` threw.
struct Abandoned {};

class Pulse {
 public:
  // `ask` is called now and then, by the thread that made the pulse and no other. It may call
  // `stop`, and it may throw: then all work that beats this pulse is given up.
  explicit Pulse(double seconds = std::numeric_limits<double>::infinity(),
                 std::function<void(Pulse&)> ask = {})
      : ask_(std::move(ask)), seconds_(seconds) {}
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  // End with what there is: the time is up, or a callback has asked for it.
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  void stop() { stop_ = true; }

  void beat() {
    if (abandon_.load(std::memory_order_relaxed)) throw Abandoned{};
    if (std::this_thread::get_id() != owner_) return;
    const double now = elapsed();
    if (now >= seconds_) stop_ = true;
    if (!ask_ || now < next_) return;
    next_ = now + PERIOD;
    try {
      ask_(*this);
    } catch (...) {
      stop_ = abandon_ = true;
      throw;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double PERIOD = 0.05;  // seconds between two questions

  const std::thread::id owner_ = std::this_thread::get_id();
  const Clock::time_point began_ = Clock::now();
  const std::function<void(Pulse&)> ask_;
  const double seconds_;
  double next_ = PERIOD;
  std::atomic<bool> stop_ = false, abandon_ = false;
};

}  // namespace pairstep
