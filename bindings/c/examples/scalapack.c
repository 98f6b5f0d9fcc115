// The calls with ScaLAPACK's arguments on parts of block-cyclic matrices, of mpfr_t and of mpf_t, over two grids: the bits
// of one process, nothing written outside of a part, and one info on all ranks for what is wrong on one. Run by mpirun.
#include "example.h"

#include <mpi.h>
#include <stdlib.h>

enum { N = 21, M = 9, K = 17, BITS = 300, MARK = 77 };

static int rank, size;
static sunzi_context *ctx;

// A grid of ranks under the number that descriptors have for it.
typedef struct grid {
    int context, rows, cols, order;
} grid;

// A matrix over a grid: of an array of rows x cols that all ranks know a part lies at ia, ja (from 1); all else is MARK.
typedef struct part {
    mpfr_t *entries;
    mpf_t *floats; // the same as mpf_t; null where entries are used
    int desc[9], ia, ja, rows, cols, local_rows, local_cols;
    grid on;
} part;

// The index, from 0, of the local-th one that number `mine` of `numbers` has.
static int global_of(int local, int block, int mine, int first, int numbers) {
    return (local / block * numbers + (mine - first + numbers) % numbers) * block + local % block;
}

static int owned(int length, int block, int mine, int first, int numbers) {
    int count = 0;
    while (global_of(count, block, mine, first, numbers) < length) count++;
    return count;
}

static int place(grid on, int *row, int *col) {
    *row = on.order == SUNZI_ROW_MAJOR ? rank / on.cols : rank % on.rows;
    *col = on.order == SUNZI_ROW_MAJOR ? rank % on.cols : rank / on.rows;
    return rank < on.rows * on.cols;
}

// The row and the column of the part, from 0, that a local entry is; 0 where it lies outside.
static int within(const part *p, int i, int j, int *row, int *col) {
    int my_row, my_col;
    place(p->on, &my_row, &my_col);
    *row = global_of(i, p->desc[4], my_row, p->desc[6], p->on.rows) - (p->ia - 1);
    *col = global_of(j, p->desc[5], my_col, p->desc[7], p->on.cols) - (p->ja - 1);
    return *row >= 0 && *row < p->rows && *col >= 0 && *col < p->cols;
}

// `whole`, row-major, as a part of a larger matrix on a grid; what `kind` says picks blocks, first ranks and the place.
static part deal(grid on, int kind, int rows, int cols, mpfr_t *whole, int as_mpf) {
    part p;
    memset(&p, 0, sizeof p);
    p.on = on, p.rows = rows, p.cols = cols;
    p.ia = kind % 3 == 0 ? 1 : 3 + kind, p.ja = kind % 2 == 0 ? 1 : 2 + kind;
    int desc[9] = {1, on.context, rows + p.ia + 2, cols + p.ja + 1, 2 + kind, kind == 1 ? 2 : 4, kind % on.rows, on.cols - 1, 1};
    int my_row, my_col;
    if (place(on, &my_row, &my_col)) {
        p.local_rows = owned(desc[2], desc[4], my_row, desc[6], on.rows);
        p.local_cols = owned(desc[3], desc[5], my_col, desc[7], on.cols);
    }
    desc[8] = p.local_rows + 1;
    memcpy(p.desc, desc, sizeof desc);
    int count = desc[8] * p.local_cols, row, col;
    p.entries = new_array(count, BITS);
    for (int i = 0; i < count; i++) mpfr_set_si(p.entries[i], MARK, MPFR_RNDN);
    for (int j = 0; j < p.local_cols; j++) {
        for (int i = 0; i < p.local_rows; i++) {
            if (within(&p, i, j, &row, &col)) mpfr_set(p.entries[i + j * desc[8]], whole[row * cols + col], MPFR_RNDN);
        }
    }
    if (as_mpf) {
        p.floats = (mpf_t *)malloc((count ? count : 1) * sizeof(mpf_t));
        EXPECT(p.floats != NULL);
        for (int i = 0; i < count; i++) {
            mpf_init2(p.floats[i], BITS);
            if (mpfr_number_p(p.entries[i])) mpfr_get_f(p.floats[i], p.entries[i], MPFR_RNDN);
        }
    }
    return p;
}

static void *array(part *p) { return p->floats != NULL ? (void *)p->floats : (void *)p->entries; }

