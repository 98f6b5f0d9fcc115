// The routines for one type of numbers, SUNZI_REAL, one of integers, SUNZI_INT, and one way to return info, SUNZI_INFO.
// Included by mplapack_gmp.h, mplapack_mpfr.h and the library itself, for each of them; names and arguments are those of
// MPLAPACK, whose names are those of BLAS and LAPACK.
//
// Arrays are column-major. Results are right entry by entry: each beside the magnitudes of its own terms, as docs/C_API.md
// of Sunzi says. A wrong argument calls Mxerbla; what has no number in LAPACK (memory, exponents beyond 2^30) ends the
// program with a message, as GMP does. With a NaN or an infinite number among the operands all of the result is NaN.

// Level 1. Distances may be negative; nothing happens where n is not positive.
SUNZI_REAL Rdot(SUNZI_INT const n, SUNZI_REAL *dx, SUNZI_INT const incx, SUNZI_REAL *dy, SUNZI_INT const incy);
SUNZI_REAL Rnrm2(SUNZI_INT const n, SUNZI_REAL *x, SUNZI_INT const incx);
SUNZI_REAL Rasum(SUNZI_INT const n, SUNZI_REAL *dx, SUNZI_INT const incx);
SUNZI_INT iRamax(SUNZI_INT const n, SUNZI_REAL *dx, SUNZI_INT const incx);
void Raxpy(SUNZI_INT const n, SUNZI_REAL const da, SUNZI_REAL *dx, SUNZI_INT const incx, SUNZI_REAL *dy,
           SUNZI_INT const incy);
void Rcopy(SUNZI_INT const n, SUNZI_REAL *dx, SUNZI_INT const incx, SUNZI_REAL *dy, SUNZI_INT const incy);
void Rswap(SUNZI_INT const n, SUNZI_REAL *dx, SUNZI_INT const incx, SUNZI_REAL *dy, SUNZI_INT const incy);
void Rscal(SUNZI_INT const n, SUNZI_REAL const da, SUNZI_REAL *dx, SUNZI_INT const incx);

// Level 2.
void Rgemv(const char *trans, SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL const alpha, SUNZI_REAL *a,
           SUNZI_INT const lda, SUNZI_REAL *x, SUNZI_INT const incx, SUNZI_REAL const beta, SUNZI_REAL *y,
           SUNZI_INT const incy);
void Rsymv(const char *uplo, SUNZI_INT const n, SUNZI_REAL const alpha, SUNZI_REAL *a, SUNZI_INT const lda,
           SUNZI_REAL *x, SUNZI_INT const incx, SUNZI_REAL const beta, SUNZI_REAL *y, SUNZI_INT const incy);
void Rger(SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL const alpha, SUNZI_REAL *x, SUNZI_INT const incx,
          SUNZI_REAL *y, SUNZI_INT const incy, SUNZI_REAL *a, SUNZI_INT const lda);
void Rtrmv(const char *uplo, const char *trans, const char *diag, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda,
           SUNZI_REAL *x, SUNZI_INT const incx);
void Rtrsv(const char *uplo, const char *trans, const char *diag, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda,
           SUNZI_REAL *x, SUNZI_INT const incx);

// Level 3.
void Rgemm(const char *transa, const char *transb, SUNZI_INT const m, SUNZI_INT const n, SUNZI_INT const k,
           SUNZI_REAL const alpha, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *b, SUNZI_INT const ldb,
           SUNZI_REAL const beta, SUNZI_REAL *c, SUNZI_INT const ldc);
void Rsyrk(const char *uplo, const char *trans, SUNZI_INT const n, SUNZI_INT const k, SUNZI_REAL const alpha,
           SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL const beta, SUNZI_REAL *c, SUNZI_INT const ldc);
void Rsyr2k(const char *uplo, const char *trans, SUNZI_INT const n, SUNZI_INT const k, SUNZI_REAL const alpha,
            SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *b, SUNZI_INT const ldb, SUNZI_REAL const beta,
            SUNZI_REAL *c, SUNZI_INT const ldc);
void Rsymm(const char *side, const char *uplo, SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL const alpha,
           SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *b, SUNZI_INT const ldb, SUNZI_REAL const beta,
           SUNZI_REAL *c, SUNZI_INT const ldc);
void Rtrmm(const char *side, const char *uplo, const char *transa, const char *diag, SUNZI_INT const m,
           SUNZI_INT const n, SUNZI_REAL const alpha, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *b,
           SUNZI_INT const ldb);
void Rtrsm(const char *side, const char *uplo, const char *transa, const char *diag, SUNZI_INT const m,
           SUNZI_INT const n, SUNZI_REAL const alpha, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *b,
           SUNZI_INT const ldb);

// LAPACK.
void Rpotrf(const char *uplo, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INFO info);
void Rpotrf2(const char *uplo, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INFO info);
void Rpotf2(const char *uplo, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INFO info);
void Rpotrs(const char *uplo, SUNZI_INT const n, SUNZI_INT const nrhs, SUNZI_REAL *a, SUNZI_INT const lda,
            SUNZI_REAL *b, SUNZI_INT const ldb, SUNZI_INFO info);
void Rpotri(const char *uplo, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INFO info);
void Rtrtri(const char *uplo, const char *diag, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INFO info);
// Square matrices only: m must equal n. If a pivot is missing (info > 0), LAPACK completes the factorisation with a zero
// at entry (info, info) of U. Here A keeps its other entries, only this zero is stored, and ipiv exchanges no rows: a
// determinant from the diagonal is 0, and a solve divides by 0, but A does not hold factors.
void Rgetrf(SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INT *ipiv, SUNZI_INFO info);
void Rgetrf2(SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INT *ipiv, SUNZI_INFO info);
void Rgetf2(SUNZI_INT const m, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INT *ipiv, SUNZI_INFO info);
void Rgetrs(const char *trans, SUNZI_INT const n, SUNZI_INT const nrhs, SUNZI_REAL *a, SUNZI_INT const lda,
            SUNZI_INT *ipiv, SUNZI_REAL *b, SUNZI_INT const ldb, SUNZI_INFO info);
void Rgesv(SUNZI_INT const n, SUNZI_INT const nrhs, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INT *ipiv, SUNZI_REAL *b,
           SUNZI_INT const ldb, SUNZI_INFO info);
void Rgetri(SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_INT *ipiv, SUNZI_REAL *work,
            SUNZI_INT const lwork, SUNZI_INFO info);
// Eigenvalues of a tridiagonal matrix by implicit QL, and of a symmetric one: for matrices of some dozens of rows, as
// those of a Lanczos process; on one thread, without residues.
void Rsteqr(const char *compz, SUNZI_INT const n, SUNZI_REAL *d, SUNZI_REAL *e, SUNZI_REAL *z, SUNZI_INT const ldz,
            SUNZI_REAL *work, SUNZI_INFO info);
void Rsyev(const char *jobz, const char *uplo, SUNZI_INT const n, SUNZI_REAL *a, SUNZI_INT const lda, SUNZI_REAL *w,
           SUNZI_REAL *work, SUNZI_LWORK lwork, SUNZI_INFO info);
