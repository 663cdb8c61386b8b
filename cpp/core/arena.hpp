// Large pieces of memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace pairstep {

// Untouched memory costs nothing; huge pages make the first touch cheap, and reads from all over
// it: small ones end the processor's own reading ahead every 4096 bytes.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::size_t bytes) { take(std::max<std::size_t>(bytes, 1)); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { give_back(); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Room for so many bytes. If it has to grow, it forgets what it holds and takes a quarter more.
  void* fit(std::size_t bytes) {
    if (bytes > bytes_) {
      give_back();
      take(bytes + bytes / 4);
    }
    return data_;
  }

 private:
  void take(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(data, bytes, MADV_HUGEPAGE);
#endif
    data_ = data;
    bytes_ = bytes;
  }

  void give_back() {
    if (data_) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace pairstep
