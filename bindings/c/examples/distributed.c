// Every verb over the ranks of a communicator, on matrices in the distributions of ScaLAPACK and Elemental, in rows and
// on one rank: the bits of one process, and nothing written outside of a triangle. Run by mpirun.
#include "example.h"

#include <mpi.h>
#include <stdlib.h>

enum { K = 37, N = 21, M = 9, BITS = 300, LAYOUTS = 6 };

static int rank, size, grid_rows, grid_cols;
static sunzi_context *ctx;

// A matrix on every rank, and the part of it that a distribution gives to this one.
typedef struct part {
    sunzi_dist_matrix dist;
    mpfr_t *entries;
    int rows, cols, row[64], col[64];
} part;

static sunzi_matrix described(int rows, int cols, mpfr_t *entries) {
    return sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rows, cols, entries, cols > 0 ? cols : 1);
}

// The indices of `length` that this rank has, counted one by one.
static int owned(int length, int along, int block, int first, int column_major, int *index) {
    int row = column_major ? rank % grid_rows : rank / grid_cols, col = column_major ? rank / grid_rows : rank % grid_cols;
    int number[] = {0, row, col, col * grid_rows + row, row * grid_cols + col};
    int numbers[] = {1, grid_rows, grid_cols, grid_rows * grid_cols, grid_rows * grid_cols}, count = 0;
    if (rank >= grid_rows * grid_cols) return 0;
    for (int i = 0; i < length; i++) {
        if (along == SUNZI_ALONG_NONE || (i / block + first) % numbers[along] == number[along]) index[count++] = i;
    }
    return count;
}

// The part of `whole`, row-major, in one of the layouts.
static part take(int layout, int rows, int cols, mpfr_t *whole) {
    part p;
    memset(&p, 0, sizeof p);
    int desc[9] = {1, 0, rows, cols, 3, 2, grid_rows - 1, 0, 1};
    int along[LAYOUTS][2] = {{0, 0},
                             {SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL},
                             {SUNZI_ALONG_GRID_ROW, SUNZI_ALONG_GRID_COL},
                             {SUNZI_ALONG_COL_MAJOR, SUNZI_ALONG_NONE},
                             {SUNZI_ALONG_NONE, SUNZI_ALONG_NONE},
                             {0, 0}};
    int align[2] = {layout == 2 ? grid_rows - 1 : 0, layout == 2 ? grid_cols / 2 : 0};
    if (layout == 0 || layout == 5) { // rows, the last rank has none where there are many; or all on the last rank
        int from = layout == 0 ? rows * rank / size : 0, to = layout == 0 ? rows * (rank + 1) / size : rows;
        if (layout == 5 && rank != size - 1) to = 0;
        for (int i = from; i < to; i++) p.row[p.rows++] = i;
        for (int j = 0; j < cols; j++) p.col[p.cols++] = j;
    } else {
        int column_major = layout != 1, row_block = layout == 1 ? 3 : 1, col_block = layout == 1 ? 2 : 1;
        p.rows = owned(rows, along[layout][0], row_block, layout == 1 ? desc[6] : align[0], column_major, p.row);
        p.cols = owned(cols, along[layout][1], col_block, layout == 1 ? desc[7] : align[1], column_major, p.col);
    }
    p.entries = new_array(p.rows * p.cols, BITS);
    for (int i = 0; i < p.rows; i++) {
        for (int j = 0; j < p.cols; j++) {
            mpfr_set(p.entries[i * p.cols + j], whole[p.row[i] * cols + p.col[j]], MPFR_RNDN);
        }
    }
    sunzi_matrix local = described(p.rows, p.cols, p.entries);
    if (layout == 0 || layout == 5) {
        p.dist = sunzi_dist_rows(local, size);
    } else if (layout == 1) {
        p.dist = sunzi_dist_scalapack(local, desc, grid_rows, grid_cols, SUNZI_ROW_MAJOR);
    } else {
        p.dist = sunzi_dist_elemental(local, rows, cols, grid_rows, grid_cols, along[layout][0], along[layout][1],
                                      align[0], align[1]);
    }
    return p;
}

