// Every routine beside its formula, on mpf_class or, with SUNZI_TEST_MPFR, on mpreal; in the interface of MPLAPACK or,
// with SUNZI_MPACK, of MPACK. Prints the number of checks.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef SUNZI_TEST_MPFR
#include <sunzi/mplapack_mpfr.h>
typedef mpfr::mpreal Real;
#define XERBLA Mxerbla_mpfr
#define LAMCH Rlamch_mpfr
#else
#include <sunzi/mplapack_gmp.h>
typedef mpf_class Real;
#define XERBLA Mxerbla_gmp
#define LAMCH Rlamch_gmp
#endif

#ifdef SUNZI_MPACK
typedef mpackint Int;
#define INFO(info) (&(info))
#else
typedef mplapackint Int;
#define INFO(info) (info)
#endif

static const int BITS = 256;
static long checks = 0;
static std::string refused;

// The program's own takes the place of the library's.
void XERBLA(const char *routine, int argument) { refused = std::string(routine) + " " + std::to_string(argument); }

static void expect(bool holds, const char *what) {
    checks++;
    if (!holds) {
        std::printf("not so: %s\n", what);
        std::exit(1);
    }
}

static unsigned long state = 12345;

// A number between -1 and 1 with all of its bits used.
static Real number() {
    Real sum = 0;
    for (int i = 0; i < 6; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        sum = sum / 65536.0 / 65536.0 + double(state >> 32) / 65536.0 / 65536.0;
    }
    return 2 * sum - 1;
}

static bool near(const Real &found, const Real &wanted) {
    Real error = found - wanted;
    static Real limit = 0;
    if (limit == 0) {
        limit = 1;
        for (int i = 0; i < BITS - 26; i++) limit /= 2;
    }
    return error <= limit && -error <= limit;
}

// Column-major, in a longer array of which the gaps hold 77.
struct Matrix {
    Int rows, cols, ld;
    std::vector<Real> entries;

    Matrix(Int rows, Int cols, bool random = true) : rows(rows), cols(cols), ld(rows + 2), entries((rows + 2) * cols + 2) {
        for (Real &entry : entries) entry = 77;
        for (Int j = 0; j < cols; j++) {
            for (Int i = 0; i < rows; i++) at(i, j) = random ? number() : Real(0);
        }
    }
    Real &at(Int i, Int j) { return entries[size_t(j * ld + i)]; }
    Real get(Int i, Int j, bool trans = false) const { return entries[size_t(trans ? i * ld + j : j * ld + i)]; }
    Real *data() { return entries.data(); }
};

struct Vector {
    Int count, inc;
    std::vector<Real> entries;

    Vector(Int count, Int inc) : count(count), inc(inc), entries(size_t(std::abs(inc) * count + 1)) {
        for (Real &entry : entries) entry = number();
    }
    Real &at(Int i) { return entries[size_t(inc < 0 ? (count - 1 - i) * -inc : i * inc)]; }
    Real *data() { return entries.data(); }
};

static const char *letter(bool second, const char *letters) {
    static char texts[8][2];
    static int next = 0;
    char *text = texts[next++ % 8];
    text[0] = letters[second];
    text[1] = 0;
    return text;
}

// The entry of a triangular matrix, of a symmetric one.
static Real triangular(const Matrix &t, Int i, Int j, bool lower, bool trans, bool unit) {
    if (i == j && unit) return 1;
    if (trans) std::swap(i, j);
    return (lower ? i >= j : i <= j) ? t.get(i, j) : Real(0);
}

static Real symmetric(const Matrix &a, Int i, Int j, bool lower) { return (i >= j) == lower ? a.get(i, j) : a.get(j, i); }

