// A semidefinite program of SDPLIB by a primal-dual interior-point method in mpf_class, as SDPA-GMP solves it: the HKM
// direction with Mehrotra's predictor and corrector. All matrices go through the routines of MPLAPACK: with the library,
// or, where PLAIN_LOOPS is defined, with loops.h.
//
//   minimise c^T x  so that  X = sum_i F_i x_i - F_0 is positive semidefinite,
//   maximise F_0 . Y  so that  F_i . Y = c_i and Y is positive semidefinite.
//
// interior_point FILE [BITS TOLERANCE [EARLIER]]: prints what was reached in one line; with the line of an earlier run
// compares iterations, digits and feasibility, and fails where they differ.

#ifdef PLAIN_LOOPS
#include "loops.h"
#else
#include <sunzi/mplapack_gmp.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

typedef mplapackint Int;
typedef mpf_class Real;

// A square matrix, column by column.
struct Matrix {
    Int order;
    std::vector<Real> entries;

    explicit Matrix(Int order, const Real &diagonal = 0) : order(order), entries(size_t(order * order)) {
        for (Int i = 0; i < order; i++) at(i, i) = diagonal;
    }
    Real &at(Int i, Int j) { return entries[size_t(j * order + i)]; }
    const Real &at(Int i, Int j) const { return entries[size_t(j * order + i)]; }
    Real *data() { return entries.data(); }
    Int size() const { return Int(entries.size()); }
};

// One entry of a symmetric matrix, row <= col.
struct Entry {
    Int row, col;
    Real value;
};

struct Problem {
    Int constraints = 0, order = 0;
    std::vector<Real> cost;
    std::vector<std::vector<Entry>> matrices; // F_0, F_1, ...
};

[[noreturn]] static void fail(const std::string &message) {
    std::cerr << "interior_point: " << message << "\n";
    std::exit(1);
}

// A file of SDPLIB with one block.
static Problem read(const char *name) {
    std::ifstream file(name);
    if (!file) fail(std::string("cannot read ") + name);
    Problem problem;
    Int blocks = 0;
    file >> problem.constraints >> blocks >> problem.order;
    if (!file || blocks != 1 || problem.order < 1) fail("one block is read, no more");
    std::string value;
    for (Int i = 0; i < problem.constraints && file >> value; i++) problem.cost.push_back(Real(value));
    problem.matrices.resize(size_t(problem.constraints + 1));
    Int matrix, block, row, col;
    while (file >> matrix >> block >> row >> col >> value) {
        problem.matrices[size_t(matrix)].push_back({std::min(row, col) - 1, std::max(row, col) - 1, Real(value)});
    }
    return problem;
}

// F . M = sum of F_ij M_ij.
static Real inner(const std::vector<Entry> &sparse, const Matrix &m) {
    Real sum = 0;
    for (const Entry &f : sparse) {
        sum += f.value * m.at(f.row, f.col);
        if (f.row != f.col) sum += f.value * m.at(f.col, f.row);
    }
    return sum;
}

static void add(Matrix &m, const Real &scalar, const std::vector<Entry> &sparse) {
    for (const Entry &f : sparse) {
        m.at(f.row, f.col) += scalar * f.value;
        if (f.row != f.col) m.at(f.col, f.row) += scalar * f.value;
    }
}

static void add(Matrix &m, const Real &scalar, Matrix &other) {
    Raxpy(m.size(), scalar, other.data(), 1, m.data(), 1);
}

// C := alpha A B + beta C.
static void multiply(const Real &alpha, Matrix &a, Matrix &b, const Real &beta, Matrix &c) {
    Rgemm("N", "N", a.order, a.order, a.order, alpha, a.data(), a.order, b.data(), a.order, beta, c.data(), a.order);
}

static Matrix factor(Matrix a, const char *what) {
    Int info = 0;
    Rpotrf("L", a.order, a.data(), a.order, info);
    if (info != 0) fail(std::string(what) + " is not positive definite: minor " + std::to_string(info));
    return a;
}

// A^-1 from its factor L: (L^-1)^T L^-1.
static Matrix inverse(Matrix &l) {
    const Int n = l.order;
    Matrix root(n, 1), result(n);
    Rtrsm("L", "L", "N", "N", n, n, 1, l.data(), n, root.data(), n);
    Rsyrk("L", "T", n, n, 1, root.data(), n, 0, result.data(), n);
    for (Int j = 0; j < n; j++) {
        for (Int i = 0; i < j; i++) result.at(i, j) = result.at(j, i);
    }
    return result;
}

