// What one call over ranks takes of its node, beside what was planned: by the library's own count, and as the system
// sees the processes, with MPI and what the allocator keeps. Run by mpirun on one machine, afresh for each call:
//
//   mpirun -n RANKS plan_use VERB ORDER COLUMNS BITS norm|entrywise free|limit
//
// VERB is syrk, gemm, cholesky, trsm, cholesky_solve, factor_solve, solve or inverse. Products contract twice as many
// rows as ORDER; `limit` has the planned bytes of the node as the memory limit.
#define _GNU_SOURCE
#include "example.h"

#include <malloc.h>
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_RANKS = 64 };

// Kilobytes of all ranks: each its own pages, and its proportional part of those that it shares.
typedef struct pages {
    long anonymous, shared;
} pages;

// What a process beside the ranks looks at, and what it has seen.
typedef enum state { IDLE, FIRST, WATCH, END } state;
typedef struct watch {
    volatile state state;
    volatile int ranks;
    pid_t ids[MOST_RANKS];
    pages first, most;
    volatile long samples;
} watch;

static int rank, size, grid_rows, grid_cols, order, columns, bits;

// Adds what one rank has.
static void add(pages *all, pid_t id) {
    char path[64], line[256];
    long kilobytes;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)id);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        // Pages of files are the program's and its libraries', which others may share.
        if (sscanf(line, "Pss_Anon: %ld", &kilobytes) == 1) all->anonymous += kilobytes;
        if (sscanf(line, "Pss_Shmem: %ld", &kilobytes) == 1) all->shared += kilobytes;
    }
    if (file != NULL) fclose(file);
}

// While ranks unmap a window one after the other, its pages count more for those that still have it: a look in one
// order alone can count them twice, so the least of both orders holds.
static pages look(const watch *w) {
    pages up = {0, 0}, down = {0, 0};
    for (int at = 0; at < w->ranks; at++) add(&up, w->ids[at]);
    for (int at = w->ranks - 1; at >= 0; at--) add(&down, w->ids[at]);
    return up.anonymous + up.shared < down.anonymous + down.shared ? up : down;
}

static void watcher(watch *w) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (w->state != END) {
        if (w->state == IDLE) {
            usleep(200);
            continue;
        }
        pages now = look(w);
        if (w->state == FIRST) {
            w->first = w->most = now;
            w->state = IDLE;
        } else {
            if (now.anonymous + now.shared > w->most.anonymous + w->most.shared) w->most = now;
            w->samples++;
        }
    }
    _exit(0);
}

static void set(watch *w, state state) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        w->state = state;
        while (state == FIRST && w->state == FIRST) usleep(200);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// A matrix on Elemental's [MC,MR], or whole rows, without entries until it is filled.
typedef struct part {
    sunzi_dist_matrix dist;
    int rows, cols, all_rows, all_cols, by_rows;
    mpfr_t *entries;
} part;

static int share(int length, int count, int number) { return length / count + (number < length % count); }

static part describe(int rows, int cols, int by_rows, mpfr_t *entries) {
    part p = {.all_rows = rows, .all_cols = cols, .by_rows = by_rows, .entries = entries};
    p.rows = by_rows ? share(rows, size, rank) : share(rows, grid_rows, rank % grid_rows);
    p.cols = by_rows ? cols : share(cols, grid_cols, rank / grid_rows);
    sunzi_matrix local = sunzi_mpfr_matrix(SUNZI_COL_MAJOR, p.rows, p.cols, entries, p.rows > 0 ? p.rows : 1);
    p.dist = by_rows ? sunzi_dist_rows(local, size)
                     : sunzi_dist_elemental(local, rows, cols, grid_rows, grid_cols, SUNZI_ALONG_GRID_ROW,
                                            SUNZI_ALONG_GRID_COL, 0, 0);
    return p;
}

// Numbers of full length: small ones beside a diagonal, the same in both triangles, or any.
static part fill(part p, double diagonal) {
    size_t count = (size_t)p.rows * (size_t)p.cols;
    mpfr_t *entries = new_array(count, bits);
    fill_array(entries, count, 7 + (unsigned long)rank);
    for (size_t at = 0; at < count && diagonal != 0; at++) {
        int row = (int)(at % (size_t)p.rows) * grid_rows + rank % grid_rows;
        int col = (int)(at / (size_t)p.rows) * grid_cols + rank / grid_rows;
        mpfr_set_d(entries[at], row == col ? diagonal : 1.0, MPFR_RNDN);
        if (row != col) mpfr_div_ui(entries[at], entries[at], (unsigned long)(1000 + row + col), MPFR_RNDN);
    }
    return describe(p.all_rows, p.all_cols, p.by_rows, entries);
}

static sunzi_context *ranks(uint64_t memory_bytes, int accuracy) {
    sunzi_options options = sunzi_options_default();
    sunzi_context *ctx = NULL;
    options.threads = 1;
    options.memory_bytes = memory_bytes;
    options.accuracy = accuracy;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    return ctx;
}

typedef enum verb { SYRK, GEMM, CHOLESKY, TRSM, CHOLESKY_SOLVE, FACTOR_SOLVE, SOLVE, INVERSE, VERBS } verb;

static const char *name[VERBS] = {"syrk",           "gemm",         "cholesky", "trsm",
                                  "cholesky_solve", "factor_solve", "solve",    "inverse"};