static void products(Int m, Int n, Int k) {
    const Real alpha = number(), beta = number();
    for (int choice = 0; choice < 4; choice++) {
        const bool ta = choice & 1, tb = choice & 2;
        Matrix a(ta ? k : m, ta ? m : k), b(tb ? n : k, tb ? k : n), c(m, n), before = c;
        Rgemm(letter(ta, "nT"), letter(tb, "NC"), m, n, k, alpha, a.data(), a.ld, b.data(), b.ld, beta, c.data(), c.ld);
        for (Int j = 0; j < n; j++) {
            for (Int i = 0; i < m; i++) {
                Real sum = beta * before.get(i, j);
                for (Int l = 0; l < k; l++) sum += alpha * a.get(i, l, ta) * b.get(l, j, tb);
                expect(near(c.get(i, j), sum), "gemm");
            }
            if (m > 0) expect(c.entries[size_t(j * c.ld + m)] == 77, "gemm: gaps");
        }
        const bool lower = choice & 1, trans = choice & 2;
        Matrix d(trans ? k : n, trans ? n : k), e(trans ? k : n, trans ? n : k), s(n, n), t = s, old = s;
        Rsyrk(letter(lower, "UL"), letter(trans, "NT"), n, k, alpha, d.data(), d.ld, beta, s.data(), s.ld);
        Rsyr2k(letter(lower, "UL"), letter(trans, "NT"), n, k, alpha, d.data(), d.ld, e.data(), e.ld, beta, t.data(), t.ld);
        for (Int j = 0; j < n; j++) {
            for (Int i = 0; i < n; i++) {
                const bool part = lower ? i >= j : i <= j;
                Real one = beta * old.get(i, j), two = one;
                for (Int l = 0; l < k; l++) {
                    one += alpha * d.get(i, l, trans) * d.get(j, l, trans);
                    two += alpha * (d.get(i, l, trans) * e.get(j, l, trans) + e.get(i, l, trans) * d.get(j, l, trans));
                }
                expect(part ? near(s.get(i, j), one) : s.get(i, j) == old.get(i, j), "syrk");
                expect(part ? near(t.get(i, j), two) : t.get(i, j) == old.get(i, j), "syr2k");
            }
        }
    }
}

static void sides(Int m, Int n) {
    const Real alpha = number(), beta = number();
    for (int choice = 0; choice < 16; choice++) {
        const bool right = choice & 1, lower = choice & 2, trans = choice & 4, unit = choice & 8;
        const Int order = right ? n : m;
        Matrix a(order, order), b(m, n), product = b, solution = b, c(m, n), old = c;
        for (Int i = 0; i < order; i++) a.at(i, i) += 9; // solutions stay small
        const char *side = letter(right, "LR"), *uplo = letter(lower, "UL");
        const char *op = letter(trans, "NT"), *diag = letter(unit, "NU");
        if (unit) {
            for (Real &entry : a.entries) entry /= 16;
        }
        Rtrmm(side, uplo, op, diag, m, n, alpha, a.data(), a.ld, product.data(), product.ld);
        Rtrsm(side, uplo, op, diag, m, n, alpha, a.data(), a.ld, solution.data(), solution.ld);
        Rsymm(side, uplo, m, n, alpha, a.data(), a.ld, b.data(), b.ld, beta, c.data(), c.ld);
        for (Int j = 0; j < n; j++) {
            for (Int i = 0; i < m; i++) {
                Real times = 0, back = 0, whole = beta * old.get(i, j);
                for (Int l = 0; l < order; l++) {
                    const Real t = right ? triangular(a, l, j, lower, trans, unit) : triangular(a, i, l, lower, trans, unit);
                    const Real s = right ? symmetric(a, l, j, lower) : symmetric(a, i, l, lower);
                    const Real entry = right ? b.get(i, l) : b.get(l, j);
                    times += alpha * t * entry;
                    back += t * (right ? solution.get(i, l) : solution.get(l, j));
                    whole += alpha * s * entry;
                }
                expect(near(product.get(i, j), times), "trmm");
                expect(near(back, alpha * b.get(i, j)), "trsm");
                expect(near(c.get(i, j), whole), "symm");
            }
        }
    }
}