// The least eigenvalue of a symmetric matrix by Jacobi's rotations, in doubles: two digits are enough for a step.
static double least_eigenvalue(const Matrix &matrix) {
    const size_t n = size_t(matrix.order);
    std::vector<double> a(n * n);
    for (size_t at = 0; at < n * n; at++) a[at] = matrix.entries[at].get_d();
    for (int sweep = 0; sweep < 30; sweep++) {
        double beside = 0, all = 0;
        for (size_t j = 0; j < n; j++) {
            for (size_t i = 0; i < n; i++) (i == j ? all : beside) += a[j * n + i] * a[j * n + i];
        }
        if (beside <= 1e-20 * all) break;
        for (size_t p = 0; p < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                const double entry = a[q * n + p];
                if (entry == 0) continue;
                const double ratio = (a[q * n + q] - a[p * n + p]) / (2 * entry);
                const double tangent = (ratio < 0 ? -1 : 1) / (std::fabs(ratio) + std::sqrt(ratio * ratio + 1));
                const double cosine = 1 / std::sqrt(tangent * tangent + 1), sine = tangent * cosine;
                for (size_t i = 0; i < n; i++) {
                    const double x = a[p * n + i], y = a[q * n + i];
                    a[p * n + i] = cosine * x - sine * y;
                    a[q * n + i] = sine * x + cosine * y;
                }
                for (size_t i = 0; i < n; i++) {
                    const double x = a[i * n + p], y = a[i * n + q];
                    a[i * n + p] = cosine * x - sine * y;
                    a[i * n + q] = sine * x + cosine * y;
                }
            }
        }
    }
    double least = a[0];
    for (size_t i = 1; i < n; i++) least = std::min(least, a[i * n + i]);
    return least;
}

// How far A + step D stays positive definite, with the factor L of A; at most 1.
static double step_length(Matrix &l, Matrix direction) {
    const Int n = l.order;
    Rtrsm("L", "L", "N", "N", n, n, 1, l.data(), n, direction.data(), n);
    Rtrsm("R", "L", "T", "N", n, n, 1, l.data(), n, direction.data(), n);
    const double least = least_eigenvalue(direction), inside = 0.9;
    return least < -inside ? inside / -least : 1;
}

static Real largest(const std::vector<Real> &values) {
    Real most = 0;
    for (const Real &value : values) {
        if (abs(value) > most) most = abs(value);
    }
    return most;
}

// What a run has reached.
struct Summary {
    int iterations = 0;
    Real objective, gap, primal, dual; // the value of the primal, relative gap, largest residuals
    double seconds = 0;
};

class Solver {
  public:
    Solver(const Problem &problem, double start)
        : problem(problem), n(problem.order), m(problem.constraints), x(size_t(m)), residuals(size_t(m)), big_x(n, start),
          big_y(n, start), rest(n), x_inverse(n), schur(m), factor_x(n), factor_y(n) {}

    Summary run(const Real &tolerance) {
        const auto begin = std::chrono::steady_clock::now();
        Summary reached;
        while (!measure(reached, tolerance)) {
            if (reached.iterations == 150) fail("no end after 150 iterations");
            step(reached.primal <= tolerance && reached.dual <= tolerance);
            reached.iterations++;
        }
        reached.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return reached;
    }

  private:
    struct Direction {
        std::vector<Real> x;
        Matrix big_x, big_y;
    };

    const Problem &problem;
    const Int n, m;
    std::vector<Real> x, residuals; // residuals c_i - F_i . Y
    Matrix big_x, big_y, rest;      // rest = sum F_i x_i - F_0 - X
    Matrix x_inverse, schur, factor_x, factor_y;

    // Residuals and objectives; whether they are small enough.
    bool measure(Summary &reached, const Real &tolerance) {
        rest = Matrix(n);
        add(rest, -1, problem.matrices[0]);
        add(rest, -1, big_x);
        reached.objective = 0;
        for (Int i = 0; i < m; i++) {
            const std::vector<Entry> &f = problem.matrices[size_t(i + 1)];
            add(rest, x[size_t(i)], f);
            residuals[size_t(i)] = problem.cost[size_t(i)] - inner(f, big_y);
            reached.objective += problem.cost[size_t(i)] * x[size_t(i)];
        }
        const Real other = inner(problem.matrices[0], big_y);
        Real size = (abs(reached.objective) + abs(other)) / 2;
        if (size < 1) size = 1;
        reached.gap = abs(reached.objective - other) / size;
        reached.primal = largest(rest.entries);
        reached.dual = largest(residuals);
        return reached.gap <= tolerance && reached.primal <= tolerance && reached.dual <= tolerance;
    }

    // B_ij = F_i . (X^-1 F_j Y), factored.
    void form_schur() {
        for (Int j = 0; j < m; j++) {
            for (Int i = j; i < m; i++) {
                Real sum = 0;
                for (const Entry &f : problem.matrices[size_t(i + 1)]) {
                    for (const Entry &g : problem.matrices[size_t(j + 1)]) sum += f.value * g.value * pair(f, g);
                }
                schur.at(i, j) = sum;
            }
        }
        schur = factor(schur, "the Schur complement");
    }

    // The entries of X^-1 G Y at the places of f, where G has ones at the places of g.
    Real pair(const Entry &f, const Entry &g) const {
        Real sum = corner(f.row, f.col, g);
        if (f.row != f.col) sum += corner(f.col, f.row, g);
        return sum;
    }

