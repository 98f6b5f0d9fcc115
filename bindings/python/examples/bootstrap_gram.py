"""The Gram matrix of the one-dimensional conformal bootstrap.

Rows are crossing functions `F_D(z) = (1 - z) G_D(z) - z G_D(1 - z)` at sampled dimensions `D`, columns their odd
derivatives at `z = 1/2`. Rows vary slowly with `D`, so columns are dependent to hundreds of bits: in doubles the Gram
matrix is not even positive definite. It stays in the library's format from the product to the determinant.
"""

import mpmath
from mpmath import mp, mpf

import sunzi

ROWS, COLS, PRECISION = 80, 16, 768
GUARD_BITS = 200


def derivatives(dimension: mpf) -> list[mpf]:
    """Odd derivatives of `F_D` at 1/2, by the recurrence that the Casimir equation gives for `H = (1 - z) G_D`."""
    half, d = mpf(1) / 2, dimension
    value = half**d * mpmath.hyp2f1(d, d, 2 * d, half)
    slope = d * value / half + half**d * (d / 2) * mpmath.hyp2f1(d + 1, d + 1, 2 * d + 1, half)
    casimir = d * (d - 1)
    # Coefficients of H in u = 2z - 1.
    k = [value / 2, (slope / 2 - value) / 2]
    for n in range(2 * COLS - 2):
        total = -(n + 1) * k[n + 1] + (2 * n * n - 3 * n - 1 + 2 * casimir) * k[n]
        if n > 0:
            total += (n - 3 - 2 * casimir) * k[n - 1]
        if n > 1:
            total -= (n - 3) ** 2 * k[n - 2]
        k.append(total / ((n + 1) * (n + 2)))
    return [2 * mpmath.factorial(n) * 2**n * k[n] for n in range(1, 2 * COLS, 2)]


def main() -> None:
    mp.prec = PRECISION + GUARD_BITS
    dimensions = [1 + 32 * (mpf(2 * row + 1) / (2 * ROWS)) ** 2 for row in range(ROWS)]
    rows = [derivatives(dimension) for dimension in dimensions]

    p = sunzi.Matrix(rows, precision=PRECISION)
    gram = p.T @ p
    factor = sunzi.Cholesky(gram)
    print(p, gram, factor, sep="\n")
    print("log det of the Gram matrix:", mpmath.nstr(factor.log_det(), 30))

    # The same determinant as that of the triangular factor of P itself, by mpmath.
    triangular = mpmath.qr(p.to_mpmath(), mode="economic")[1]
    expected = 2 * sum(mpmath.log(abs(triangular[i, i])) for i in range(COLS))
    assert abs(factor.log_det() / expected - 1) < mpf(10) ** -60

    try:
        sunzi.cholesky(gram.to_numpy("float"))
        raise AssertionError("doubles should not do")
    except sunzi.NotPositiveDefiniteError as error:
        print(f"in doubles: not positive definite at row {error.index}")


if __name__ == "__main__":
    main()
