// The Gram matrix of a tall matrix of mpfr_t, beside a loop over MPFR: mpfr_t and mpf_t, row-major and column-major,
// and raw limbs that are read without a copy.
#include "example.h"

enum { ROWS = 90, COLS = 25, BITS = 768 };

// q(i, j) = sum_k p(k, i) p(k, j), rounded at every step as a plain loop does.
static void gram_by_loop(mpfr_t *q, mpfr_t *p) {
    for (int i = 0; i < COLS; i++) {
        for (int j = 0; j <= i; j++) {
            mpfr_set_zero(q[i * COLS + j], 1);
            for (int k = 0; k < ROWS; k++) {
                mpfr_fma(q[i * COLS + j], p[k * COLS + i], p[k * COLS + j], q[i * COLS + j], MPFR_RNDN);
            }
        }
    }
}

static void same_lower(mpfr_t *left, mpfr_t *right) {
    for (int i = 0; i < COLS; i++) {
        for (int j = 0; j <= i; j++) {
            EXPECT(mpfr_equal_p(left[i * COLS + j], right[i * COLS + j]));
        }
    }
}

// The same numbers as mpf_t: the result has a limb more than mpf_get_prec says, as sums of GMP's do, and rounds to the
// mpfr_t one.
static void with_mpf(sunzi_context *ctx, mpfr_t *p, mpfr_t *want) {
    mpf_t *entries = malloc(ROWS * COLS * sizeof *entries), *result = malloc(COLS * COLS * sizeof *result);
    mpfr_t got;
    mpfr_init2(got, 2 * BITS);
    for (int at = 0; at < ROWS * COLS; at++) {
        mpf_init2(entries[at], BITS);
        mpfr_get_f(entries[at], p[at], MPFR_RNDN);
    }
    for (int at = 0; at < COLS * COLS; at++) {
        mpf_init2(result[at], BITS);
    }
    sunzi_matrix a = sunzi_mpf_matrix(SUNZI_ROW_MAJOR, ROWS, COLS, entries, COLS);
    sunzi_matrix c = sunzi_mpf_matrix(SUNZI_ROW_MAJOR, COLS, COLS, result, COLS);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &a, NULL, &c));
    EXPECT(mpf_get_prec(result[0]) == BITS);
    for (int i = 0; i < COLS; i++) {
        for (int j = 0; j <= i; j++) {
            mpfr_set_f(got, result[i * COLS + j], MPFR_RNDN);
            EXPECT(error_log2(got, want[i * COLS + j]) <= -BITS);
        }
    }
    for (int at = 0; at < ROWS * COLS; at++) mpf_clear(entries[at]);
    for (int at = 0; at < COLS * COLS; at++) mpf_clear(result[at]);
    mpfr_clear(got);
    free(entries);
    free(result);
}

// The same numbers as heads and limbs: the product reads them where they are.
static void with_limbs(sunzi_context *ctx, mpfr_t *p, mpfr_t *want) {
    size_t width = (size_t)sunzi_limbs_for(BITS);
    uint64_t *heads = calloc(ROWS * COLS, sizeof *heads), *limbs = calloc(ROWS * COLS * width, sizeof *limbs);
    mpfr_t *q = new_array(COLS * COLS, BITS);
    for (int at = 0; at < ROWS * COLS; at++) {
        if (!mpfr_zero_p(p[at])) {
            heads[at] = sunzi_head(mpfr_signbit(p[at]), mpfr_get_exp(p[at]));
            memcpy(limbs + at * width, p[at]->_mpfr_d, width * sizeof *limbs);
        }
    }
    sunzi_matrix a = sunzi_limb_matrix(SUNZI_ROW_MAJOR, ROWS, COLS, heads, limbs, COLS, BITS);
    sunzi_matrix c = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, COLS, COLS, q, COLS);
    sunzi_report report;
    CALL(ctx, sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &a, NULL, &c));
    CALL(ctx, sunzi_last_report(ctx, &report));
    EXPECT(report.copied_bytes == COLS * COLS * (width + 1) * 8); // the result alone
    same_lower(q, want);
    free_array(q, COLS * COLS);
    free(heads);
    free(limbs);
}

int main(void) {
    sunzi_context *ctx = new_context(2);
    mpfr_t *p = new_array(ROWS * COLS, BITS);
    mpfr_t *q = new_array(COLS * COLS, BITS), *by_loop = new_array(COLS * COLS, BITS);
    fill_array(p, ROWS * COLS, 7);
    gram_by_loop(by_loop, p);

    // Row-major: entry (i, j) of P is p[i * COLS + j].
    sunzi_matrix a = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ROWS, COLS, p, COLS);
    sunzi_matrix c = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, COLS, COLS, q, COLS);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &a, NULL, &c));
    for (int i = 0; i < COLS; i++) {
        // On the diagonal nothing cancels: the two roads agree to the roundings of the loop.
        EXPECT(error_log2(q[i * COLS + i], by_loop[i * COLS + i]) < -BITS + 10);
    }

    // The same memory is the transpose, column-major.
    mpfr_t *again = new_array(COLS * COLS, BITS);
    sunzi_matrix turned = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, COLS, ROWS, p, COLS);
    sunzi_matrix upper = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, COLS, COLS, again, COLS);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_UPPER, SUNZI_NO_TRANS, NULL, &turned, NULL, &upper));
    same_lower(again, q);

    // LAPACK's way.
    mpfr_t one, zero;
    mpfr_init_set_ui(one, 1, MPFR_RNDN);
    mpfr_init_set_ui(zero, 0, MPFR_RNDN);
    EXPECT(sunzi_rsyrk(ctx, "U", "N", COLS, ROWS, one, p, COLS, zero, again, COLS) == 0);
    same_lower(again, q);
    mpfr_clear(one);
    mpfr_clear(zero);

    with_mpf(ctx, p, q);
    with_limbs(ctx, p, q);
    mpfr_printf("gram: %d x %d, %d bits, sunzi %s: q(0, 0) = %.40Rg\n", ROWS, COLS, BITS, sunzi_version(), q[0]);
    free_array(p, ROWS * COLS);
    free_array(q, COLS * COLS);
    free_array(by_loop, COLS * COLS);
    free_array(again, COLS * COLS);
    mpfr_free_cache();
    sunzi_context_free(ctx);
    return 0;
}
