// C++ with a class round mpfr_t, in the style of the mpreal wrapper: a vector of such objects is an array of mpfr_t.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mpfr.h>
#include <stdexcept>
#include <string>
#include <sunzi.h>
#include <vector>

// A big float of 500 bits. Nothing but the mpfr_t is in it, so that its address is that of the number.
class Real {
public:
    Real(double value = 0) { mpfr_init2(number, 500), mpfr_set_d(number, value, MPFR_RNDN); }
    Real(const Real &other) {
        mpfr_init2(number, mpfr_get_prec(other.number));
        mpfr_set(number, other.number, MPFR_RNDN);
    }
    Real(Real &&other) : Real() { mpfr_swap(number, other.number); }
    Real &operator=(Real other) { return mpfr_swap(number, other.number), *this; }
    ~Real() { mpfr_clear(number); }

    Real &operator+=(const Real &other) { return mpfr_add(number, number, other.number, MPFR_RNDN), *this; }
    Real &operator-=(const Real &other) { return mpfr_sub(number, number, other.number, MPFR_RNDN), *this; }
    Real &operator*=(const Real &other) { return mpfr_mul(number, number, other.number, MPFR_RNDN), *this; }
    friend Real operator+(Real left, const Real &right) { return left += right; }
    friend Real operator-(Real left, const Real &right) { return left -= right; }
    friend Real operator*(Real left, const Real &right) { return left *= right; }
    friend Real abs(Real value) { return mpfr_abs(value.number, value.number, MPFR_RNDN), value; }
    friend bool operator<(const Real &left, const Real &right) { return mpfr_less_p(left.number, right.number); }
    double to_double() const { return mpfr_get_d(number, MPFR_RNDN); }

private:
    mpfr_t number;
};
static_assert(sizeof(Real) == sizeof(mpfr_t), "a Real is an mpfr_t");

// A context whose failures are exceptions.
class Context {
public:
    Context() {
        sunzi_context *made = nullptr;
        const sunzi_status status = sunzi_context_new(nullptr, &made);
        context.reset(made);
        check(status);
    }

    void check(sunzi_status status) const {
        if (status != SUNZI_OK) throw std::runtime_error(sunzi_last_error(context.get()));
    }

    sunzi_context *get() const { return context.get(); }

private:
    struct Free {
        void operator()(sunzi_context *made) const { sunzi_context_free(made); }
    };
    std::unique_ptr<sunzi_context, Free> context;
};

// A matrix, row-major.
struct Matrix {
    int64_t rows, cols;
    std::vector<Real> entries;

    Matrix(int64_t rows, int64_t cols) : rows(rows), cols(cols), entries(static_cast<size_t>(rows * cols)) {}
    Real &operator()(int64_t row, int64_t col) { return entries[static_cast<size_t>(row * cols + col)]; }
    sunzi_matrix view() { return sunzi_mpfr_matrix(SUNZI_ROW_MAJOR, rows, cols, entries.data(), cols); }
};

static Matrix moments(int64_t order) {
    Matrix a(order, order);
    for (int64_t i = 0; i < order; i++) {
        for (int64_t j = 0; j < order; j++) a(i, j) = Real(1.0 / static_cast<double>(1 + (i > j ? i - j : j - i)));
        a(i, i) += Real(0.5);
    }
    return a;
}

static void run() {
    const int64_t order = 30;
    Context context;
    Matrix a = moments(order), x(order, 1), factor = a;
    for (int64_t i = 0; i < order; i++) x(i, 0) = Real(static_cast<double>(i) - 7.5);
    Matrix b = x;

    sunzi_matrix a_view = a.view(), x_view = x.view(), factor_view = factor.view();
    context.check(sunzi_solve(context.get(), SUNZI_UPPER, &a_view, &x_view));
    Real residual;
    for (int64_t i = 0; i < order; i++) {
        Real sum;
        for (int64_t j = 0; j < order; j++) sum += a(i, j) * x(j, 0);
        residual = std::max(residual, abs(sum - b(i, 0)));
    }
    context.check(sunzi_cholesky(context.get(), SUNZI_LOWER, &factor_view));
    Real largest;
    for (int64_t i = 0; i < order; i++) {
        for (int64_t j = 0; j <= i; j++) {
            Real sum;
            for (int64_t k = 0; k <= j; k++) sum += factor(i, k) * factor(j, k);
            largest = std::max(largest, abs(sum - a(i, j)));
        }
    }
    if (!(residual < Real(1e-140)) || !(largest < Real(1e-148))) throw std::runtime_error("a residual is too large");

    a(3, 3) = Real(-1);
    try {
        context.check(sunzi_cholesky(context.get(), SUNZI_LOWER, &a_view));
        throw std::logic_error("an indefinite matrix was factored");
    } catch (const std::runtime_error &error) {
        if (std::string(error.what()).find("index 3") == std::string::npos) throw;
    }
    std::printf("cholesky: order %d, residuals %.1e and %.1e\n", static_cast<int>(order), residual.to_double(),
                largest.to_double());
}

int main() {
    try {
        run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "cholesky: %s\n", error.what());
        return EXIT_FAILURE;
    }
    mpfr_free_cache();
    return EXIT_SUCCESS;
}
