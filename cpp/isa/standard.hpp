// What the hot code uses of the rest. Included before any target pragma, so that inline functions
// of these headers are compiled for the baseline only: two versions of one would be an ODR trap.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "../core/certify.hpp"
#include "../core/crew.hpp"
#include "../core/feasible.hpp"
#include "../core/inner.hpp"
#include "../core/nested.hpp"
#include "../core/row_sums.hpp"
#include "../core/types.hpp"
#include "../engine/batch.hpp"
#include "../oracles/points.hpp"
#include "dispatch.hpp"
