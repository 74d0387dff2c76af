// Matrix factorisations by LAPACK, one matrix at a time in column-major memory, for float, double
// and both complex types. Each function returns LAPACK's `info` (0 for success, above 0: see the
// routine's own documentation). src/cpu/lapack.cpp alone knows how the library's symbols are
// spelt; src/cpu/factorize.cpp calls these over batches.
#pragma once

#include <string>

#include <rushlight/dtype.h>

namespace rushlight::cpu::lapack {

// What OpenBLAS says of itself, its version among it; "" where the build has none. Loads it.
RL_API std::string config();

// The functions below raise Error where OpenBLAS is absent.
template <class T>
int potrf(char uplo, int n, T* a, int lda);
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots);
template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb);
template <class T>
int getri(int n, T* a, int lda, const int* pivots);
// b := alpha-free triangular solve, from the left or the right; no check for zeros.
template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
          int ldb);
template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau);
template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau);
// job 'A', 'S' or 'N'; gesdd, and gesvd for driver "gesvd".
template <class T>
int svd(char job, bool plain_qr, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu, T* vt,
        int ldvt);
template <class T>
int eigh(bool vectors, char uplo, int n, T* a, int lda, real_t<T>* w);
// Eigenvalues always complex; v may be null.
template <class T>
int eig(int n, T* a, int lda, complex<real_t<T>>* w, complex<real_t<T>>* v, int ldv);
template <class T>
int ldl(bool hermitian, int n, T* a, int lda, int* pivots);
template <class T>
int ldl_solve(bool hermitian, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
              int ldb);
// driver: 'l' gels, 'y' gelsy, 'd' gelsd, 's' gelss. b has max(m, n) rows. s (of min(m, n)) is
// written by 'd' and 's', rank by all but 'l'.
template <class T>
int lstsq(char driver, int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
          real_t<T> rcond, int* rank);

}  // namespace rushlight::cpu::lapack
