// The hot code, compiled once per instruction set; the best one is chosen at run time.
// Standard headers come first, so that their inline functions are compiled for the baseline only.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "batch.hpp"
#include "blas.hpp"
#include "kernels.hpp"
#include "points.hpp"
#include "problem.hpp"

#define PAIRSTEP_NAMESPACE baseline
#define PAIRSTEP_BYTES 16
#include "kernels.inc"
#undef PAIRSTEP_NAMESPACE
#undef PAIRSTEP_BYTES

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#define PAIRSTEP_NAMESPACE avx2
#define PAIRSTEP_BYTES 32
#include "kernels.inc"
#undef PAIRSTEP_NAMESPACE
#undef PAIRSTEP_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi,bmi2,prefer-vector-width=512")
#define PAIRSTEP_NAMESPACE avx512
#define PAIRSTEP_BYTES 64
#include "kernels.inc"
#undef PAIRSTEP_NAMESPACE
#undef PAIRSTEP_BYTES
#pragma GCC pop_options

#endif

namespace pairstep {

namespace {

std::vector<const Kernels*> available() {
  std::vector<const Kernels*> tables{&baseline::table};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    tables.push_back(&avx2::table);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    tables.push_back(&avx512::table);
#endif
  return tables;
}

const Kernels*& chosen() {
  static const Kernels* table = available().back();
  return table;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }

bool use_kernels(const char* name) {
  for (const Kernels* table : available())
    if (std::strcmp(table->name, name) == 0) {
      chosen() = table;
      return true;
    }
  return false;
}

std::vector<const char*> kernel_names() {
  std::vector<const char*> names;
  for (const Kernels* table : available()) names.push_back(table->name);
  return names;
}

}  // namespace pairstep
