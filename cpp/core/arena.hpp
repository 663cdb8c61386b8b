// Reusable blocks of memory for large temporary matrices.
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

// A block of memory. The constructor with a size, and `fit` for large sizes, map it directly from
// the operating system. The system provides a page only when it is first written, so unused memory
// costs nothing. Huge pages make that first write cheap. They also speed up scattered reads,
// because the CPU's prefetcher stops at every page boundary, which is every 4096 bytes with small
// pages.
class Arena {
 public:
  Arena() = default;
  // Without memory left, the block is empty; the caller decides what that means.
  explicit Arena(std::size_t bytes) { map(std::max<std::size_t>(bytes, 1)); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Return a block of at least `bytes`. If the block has to grow, its contents are lost and it gets
  // larger than requested, so that a sequence of slightly larger requests reuses pages that have
  // been written before: writing to a new page costs more than most computations in it. A heap
  // block gets a quarter more than requested. A mapped block gets four times as much as requested,
  // because pages that are never written are free.
  void* fit(std::size_t bytes) {
    if (bytes > bytes_) {
      release();
      if (bytes < HUGE_PAGE_BYTES) allocate(bytes + bytes / 4);
      else if (!map(4 * bytes) && !map(bytes)) throw std::bad_alloc();
    }
    return data_;
  }

 private:
  // The usual size of a huge page on x86-64 and ARM64 Linux. Smaller blocks cannot contain one.
  static constexpr std::size_t HUGE_PAGE_BYTES = 1 << 21;
  static constexpr std::align_val_t CACHE_LINE{64};  // bytes

  bool map(std::size_t bytes) {
    data_ = take_pages(bytes);
    mapped_ = data_ != nullptr;
    bytes_ = mapped_ ? bytes : 0;
    return mapped_;
  }

  // Blocks smaller than a huge page come from the heap, which reuses pages written before.
  void allocate(std::size_t bytes) {
    data_ = ::operator new(bytes, CACHE_LINE);
    bytes_ = bytes;
    mapped_ = false;
  }

  void release() {
    if (data_ && mapped_) return_pages(data_, bytes_);
    else if (data_) ::operator delete(data_, CACHE_LINE);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool mapped_ = false;
};

// A pool of arenas that solves borrow and return. Reusing them avoids writing to new pages.
class Arenas {
 public:
  std::unique_ptr<Arena> acquire() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return std::make_unique<Arena>();
    std::unique_ptr<Arena> last = std::move(kept_.back());
    kept_.pop_back();
    return last;
  }
  void release(std::unique_ptr<Arena> arena) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(arena));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> kept_;
};

}  // namespace pairstep
