// The interface to the code that is compiled once per instruction set: a table of functions, which
// is chosen on first use.
#pragma once

#include <memory>
#include <vector>

#include "../core/types.hpp"

namespace pairstep {

template <class Real>
struct Tiles;

// Functions for kernel values of one type; see oracles/points.hpp.
template <class Real>
struct TileKernels {
  void (*tiles)(const Tiles<Real>& job, Index first_panel, Index last_panel);
  void (*add_rows)(const Real* const* rows, const double* weights, Index count, Index begin,
                   Index end, double* sums);
  void (*exponentials)(const Real* x, Index n, Real* out);
  void (*rbf_of_distances)(const Real* distances, double gamma, Index n, Real* out);
};
struct Batch;
struct FewColumns;

struct Columns;
struct DerivativeSizes;
class Parametric;
struct QuadraticProgram;
struct RowSum;
struct SharedCost;
struct Small;
enum class Pivoted;

// Matrix products work on blocks of BLOCK_COLUMNS columns and BLOCK_DEPTH rows, the inner dimension
// of the product. A packed block (192 KiB) stays in the second-level cache while other blocks are
// streamed. BLOCK_COLUMNS / 4, to which narrow matrices are padded, is a multiple of the strip
// width of every instruction set.
constexpr Index BLOCK_COLUMNS = 96, BLOCK_DEPTH = 256;

// out = left' right, or out += left' right if `add`, for packed blocks with `rows` and `columns`
// columns. The rows of out are `stride` apart. If `upper`, only its upper triangle is needed.
struct BlockProduct {
  const double *left, *right;
  Index rows, columns, depth;
  double* out;
  Index stride;
  bool add, upper;
};

// A matrix is compared with its transpose in blocks of SYMMETRY_BLOCK x SYMMETRY_BLOCK entries. The
// transposed copy of a block of doubles takes 32 KiB, the size of a typical first-level cache.
constexpr Index SYMMETRY_BLOCK = 64;

// The functions of one instruction set.
struct InstructionSet {
  const char* name;
  std::unique_ptr<GreedyRun> (*greedy)(const GreedyTask&, Index n);
  // Take steps in float32, see single_steps.hpp; x changes in place, the gradient does not.
  Index (*single_steps)(const Point&, HessianRows& hessian, double threshold, Index max_iter,
                        InterruptCheck&);
  void (*solve_chunk)(const Batch&, Index begin, Index end, InterruptCheck&);
  void (*solve_few_columns)(const FewColumns&, Index begin, Index end);
  double (*two_coordinate_constant)(const double* hessian, Index n);
  // The largest absolute value, or NaN if a number is not finite.
  double (*largest)(const double* values, Index n);
  // The sum of squared differences of two vectors.
  double (*squared_distance)(const double* a, const double* b, Index n);
  // See core/symmetry.hpp.
  Asymmetry (*asymmetry)(const double* matrix, Index n, const double* diagonal, Index begin,
                         Index end);
  Asymmetry (*asymmetry32)(const float* matrix, Index n, const double* diagonal, Index begin,
                           Index end);
  void (*times)(const double* matrix, const double* x, Index n, double* product);
  void (*top_candidates)(const PositionTable& table, Index begin, Index end, Index count,
                         TopCandidates& found);
  // See core/row_sums.hpp. The sum over the rows [begin, end), whose gradient is added to
  // `gradient`; infinite outside the domain.
  double (*row_sum)(const RowSum&, const double* x, Index begin, Index end, double* gradient,
                    double* root, DerivativeSizes& sizes);
  // See core/inner.hpp and cholesky.hpp.
  void (*pack)(const Columns&, Index first, Index count, Index begin, Index end, double* to);
  void (*multiply)(const BlockProduct&);
  bool (*cholesky)(double* matrix, Index n, Index stride);
  void (*cholesky_solve)(const double* factor, Index n, Index stride, double* b, Index count);
  // See engine/start.hpp.
  Pivoted (*pivot)(const Small&, const SharedCost& shared, double* x);
  // See engine/parametric.hpp.
  std::unique_ptr<Parametric> (*parametric)(const QuadraticProgram&);
  TileKernels<float> for_float;
  TileKernels<double> for_double;

  template <class Real>
  const TileKernels<Real>& of() const {
    if constexpr (sizeof(Real) == sizeof(float)) return for_float;
    else return for_double;
  }
};

// The table in use: the best one of this CPU, or the one chosen by name ("baseline", "avx2",
// "avx512", "neon"). The environment variable PAIRSTEP_ISA chooses one from the start.
const InstructionSet& isa();
// The value of PAIRSTEP_ISA if it is not the name of an instruction set of this CPU, or null.
const char* unknown_instruction_set();
bool use_instruction_set(const char* name);
std::vector<const char*> instruction_sets();

}  // namespace pairstep
