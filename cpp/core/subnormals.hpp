// Arithmetic with numbers below 1e-308, as likelihoods often are, takes a hundred times as long as
// with others.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pairstep {

// While it lives they count as 0 in this thread, if it is so wanted.
class WithoutSubnormals {
#if defined(__SSE2__)
 public:
  explicit WithoutSubnormals(bool wanted) : before_(_mm_getcsr()) {
    if (wanted) _mm_setcsr(before_ | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
  }
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;
  ~WithoutSubnormals() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040;
  const unsigned before_;
#else
 public:
  explicit WithoutSubnormals(bool) {}
  ~WithoutSubnormals() {}  // so that it is not taken for unused
#endif
};

}  // namespace pairstep
