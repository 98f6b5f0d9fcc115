// Elemental's distributed matrices of BigFloat in the calls of sunzi.h, where they lie: no copy of the limbs, no gathering.
//
// Include it after Elemental's own header; where its namespace has another name than El, define SUNZI_EL before. Both
// layouts of BigFloat are known: a class around an mpfr_t with LockedPointer() and Pointer(), as upstream Elemental has
// it, and one that is nothing but a member gmp_float of type mpf_class, as the bootstrap collaboration's fork has it.
//
// Functions have the names and the order of arguments of Elemental's, behind a Context on the grid's communicator. All
// its ranks call them. What fails throws std::runtime_error on every rank; after that the context can be used again.
#ifndef SUNZI_ELEMENTAL_HPP
#define SUNZI_ELEMENTAL_HPP

#include <gmp.h>
#include <mpfr.h>
#include <stdexcept>
#include <string>
#include <sunzi.h>
#include <type_traits>
#include <vector>

#ifndef SUNZI_EL
#define SUNZI_EL ::El
#endif

namespace sunzi {
namespace elemental {

// A context on a communicator: that of a grid, whose ranks it numbers alike. MPI stays the caller's.
class Context {
  public:
    // `communicator` is the Fortran handle, MPI_Comm_c2f(grid.Comm().comm) with Elemental. Where the options leave
    // `accuracy` 0 it is SUNZI_NORM: that is what a Gram matrix of the bootstrap needs, and the faster one.
    explicit Context(int communicator, sunzi_options options = sunzi_options_default()) : ctx_(nullptr) {
        if (options.accuracy == 0) options.accuracy = SUNZI_NORM;
        if (sunzi_context_from_mpi(communicator, &options, &ctx_) != SUNZI_OK) {
            std::string message = sunzi_last_error(ctx_);
            sunzi_context_free(ctx_);
            throw std::runtime_error(message);
        }
    }
    ~Context() { sunzi_context_free(ctx_); }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    sunzi_context *get() const { return ctx_; }

    void check(sunzi_status status) const {
        if (status != SUNZI_OK) throw std::runtime_error(sunzi_last_error(ctx_));
    }

    int64_t size() const {
        int64_t size = 0;
        check(sunzi_mpi_size(ctx_, nullptr, &size));
        return size;
    }

