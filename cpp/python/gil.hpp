// Native work without the interpreter's lock, and back, also while the interpreter is closing.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../core/pulse.hpp"

namespace pairstep {

// Python before 3.14 ends a daemon thread that asks for the lock of a closing interpreter by force,
// in the middle of C++ frames, which aborts the process. Here such a thread waits for the process
// to end, as it does in Python 3.14.
class Closing {
 public:
  // Called with the lock, by the thread that closes the interpreter (atexit). Threads that are on
  // their way in are let in first.
  static void begin() {
    closer_ = std::this_thread::get_id();
    closing_ = true;
    PyThreadState* state = PyEval_SaveThread();
    while (entering_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }

  static void enter(PyThreadState* state) {
    ++entering_;
    if (closing_ && std::this_thread::get_id() != closer_) {
      --entering_;
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyEval_RestoreThread(state);
    --entering_;
  }

 private:
  static inline std::atomic<bool> closing_ = false;
  static inline std::atomic<int> entering_ = 0;
  static inline std::thread::id closer_;
};

// Releases the lock for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { Closing::enter(state_); }

  // Do something that needs the lock in between, on the same thread.
  template <class Function>
  void with_gil(Function function) {
    Closing::enter(state_);
    try {
      function();
    } catch (...) {
      state_ = PyEval_SaveThread();
      throw;
    }
    state_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* state_;
};

inline void answer_signals() {
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

// Run native work, work(pulse, without), without the lock. Its pulse answers signals and then calls
// `ask`, both with the lock.
template <class Work>
auto run_native(double seconds, const std::function<void(Pulse&)>& ask, Work work) {
  WithoutGil without;
  Pulse pulse(seconds, [&](Pulse& beating) {
    without.with_gil([&] {
      answer_signals();
      if (ask) ask(beating);
    });
  });
  return work(pulse, without);
}
template <class Work>
auto run_native(Work work) {
  return run_native(std::numeric_limits<double>::infinity(), {}, work);
}

}  // namespace pairstep
