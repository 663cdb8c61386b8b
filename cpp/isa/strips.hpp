// Matrix products, computed one register tile at a time. A strip is a copy of STRIP columns, stored
// by rows: one line of STRIP numbers per row. A group is GROUP adjacent columns of a strip. A tile
// is the product of a group with a strip. Included once per instruction set; uses fused
// multiply-adds if the CPU has them.
#pragma once

#include "simd.hpp"

// The tile of GROUP x VECTORS accumulators, a line of the strip and a broadcast number fit into the
// vector registers.

#if defined(PAIRSTEP_NEON)
constexpr Index VECTORS = 4;
#else
constexpr Index VECTORS = PAIRSTEP_BYTES == 16 ? 2 : 3;
#endif
constexpr Index STRIP = VECTORS * WIDTH;
constexpr Index GROUP = PAIRSTEP_BYTES == 64 ? 8 : 4;
static_assert(GROUP * VECTORS + VECTORS < PAIRSTEP_REGISTERS);
static_assert(STRIP % GROUP == 0 && BLOCK_COLUMNS / 4 % STRIP == 0);

// One line per member of a group, one column per member of the first V vectors of a strip.
template <Index V>
struct Tile {
  Lanes at[GROUP][V];
};

// Call f with the number of vectors that hold the given number of columns of a strip.
template <class F>
inline auto with_vectors(Index columns, F f) {
  if (columns <= WIDTH) return f(std::integral_constant<Index, 1>());
  if (columns <= 2 * WIDTH) return f(std::integral_constant<Index, 2>());
  return f(std::integral_constant<Index, VECTORS>());
}

template <Index V>
[[gnu::always_inline]] inline Tile<V> load_tile(const double* from, Index stride) {
  Tile<V> tile;
  for (Index g = 0; g < GROUP; ++g)
    for (Index v = 0; v < V; ++v) tile.at[g][v] = load<Lanes>(from + g * stride + v * WIDTH);
  return tile;
}

template <Index V>
[[gnu::always_inline]] inline void store_tile(const Tile<V>& tile, double* to, Index stride) {
  for (Index g = 0; g < GROUP; ++g)
    for (Index v = 0; v < V; ++v) store(to + g * stride + v * WIDTH, tile.at[g][v]);
}

// Inner products of a group with a strip over `depth` lines. The lines of the group are `stride`
// apart.
template <Index V>
[[gnu::always_inline]] inline Tile<V> multiply(const double* group, Index stride,
                                               const double* strip, Index depth) {
  Tile<V> sum = {};
  for (Index k = 0; k < depth; ++k) {
    Lanes line[V];
    for (Index v = 0; v < V; ++v) line[v] = load<Lanes>(strip + k * STRIP + v * WIDTH);
#pragma GCC unroll 8
    for (Index g = 0; g < GROUP; ++g) {
      const Lanes member = all<Lanes>(group[k * stride + g]);
      for (Index v = 0; v < V; ++v) sum.at[g][v] = multiply_add(member, line[v], sum.at[g][v]);
    }
  }
  return sum;
}

template <Index V>
[[gnu::always_inline]] inline Tile<V> operator+(Tile<V> a, const Tile<V>& b) {
  for (Index g = 0; g < GROUP; ++g)
    for (Index v = 0; v < V; ++v) a.at[g][v] += b.at[g][v];
  return a;
}

template <Index V>
[[gnu::always_inline]] inline Tile<V> operator-(Tile<V> a, const Tile<V>& b) {
  for (Index g = 0; g < GROUP; ++g)
    for (Index v = 0; v < V; ++v) a.at[g][v] -= b.at[g][v];
  return a;
}

// The numbers p[at[0]], p[at[1]], ... in one vector.
template <Index... LANE>
[[gnu::always_inline]] inline Lanes gather(const double* p, const Index* at,
                                           std::integer_sequence<Index, LANE...>) {
  return Lanes{p[at[LANE]]...};
}

// Copy the rows [begin, end) of the columns [first, first + count) to consecutive strips, scaled by
// `columns.scale`. Columns that pad the last tile are 0.
inline void pack(const Columns& columns, Index first, Index count, Index begin, Index end,
                 double* to) {
  constexpr Index PADDING = std::max(GROUP, WIDTH);
  const Index depth = end - begin, filled = (count + PADDING - 1) / PADDING * PADDING;
  const double* from = columns.data + begin * columns.down;
  const auto scale_of = [&](Index k) { return columns.scale ? columns.scale[begin + k] : 1.0; };
  // Padding columns read the last column again, and `counts` masks them.
  Index at[BLOCK_COLUMNS], place[BLOCK_COLUMNS];
  double counts[BLOCK_COLUMNS];
  for (Index j = 0; j < filled; ++j) {
    const Index column = first + std::min(j, count - 1);
    at[j] = (columns.which ? columns.which[column] : column) * columns.across;
    place[j] = j / STRIP * STRIP * depth + j % STRIP;
    counts[j] = j < count;
  }
  if (columns.down == 1) {
    for (Index j = 0; j < filled; ++j)
      for (Index k = 0; k < depth; ++k)
        to[place[j] + k * STRIP] = j < count ? scale_of(k) * from[at[j] + k] : 0.0;
    return;
  }
  const Lanes zero = {};
  const Index whole = !columns.which && columns.across == 1 ? count / WIDTH * WIDTH : 0;
  for (Index k = 0; k < depth; ++k, from += columns.down) {
    const double scale = scale_of(k);
    for (Index j = 0; j < whole; j += WIDTH)
      store(to + place[j] + k * STRIP, scale * load<Lanes>(from + at[j]));
    for (Index j = whole; j < filled; j += WIDTH) {
      const Lanes some = gather(from, at + j, std::make_integer_sequence<Index, WIDTH>());
      store(to + place[j] + k * STRIP, load<Lanes>(counts + j) > 0 ? scale * some : zero);
    }
  }
}

// See BlockProduct in dispatch.hpp.
inline void multiply(const BlockProduct& job) {
  for (Index strip = 0; strip < job.columns; strip += STRIP) {
    const Index end = std::min(strip + STRIP, job.columns);
    const Index last = job.upper ? std::min(job.rows, end) : job.rows;
    for (Index i = 0; i < last; i += GROUP) {
      // Skip whole vectors below the diagonal.
      const Index j = job.upper && i > strip ? strip + (i - strip) / WIDTH * WIDTH : strip;
      with_vectors(end - j, [&](auto vectors) {
        constexpr Index V = vectors();
        const Tile<V> tile =
            multiply<V>(job.left + i / STRIP * STRIP * job.depth + i % STRIP, STRIP,
                        job.right + strip * job.depth + (j - strip), job.depth);
        double* to = job.out + i * job.stride + j;
        if (i + GROUP <= job.rows && end - j == V * WIDTH) {
          store_tile(job.add ? load_tile<V>(to, job.stride) + tile : tile, to, job.stride);
          return;
        }
        double edge[GROUP * STRIP];
        store_tile(tile, edge, STRIP);
        for (Index g = 0; g < std::min(GROUP, job.rows - i); ++g)
          for (Index c = 0; c < end - j; ++c)
            to[g * job.stride + c] = edge[g * STRIP + c] + (job.add ? to[g * job.stride + c] : 0.0);
      });
    }
  }
}
