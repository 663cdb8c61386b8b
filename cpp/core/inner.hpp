// Dense matrix products: inner products of columns and matrix-vector products. Unlike those of a
// BLAS, the results have the same bits for any number of threads. The algorithm is the blocked,
// packed product of Goto and van de Geijn (2008).
#pragma once

#include "thread_pool.hpp"
#include "types.hpp"

namespace pairstep {

// All columns of a matrix, or the columns in the list `which`. Entry (k, j) is
// data[k * down + which[j] * across], times scale[k] if `scale` is given.
struct Columns {
  const double* data;
  Index rows, count, down, across;
  const Index* which = nullptr;
  const double* scale = nullptr;
};

// out = left' right, stored by rows.
void inner(const Columns& left, const Columns& right, double* out, ThreadPool& pool);

// out = columns' columns, or columns' diag(left * right) columns. Pass the square roots of the
// weights as both `left` and `right`, or weights of any sign as one of them. With weights,
// subnormal numbers (below 1e-308) count as 0.
void gram(const Columns& columns, double* out, ThreadPool& pool);
void gram(const Columns& columns, const double* left, const double* right, double* out,
          ThreadPool& pool);

// out = A x and out = A' r, for A stored by rows (m x n). These do not call a BLAS, because its
// threads keep spinning for a while after a call and would slow down the next native computation.
void times_vector(const double* matrix, Index m, Index n, const double* x, double* out);
void transposed_times_vector(const double* matrix, Index m, Index n, const double* r, double* out);
double dot(const double* a, const double* b, Index n);
// Return the sum of row[index[k]] * weights[k].
double gathered_product(const double* row, const Index* index, Index count, const double* weights);
// sums += A' r
void add_transposed(const double* matrix, Index m, Index n, const double* r, double* sums,
                    ThreadPool& pool);

}  // namespace pairstep
