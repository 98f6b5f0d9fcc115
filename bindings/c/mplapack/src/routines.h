// What stands between the interfaces and the library: arrays, what fills a result that is not finite, and the routines
// that are loops. What allocates is noexcept: without memory the program ends, as it does in GMP.
#ifndef SUNZI_MPLAPACK_ROUTINES_H
#define SUNZI_MPLAPACK_ROUTINES_H

#include <algorithm>

#pragma GCC visibility push(hidden)

namespace sunzi_mplapack {

typedef Kind::raw Raw;
typedef Number<Kind> Value;

static_assert(sizeof(SUNZI_REAL) == sizeof(Raw), "an array of numbers is an array of the C library's");

inline Raw *raw(SUNZI_REAL *x) { return reinterpret_cast<Raw *>(x); }
inline const Raw *raw(const SUNZI_REAL *x) { return reinterpret_cast<const Raw *>(x); }

inline void store(int64_t &info, int64_t value) { info = value; }
inline void store(int64_t *info, int64_t value) { *info = value; }
inline void store(int32_t *info, int64_t value) { *info = static_cast<int32_t>(value); }
inline int64_t load(int64_t value) { return value; }
inline int64_t load(const int64_t *value) { return *value; }
inline int64_t load(const int32_t *value) { return *value; }

inline char letter(const char *text) { return static_cast<char>(std::toupper(static_cast<unsigned char>(*text))); }

// Where a routine stores its result: all of a block, or one of its triangles.
struct Block {
    Raw *first;
    int64_t rows, cols, ld;
    char uplo;

    static Block whole(Raw *first, int64_t rows, int64_t cols, int64_t ld) { return {first, rows, cols, ld, ' '}; }
    static Block vector(Raw *first, int64_t count, int64_t inc) { return {first, 1, count, inc < 0 ? -inc : inc, ' '}; }
    static Block triangle(Raw *first, int64_t order, int64_t ld, const char *uplo) {
        return {first, order, order, ld, letter(uplo)};
    }

    template <class F> void each(F visit) const {
        for (int64_t col = 0; col < cols; col++) {
            int64_t from = uplo == 'L' ? std::min(col, rows) : 0, to = uplo == 'U' ? std::min(col + 1, rows) : rows;
            for (int64_t row = from; row < to; row++) visit(first + col * ld + row, row, col);
        }
    }

    // The largest precision of its entries, which may differ.
    long bits() const {
        long most = 0;
        each([&](Raw *x, int64_t, int64_t) { most = std::max<long>(most, Kind::bits(x)); });
        return most;
    }

    // What loops would leave: a number that is not finite spreads over the sums that it is part of.
    void spoil(const char *routine) const {
        each([&](Raw *x, int64_t, int64_t) {
            if (!Kind::set_nan(x)) fail(routine, "division by zero");
        });
    }
};

// The end of a call that has returned `info`; what LAPACK returns. `singular` says that a positive info has no meaning
// to the caller, who divides by zero then.
inline int64_t finish(const char *routine, int64_t info, const Block &result, bool singular = true) {
    switch (settle(routine, info, SUNZI_XERBLA)) {
    case Outcome::wrong_argument:
        return info;
    case Outcome::not_finite:
        result.spoil(routine);
        return 0;
    case Outcome::done:
        break;
    }
    if (info > 0 && singular) {
        result.spoil(routine);
        return 0;
    }
    return info;
}

// The end of a Cholesky factorisation: a NaN is no positive pivot.
inline int64_t finish_factor(const char *routine, int64_t info, const Block &result) {
    if (settle(routine, info, SUNZI_XERBLA) != Outcome::not_finite) return info;
    int64_t row = 0, column = 0;
    sunzi_last_place(Context::get(), &row, &column);
    result.spoil(routine);
    return std::max(row, column) + 1;
}

// Numbers that a routine needs for itself.
class Array {
  public:
    Array(int64_t count, long bits) : numbers_(static_cast<size_t>(count)) {
        for (Raw &x : numbers_) {
            Kind::init(&x, bits);
            Kind::set_si(&x, 0);
        }
    }
    ~Array() {
        for (Raw &x : numbers_) Kind::clear(&x);
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    Raw *get() { return numbers_.data(); }
    Raw *at(int64_t index) { return &numbers_[static_cast<size_t>(index)]; }

  private:
    std::vector<Raw> numbers_;
};

// Precision of sums: that of new numbers, or of the entries where it is larger.
inline long sum_bits(int64_t count, const Raw *x) {
    return std::max(Kind::default_bits(), count > 0 ? Kind::bits(x) : 0L);
}

// The place of entry i of n that lie `inc` apart, backwards where that is negative.
inline int64_t index(int64_t i, int64_t n, int64_t inc) { return inc < 0 ? (i - n + 1) * inc : i * inc; }

// A vector of n entries.
struct Strided {
    Raw *first;
    int64_t inc;