// Solves with a factor in a triangle have the plan of a triangular solve, inverses that of a solve.
static sunzi_status ask(sunzi_context *ctx, verb what, part *a, part *b, part *c, sunzi_mpi_plan *plan) {
    switch (what) {
    case SYRK: return sunzi_mpi_plan_syrk(ctx, SUNZI_TRANS, &a->dist, &c->dist, bits, bits, plan);
    case GEMM:
        return sunzi_mpi_plan_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, &a->dist, &b->dist, &c->dist, bits, bits, plan);
    case CHOLESKY: return sunzi_mpi_plan_cholesky(ctx, SUNZI_LOWER, &a->dist, bits, plan);
    case TRSM:
    case CHOLESKY_SOLVE:
        return sunzi_mpi_plan_trsm(ctx, SUNZI_LEFT, SUNZI_NON_UNIT, &a->dist, &b->dist, bits, bits, plan);
    case FACTOR_SOLVE: return sunzi_mpi_plan_solve(ctx, SUNZI_LOWER, NULL, &b->dist, bits, plan);
    default: return sunzi_mpi_plan_solve(ctx, SUNZI_LOWER, &a->dist, &b->dist, bits, plan);
    }
}

static sunzi_status call(sunzi_context *ctx, verb what, sunzi_mpi_factor *factor, part *a, part *b, part *c) {
    switch (what) {
    case SYRK: return sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &a->dist, NULL, &c->dist);
    case GEMM: return sunzi_mpi_gemm(ctx, SUNZI_TRANS, SUNZI_NO_TRANS, NULL, &a->dist, &b->dist, NULL, &c->dist);
    case CHOLESKY: return sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &a->dist);
    case TRSM:
        return sunzi_mpi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_NO_TRANS, SUNZI_NON_UNIT, NULL, &a->dist, &b->dist);
    case CHOLESKY_SOLVE: return sunzi_mpi_cholesky_solve(ctx, SUNZI_LOWER, &a->dist, &b->dist);
    case FACTOR_SOLVE: return sunzi_mpi_factor_solve(ctx, factor, &b->dist);
    case SOLVE: return sunzi_mpi_solve(ctx, SUNZI_LOWER, &a->dist, &b->dist);
    default: return sunzi_mpi_inverse(ctx, SUNZI_LOWER, &a->dist, &b->dist);
    }
}

static uint64_t sum(uint64_t own) {
    uint64_t all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void measure(verb what, int accuracy, int limited, watch *w) {
    int product = what == SYRK || what == GEMM, rows = product ? 2 * order : order;
    part a = describe(rows, order, what == SYRK, NULL);
    part b = describe(rows, what == INVERSE ? order : columns, 0, NULL);
    part c = describe(order, what == GEMM ? columns : order, 0, NULL);
    sunzi_mpi_plan plan;
    sunzi_context *ctx = ranks(0, accuracy);
    CALL(ctx, ask(ctx, what, &a, &b, &c, &plan));
    sunzi_context_free(ctx);
    a = fill(a, product ? 0 : 9.0);
    if (what != SYRK && what != CHOLESKY) b = fill(b, 0);
    if (product) c = fill(c, 0);
    sunzi_mpi_factor *factor = NULL;
    if (what == FACTOR_SOLVE) {
        ctx = ranks(0, accuracy);
        CALL(ctx, sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 0, &a.dist, &factor));
        sunzi_context_free(ctx);
    }
    ctx = ranks(limited ? plan.node_bytes : 0, accuracy);
    malloc_trim(0);
    set(w, FIRST);
    set(w, WATCH);
    sunzi_status status = call(ctx, what, factor, &a, &b, &c);
    set(w, IDLE);
    CALL(ctx, status);
    sunzi_report told;
    CALL(ctx, sunzi_last_report(ctx, &told));
    double reported = 1e-6 * (double)sum(told.planned_bytes), heap = 1e-6 * (double)sum(told.peak_bytes);
    if (rank == 0) {
        double shared = 1.024e-3 * (double)(w->most.shared - w->first.shared);
        double used = 1.024e-3 * (double)(w->most.anonymous - w->first.anonymous) + shared;
        printf("%-14s %5d x %-5d %d ranks %-9s %-5s: planned %7.1f MB, of the node %7.1f, counted %7.1f, used %7.1f "
               "(windows %6.1f); planned / used %.2f, of the node %.2f; planned / counted %.2f\n",
               name[what], order, b.all_cols, size, accuracy == SUNZI_NORM ? "norm" : "entrywise",
               limited ? "limit" : "free", reported, 1e-6 * (double)plan.node_bytes, heap + shared, used, shared,
               reported / used, 1e-6 * (double)plan.node_bytes / used, reported / (heap + shared));
        // The heap of a process that has counted its own bytes is never above the plan of its node.
        EXPECT(heap <= 1e-6 * (double)plan.node_bytes + 0.3 * size && heap <= reported + 0.3 * size);
    }
    sunzi_mpi_factor_free(factor);
    sunzi_context_free(ctx);
}

int main(int argc, char **argv) {
    watch *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(w != MAP_FAILED && argc == 7);
    // Before MPI knows of this process.
    pid_t child = fork();
    if (child == 0) watcher(w);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    grid_rows = size % 2 == 0 ? 2 : 1;
    grid_cols = size / grid_rows;
    EXPECT(size <= MOST_RANKS);
    int own = (int)getpid(), ids[MOST_RANKS] = {0};
    MPI_Gather(&own, 1, MPI_INT, ids, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int at = 0; at < size; at++) w->ids[at] = ids[at];
    w->ranks = size;
    if (rank != 0) w->state = END;
    verb what = SYRK;
    while (what < VERBS && strcmp(argv[1], name[what]) != 0) what++;
    EXPECT(what < VERBS);
    order = atoi(argv[2]), columns = atoi(argv[3]), bits = atoi(argv[4]);
    measure(what, strcmp(argv[5], "norm") == 0 ? SUNZI_NORM : SUNZI_ENTRYWISE, strcmp(argv[6], "limit") == 0, w);
    w->state = END;
    MPI_Finalize();
    return 0;
}
