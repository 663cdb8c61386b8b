// What the rest of the core sees of the code that is compiled once per instruction set: a table of
// functions, chosen when it is first asked for.
#pragma once

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
};
struct Batch;

// The functions of one instruction set.
struct InstructionSet {
  const char* name;
  std::span<const Rule> rules;  // the same for every set; a rule's code is its place
  void (*propose)(const Point&, const Choice&, Move&);
  Stop (*greedy)(Point&, Greedy&);
  void (*solve_chunk)(const Batch&, Index begin, Index end);
  double (*two_coordinate_constant)(const double* hessian, Index n);
  Asymmetry (*asymmetry)(const double* matrix, Index n);
  void (*times)(const double* matrix, const double* x, Index n, double* product);
  double (*bare_pass)(const double* const* arrays, Index count, Index n);
  double (*bare_update)(const double* hessian, double* gradient, Index n, Index i, Index j,
                        double t);
  void (*stand)(const Point& point, const Standing& standing, const Index* which, Index count);
  void (*outliers)(const Point& point, const Standing& standing, Index begin, Index end,
                   Index count, Outliers& found);
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
