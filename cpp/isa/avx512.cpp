// The hot code for processors with AVX-512.
#include "standard.hpp"

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi,bmi2,prefer-vector-width=512")
#define PAIRSTEP_NAMESPACE avx512
#define PAIRSTEP_BYTES 64
#include "hot.inc"
#pragma GCC pop_options

#endif
