// One step of an interior-point method in the manner of SDPB, on Elemental's matrices over the ranks of a communicator:
// each rank has blocks of its own, S_j = L_j L_j^T and V_j = L_j^-1 B_j, their sum Q = sum_j V_j^T V_j is distributed
// entry by entry, and so are its Cholesky factor and the right sides that are solved for. With both layouts of numbers;
// every rank compares with one process. Run by mpirun.
#include "standin/El.hpp"

#include "example.h"
#include <sunzi/elemental.hpp>

enum { BLOCKS = 7, ORDER = 9, N = 23, M = 5, BITS = 700 };

static int rank, size;

// Reads and writes numbers of both kinds by way of mpfr_t.
static void get(mpfr_t to, const El::BigFloat &from) { mpfr_set(to, from.LockedPointer(), MPFR_RNDN); }
static void get(mpfr_t to, const fork::BigFloat &from) { mpfr_set_f(to, from.gmp_float.get_mpf_t(), MPFR_RNDN); }
static void put(El::BigFloat &to, mpfr_t from) { mpfr_set(to.Pointer(), from, MPFR_RNDN); }
static void put(fork::BigFloat &to, mpfr_t from) { mpfr_get_f(to.gmp_float.get_mpf_t(), from, MPFR_RNDN); }

template <class A> static void fill(A &matrix, mpfr_t *whole) {
    for (int j = 0; j < matrix.LocalWidth(); j++) {
        for (int i = 0; i < matrix.LocalHeight(); i++) {
            put(matrix.Local(i, j), whole[matrix.GlobalRow(i) * matrix.Width() + matrix.GlobalCol(j)]);
        }
    }
}

