// Vector primitives: loads and stores, arithmetic, argmax, and the largest scores. Included once
// per instruction set, inside the namespace of that set. PAIRSTEP_BYTES is the size of its vectors,
// and PAIRSTEP_REGISTERS the number of vector registers. PAIRSTEP_NEON is defined for NEON.
//
// A score is a generic lambda `score<T>(p)`. With T = double it returns the score at position p,
// with T = Lanes the scores at the WIDTH positions from p on. So a rule is written once, without
// intrinsics.
#pragma once

// For lambdas in inner loops. Without inlining, every call would load the captured values again.
#define INLINED __attribute__((always_inline))

constexpr Index WIDTH = PAIRSTEP_BYTES / sizeof(double);
typedef double Lanes __attribute__((vector_size(PAIRSTEP_BYTES)));

// The smallest multiple of WIDTH that is at least n.
inline Index whole_vectors(Index n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }

template <class T>
inline T load(const double* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// The same for numbers that are stored as float32.
template <class T>
inline T load(const float* p) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return *p;
  } else {
    typedef float Half __attribute__((vector_size(sizeof(T) / 2)));
    Half value;
    std::memcpy(&value, p, sizeof value);
    return __builtin_convertvector(value, T);
  }
}

template <class T>
inline void store(double* p, T value) {
  std::memcpy(p, &value, sizeof(T));
}

// A T in which every lane is `value`.
template <class T>
inline T all(double value) {
  return value - T{};  // compilers fold x - 0, but not x + 0, which differs for x = -0
}

template <class T>
inline T maximum(T a, T b) {
  return a > b ? a : b;
}

template <class T>
inline T minimum(T a, T b) {
  return a < b ? a : b;
}

// The same for vectors, as a single instruction. Compilers generate it from the expressions above
// only if neither argument is a constant. NEON has such instructions too, but they treat NaN and
// signed zeros in another way, so that the expressions above are used there.
#if defined(__x86_64__)
inline Lanes maximum(Lanes a, Lanes b) {
#if PAIRSTEP_BYTES == 64
  return _mm512_max_pd(a, b);
#elif PAIRSTEP_BYTES == 32
  return _mm256_max_pd(a, b);
#else
  return _mm_max_pd(a, b);
#endif
}
inline Lanes minimum(Lanes a, Lanes b) {
#if PAIRSTEP_BYTES == 64
  return _mm512_min_pd(a, b);
#elif PAIRSTEP_BYTES == 32
  return _mm256_min_pd(a, b);
#else
  return _mm_min_pd(a, b);
#endif
}
#endif

inline double square_root(double value) { return std::sqrt(value); }

inline Lanes square_root(Lanes value) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_sqrt_pd(value);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return _mm256_sqrt_pd(value);
#elif defined(__x86_64__)
  return _mm_sqrt_pd(value);
#elif defined(PAIRSTEP_NEON)
  return vsqrtq_f64(value);
#else
  for (Index k = 0; k < WIDTH; ++k) value[k] = std::sqrt(value[k]);
  return value;
#endif
}

template <class Real>
struct Vector {
  typedef Real type __attribute__((vector_size(PAIRSTEP_BYTES)));
  static constexpr Index width = PAIRSTEP_BYTES / sizeof(Real);
};

template <class V, class Real>
inline V load_as(const Real* p) {
  V value;
  std::memcpy(&value, p, sizeof(V));
  return value;
}

using Floats = Vector<float>::type;
using Doubles = Vector<double>::type;

// a * b + c, rounded once if the CPU has fused multiply-adds.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return _mm256_fmadd_ps(a, b, c);
#elif defined(PAIRSTEP_NEON)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return _mm256_fmadd_pd(a, b, c);
#elif defined(PAIRSTEP_NEON)
  return vfmaq_f64(c, a, b);
#else
  return a * b + c;
