// Chooses the functions for the instruction set in use.
#include "paper.hpp"

#include <string_view>

#include "../isa/dispatch.hpp"

namespace pairstep::paper {

namespace baseline {
extern const Functions functions;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Functions functions;
}
namespace avx512 {
extern const Functions functions;
}
#elif defined(__aarch64__)
namespace neon {
extern const Functions functions;
}
#endif

const Functions& functions() {
  const std::string_view name = isa().name;
#if defined(__x86_64__)
  if (name == "avx512") return avx512::functions;
  if (name == "avx2") return avx2::functions;
#elif defined(__aarch64__)
  if (name == "neon") return neon::functions;
#endif
  (void)name;
  return baseline::functions;
}

}  // namespace pairstep::paper
