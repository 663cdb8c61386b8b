// The code of hot.inc for CPUs with AVX2.
#include "standard.hpp"
#include "../isa/target.hpp"

#if defined(__x86_64__)

BEGIN_TARGET("avx2,fma,bmi,bmi2", "prefer-vector-width=256")
#define PAIRSTEP_NAMESPACE avx2
#define PAIRSTEP_BYTES 32
#define PAIRSTEP_REGISTERS 16
#include "hot.inc"
END_TARGET

#endif