#endif
}
// c - a * b, rounded once if the CPU has fused multiply-adds.
inline Doubles multiply_subtract(Doubles a, Doubles b, Doubles c) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_fnmadd_pd(a, b, c);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return _mm256_fnmadd_pd(a, b, c);
#elif defined(PAIRSTEP_NEON)
  return vfmsq_f64(c, a, b);
#else
  return c - a * b;
#endif
}

// Half of the lanes, for reductions.
typedef double HalfLanes __attribute__((vector_size(PAIRSTEP_BYTES / 2)));

inline double largest_lane(Lanes v) {
  if constexpr (WIDTH == 2) {
    return maximum(v[0], v[1]);
  } else {
    HalfLanes low, high;
    std::memcpy(&low, &v, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    const HalfLanes half = maximum(low, high);
    double best = maximum(half[0], half[1]);
    for (Index k = 2; k < WIDTH / 2; ++k) best = maximum(half[k], best);
    return best;
  }
}

inline double sum_of_lanes(Lanes v) {
  if constexpr (WIDTH == 2) {
    return v[0] + v[1];
  } else {
    HalfLanes low, high;
    std::memcpy(&low, &v, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    const HalfLanes half = low + high;
    double sum = half[0] + half[1];
    for (Index k = 2; k < WIDTH / 2; k += 2) sum += half[k] + half[k + 1];
    return sum;
  }
}

#if defined(PAIRSTEP_NEON)
// Bit k is set if the bits of lane k are set.
inline unsigned bits_of(uint64x2_t lanes) {
  return unsigned(vgetq_lane_u64(lanes, 0) & 1) | unsigned(vgetq_lane_u64(lanes, 1) & 2);
}
#endif

// Bit k is set if lane k of a is greater than lane k of b.
inline unsigned above(Lanes a, Lanes b) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
#elif defined(PAIRSTEP_NEON)
  return bits_of(vcgtq_f64(a, b));
#else
  unsigned bits = 0;
  for (Index k = 0; k < WIDTH; ++k) bits |= unsigned(a[k] > b[k]) << k;
  return bits;
#endif
}

// Bit k is set if lane k of a equals lane k of b.
inline unsigned same(Lanes a, Lanes b) {
#if defined(__x86_64__) && PAIRSTEP_BYTES == 64
  return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
#elif defined(__x86_64__) && PAIRSTEP_BYTES == 32
  return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ)));
#elif defined(PAIRSTEP_NEON)
  return bits_of(vceqq_f64(a, b));
#else
  unsigned bits = 0;
  for (Index k = 0; k < WIDTH; ++k) bits |= unsigned(a[k] == b[k]) << k;
  return bits;
#endif
}

// Call visit(k) for each bit k that is set.
template <class Visit>
inline void for_bits(unsigned bits, Visit visit) {
  for (; bits; bits &= bits - 1) visit(Index(std::countr_zero(bits)));
}

// The position of the largest score.
struct Found {
  double value = -INFINITY;
  Index index = -1;  // -1 if every score is -inf or there are no scores
};

struct SearchSettings {
  // Positions per block of argmax. Each block ends with a reduction over lanes, and the block with
  // the largest score is scanned again. Shorter blocks take more reductions; longer ones make the
  // second scan longer.
  static constexpr Index ARGMAX_BLOCK = 256;
  // Up to this number of wanted positions, `top` keeps a heap; the comment there has the trade-off.
  static constexpr Index MAX_HEAP_ENTRIES = 32;
  // Vectors that `top` compares with its threshold at once. Most of these chunks are skipped.
  // Longer chunks need fewer comparisons, but more scores are computed again if a chunk is not
  // skipped.
  static constexpr Index CHUNK_VECTORS = 8;
};