static void drop(part p) {
    int count = p.desc[8] * p.local_cols;
    for (int i = 0; p.floats != NULL && i < count; i++) mpf_clear(p.floats[i]);
    free(p.floats);
    free_array(p.entries, count);
}

// Compares the part with `whole`, of which a triangle counts (uplo, 0 for all), and frees it.
static void check(const char *what, part p, mpfr_t *whole, int uplo) {
    int row, col;
    for (int j = 0; j < p.local_cols; j++) {
        for (int i = 0; i < p.desc[8]; i++) {
            int at = i + j * p.desc[8], inside = i < p.local_rows && within(&p, i, j, &row, &col), same;
            if (p.floats != NULL && mpfr_number_p(p.entries[at])) mpfr_set_f(p.entries[at], p.floats[at], MPFR_RNDN);
            if (!inside) {
                same = mpfr_cmp_si(p.entries[at], MARK) == 0;
            } else if (uplo == 'L' ? row < col : uplo == 'U' ? row > col : 0) {
                same = p.floats != NULL ? mpf_sgn(p.floats[at]) == 0 : mpfr_nan_p(p.entries[at]);
            } else {
                same = mpfr_equal_p(p.entries[at], whole[row * p.cols + col]);
            }
            if (!same) {
                fprintf(stderr, "%s: rank %d of %d, local entry %d, %d\n", what, rank, size, i, j);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    drop(p);
}

// A copy whose numbers outside of a triangle are NaN.
static mpfr_t *triangle(int order, mpfr_t *from, char uplo) {
    mpfr_t *to = copy_array(from, order * order);
    for (int i = 0; i < order; i++) {
        for (int j = 0; j < order; j++) {
            if (uplo == 'L' ? i < j : i > j) mpfr_set_nan(to[i * order + j]);
        }
    }
    return to;
}

// The transpose as column-major arrays need it: row-major in one process, so the twins of LAPACK see A^T.
static mpfr_t *transposed(int rows, int cols, mpfr_t *from) {
    mpfr_t *to = new_array(rows * cols, BITS);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) mpfr_set(to[i + j * rows], from[i * cols + j], MPFR_RNDN);
    }
    return to;
}

// What `sunzi_r...` leaves in a column-major array, row-major and free of it.
static mpfr_t *back(int rows, int cols, mpfr_t *from) {
    mpfr_t *to = transposed(cols, rows, from);
    free_array(from, rows * cols);
    return to;
}

#define AT(p) array(&p), p.ia, p.ja, p.desc
#define ZERO(call) expect_info(call, 0, __LINE__)

static void expect_info(int64_t info, int64_t wanted, int line) {
    if (info != wanted) {
        fprintf(stderr, "line %d, rank %d of %d: info %ld, not %ld: %s\n", line, rank, size, (long)info, (long)wanted, sunzi_last_error(ctx));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// Products: A is N x K, B K x M. On mpf_t the results of one process come from mpf_t too: both hold the same numbers.
static void products(grid one, grid other, int kind, mpfr_t *a, mpfr_t *b, mpfr_t *c, mpfr_t *scalars) {
    const char *uplo = kind % 2 ? "L" : "U", *trans = kind == 2 ? "T" : "N";
    int order = kind == 2 ? K : N;
    mpfr_t *before = triangle(order, c, *uplo), *columns_a = transposed(N, K, a), *columns_b = transposed(K, M, b);
    mpfr_t *q = transposed(order, order, before), *product = transposed(N, M, c);
    ZERO(sunzi_rsyrk(ctx, uplo, trans, order, kind == 2 ? N : K, scalars, columns_a, N, scalars + 1, q, order));
    ZERO(sunzi_rgemm(ctx, "N", "N", N, M, K, scalars, columns_a, N, columns_b, K, scalars + 1, product, N));
    q = back(order, order, q), product = back(N, M, product);
    part pa = deal(one, kind, N, K, a, 0), pb = deal(other, (kind + 1) % 3, K, M, b, 0);
    part pq = deal(other, kind, order, order, before, 0), pc = deal(one, (kind + 2) % 3, N, M, c, 0);
    ZERO(psunzi_rsyrk(ctx, uplo, trans, order, kind == 2 ? N : K, scalars, AT(pa), scalars + 1, AT(pq)));
    check("syrk", pq, q, *uplo);
    ZERO(psunzi_rgemm(ctx, "N", "N", N, M, K, scalars, AT(pa), AT(pb), scalars + 1, AT(pc)));
    check("gemm", pc, product, 0);
    // Transposed operands, and a product that does not count: A and B are not read then, and may be NaN.
    part ta = deal(other, kind, K, N, columns_a, 0), tb = deal(one, kind, M, K, columns_b, 0);
    pc = deal(other, kind, N, M, c, 0);
    ZERO(psunzi_rgemm(ctx, "T", "C", N, M, K, scalars, AT(ta), AT(tb), scalars + 1, AT(pc)));
    check("gemm of transposes", pc, product, 0);
    drop(ta), drop(tb), drop(pb);
    mpfr_t *zero = new_array(1, BITS), *unit = new_array(1, BITS);
    mpfr_set_ui(*unit, 1, MPFR_RNDN);
    for (int i = 0; i < pa.desc[8] * pa.local_cols; i++) mpfr_set_nan(pa.entries[i]);
    pq = deal(other, kind, order, order, before, 0);
    ZERO(psunzi_rsyrk(ctx, uplo, trans, order, kind == 2 ? N : K, zero, AT(pa), unit, AT(pq)));
    check("no product", pq, before, *uplo);
    drop(pa);
    free_array(zero, 1), free_array(unit, 1);
    free_array(before, order * order), free_array(columns_a, N * K), free_array(columns_b, K * M);
    free_array(q, order * order), free_array(product, N * M);
}

// The numbers of a whole matrix of mpf_t, row-major, with all their limbs; frees it.
static mpfr_t *wide(part p) {
    mpfr_t *to = new_array(p.rows * p.cols, 2 * BITS);
    for (int i = 0; i < p.rows; i++) {
        for (int j = 0; j < p.cols; j++) mpfr_set_f(to[i * p.cols + j], p.floats[i + j * p.desc[8]], MPFR_RNDN);
    }
    drop(p);
    return to;
}

// Compares a part of mpf_t with what one process has, as it was outside of the lower triangle (with uplo 'L', 0 for all)
// and of the part; frees both.
static void check_floats(const char *what, part p, mpfr_t *want, int uplo) {
    int row, col;
    mpfr_t is;
    mpfr_init2(is, 2 * BITS);
    for (int j = 0; j < p.local_cols; j++) {
        for (int i = 0; i < p.local_rows; i++) {
            int at = i + j * p.desc[8], counts = within(&p, i, j, &row, &col) && (uplo != 'L' || row >= col);
            mpfr_set_f(is, p.floats[at], MPFR_RNDN);
            if (mpfr_equal_p(is, counts ? want[row * p.cols + col] : p.entries[at])) continue;
            fprintf(stderr, "%s of mpf_t: rank %d of %d, local entry %d, %d\n", what, rank, size, i, j);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    mpfr_clear(is);
    free_array(want, p.rows * p.cols);
    drop(p);
}

// All five routines on mpf_t, the bits of which are those of mpf_t in one process. A is N x K, Q definite, B N x M.
static void with_mpf(grid one, grid other, int kind, mpfr_t *a, mpfr_t *q, mpfr_t *b, mpfr_t *scalars) {
    grid alone = {MARK, 1, 1, SUNZI_ROW_MAJOR};
    mpf_t numbers[2];
    for (int i = 0; i < 2; i++) mpf_init2(numbers[i], BITS), mpfr_get_f(numbers[i], scalars[i], MPFR_RNDN);
    // Every rank computes all of it by itself, from arrays that are whole.
    int own = rank;
    rank = 0;
    part wa = deal(alone, 0, N, K, a, 1), wc = deal(alone, 0, N, N, q, 1), wq = deal(alone, 0, N, N, q, 1);
    part wb = deal(alone, 0, N, M, b, 1), wx = deal(alone, 0, N, M, b, 1), wt = deal(alone, 0, N, M, b, 1);
    ZERO(sunzi_rsyrk_mpf(ctx, "L", "N", N, K, numbers, wa.floats, wa.desc[8], numbers + 1, wc.floats, wc.desc[8]));
    ZERO(sunzi_rgemm_mpf(ctx, "N", "N", N, M, N, numbers, wq.floats, wq.desc[8], wx.floats, wx.desc[8], numbers + 1,
                         wb.floats, wb.desc[8]));
    ZERO(sunzi_rpotrf_mpf(ctx, "L", N, wq.floats, wq.desc[8]));
    ZERO(sunzi_rpotrs_mpf(ctx, "L", N, M, wq.floats, wq.desc[8], wx.floats, wx.desc[8]));
    ZERO(sunzi_rtrsm_mpf(ctx, "L", "L", "T", "N", N, M, numbers, wq.floats, wq.desc[8], wt.floats, wt.desc[8]));
    drop(wa);
    mpfr_t *square = wide(wc), *product = wide(wb), *factor = wide(wq), *solution = wide(wx), *unknowns = wide(wt);
    rank = own;
    part pa = deal(one, kind, N, K, a, 1), pc = deal(other, kind, N, N, q, 1), pq = deal(one, kind, N, N, q, 1);
    part pb = deal(one, (kind + 1) % 3, N, M, b, 1), px = deal(other, kind, N, M, b, 1), pt = deal(one, kind, N, M, b, 1);
    ZERO(psunzi_rsyrk_mpf(ctx, "L", "N", N, K, numbers, AT(pa), numbers + 1, AT(pc)));
    ZERO(psunzi_rgemm_mpf(ctx, "N", "N", N, M, N, numbers, AT(pq), AT(px), numbers + 1, AT(pb)));
    ZERO(psunzi_rpotrf_mpf(ctx, "L", N, AT(pq)));
    ZERO(psunzi_rpotrs_mpf(ctx, "L", N, M, AT(pq), AT(px)));
    ZERO(psunzi_rtrsm_mpf(ctx, "L", "L", "T", "N", N, M, numbers, AT(pq), AT(pt)));
    check_floats("syrk", pc, square, 'L');
    check_floats("gemm", pb, product, 0);
    check_floats("potrf", pq, factor, 'L');
    check_floats("potrs", px, solution, 0);
    check_floats("trsm", pt, unknowns, 0);
    drop(pa);
    for (int i = 0; i < 2; i++) mpf_clear(numbers[i]);
}

// Factors of the definite matrix Q, N x N, and solves with columns of B, N x M.
static void factors(grid one, grid other, int kind, mpfr_t *q, mpfr_t *b, mpfr_t *scalars) {
    const char *uplo = kind % 2 ? "U" : "L";
    mpfr_t *held = triangle(N, q, *uplo), *l = transposed(N, N, held), *columns = transposed(N, M, b);
    ZERO(sunzi_rpotrf(ctx, uplo, N, l, N));
    ZERO(sunzi_rpotrs(ctx, uplo, N, M, l, N, columns, N));
    mpfr_t *factor = transposed(N, N, l), *x = back(N, M, columns);
    part pq = deal(one, kind, N, N, held, 0), px = deal(other, (kind + 1) % 3, N, M, b, 0);
    ZERO(psunzi_rpotrf(ctx, uplo, N, AT(pq)));
    ZERO(psunzi_rpotrs(ctx, uplo, N, M, AT(pq), AT(px)));
    check("potrs", px, x, 0);
    for (int side = 0; side < 2; side++) {
        for (int trans = 0; trans < 2; trans++) {
            const char *sides = side ? "R" : "L", *op = trans ? "T" : "N", *diag = (kind + side) % 2 ? "U" : "N";
            int rows = side ? M : N, cols = side ? N : M;
            columns = transposed(rows, cols, b);
            ZERO(sunzi_rtrsm(ctx, sides, uplo, op, diag, rows, cols, scalars, l, N, columns, rows));
            mpfr_t *want = back(rows, cols, columns);
            px = deal(other, kind, rows, cols, b, 0);
            ZERO(psunzi_rtrsm(ctx, sides, uplo, op, diag, rows, cols, scalars, AT(pq), AT(px)));
            check("trsm", px, want, 0);
            free_array(want, rows * cols);
        }
    }
    check("potrf", pq, factor, *uplo);
    free_array(held, N * N), free_array(l, N * N), free_array(factor, N * N), free_array(x, N * M);
}

// One info on all ranks, whichever rank is wrong, and arrays as they were.
static void refusals(grid on, mpfr_t *q, mpfr_t *b) {
    part p = deal(on, 0, N, N, q, 0), x = deal(on, 1, N, M, b, 0);
    int bad[9], last = rank == size - 1;
    struct {
        int entry, value;
    } wrong[] = {{1, 2}, {2, 12345}, {3, -1}, {4, -1}, {5, 0}, {6, 0}, {7, -1}, {8, 50}, {9, 0}};
    for (int i = 0; i < 9; i++) {
        memcpy(bad, p.desc, sizeof bad);
        if (last) bad[wrong[i].entry - 1] = wrong[i].value;
        expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, 1, 1, bad), -600 - wrong[i].entry, __LINE__);
        EXPECT(strlen(sunzi_last_error(ctx)) > 0);
        EXPECT((sunzi_last_status(ctx) == SUNZI_COMMUNICATION) == !last);
        expect_info(psunzi_rpotrs(ctx, "L", N, M, p.entries, 1, 1, p.desc, x.entries, 1, 1, bad), -1100 - wrong[i].entry, __LINE__);
    }
    const char *uplo = last ? "X" : "L";
    expect_info(psunzi_rpotrf(ctx, uplo, N, p.entries, 1, 1, p.desc), -1, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", last ? -1 : N, p.entries, 1, 1, p.desc), -2, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", last ? N + 4 : N, p.entries, 1, 1, p.desc), -2, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, last ? 0 : 1, 1, p.desc), -4, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, 1, last ? N + 30 : 1, p.desc), -5, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, 1, 1, last ? NULL : p.desc), -6, __LINE__);
    expect_info(psunzi_rpotrf(ctx, "L", N, rank == 0 ? NULL : p.entries, 1, 1, p.desc), -3, __LINE__);
    if (size > 1) {
        // What is right on each rank, but not the same on all.
        expect_info(psunzi_rpotrf(ctx, last ? "U" : "L", N, p.entries, 1, 1, p.desc), -1, __LINE__);
        expect_info(psunzi_rpotrf(ctx, "L", last ? N - 1 : N, p.entries, 1, 1, p.desc), -2, __LINE__);
        expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, last ? 2 : 1, 1, p.desc), -4, __LINE__);
        memcpy(bad, p.desc, sizeof bad);
        bad[2] += last;
        expect_info(psunzi_rpotrf(ctx, "L", N, p.entries, 1, 1, bad), -603, __LINE__);
        // Scalars count too.
        mpfr_t *scalar = new_array(1, BITS);
        mpfr_set_si(scalar[0], last, MPFR_RNDN);
        int64_t info = psunzi_rtrsm(ctx, "L", "L", "N", "N", N, M, scalar, p.entries, 1, 1, p.desc, AT(x));
        expect_info(info, -7, __LINE__);
        free_array(scalar, 1);
        // A number that is none is the array of the rank that has it, and has no number on the others.
        mpfr_t *bad_number = copy_array(q, N * N);
        mpfr_set_nan(bad_number[0]);
        part spoiled_part = deal(on, 0, N, N, bad_number, 0);
        int row, col, has = 0;
        for (int i = 0; i < spoiled_part.local_rows; i++) {
            has |= spoiled_part.local_cols > 0 && within(&spoiled_part, i, 0, &row, &col) && row == 0 && col == 0;
        }
        expect_info(psunzi_rpotrf(ctx, "L", N, AT(spoiled_part)), has ? -3 : -10000 - SUNZI_COMMUNICATION, __LINE__);
        drop(spoiled_part);
        free_array(bad_number, N * N);
        // Other routines than the other ranks'.
        info = last ? psunzi_rpotrf(ctx, "L", N, p.entries, 1, 1, p.desc)
                    : psunzi_rpotrs(ctx, "L", N, M, p.entries, 1, 1, p.desc, x.entries, 1, 1, x.desc);
        expect_info(info, -10000 - SUNZI_INVALID_ARGUMENT, __LINE__);
        EXPECT(sunzi_mpi_grid(ctx, 9, last ? size : 1, last ? 1 : size, SUNZI_ROW_MAJOR) == SUNZI_INVALID_ARGUMENT);
    }
    EXPECT(sunzi_mpi_grid(ctx, 9, 1, size + 1, SUNZI_ROW_MAJOR) == SUNZI_INVALID_SIZE);
    EXPECT(sunzi_mpi_grid(ctx, 9, 1, 1, 7) == SUNZI_INVALID_ARGUMENT);
    // A pivot that is not positive, and a factor with a zero on its diagonal, the seventh.
    mpfr_t *spoiled = copy_array(q, N * N);
    mpfr_set_si(spoiled[6 * N + 6], -1, MPFR_RNDN);
    part s = deal(on, 2, N, N, spoiled, 0);
    expect_info(psunzi_rpotrf(ctx, "L", N, AT(s)), 7, __LINE__);
    check("potrf that fails", s, spoiled, 0);
    mpfr_set_zero(spoiled[6 * N + 6], 1);
    s = deal(on, 2, N, N, spoiled, 0);
    expect_info(psunzi_rpotrs(ctx, "L", N, M, AT(s), AT(x)), 7, __LINE__);
    mpfr_t *unit = new_array(1, BITS);
    mpfr_set_ui(*unit, 1, MPFR_RNDN);
    expect_info(psunzi_rtrsm(ctx, "L", "L", "N", "N", N, M, unit, AT(s), AT(x)), 7, __LINE__);
    // Without rows nothing is done, wherever the part would begin.
    ZERO(psunzi_rtrsm(ctx, "L", "L", "N", "N", 0, M, unit, s.entries, 1000, 1, s.desc, x.entries, 1, 1, x.desc));
    ZERO(psunzi_rpotrf(ctx, "L", 0, AT(s)));
    check("refused solves", x, b, 0);
    // With a scalar of 0 neither the triangle nor the right sides are looked at.
    mpfr_t *nothing = new_array(N * M, BITS);
    x = deal(on, 1, N, M, nothing, 0);
    int row, col;
    for (int i = 0; i < s.desc[8] * s.local_cols; i++) mpfr_set_nan(s.entries[i]);
    for (int j = 0; j < x.local_cols; j++) {
        for (int i = 0; i < x.local_rows; i++) {
            if (within(&x, i, j, &row, &col)) mpfr_set_nan(x.entries[i + j * x.desc[8]]);
        }
    }
    ZERO(psunzi_rtrsm(ctx, "L", "L", "N", "N", N, M, nothing, AT(s), AT(x)));
    check("trsm times 0", x, nothing, 0);
    free_array(nothing, N * M);
    drop(s);
    free_array(unit, 1), free_array(spoiled, N * N);
    check("refused factors", p, q, 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    // Two grids, as blacs_gridinit makes them; a rank may lie beyond one, and has its own number for it then.
    grid grids[2] = {{3, 1, 1, SUNZI_ROW_MAJOR}, {4, size, 1, SUNZI_COL_MAJOR}};
    while ((grids[0].rows + 1) * (grids[0].rows + 1) <= size) grids[0].rows++;
    grids[0].cols = size / grids[0].rows;
    if (rank >= grids[0].rows * grids[0].cols) grids[0].context = -1;
    for (int i = 0; i < 2; i++) CALL(ctx, sunzi_mpi_grid(ctx, grids[i].context, grids[i].rows, grids[i].cols, grids[i].order));
    mpfr_t *a = new_array(N * N, BITS), *b = new_array(N * N, BITS), *c = new_array(N * N, BITS), *q = new_array(N * N, BITS);
    mpfr_t *scalars = new_array(2, BITS);
    fill_array(a, N * N, 1);
    fill_array(b, N * N, 2);
    fill_array(c, N * N, 3);
    mpfr_set_d(scalars[0], -0.75, MPFR_RNDN);
    mpfr_set_d(scalars[1], 1.5, MPFR_RNDN);
    sunzi_matrix square = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, N, N, a, N), gram = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, N, N, q, N);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &square, NULL, &gram));
    for (int one = 0; one < 2; one++) {
        for (int other = 0; other < 2; other++) {
            for (int kind = 0; kind < 3; kind++) {
                products(grids[one], grids[other], kind, a, b, c, scalars);
                with_mpf(grids[one], grids[other], kind, a, q, b, scalars);
                factors(grids[one], grids[other], kind, q, b, scalars);
            }
        }
    }
    refusals(grids[1], q, b);
    sunzi_context_free(ctx);
    free_array(a, N * N), free_array(b, N * N), free_array(c, N * N), free_array(q, N * N), free_array(scalars, 2);
    if (rank == 0) printf("scalapack: %d ranks, the bits of one process\n", size);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
