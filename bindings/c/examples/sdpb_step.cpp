// One step of an interior-point method in the manner of SDPB, on Elemental's matrices over the ranks of a communicator.
//
// The blocks of the program are dealt to the ranks. Each rank makes the Schur complements S_j and constraints B_j of its
// own blocks, factors S_j = L_j L_j^T, solves V_j = L_j^-1 B_j, and has nothing of the others. The sum over the blocks of
// all ranks, Q = sum_j V_j^T V_j, is distributed entry by entry, and so is its Cholesky factor. With both the step solves
//
//     [ S  -B ] [dx]   [r]        dx' = L^-1 r,  dy = Q^-1 (s - sum_j V_j^T dx'_j),
//     [B^T  0 ] [dy] = [s],       dx = L^-T (dx' + V dy).
//
// With both layouts of numbers. Afterwards every rank computes all of it alone, and compares. Run by mpirun.
#include "standin/El.hpp"

#include "example.h"
#include <sunzi/elemental.hpp>

namespace se = sunzi::elemental;

enum { BLOCKS = 7, N = 23, M = 5, BITS = 768 };

static int rank, size;

// Blocks are of different sizes, and the last ranks have none where there are more ranks than blocks.
static int order(int block) { return 6 + 5 * block % 7; }
static bool mine(int block) { return block % size == rank; }

// Reads and writes numbers of both kinds by way of mpfr_t.
static void get(mpfr_t to, const El::BigFloat &from) { mpfr_set(to, from.LockedPointer(), MPFR_RNDN); }
static void get(mpfr_t to, const fork::BigFloat &from) { mpfr_set_f(to, from.gmp_float.get_mpf_t(), MPFR_RNDN); }
static void put(El::BigFloat &to, mpfr_t from) { mpfr_set(to.Pointer(), from, MPFR_RNDN); }
static void put(fork::BigFloat &to, mpfr_t from) { mpfr_get_f(to.gmp_float.get_mpf_t(), from, MPFR_RNDN); }

// Numbers of 768 bits have the bits of one process. An mpf_class may keep a limb more than it was asked for: the last
// bits are those of another rounding then.
static const long EXACT = -1000000, CLOSE = 20 - BITS;
static long tolerance(const El::BigFloat &) { return EXACT; }
static long tolerance(const fork::BigFloat &) { return CLOSE; }

template <class T>
static void check(const char *what, const T &number, mpfr_t want, int row, int col, long most = EXACT) {
    mpfr_t got;
    mpfr_init2(got, BITS);
    get(got, number);
    if (tolerance(number) > most) most = tolerance(number);
    if (error_log2(got, want) > most) {
        fprintf(stderr, "%s: rank %d of %d, entry %d, %d\n", what, rank, size, row, col);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    mpfr_clear(got);
}

// A matrix of one rank from `whole`, row-major.
template <class T> static void fill(El::Matrix<T> &matrix, mpfr_t *whole) {
    for (int i = 0; i < matrix.Height(); i++) {
        for (int j = 0; j < matrix.Width(); j++) put(matrix(i, j), whole[i * matrix.Width() + j]);
    }
}

// This rank's part of a matrix that is dealt out.
template <class A> static void fill_part(A &matrix, mpfr_t *whole) {
    for (int j = 0; j < matrix.LocalWidth(); j++) {
        for (int i = 0; i < matrix.LocalHeight(); i++) {
            put(matrix.Local(i, j), whole[matrix.GlobalRow(i) * matrix.Width() + matrix.GlobalCol(j)]);
        }
    }
}

// Entries of a triangle (or of all, with 0) are those of `whole`.
template <class A> static void same(const char *what, A &matrix, mpfr_t *whole, int uplo, long most = EXACT) {
    for (int j = 0; j < matrix.LocalWidth(); j++) {
        for (int i = 0; i < matrix.LocalHeight(); i++) {
            int row = matrix.GlobalRow(i), col = matrix.GlobalCol(j);
            if (uplo == SUNZI_UPPER && row > col) continue;
            check(what, matrix.Local(i, j), whole[row * matrix.Width() + col], row, col, most);
        }
    }
}

static sunzi_matrix described(int rows, int cols, mpfr_t *entries) {
    return sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rows, cols, entries, cols);
}

