// What ranks may get wrong together: arguments that are right on each rank and differ between ranks, operands that share
// memory, and a communicator that has some of the ranks. One error on all ranks that names the argument and its values,
// none of them left waiting, and the next call works; and what a fork of a rank may do. Run by mpirun.
#include "example.h"

#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 13, M = 5, BITS = 200, WIDE = 320 };

static int rank, size, last;
static sunzi_context *ctx;

static sunzi_matrix described(int rows, int cols, mpfr_t *entries) {
    return sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rows, cols, entries, cols > 0 ? cols : 1);
}

// Whole rows of a matrix that every rank has: this rank's share where it lies.
static sunzi_dist_matrix share(int rows, int cols, mpfr_t *whole) {
    int from = rows * rank / size, to = rows * (rank + 1) / size;
    return sunzi_dist_rows(described(to - from, cols, whole + from * cols), size);
}

static void same_share(const char *what, int rows, int cols, mpfr_t *got, mpfr_t *want, int uplo) {
    for (int i = rows * rank / size; i < rows * (rank + 1) / size; i++) {
        for (int j = 0; j < cols; j++) {
            if (uplo == SUNZI_LOWER && j > i) continue;
            if (mpfr_equal_p(got[i * cols + j], want[i * cols + j])) continue;
            fprintf(stderr, "%s: rank %d of %d, entry %d, %d\n", what, rank, size, i, j);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

// The same status on all ranks, and a message with the name of the argument and with both values.
static void refused(sunzi_status status, const char *argument, const char *first, const char *other, int line) {
    const char *said = sunzi_last_error(ctx);
    if (status != SUNZI_INVALID_ARGUMENT || strncmp(said, argument, strlen(argument)) != 0 || strstr(said, first) == NULL ||
        strstr(said, other) == NULL || strstr(said, "differs between ranks") == NULL) {
        fprintf(stderr, "line %d, rank %d: %s: '%s'\n", line, rank, sunzi_status_text(status), said);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#define DIFFERS(call, argument, first, other) refused(call, argument, first, other, __LINE__)

// Choices and scalars that the last rank has otherwise.
static void choices(mpfr_t *q, mpfr_t *l, mpfr_t *b) {
    mpfr_t *c = new_array(N * N, BITS), *numbers = new_array(3, BITS), *wide = new_array(1, WIDE);
    mpfr_set_d(numbers[0], 0, MPFR_RNDN);
    mpfr_set_d(numbers[1], 1.5, MPFR_RNDN);
    mpfr_set_d(numbers[2], 1.5, MPFR_RNDN);
    mpfr_nextabove(numbers[2]);
    mpfr_set_d(wide[0], 1.5, MPFR_RNDN);
    sunzi_matrix zero = described(1, 1, numbers), some = described(1, 1, numbers + 1), near = described(1, 1, numbers + 2);
    sunzi_matrix also = described(1, 1, wide);
    sunzi_dist_matrix dq = share(N, N, q), dl = share(N, N, l), db = share(N, M, b), dc = share(N, N, c);
    int lower = SUNZI_LOWER, upper = last ? SUNZI_UPPER : SUNZI_LOWER, trans = last ? SUNZI_TRANS : SUNZI_NO_TRANS;
    int side = last ? SUNZI_RIGHT : SUNZI_LEFT, diag = last ? SUNZI_UNIT : SUNZI_NON_UNIT, none = SUNZI_NO_TRANS;
    const sunzi_matrix *gone = last ? &zero : &some, *nulls = last ? NULL : &some, *close = last ? &near : &some;
    // Triangular solves.
    DIFFERS(sunzi_mpi_trsm(ctx, side, lower, none, SUNZI_NON_UNIT, NULL, &dl, &db), "side", "Left on rank 0", "Right on rank");
    DIFFERS(sunzi_mpi_trsm(ctx, SUNZI_LEFT, upper, none, SUNZI_NON_UNIT, NULL, &dl, &db), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_trsm(ctx, SUNZI_LEFT, lower, trans, SUNZI_NON_UNIT, NULL, &dl, &db), "trans", "NoTranspose", " Transpose");
    DIFFERS(sunzi_mpi_trsm(ctx, SUNZI_LEFT, lower, none, diag, NULL, &dl, &db), "diag", "NonUnit", " Unit");
    DIFFERS(sunzi_mpi_trsm(ctx, SUNZI_LEFT, lower, none, SUNZI_NON_UNIT, gone, &dl, &db), "alpha", "1.5", " 0");
    DIFFERS(sunzi_mpi_trsm(ctx, SUNZI_LEFT, lower, none, SUNZI_NON_UNIT, nulls, &dl, &db), "alpha", "1.5", "null");
    // Products: without alpha the operands would not be taken in, without beta nothing is added.
    DIFFERS(sunzi_mpi_syrk(ctx, upper, none, NULL, &dq, NULL, &dc), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_syrk(ctx, last ? SUNZI_BOTH : lower, none, NULL, &dq, NULL, &dc), "uplo", "Lower", "both");
    DIFFERS(sunzi_mpi_syrk(ctx, lower, trans, NULL, &dq, NULL, &dc), "trans", "NoTranspose", " Transpose");
    DIFFERS(sunzi_mpi_syrk(ctx, lower, none, gone, &dq, NULL, &dc), "alpha", "1.5", " 0");
    DIFFERS(sunzi_mpi_syrk(ctx, lower, none, NULL, &dq, gone, &dc), "beta", "1.5", " 0");
    DIFFERS(sunzi_mpi_syrk(ctx, lower, none, NULL, &dq, nulls, &dc), "beta", "1.5", "null");
    DIFFERS(sunzi_mpi_gemm(ctx, trans, none, NULL, &dq, &dq, NULL, &dc), "trans_a", "NoTranspose", " Transpose");
    DIFFERS(sunzi_mpi_gemm(ctx, none, trans, NULL, &dq, &dq, NULL, &dc), "trans_b", "NoTranspose", " Transpose");
    DIFFERS(sunzi_mpi_gemm(ctx, none, none, gone, &dq, &dq, NULL, &dc), "alpha", "1.5", " 0");
    // Of scalars that differ in the last bit the message has all digits, of others the first ones.
    DIFFERS(sunzi_mpi_gemm(ctx, none, none, close, &dq, &dq, NULL, &dc), "alpha", "1.8", "1.8");
    // Factors.
    DIFFERS(sunzi_mpi_cholesky(ctx, upper, &dc), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_solve(ctx, upper, &dq, &db), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_inverse(ctx, upper, &dq, &dc), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_cholesky_solve(ctx, upper, &dl, &db), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_log_det(ctx, upper, &dl, NULL), "uplo", "Lower", "Upper");
    sunzi_mpi_factor *one, *two;
    DIFFERS(sunzi_mpi_factor_new(ctx, upper, 0, &dq, &one), "uplo", "Lower", "Upper");
    DIFFERS(sunzi_mpi_factor_new(ctx, lower, last ? 90 : 100, &dq, &one), "precision_bits", "100", "90");
    CALL(ctx, sunzi_mpi_factor_new(ctx, lower, 0, &dq, &one));
    CALL(ctx, sunzi_mpi_factor_new(ctx, lower, 0, &dq, &two));
    DIFFERS(sunzi_mpi_factor_solve(ctx, last ? one : two, &db), "factor", " 1 ", " 0 ");
    DIFFERS(sunzi_mpi_factor_inverse(ctx, last ? one : two, &dc), "factor", " 1 ", " 0 ");
    DIFFERS(sunzi_mpi_factor_log_det(ctx, last ? one : two, NULL), "factor", " 1 ", " 0 ");
    DIFFERS(sunzi_mpi_factor_get(ctx, one, upper, &dc), "uplo", "Lower", "Upper");
    sunzi_mpi_factor_free(one), sunzi_mpi_factor_free(two);
    // Shapes, which the descriptions say.
    sunzi_dist_matrix narrow = sunzi_dist_rows(described(dq.local.rows, last ? N - 1 : N, q), size);
    DIFFERS(sunzi_mpi_gemm(ctx, none, none, NULL, &dq, &narrow, NULL, &dc), "b", "13", "12");
    // Other routines than the other ranks'.
    sunzi_status status = last ? sunzi_mpi_solve(ctx, lower, &dq, &db) : sunzi_mpi_cholesky(ctx, lower, &dc);
    EXPECT(status == SUNZI_INVALID_ARGUMENT && strstr(sunzi_last_error(ctx), "different routines") != NULL);
    // What is wrong on one rank is its own error, and the others hear of it.
    status = sunzi_mpi_trsm(ctx, SUNZI_LEFT, lower, none, last ? 7 : SUNZI_NON_UNIT, NULL, &dl, &db);
    EXPECT(status == (last ? SUNZI_INVALID_ARGUMENT : SUNZI_COMMUNICATION));
    EXPECT(strstr(sunzi_last_error(ctx), "diag: 7 is not a valid value") != NULL);
    // A scalar counts by its value, whatever it is stored in.
    mpfr_t *want = new_array(N * N, BITS);
    sunzi_matrix whole = described(N, N, q), result = described(N, N, want);
    CALL(ctx, sunzi_syrk(ctx, lower, none, &some, &whole, NULL, &result));
    CALL(ctx, sunzi_mpi_syrk(ctx, lower, none, last ? &also : &some, &dq, NULL, &dc));
    same_share("syrk with one scalar in two precisions", N, N, c, want, lower);
    free_array(c, N * N), free_array(numbers, 3), free_array(wide, 1), free_array(want, N * N);
}

// Contexts that promise different things.
static void accuracies(mpfr_t *q) {
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    options.accuracy = last ? SUNZI_ENTRYWISE : SUNZI_NORM;
    sunzi_context *kept = ctx;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    mpfr_t *a = copy_array(q, N * N);
    sunzi_dist_matrix da = share(N, N, a);
    sunzi_status status = sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &da);
    free_array(a, N * N);
    if (size > 1) refused(status, "accuracy", "Norm", "Entrywise", __LINE__);
    sunzi_context_free(ctx);
    ctx = kept;
}

// Entries that have another precision on one rank: the result is computed at the largest, wherever it is.
static void precisions(mpfr_t *q, mpfr_t *b) {
    mpfr_t *a = new_array(N * N, WIDE), *x = new_array(N * M, BITS), *of_one = new_array(N * M, BITS);
    for (int i = 0; i < N * N; i++) mpfr_set(a[i], q[i], MPFR_RNDN);
    for (int i = 0; i < N * M; i++) {
        int wide = i >= N * (size - 1) / size * M; // the rows of the last rank
        if (wide) mpfr_set_prec(x[i], WIDE), mpfr_set_prec(of_one[i], WIDE);
        mpfr_set(x[i], b[i], MPFR_RNDN), mpfr_set(of_one[i], b[i], MPFR_RNDN);
    }
    sunzi_matrix whole_a = described(N, N, last ? a : q), whole_x = described(N, M, of_one);
    CALL(ctx, sunzi_solve(ctx, SUNZI_LOWER, &whole_a, &whole_x));
    sunzi_dist_matrix da = share(N, N, last ? a : q), dx = share(N, M, x);
    CALL(ctx, sunzi_mpi_solve(ctx, SUNZI_LOWER, &da, &dx));
    same_share("solve with precisions of two kinds", N, M, x, of_one, 0);
    sunzi_mpi_factor *factor;
    sunzi_dist_matrix of_precisions = share(N, N, last ? a : q);
    CALL(ctx, sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 0, &of_precisions, &factor));
    EXPECT(sunzi_mpi_factor_precision_bits(factor) == (size > 1 ? WIDE : BITS));
    sunzi_mpi_factor_free(factor);
    free_array(a, N * N), free_array(x, N * M), free_array(of_one, N * M);
}

// Results over their own operands, and beside them in one array: operands are read before anything is written.
static void overlaps(mpfr_t *q, mpfr_t *l) {
    mpfr_t *want = new_array(N * N, BITS), *array = new_array((N + 1) * N, BITS);
    sunzi_matrix of_l = described(N, N, l), of_q = described(N, N, q), result = described(N, N, want);
    // B is the array of T.
    for (int i = 0; i < N * N; i++) mpfr_set(want[i], l[i], MPFR_RNDN), mpfr_set(array[i], l[i], MPFR_RNDN);
    CALL(ctx, sunzi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &of_l, &result));
    sunzi_dist_matrix both = share(N, N, array);
    CALL(ctx, sunzi_mpi_trsm(ctx, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &both, &both));
    same_share("trsm over its triangle", N, N, array, want, 0);
    // B is that of A, whose inverse times A it is.
    for (int i = 0; i < N * N; i++) mpfr_set(want[i], q[i], MPFR_RNDN), mpfr_set(array[i], q[i], MPFR_RNDN);
    CALL(ctx, sunzi_solve(ctx, SUNZI_LOWER, &of_q, &result));
    CALL(ctx, sunzi_mpi_solve(ctx, SUNZI_LOWER, &both, &both));
    same_share("solve over its matrix", N, N, array, want, 0);
    // X is A.
    for (int i = 0; i < N * N; i++) mpfr_set_si(want[i], i % (N + 1) == 0, MPFR_RNDN), mpfr_set(array[i], q[i], MPFR_RNDN);
    CALL(ctx, sunzi_solve(ctx, SUNZI_LOWER, &of_q, &result));
    CALL(ctx, sunzi_mpi_inverse(ctx, SUNZI_LOWER, &both, &both));
    same_share("inverse over its matrix", N, N, array, want, 0);
    // B begins one row behind A in the array: all but a row of its entries are entries of A.
    for (int i = 0; i < N * N; i++) mpfr_set(array[N + i], i < N * N - N ? q[N + i] : q[i - N * N + N], MPFR_RNDN);
    for (int i = 0; i < N; i++) mpfr_set(array[i], q[i], MPFR_RNDN);
    for (int i = 0; i < N * N; i++) mpfr_set(want[i], array[N + i], MPFR_RNDN);
    CALL(ctx, sunzi_solve(ctx, SUNZI_LOWER, &of_q, &result));
    sunzi_dist_matrix behind = share(N, N, array + N);
    CALL(ctx, sunzi_mpi_solve(ctx, SUNZI_LOWER, &both, &behind));
    same_share("solve a row behind its matrix", N, N, array + N, want, 0);
    free_array(want, N * N), free_array(array, (N + 1) * N);
}

// An alignment beyond the grid has no rank.
static void alignments(mpfr_t *q) {
    for (int which = 0; which < 4; which++) {
        int align = which % 2 ? -1 : size;
        sunzi_dist_matrix a = sunzi_dist_elemental(described(0, 0, q), N, N, size, 1, SUNZI_ALONG_GRID_ROW,
                                                   SUNZI_ALONG_GRID_COL, which < 2 ? align : 0, which < 2 ? 0 : align);
        EXPECT(sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &a) == SUNZI_INVALID_ARGUMENT);
        EXPECT(strncmp(sunzi_last_error(ctx), "a: ", 3) == 0);
    }
}

// This process as a rank of `comm`, with a context over it.
static void begin_on(MPI_Comm comm) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    last = size > 1 && rank == size - 1;
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(comm), &options, &ctx));
}