    Raw *at(int64_t i, int64_t n) const { return first + index(i, n, inc); }
};

// Sums of level 1 touch each number once, which is less than it takes to hand it to the library: they are formed where
// the numbers lie, with two limbs more than the result, so that the errors of all terms together stay below its own.
const long SUM_GUARD_BITS = 128;

inline void dot(int64_t n, const Strided &x, const Strided &y, Raw *result) {
    const long bits = Kind::bits(result) + SUM_GUARD_BITS;
    Value sum(bits, 0L), product(bits);
    for (int64_t i = 0; i < n; i++) {
        Kind::mul(product.get(), x.at(i, n), y.at(i, n));
        Kind::add(sum.get(), sum.get(), product.get());
    }
    Kind::set(result, sum.get());
}

inline void axpy(int64_t n, const Raw *alpha, const Strided &x, const Strided &y) {
    if (n <= 0 || (Kind::is_finite(alpha) && Kind::sign(alpha) == 0)) return;
    long bits = 0;
    for (int64_t i = 0; i < n; i++) bits = std::max<long>(bits, Kind::bits(y.at(i, n)));
    Value sum(bits + SUM_GUARD_BITS);
    for (int64_t i = 0; i < n; i++) {
        Kind::mul(sum.get(), alpha, x.at(i, n));
        Kind::add(sum.get(), sum.get(), y.at(i, n));
        Kind::set(y.at(i, n), sum.get());
    }
}

// 0, or the number of the first argument of LAPACK's `A`, `n`, `lda` that is wrong, from `first` on.
inline int64_t check_square(int64_t n, int64_t lda, int64_t number_of_n, int64_t number_of_lda) {
    if (n < 0) return number_of_n;
    return lda < std::max<int64_t>(1, n) ? number_of_lda : 0;
}

inline bool is_one_of(const char *text, const char *letters) { return text && std::strchr(letters, letter(text)); }

inline int64_t refuse(const char *routine, int64_t argument) {
    SUNZI_XERBLA(routine, static_cast<int>(argument));
    return -argument;
}

// The first zero on a diagonal, from 1; 0 where there is none.
inline int64_t first_zero(const Raw *a, int64_t n, int64_t lda) {
    for (int64_t i = 0; i < n; i++) {
        if (Kind::is_finite(a + i * lda + i) && Kind::sign(a + i * lda + i) == 0) return i + 1;
    }
    return 0;
}

// Solves for the columns of the identity by `solve`, and stores a triangle of the solution in `a`.
template <class F> int64_t invert(const char *routine, const Block &a, F solve) {
    const int64_t n = a.rows;
    if (n == 0) return 0;
    Array inverse(n * n, a.bits());
    for (int64_t i = 0; i < n; i++) Kind::set_si(inverse.at(i * n + i), 1);
    int64_t info = finish(routine, solve(inverse.get()), a, false);
    if (info == 0 && sunzi_last_status(Context::get()) == SUNZI_OK) {
        a.each([&](Raw *x, int64_t row, int64_t col) { Kind::set(x, inverse.at(col * n + row)); });
    }
    return info;
}

inline int64_t potri(const char *uplo, int64_t n, Raw *a, int64_t lda) noexcept {
    if (!is_one_of(uplo, "UL")) return refuse("Rpotri", 1);
    if (int64_t wrong = check_square(n, lda, 2, 4)) return refuse("Rpotri", wrong);
    if (int64_t zero = first_zero(a, n, lda)) return zero;
    return invert("Rpotri", Block::triangle(a, n, lda, uplo),
                  [&](Raw *x) { return Kind::potrs(Context::get(), uplo, n, n, a, lda, x, n); });
}

inline int64_t trtri(const char *uplo, const char *diag, int64_t n, Raw *a, int64_t lda) noexcept {
    if (!is_one_of(uplo, "UL")) return refuse("Rtrtri", 1);
    if (!is_one_of(diag, "NU")) return refuse("Rtrtri", 2);
    if (int64_t wrong = check_square(n, lda, 3, 5)) return refuse("Rtrtri", wrong);
    const bool unit = letter(diag) == 'U';
    if (int64_t zero = unit ? 0 : first_zero(a, n, lda)) return zero;
    if (n == 0) return 0;
    const Value one(64, 1L);
    Array old_diagonal(unit ? n : 0, Block::triangle(a, n, lda, uplo).bits());
    for (int64_t i = 0; unit && i < n; i++) Kind::assign(old_diagonal.at(i), a + i * lda + i);
    int64_t info = invert("Rtrtri", Block::triangle(a, n, lda, uplo), [&](Raw *x) {
        return Kind::trsm(Context::get(), "L", uplo, "N", diag, n, n, one.get(), a, lda, x, n);
    });
    // A diagonal of ones is not stored.
    for (int64_t i = 0; unit && i < n; i++) Kind::assign(a + i * lda + i, old_diagonal.at(i));
    return info;
}

// LAPACK's interchanges of rows in the integers of the C library; null where the caller passes null.
class Pivots {
  public:
    template <class I> Pivots(int64_t n, const I *ipiv) : there_(ipiv != nullptr) {
        if (there_ && n > 0) rows_.assign(ipiv, ipiv + n);
        rows_.resize(rows_.size() + 1); // so that data() is an address for n = 0 as well
    }
    const int64_t *get() const { return there_ ? rows_.data() : nullptr; }

