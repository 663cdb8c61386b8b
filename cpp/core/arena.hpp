// Large pieces of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "pages.hpp"

namespace pairstep {

// Untouched memory costs nothing; huge pages make the first touch cheap, and reads from all over
// it: small ones end the processor's own reading ahead every 4096 bytes.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::size_t bytes) { map(std::max<std::size_t>(bytes, 1)); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { give_back(); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Room for so many bytes. If it has to grow, it forgets what it holds and takes more than that: a
  // quarter from the heap, or four times as much, for the first touch of other pages costs more
  // than most work in them, while what is never touched costs nothing.
  void* fit(std::size_t bytes) {
    if (bytes > bytes_) {
      give_back();
      if (bytes < HUGE_PAGE) allocate(bytes + bytes / 4);
      else if (!map(4 * bytes) && !map(bytes)) throw std::bad_alloc();
    }
    return data_;
  }

 private:
  static constexpr std::size_t HUGE_PAGE = 1 << 21;
  static constexpr std::align_val_t LINE{64};

  bool map(std::size_t bytes) {
    data_ = take_pages(bytes);
    mapped_ = data_ != nullptr;
    bytes_ = mapped_ ? bytes : 0;
    return mapped_;
  }

  // The heap has what fits no huge page at hand, touched before.
  void allocate(std::size_t bytes) {
    data_ = ::operator new(bytes, LINE);
    bytes_ = bytes;
    mapped_ = false;
  }

  void give_back() {
    if (data_ && mapped_) return_pages(data_, bytes_);
    else if (data_) ::operator delete(data_, LINE);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool mapped_ = false;
};

// Arenas that are lent to who works and kept for who works next: to touch new memory is dear.
class Arenas {
 public:
  std::unique_ptr<Arena> lend() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return std::make_unique<Arena>();
    std::unique_ptr<Arena> last = std::move(kept_.back());
    kept_.pop_back();
    return last;
  }
  void take_back(std::unique_ptr<Arena> arena) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(arena));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> kept_;
};

}  // namespace pairstep
