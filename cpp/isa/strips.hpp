// Products of matrices, a tile in registers at a time. A strip holds as many columns as a few
// vectors are wide, one line of them per row; a group is a part of a strip. Included once per
// instruction set; fused multiply-adds are used where the processor has them.

constexpr Index VECTORS = PAIRSTEP_BYTES == 16 ? 2 : 3;
constexpr Index STRIP = VECTORS * WIDTH;
constexpr Index GROUP = PAIRSTEP_BYTES == 64 ? 8 : 4;
static_assert(STRIP % GROUP == 0 && SIDE / 4 % STRIP == 0);

// A line per member of a group, a column per member of a strip, or of its first V vectors.
template <Index V>
struct Tile {
  Lanes at[GROUP][V];
};

// Call f with the number of vectors that hold so many columns of a strip.
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

// The inner products of a group, whose lines are `stride` apart, with a strip, over `depth` lines.
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

// The rows [begin, end) of the columns from `first` on as strips, one after the other, scaled;
// columns that fill the last one are 0.
void pack(const Columns& columns, Index first, Index count, Index begin, Index end, double* to) {
  const Index depth = end - begin, whole = count / STRIP * STRIP;
  const double* from = columns.data + begin * columns.down;
  const auto strip = [&](Index j) { return to + j / STRIP * STRIP * depth; };
  if (whole < count) std::fill(strip(whole), strip(whole) + STRIP * depth, 0.0);
  Index at[SIDE];
  for (Index j = 0; j < count; ++j)
    at[j] = (columns.which ? columns.which[first + j] : first + j) * columns.across;
  if (columns.down == 1) {
    for (Index j = 0; j < count; ++j)
      for (Index k = 0; k < depth; ++k) strip(j)[k * STRIP + j % STRIP] = from[at[j] + k];
  } else {
    const bool side_by_side = !columns.which && columns.across == 1;
    for (Index k = 0; k < depth; ++k, from += columns.down) {
      Index j = 0;
      for (; side_by_side && j < whole; j += STRIP)
        std::memcpy(strip(j) + k * STRIP, from + at[j], STRIP * sizeof(double));
      for (; j < count; ++j) strip(j)[k * STRIP + j % STRIP] = from[at[j]];
    }
  }
  for (Index j = 0; columns.scale && j < count; j += STRIP)
    for (Index k = 0; k < depth; ++k)
      for (Index c = 0; c < STRIP; ++c) strip(j)[k * STRIP + c] *= columns.scale[begin + k];
}

void multiply(const BlockProduct& job) {
  for (Index j = 0; j < job.columns; j += STRIP) {
    const Index wide = std::min(STRIP, job.columns - j);
    with_vectors(wide, [&](auto vectors) {
      constexpr Index V = vectors();
      const Index last = job.upper ? std::min(job.rows, j + wide) : job.rows;
      for (Index i = 0; i < last; i += GROUP) {
        const Tile<V> tile = multiply<V>(job.left + i / STRIP * STRIP * job.depth + i % STRIP,
                                         STRIP, job.right + j * job.depth, job.depth);
        double* to = job.out + i * job.stride + j;
        if (i + GROUP <= job.rows && wide == V * WIDTH) {
          store_tile(job.add ? load_tile<V>(to, job.stride) + tile : tile, to, job.stride);
          continue;
        }
        double edge[GROUP * STRIP];
        store_tile(tile, edge, STRIP);
        for (Index g = 0; g < std::min(GROUP, job.rows - i); ++g)
          for (Index c = 0; c < wide; ++c)
            to[g * job.stride + c] = edge[g * STRIP + c] + (job.add ? to[g * job.stride + c] : 0.0);
      }
    });
  }
}
