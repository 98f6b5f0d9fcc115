// The routines that interior_point.cpp calls, as plain loops over GMP's numbers with the signatures of MPLAPACK: what the
// library is compared with.
#ifndef SUNZI_EXAMPLE_LOOPS_H
#define SUNZI_EXAMPLE_LOOPS_H

#include <gmpxx.h>
#include <stdint.h>

typedef int64_t mplapackint;

static inline bool is(const char *text, char letter) { return *text == letter; }

// C := alpha op(A) op(B) + beta C.
static void Rgemm(const char *transa, const char *transb, mplapackint m, mplapackint n, mplapackint k, mpf_class alpha,
                  mpf_class *a, mplapackint lda, mpf_class *b, mplapackint ldb, mpf_class beta, mpf_class *c,
                  mplapackint ldc) {
    mpf_class sum, product;
    for (mplapackint j = 0; j < n; j++) {
        for (mplapackint i = 0; i < m; i++) {
            sum = 0;
            for (mplapackint l = 0; l < k; l++) {
                product = a[is(transa, 'N') ? l * lda + i : i * lda + l];
                product *= b[is(transb, 'N') ? j * ldb + l : l * ldb + j];
                sum += product;
            }
            c[j * ldc + i] = alpha * sum + beta * c[j * ldc + i];
        }
    }
}

// The triangle of C := alpha op(A) op(A)^T + beta C.
static void Rsyrk(const char *uplo, const char *trans, mplapackint n, mplapackint k, mpf_class alpha, mpf_class *a,
                  mplapackint lda, mpf_class beta, mpf_class *c, mplapackint ldc) {
    mpf_class sum, product;
    for (mplapackint j = 0; j < n; j++) {
        for (mplapackint i = is(uplo, 'L') ? j : 0; i < (is(uplo, 'L') ? n : j + 1); i++) {
            sum = 0;
            for (mplapackint l = 0; l < k; l++) {
                product = a[is(trans, 'N') ? l * lda + i : i * lda + l];
                product *= a[is(trans, 'N') ? l * lda + j : j * lda + l];
                sum += product;
            }
            c[j * ldc + i] = alpha * sum + beta * c[j * ldc + i];
        }
    }
}

// B := alpha op(A)^-1 B or alpha B op(A)^-1, by substitution along the columns or the rows of B.
static void Rtrsm(const char *side, const char *uplo, const char *transa, const char *diag, mplapackint m, mplapackint n,
                  mpf_class alpha, mpf_class *a, mplapackint lda, mpf_class *b, mplapackint ldb) {
    const bool left = is(side, 'L'), trans = !is(transa, 'N');
    const mplapackint order = left ? m : n, lines = left ? n : m, step = left ? 1 : ldb, next = left ? ldb : 1;
    // From the left op(A) is solved with, from the right its transpose; one that is lower triangular from the top.
    const bool turned = trans == left, down = is(uplo, 'L') != turned;
    mpf_class sum, product;
    for (mplapackint line = 0; line < lines; line++) {
        mpf_class *x = b + line * next;
        for (mplapackint place = 0; place < order; place++) {
            const mplapackint i = down ? place : order - 1 - place;
            sum = alpha * x[i * step];
            for (mplapackint before = 0; before < place; before++) {
                const mplapackint l = down ? before : order - 1 - before;
                product = a[turned ? i * lda + l : l * lda + i];
                product *= x[l * step];
                sum -= product;
            }
            if (is(diag, 'N')) sum /= a[i * lda + i];
            x[i * step] = sum;
        }
    }
}

// A = L L^T in the lower triangle.
static void Rpotrf(const char *, mplapackint n, mpf_class *a, mplapackint lda, mplapackint &info) {
    mpf_class sum, product;
    info = 0;
    for (mplapackint j = 0; j < n; j++) {
        for (mplapackint i = j; i < n; i++) {
            sum = a[j * lda + i];
            for (mplapackint l = 0; l < j; l++) {
                product = a[l * lda + i];
                product *= a[l * lda + j];
                sum -= product;
            }
            if (i == j && sum <= 0) {
                info = j + 1;
                return;
            }
            a[j * lda + i] = i == j ? mpf_class(sqrt(sum)) : mpf_class(sum / a[j * lda + j]);
        }
    }
}

// B := A^-1 B with the factor in the lower triangle.
static void Rpotrs(const char *uplo, mplapackint n, mplapackint nrhs, mpf_class *a, mplapackint lda, mpf_class *b,
                   mplapackint ldb, mplapackint &info) {
    Rtrsm("L", uplo, "N", "N", n, nrhs, 1, a, lda, b, ldb);
    Rtrsm("L", uplo, "T", "N", n, nrhs, 1, a, lda, b, ldb);
    info = 0;
}

static mpf_class Rdot(mplapackint n, mpf_class *x, mplapackint incx, mpf_class *y, mplapackint incy) {
    mpf_class sum = 0, product;
    for (mplapackint i = 0; i < n; i++) {
        product = x[i * incx];
        product *= y[i * incy];
        sum += product;
    }
    return sum;
}

static void Raxpy(mplapackint n, mpf_class alpha, mpf_class *x, mplapackint incx, mpf_class *y, mplapackint incy) {
    mpf_class product;
    for (mplapackint i = 0; i < n; i++) {
        product = alpha;
        product *= x[i * incx];
        y[i * incy] += product;
    }
}

#endif