    Real corner(Int row, Int col, const Entry &g) const {
        Real sum = x_inverse.at(row, g.row) * big_y.at(g.col, col);
        if (g.row != g.col) sum += x_inverse.at(row, g.col) * big_y.at(g.row, col);
        return sum;
    }

    // The direction to X Y = mu I, with the second order term `product` taken off.
    Direction solve(const Real &mu, Matrix &product) {
        Direction d = {std::vector<Real>(size_t(m)), rest, Matrix(n)};
        Matrix right = product, k = x_inverse;
        multiply(1, rest, big_y, 1, right);
        multiply(-1, x_inverse, right, mu, k);
        for (Int i = 0; i < m; i++) {
            d.x[size_t(i)] = inner(problem.matrices[size_t(i + 1)], k) - problem.cost[size_t(i)];
        }
        Int info = 0;
        Rpotrs("L", m, 1, schur.data(), m, d.x.data(), m, info);
        for (Int i = 0; i < m; i++) add(d.big_x, d.x[size_t(i)], problem.matrices[size_t(i + 1)]);
        right = product;
        multiply(1, d.big_x, big_y, 1, right);
        k = x_inverse;
        multiply(-1, x_inverse, right, mu, k);
        for (Int j = 0; j < n; j++) {
            for (Int i = 0; i < n; i++) d.big_y.at(i, j) = (k.at(i, j) + k.at(j, i)) / 2 - big_y.at(i, j);
        }
        return d;
    }

    Real complementarity(Matrix &a, Matrix &b) const { return Rdot(n * n, a.data(), 1, b.data(), 1); }

    void step(bool feasible) {
        factor_x = factor(big_x, "X");
        factor_y = factor(big_y, "Y");
        x_inverse = inverse(factor_x);
        form_schur();
        const Real product = complementarity(big_x, big_y), mu = product / n;
        Matrix none(n);
        Direction d = solve(feasible ? Real(0) : Real(mu * 3 / 10), none);
        // The corrector aims where the predictor says that one can get.
        Matrix next_x = big_x, next_y = big_y, second(n);
        add(next_x, 1, d.big_x);
        add(next_y, 1, d.big_y);
        const Real ratio = complementarity(next_x, next_y) / product;
        Real centring = ratio < 0 ? Real(0) : ratio > 1 ? Real(1) : Real(ratio * ratio);
        const Real least = Real(feasible ? 1 : 3) / 10;
        if (centring < least) centring = least;
        multiply(1, d.big_x, d.big_y, 0, second);
        d = solve(centring * mu, second);
        const Real primal = step_length(factor_x, d.big_x), dual = step_length(factor_y, d.big_y);
        Raxpy(m, primal, d.x.data(), 1, x.data(), 1);
        add(big_x, primal, d.big_x);
        add(big_y, dual, d.big_y);
    }
};

// The digits in which two numbers agree.
static long digits(const Real &x, const Real &y) {
    Real error = abs(x - y);
    if (error == 0) return 1000;
    long exponent = 0;
    const double head = mpf_get_d_2exp(&exponent, Real(error / abs(y)).get_mpf_t());
    return -long(std::floor((std::log2(head) + double(exponent)) * 0.30103));
}

static std::istream &operator>>(std::istream &line, Summary &summary) {
    std::string name;
    return line >> name >> summary.iterations >> name >> summary.objective >> name >> summary.gap >> name >>
           summary.primal >> name >> summary.dual >> name >> summary.seconds;
}

static void compare(const Summary &found, const char *file) {
    std::ifstream input(file);
    Summary earlier;
    if (!(input >> earlier)) fail(std::string("no summary in ") + file);
    std::cout << digits(found.objective, earlier.objective) << " digits of the objective agree, " << found.iterations
              << " iterations and " << earlier.iterations << ", time " << earlier.seconds / found.seconds << " times\n";
    if (std::abs(found.iterations - earlier.iterations) > 1) fail("other iterations than loops");
    if (digits(found.objective, earlier.objective) < 58) fail("another objective than that of loops");
    if (found.primal > 1000 * earlier.primal || found.dual > 1000 * earlier.dual) fail("less feasible than loops");
}

int main(int argc, char **argv) {
    if (argc < 2) fail("interior_point FILE [BITS TOLERANCE [EARLIER]]");
    mpf_set_default_prec(argc > 2 ? mp_bitcnt_t(std::atol(argv[2])) : 256);
    const Real tolerance(argc > 3 ? argv[3] : "1e-60");
    const Problem problem = read(argv[1]);
    const Summary found = Solver(problem, 1e4).run(tolerance);
    std::cout << std::setprecision(70) << "iterations " << found.iterations << " objective " << found.objective;
    std::cout << std::setprecision(3) << " gap " << found.gap << " primal " << found.primal << " dual " << found.dual;
    std::cout << " seconds " << found.seconds << "\n";
    if (argc > 4) compare(found, argv[4]);
    return 0;
}