// Half of the ranks, in another order: a context of their own beside that of all.
static void halves(mpfr_t *q, mpfr_t *l) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int of_all[2] = {rank, size};
    sunzi_context *all = ctx;
    begin_on(half);
    int64_t own_rank, own_size;
    CALL(ctx, sunzi_mpi_size(ctx, &own_rank, &own_size));
    EXPECT(own_rank == rank && own_size == size);
    mpfr_t *a = copy_array(q, N * N);
    sunzi_dist_matrix da = share(N, N, a);
    // What fails in one half is no matter of the other.
    sunzi_status status = sunzi_mpi_cholesky(ctx, last && of_all[0] % 2 ? SUNZI_UPPER : SUNZI_LOWER, &da);
    if (size > 1 && of_all[0] % 2) {
        refused(status, "uplo", "Lower", "Upper", __LINE__);
        CALL(ctx, sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &da));
    } else {
        EXPECT(status == SUNZI_OK);
    }
    same_share("a factor on half of the ranks", N, N, a, l, SUNZI_LOWER);
    sunzi_context_free(ctx);
    MPI_Comm_free(&half);
    free_array(a, N * N);
    rank = of_all[0], size = of_all[1], ctx = all;
    last = size > 1 && rank == size - 1;
}

// On devices, here of plain memory behind the same code, the bits are those without. Either all ranks have some or none.
static void devices(mpfr_t *q, mpfr_t *l, mpfr_t *b) {
    sunzi_context *kept = ctx;
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    options.devices = "soft, soft:50000000";
    options.device_memory_bytes = 40000000;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    mpfr_t *c = new_array(N * N, BITS), *x = copy_array(b, N * M), *want = new_array(N * N, BITS), *of_one = copy_array(b, N * M);
    sunzi_matrix of_q = described(N, N, q), product = described(N, N, want), solution = described(N, M, of_one);
    CALL(kept, sunzi_gemm(kept, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &of_q, &of_q, NULL, &product));
    CALL(kept, sunzi_solve(kept, SUNZI_LOWER, &of_q, &solution));
    sunzi_dist_matrix dq = share(N, N, q), dc = share(N, N, c), dx = share(N, M, x);
    CALL(ctx, sunzi_mpi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &dq, &dq, NULL, &dc));
    same_share("gemm on devices", N, N, c, want, 0);
    CALL(ctx, sunzi_mpi_solve(ctx, SUNZI_LOWER, &dq, &dx));
    same_share("solve on devices", N, M, x, of_one, 0);
    for (int i = 0; i < N * N; i++) mpfr_set(c[i], q[i], MPFR_RNDN);
    CALL(ctx, sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &dc));
    same_share("cholesky on devices", N, N, c, l, SUNZI_LOWER);
    sunzi_context_free(ctx);
    // A name that is none is refused on all ranks, whichever rank has it.
    options.devices = last || size == 1 ? "moon" : "soft";
    EXPECT(sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx) != SUNZI_OK);
    EXPECT(strstr(sunzi_last_error(ctx), "device 'moon' is none of") != NULL);
    sunzi_context_free(ctx);
    options.devices = last ? NULL : "soft";
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    sunzi_status status = sunzi_mpi_gemm(ctx, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &dq, &dq, NULL, &dc);
    if (size > 1) refused(status, "devices", "some on rank 0", "none on rank", __LINE__);
    sunzi_context_free(ctx);
    ctx = kept;
    free_array(c, N * N), free_array(x, N * M), free_array(want, N * N), free_array(of_one, N * M);
}