static void vectors(Int m, Int n, Int incx, Int incy) {
    const Real alpha = number(), beta = number();
    for (int choice = 0; choice < 8; choice++) {
        const bool trans = choice & 1, lower = choice & 2, unit = choice & 4;
        Matrix a(m, n), square(n, n), updated = a;
        for (Int i = 0; i < n; i++) square.at(i, i) += 9;
        Vector x(trans ? m : n, incx), y(trans ? n : m, incy), old = y;
        Rgemv(letter(trans, "NT"), m, n, alpha, a.data(), a.ld, x.data(), incx, beta, y.data(), incy);
        for (Int i = 0; i < y.count && x.count > 0; i++) {
            Real sum = beta * old.at(i);
            for (Int j = 0; j < x.count; j++) sum += alpha * a.get(i, j, trans) * x.at(j);
            expect(near(y.at(i), sum), "gemv");
        }
        Vector u(n, incx), v(n, incy), w = v, product = u;
        Rsymv(letter(lower, "UL"), n, alpha, square.data(), square.ld, u.data(), incx, beta, v.data(), incy);
        Rtrmv(letter(lower, "UL"), letter(trans, "NT"), letter(unit, "NU"), n, square.data(), square.ld, product.data(), incx);
        Vector back = product;
        Rtrsv(letter(lower, "UL"), letter(trans, "NT"), letter(unit, "NU"), n, square.data(), square.ld, back.data(), incx);
        for (Int i = 0; i < n; i++) {
            Real sum = beta * w.at(i), times = 0;
            for (Int j = 0; j < n; j++) {
                sum += alpha * symmetric(square, i, j, lower) * u.at(j);
                times += triangular(square, i, j, lower, trans, unit) * u.at(j);
            }
            expect(near(v.at(i), sum), "symv");
            expect(near(product.at(i), times), "trmv");
            expect(near(back.at(i), u.at(i)), "trsv");
        }
        Vector left(m, incx), right(n, incy);
        Rger(m, n, alpha, left.data(), incx, right.data(), incy, updated.data(), updated.ld);
        for (Int j = 0; j < n; j++) {
            for (Int i = 0; i < m; i++) {
                expect(near(updated.get(i, j), a.get(i, j) + alpha * left.at(i) * right.at(j)), "ger");
            }
        }
    }
}

static void level_one(Int n, Int incx, Int incy) {
    const Real alpha = number();
    Vector x(n, incx), y(n, incy), old = y, copy(n, incy), other = x, third = y;
    Real dot = 0, square = 0, sum = 0;
    Int best = 0;
    for (Int i = 0; i < n; i++) {
        dot += x.at(i) * y.at(i);
        square += x.at(i) * x.at(i);
    }
    expect(near(Rdot(n, x.data(), incx, y.data(), incy), dot), "dot");
    const Real norm = Rnrm2(n, x.data(), incx);
    expect(near(norm * norm, square), "nrm2");
    Raxpy(n, alpha, x.data(), incx, y.data(), incy);
    Rcopy(n, x.data(), incx, copy.data(), incy);
    Rswap(n, other.data(), incx, third.data(), incy);
    for (Int i = 0; i < n; i++) {
        expect(near(y.at(i), old.at(i) + alpha * x.at(i)), "axpy");
        expect(copy.at(i) == x.at(i), "copy");
        expect(third.at(i) == x.at(i) && other.at(i) == old.at(i), "swap");
    }
    Vector scaled = x;
    Rscal(n, alpha, scaled.data(), incx);
    for (Int i = 0; i < n; i++) {
        expect(incx < 0 ? scaled.at(i) == x.at(i) : near(scaled.at(i), alpha * x.at(i)), "scal");
        if (incx > 0) sum += x.at(i) < 0 ? Real(-x.at(i)) : x.at(i);
        if (incx > 0 && (best == 0 || abs(x.at(best - 1)) < abs(x.at(i)))) best = i + 1;
    }
    expect(near(Rasum(n, x.data(), incx), sum), "asum");
    expect(iRamax(n, x.data(), incx) == best, "iamax");
}