    // As many for a result, none of which moves a row yet.
    static std::vector<int64_t> identity(int64_t n) {
        std::vector<int64_t> rows(static_cast<size_t>(std::max<int64_t>(n, 0)) + 1);
        for (size_t i = 0; i < rows.size(); i++) rows[i] = static_cast<int64_t>(i) + 1;
        return rows;
    }

  private:
    bool there_;
    std::vector<int64_t> rows_;
};

// The end of an LU factorisation of `a` that has returned `info`; stores the interchanges. Without a pivot the C library
// leaves A as it was. For programs that do not look at info, a zero on the diagonal makes the determinant 0 and a solve
// a division by zero, as it does in LAPACK.
template <class I>
int64_t finish_lu(const char *routine, int64_t info, const Block &a, const std::vector<int64_t> &pivots, I *ipiv) {
    switch (settle(routine, info, SUNZI_XERBLA)) {
    case Outcome::wrong_argument:
        return info;
    case Outcome::not_finite:
        a.spoil(routine);
        info = 0;
        break;
    case Outcome::done:
        if (info > 0) Kind::set_si(a.first + (info - 1) * (a.ld + 1), 0);
        break;
    }
    for (int64_t i = 0; i < std::min(a.rows, a.cols); i++) ipiv[i] = static_cast<I>(pivots[static_cast<size_t>(i)]);
    return info;
}

template <class I> int64_t getrf(const char *routine, const Block &a, I *ipiv) noexcept {
    std::vector<int64_t> pivots = Pivots::identity(a.cols);
    int64_t info = Kind::getrf(Context::get(), a.rows, a.cols, a.first, a.ld, ipiv ? pivots.data() : nullptr);
    return finish_lu(routine, info, a, pivots, ipiv);
}

template <class I> int64_t gesv(const Block &a, I *ipiv, const Block &b) noexcept {
    std::vector<int64_t> pivots = Pivots::identity(a.cols);
    int64_t info =
        Kind::gesv(Context::get(), a.cols, b.cols, a.first, a.ld, ipiv ? pivots.data() : nullptr, b.first, b.ld);
    const bool is_finite = info >= 0 || sunzi_last_status(Context::get()) != SUNZI_NOT_FINITE;
    info = finish_lu("Rgesv", info, a, pivots, ipiv);
    if (!is_finite) b.spoil("Rgesv");
    return info;
}

// Guard bits of eigenvalues: their errors stay below those of the numbers given.
const long EIGEN_GUARD_BITS = 64;

inline bool all_finite(const Raw *x, int64_t count) {
    return std::all_of(x, x + count, [](const Raw &value) { return Kind::is_finite(&value); });
}

inline int64_t steqr(const char *compz, int64_t n, Raw *d, Raw *e, Raw *z, int64_t ldz) noexcept {
    if (!is_one_of(compz, "NVI")) return refuse("Rsteqr", 1);
    if (n < 0) return refuse("Rsteqr", 2);
    const char job = letter(compz);
    if (ldz < 1 || (job != 'N' && ldz < n)) return refuse("Rsteqr", 6);
    if (n == 0) return 0;
    const Block vectors = Block::whole(z, job == 'N' ? 0 : n, n, ldz);
    bool finite = all_finite(d, n) && all_finite(e, n - 1);
    if (job == 'V') vectors.each([&](Raw *x, int64_t, int64_t) { finite = finite && Kind::is_finite(x); });
    if (!finite) {
        Block::vector(d, n, 1).spoil("Rsteqr");
        vectors.spoil("Rsteqr");
        return n;
    }
    const long bits = std::max(Block::vector(d, n, 1).bits(), Block::vector(e, n - 1, 1).bits()) + EIGEN_GUARD_BITS;
    Tridiagonal<Kind> matrix(n, vectors.rows, bits);
    for (int64_t i = 0; i < n; i++) Kind::set(matrix.diagonal[i].get(), d + i);
    for (int64_t i = 0; i + 1 < n; i++) Kind::set(matrix.beside[i].get(), e + i);
    if (job == 'I') matrix.start_with_identity();
    if (job == 'V') vectors.each([&](Raw *x, int64_t row, int64_t col) { Kind::set(matrix.at(row, col).get(), x); });
    const int64_t left = matrix.diagonalise();
    if (left == 0) matrix.sort();
    for (int64_t i = 0; i < n; i++) Kind::set(d + i, matrix.diagonal[i].get());
    for (int64_t i = 0; i + 1 < n; i++) Kind::set(e + i, matrix.beside[i].get());
    vectors.each([&](Raw *x, int64_t row, int64_t col) { Kind::set(x, matrix.at(row, col).get()); });
    return left;
}

// The arguments of Rsyev.
struct Eigenproblem {
    const char *jobz, *uplo;
    int64_t n;
    Raw *a;
    int64_t lda;
    Raw *w, *work;
    int64_t lwork;