// Compares the part with `whole` and frees it; entries outside of a triangle (uplo, 0 for none) must be NaN still.
static void check(const char *what, part p, int cols, mpfr_t *whole, int uplo) {
    for (int i = 0; i < p.rows; i++) {
        for (int j = 0; j < p.cols; j++) {
            int row = p.row[i], col = p.col[j];
            int counts = uplo == 0 || (uplo == SUNZI_LOWER ? row >= col : row <= col);
            int same = counts ? mpfr_equal_p(p.entries[i * p.cols + j], whole[row * cols + col])
                              : mpfr_nan_p(p.entries[i * p.cols + j]);
            if (!same) {
                fprintf(stderr, "%s: rank %d of %d, entry %d, %d\n", what, rank, size, row, col);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    free_array(p.entries, p.rows * p.cols);
}

static void spoil(int order, mpfr_t *a, int uplo) {
    for (int i = 0; i < order; i++) {
        for (int j = 0; j < order; j++) {
            if (uplo == SUNZI_LOWER ? i < j : i > j) mpfr_set_nan(a[i * order + j]);
        }
    }
}

static mpfr_t *copy(int count, mpfr_t *from) {
    mpfr_t *to = new_array(count, BITS);
    for (int i = 0; i < count; i++) mpfr_set(to[i], from[i], MPFR_RNDN);
    return to;
}

// Products: A is K x N, B is K x M, C N x M or N x N.
static void products(int one, int other, mpfr_t *a, mpfr_t *b, mpfr_t *c, mpfr_t *scalars) {
    sunzi_matrix alpha = described(1, 1, scalars), beta = described(1, 1, scalars + 1);
    sunzi_matrix whole_a = described(K, N, a), whole_b = described(K, M, b);
    mpfr_t *want = copy(N * M, c);
    sunzi_matrix result = described(N, M, want);
    CALL(ctx, sunzi_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, &alpha, &whole_a, &whole_b, &beta, &result));
    part pa = take(one, K, N, a), pb = take(other, K, M, b), pc = take((one + other) % LAYOUTS, N, M, c);
    CALL(ctx, sunzi_mpi_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, &alpha, &pa.dist, &pb.dist, &beta, &pc.dist));
    check("gemm", pc, M, want, 0);
    free_array(want, N * M);
    for (int trans = SUNZI_NO_TRANS; trans <= SUNZI_TRANS; trans++) {
        int uplo = (one + other + trans) % 2 ? SUNZI_LOWER : SUNZI_UPPER, order = trans == SUNZI_TRANS ? N : K;
        mpfr_t *before = new_array(order * order, BITS);
        fill_array(before, order * order, 5);
        spoil(order, before, uplo);
        want = copy(order * order, before);
        sunzi_matrix q = described(order, order, want);
        CALL(ctx, sunzi_syrk(ctx, uplo, trans, &alpha, &whole_a, &beta, &q));
        part pq = take(other, order, order, before);
        CALL(ctx, sunzi_mpi_syrk(ctx, uplo, trans, &alpha, &pa.dist, &beta, &pq.dist));
        check("syrk", pq, order, want, uplo);
        free_array(before, order * order);
        free_array(want, order * order);
    }
    free_array(pa.entries, pa.rows * pa.cols);
    free_array(pb.entries, pb.rows * pb.cols);
}

// The heads and limbs of a part, column by column, with `gap` entries between the columns.
typedef struct limb_part {
    uint64_t *heads, *limbs;
    int ld;
} limb_part;

enum { LIMBS = (BITS + 63) / 64 };

static limb_part to_limbs(const part *p, int gap) {
    limb_part of;
    of.ld = p->rows + gap;
    size_t count = (size_t)of.ld * p->cols + 1;
    of.heads = (uint64_t *)calloc(count, sizeof(uint64_t));
    of.limbs = (uint64_t *)calloc(count * LIMBS, sizeof(uint64_t));
    EXPECT(of.heads != NULL && of.limbs != NULL);
    for (int i = 0; i < p->rows; i++) {
        for (int j = 0; j < p->cols; j++) {
            mpfr_t *entry = &p->entries[i * p->cols + j];
            size_t at = (size_t)j * of.ld + i;
            if (mpfr_zero_p(*entry)) continue;
            of.heads[at] = (uint64_t)mpfr_get_exp(*entry) << 2 | 2 | (mpfr_signbit(*entry) ? 1 : 0);
            memcpy(of.limbs + at * LIMBS, (*entry)->_mpfr_d, LIMBS * sizeof(uint64_t));
        }
    }
    return of;
}

static sunzi_dist_matrix limbs_of(const part *p, limb_part of) {
    sunzi_dist_matrix dist = p->dist;
    dist.local = sunzi_limb_matrix(SUNZI_COL_MAJOR, p->rows, p->cols, of.heads, of.limbs, of.ld ? of.ld : 1, BITS);
    return dist;
}

static void free_limbs(limb_part of) {
    free(of.heads);
    free(of.limbs);
}

// Puts the limbs back into the part and frees them.
static void from_limbs(const part *p, limb_part of) {
    for (int i = 0; i < p->rows; i++) {
        for (int j = 0; j < p->cols; j++) {
            size_t at = (size_t)j * of.ld + i;
            int sign = of.heads[at] & 1 ? -1 : 1, kind = of.heads[at] == 0 ? MPFR_ZERO_KIND : MPFR_REGULAR_KIND;
            mpfr_t number;
            mpfr_custom_init_set(number, sign * kind, (mpfr_exp_t)((int64_t)of.heads[at] >> 2), BITS, of.limbs + at * LIMBS);
            mpfr_set(p->entries[i * p->cols + j], number, MPFR_RNDN);
        }
    }
    free_limbs(of);
}

// Results over their own operands, as numbers and as limbs with and without gaps: operands are read before.
static void overlaps(int layout, mpfr_t *q, mpfr_t *scalars) {
    sunzi_matrix alpha = described(1, 1, scalars), beta = described(1, 1, scalars + 1), whole = described(N, N, q);
    mpfr_t *product = copy(N * N, q), *square = copy(N * N, q);
    sunzi_matrix of_product = described(N, N, product), of_square = described(N, N, square);
    CALL(ctx, sunzi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_TRANS, &alpha, &whole, &whole, &beta, &of_product));
    CALL(ctx, sunzi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &whole, NULL, &of_square));
    for (int gap = -1; gap < 2; gap++) {
        part of_gemm = take(layout, N, N, q), of_syrk = take(layout, N, N, q);
        limb_part gemm_limbs = to_limbs(&of_gemm, gap > 0), syrk_limbs = to_limbs(&of_syrk, gap > 0);
        sunzi_dist_matrix g = gap < 0 ? of_gemm.dist : limbs_of(&of_gemm, gemm_limbs);
        sunzi_dist_matrix s = gap < 0 ? of_syrk.dist : limbs_of(&of_syrk, syrk_limbs);
        CALL(ctx, sunzi_mpi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_TRANS, &alpha, &g, &g, &beta, &g));
        CALL(ctx, sunzi_mpi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &s, NULL, &s));
        if (gap < 0) { // the entries are the result; the limbs were not used
            gemm_limbs = (free_limbs(gemm_limbs), to_limbs(&of_gemm, 0));
            syrk_limbs = (free_limbs(syrk_limbs), to_limbs(&of_syrk, 0));
        }
        from_limbs(&of_gemm, gemm_limbs);
        from_limbs(&of_syrk, syrk_limbs);
        check("gemm over its operands", of_gemm, N, product, 0);
        check("syrk over its operand", of_syrk, N, square, 0);
    }
    free_array(product, N * N);
    free_array(square, N * N);
}