// Sums of magnitudes are the exact ones, rounded once: to within 2^-BITS of them.
static void sums_of_magnitudes(Int n) {
    Vector x(n, 1);
    Real exact(0, 4096), error(0, 4096), limit(0, 4096);
    for (Int i = 0; i < n; i++) {
        if (x.at(i) < 0) exact -= x.at(i);
        else exact += x.at(i);
    }
    const Real found = Rasum(n, x.data(), 1);
    error = exact - found;
    limit = exact;
    for (int i = 0; i < BITS; i++) limit /= 2;
    expect(error <= limit && -error <= limit, "asum to the last bit");
}

static void factors(Int n, bool lower) {
    Matrix a(n, n), right(n, 2);
    for (Int i = 0; i < n; i++) a.at(i, i) += 2 * n + 1;
    const char *uplo = letter(lower, "UL");
    Matrix factor = a, solution = right;
    Int info = 77;
    Rpotrf(uplo, n, factor.data(), factor.ld, INFO(info));
    expect(info == 0, "potrf");
    Matrix twin = a;
    Rpotrf2(uplo, n, twin.data(), twin.ld, INFO(info));
    expect(info == 0 && twin.entries == factor.entries, "potrf2");
    twin = a;
    Rpotf2(uplo, n, twin.data(), twin.ld, INFO(info));
    expect(info == 0 && twin.entries == factor.entries, "potf2");
    Rpotrs(uplo, n, 2, factor.data(), factor.ld, solution.data(), solution.ld, INFO(info));
    expect(info == 0, "potrs");
    Matrix inverse = factor, triangle = factor, unit = factor;
    Rpotri(uplo, n, inverse.data(), inverse.ld, INFO(info));
    expect(info == 0, "potri");
    Rtrtri(uplo, "N", n, triangle.data(), triangle.ld, INFO(info));
    expect(info == 0, "trtri");
    Rtrtri(uplo, "U", n, unit.data(), unit.ld, INFO(info));
    expect(info == 0, "trtri, unit");
    for (Int i = 0; i < n; i++) {
        for (Int j = 0; j < n; j++) {
            Real product = 0, identity = 0, times = 0, ones = 0;
            for (Int l = 0; l < n; l++) {
                const bool trans = !lower;
                product += triangular(factor, i, l, lower, trans, false) * triangular(factor, j, l, lower, trans, false);
                identity += symmetric(a, i, l, lower) * symmetric(inverse, l, j, lower);
                times += triangular(factor, i, l, lower, false, false) * triangular(triangle, l, j, lower, false, false);
                ones += triangular(factor, i, l, lower, false, true) * triangular(unit, l, j, lower, false, true);
            }
            const bool part = lower ? i >= j : i <= j;
            expect(near(product / n, symmetric(a, i, j, lower) / n), "potrf: L L^T");
            expect(part || (factor.get(i, j) == a.get(i, j) && inverse.get(i, j) == a.get(i, j)), "potrf: other triangle");
            expect(near(identity, i == j), "potri: A A^-1");
            expect(near(times, i == j) && near(ones, i == j), "trtri");
        }
        expect(unit.get(i, i) == factor.get(i, i), "trtri: diagonal of ones");
        for (Int j = 0; j < 2; j++) {
            Real sum = 0;
            for (Int l = 0; l < n; l++) sum += symmetric(a, i, l, lower) * solution.get(l, j);
            expect(near(sum, right.get(i, j)), "potrs");
        }
    }
    if (n < 3) return;
    a.at(2, 2) = -1;
    Rpotrf(uplo, n, a.data(), a.ld, INFO(info));
    expect(info == 3, "potrf: info");
    factor.at(1, 1) = 0;
    Rpotri(uplo, n, factor.data(), factor.ld, INFO(info));
    expect(info == 2, "potri: info");
    Rtrtri(uplo, "N", n, factor.data(), factor.ld, INFO(info));
    expect(info == 2, "trtri: info");
}