// A communicator of two groups is refused by its name, on all ranks of both.
static void two_groups(void) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &both);
    sunzi_context *none;
    EXPECT(sunzi_context_from_mpi(MPI_Comm_c2f(both), NULL, &none) == SUNZI_INVALID_ARGUMENT);
    EXPECT(strstr(sunzi_last_error(none), "intercommunicator") != NULL);
    sunzi_context_free(none);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

// A factor is one of ranks in their order: on a context that has them in another one each rank that has another number
// there says so itself.
static void reversed(mpfr_t *q, mpfr_t *b) {
    MPI_Comm backwards;
    sunzi_context *other;
    sunzi_mpi_factor *factor;
    sunzi_dist_matrix dq = share(N, N, q), db = share(N, M, b);
    CALL(ctx, sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 0, &dq, &factor));
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    CALL(other, sunzi_context_from_mpi(MPI_Comm_c2f(backwards), NULL, &other));
    sunzi_status status = sunzi_mpi_factor_solve(other, factor, &db);
    EXPECT(status == (size - 1 - rank != rank ? SUNZI_INVALID_ARGUMENT : SUNZI_COMMUNICATION));
    sunzi_context_free(other);
    MPI_Comm_free(&backwards);
    sunzi_mpi_factor_free(factor);
}