// Solves with limbs, in one triangle and with a kept factor, straight into the caller's memory.
static void limbs(int one, int other, mpfr_t *q, mpfr_t *b) {
    mpfr_t *factor = copy(N * N, q), *solution = copy(N * M, b);
    sunzi_matrix of_factor = described(N, N, factor), of_solution = described(N, M, solution);
    CALL(ctx, sunzi_cholesky(ctx, SUNZI_LOWER, &of_factor));
    CALL(ctx, sunzi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &of_factor, &of_solution));
    for (int gap = 0; gap < 2; gap++) {
        part pt = take(one, N, N, factor), pb = take(other, N, M, b);
        limb_part t = to_limbs(&pt, gap), right = to_limbs(&pb, 1 - gap);
        sunzi_dist_matrix of_t = limbs_of(&pt, t), of_right = limbs_of(&pb, right);
        CALL(ctx, sunzi_mpi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &of_t, &of_right));
        from_limbs(&pt, t);
        from_limbs(&pb, right);
        check("trsm with limbs", pb, M, solution, 0);
        check("trsm leaves its triangle", pt, N, factor, 0);
        // The factor itself: into one triangle, whose other side stays.
        part pq = take(other, N, N, q);
        limb_part held = to_limbs(&pq, gap);
        sunzi_dist_matrix of_q = limbs_of(&pq, held);
        CALL(ctx, sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &of_q));
        from_limbs(&pq, held);
        check("cholesky with limbs", pq, N, factor, 0);
    }
    free_array(factor, N * N);
    free_array(solution, N * M);
}

