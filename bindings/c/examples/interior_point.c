// One step of an interior-point method for semidefinite programs, twice: with loops over MPFR, and with the library.
//
// The Schur complement of the scaling W = G G^T is B_pq = tr(A_p W A_q W) = <V_p, V_q> with V_p = G^T A_p G: a Gram
// matrix. The step solves B dy = r. Both roads: G = chol(W), V (two products), B (SYRK), chol(B), two triangular
// solves.
//
// interior_point [ORDER CONSTRAINTS BITS]: prints the digits that agree and the ratio of the times.
#include "example.h"

typedef struct {
    int order, count, bits;
    mpfr_t *scaling;     // W, order x order
    mpfr_t *constraints; // A_1 .. A_count, each order x order, one below the other, row-major
    mpfr_t *right;       // r
} problem;

static size_t square(const problem *sdp) { return (size_t)sdp->order * (size_t)sdp->order; }

static problem new_problem(int order, int count, int bits) {
    problem sdp = {order, count, bits, NULL, NULL, NULL};
    size_t entries = square(&sdp);
    sdp.scaling = new_array(entries, bits);
    sdp.constraints = new_array(entries * (size_t)count, bits);
    sdp.right = new_array((size_t)count, bits);
    fill_array(sdp.scaling, entries, 1);
    fill_array(sdp.constraints, entries * (size_t)count, 2);
    fill_array(sdp.right, (size_t)count, 3);
    for (int i = 0; i < order; i++) {
        for (int j = 0; j < i; j++) {
            mpfr_set(sdp.scaling[j * order + i], sdp.scaling[i * order + j], MPFR_RNDN);
            for (int p = 0; p < count; p++) {
                mpfr_t *a = sdp.constraints + (size_t)p * entries;
                mpfr_set(a[j * order + i], a[i * order + j], MPFR_RNDN);
            }
        }
        mpfr_add_ui(sdp.scaling[i * order + i], sdp.scaling[i * order + i], (unsigned long)order + 1, MPFR_RNDN);
    }
    return sdp;
}

static void free_problem(problem *sdp) {
    free_array(sdp->scaling, square(sdp));
    free_array(sdp->constraints, square(sdp) * (size_t)sdp->count);
    free_array(sdp->right, (size_t)sdp->count);
}

// The lower triangle of `a` becomes its factor.
static void cholesky_by_loop(mpfr_t *a, int n, int bits) {
    mpfr_t product;
    mpfr_init2(product, bits);
    for (int j = 0; j < n; j++) {
        for (int i = j; i < n; i++) {
            for (int k = 0; k < j; k++) {
                mpfr_mul(product, a[i * n + k], a[j * n + k], MPFR_RNDN);
                mpfr_sub(a[i * n + j], a[i * n + j], product, MPFR_RNDN);
            }
            if (i == j) {
                mpfr_sqrt(a[j * n + j], a[j * n + j], MPFR_RNDN);
            } else {
                mpfr_div(a[i * n + j], a[i * n + j], a[j * n + j], MPFR_RNDN);
            }
        }
    }
    mpfr_clear(product);
}

// The sum over k of x[k * x_step] y[k * y_step].
static void dot(mpfr_t sum, mpfr_t *x, int x_step, mpfr_t *y, int y_step, int count) {
    mpfr_set_zero(sum, 1);
    for (int k = 0; k < count; k++) {
        mpfr_fma(sum, x[k * x_step], y[k * y_step], sum, MPFR_RNDN);
    }
}

static mpfr_t *step_by_loops(const problem *sdp) {
    int n = sdp->order, m = sdp->count;
    size_t entries = square(sdp);
    mpfr_t *g = copy_array(sdp->scaling, entries), *half = new_array(entries, sdp->bits);
    mpfr_t *v = new_array(entries * (size_t)m, sdp->bits), *b = new_array((size_t)m * (size_t)m, sdp->bits);
    mpfr_t *dy = copy_array(sdp->right, (size_t)m);
    cholesky_by_loop(g, n, sdp->bits);
    for (int p = 0; p < m; p++) {
        mpfr_t *a = sdp->constraints + (size_t)p * entries, *own = v + (size_t)p * entries;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) dot(half[i * n + j], a + i * n + j, 1, g + j * n + j, n, n - j);
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) dot(own[i * n + j], g + i * n + i, n, half + i * n + j, n, n - i);
        }
    }
    for (int p = 0; p < m; p++) {
        for (int q = 0; q <= p; q++) {
            dot(b[p * m + q], v + (size_t)p * entries, 1, v + (size_t)q * entries, 1, (int)entries);
        }
    }
    cholesky_by_loop(b, m, sdp->bits);
    mpfr_t sum;
    mpfr_init2(sum, sdp->bits);
    for (int i = 0; i < m; i++) {
        dot(sum, b + i * m, 1, dy, 1, i);
        mpfr_sub(dy[i], dy[i], sum, MPFR_RNDN);
        mpfr_div(dy[i], dy[i], b[i * m + i], MPFR_RNDN);
    }
    for (int i = m - 1; i >= 0; i--) {
        dot(sum, b + (i + 1) * m + i, m, dy + i + 1, 1, m - 1 - i);
        mpfr_sub(dy[i], dy[i], sum, MPFR_RNDN);
        mpfr_div(dy[i], dy[i], b[i * m + i], MPFR_RNDN);
    }
    mpfr_clear(sum);
    free_array(g, entries);
    free_array(half, entries);
    free_array(v, entries * (size_t)m);
    free_array(b, (size_t)m * (size_t)m);
    return dy;
}

