"""Functions on vectors, with triangular and symmetric matrices, and eigenvalues, against exact arithmetic."""

from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from conftest import exact, random_rows, round_to, to_mpfr

import sunzi

BITS = 200
DRAWN = 150  # bits of the entries: all are taken exactly


def column(rows: int, seed: int) -> list[Fraction]:
    return [row[0] for row in random_rows(rows, 1, DRAWN, seed)]


def mpfr(values: list[Fraction]) -> list[gmpy2.mpfr]:
    return [to_mpfr(value, BITS) for value in values]


def rows_of_mpfr(rows: list[list[Fraction]]) -> list[list[gmpy2.mpfr]]:
    return [mpfr(row) for row in rows]


def close(got: object, terms: list[Fraction]) -> bool:
    error = abs(exact(got) - sum(terms, Fraction(0)))
    return error <= Fraction(2) ** (1 - BITS) * sum((abs(term) for term in terms), Fraction(0))


def test_products_with_vectors_are_close_beside_their_terms() -> None:
    a, x, y = random_rows(5, 7, DRAWN, seed=1), column(7, 2), column(5, 3)
    got = sunzi.gemv(rows_of_mpfr(a), mpfr(x), alpha=3, beta=-2, c=mpfr(y))
    assert len(got) == 5
    for row, value, added in zip(a, got, y, strict=True):
        assert close(value, [3 * p * q for p, q in zip(row, x, strict=True)] + [-2 * added])
    got = sunzi.gemv(rows_of_mpfr(a), mpfr(y), transpose=True)
    for col, value in zip(zip(*a), got, strict=True):
        assert close(value, [p * q for p, q in zip(col, y, strict=True)])
    square = random_rows(4, 4, DRAWN, seed=4)
    whole = [[square[max(i, j)][min(i, j)] for j in range(4)] for i in range(4)]
    z = column(4, 5)
    lower = sunzi.symv(rows_of_mpfr(square), mpfr(z), uplo="lower_only")
    assert lower == sunzi.symv(rows_of_mpfr(whole), mpfr(z)) == sunzi.gemv(rows_of_mpfr(whole), mpfr(z))
    with pytest.raises(sunzi.NotSymmetricError):
        sunzi.symv(rows_of_mpfr(square), mpfr(z))


@pytest.mark.parametrize("uplo", ["lower", "upper"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(uplo: str, transpose: bool, unit: bool) -> None:
    n = 6
    t, b = random_rows(n, n, DRAWN, seed=6), column(n, 7)

    def entry(i: int, j: int) -> Fraction:
        i, j = (j, i) if transpose else (i, j)
        if i == j and unit:
            return Fraction(1)
        return t[i][j] if (i >= j if uplo == "lower" else i <= j) else Fraction(0)

    options = {"uplo": uplo, "transpose": transpose, "unit": unit}
    given, flat = rows_of_mpfr(t), mpfr(b)
    product = sunzi.trmv(given, flat, **options)
    solution = sunzi.trsv(given, flat, **options)
    wide = sunzi.trmm(given, [[value] for value in flat], **options)
    for i in range(n):
        terms = [entry(i, j) * b[j] for j in range(n)]
        assert close(product[i], terms) and close(wide[i][0], terms)
        terms = [entry(i, j) * exact(solution[j]) for j in range(n)]
        size = sum((abs(term) for term in terms), Fraction(0))
        assert abs(sum(terms, Fraction(0)) - b[i]) <= Fraction(2) ** (1 - BITS) * size


def test_updates_and_sums() -> None:
    x, y = column(5, 8), column(5, 9)
    alpha = Fraction(3, 4)
    assert [exact(v) for v in sunzi.axpy(alpha, mpfr(x), mpfr(y))] == [
        round_to(alpha * p + q, BITS) for p, q in zip(x, y, strict=True)
    ]
    table = sunzi.ger([[value] for value in mpfr(x)], mpfr(y), alpha=alpha)
    assert all(exact(table[i][j]) == round_to(alpha * x[i] * y[j], BITS) for i in range(5) for j in range(5))
    assert close(sunzi.dot(mpfr(x), mpfr(y)), [p * q for p, q in zip(x, y, strict=True)])
    norm = exact(sunzi.nrm2(mpfr(x)))
    square = sum(p * p for p in x)
    assert abs(norm * norm - square) <= Fraction(2) ** (2 - BITS) * square
    assert sunzi.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0
    assert sunzi.dot([1, 2], [Fraction(1, 2), 4], precision=60) == Fraction(17, 2)


def test_symmetric_products() -> None:
    a, b = random_rows(3, 4, DRAWN, seed=10), random_rows(3, 4, DRAWN, seed=11)
    got = sunzi.syr2k(rows_of_mpfr(a), rows_of_mpfr(b))
    for i in range(4):
        for j in range(4):
            assert close(got[i][j], [p[i] * q[j] for p, q in zip(a, b)] + [q[i] * p[j] for p, q in zip(a, b)])
            assert got[i][j] == got[j][i]
    c = random_rows(4, 2, DRAWN, seed=12)
    assert sunzi.symm(got, rows_of_mpfr(c)) == sunzi.gemm(got, rows_of_mpfr(c))
    right = rows_of_mpfr(random_rows(2, 4, DRAWN, seed=13))
    assert sunzi.symm(got, right, side="right") == sunzi.gemm(right, got)


def test_weighted_gram_matrices_have_the_weights_of_their_rows() -> None:
    p = random_rows(3, 4, DRAWN, seed=14)
    d = random_rows(1, 3, DRAWN, seed=15)[0]
    got = sunzi.weighted_gram(rows_of_mpfr(p), rows_of_mpfr([d])[0])
    for i in range(4):
        for j in range(4):
            assert close(got[i][j], [row[i] * row[j] * weight for row, weight in zip(p, d)])
            assert got[i][j] == got[j][i]
    assert sunzi.verify("weighted_gram", rows_of_mpfr(p), rows_of_mpfr([d])[0], got)
    integers = sunzi.weighted_gram([[1, 2], [3, 4]], [2, -1], transpose=True, alpha=3, exact=True)
    assert integers == [[3 * (2 - 4), 3 * (6 - 8)], [3 * (6 - 8), 3 * (18 - 16)]]
    with pytest.raises(ValueError, match="weighted_gram"):
        sunzi.weighted_gram([[1.0, 2.0]], [1.0, 2.0])


def test_eigenvalues_lie_in_their_intervals() -> None:
    a = [[2, 1, 0], [1, 2, 1], [0, 1, 2]]  # 2 - sqrt(2), 2, 2 + sqrt(2)
    for bits in (16, 200):
        for which, sign in (("smallest", -1), ("largest", 1)):
            low, high = sunzi.extreme_eigenvalue(a, which=which, precision=bits)
            assert isinstance(low, Fraction) and 0 < high - low <= high / 2**bits
            # sign (t - 2) grows through sqrt(2)
            near, far = sorted(sign * (end - 2) for end in (low, high))
            assert near**2 <= 2 <= far**2
    low, high = sunzi.pencil_eigenvalue([[2, 99], [0, 1]], [[4, 0], [0, 3]], which="largest")
    assert low <= 3 <= high
    with pytest.raises(ValueError):
        sunzi.extreme_eigenvalue([[1.0, 2.0]])
    with pytest.raises(sunzi.SingularError):
        sunzi.pencil_eigenvalue([[0.0]], [[1.0]])
