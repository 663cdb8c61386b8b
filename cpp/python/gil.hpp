// Running native code without Python's global interpreter lock (GIL), and taking the lock again,
// even while the interpreter shuts down.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../core/interrupt.hpp"

namespace pairstep {

// Python before 3.14 terminates a daemon thread that requests the GIL during shutdown. This happens
// in the middle of C++ frames and aborts the process. Here such a thread waits for the process to
// end instead, as it does in Python 3.14.
class Shutdown {
 public:
  // Called with the GIL by the thread that shuts the interpreter down (atexit). Threads that are
  // already taking the GIL get it first.
  static void begin() {
    owner_ = std::this_thread::get_id();
    started_ = true;
    PyThreadState* state = PyEval_SaveThread();
    while (acquiring_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }

  // Take the GIL, or wait for the end of the process during shutdown.
  static void acquire(PyThreadState* state) {
    ++acquiring_;
    if (started_ && std::this_thread::get_id() != owner_) {
      --acquiring_;
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyEval_RestoreThread(state);
    --acquiring_;
  }

 private:
  static inline std::atomic<bool> started_ = false;
  static inline std::atomic<int> acquiring_ = 0;
  static inline std::thread::id owner_;
};

// Releases the GIL for the lifetime of the object.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { Shutdown::acquire(state_); }

  // Call a function with the GIL, on the same thread.
  template <class Function>
  void with_gil(Function function) {
    Shutdown::acquire(state_);
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

// Run Python's signal handlers, which may raise KeyboardInterrupt.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

// Call work(interrupt, without) without the GIL. The interrupt check handles signals and then calls
// `callback`, both with the GIL. It requests a stop after `seconds`.
template <class Work>
auto run_native(double seconds, const std::function<void(InterruptCheck&)>& callback, Work work) {
  WithoutGil without;
  InterruptCheck interrupt(seconds, [&](InterruptCheck& check) {
    without.with_gil([&] {
      check_signals();
      if (callback) callback(check);
    });
  });
  return work(interrupt, without);
}
template <class Work>
auto run_native(Work work) {
  return run_native(std::numeric_limits<double>::infinity(), {}, work);
}

// The same for work whose partial result is useless: it is abandoned after `seconds`. Return
// whether it was completed.
template <class Work>
bool run_native_in_time(double seconds, Work work) {
  struct OutOfTime {};
  const auto check_time = [&](InterruptCheck& interrupt) {
    if (interrupt.elapsed() >= seconds) throw OutOfTime{};
  };
  try {
    run_native(std::numeric_limits<double>::infinity(), check_time, work);
  } catch (const OutOfTime&) {
    return false;
  }
  return true;
}

}  // namespace pairstep
