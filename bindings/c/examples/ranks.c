// A Gram matrix whose rows lie on the ranks of a program that owns MPI. Run by mpirun; the root compares with one
// process.
#include "example.h"

#include <mpi.h>

enum { ROWS = 75, COLS = 20, BITS = 512 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    sunzi_context *ctx = NULL;
    CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
    int64_t own_rank = -1, own_size = -1;
    CALL(ctx, sunzi_mpi_size(ctx, &own_rank, &own_size));
    EXPECT(own_rank == rank && own_size == size);

    // Every rank makes the whole matrix and passes its share of the rows, the last rank none where there are many.
    mpfr_t *all = new_array(ROWS * COLS, BITS), *q = new_array(COLS * COLS, BITS), *want = new_array(COLS * COLS, BITS);
    fill_array(all, ROWS * COLS, 11);
    int first = ROWS * rank / size, last = ROWS * (rank + 1) / size;
    sunzi_matrix rows = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, last - first, COLS, all + first * COLS, COLS);
    sunzi_matrix whole = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, ROWS, COLS, all, COLS);
    sunzi_dist_matrix part = sunzi_dist_rows(rows, size);
    sunzi_matrix of_one = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, COLS, COLS, want, COLS);
    for (int root = 0; root < size; root++) {
        // A matrix on one rank is one of which the others have no rows.
        sunzi_matrix own = sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rank == root ? COLS : 0, COLS, q, COLS);
        sunzi_dist_matrix on_root = sunzi_dist_rows(own, size);
        CALL(ctx, sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &part, NULL, &on_root));
        if (rank == root) {
            CALL(ctx, sunzi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &whole, NULL, &of_one));
            for (int i = 0; i < COLS; i++) {
                for (int j = 0; j <= i; j++) EXPECT(mpfr_equal_p(q[i * COLS + j], want[i * COLS + j]));
            }
        }
    }

    sunzi_dist_matrix c = sunzi_dist_rows(sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rank == 0 ? COLS : 0, COLS, q, COLS), size);
    // What fails on one rank fails on all, and the next call works.
    if (rank == size - 1) mpfr_set_nan(all[first * COLS]);
    EXPECT(sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &part, NULL, &c) != SUNZI_OK);
    EXPECT(strstr(sunzi_last_error(ctx), "NaN") != NULL);
    if (rank == size - 1) mpfr_set_ui(all[first * COLS], 1, MPFR_RNDN);
    CALL(ctx, sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &part, NULL, &c));

    // A handle of no communicator.
    sunzi_context *none = NULL;
    EXPECT(sunzi_context_from_mpi(-7, NULL, &none) == SUNZI_INVALID_ARGUMENT);
    EXPECT(strstr(sunzi_last_error(none), "-7 is not the Fortran handle of a communicator") != NULL);
    sunzi_context_free(none);

    // Contexts come and go; each gives its shared memory back.
    for (int round = 0; round < 3; round++) {
        sunzi_context_free(ctx);
        CALL(ctx, sunzi_context_from_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &ctx));
        CALL(ctx, sunzi_mpi_syrk(ctx, SUNZI_LOWER, SUNZI_TRANS, NULL, &part, NULL, &c));
    }
    sunzi_context_free(ctx);
    // MPI is still the program's own.
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == size * (size - 1) / 2);
    if (rank == 0) printf("ranks: %d ranks, the bits of one process\n", size);
    free_array(all, ROWS * COLS);
    free_array(q, COLS * COLS);
    free_array(want, COLS * COLS);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