// A context of one process with the accuracy of the ranks, which elemental.hpp has chosen.
static sunzi_context *by_norms() {
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    options.accuracy = SUNZI_NORM;
    sunzi_context *ctx = NULL;
    CALL(ctx, sunzi_context_new(&options, &ctx));
    return ctx;
}

// What a block's data are: S_j positive definite, B_j and r_j. Any rank could make them; those that own it do.
struct Block {
    int rows;
    mpfr_t *s, *b, *r;
    explicit Block(int number) : rows(order(number)) {
        s = new_array(rows * rows, BITS), b = new_array(rows * N, BITS), r = new_array(rows, BITS);
        fill_array(s, rows * rows, 10 + number), fill_array(b, rows * N, 30 + number), fill_array(r, rows, 50 + number);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < i; j++) mpfr_set(s[i * rows + j], s[j * rows + i], MPFR_RNDN);
            mpfr_add_ui(s[i * rows + i], s[i * rows + i], rows, MPFR_RNDN); // dominates its row
        }
    }
    ~Block() { free_array(s, rows * rows), free_array(b, rows * N), free_array(r, rows); }
};

// The answers of one process: Q, its factor, dx of all blocks behind each other, dy, log det Q.
struct Whole {
    mpfr_t *q, *factor, *dx, *dy, *log_det, *s;
    int rows;
};

// A factor that the library keeps, two triangular solves, all at once; in any distributions.
template <class T, class Q>
static void other_ways(se::Context &ctx, El::Grid &grid, const Whole &want, Q &q, El::Matrix<T> &v) {
    T one, zero;
    mpfr_t number;
    mpfr_init2(number, BITS);
    mpfr_set_ui(number, 1, MPFR_RNDN), put(one, number);
    El::DistMatrix<T, El::CIRC, El::CIRC> on_root(N, N, grid);
    se::rows::Gemm<T>(ctx, one, v, v, zero, on_root);
    same("Q by GEMM, on one rank", on_root, want.q, 0);
    El::DistMatrix<T, El::STAR, El::VR> x(N, M, grid);
    El::DistMatrix<T, El::MR, El::MC> y(N, M, grid);
    fill_part(x, want.s), fill_part(y, want.s);
    El::DistMatrix<T> identity(N, N, grid);
    for (int j = 0; j < identity.LocalWidth(); j++) {
        for (int i = 0; i < identity.LocalHeight(); i++) {
            mpfr_set_ui(number, identity.GlobalRow(i) == identity.GlobalCol(j), MPFR_RNDN);
            put(identity.Local(i, j), number);
        }
    }
    se::Factor<T> kept(ctx, El::UPPER, identity);
    kept.Solve(x);
    same("solved with the identity", x, want.s, 0);
    kept.Renew(El::LOWER, on_root);
    kept.Solve(x);
    se::Trsm<T>(ctx, El::LEFT, El::UPPER, El::TRANSPOSE, El::NON_UNIT, one, q, y);
    se::Trsm<T>(ctx, El::LEFT, El::UPPER, El::NORMAL, El::NON_UNIT, one, q, y);
    El::DistMatrix<T> z(N, M, grid);
    fill_part(z, want.s);
    se::HPDSolve<T>(ctx, El::LOWER, El::NORMAL, on_root, z);
    mpfr_t *solution = copy_array(want.s, N * M);
    sunzi_context *alone = by_norms();
    sunzi_matrix of_q = described(N, N, want.q), of_solution = described(N, M, solution);
    CALL(alone, sunzi_solve(alone, SUNZI_LOWER, &of_q, &of_solution));
    sunzi_context_free(alone);
    same("solved with a kept factor", x, solution, 0);
    same("solved in two steps, each rounded", y, solution, 0, CLOSE);
    same("solved at once", z, solution, 0);
    free_array(solution, N * M);
    T log_det;
    kept.LogDet(log_det);
    get(number, log_det);
    EXPECT(error_log2(number, *want.log_det) < CLOSE);

    // What fails throws on every rank, and the context goes on.
    El::DistMatrix<T, El::MD, El::STAR> diagonal(N, N, grid);
    El::DistMatrix<T> narrow(N, N - 1, grid);
    int thrown = 0;
    try { se::Cholesky<T>(ctx, El::LOWER, diagonal); } catch (const std::runtime_error &) { thrown++; }
    try { se::Cholesky<T>(ctx, El::LOWER, narrow); } catch (const std::runtime_error &) { thrown++; }
    EXPECT(thrown == 2 && ctx.size() == size);
    mpfr_clear(number);
}

