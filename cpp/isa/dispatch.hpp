// What the rest of the core sees of the code that is compiled once per instruction set: a table of
// functions, chosen when it is first asked for.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "../core/types.hpp"

namespace pairstep {

template <class Real>
struct Tiles;

// The kernel tiles, for values of one type; see points.hpp.
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
struct RowSum;

// Products of matrices work on blocks of SIDE columns and DEPTH rows: packed, such a block stays in
// the second-level cache while others pass by. The strips of every instruction set divide SIDE / 4.
constexpr Index SIDE = 96, DEPTH = 256;

// out = left' right, or out += if `add`, for packed blocks of `rows` and `columns` columns; out has
// its rows `stride` apart. What is below its diagonal is not needed where `upper` is set.
struct BlockProduct {
  const double *left, *right;
  Index rows, columns, depth;
  double* out;
  Index stride;
  bool add, upper;
};

// Matrices are compared with their transposes by squares that fit the first-level cache.
constexpr Index SQUARE = 64;

// The functions of one instruction set.
struct InstructionSet {
  const char* name;
  std::span<const Rule> rules;  // the same for every set; a rule's code is its place
  void (*propose)(const Point&, const Choice&, Move&);
  std::unique_ptr<GreedyRun> (*greedy)(const GreedyTask&, Index n);
  // With the choices that `minimize` makes by default.
  std::unique_ptr<GreedyRun> (*automatic)(const double* hessian, Index n);
  void (*solve_chunk)(const Batch&, Index begin, Index end, Pulse&);
  void (*solve_few_columns)(const FewColumns&, Index begin, Index end);
  double (*two_coordinate_constant)(const double* hessian, Index n);
  // The largest size of a number, NaN where one is not finite.
  double (*largest)(const double* values, Index n);
  // See core/symmetry.hpp.
  Asymmetry (*asymmetry)(const double* matrix, Index n, const double* diagonal, Index begin,
                         Index end);
  Asymmetry (*asymmetry32)(const float* matrix, Index n, const double* diagonal, Index begin,
                           Index end);
  void (*times)(const double* matrix, const double* x, Index n, double* product);
  double (*bare_pass)(const double* const* arrays, Index count, Index n);
  double (*bare_update)(const double* hessian, double* gradient, Index n, Index i, Index j,
                        double t);
  void (*outliers)(const Ledger& ledger, Index begin, Index end, Index count, Outliers& found);
  // See core/row_sums.hpp: of the rows [begin, end), added to the gradient; infinite outside.
  double (*row_sum)(const RowSum&, const double* x, Index begin, Index end, double* gradient,
                    double* root);
  // See core/inner.hpp and cholesky.hpp.
  void (*pack)(const Columns&, Index first, Index count, Index begin, Index end, double* to);
  void (*multiply)(const BlockProduct&);
  bool (*cholesky)(double* matrix, Index n, Index stride);
  void (*cholesky_solve)(const double* factor, Index n, Index stride, double* b, Index count);
  TileKernels<float> single;
  TileKernels<double> twice;

  template <class Real>
  const TileKernels<Real>& of() const {
    if constexpr (sizeof(Real) == sizeof(float)) return single;
    else return twice;
  }
};

// The best table this processor can run, or the named one ("baseline", "avx2", "avx512").
const InstructionSet& isa();
bool use_instruction_set(const char* name);
std::vector<const char*> instruction_sets();

}  // namespace pairstep