// Entries of a triangle (or of all, with 0) are those of `whole`, as far as the numbers' own precision goes.
template <class A> static void same(const char *what, A &matrix, mpfr_t *whole, int uplo) {
    mpfr_t got, want;
    mpfr_inits2(BITS, got, want, (mpfr_ptr)NULL);
    for (int j = 0; j < matrix.LocalWidth(); j++) {
        for (int i = 0; i < matrix.LocalHeight(); i++) {
            int row = matrix.GlobalRow(i), col = matrix.GlobalCol(j);
            if (uplo == SUNZI_LOWER && row < col) continue;
            get(got, matrix.Local(i, j));
            mpfr_sub(want, got, whole[row * matrix.Width() + col], MPFR_RNDN);
            // An mpf_class may keep a limb more than it was asked for: the last bits are those of another rounding.
            if (!mpfr_zero_p(want) && mpfr_get_exp(want) > mpfr_get_exp(got) - BITS + 20) {
                fprintf(stderr, "%s: rank %d, entry %d, %d\n", what, rank, row, col);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    mpfr_clears(got, want, (mpfr_ptr)NULL);
}

static sunzi_matrix described(int rows, int cols, mpfr_t *entries) {
    return sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rows, cols, entries, cols);
}

// Everything in one process, for comparison: V of all blocks, Q, its factor, the solution, log det Q.
struct Whole {
    mpfr_t *v, *q, *factor, *x, *log_det;
};

template <class T> static void step(const Whole &whole, mpfr_t *b) {
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    sunzi::elemental::Context ctx(MPI_Comm_c2f(MPI_COMM_WORLD), options);
    int height = 1;
    while ((height + 1) * (height + 1) <= size) height++;
    while (size % height) height--;
    El::Grid grid(MPI_COMM_WORLD, height);
    mpfr_t one_, zero_;
    mpfr_inits2(BITS, one_, zero_, (mpfr_ptr)NULL);
    mpfr_set_ui(one_, 1, MPFR_RNDN), mpfr_set_zero(zero_, 1);
    T one, zero;
    put(one, one_), put(zero, zero_);
    // The rows of all V_j, dealt to the ranks; rows may be in any order.
    El::DistMatrix<T, El::VC, El::STAR> v(BLOCKS * ORDER, N, grid);
    fill(v, whole.v);
    El::DistMatrix<T> q(N, N, grid, (size - 1) % height, 0);
    sunzi::elemental::Syrk<T>(ctx, El::LOWER, El::TRANSPOSE, one, v, zero, q);
    same("Q", q, whole.q, SUNZI_LOWER);
    sunzi::elemental::Cholesky<T>(ctx, El::LOWER, q);
    same("its factor", q, whole.factor, SUNZI_LOWER);
    El::DistMatrix<T, El::STAR, El::VR> x(N, M, grid);
    fill(x, b);
    sunzi::elemental::cholesky::SolveAfter<T>(ctx, El::LOWER, El::NORMAL, q, x);
    same("its solution", x, whole.x, 0);
    // The same by two triangular solves on another distribution, checked by a product.
    El::DistMatrix<T, El::MR, El::MC> y(N, M, grid);
    fill(y, b);
    sunzi::elemental::Trsm<T>(ctx, El::LEFT, El::LOWER, El::NORMAL, El::NON_UNIT, one, q, y);
    sunzi::elemental::Trsm<T>(ctx, El::LEFT, El::LOWER, El::TRANSPOSE, El::NON_UNIT, one, q, y);
    same("its solution in two steps", y, whole.x, 0);
    El::DistMatrix<T, El::CIRC, El::CIRC> on_root(N, N, grid);
    sunzi::elemental::Gemm<T>(ctx, El::TRANSPOSE, El::NORMAL, one, v, v, zero, on_root);
    same("Q by GEMM", on_root, whole.q, 0);
    El::DistMatrix<T> again(N, N, grid);
    fill(again, whole.q);
    fill(x, b);
    sunzi::elemental::HPDSolve<T>(ctx, El::LOWER, El::NORMAL, again, x);
    same("solved at once", x, whole.x, 0);
    // A factor that the library keeps, for two solves in two distributions.
    sunzi::elemental::Factor<T> kept(ctx, El::LOWER, again);
    fill(x, b), fill(y, b);
    kept.Solve(x), kept.Solve(y);
    same("solved with a kept factor", x, whole.x, 0);
    same("solved with it again", y, whole.x, 0);
    T log_det;
    kept.LogDet(log_det);
    mpfr_t log_det_;
    mpfr_init2(log_det_, BITS);
    get(log_det_, log_det);
    EXPECT(error_log2(log_det_, *whole.log_det) < 20 - BITS);
    mpfr_clear(log_det_);
    // What fails throws on every rank, and the context goes on.
    El::DistMatrix<T, El::MD, El::STAR> diagonal(N, N, grid);
    El::DistMatrix<T> narrow(N, N - 1, grid);
    int thrown = 0;
    try { sunzi::elemental::Cholesky<T>(ctx, El::LOWER, diagonal); } catch (const std::runtime_error &) { thrown++; }
    try { sunzi::elemental::Cholesky<T>(ctx, El::LOWER, narrow); } catch (const std::runtime_error &) { thrown++; }
    EXPECT(thrown == 2 && ctx.size() == size);
    mpfr_clears(one_, zero_, (mpfr_ptr)NULL);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sunzi_context *alone = new_context(1);
    mpfr_t *s = new_array(ORDER * ORDER, BITS), *p = new_array(2 * ORDER * ORDER, BITS), *b = new_array(N * M, BITS);
    fill_array(b, N * M, 4);
    Whole whole = {new_array(BLOCKS * ORDER * N, BITS), new_array(N * N, BITS), NULL, NULL, new_array(1, BITS)};
    fill_array(whole.v, BLOCKS * ORDER * N, 3);
    for (int block = 0; block < BLOCKS; block++) {
        fill_array(p, 2 * ORDER * ORDER, 10 + block);
        sunzi_matrix wide = described(2 * ORDER, ORDER, p), schur = described(ORDER, ORDER, s);
        sunzi_matrix rows = described(ORDER, N, whole.v + block * ORDER * N);
        CALL(alone, sunzi_syrk(alone, SUNZI_LOWER, SUNZI_TRANS, NULL, &wide, NULL, &schur));
        CALL(alone, sunzi_cholesky(alone, SUNZI_LOWER, &schur));
        CALL(alone, sunzi_trsm(alone, SUNZI_LEFT, SUNZI_LOWER, SUNZI_NO_TRANS, SUNZI_NON_UNIT, NULL, &schur, &rows));
    }
    sunzi_matrix v = described(BLOCKS * ORDER, N, whole.v), q = described(N, N, whole.q);
    CALL(alone, sunzi_syrk(alone, SUNZI_BOTH, SUNZI_TRANS, NULL, &v, NULL, &q));
    whole.factor = copy_array(whole.q, N * N);
    whole.x = copy_array(b, N * M);
    sunzi_matrix factor = described(N, N, whole.factor), x = described(N, M, whole.x);
    CALL(alone, sunzi_cholesky(alone, SUNZI_LOWER, &factor));
    CALL(alone, sunzi_cholesky_solve(alone, SUNZI_LOWER, &factor, &x));
    sunzi_matrix number = described(1, 1, whole.log_det);
    CALL(alone, sunzi_log_det(alone, &factor, &number));
    sunzi_context_free(alone);
    step<El::BigFloat>(whole, b);
    step<fork::BigFloat>(whole, b);
    if (rank == 0) printf("sdpb_step: %d ranks, both layouts of numbers\n", size);
    free_array(s, ORDER * ORDER), free_array(p, 2 * ORDER * ORDER), free_array(b, N * M);
    free_array(whole.v, BLOCKS * ORDER * N), free_array(whole.q, N * N);
    free_array(whole.factor, N * N), free_array(whole.x, N * M), free_array(whole.log_det, 1);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
