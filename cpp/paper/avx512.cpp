// The code of hot.inc for CPUs with AVX-512.
#include "standard.hpp"
#include "../isa/target.hpp"

#if defined(__x86_64__)

BEGIN_TARGET("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi,bmi2", "prefer-vector-width=512")
#define PAIRSTEP_NAMESPACE avx512
#define PAIRSTEP_BYTES 64
#define PAIRSTEP_REGISTERS 32
#include "hot.inc"
END_TARGET

#endif