// The positions of the largest of each of K scores in one pass; the first position on ties.
// `rescore` must return the same scores again without side effects (`score` may store results).
template <int K, class Score, class Rescore>
inline std::array<Found, K> argmax(Index n, Score score, Rescore rescore) {
  std::array<Found, K> found;
  std::array<Index, K> block;
  block.fill(-1);
  for (Index begin = 0; begin < n; begin += SearchSettings::ARGMAX_BLOCK) {
    const Index end = std::min(begin + SearchSettings::ARGMAX_BLOCK, n);
    std::array<Lanes, K> even, odd;
    for (int k = 0; k < K; ++k) even[k] = odd[k] = all<Lanes>(-INFINITY);
    Index p = begin;
    for (; p + 2 * WIDTH <= end; p += 2 * WIDTH) {
      const std::array<Lanes, K> a = score.template operator()<Lanes>(p);
      const std::array<Lanes, K> b = score.template operator()<Lanes>(p + WIDTH);
      for (int k = 0; k < K; ++k) {
        even[k] = maximum(a[k], even[k]);
        odd[k] = maximum(b[k], odd[k]);
      }
    }
    for (; p + WIDTH <= end; p += WIDTH) {
      const std::array<Lanes, K> a = score.template operator()<Lanes>(p);
      for (int k = 0; k < K; ++k) even[k] = maximum(a[k], even[k]);
    }
    std::array<double, K> top;
    for (int k = 0; k < K; ++k) top[k] = largest_lane(maximum(even[k], odd[k]));
    for (; p < end; ++p) {
      const std::array<double, K> a = score.template operator()<double>(p);
      for (int k = 0; k < K; ++k) top[k] = maximum(a[k], top[k]);
    }
    for (int k = 0; k < K; ++k)
      if (top[k] > found[k].value) {
        found[k].value = top[k];
        block[k] = begin;
      }
  }
  for (int k = 0; k < K; ++k) {
    if (block[k] < 0) continue;
    Index p = block[k];
    const Index end = std::min(p + SearchSettings::ARGMAX_BLOCK, n);
    unsigned bits = 0;
    for (; p + WIDTH <= end; p += WIDTH) {
      bits = same(rescore.template operator()<Lanes>(p)[k], all<Lanes>(found[k].value));
      if (bits != 0) break;
    }
    if (bits != 0) p += std::countr_zero(bits);
    else
      while (p + 1 < end && rescore.template operator()<double>(p)[k] != found[k].value) ++p;
    found[k].index = std::min(p, end - 1);  // a NaN among the scores may hide the largest one
  }
  return found;
}

template <int K, class Score>
inline std::array<Found, K> argmax(Index n, Score score) {
  return argmax<K>(n, score, score);
}

// The position of the largest score above `threshold`, for scores that are expensive; the first
// position on ties. The threshold rises to the largest score so far. If a score may be above it,
// the cheap test excess(p, threshold) must be above `min_excess`.
template <class Excess, class Score>
inline Found argmax_above(double threshold, Index n, Excess excess, double min_excess,
                          Score score) {
  Index best = -1;
  const auto promising = [&](Index p) INLINED {
    return above(excess(p, threshold), all<Lanes>(min_excess));
  };
  const auto offer = [&](double value, Index p) INLINED {
    if (!(value > threshold)) return;
    threshold = value;
    best = p;
  };
  const auto look = [&](Index p) INLINED {
    const Lanes value = score.template operator()<Lanes>(p);
    for (Index lane = 0; lane < WIDTH; ++lane) offer(value[lane], p + lane);
  };
  Index p = 0;
  for (; p + 2 * WIDTH <= n; p += 2 * WIDTH)
    if ((promising(p) | promising(p + WIDTH)) != 0) [[unlikely]]
      for (const Index at : {p, p + WIDTH}) look(at);
  for (; p + WIDTH <= n; p += WIDTH) look(p);
  for (; p < n; ++p) offer(score.template operator()<double>(p), p);
  return {threshold, best};
}