  private:
    sunzi_context *ctx_;
};

namespace detail {

// Numbers that are an mpf_t and nothing else are described where they are.
template <class T> class MpfNumbers {
  public:
    static_assert(sizeof(T) == sizeof(mpf_t), "a BigFloat with gmp_float is expected to be nothing but that");
    MpfNumbers(const T *first, int64_t rows, int64_t cols, int64_t ld)
        : matrix_(sunzi_mpf_matrix(SUNZI_COL_MAJOR, rows, cols, first, ld)) {}
    sunzi_matrix matrix() const { return matrix_; }
    void store(T *) const {}

  private:
    sunzi_matrix matrix_;
};

// Of numbers around an mpfr_t the heads are copied, 32 bytes each; the limbs stay where they are.
template <class T> class MpfrNumbers {
  public:
    MpfrNumbers(const T *first, int64_t rows, int64_t cols, int64_t ld) : rows_(rows), cols_(cols), ld_(ld) {
        heads_.reserve(static_cast<size_t>(rows * cols));
        for (int64_t j = 0; j < cols; j++) {
            for (int64_t i = 0; i < rows; i++) heads_.push_back(*first[i + j * ld].LockedPointer());
        }
    }
    sunzi_matrix matrix() const {
        return sunzi_mpfr_matrix(SUNZI_COL_MAJOR, rows_, cols_, heads_.data(), rows_ > 0 ? rows_ : 1);
    }
    // Signs and exponents that the library has written. Its limbs are the caller's.
    void store(T *first) const {
        size_t at = 0;
        for (int64_t j = 0; j < cols_; j++) {
            for (int64_t i = 0; i < rows_; i++) *first[i + j * ld_].Pointer() = heads_[at++];
        }
    }

  private:
    int64_t rows_, cols_, ld_;
    std::vector<__mpfr_struct> heads_;
};

template <class T> std::true_type is_mpf(decltype(&T::gmp_float));
template <class T> std::false_type is_mpf(...);
template <class T>
using Numbers = typename std::conditional<decltype(is_mpf<T>(nullptr))::value, MpfNumbers<T>, MpfrNumbers<T>>::type;

template <class D> int32_t along(D distribution) {
    switch (distribution) {
        case SUNZI_EL::MC: return SUNZI_ALONG_GRID_ROW;
        case SUNZI_EL::MR: return SUNZI_ALONG_GRID_COL;
        case SUNZI_EL::VC: return SUNZI_ALONG_COL_MAJOR;
        case SUNZI_EL::VR: return SUNZI_ALONG_ROW_MAJOR;
        case SUNZI_EL::STAR: return SUNZI_ALONG_NONE;
        default: throw std::runtime_error("sunzi: a matrix distributed over diagonals (MD) is not taken");
    }
}

// A distributed matrix for one call.
template <class T> class Operand {
  public:
    template <class M>
    Operand(const Context &ctx, const M &a)
        : numbers_(a.LockedBuffer(), a.LocalHeight(), local_width(a), a.LDim() > 0 ? a.LDim() : 1) {
        auto data = a.DistData();
        if (data.colDist == SUNZI_EL::CIRC) {
            dist_ = sunzi_dist_rows(numbers_.matrix(), ctx.size());
            return;
        }
        const auto &grid = a.Grid();
        dist_ = sunzi_dist_elemental(numbers_.matrix(), a.Height(), a.Width(), grid.Height(), grid.Width(),
                                     along(data.colDist), along(data.rowDist), a.ColAlign(), a.RowAlign());
        dist_.grid_order = grid.Order() == SUNZI_EL::ROW_MAJOR ? SUNZI_ROW_MAJOR : SUNZI_COL_MAJOR;
    }
    const sunzi_dist_matrix *get() const { return &dist_; }
    template <class M> void store(M &a) const { numbers_.store(a.Buffer()); }

  private:
    // Ranks beside the root of [CIRC, CIRC] have no rows, and all columns.
    template <class M> static int64_t local_width(const M &a) {
        return a.DistData().colDist == SUNZI_EL::CIRC ? a.Width() : a.LocalWidth();
    }
    Numbers<T> numbers_;
    sunzi_dist_matrix dist_;
};

// A scalar for one call.
template <class T> class Scalar {
  public:
    explicit Scalar(const T &value) : numbers_(&value, 1, 1, 1), matrix_(numbers_.matrix()) {}
    const sunzi_matrix *get() const { return &matrix_; }
    void store(T &value) const { numbers_.store(&value); }

  private:
    Numbers<T> numbers_;
    sunzi_matrix matrix_;
};

// A matrix of this rank alone for one call.
template <class T> class Local {
  public:
    template <class M>
    explicit Local(const M &a)
        : numbers_(a.LockedBuffer(), a.Height(), a.Width(), a.LDim() > 0 ? a.LDim() : 1), matrix_(numbers_.matrix()) {}
    const sunzi_matrix *get() const { return &matrix_; }
    // Its rows as this rank's share of the rows of a matrix over all ranks.
    sunzi_dist_matrix rows(const Context &ctx) const { return sunzi_dist_rows(matrix_, ctx.size()); }
    template <class M> void store(M &a) const { numbers_.store(a.Buffer()); }

  private:
    Numbers<T> numbers_;
    sunzi_matrix matrix_;
};

template <class U> int32_t uplo_of(U uplo) { return uplo == SUNZI_EL::LOWER ? SUNZI_LOWER : SUNZI_UPPER; }
template <class O> int32_t trans_of(O orientation) {
    return orientation == SUNZI_EL::NORMAL ? SUNZI_NO_TRANS : SUNZI_TRANS;
}

} // namespace detail

// C := alpha op(A) op(B) + beta C.
template <class T, class O, class MA, class MB, class MC>
void Gemm(const Context &ctx, O orientA, O orientB, const T &alpha, const MA &A, const MB &B, const T &beta, MC &C) {
    detail::Scalar<T> a(alpha), b(beta);
    detail::Operand<T> left(ctx, A), right(ctx, B), result(ctx, C);
    ctx.check(sunzi_mpi_gemm(ctx.get(), detail::trans_of(orientA), detail::trans_of(orientB), a.get(), left.get(),
                             right.get(), b.get(), result.get()));
    result.store(C);
}

// C := alpha A A^T + beta C, or alpha A^T A + beta C with TRANSPOSE: one triangle.
template <class T, class U, class O, class MA, class MC>
void Syrk(const Context &ctx, U uplo, O orientation, const T &alpha, const MA &A, const T &beta, MC &C) {
    detail::Scalar<T> a(alpha), b(beta);
    detail::Operand<T> operand(ctx, A), result(ctx, C);
    ctx.check(sunzi_mpi_syrk(ctx.get(), detail::uplo_of(uplo), detail::trans_of(orientation), a.get(), operand.get(),
                             b.get(), result.get()));
    result.store(C);
}

// The Cholesky factor in one triangle of A, whose other triangle is neither read nor written.
template <class T, class U, class M> void Cholesky(const Context &ctx, U uplo, M &A) {
    detail::Operand<T> operand(ctx, A);
    ctx.check(sunzi_mpi_cholesky(ctx.get(), detail::uplo_of(uplo), operand.get()));
    operand.store(A);
}

// B := alpha op(A)^-1 B, or alpha B op(A)^-1, for a triangular A.
template <class T, class S, class U, class O, class D, class MA, class MB>
void Trsm(const Context &ctx, S side, U uplo, O orientation, D diag, const T &alpha, const MA &A, MB &B) {
    detail::Scalar<T> a(alpha);
    detail::Operand<T> triangle(ctx, A), right(ctx, B);
    ctx.check(sunzi_mpi_trsm(ctx.get(), side == SUNZI_EL::LEFT ? SUNZI_LEFT : SUNZI_RIGHT, detail::uplo_of(uplo),
                             detail::trans_of(orientation), diag == SUNZI_EL::UNIT ? SUNZI_UNIT : SUNZI_NON_UNIT,
                             a.get(), triangle.get(), right.get()));
    right.store(B);
}

// B := A^-1 B for a positive definite A, of which one triangle is read and which is left as it is.
template <class T, class U, class O, class MA, class MB>
void HPDSolve(const Context &ctx, U uplo, O, const MA &A, MB &B) {
    detail::Operand<T> matrix(ctx, A), right(ctx, B);
    ctx.check(sunzi_mpi_solve(ctx.get(), detail::uplo_of(uplo), matrix.get(), right.get()));
    right.store(B);
}

namespace cholesky {

// B := A^-1 B with a factor of A that Cholesky has left in one triangle.
template <class T, class U, class O, class MA, class MB>
void SolveAfter(const Context &ctx, U uplo, O, const MA &A, MB &B) {
    detail::Operand<T> factor(ctx, A), right(ctx, B);
    ctx.check(sunzi_mpi_cholesky_solve(ctx.get(), detail::uplo_of(uplo), factor.get(), right.get()));
    right.store(B);
}

} // namespace cholesky

// A Cholesky factor that the library keeps in its own form over the ranks: what several solves need is taken in and
// factored once. The context must outlive it; to free it takes no other rank.
template <class T> class Factor {
  public:
    // Of a positive definite A, of which one triangle is read and which is left as it is; at the precision of A.
    template <class U, class M> Factor(const Context &ctx, U uplo, const M &A) : ctx_(&ctx), factor_(nullptr) {
        detail::Operand<T> matrix(ctx, A);
        ctx.check(sunzi_mpi_factor_new(ctx.get(), detail::uplo_of(uplo), 0, matrix.get(), &factor_));
    }
    ~Factor() { sunzi_mpi_factor_free(factor_); }
    Factor(const Factor &) = delete;
    Factor &operator=(const Factor &) = delete;

    // Becomes the factor of another A, in the memory that it has where order and precision stay and there is no memory
    // limit. After an exception it has no rows, and must be renewed before it is used, unless arguments were refused.
    template <class U, class M> void Renew(U uplo, const M &A) {
        detail::Operand<T> matrix(*ctx_, A);
        ctx_->check(sunzi_mpi_factor_renew(ctx_->get(), detail::uplo_of(uplo), 0, matrix.get(), factor_));
    }

    // B := A^-1 B.
    template <class M> void Solve(M &B) const {
        detail::Operand<T> right(*ctx_, B);
        ctx_->check(sunzi_mpi_factor_solve(ctx_->get(), factor_, right.get()));
        right.store(B);
    }

    // result := log det A, on every rank.
    void LogDet(T &result) const {
        detail::Scalar<T> number(result);
        ctx_->check(sunzi_mpi_factor_log_det(ctx_->get(), factor_, number.get()));
        number.store(result);
    }

  private:
    const Context *ctx_;
    sunzi_mpi_factor *factor_;
};

// Calls on matrices of one rank, El::Matrix, which other ranks take no part in; and products over matrices that the
// ranks have by rows, as many each as its El::Matrix, none too, which all ranks call.
namespace local {

// The Cholesky factor in one triangle of A.
template <class T, class U, class M> void Cholesky(const Context &ctx, U uplo, M &A) {
    detail::Local<T> matrix(A);
    ctx.check(sunzi_cholesky(ctx.get(), detail::uplo_of(uplo), matrix.get()));
    matrix.store(A);
}

// B := alpha op(A)^-1 B, or alpha B op(A)^-1, for a triangular A.
template <class T, class S, class U, class O, class D, class MA, class MB>
void Trsm(const Context &ctx, S side, U uplo, O orientation, D diag, const T &alpha, const MA &A, MB &B) {
    detail::Scalar<T> a(alpha);
    detail::Local<T> triangle(A), right(B);
    ctx.check(sunzi_trsm(ctx.get(), side == SUNZI_EL::LEFT ? SUNZI_LEFT : SUNZI_RIGHT, detail::uplo_of(uplo),
                         detail::trans_of(orientation), diag == SUNZI_EL::UNIT ? SUNZI_UNIT : SUNZI_NON_UNIT, a.get(),
                         triangle.get(), right.get()));
    right.store(B);
}

// C := alpha op(A) op(B) + beta C.
template <class T, class O, class MA, class MB, class MC>
void Gemm(const Context &ctx, O orientA, O orientB, const T &alpha, const MA &A, const MB &B, const T &beta, MC &C) {
    detail::Scalar<T> a(alpha), b(beta);
    detail::Local<T> left(A), right(B), result(C);
    ctx.check(sunzi_gemm(ctx.get(), detail::trans_of(orientA), detail::trans_of(orientB), a.get(), left.get(),
                         right.get(), b.get(), result.get()));
    result.store(C);
}

} // namespace local

namespace rows {

// C := alpha A^T A + beta C, one triangle of a distributed C: the sum over the ranks of what their rows give.
template <class T, class U, class MA, class MC>
void Syrk(const Context &ctx, U uplo, const T &alpha, const MA &A, const T &beta, MC &C) {
    detail::Scalar<T> a(alpha), b(beta);
    detail::Local<T> own(A);
    detail::Operand<T> result(ctx, C);
    sunzi_dist_matrix rows = own.rows(ctx);
    ctx.check(sunzi_mpi_syrk(ctx.get(), detail::uplo_of(uplo), SUNZI_TRANS, a.get(), &rows, b.get(), result.get()));
    result.store(C);
}

// C := alpha A^T B + beta C for a distributed C; every rank has as many rows of A as of B.
template <class T, class MA, class MB, class MC>
void Gemm(const Context &ctx, const T &alpha, const MA &A, const MB &B, const T &beta, MC &C) {
    detail::Scalar<T> a(alpha), b(beta);
    detail::Local<T> left(A), right(B);
    detail::Operand<T> result(ctx, C);
    sunzi_dist_matrix of_a = left.rows(ctx), of_b = right.rows(ctx);
    ctx.check(sunzi_mpi_gemm(ctx.get(), SUNZI_TRANS, SUNZI_NO_TRANS, a.get(), &of_a, &of_b, b.get(), result.get()));
    result.store(C);
}

} // namespace rows

} // namespace elemental
} // namespace sunzi

#endif