    int64_t solve() const noexcept {
        if (!is_one_of(jobz, "NV")) return refuse("Rsyev", 1);
        if (!is_one_of(uplo, "UL")) return refuse("Rsyev", 2);
        if (int64_t wrong = check_square(n, lda, 3, 5)) return refuse("Rsyev", wrong);
        const int64_t needed = std::max<int64_t>(1, 3 * n - 1);
        if (lwork == -1) {
            Kind::set_si(work, needed);
            return 0;
        }
        if (lwork < needed) return refuse("Rsyev", 8);
        return n == 0 ? 0 : run(letter(jobz) == 'V');
    }

  private:
    int64_t run(bool vectors) const {
        const long bits = Block::triangle(a, n, lda, uplo).bits() + EIGEN_GUARD_BITS;
        std::vector<Value> whole = numbers<Kind>(n * n, bits);
        bool finite = true;
        Block::triangle(a, n, lda, uplo).each([&](Raw *x, int64_t row, int64_t col) {
            finite = finite && Kind::is_finite(x);
            Kind::set(whole[static_cast<size_t>(col * n + row)].get(), x);
            Kind::set(whole[static_cast<size_t>(row * n + col)].get(), x);
        });
        if (!finite) {
            Block::vector(w, n, 1).spoil("Rsyev");
            if (vectors) Block::whole(a, n, n, lda).spoil("Rsyev");
            return n;
        }
        Tridiagonal<Kind> matrix = tridiagonal<Kind>(std::move(whole), n, bits, vectors);
        const int64_t left = matrix.diagonalise();
        if (left == 0) matrix.sort();
        for (int64_t i = 0; i < n; i++) Kind::set(w + i, matrix.diagonal[i].get());
        Block::whole(a, matrix.rows, n, lda).each([&](Raw *x, int64_t row, int64_t col) {
            Kind::set(x, matrix.at(row, col).get());
        });
        return left;
    }
};

// The values of DLAMCH at the default precision; exponents are those that the library computes with.
inline void machine(char what, Raw *result) {
    const long bits = Kind::bits(result), most = (1L << 30) - 1;
    const auto power = [&](long exponent) {
        Kind::set_si(result, 1);
        Kind::half(result, -exponent);
    };
    switch (std::toupper(static_cast<unsigned char>(what))) {
    case 'E': return power(-bits);
    case 'S': return power(-most + 1);
    case 'B': return power(1);
    case 'P': return power(1 - bits);
    case 'N': return Kind::set_si(result, bits);
    case 'R': return power(0);
    case 'M': return Kind::set_si(result, -most);
    case 'U': return power(-most - 1);
    case 'L': return Kind::set_si(result, most);
    case 'O': {
        power(-bits);
        const Value one(bits, 1L);
        Kind::sub(result, one.get(), result);
        return Kind::half(result, -most);
    }
    default: return Kind::set_si(result, 0);
    }
}

} // namespace sunzi_mplapack

#pragma GCC visibility pop

#endif