static mpfr_t *step_by_library(sunzi_context *ctx, const problem *sdp) {
    int64_t n = sdp->order, m = sdp->count;
    size_t entries = square(sdp), all = entries * (size_t)m;
    mpfr_t *g = copy_array(sdp->scaling, entries);
    mpfr_t *half = new_array(all, sdp->bits), *turned = malloc(all * sizeof *turned);
    mpfr_t *v = new_array(all, sdp->bits), *b = new_array((size_t)m * (size_t)m, sdp->bits);
    mpfr_t *dy = copy_array(sdp->right, (size_t)m);
    // G in the lower triangle, zeros above it.
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) mpfr_set_zero(g[i * n + j], 1);
    }
    sunzi_matrix g_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, n, n, g, n);
    CALL(ctx, sunzi_cholesky(ctx, SUNZI_LOWER, &g_matrix));
    // All H_p = A_p G in one product; then all V_p^T = H_p^T G in one, of the blocks H_p^T one below the other.
    sunzi_matrix a_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, n * m, n, sdp->constraints, n);
    sunzi_matrix half_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, n * m, n, half, n);
    CALL(ctx, sunzi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &a_matrix, &g_matrix, NULL, &half_matrix));
    for (int64_t p = 0; p < m; p++) {
        for (int64_t i = 0; i < n; i++) {
            // The heads alone move: an mpfr_t may be copied as long as only one copy is changed or cleared.
            for (int64_t j = 0; j < n; j++) *turned[p * n * n + j * n + i] = *half[p * n * n + i * n + j];
        }
    }
    sunzi_matrix turned_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, n * m, n, turned, n);
    sunzi_matrix v_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, n * m, n, v, n);
    CALL(ctx, sunzi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &turned_matrix, &g_matrix, NULL, &v_matrix));
    // The same memory, one V_p in each row: B = V V^T.
    sunzi_matrix rows = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, m, n * n, v, n * n);
    sunzi_matrix b_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, m, m, b, m);
    sunzi_matrix dy_matrix = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, m, 1, dy, 1);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_NO_TRANS, NULL, &rows, NULL, &b_matrix));
    CALL(ctx, sunzi_cholesky(ctx, SUNZI_LOWER, &b_matrix));
    CALL(ctx, sunzi_cholesky_solve(ctx, SUNZI_LOWER, &b_matrix, &dy_matrix));
    free_array(g, entries);
    free_array(half, all);
    free(turned);
    free_array(v, all);
    free_array(b, (size_t)m * (size_t)m);
    return dy;
}

int main(int argc, char **argv) {
    int order = argc > 1 ? atoi(argv[1]) : 12, count = argc > 2 ? atoi(argv[2]) : 60;
    int bits = argc > 3 ? atoi(argv[3]) : 768;
    EXPECT(order > 0 && count > 0 && count <= order * (order + 1) / 2 && bits >= 200);
    sunzi_context *ctx = new_context(1);
    problem sdp = new_problem(order, count, bits);
    free_array(step_by_library(ctx, &sdp), (size_t)count); // makes the context's tables
    double start = now();
    mpfr_t *dy = step_by_library(ctx, &sdp);
    double of_library = now() - start;
    start = now();
    mpfr_t *by_loops = step_by_loops(&sdp);
    double of_loops = now() - start;
    long worst = -1000000;
    for (int p = 0; p < count; p++) {
        long error = error_log2(dy[p], by_loops[p]);
        if (error > worst) worst = error;
    }
    // The condition of B takes some bits of both.
    EXPECT(worst < -bits + 60);
    long digits = (long)((worst == -1000000 ? bits : -worst) * 0.30103);
    printf("interior point: order %d, %d constraints, %d bits: %ld digits agree;", order, count, bits, digits);
    printf(" loops %.4f s, library %.4f s: %.1f times\n", of_loops, of_library, of_loops / of_library);
    free_array(dy, (size_t)count);
    free_array(by_loops, (size_t)count);
    free_problem(&sdp);
    mpfr_free_cache();
    sunzi_context_free(ctx);
    return 0;
}