// The step on the ranks. `right` is s, which all ranks have.
template <class T> static void step(const Whole &want, mpfr_t *right) {
    sunzi_options options = sunzi_options_default();
    options.threads = 1;
    se::Context ctx(MPI_Comm_c2f(MPI_COMM_WORLD), options);
    int height = 1;
    while ((height + 1) * (height + 1) <= size) height++;
    while (size % height) height--;
    El::Grid grid(MPI_COMM_WORLD, height);
    mpfr_t number;
    mpfr_init2(number, BITS);
    T one, minus_one, zero;
    mpfr_set_si(number, 1, MPFR_RNDN), put(one, number);
    mpfr_set_si(number, -1, MPFR_RNDN), put(minus_one, number);

    // Blocks of this rank: the factors, and V and dx of all of them, block below block in one matrix each.
    int rows = 0, first = 0;
    for (int block = 0; block < BLOCKS; block++) rows += mine(block) ? order(block) : 0;
    El::Matrix<T> v(rows, N), dx(rows, 1);
    std::vector<El::Matrix<T>> factors;
    for (int block = 0; block < BLOCKS; block++) {
        if (!mine(block)) continue;
        Block data(block);
        factors.emplace_back(data.rows, data.rows);
        El::Matrix<T> &l = factors.back();
        El::Matrix<T> v_j = El::View(v, first, 0, data.rows, N), dx_j = El::View(dx, first, 0, data.rows, 1);
        fill(l, data.s), fill(v_j, data.b), fill(dx_j, data.r);
        se::local::Cholesky<T>(ctx, El::LOWER, l);
        se::local::Trsm<T>(ctx, El::LEFT, El::LOWER, El::NORMAL, El::NON_UNIT, one, l, v_j);
        se::local::Trsm<T>(ctx, El::LEFT, El::LOWER, El::NORMAL, El::NON_UNIT, one, l, dx_j);
        first += data.rows;
    }

    // Q over all ranks, and its factor in place.
    El::DistMatrix<T> q(N, N, grid, (size - 1) % height, 0);
    se::rows::Syrk<T>(ctx, El::UPPER, one, v, zero, q);
    same("Q", q, want.q, SUNZI_UPPER);
    se::Cholesky<T>(ctx, El::UPPER, q);
    same("its factor", q, want.factor, SUNZI_UPPER);

    // dy on every rank, and dx of this rank's blocks.
    El::DistMatrix<T, El::STAR, El::STAR> dy(N, 1, grid);
    fill_part(dy, right);
    se::rows::Gemm<T>(ctx, minus_one, v, dx, one, dy);
    se::cholesky::SolveAfter<T>(ctx, El::UPPER, El::NORMAL, q, dy);
    same("dy", dy, want.dy, 0);
    El::Matrix<T> own_dy(N, 1, dy.Buffer(), dy.LDim());
    se::local::Gemm<T>(ctx, El::NORMAL, El::NORMAL, one, v, own_dy, one, dx);
    first = 0;
    int at = 0, in_order = 0;
    for (int block = 0; block < BLOCKS; in_order += order(block), block++) {
        if (!mine(block)) continue;
        El::Matrix<T> dx_j = El::View(dx, first, 0, order(block), 1);
        se::local::Trsm<T>(ctx, El::LEFT, El::LOWER, El::TRANSPOSE, El::NON_UNIT, one, factors[at++], dx_j);
        for (int i = 0; i < order(block); i++) check("dx", dx_j(i, 0), want.dx[in_order + i], block, i);
        first += order(block);
    }

    other_ways<T>(ctx, grid, want, q, v);
    mpfr_clear(number);
}

