// The BLAS and LAPACK that SciPy brings, through its exported pointers: no library of our own to
// build, ship or clash with.
#pragma once

namespace pairstep {

struct Blas {
  void (*dpotrf)(char* uplo, int* n, double* a, int* lda, int* info) = nullptr;
  void (*dpotrs)(char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb,
                 int* info) = nullptr;
  void (*dsymv)(char* uplo, int* n, double* alpha, double* a, int* lda, double* x, int* incx,
                double* beta, double* y, int* incy) = nullptr;
};

extern Blas blas;  // set once, when the module is imported

}  // namespace pairstep
