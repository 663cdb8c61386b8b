// The headers that the code of hot.inc needs. They are included before any target pragma, so that
// their inline functions are compiled for the baseline only. Versions for different instruction
// sets would violate the one-definition rule, and the linker could pick one that the CPU cannot
// run.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "../core/certify.hpp"
#include "../core/convex.hpp"
#include "../core/worker_group.hpp"
#include "../core/feasible.hpp"
#include "../core/inner.hpp"
#include "../core/nested.hpp"
#include "../core/policy.hpp"
#include "../core/row_sums.hpp"
#include "../core/types.hpp"
#include "../engine/batch.hpp"
#include "../engine/parametric.hpp"
#include "../engine/start.hpp"
#include "../oracles/points.hpp"
#include "dispatch.hpp"
