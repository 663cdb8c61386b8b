// The code of hot.inc for 64-bit ARM CPUs, all of which have NEON with fused multiply-adds.
#include "standard.hpp"

#if defined(__aarch64__)

#define PAIRSTEP_NAMESPACE neon
#define PAIRSTEP_BYTES 16
#define PAIRSTEP_REGISTERS 32
#define PAIRSTEP_NEON
#include "hot.inc"

#endif
