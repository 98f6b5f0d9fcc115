// Everything that a program can get wrong is a status with a message, never an abort: each case with the code and the
// words that it must give.
#include "example.h"

enum { ORDER = 4, BITS = 128 };

static int cases = 0;

static void expect(sunzi_context *ctx, sunzi_status found, sunzi_status wanted, const char *words, int line) {
    const char *message = sunzi_last_error(ctx);
    cases++;
    if (found != wanted || strstr(message, words) == NULL) {
        fprintf(stderr, "line %d: status %d, '%s'; wanted %d, '%s'\n", line, (int)found, message, (int)wanted, words);
        exit(1);
    }
}

#define REFUSED(call, status, words) expect(ctx, call, status, words, __LINE__)

static sunzi_status syrk(sunzi_context *ctx, sunzi_matrix a, sunzi_matrix c) {
    return sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &a, NULL, &c);
}

static void descriptions(sunzi_context *ctx, mpfr_t *entries, mpfr_t *result) {
    int layout = SUNZI_COL_MAJOR;
    sunzi_matrix good = sunzi_mpfr_matrix(layout, ORDER, ORDER, entries, ORDER);
    sunzi_matrix c = sunzi_mpfr_matrix(layout, ORDER, ORDER, result, ORDER), none = good, unknown = good;
    none.entries = NULL;
    unknown.format = 12;
    REFUSED(sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, NULL, NULL, &c), SUNZI_NULL_POINTER, "a: the pointer");
    REFUSED(sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &good, NULL, NULL), SUNZI_NULL_POINTER, "c: the pointer");
    REFUSED(syrk(ctx, none, c), SUNZI_NULL_POINTER, "4 x 4");
    REFUSED(syrk(ctx, unknown, c), SUNZI_INVALID_ARGUMENT, "the format 12 is not valid");
    REFUSED(syrk(ctx, sunzi_mpfr_matrix(5, 4, 4, entries, 4), c), SUNZI_INVALID_ARGUMENT, "the layout 5 is not valid");
    REFUSED(syrk(ctx, sunzi_mpfr_matrix(layout, -4, 4, entries, 4), c), SUNZI_INVALID_SIZE, "-4 x 4");
    REFUSED(syrk(ctx, sunzi_mpfr_matrix(layout, 4, 4, entries, 3), c), SUNZI_INVALID_SIZE, "leading dimension 3");
    REFUSED(syrk(ctx, sunzi_mpfr_matrix(layout, 2, 2, entries, 4), c), SUNZI_INVALID_SIZE, "c: the matrix is 4 x 4");
    REFUSED(syrk(ctx, sunzi_limb_matrix(layout, 2, 2, NULL, NULL, 2, 1), c), SUNZI_NULL_POINTER, "a: ");
    REFUSED(sunzi_syrk(ctx, 3, SUNZI_TRANS, NULL, &good, NULL, &c), SUNZI_INVALID_ARGUMENT, "uplo: 3");
    REFUSED(sunzi_syrk(ctx, SUNZI_LOWER, 4, NULL, &good, NULL, &c), SUNZI_INVALID_ARGUMENT, "trans: 4");
    REFUSED(sunzi_syrk(NULL, SUNZI_LOWER, SUNZI_TRANS, NULL, &good, NULL, &c), SUNZI_NULL_POINTER, "");
}

static void entries_of_many_kinds(sunzi_context *ctx, mpfr_t *entries, mpfr_t *result) {
    sunzi_matrix a = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, entries, ORDER);
    sunzi_matrix c = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, result, ORDER);
    int64_t row = 0, column = 0;
    mpfr_set_nan(entries[2 * ORDER + 1]);
    REFUSED(syrk(ctx, a, c), SUNZI_NOT_FINITE, "a: entry at row 2, column 1 is NaN");
    sunzi_last_place(ctx, &row, &column);
    EXPECT(row == 2 && column == 1);
    mpfr_set_inf(entries[2 * ORDER + 1], -1);
    REFUSED(syrk(ctx, a, c), SUNZI_NOT_FINITE, "infinite");
    mpfr_set_ui(entries[2 * ORDER + 1], 1, MPFR_RNDN);
    __mpfr_struct kept = *entries[3];
    memset(entries[3], 0, sizeof entries[3]);
    REFUSED(syrk(ctx, a, c), SUNZI_INVALID_ENTRY, "row 0, column 3 has a precision of 0 bits; it may be uninitialised");
    *entries[3] = kept;
    mpfr_t huge, nan;
    mpfr_init2(huge, 64);
    mpfr_init2(nan, 64);
    mpfr_set_ui_2exp(huge, 1, mpfr_get_emax() - 1, MPFR_RNDN);
    sunzi_matrix one = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 1, 1, huge, 1);
    sunzi_matrix of_one = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 1, 1, result, 1);
    REFUSED(syrk(ctx, one, of_one), SUNZI_EXPONENT_RANGE, "outside the supported range");
    sunzi_matrix alpha = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 1, 1, nan, 1);
    REFUSED(sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, &alpha, &a, NULL, &c), SUNZI_NOT_FINITE, "alpha: ");
    // Mixed precisions are no fault.
    mpfr_set_prec(entries[5], 1000);
    mpfr_set_ui(entries[5], 3, MPFR_RNDN);
    CALL(ctx, syrk(ctx, a, c));
    EXPECT(strcmp(sunzi_last_error(ctx), "") == 0);
    mpfr_clear(huge);
    mpfr_clear(nan);
}