// Other factors in the place of a kept one, and the first one again; one that fails leaves none.
static void renewals(int one, int uplo, mpfr_t *held, mpfr_t *want, sunzi_mpi_factor *kept) {
    mpfr_t *fourfold = copy(N * N, held), *twice = copy(N * N, want);
    for (int at = 0; at < N * N; at++) {
        mpfr_mul_2si(fourfold[at], held[at], 2, MPFR_RNDN);
        mpfr_mul_2si(twice[at], want[at], 1, MPFR_RNDN);
    }
    for (int time = 0; time < 3; time++) {
        part of = take(one, N, N, time % 2 == 0 ? fourfold : held), to = take((one + time) % LAYOUTS, N, N, held);
        CALL(ctx, sunzi_mpi_factor_renew(ctx, uplo, 0, &of.dist, kept));
        CALL(ctx, sunzi_mpi_factor_get(ctx, kept, uplo, &to.dist));
        check("a renewed factor", to, N, time % 2 == 0 ? twice : want, uplo);
        free_array(of.entries, of.rows * of.cols);
    }
    // Arguments that are refused leave it as it was.
    part thin = take(one, N, N - 1, held);
    EXPECT(sunzi_mpi_factor_renew(ctx, uplo, 0, &thin.dist, kept) == SUNZI_INVALID_SIZE);
    free_array(thin.entries, thin.rows * thin.cols);
    part again = take(one, N, N, held);
    EXPECT(sunzi_mpi_factor_renew(ctx, uplo, 1, &again.dist, kept) == SUNZI_PRECISION);
    free_array(again.entries, again.rows * again.cols);
    EXPECT(sunzi_mpi_factor_order(kept) == N);
    mpfr_neg(fourfold[0], fourfold[0], MPFR_RNDN);
    part indefinite = take(one, N, N, fourfold), first = take(one, N, N, held);
    EXPECT(sunzi_mpi_factor_renew(ctx, uplo, 0, &indefinite.dist, kept) == SUNZI_NOT_POSITIVE_DEFINITE);
    EXPECT(sunzi_mpi_factor_order(kept) == 0);
    EXPECT(sunzi_mpi_factor_get(ctx, kept, uplo, &first.dist) == SUNZI_INVALID_ARGUMENT);
    EXPECT(sunzi_mpi_factor_log_det(ctx, kept, NULL) == SUNZI_INVALID_ARGUMENT);
    CALL(ctx, sunzi_mpi_factor_renew(ctx, uplo, 2 * BITS, &first.dist, kept));
    EXPECT(sunzi_mpi_factor_order(kept) == N && sunzi_mpi_factor_precision_bits(kept) == 2 * BITS);
    CALL(ctx, sunzi_mpi_factor_renew(ctx, uplo, 0, &first.dist, kept));
    CALL(ctx, sunzi_mpi_factor_get(ctx, kept, uplo, &first.dist));
    check("a factor renewed after a failure", first, N, want, uplo);
    free_array(indefinite.entries, indefinite.rows * indefinite.cols);
    free_array(twice, N * N);
    free_array(fourfold, N * N);
}