// Products compare the kernels of the ranks and whether they check themselves; factors and solves do without.
static void kernels(mpfr_t *q, mpfr_t *l) {
    for (int what = 0; what < 3; what++) {
        sunzi_options options = sunzi_options_default();
        options.threads = 1;
        if (last && what == 0) options.kernel = "reference";
        if (last && what == 1) options.self_check = 1;
        if (last && what == 2) options.freivalds = 1;
        sunzi_context *own;
        CALL(own, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &own));
        mpfr_t *a = copy_array(q, N * N), *c = new_array(N * N, BITS);
        sunzi_dist_matrix da = share(N, N, a), dc = share(N, N, c);
        sunzi_status status = sunzi_mpi_gemm(own, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &da, &da, NULL, &dc);
        EXPECT(status == (size > 1 ? SUNZI_INVALID_ARGUMENT : SUNZI_OK));
        CALL(own, sunzi_mpi_cholesky(own, SUNZI_LOWER, &da));
        same_share("a factor with unlike options", N, N, a, l, SUNZI_LOWER);
        sunzi_context_free(own);
        free_array(a, N * N), free_array(c, N * N);
    }
}

// What a fork of a rank may do with its context: calls of one process. It is no rank, and frees what is its own alone.
static int in_fork(sunzi_context *of_ranks, sunzi_mpi_factor *factor, mpfr_t *q, mpfr_t *b) {
    mpfr_t *c = new_array(N * N, BITS);
    sunzi_matrix whole = described(N, N, q), product = described(N, N, c);
    sunzi_dist_matrix dq = share(N, N, q), dc = share(N, N, c), db = share(N, M, b);
    int refused = sunzi_mpi_gemm(of_ranks, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &dq, &dq, NULL, &dc) == SUNZI_COMMUNICATION &&
                  strstr(sunzi_last_error(of_ranks), "is a fork of") != NULL &&
                  sunzi_mpi_factor_solve(of_ranks, factor, &db) == SUNZI_COMMUNICATION &&
                  sunzi_mpi_grid(of_ranks, 0, 1, 1, SUNZI_ROW_MAJOR) == SUNZI_COMMUNICATION;
    int alone = sunzi_gemm(of_ranks, SUNZI_NO_TRANS, SUNZI_NO_TRANS, NULL, &whole, &whole, NULL, &product) == SUNZI_OK;
    sunzi_mpi_factor_free(factor);
    sunzi_context_free(of_ranks);
    free_array(c, N * N);
    return refused && alone ? 0 : 1;
}