// A general matrix with its determinant from the pivots beside Gauss' elimination.
static void general(Int n) {
    Matrix a(n, n), right(n, 2), plain = right, transposed = right, once = right;
    Int info = 77;
    std::vector<Int> ipiv(size_t(n + 1), 77), twin_pivots = ipiv, own = ipiv;
    Matrix factors = a, twin = a, whole = a;
    Rgetrf(n, n, factors.data(), factors.ld, ipiv.data(), INFO(info));
    expect(info == 0 && ipiv[size_t(n)] == 77, "getrf");
    for (auto routine : {static_cast<decltype(&Rgetrf)>(Rgetrf2), static_cast<decltype(&Rgetrf)>(Rgetf2)}) {
        twin = a;
        routine(n, n, twin.data(), twin.ld, twin_pivots.data(), INFO(info));
        expect(info == 0 && twin.entries == factors.entries && twin_pivots == ipiv, "getrf2, getf2");
    }
    Rgetrs("N", n, 2, factors.data(), factors.ld, ipiv.data(), plain.data(), plain.ld, INFO(info));
    expect(info == 0, "getrs");
    Rgetrs("t", n, 2, factors.data(), factors.ld, ipiv.data(), transposed.data(), transposed.ld, INFO(info));
    expect(info == 0, "getrs, transposed");
    Rgesv(n, 2, whole.data(), whole.ld, own.data(), once.data(), once.ld, INFO(info));
    expect(info == 0 && whole.entries == factors.entries && own == ipiv && once.entries == plain.entries, "gesv");
    Matrix inverse = factors;
    std::vector<Real> work(size_t(n + 1));
    Rgetri(n, inverse.data(), inverse.ld, ipiv.data(), work.data(), -1, INFO(info));
    expect(info == 0 && work[0] == std::max(n, Int(1)) && inverse.entries == factors.entries, "getri: query");
    Rgetri(n, inverse.data(), inverse.ld, ipiv.data(), work.data(), std::max(n, Int(1)), INFO(info));
    expect(info == 0, "getri");
    // P A, by LAPACK's interchanges.
    Matrix rows = a;
    for (Int i = 0; i < n; i++) {
        expect(ipiv[size_t(i)] > i && ipiv[size_t(i)] <= n, "getrf: ipiv");
        for (Int j = 0; j < n; j++) std::swap(rows.at(i, j), rows.at(ipiv[size_t(i)] - 1, j));
    }
    for (Int i = 0; i < n; i++) {
        for (Int j = 0; j < n; j++) {
            Real product = 0, identity = 0;
            for (Int l = 0; l < n; l++) {
                product += triangular(factors, i, l, true, false, true) * triangular(factors, l, j, false, false, false);
                identity += a.get(i, l) * inverse.get(l, j);
            }
            expect(near(product, rows.get(i, j)), "getrf: L U");
            expect(near(identity, i == j), "getri: A A^-1");
        }
        for (Int j = 0; j < 2; j++) {
            Real sum = 0, other = 0;
            for (Int l = 0; l < n; l++) {
                sum += a.get(i, l) * plain.get(l, j);
                other += a.get(l, i) * transposed.get(l, j);
            }
            expect(near(sum, right.get(i, j)) && near(other, right.get(i, j)), "getrs");
        }
    }
    if (n < 3) return;
    // The second column is twice the first one: only the zero on the diagonal is stored.
    for (Int i = 0; i < n; i++) a.at(i, 1) = 2 * a.at(i, 0);
    Matrix zero = a;
    zero.at(1, 1) = 0;
    for (bool solve : {false, true}) {
        Matrix singular = a, b = right;
        if (solve) Rgesv(n, 2, singular.data(), singular.ld, own.data(), b.data(), b.ld, INFO(info));
        else Rgetrf(n, n, singular.data(), singular.ld, own.data(), INFO(info));
        expect(info == 2 && singular.entries == zero.entries && b.entries == right.entries, "getrf, gesv: info");
        for (Int i = 0; i < n; i++) expect(own[size_t(i)] == i + 1, "getrf, gesv: no interchanges");
        Rgetri(n, singular.data(), singular.ld, own.data(), work.data(), n, INFO(info));
        expect(info == 2 && singular.entries == zero.entries, "getri: info");
    }
}