// The inverse, from the matrix and from its kept factor: the solution for the identity.
static void inverses(int one, int other, int uplo, mpfr_t *held, const sunzi_mpi_factor *kept) {
    mpfr_t *inverse = new_array(N * N, BITS);
    for (int i = 0; i < N * N; i++) mpfr_set_si(inverse[i], i % (N + 1) == 0, MPFR_RNDN);
    part pq = take(one, N, N, held), of_matrix = take(other, N, N, inverse), of_factor = take(one, N, N, inverse);
    sunzi_matrix a = described(N, N, held), x = described(N, N, inverse);
    CALL(ctx, sunzi_solve(ctx, uplo, &a, &x));
    CALL(ctx, sunzi_mpi_inverse(ctx, uplo, &pq.dist, &of_matrix.dist));
    check("the inverse leaves its matrix", pq, N, held, uplo);
    check("inverse", of_matrix, N, inverse, 0);
    CALL(ctx, sunzi_mpi_factor_inverse(ctx, kept, &of_factor.dist));
    check("inverse with a kept factor", of_factor, N, inverse, 0);
    free_array(inverse, N * N);
}

// Factors and solves with the definite matrix Q, N x N, and right sides of N x columns.
static void factors(int one, int other, mpfr_t *q, mpfr_t *b, mpfr_t *scalars, int columns) {
    sunzi_matrix alpha = described(1, 1, scalars);
    for (int uplo = SUNZI_UPPER; uplo <= SUNZI_LOWER; uplo++) {
        mpfr_t *held = copy(N * N, q), *factor, *want;
        spoil(N, held, uplo);
        factor = copy(N * N, held);
        sunzi_matrix l = described(N, N, factor);
        CALL(ctx, sunzi_cholesky(ctx, uplo, &l));
        part pq = take(one, N, N, held);
        CALL(ctx, sunzi_mpi_cholesky(ctx, uplo, &pq.dist));
        // log det and solves with the factor where it lies.
        mpfr_t *numbers = new_array(2, BITS);
        sunzi_matrix mine = described(1, 1, numbers), theirs = described(1, 1, numbers + 1);
        CALL(ctx, sunzi_log_det(ctx, &l, &theirs));
        CALL(ctx, sunzi_mpi_log_det(ctx, uplo, &pq.dist, rank == 0 ? &mine : NULL));
        EXPECT(rank != 0 || mpfr_equal_p(numbers[0], numbers[1]));
        free_array(numbers, 2);
        want = copy(N * columns, b);
        sunzi_matrix x = described(N, columns, want);
        CALL(ctx, sunzi_cholesky_solve(ctx, uplo, &l, &x));
        part px = take(other, N, columns, b);
        CALL(ctx, sunzi_mpi_cholesky_solve(ctx, uplo, &pq.dist, &px.dist));
        check("cholesky_solve", px, columns, want, 0);
        for (int side = SUNZI_LEFT; side <= SUNZI_RIGHT; side++) {
            for (int trans = SUNZI_NO_TRANS; trans <= SUNZI_TRANS; trans++) {
                int rows = side == SUNZI_LEFT ? N : columns, cols = side == SUNZI_LEFT ? columns : N;
                int diag = (one + trans) % 2 ? SUNZI_UNIT : SUNZI_NON_UNIT;
                for (int i = 0; i < N * columns; i++) mpfr_set(want[i], b[i], MPFR_RNDN);
                x = described(rows, cols, want);
                CALL(ctx, sunzi_trsm(ctx, side, uplo, trans, diag, &alpha, &l, &x));
                px = take(other, rows, cols, b);
                CALL(ctx, sunzi_mpi_trsm(ctx, side, uplo, trans, diag, &alpha, &pq.dist, &px.dist));
                check("trsm", px, cols, want, 0);
            }
        }
        check("cholesky", pq, N, factor, uplo);
        for (int i = 0; i < N * columns; i++) mpfr_set(want[i], b[i], MPFR_RNDN);
        sunzi_matrix a = described(N, N, held);
        x = described(N, columns, want);
        CALL(ctx, sunzi_solve(ctx, uplo, &a, &x));
        pq = take(one, N, N, held), px = take(other, N, columns, b);
        CALL(ctx, sunzi_mpi_solve(ctx, uplo, &pq.dist, &px.dist));
        check("solve", px, columns, want, 0);
        // A factor that the library keeps: two solves, each with right sides of another distribution, from one factorisation.
        sunzi_mpi_factor *kept;
        CALL(ctx, sunzi_mpi_factor_new(ctx, uplo, 0, &pq.dist, &kept));
        check("solve and factor leave their matrix", pq, N, held, uplo);
        EXPECT(sunzi_mpi_factor_order(kept) == N && sunzi_mpi_factor_precision_bits(kept) == BITS);
        for (int layout = 0; layout < 2; layout++) {
            px = take((other + layout) % LAYOUTS, N, columns, b);
            CALL(ctx, sunzi_mpi_factor_solve(ctx, kept, &px.dist));
            check("solve with a kept factor", px, columns, want, 0);
        }
        numbers = new_array(2, BITS);
        mine = described(1, 1, numbers), theirs = described(1, 1, numbers + 1);
        CALL(ctx, sunzi_log_det(ctx, &l, &theirs));
        CALL(ctx, sunzi_mpi_factor_log_det(ctx, kept, rank == size - 1 ? &mine : NULL));
        EXPECT(rank != size - 1 || mpfr_equal_p(numbers[0], numbers[1]));
        free_array(numbers, 2);
        pq = take(other, N, N, held);
        CALL(ctx, sunzi_mpi_factor_get(ctx, kept, uplo, &pq.dist));
        check("the kept factor", pq, N, factor, uplo);
        if (other == (one + 1) % LAYOUTS) inverses(one, other, uplo, held, kept);
        // The factor of another matrix in its place, and of the first one at another precision and back.
        renewals(one, uplo, held, factor, kept);
        sunzi_mpi_factor_free(kept);
        free_array(want, N * columns);
        free_array(held, N * N);
        free_array(factor, N * N);
    }
}

