// What calls over ranks will take, asked before there is a matrix, beside what they took: no more than the plan, which
// holds for the descriptions of the matrices alone. Run by mpirun.
#include "example.h"

#include <mpi.h>

enum { K = 700, N = 420, M = 260, BITS = 320 };

static int rank, size, grid_rows, grid_cols;

// A matrix on Elemental's [MC,MR], whole rows (1), or all of it on every rank (2); without entries until it is
// allocated.
typedef struct part {
    sunzi_dist_matrix dist;
    int rows, cols, by_rows;
    mpfr_t *entries;
} part;

static int share(int length, int count, int number) { return length / count + (number < length % count); }

static part describe(int rows, int cols, int by_rows, mpfr_t *entries) {
    part p;
    memset(&p, 0, sizeof p);
    int row = rank % grid_rows, col = rank / grid_rows;
    p.by_rows = by_rows;
    p.rows = by_rows == 2 ? rows : by_rows ? share(rows, size, rank) : share(rows, grid_rows, row);
    p.cols = by_rows ? cols : share(cols, grid_cols, col);
    p.entries = entries;
    sunzi_matrix local = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, p.rows, p.cols, entries, p.rows > 0 ? p.rows : 1);
    p.dist = by_rows == 1 ? sunzi_dist_rows(local, size)
                          : sunzi_dist_elemental(local, rows, cols, grid_rows, grid_cols,
                                                 by_rows ? SUNZI_ALONG_NONE : SUNZI_ALONG_GRID_ROW,
                                                 by_rows ? SUNZI_ALONG_NONE : SUNZI_ALONG_GRID_COL, 0, 0);
    return p;
}

// The same with numbers: small ones where there is a diagonal, the same in both triangles.
static part allocate(part p, double diagonal) {
    size_t count = (size_t)p.rows * (size_t)p.cols;
    mpfr_t *entries = new_array(count, BITS);
    int rows = (int)p.dist.rows, cols = (int)p.dist.cols;
    fill_array(entries, count, 7 + (unsigned long)rank);
    for (int j = 0; j < p.cols && diagonal != 0; j++) {
        for (int i = 0; i < p.rows; i++) {
            mpfr_ptr entry = entries[(size_t)j * (size_t)p.rows + (size_t)i];
            int row = i * grid_rows + rank % grid_rows, col = j * grid_cols + rank / grid_rows;
            mpfr_set_d(entry, row == col ? diagonal : 1.0 / (1000 + row + col), MPFR_RNDN);
        }
    }
    return describe(rows < 0 ? K : rows, cols, p.by_rows, entries);
}

static void release(part p) { free_array(p.entries, (size_t)p.rows * p.cols); }

static sunzi_context *ranks(uint64_t memory_bytes) {
    sunzi_options options = sunzi_options_default();
    sunzi_context *ctx = NULL;
    options.threads = 1;
    options.memory_bytes = memory_bytes;
    options.accuracy = SUNZI_NORM; // entry by entry the bytes depend on the numbers
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    return ctx;
}

typedef enum verb { SYRK, GEMM, CHOLESKY, TRSM, SOLVE, BOTH, SOLVE_BOTH, UNIT, RIGHT, UPPER, STAR, VERBS } verb;

static const char *name[VERBS] = {"syrk", "gemm", "cholesky", "trsm", "solve", "cholesky of both triangles",
                                  "solve with both triangles", "trsm with ones", "trsm from the right",
                                  "cholesky of the upper triangle", "trsm on every rank"};

// The triangle of a factorisation, and the diagonal of a triangular solve.
static int triangle(verb what) {
    if (what == UPPER) return SUNZI_UPPER;
    return what == BOTH || what == SOLVE_BOTH ? SUNZI_BOTH : SUNZI_LOWER;
}
static int factors(verb what) { return what == CHOLESKY || what == BOTH || what == UPPER; }
static int side(verb what) { return what == RIGHT ? SUNZI_RIGHT : SUNZI_LEFT; }
static int diagonal(verb what) { return what == UNIT ? SUNZI_UNIT : SUNZI_NON_UNIT; }

