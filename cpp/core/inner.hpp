// Inner products of the columns of matrices. The bits depend neither on the number of threads nor
// on what else goes on in the process, as those of a BLAS do.
#pragma once

#include "team.hpp"
#include "types.hpp"

namespace pairstep {

// Columns of a matrix, all or those of a list: entry (k, j) is data[k * down + which[j] * across],
// times scale[k] if there are scales.
struct Columns {
  const double* data;
  Index rows, count, down, across;
  const Index* which = nullptr;
  const double* scale = nullptr;
};

// out = left' right, by rows.
void inner(const Columns& left, const Columns& right, double* out, Team& team);

// out = columns' columns; with weights, columns' diag(left right) columns, for rows scaled by
// `left` on one side and by `right` on the other: the roots of weights on both, or weights of any
// sign on one. Numbers below 1e-308 count as 0 then.
void gram(const Columns& columns, double* out, Team& team);
void gram(const Columns& columns, const double* left, const double* right, double* out, Team& team);

// out = A x and out = A' r, for A by rows (m x n). A BLAS would leave a thread spinning on the
// processor that the next native work wants.
void times_vector(const double* matrix, Index m, Index n, const double* x, double* out);
void transposed_times_vector(const double* matrix, Index m, Index n, const double* r, double* out);
// The sum of row[who[k]] * weights[k].
double gathered_product(const double* row, const Index* who, Index count, const double* weights);
// sums += A' r
void add_transposed(const double* matrix, Index m, Index n, const double* r, double* sums,
                    Team& team);

}  // namespace pairstep