static void matrices_without_a_factor(sunzi_context *ctx, mpfr_t *entries, mpfr_t *right) {
    int64_t index = 0;
    sunzi_matrix a = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, entries, ORDER);
    sunzi_matrix wide = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, 2, ORDER, entries, ORDER);
    sunzi_matrix b = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, 1, right, 1);
    sunzi_matrix shorter = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER - 1, 1, right, 1);
    sunzi_factor *factor = NULL;
    for (int i = 0; i < ORDER * ORDER; i++) {
        mpfr_set_si(entries[i], i % (ORDER + 1) == 0 ? 2 - i / ORDER : 0, MPFR_RNDN);
    }
    REFUSED(sunzi_cholesky(ctx, SUNZI_LOWER, &wide), SUNZI_INVALID_SIZE, "the matrix is 2 x 4; it must be square");
    REFUSED(sunzi_solve(ctx, SUNZI_LOWER, &a, &shorter), SUNZI_INVALID_SIZE, "the matrix is 3 x 1; it must be 4 x 1");
    REFUSED(sunzi_cholesky(ctx, SUNZI_LOWER, &a), SUNZI_NOT_POSITIVE_DEFINITE, "index 2");
    sunzi_last_place(ctx, &index, NULL);
    EXPECT(index == 2 && mpfr_cmp_ui(entries[0], 2) == 0);
    REFUSED(sunzi_factor_new(ctx, SUNZI_LOWER, 0, &a, &factor), SUNZI_NOT_POSITIVE_DEFINITE, "index 2");
    EXPECT(factor == NULL);
    REFUSED(sunzi_factor_solve(ctx, NULL, &b), SUNZI_NULL_POINTER, "factor");
    REFUSED(sunzi_cholesky_solve(ctx, SUNZI_LOWER, &a, &b), SUNZI_SINGULAR, "index 2");
    REFUSED(sunzi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &a, &b), SUNZI_SINGULAR, "2");
    EXPECT(sunzi_rpotrf(ctx, "L", ORDER, entries, ORDER) == 3);
    EXPECT(sunzi_rpotrf(ctx, "Q", ORDER, entries, ORDER) == -1);
    EXPECT(sunzi_rpotrf(ctx, "L", -1, entries, ORDER) == -2);
    EXPECT(sunzi_rpotrf(ctx, "L", ORDER, NULL, ORDER) == -3);
    EXPECT(sunzi_rpotrf(ctx, "L", ORDER, entries, ORDER - 1) == -4);
    EXPECT(sunzi_rpotrf(NULL, "L", ORDER, entries, ORDER) == -1000 - SUNZI_NULL_POINTER);
    size_t rows[ORDER] = {0, 1, 2, ORDER};
    int64_t ipiv[ORDER] = {7, 7, 7, 7};
    REFUSED(sunzi_lu(ctx, &a, rows), SUNZI_SINGULAR, "in column 2 all candidates for the pivot are 0");
    EXPECT(rows[3] == ORDER && mpfr_cmp_ui(entries[0], 2) == 0);
    REFUSED(sunzi_lu(ctx, &a, NULL), SUNZI_NULL_POINTER, "rows");
    REFUSED(sunzi_lu_solve(ctx, SUNZI_NO_TRANS, &a, rows, &b), SUNZI_INVALID_ARGUMENT, "rows: entry 3 is 4");
    EXPECT(sunzi_rgetrf(ctx, ORDER, ORDER, entries, ORDER, ipiv) == 3 && ipiv[0] == 7);
    EXPECT(sunzi_rgetrs(ctx, "N", ORDER, 1, entries, ORDER, ipiv, right, ORDER) == -6);
    EXPECT(sunzi_rgetri(ctx, ORDER, entries, ORDER, ipiv, right, ORDER - 1) == -6);
}

static void contexts(mpfr_t *entries) {
    sunzi_options options = sunzi_options_default();
    sunzi_context *ctx = NULL;
    sunzi_matrix a = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ORDER, ORDER, entries, ORDER);
    options.kernel = "abacus";
    REFUSED(sunzi_context_new(&options, &ctx), SUNZI_INVALID_ARGUMENT, "unknown kernel 'abacus'");
    REFUSED(sunzi_cholesky(ctx, SUNZI_LOWER, &a), SUNZI_INVALID_ARGUMENT, "unknown kernel 'abacus'");
    sunzi_context_free(ctx);
    options.kernel = NULL;
    options.memory_bytes = 100;
    CALL(ctx, sunzi_context_new(&options, &ctx));
    REFUSED(syrk(ctx, a, a), SUNZI_MEMORY_LIMIT, "a memory limit of 100 bytes is too small");
    sunzi_context_free(ctx);
    EXPECT(sunzi_context_new(NULL, NULL) == SUNZI_NULL_POINTER);
    if (!sunzi_has("mpi")) {
        REFUSED(sunzi_context_from_mpi(0, NULL, &ctx), SUNZI_UNAVAILABLE, "feature mpi");
        sunzi_context_free(ctx);
    }
    sunzi_context_free(NULL);
}

int main(void) {
    sunzi_context *ctx = new_context(1);
    mpfr_t *entries = new_array(ORDER * ORDER, BITS), *result = new_array(ORDER * ORDER, BITS);
    fill_array(entries, ORDER * ORDER, 4);
    descriptions(ctx, entries, result);
    entries_of_many_kinds(ctx, entries, result);
    matrices_without_a_factor(ctx, entries, result);
    contexts(entries);
    printf("bad input: %d cases refused as they must be\n", cases);
    free_array(entries, ORDER * ORDER);
    free_array(result, ORDER * ORDER);
    mpfr_free_cache();
    sunzi_context_free(ctx);
    return 0;
}
