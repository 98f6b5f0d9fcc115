// Eigenvalues of small symmetric matrices: Householder's reduction to a tridiagonal matrix, and implicit QL with
// Wilkinson's shifts (Dubrulle, Martin, Wilkinson: The implicit QL algorithm, Numer. Math. 12, 1968).
#ifndef SUNZI_MPLAPACK_EIGEN_H
#define SUNZI_MPLAPACK_EIGEN_H

#include "number.h"
#include <algorithm>
#include <numeric>

namespace sunzi_mplapack {

// A symmetric tridiagonal matrix, and the columns that its rotations are applied to, `rows` rows in each.
template <class K> struct Tridiagonal {
    int64_t order;
    std::vector<Number<K>> diagonal;
    std::vector<Number<K>> beside; // entry i stands between rows i and i + 1; one more that stays 0
    int64_t rows;
    std::vector<Number<K>> columns;

    Tridiagonal(int64_t order, int64_t rows, long bits)
        : order(order), diagonal(numbers<K>(order, bits)), beside(numbers<K>(order, bits)), rows(rows),
          columns(numbers<K>(order * rows, bits)) {}

    Number<K> &at(int64_t row, int64_t col) { return columns[static_cast<size_t>(col * rows + row)]; }

    void start_with_identity() {
        for (int64_t i = 0; i < order; i++) at(i, i) = Number<K>(at(i, i).bits(), 1L);
    }

    // Entry i of `beside` counts no more beside its neighbours on the diagonal.
    bool negligible(int64_t i, const Number<K> &epsilon) const {
        Number<K> size = abs(diagonal[i]) + abs(diagonal[i + 1]);
        return !(epsilon * size < abs(beside[i]));
    }

    // Makes the matrix diagonal. Returns 0, or how many entries beside the diagonal are left.
    int64_t diagonalise() {
        if (order == 0) return 0;
        const long bits = diagonal[0].bits();
        Number<K> epsilon(bits, 1L);
        K::half(epsilon.get(), bits);
        for (int64_t first = 0; first < order; first++) {
            // Convergence is cubic: a handful of sweeps double and triple the bits that are right.
            for (int sweeps = 0;; sweeps++) {
                int64_t last = first;
                while (last < order - 1 && !negligible(last, epsilon)) last++;
                if (last == first) break;
                if (sweeps == 100) return left();
                sweep(first, last);
            }
        }
        return 0;
    }

    // Sorts by eigenvalue, columns with them.
    void sort() {
        std::vector<int64_t> by(static_cast<size_t>(order));
        std::iota(by.begin(), by.end(), 0);
        std::stable_sort(by.begin(), by.end(), [&](int64_t i, int64_t j) { return diagonal[i] < diagonal[j]; });
        std::vector<Number<K>> values, vectors;
        for (int64_t col : by) {
            values.push_back(diagonal[col]);
            for (int64_t row = 0; row < rows; row++) vectors.push_back(at(row, col));
        }
        diagonal.swap(values);
        columns.swap(vectors);
    }

  private:
    int64_t left() const {
        return std::count_if(beside.begin(), beside.end(), [](const Number<K> &entry) { return entry.sign() != 0; });
    }

    // One implicit QL step on the rows first..last.
    void sweep(int64_t first, int64_t last) {
        const long bits = diagonal[0].bits();
        const Number<K> one(bits, 1L), two(bits, 2L);
        Number<K> g = (diagonal[first + 1] - diagonal[first]) / (two * beside[first]);
        Number<K> r = sqrt(g * g + one);
        g = diagonal[last] - diagonal[first] + beside[first] / (g.sign() < 0 ? g - r : g + r);
        Number<K> sine = one, cosine = one, shift(bits, 0L);
        for (int64_t i = last - 1; i >= first; i--) {
            const Number<K> f = sine * beside[i], b = cosine * beside[i];
            r = sqrt(f * f + g * g);
            beside[i + 1] = r;
            if (r.sign() == 0) { // the matrix has come apart at i + 1
                diagonal[i + 1] = diagonal[i + 1] - shift;
                beside[last] = Number<K>(bits, 0L);
                return;
            }
            sine = f / r;
            cosine = g / r;
            g = diagonal[i + 1] - shift;
            r = (diagonal[i] - g) * sine + two * cosine * b;
            shift = sine * r;
            diagonal[i + 1] = g + shift;
            g = cosine * r - b;
            for (int64_t row = 0; row < rows; row++) {
                const Number<K> x = at(row, i), y = at(row, i + 1);
                at(row, i + 1) = sine * x + cosine * y;
                at(row, i) = cosine * x - sine * y;
            }
        }
        diagonal[first] = diagonal[first] - shift;
        beside[first] = g;
        beside[last] = Number<K>(bits, 0L);
    }
};

// The tridiagonal matrix Q^T A Q of a symmetric A (column-major, whole), with the columns of Q where they are wanted.
template <class K> Tridiagonal<K> tridiagonal(std::vector<Number<K>> a, int64_t order, long bits, bool vectors) {
    Tridiagonal<K> result(order, vectors ? order : 0, bits);
    if (vectors) result.start_with_identity();
    const Number<K> zero(bits, 0L), two(bits, 2L);
    auto entry = [&](int64_t row, int64_t col) -> Number<K> & { return a[static_cast<size_t>(col * order + row)]; };
    for (int64_t k = 0; k + 2 < order; k++) {
        Number<K> square = zero;
        for (int64_t i = k + 2; i < order; i++) square = square + entry(i, k) * entry(i, k);
        if (square.sign() == 0) continue;
        // H = I - scale v v^T takes column k below the diagonal to a multiple of its first entry.
        const Number<K> head = entry(k + 1, k), norm = sqrt(square + head * head);
        std::vector<Number<K>> v = numbers<K>(order, bits), w = v;
        for (int64_t i = k + 1; i < order; i++) v[i] = entry(i, k);
        v[k + 1] = head.sign() < 0 ? head - norm : head + norm;
        const Number<K> scale = two / (square + v[k + 1] * v[k + 1]);
        // A := A - v w^T - w v^T with p = scale A v and w = p - scale (v^T p) / 2 v.
        Number<K> product = zero;
        for (int64_t i = k; i < order; i++) {
            Number<K> sum = zero;
            for (int64_t j = k + 1; j < order; j++) sum = sum + entry(i, j) * v[j];
            w[i] = scale * sum;
            product = product + w[i] * v[i];
        }
        const Number<K> half = scale * product / two;
        for (int64_t i = k; i < order; i++) w[i] = w[i] - half * v[i];
        for (int64_t j = k; j < order; j++) {
            for (int64_t i = k; i < order; i++) entry(i, j) = entry(i, j) - v[i] * w[j] - w[i] * v[j];
        }
        for (int64_t row = 0; row < result.rows; row++) {
            Number<K> sum = zero;
            for (int64_t j = k + 1; j < order; j++) sum = sum + result.at(row, j) * v[j];
            sum = scale * sum;
            for (int64_t j = k + 1; j < order; j++) result.at(row, j) = result.at(row, j) - sum * v[j];
        }
    }
    for (int64_t i = 0; i < order; i++) {
        result.diagonal[i] = entry(i, i);
        if (i + 1 < order) result.beside[i] = entry(i + 1, i);
    }
    return result;
}

} // namespace sunzi_mplapack

#endif
