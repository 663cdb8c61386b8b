// The hot code for processors with AVX2.
#include "standard.hpp"

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#define PAIRSTEP_NAMESPACE avx2
#define PAIRSTEP_BYTES 32
#include "hot.inc"
#pragma GCC pop_options

#endif