// Run `search` on parts of [0, n) in parallel, and return the largest of the results; the first
// position on ties. The result does not depend on the number of threads. search(begin, end) returns
// positions relative to `begin`. Without a worker group, the calling thread searches all.
template <int K, class Search>
inline std::array<Found, K> shared(WorkerGroup* worker_group, Index n, Search search) {
  if (!worker_group) return search(0, n);
  struct alignas(64) Parts {
    Search& search;
    std::array<Found, K> found[WorkerGroup::MAX_THREADS];
  } parts{search, {}};
  const Index count = worker_group->run(
      n,
      [](void* context, Index part, Index begin, Index end) {
        Parts& all = *static_cast<Parts*>(context);
        std::array<Found, K> found = all.search(begin, end);
        for (Found& one : found)
          if (one.index >= 0) one.index += begin;
        all.found[part] = found;
      },
      &parts);
  std::array<Found, K> best = parts.found[0];
  for (Index part = 1; part < count; ++part)
    for (int k = 0; k < K; ++k)
      if (parts.found[part][k].value > best[k].value) best[k] = parts.found[part][k];
  return best;
}

// A score with positions relative to `begin`.
template <class Score>
inline auto from(Index begin, Score score) {
  return [=]<class T>(Index p) INLINED { return score.template operator()<T>(begin + p); };
}

// The positions of the `count` largest of each of K scores, largest first, first position on ties.
template <int K, class Score>
inline void top(Index n, Index count, std::array<std::vector<Index>*, K> out, Score score) {
  for (auto* list : out) list->clear();
  if (count < 1) return;
  using Entry = std::pair<double, Index>;
  const auto better = [](const Entry& a, const Entry& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  // If few positions are wanted, keep them in a heap with the smallest score on top. This gives the
  // highest threshold, so the fewest chunks are scanned again. If many are wanted, collect twice as
  // many and then drop the half with the smaller scores, which is less work than updating a heap.
  const std::size_t wanted = std::size_t(count);
  const bool use_heap = count <= SearchSettings::MAX_HEAP_ENTRIES;
  std::array<std::vector<Entry>, K> best_of;
  std::array<double, K> threshold;
  threshold.fill(-INFINITY);
  const auto keep_wanted = [&](int k) {
    std::vector<Entry>& entries = best_of[k];
    if (entries.size() <= wanted) return;
    std::nth_element(entries.begin(), entries.begin() + (count - 1), entries.end(), better);
    entries.resize(wanted);
    threshold[k] = entries.back().first;
  };
  const auto offer = [&](int k, double value, Index p) {
    if (!(value > threshold[k])) return;
    std::vector<Entry>& entries = best_of[k];
    entries.push_back({value, p});
    if (!use_heap) {
      if (entries.size() == 2 * wanted) keep_wanted(k);
      return;
    }
    std::push_heap(entries.begin(), entries.end(), better);
    if (entries.size() > wanted) {
      std::pop_heap(entries.begin(), entries.end(), better);
      entries.pop_back();
    }
    if (entries.size() == wanted) threshold[k] = entries.front().first;
  };
  constexpr Index CHUNK = SearchSettings::CHUNK_VECTORS * WIDTH;
  Index p = 0;
  for (; p + CHUNK <= n; p += CHUNK) {
    std::array<Lanes, K> best;
    for (int k = 0; k < K; ++k) best[k] = all<Lanes>(-INFINITY);
    for (Index q = p; q < p + CHUNK; q += WIDTH) {
      const std::array<Lanes, K> a = score.template operator()<Lanes>(q);
      for (int k = 0; k < K; ++k) best[k] = maximum(a[k], best[k]);
    }
    for (int k = 0; k < K; ++k)
      if (largest_lane(best[k]) > threshold[k])
        for (Index q = p; q < p + CHUNK; ++q) offer(k, score.template operator()<double>(q)[k], q);
  }
  for (; p < n; ++p) {
    const std::array<double, K> a = score.template operator()<double>(p);
    for (int k = 0; k < K; ++k) offer(k, a[k], p);
  }
  for (int k = 0; k < K; ++k) {
    keep_wanted(k);
    std::sort(best_of[k].begin(), best_of[k].end(), better);
    for (const Entry& entry : best_of[k]) out[k]->push_back(entry.second);
  }
}
