// The hot code for every processor.
#include "standard.hpp"

#define PAIRSTEP_NAMESPACE baseline
#define PAIRSTEP_BYTES 16
#include "hot.inc"