static sunzi_status ask(sunzi_context *ctx, verb what, part *a, part *b, part *c, sunzi_mpi_plan *plan) {
    switch (what) {
    case SYRK: return sunzi_mpi_plan_syrk(ctx, SUNZI_TRANS, &a->dist, &c->dist, BITS, BITS, plan);
    case GEMM:
        return sunzi_mpi_plan_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, &a->dist, &b->dist, &c->dist, BITS, BITS, plan);
    case CHOLESKY:
    case UPPER:
    case BOTH: return sunzi_mpi_plan_cholesky(ctx, triangle(what), &c->dist, BITS, plan);
    case TRSM:
    case RIGHT:
    case STAR:
    case UNIT:
        return sunzi_mpi_plan_trsm(ctx, side(what), diagonal(what), &a->dist, &b->dist, BITS, BITS, plan);
    default: return sunzi_mpi_plan_solve(ctx, triangle(what), &a->dist, &b->dist, BITS, plan);
    }
}

static sunzi_status call(sunzi_context *ctx, verb what, part *a, part *b, part *c) {
    int lower = triangle(what);
    switch (what) {
    case SYRK: return sunzi_mpi_syrk(ctx, lower, SUNZI_TRANS, NULL, &a->dist, NULL, &c->dist);
    case GEMM: return sunzi_mpi_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, NULL, &a->dist, &b->dist, NULL, &c->dist);
    case CHOLESKY:
    case UPPER:
    case BOTH: return sunzi_mpi_cholesky(ctx, lower, &c->dist);
    case TRSM:
    case RIGHT:
    case STAR:
    case UNIT:
        return sunzi_mpi_trsm(ctx, side(what), lower, SUNZI_NO_TRANS, diagonal(what), NULL, &a->dist, &b->dist);
    default: return sunzi_mpi_solve(ctx, lower, &a->dist, &b->dist);
    }
}

static void report(sunzi_context *ctx, verb what, const char *how, sunzi_mpi_plan plan) {
    sunzi_report told;
    CALL(ctx, sunzi_last_report(ctx, &told));
    if (rank == 0 || told.peak_bytes > plan.rank_bytes) {
        printf("%s on %d%s: %.1f MB of %.1f planned on rank %d, %.1f on its node\n", name[what], size, how,
               1e-6 * (double)told.peak_bytes, 1e-6 * (double)plan.rank_bytes, rank, 1e-6 * (double)plan.node_bytes);
    }
    // Windows that ranks share are not counted; on one rank there are none but those of its own heap.
    EXPECT(told.peak_bytes <= plan.rank_bytes + (64 << 10));
    // The plan of a factor with its solve counts what the context keeps of the one beside the other.
    int close = size == 1 && *how == 0 && what != SOLVE && what != SOLVE_BOTH;
    EXPECT(!close || 1.05 * (double)told.peak_bytes + (1 << 20) >= (double)plan.rank_bytes);
}

// The numbers that a call has written over.
static part again(verb what, part c) {
    release(c);
    return allocate(describe(N, what == GEMM ? M : N, 0, NULL), factors(what) ? 9.0 : 0);
}

