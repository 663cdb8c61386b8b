// Threads in step: passes of a few microseconds, too short to wake anybody for, are shared out
// among threads that wait for them awake.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "team.hpp"

namespace pairstep {

// Whoever leads does the parts that nobody has taken in time: a thread that is late, asleep or not
// there costs nothing. Who does a part makes no difference to it.
class Crew {
 public:
  static constexpr Index MOST = 4;     // threads
  static constexpr Index LEAST = 768;  // positions in a part: fewer take as long to share

  using Job = void (*)(void* context, Index part, Index begin, Index end);

  explicit Crew(Index size) : size_(std::min(size, MOST)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  Index size() const { return size_; }

  // job(context, part, begin, end) for parts of the positions [0, n); back when all are done.
  // Returns how many parts there were.
  Index share(Index n, Job job, void* context) {
    const Index parts = std::min(size_, n / LEAST);
    if (parts < 2) {
      job(context, 0, 0, n);
      return 1;
    }
    task_ = {job, context, n, parts};
    ++turn_;
    for (Index part = 1; part < parts; ++part)
      seats_[part].store({turn_, Stage::offered}, std::memory_order_release);
    task_.run(0);
    for (Index part = 1; part < parts; ++part) {
      Turn offered{turn_, Stage::offered};
      if (seats_[part].compare_exchange_strong(offered, {turn_, Stage::done})) {
        task_.run(part);
        continue;
      }
      for (Index k = 1; seats_[part].load(std::memory_order_acquire).stage != Stage::done; ++k)
        wait(k);
    }
    return parts;
  }

  // Do what is offered to this seat until the crew is dismissed.
  void serve(Index seat, Pulse& pulse) {
    for (Index idle = 1; !over_.load(std::memory_order_relaxed); ++idle) {
      Turn now = seats_[seat].load(std::memory_order_relaxed);
      if (now.stage == Stage::offered &&
          seats_[seat].compare_exchange_strong(now, {now.turn, Stage::taken})) {
        task_.run(seat);
        seats_[seat].store({now.turn, Stage::done}, std::memory_order_release);
        idle = 0;
        continue;
      }
      if (idle % BRIEFLY == 0) pulse.beat();
      wait(idle);
      if (idle > LONG) std::this_thread::sleep_for(NAP);
    }
  }

  void dismiss() { over_ = true; }

 private:
  enum class Stage : std::uint32_t { done, offered, taken };
  struct Turn {
    std::uint32_t turn;
    Stage stage;
  };
  struct alignas(64) Seat : std::atomic<Turn> {
    Seat() : std::atomic<Turn>(Turn{0, Stage::done}) {}
  };
  struct Task {
    Job job;
    void* context;
    Index n, parts;

    // Parts begin on a cache line of their own.
    Index bound(Index part) const { return part == parts ? n : n * part / parts / 64 * 64; }
    void run(Index part) const { job(context, part, bound(part), bound(part + 1)); }
  };

  // Pauses after which another thread may have the core, and after which it is time for a nap.
  static constexpr Index BRIEFLY = 1 << 10, LONG = 1 << 16;
  static constexpr std::chrono::microseconds NAP{50};

  static void wait(Index already) {
    if (already % BRIEFLY == 0) std::this_thread::yield();
#if defined(__x86_64__)
    else __builtin_ia32_pause();
#endif
  }

  const Index size_;
  Task task_{};
  std::uint32_t turn_ = 0;
  Seat seats_[MOST];
  std::atomic<bool> over_ = false;
};

// work(crew), with threads of the team as its crew.
template <class Work>
void with_crew(Team& team, Work work) {
  Crew crew(team.size());
  team.run(crew.size(), [&](Index seat) {
    if (seat > 0) return crew.serve(seat, team.pulse());
    struct Dismissal {
      Crew& crew;
      ~Dismissal() { crew.dismiss(); }
    } when_done{crew};
    work(crew);
  });
}

}  // namespace pairstep