static void eigenvalues(Int n, bool lower) {
    Matrix a(n, n), vectors = a;
    Int info = 77, lwork = 3 * n + 1, query = -1;
    std::vector<Real> values(size_t(n + 1)), alone(size_t(n + 1)), work(size_t(lwork) + 1);
    const char *uplo = letter(lower, "UL");
#ifdef SUNZI_MPACK
    Rsyev("V", uplo, n, vectors.data(), vectors.ld, values.data(), work.data(), &query, &info);
    Rsyev("V", uplo, n, vectors.data(), vectors.ld, values.data(), work.data(), &lwork, &info);
    Matrix lost = a;
    Rsyev("N", uplo, n, lost.data(), lost.ld, alone.data(), work.data(), &lwork, &info);
#else
    Rsyev("V", uplo, n, vectors.data(), vectors.ld, values.data(), work.data(), query, info);
    Rsyev("V", uplo, n, vectors.data(), vectors.ld, values.data(), work.data(), lwork, info);
    Matrix lost = a;
    Rsyev("N", uplo, n, lost.data(), lost.ld, alone.data(), work.data(), lwork, info);
#endif
    expect(info == 0, "syev");
    for (Int j = 0; j < n; j++) {
        expect(j == 0 || values[size_t(j - 1)] <= values[size_t(j)], "syev: order");
        expect(near(values[size_t(j)], alone[size_t(j)]), "syev: values alone");
        for (Int i = 0; i < n; i++) {
            Real sum = 0, product = 0;
            for (Int l = 0; l < n; l++) {
                sum += symmetric(a, i, l, lower) * vectors.get(l, j);
                product += vectors.get(l, i) * vectors.get(l, j);
            }
            expect(near(sum, values[size_t(j)] * vectors.get(i, j)), "syev: A v");
            expect(near(product, i == j), "syev: orthogonal");
        }
    }
    std::vector<Real> d(size_t(n + 1)), e(size_t(n + 1));
    for (Int i = 0; i < n; i++) d[size_t(i)] = number();
    for (Int i = 0; i < n; i++) e[size_t(i)] = i % 4 == 3 ? Real(0) : number();
    const std::vector<Real> diagonal = d, beside = e;
    Matrix z(n, n);
    Rsteqr("I", n, d.data(), e.data(), z.data(), z.ld, work.data(), INFO(info));
    expect(info == 0, "steqr");
    for (Int j = 0; j < n; j++) {
        for (Int i = 0; i < n; i++) {
            Real sum = diagonal[size_t(i)] * z.get(i, j);
            if (i > 0) sum += beside[size_t(i - 1)] * z.get(i - 1, j);
            if (i + 1 < n) sum += beside[size_t(i)] * z.get(i + 1, j);
            expect(near(sum, d[size_t(j)] * z.get(i, j)), "steqr: T z");
        }
    }
    for (Int i = 0; i < n; i++) expect(e[size_t(n - 1)] == beside[size_t(n - 1)] || n == 0, "steqr: n - 1 entries beside");
}

