// Memory pages from the operating system. This is the only file of the native code with separate
// versions for Windows and POSIX systems.
#pragma once

#include <cstddef>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace pairstep {

// Return zero-initialized pages, or null if the system refuses. On Linux, ask for huge pages. A
// page takes up physical memory only after it is first written.
inline void* take_pages(std::size_t bytes) {
#if defined(_WIN32)
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
  madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
#endif
}

inline void return_pages(void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(_WIN32)
  VirtualFree(data, 0, MEM_RELEASE);
#else
  munmap(data, bytes);
#endif
}

}  // namespace pairstep