// Asks, then allocates and calls, without a limit and with the node's bytes as one.
static void check(verb what) {
    int product = what == SYRK || what == GEMM;
    part a = product ? describe(K, N, what == SYRK, NULL) : describe(N, N, 0, NULL);
    int rows = product ? K : what == RIGHT ? M : N, cols = what == RIGHT ? N : M;
    part b = describe(rows, cols, what == STAR ? 2 : 0, NULL);
    part c = describe(N, what == GEMM ? M : N, 0, NULL);
    sunzi_mpi_plan plan, own;
    sunzi_context *ctx = ranks(0);
    CALL(ctx, ask(ctx, what, &a, &b, &c, &plan));
    EXPECT(plan.copied_bytes <= plan.rank_bytes && plan.rank_bytes <= plan.node_bytes);
    sunzi_context_free(ctx);
    a = allocate(a, product ? 0 : 9.0);
    b = allocate(b, 0);
    c = allocate(c, factors(what) ? 9.0 : 0);
    ctx = ranks(0);
    CALL(ctx, call(ctx, what, &a, &b, &c));
    report(ctx, what, "", plan);
    sunzi_context_free(ctx);
    c = again(what, c);
    ctx = ranks(plan.node_bytes);
    CALL(ctx, ask(ctx, what, &a, &b, &c, &own));
    CALL(ctx, call(ctx, what, &a, &b, &c));
    report(ctx, what, ", limited", own);
    sunzi_context_free(ctx);
    c = again(what, c);
    // One rank without a limit, which keeps its copies for the next call.
    ctx = ranks(rank == 0 ? 0 : 2 * plan.node_bytes);
    CALL(ctx, ask(ctx, what, &a, &b, &c, &own));
    CALL(ctx, call(ctx, what, &a, &b, &c));
    report(ctx, what, ", unlike", own);
    sunzi_context_free(ctx);
    // Of unlike limits, at some step too small or not: nobody is left waiting, and all come to the same end.
    for (uint64_t part = 0; part < 16; part++) {
        ctx = ranks(rank == size - 1 ? part * plan.node_bytes / 20 + 1 : plan.node_bytes);
        int fits = ask(ctx, what, &a, &b, &c, &own) == SUNZI_OK, all = 0;
        MPI_Allreduce(&fits, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(all == 0 || (all == size && part > 0));
        EXPECT(part > 0 || call(ctx, what, &a, &b, &c) != SUNZI_OK);
        sunzi_context_free(ctx);
    }
    release(a);
    release(b);
    release(c);
}

// A result that is an array of limbs is in no copy, but its entries come in messages.
static void limbs(void) {
    part c = describe(N, N, 0, NULL), a = describe(K, N, 1, NULL);
    sunzi_mpi_plan copied, plan;
    sunzi_context *ctx = ranks(0);
    CALL(ctx, sunzi_mpi_plan_cholesky(ctx, SUNZI_LOWER, &c.dist, BITS, &copied));
    c.dist.local = sunzi_limb_matrix(SUNZI_COL_MAJOR, c.rows, c.cols, NULL, NULL, c.rows, BITS);
    CALL(ctx, sunzi_mpi_plan_cholesky(ctx, SUNZI_LOWER, &c.dist, BITS, &plan));
    EXPECT(plan.copied_bytes == 0 && copied.copied_bytes > 0 && plan.rank_bytes < copied.rank_bytes);
    EXPECT(sunzi_mpi_plan_syrk(ctx, SUNZI_TRANS, &a.dist, &c.dist, 1, BITS, &plan) == SUNZI_PRECISION);
    EXPECT(sunzi_mpi_plan_syrk(ctx, SUNZI_TRANS, &a.dist, &c.dist, BITS, INT64_C(1) << 31, &plan) == SUNZI_PRECISION);
    sunzi_context_free(ctx);
}

// Limbs that no result can be made in, as their rows follow each other in memory: a copy that a limit has to have room
// for.
static void turned_limbs(verb what) {
    int right = what == RIGHT;
    part a = right ? allocate(describe(N, N, 0, NULL), 9.0) : describe(N, N, 0, NULL);
    part c = describe(right ? M : N, N, 0, NULL), *operand = right ? &a : &c;
    size_t count = (size_t)c.rows * (size_t)c.cols, width = (BITS + 63) / 64;
    uint64_t *heads = calloc(count + 1, 8), *limbs = calloc(count * width + 1, 8);
    for (uint64_t limited = 0, bytes = 0; limited < 2; limited++) {
        sunzi_context *ctx = ranks(bytes);
        sunzi_mpi_plan plan;
        memset(heads, 0, count * 8);
        memset(limbs, 0, count * width * 8);
        for (int j = 0; j < c.cols && !right; j++) {
            for (int i = 0; i < c.rows; i++) {
                if (i * grid_rows + rank % grid_rows != j * grid_cols + rank / grid_rows) continue;
                size_t at = (size_t)j * (size_t)c.rows + (size_t)i;
                heads[at] = UINT64_C(1) << 2 | 2; // 1
                limbs[at * width + width - 1] = UINT64_C(1) << 63;
            }
        }
        c.dist.local = sunzi_limb_matrix(SUNZI_COL_MAJOR, c.rows, c.cols, heads, limbs, c.rows > 0 ? c.rows : 1, BITS);
        CALL(ctx, ask(ctx, what, operand, &c, &c, &plan));
        EXPECT(plan.copied_bytes >= count * (1 + width) * 8);
        CALL(ctx, call(ctx, what, operand, &c, &c));
        report(ctx, what, limited ? " of limbs, limited" : " of limbs", plan);
        bytes = plan.node_bytes;
        sunzi_context_free(ctx);
    }
    free(heads);
    free(limbs);
    if (right) release(a);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    grid_rows = size % 2 == 0 ? 2 : 1;
    grid_cols = size / grid_rows;
    for (int what = SYRK; what < VERBS; what++) check((verb)what);
    limbs();
    turned_limbs(RIGHT);
    turned_limbs(UPPER);
    MPI_Finalize();
    return 0;
}