static void refusals() {
    Matrix a(3, 3);
    Vector x(3, 1);
    Int info = 77;
    const Real one = 1;
    Rgemm("X", "N", 3, 3, 3, one, a.data(), 3, a.data(), 3, one, a.data(), 3);
    expect(refused == "Rgemm 1", "gemm: transa");
    Rgemm("N", "N", 3, 3, -3, one, a.data(), 3, a.data(), 3, one, a.data(), 3);
    expect(refused == "Rgemm 5", "gemm: k");
    Rgemm("N", "N", 3, 3, 3, one, a.data(), 3, a.data(), 3, one, a.data(), 2);
    expect(refused == "Rgemm 13", "gemm: ldc");
    Rsyrk("L", "N", 3, 3, one, a.data(), 2, one, a.data(), 3);
    expect(refused == "Rsyrk 7", "syrk: lda");
    Rtrsm("L", "L", "N", "N", 3, 3, one, a.data(), 2, a.data(), 3);
    expect(refused == "Rtrsm 9", "trsm: lda");
    Rgemv("N", 3, 3, one, a.data(), 3, x.data(), 0, one, x.data(), 1);
    expect(refused == "Rgemv 8", "gemv: incx");
    Rpotrf("A", 3, a.data(), 3, INFO(info));
    expect(refused == "Rpotrf 1" && info == -1, "potrf: uplo");
    Rpotrf("U", 3, a.data(), 2, INFO(info));
    expect(refused == "Rpotrf 4" && info == -4, "potrf: lda");
    Rpotri("U", -1, a.data(), 3, INFO(info));
    expect(refused == "Rpotri 2" && info == -2, "potri: n");
    Rtrtri("U", "A", 3, a.data(), 3, INFO(info));
    expect(refused == "Rtrtri 2" && info == -2, "trtri: diag");
    Int ipiv[3] = {1, 2, 4};
    Rgetrf(3, 2, a.data(), 3, ipiv, INFO(info));
    expect(refused == "Rgetrf 2" && info == -2, "getrf: not square");
    Rgetrf2(3, 3, a.data(), 2, ipiv, INFO(info));
    expect(refused == "Rgetrf2 4" && info == -4, "getrf2: lda");
    Rgetrs("N", 3, 1, a.data(), 3, ipiv, x.data(), 3, INFO(info));
    expect(refused == "Rgetrs 6" && info == -6, "getrs: ipiv");
    Rgesv(3, 1, a.data(), 3, static_cast<Int *>(nullptr), x.data(), 3, INFO(info));
    expect(refused == "Rgesv 5" && info == -5, "gesv: ipiv");
    Rgetri(3, a.data(), 3, ipiv, x.data(), 2, INFO(info));
    expect(refused == "Rgetri 6" && info == -6, "getri: lwork");
    expect(ipiv[0] == 1 && ipiv[1] == 2 && ipiv[2] == 4, "getrf: ipiv after a wrong argument");
    Rsteqr("V", 3, x.data(), x.data(), a.data(), 2, x.data(), INFO(info));
    expect(refused == "Rsteqr 6" && info == -6, "steqr: ldz");
}

#ifdef SUNZI_TEST_MPFR
static void not_finite() {
    Matrix a(3, 3), c(3, 3);
    Vector x(3, 1);
    Int info = 0;
    a.at(1, 1) = mpfr::const_infinity();
    Rgemm("N", "N", 3, 3, 3, Real(1), a.data(), a.ld, a.data(), a.ld, Real(0), c.data(), c.ld);
    expect(mpfr::isnan(c.get(0, 0)) && mpfr::isnan(c.get(2, 2)) && c.entries[3] == 77, "gemm: infinite");
    Rpotrf("L", 3, a.data(), a.ld, INFO(info));
    expect(info == 2, "potrf: infinite");
    Matrix infinite(3, 3), solution(3, 1);
    infinite.at(1, 1) = mpfr::const_infinity();
    Int ipiv[3] = {7, 7, 7};
    Rgesv(3, 1, infinite.data(), infinite.ld, ipiv, solution.data(), solution.ld, INFO(info));
    expect(info == 0 && mpfr::isnan(infinite.get(0, 0)) && mpfr::isnan(solution.get(2, 0)), "gesv: infinite");
    expect(ipiv[0] == 1 && ipiv[2] == 3, "gesv: interchanges of NaN");
    Rgetrf(3, 3, infinite.data(), infinite.ld, ipiv, INFO(info));
    expect(info == 0 && mpfr::isnan(infinite.get(2, 2)) && infinite.entries[3] == 77, "getrf: NaN");
    Matrix none(2, 2, false), divided(2, 1);
    Rgetrs("N", 2, 1, none.data(), none.ld, ipiv, divided.data(), divided.ld, INFO(info));
    expect(info == 0 && mpfr::isnan(divided.get(1, 0)) && divided.entries[2] == 77, "getrs: division by zero");
    x.at(1) = mpfr::mpreal("nan");
    expect(mpfr::isnan(Rdot(3, x.data(), 1, x.data(), 1)), "dot: NaN");
    // A leading dimension that is wrong is told, and nothing is written by it.
    refused.clear();
    Rgemm("N", "N", 3, 3, 3, mpfr::mpreal("nan"), x.data(), 3, x.data(), 3, Real(0), c.data(), 2);
    expect(refused == "Rgemm 13", "gemm: ldc beside NaN");
    Matrix spoilt(3, 3);
    spoilt.at(1, 1) = mpfr::mpreal("nan");
    Vector w(3, 1), work(9, 1);
    Int room = 9;
    Rsyev("V", "L", 3, spoilt.data(), spoilt.ld, w.data(), work.data(), INFO(room), INFO(info));
    expect(mpfr::isnan(w.at(0)) && mpfr::isnan(spoilt.get(0, 2)), "syev: NaN");
    Matrix zero(2, 2, false);
    Rtrsm("L", "L", "N", "N", 2, 2, Real(1), zero.data(), zero.ld, c.data(), c.ld);
    expect(mpfr::isnan(c.get(0, 0)), "trsm: singular");
}
#endif