// Some ranks fork, then all of them; the calls of the ranks go on as if they had not.
static void forks(mpfr_t *q, mpfr_t *l, mpfr_t *b) {
    sunzi_dist_matrix dq = share(N, N, q);
    sunzi_mpi_factor *factor;
    CALL(ctx, sunzi_mpi_factor_new(ctx, SUNZI_LOWER, 0, &dq, &factor));
    for (int all = 0; all < 2; all++) {
        if (all || rank == 0) {
            pid_t child = fork();
            EXPECT(child >= 0);
            if (child == 0) _exit(in_fork(ctx, factor, q, b));
            int ended;
            EXPECT(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
        }
        mpfr_t *a = copy_array(q, N * N);
        sunzi_dist_matrix da = share(N, N, a);
        CALL(ctx, sunzi_mpi_cholesky(ctx, SUNZI_LOWER, &da));
        same_share("a factor beside a fork", N, N, a, l, SUNZI_LOWER);
        free_array(a, N * N);
    }
    sunzi_mpi_factor_free(factor);
}

enum { ORDER = 40, HEIGHT = 200, FINE = 1000 };

// One call under a memory limit: the status, the bytes of copies on this rank, and the least limit that it is told of.
static sunzi_status limited(int verb, uint64_t limit, mpfr_t *a, mpfr_t *q, mpfr_t *result, uint64_t *copied,
                            uint64_t *least) {
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    options.memory_bytes = limit;
    sunzi_context *own;
    CALL(own, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &own));
    for (int i = 0; i < ORDER * ORDER; i++) mpfr_set(result[i], q[i], MPFR_RNDN);
    sunzi_dist_matrix da = share(HEIGHT, ORDER, a), dq = share(ORDER, ORDER, q), dx = share(ORDER, ORDER, result);
    sunzi_status status = verb == 0   ? sunzi_mpi_syrk(own, SUNZI_LOWER, SUNZI_TRANS, NULL, &da, NULL, &dx)
                          : verb == 1 ? sunzi_mpi_cholesky(own, SUNZI_LOWER, &dx)
                          : verb == 2 ? sunzi_mpi_solve(own, SUNZI_LOWER, &dq, &dx)
                          : verb == 3 ? sunzi_mpi_inverse(own, SUNZI_LOWER, &dq, &dx)
                                      : sunzi_mpi_gemm(own, SUNZI_TRANS, SUNZI_NO_TRANS, NULL, &da, &da, NULL, &dx);
    // The last bytes in the message are the least limit that would do.
    const char *said = sunzi_last_error(own), *bytes = NULL;
    for (const char *at = said; (at = strstr(at, " bytes")) != NULL; at++) bytes = at;
    while (bytes != NULL && bytes > said && bytes[-1] >= '0' && bytes[-1] <= '9') bytes--;
    *least = status == SUNZI_MEMORY_LIMIT && bytes != NULL ? strtoull(bytes, NULL, 10) : 0;
    EXPECT(status == SUNZI_OK || status == SUNZI_MEMORY_LIMIT || status == SUNZI_COMMUNICATION);
    sunzi_report report;
    sunzi_last_report(own, &report);
    *copied = report.copied_bytes;
    sunzi_context_free(own);
    return status;
}