// One bad argument on one rank is an error of all, and the next call works.
static void refusals(mpfr_t *q) {
    part p = take(2, N, N, q), other = take(1, N, N, q);
    sunzi_dist_matrix wrong = p.dist;
    if (rank == size - 1) wrong.local.rows += 1;
    EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &wrong) != SUNZI_OK);
    wrong = p.dist;
    wrong.grid_rows = size + 1;
    EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &wrong) == SUNZI_INVALID_ARGUMENT);
    EXPECT(strstr(sunzi_last_error(ctx), "ranks") != NULL);
    wrong = p.dist;
    wrong.row_along = 7;
    EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &wrong) == SUNZI_INVALID_ARGUMENT);
    wrong = p.dist;
    wrong.rows = N - 1;
    EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &wrong) != SUNZI_OK);
    EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, rank == 0 ? NULL : &p.dist) != SUNZI_OK);
    EXPECT(sunzi_mpi_cholesky(ctx, rank == 0 ? 5 : SUNZI_LOWER, &p.dist) != SUNZI_OK);
    if (size > 1) {
        // Descriptions that differ from rank to rank.
        EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, rank == 0 ? &other.dist : &p.dist) != SUNZI_OK);
    }
    // Kept factors.
    sunzi_mpi_factor *kept = NULL, *none = (sunzi_mpi_factor *)&wrong;
    EXPECT(sunzi_mpi_factor_new(ctx, SUNZI_LOWER, rank == 0 ? -1 : 0, &p.dist, &none) != SUNZI_OK && none == NULL);
    EXPECT(sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 0, &p.dist, rank == 0 ? NULL : &none) != SUNZI_OK && none == NULL);
    if (size > 1) {
        EXPECT(sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 100 + (rank == 0), &p.dist, &none) == SUNZI_INVALID_ARGUMENT);
    }
    CALL(ctx, sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 100, &p.dist, &kept));
    EXPECT(sunzi_mpi_factor_precision_bits(kept) == 100);
    EXPECT(sunzi_mpi_factor_solve(ctx, rank == 0 ? NULL : kept, &p.dist) != SUNZI_OK);
    EXPECT(sunzi_mpi_factor_renew(ctx, SUNZI_LOWER, 100, &p.dist, rank == 0 ? NULL : kept) != SUNZI_OK);
    EXPECT(sunzi_mpi_factor_renew(ctx, SUNZI_LOWER, rank == 0 ? -1 : 0, &p.dist, kept) != SUNZI_OK);
    EXPECT(sunzi_mpi_factor_order(kept) == N && sunzi_mpi_factor_precision_bits(kept) == 100);
    wrong = p.dist;
    wrong.rows = N - 1;
    EXPECT(sunzi_mpi_factor_solve(ctx, kept, &wrong) != SUNZI_OK);
    EXPECT(sunzi_mpi_factor_inverse(ctx, kept, &wrong) != SUNZI_OK);
    EXPECT(sunzi_mpi_inverse(ctx, SUNZI_LOWER, &p.dist, &wrong) != SUNZI_OK);
    if (size > 1) {
        // Copies on all ranks whose shapes differ: each fits its own description.
        // Ranks beyond the grid have nothing.
        int rows = rank == 0 ? N : N - 1, inside = rank < grid_rows * grid_cols;
        sunzi_dist_matrix copies = sunzi_dist_elemental(described(inside ? rows : 0, inside ? N : 0, q), rows, N,
                                                        grid_rows, grid_cols, SUNZI_ALONG_NONE, SUNZI_ALONG_NONE, 0, 0);
        EXPECT(sunzi_mpi_solve(ctx, SUNZI_LOWER, &p.dist, &copies) == SUNZI_INVALID_ARGUMENT);
        EXPECT(sunzi_mpi_inverse(ctx, SUNZI_LOWER, &p.dist, &copies) == SUNZI_INVALID_ARGUMENT);
    }
    EXPECT(sunzi_mpi_factor_log_det(ctx, kept, NULL) == SUNZI_OK);
    EXPECT(sunzi_mpi_factor_get(ctx, kept, SUNZI_BOTH, &p.dist) == SUNZI_INVALID_ARGUMENT);
    EXPECT(sunzi_mpi_factor_order(kept) == N);
    sunzi_options options = sunzi_options_default();
    sunzi_context *narrow;
    options.threads = 1;
    options.memory_bytes = 1;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &narrow));
    EXPECT(sunzi_mpi_factor_renew(narrow, SUNZI_LOWER, 0, &p.dist, kept) != SUNZI_OK); // a rank may own no tile
    EXPECT(sunzi_mpi_factor_order(kept) == 0);
    sunzi_context_free(narrow);
    sunzi_mpi_factor_free(kept);
    sunzi_mpi_factor_free(NULL);
    EXPECT(sunzi_mpi_factor_order(NULL) == -1 && sunzi_mpi_factor_precision_bits(NULL) == -1);
    CALL(ctx, sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &p.dist));
    free_array(p.entries, p.rows * p.cols);
    free_array(other.entries, other.rows * other.cols);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (grid_rows = 1; (grid_rows + 1) * (grid_rows + 1) <= size; grid_rows++) {}
    grid_cols = size / grid_rows; // a rank may lie beyond the grid
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    mpfr_t *a = new_array(K * N, BITS), *b = new_array(K * K, BITS), *c = new_array(N * M, BITS), *q = new_array(N * N, BITS);
    mpfr_t *scalars = new_array(2, BITS);
    fill_array(a, K * N, 1);
    fill_array(b, K * K, 2);
    fill_array(c, N * M, 3);
    mpfr_set_d(scalars[0], -0.75, MPFR_RNDN);
    mpfr_set_d(scalars[1], 1.5, MPFR_RNDN);
    sunzi_matrix whole = described(K, N, a), gram = described(N, N, q);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &whole, NULL, &gram));
    for (int one = 0; one < LAYOUTS; one++) {
        for (int other = 0; other < LAYOUTS; other++) {
            products(one, other, a, b, c, scalars);
            factors(one, other, q, b, scalars, other % 2 ? M : 2);
        }
    }
    for (int layout = 0; layout < LAYOUTS; layout++) {
        overlaps(layout, q, scalars);
        limbs(layout, (layout + 2) % LAYOUTS, q, c);
    }
    refusals(q);
    sunzi_context_free(ctx);
    free_array(a, K * N);
    free_array(b, K * K);
    free_array(c, N * M);
    free_array(q, N * N);
    free_array(scalars, 2);
    if (rank == 0) printf("distributed: %d ranks, the bits of one process\n", size);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
