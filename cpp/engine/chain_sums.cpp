#include "chain_sums.hpp"

#include <algorithm>

#include "../core/inner.hpp"
#include "../isa/dispatch.hpp"
#include "../oracles/matrix.hpp"

namespace pairstep {

namespace {

// Outputs are padded to a multiple of this, the length of the longest vector, so that they are
// packed without gathers.
constexpr Index PADDING = 8;
static_assert(BLOCK_COLUMNS % PADDING == 0);

// A variable of a chain that is not 0 for some C.
struct Term {
  Index row;       // of the matrix
  Index variable;  // of the chain
  Index line = 0;  // position of the row among all used rows
};

std::vector<Term> terms_of(const DualChain& chain) {
  const Index n = chain.unit.point.n;
  std::vector<Term> terms;
  for (Index i = 0; i < n; ++i) {
    bool is_used = false;
    for (std::size_t c = 0; c < chain.outcomes.size(); ++c)
      is_used |= chain.z[Index(c) * chain.stride + i] != 0;
    if (is_used) terms.push_back({chain.unit.rows[i], i});
  }
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.row < b.row; });
  return terms;
}

// Memory of one job.
struct Blocks {
  Aligned values{BLOCK_DEPTH * BLOCK_COLUMNS}, z{BLOCK_DEPTH * BLOCK_COLUMNS};
  Aligned packed_values{BLOCK_DEPTH * BLOCK_COLUMNS}, packed_z{BLOCK_DEPTH * BLOCK_COLUMNS};
};

}  // namespace

void compute_sums(const DataMatrix& matrix, std::span<const Index> columns,
                  std::vector<DualChain>& chains, ThreadPool& pool) {
  const InstructionSet& set = isa();  // packing and multiplying must use the same one
  const Index n_columns = Index(columns.size());
  std::vector<std::vector<Term>> terms;
  std::vector<Index> rows;  // all that are used, ascending
  for (const DualChain& chain : chains) {
    terms.push_back(terms_of(chain));
    for (const Term& term : terms.back()) rows.push_back(term.row);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (std::vector<Term>& own : terms)
    for (Term& term : own)
      term.line = std::lower_bound(rows.begin(), rows.end(), term.row) - rows.begin();

  pool.run((n_columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS, [&](Index part) {
    const Index first = part * BLOCK_COLUMNS, width = std::min(BLOCK_COLUMNS, n_columns - first);
    const Runs runs(columns.data() + first, width);
    for (DualChain& chain : chains)
      for (std::size_t c = 0; c < chain.outcomes.size(); ++c)
        std::fill_n(chain.sums + Index(c) * n_columns + first, width, 0.0);
    Blocks blocks;
    std::vector<std::size_t> next(chains.size(), 0);  // first term that is not added yet
    for (Index begin = 0; begin < Index(rows.size()); begin += BLOCK_DEPTH) {
      const Index depth = std::min(BLOCK_DEPTH, Index(rows.size()) - begin);
      matrix.for_dense([&](const auto* entries) {
        for (Index k = 0; k < depth; ++k)
          runs.copy(entries + rows[begin + k] * matrix.features, blocks.values.data() + k * width);
      });
      set.pack({blocks.values.data(), depth, width, width, 1}, 0, width, 0, depth,
               blocks.packed_values.data());
      for (std::size_t k = 0; k < chains.size(); ++k) {
        DualChain& chain = chains[k];
        const std::vector<Term>& own = terms[k];
        const std::size_t from = next[k];
        while (next[k] < own.size() && own[next[k]].line < begin + depth) ++next[k];
        if (next[k] == from) continue;
        const Index count = Index(chain.outcomes.size());
        for (Index c = 0; c < count; c += BLOCK_COLUMNS) {
          const Index outputs = std::min(BLOCK_COLUMNS, count - c);
          const Index padded = (outputs + PADDING - 1) / PADDING * PADDING;
          std::fill_n(blocks.z.data(), depth * padded, 0.0);
          for (std::size_t t = from; t < next[k]; ++t)
            for (Index o = 0; o < outputs; ++o)
              blocks.z[(own[t].line - begin) * padded + o] =
                  chain.z[(c + o) * chain.stride + own[t].variable];
          set.pack({blocks.z.data(), depth, padded, padded, 1}, 0, padded, 0, depth,
                   blocks.packed_z.data());
          set.multiply({blocks.packed_z.data(), blocks.packed_values.data(), outputs, width, depth,
                        chain.sums + c * n_columns + first, n_columns, true, false});
        }
      }
    }
  });
}

}  // namespace pairstep