// A limit is for all ranks of the node together: where a call runs, it holds the copies of all of them. Those who are
// refused are refused together, and the limit that they hear of is larger.
static void limits(void) {
    mpfr_t *a = new_array(HEIGHT * ORDER, FINE), *q = new_array(ORDER * ORDER, FINE), *x = new_array(ORDER * ORDER, FINE);
    fill_array(a, HEIGHT * ORDER, 1);
    sunzi_matrix whole = described(HEIGHT, ORDER, a), gram = described(ORDER, ORDER, q);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &whole, NULL, &gram));
    for (int verb = 0; verb < 5; verb++) {
        uint64_t limit = 1, copied = 0, least = 0, most = 0, sum = 0;
        int rounds = 0, failed = 1;
        while (failed) {
            int own = limited(verb, limit, a, q, x, &copied, &least) != SUNZI_OK;
            MPI_Allreduce(&own, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            EXPECT(own == failed);
            MPI_Allreduce(&least, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
            EXPECT(!failed || (most > limit && ++rounds < 12));
            if (failed) limit = most;
        }
        MPI_Allreduce(&copied, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (sum > limit) fprintf(stderr, "verb %d: copies of %lu bytes in %lu\n", verb, (unsigned long)sum, (unsigned long)limit);
        EXPECT(sum <= limit);
    }
    free_array(a, HEIGHT * ORDER), free_array(q, ORDER * ORDER), free_array(x, ORDER * ORDER);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    begin_on(MPI_COMM_WORLD);
    mpfr_t *a = new_array(N * N, BITS), *q = new_array(N * N, BITS), *b = new_array(N * M, BITS);
    fill_array(a, N * N, 1);
    fill_array(b, N * M, 2);
    sunzi_matrix whole = described(N, N, a), gram = described(N, N, q);
    CALL(ctx, sunzi_syrk(ctx, SUNZI_BOTH, SUNZI_TRANS, NULL, &whole, NULL, &gram));
    mpfr_t *l = copy_array(q, N * N);
    sunzi_matrix factor = described(N, N, l);
    CALL(ctx, sunzi_cholesky(ctx, SUNZI_LOWER, &factor));
    if (size > 1) choices(q, l, b);
    accuracies(q);
    precisions(q, b);
    overlaps(q, l);
    alignments(q);
    halves(q, l);
    devices(q, l, b);
    if (size > 1) two_groups();
    if (size > 1) reversed(q, b);
    kernels(q, l);
    forks(q, l, b);
    limits();
    sunzi_context_free(ctx);
    free_array(a, N * N), free_array(q, N * N), free_array(b, N * M), free_array(l, N * N);
    if (rank == 0) printf("rank_errors: %d ranks\n", size);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
