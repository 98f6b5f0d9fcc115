// A Hilbert system, factored once and solved many times, with the determinant and the memory that calls take.
#include "example.h"

enum { ORDER = 40, BITS = 640, COLUMNS = 3 };

static void hilbert(mpfr_t *a) {
    for (int i = 0; i < ORDER; i++) {
        for (int j = 0; j < ORDER; j++) {
            mpfr_set_ui(a[i * ORDER + j], 1, MPFR_RNDN);
            mpfr_div_ui(a[i * ORDER + j], a[i * ORDER + j], (unsigned long)(i + j + 1), MPFR_RNDN);
        }
    }
}

// b := A x for x = (1, 1, ...) times the number of the column from 1.
static void right_sides(mpfr_t *b, mpfr_t *a) {
    for (int i = 0; i < ORDER; i++) {
        for (int col = 0; col < COLUMNS; col++) {
            mpfr_set_zero(b[i * COLUMNS + col], 1);
            for (int j = 0; j < ORDER; j++) {
                mpfr_add(b[i * COLUMNS + col], b[i * COLUMNS + col], a[i * ORDER + j], MPFR_RNDN);
            }
            mpfr_mul_ui(b[i * COLUMNS + col], b[i * COLUMNS + col], (unsigned long)col + 1, MPFR_RNDN);
        }
    }
}

// The Hilbert matrix of order 40 has a condition of about 2^200: so many of the bits are lost.
static void check_solution(mpfr_t *x) {
    mpfr_t want;
    mpfr_init2(want, 64);
    for (int at = 0; at < ORDER * COLUMNS; at++) {
        mpfr_set_ui(want, (unsigned long)(at % COLUMNS) + 1, MPFR_RNDN);
        EXPECT(error_log2(x[at], want) < -BITS + 230);
    }
    mpfr_clear(want);
}

int main(void) {
    sunzi_context *ctx = new_context(1);
    mpfr_t *a = new_array(ORDER * ORDER, BITS), *b = new_array(ORDER * COLUMNS, BITS);
    mpfr_t log_det, again;
    mpfr_inits2(BITS, log_det, again, (mpfr_ptr)0);
    hilbert(a);
    right_sides(b, a);
    mpfr_t *x = copy_array(b, ORDER * COLUMNS);
    sunzi_matrix a_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, a, ORDER);
    sunzi_matrix x_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, COLUMNS, x, COLUMNS);
    sunzi_matrix log_det_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 1, 1, log_det, 1);
    sunzi_matrix again_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 1, 1, again, 1);

    // In one call.
    CALL(ctx, sunzi_solve(ctx, SUNZI_LOWER, &a_matrix, &x_matrix));
    check_solution(x);

    // As a general matrix, in one call, and from L and U in an array of their own.
    size_t rows[ORDER];
    mpfr_t *lu = copy_array(a, ORDER * ORDER);
    sunzi_matrix lu_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, lu, ORDER);
    for (int at = 0; at < ORDER * COLUMNS; at++) mpfr_set(x[at], b[at], MPFR_RNDN);
    CALL(ctx, sunzi_general_solve(ctx, &a_matrix, &x_matrix));
    check_solution(x);
    CALL(ctx, sunzi_lu(ctx, &lu_matrix, rows));
    for (int trans = SUNZI_NO_TRANS; trans <= SUNZI_TRANS; trans++) { // the matrix is symmetric
        for (int at = 0; at < ORDER * COLUMNS; at++) mpfr_set(x[at], b[at], MPFR_RNDN);
        CALL(ctx, sunzi_lu_solve(ctx, trans, &lu_matrix, rows, &x_matrix));
        check_solution(x);
    }
    CALL(ctx, sunzi_lu_det(ctx, &lu_matrix, rows, &again_matrix));
    EXPECT(mpfr_sgn(again) > 0);
    free_array(lu, ORDER * ORDER);

    // Factored once, kept, solved with twice.
    sunzi_factor *factor = NULL;
    CALL(ctx, sunzi_factor_new(ctx, SUNZI_LOWER, 0, &a_matrix, &factor));
    EXPECT(sunzi_factor_order(factor) == ORDER);
    for (int round = 0; round < 2; round++) {
        for (int at = 0; at < ORDER * COLUMNS; at++) mpfr_set(x[at], b[at], MPFR_RNDN);
        CALL(ctx, sunzi_factor_solve(ctx, factor, &x_matrix));
        check_solution(x);
    }
    CALL(ctx, sunzi_factor_log_det(ctx, factor, &log_det_matrix));
    sunzi_factor_free(factor);

    // In the array, as LAPACK does; the plan says beforehand what it takes.
    sunzi_plan plan;
    sunzi_report report;
    CALL(ctx, sunzi_plan_cholesky(ctx, SUNZI_MPFR, ORDER, BITS, &plan));
    CALL(ctx, sunzi_cholesky(ctx, SUNZI_UPPER, &a_matrix));
    CALL(ctx, sunzi_last_report(ctx, &report));
    EXPECT(report.planned_bytes == plan.planned_bytes && report.peak_bytes <= plan.planned_bytes);
    for (int at = 0; at < ORDER * COLUMNS; at++) mpfr_set(x[at], b[at], MPFR_RNDN);
    CALL(ctx, sunzi_cholesky_solve(ctx, SUNZI_UPPER, &a_matrix, &x_matrix));
    check_solution(x);
    CALL(ctx, sunzi_log_det(ctx, &a_matrix, &again_matrix));
    EXPECT(mpfr_equal_p(log_det, again));

    mpfr_printf("solve: Hilbert matrix of order %d: log det = %.30Rg\n", ORDER, log_det);
    free_array(a, ORDER * ORDER);
    free_array(b, ORDER * COLUMNS);
    free_array(x, ORDER * COLUMNS);
    mpfr_clears(log_det, again, (mpfr_ptr)0);
    mpfr_free_cache();
    sunzi_context_free(ctx);
    return 0;
}