// The same in one process.
static void one_process(Whole &whole, mpfr_t *right) {
    sunzi_context *alone = by_norms();
    mpfr_t *v = new_array(whole.rows * N, BITS), *numbers = new_array(2, BITS);
    mpfr_set_si(numbers[0], -1, MPFR_RNDN), mpfr_set_si(numbers[1], 1, MPFR_RNDN);
    sunzi_matrix minus_one = described(1, 1, numbers), one = described(1, 1, numbers + 1);
    int first = 0;
    for (int block = 0; block < BLOCKS; block++) {
        Block data(block);
        sunzi_matrix schur = described(data.rows, data.rows, data.s), dx_j = described(data.rows, 1, whole.dx + first);
        sunzi_matrix v_j = described(data.rows, N, v + first * N);
        for (int i = 0; i < data.rows * N; i++) mpfr_set(v[first * N + i], data.b[i], MPFR_RNDN);
        for (int i = 0; i < data.rows; i++) mpfr_set(whole.dx[first + i], data.r[i], MPFR_RNDN);
        CALL(alone, sunzi_cholesky(alone, SUNZI_LOWER, &schur));
        CALL(alone, sunzi_trsm(alone, SUNZI_LEFT, SUNZI_LOWER, SUNZI_NO_TRANS, SUNZI_NON_UNIT, NULL, &schur, &v_j));
        CALL(alone, sunzi_trsm(alone, SUNZI_LEFT, SUNZI_LOWER, SUNZI_NO_TRANS, SUNZI_NON_UNIT, NULL, &schur, &dx_j));
        first += data.rows;
    }
    sunzi_matrix all_v = described(whole.rows, N, v), q = described(N, N, whole.q), dy = described(N, 1, whole.dy);
    sunzi_matrix dx = described(whole.rows, 1, whole.dx), factor = described(N, N, whole.factor);
    CALL(alone, sunzi_syrk(alone, SUNZI_BOTH, SUNZI_TRANS, NULL, &all_v, NULL, &q));
    for (int i = 0; i < N * N; i++) mpfr_set(whole.factor[i], whole.q[i], MPFR_RNDN);
    CALL(alone, sunzi_cholesky(alone, SUNZI_UPPER, &factor));
    for (int i = 0; i < N; i++) mpfr_set(whole.dy[i], right[i], MPFR_RNDN);
    CALL(alone, sunzi_gemm(alone, SUNZI_TRANS, SUNZI_NO_TRANS, &minus_one, &all_v, &dx, &one, &dy));
    CALL(alone, sunzi_cholesky_solve(alone, SUNZI_UPPER, &factor, &dy));
    CALL(alone, sunzi_gemm(alone, SUNZI_NO_TRANS, SUNZI_NO_TRANS, &one, &all_v, &dy, &one, &dx));
    first = 0;
    for (int block = 0; block < BLOCKS; block++) {
        Block data(block);
        sunzi_matrix schur = described(data.rows, data.rows, data.s), dx_j = described(data.rows, 1, whole.dx + first);
        CALL(alone, sunzi_cholesky(alone, SUNZI_LOWER, &schur));
        CALL(alone, sunzi_trsm(alone, SUNZI_LEFT, SUNZI_LOWER, SUNZI_TRANS, SUNZI_NON_UNIT, NULL, &schur, &dx_j));
        first += data.rows;
    }
    mpfr_t *transposed = new_array(N * N, BITS);
    for (int i = 0; i < N * N; i++) mpfr_set(transposed[i], whole.factor[i % N * N + i / N], MPFR_RNDN);
    sunzi_matrix lower = described(N, N, transposed), number = described(1, 1, whole.log_det);
    CALL(alone, sunzi_log_det(alone, &lower, &number));
    sunzi_context_free(alone);
    free_array(v, whole.rows * N), free_array(numbers, 2), free_array(transposed, N * N);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = 0;
    for (int block = 0; block < BLOCKS; block++) rows += order(block);
    mpfr_t *right = new_array(N, BITS);
    fill_array(right, N, 4);
    Whole whole = {new_array(N * N, BITS), new_array(N * N, BITS), new_array(rows, BITS), new_array(N, BITS),
                   new_array(1, BITS),     new_array(N * M, BITS), rows};
    fill_array(whole.s, N * M, 5);
    one_process(whole, right);
    step<El::BigFloat>(whole, right);
    step<fork::BigFloat>(whole, right);
    if (rank == 0) printf("sdpb_step: %d ranks, both layouts of numbers\n", size);
    free_array(whole.q, N * N), free_array(whole.factor, N * N), free_array(whole.dx, rows), free_array(whole.dy, N);
    free_array(whole.log_det, 1), free_array(whole.s, N * M), free_array(right, N);
    mpfr_free_cache();
    MPI_Finalize();
    return 0;
}
