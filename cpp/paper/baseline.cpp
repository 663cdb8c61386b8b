// The code of hot.inc for every CPU.
#include "standard.hpp"

#define PAIRSTEP_NAMESPACE baseline
#define PAIRSTEP_BYTES 16
#define PAIRSTEP_REGISTERS 16
#include "hot.inc"