#ifdef SUNZI_TEST_MPFR
// Each number has a precision of its own, which results keep.
static void mixed_precisions() {
    mpfr::mpreal x[3] = {mpfr::mpreal(0.5, 53), mpfr::mpreal(1, 128), mpfr::mpreal(1, 128)};
    x[1] += mpfr::pow(mpfr::mpreal(2, 128), -60);
    x[2] += mpfr::pow(mpfr::mpreal(2, 128), -61);
    expect(iRamax(3, x, 1) == 2, "iamax: mixed precisions");
    mpfr::mpreal y[2] = {mpfr::mpreal(1, 53), mpfr::mpreal(1, 1024)}, third[2] = {mpfr::mpreal(1, 1024), mpfr::mpreal(1, 1024)};
    for (mpfr::mpreal &entry : third) entry /= 3;
    Raxpy(2, mpfr::mpreal(1, 53), third, 1, y, 1);
    expect(mpfr::abs(3 * y[1] - 4) < mpfr::pow(mpfr::mpreal(2, 1024), -1018), "axpy: mixed precisions");
    mpfr::mpreal l[4] = {mpfr::mpreal(1, 53), mpfr::mpreal(0, 53), mpfr::mpreal(0, 1024), mpfr::mpreal(3, 1024)};
    Int info = 0;
    Rtrtri("L", "N", 2, l, 2, INFO(info));
    expect(info == 0 && mpfr::abs(3 * l[3] - 1) < mpfr::pow(mpfr::mpreal(2, 1024), -1018), "trtri: mixed precisions");
}
#endif

int main() {
#ifdef SUNZI_TEST_MPFR
    mpfr::mpreal::set_default_prec(BITS);
#else
    mpf_set_default_prec(BITS);
#endif
    for (Int n : {0, 1, 2, 7}) {
        products(n, n, n);
        products(n, 3, 5);
        products(4, n, 0);
        sides(n, 3);
        sides(4, n);
        for (Int inc : {1, -1, 2, -3}) {
            vectors(n, n, inc, -1);
            vectors(5, n, 2, inc);
            level_one(n, inc, 1);
            level_one(n, 2, inc);
        }
        general(n);
        for (bool lower : {false, true}) {
            factors(n, lower);
            eigenvalues(n, lower);
        }
    }
    sums_of_magnitudes(5000);
    factors(40, true);
    general(40);
    eigenvalues(20, true);
    refusals();
#ifdef SUNZI_TEST_MPFR
    not_finite();
    mixed_precisions();
#endif
    Real epsilon = LAMCH("E");
    for (int i = 0; i < BITS; i++) epsilon *= 2;
    expect(epsilon == 1 && LAMCH("B") == 2 && LAMCH("Safe minimum") > 0, "lamch");
    std::printf("%ld checks\n", checks);
    return 0;
}
