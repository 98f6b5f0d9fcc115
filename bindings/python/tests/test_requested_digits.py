"""Solutions and inverses with a number of correct digits, beside exact fractions; precisions in decimal digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import exact, exact_rows

import sunzi

ORDER = 12


def hilbert(order: int = ORDER) -> list[list[Fraction]]:
    return [[Fraction(1, i + j + 1) for j in range(order)] for i in range(order)]


ONES = [sum(row) for row in hilbert()]
"""The right side whose solution is 1 everywhere."""


def inverse_of_hilbert(order: int = ORDER) -> list[list[int]]:
    """By its formula, in integers."""
    from math import comb

    def entry(i: int, j: int) -> int:
        size = (i + j + 1) * comb(order + i, order - j - 1) * comb(order + j, order - i - 1) * comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return [[entry(i, j) for j in range(order)] for i in range(order)]


def relative_error(found: list[list[Fraction]], true: list[list[Any]]) -> Fraction:
    pairs = [(x, y) for row, other in zip(found, true, strict=True) for x, y in zip(row, other, strict=True)]
    return max(abs(x - y) for x, y in pairs) / max(abs(Fraction(y)) for _, y in pairs)


@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("digits", [1, 15, 40, 150])
def test_a_solution_has_the_digits(digits: int, certified: bool) -> None:
    report = sunzi.Report()
    x = sunzi.solve(hilbert(), ONES, digits=digits, certified=certified, report=report)
    assert isinstance(x[0], Fraction)
    error = relative_error([[value] for value in x], [[1]] * ORDER)
    assert error <= Fraction(1, 10**digits)
    assert report.digits >= digits and (not certified or report.certified >= digits)
    assert certified == ("certified" in report)
    # Not many more bits than those of the digits and those that the matrix loses, about 50.
    assert 3.3 * digits - 8 <= report.precision_bits <= max(64, 3.33 * digits + 100)
    again = sunzi.solve(hilbert(), ONES, precision=report.precision_bits)
    assert again == x, "the bits are those of a call with this precision"


@pytest.mark.parametrize("certified", [False, True])
def test_an_inverse_has_the_digits(certified: bool) -> None:
    report = sunzi.Report()
    inverse = sunzi.inverse(hilbert(), digits=50, certified=certified, report=report)
    assert relative_error(inverse, inverse_of_hilbert()) <= Fraction(1, 10**50)
    assert inverse == sunzi.inverse(hilbert(), precision=report.precision_bits)
    assert all(inverse[i][j] == inverse[j][i] for i in range(ORDER) for j in range(i))


def test_the_default_is_thirty_digits_or_those_of_the_type() -> None:
    x = sunzi.solve(hilbert(), ONES, precision="auto")
    assert relative_error([[value] for value in x], [[1]] * ORDER) <= Fraction(1, 10**30)
    a = [[4.0, 1.0], [1.0, 3.0]]
    report = sunzi.Report()
    floats = sunzi.solve(a, [1.0, 2.0], precision="auto", report=report)
    assert [type(value) for value in floats] == [float] * 2 and 15 <= report.digits < 16
    assert abs(Fraction(floats[1]) - Fraction(7, 11)) <= Fraction(7, 11) / 10**15
    with pytest.raises(ValueError, match=r"digits=16 is requested, but the numbers of the result \(float\) have 16.0"):
        sunzi.solve(a, [1.0, 2.0], digits=16)
    with pytest.raises(ValueError, match="digits=20 is requested"):
        sunzi.inverse(sunzi.Matrix(hilbert(3), precision=90), digits=20, out=np.zeros((3, 3)))
    out = np.zeros((3, 3), dtype=object)
    assert sunzi.inverse(sunzi.Matrix(hilbert(3), precision=90), digits=20, out=out) is out and out[0, 0] > 8


@pytest.mark.parametrize("kind", ["gmpy2", "mpmath", "array", "Matrix", "str"])
def test_numbers_keep_their_kind(kind: str) -> None:
    a: Any = sunzi.Matrix([[4, 1], [1, 3]], precision=60)
    b: Any = sunzi.Matrix([[1], [2]], precision=60)
    convert: dict[str, Callable[[Any], Any]] = {
        "gmpy2": lambda m: m.to_gmpy2(),
        "mpmath": lambda m: m.to_mpmath(),
        "array": lambda m: m.to_numpy("fraction"),
        "Matrix": lambda m: m,
        "str": lambda m: m.to_list("str"),
    }
    x = sunzi.solve(convert[kind](a), convert[kind](b), digits=45)
    assert type(x) is type(convert[kind](b))
    values = [exact(value) for row in (x.to_list() if isinstance(x, sunzi.Matrix) else exact_rows(x)) for value in row]
    assert abs(values[0] - Fraction(1, 11)) <= Fraction(7, 11) / 10**45


def test_methods_of_a_matrix() -> None:
    a = sunzi.Matrix(hilbert(), precision=400)
    x = a.solve(sunzi.Matrix(ONES, precision=400), digits=60)
    assert isinstance(x, sunzi.Matrix) and x.precision < 400
    assert relative_error(x.to_list(), [[1]] * ORDER) <= Fraction(1, 10**60)
    report = sunzi.Report()
    inverse = a.inverse(digits=60, certified=True, report=report)
    assert isinstance(inverse, sunzi.Matrix) and inverse.shape == (ORDER, ORDER) and report.certified >= 60
    assert relative_error(inverse.to_list(), inverse_of_hilbert()) <= Fraction(1, 10**60)
    assert a.inverse() == sunzi.inverse(a) and a.inverse(precision=200) == sunzi.inverse(a, precision=200)
    lower = a.copy()
    lower[0, 5] = 7
    assert lower.inverse(uplo="lower_only") == a.inverse()
    assert a.solve([1] * ORDER, uplo="upper") == sunzi.solve(a, [1] * ORDER)


def test_determinants_of_a_matrix() -> None:
    a = sunzi.Matrix([[4, 2], [2, 10]], precision=100)
    assert a.det() == 36 == sunzi.det(a) and isinstance(a.det(), Fraction)
    assert a.log_det(uplo="lower") == a.log_det()
    # The bound that the documentation states: n e <= 1/2 with e = n 2^(3 - p) / (the least eigenvalue of S).
    h, bits = hilbert(), 120
    true = Fraction(1)
    for row in range(ORDER):  # by elimination in fractions
        pivot = h[row][row]
        true *= pivot
        for other in range(row + 1, ORDER):
            factor = h[other][row] / pivot
            h[other] = [x - factor * y for x, y in zip(h[other], h[row], strict=True)]
    # The squares of the diagonal's scales are 2 i + 1: the norm of the inverse of S is at most the trace of D A^-1 D.
    inverse = inverse_of_hilbert()
    norm = sum(Fraction(inverse[i][i], 2 * i + 1) for i in range(ORDER))
    e = ORDER * Fraction(2) ** (3 - bits) * norm
    error = abs(sunzi.det(hilbert(), precision=bits) / true - 1)
    assert ORDER * e <= Fraction(1, 2) and error <= 3 * ORDER * e + Fraction(2) ** (1 - bits)


def test_a_proof_at_a_given_precision() -> None:
    report: dict[str, Any] = {}
    x = sunzi.solve(hilbert(), ONES, precision=120, certified=True, report=report)
    assert x == sunzi.solve(hilbert(), ONES, precision=120)
    assert report["digits"] >= report["certified"] > 15 and report["operation"] == "solve"
    assert report["factorisation"]["operation"] == "cholesky" and report["precision_bits"] == 120
    assert relative_error([[value] for value in x], [[1]] * ORDER) <= Fraction(10) ** -int(report["certified"])
    coarse = sunzi.Report()
    sunzi.inverse(sunzi.Matrix(hilbert(), precision=200), precision=60, certified=True, report=coarse)
    assert 0 <= coarse.certified <= coarse.digits


def test_digits_in_doubles_below_their_normal_range() -> None:
    """The least floats have fewer bits than others, and a proof of 15 digits of them would be wrong."""
    report: dict[str, Any] = {}
    sunzi.solve([[1.0]], [2.0**-1060], precision=100, certified=True, report=report)
    assert report["certified"] == 0
    sunzi.solve([[1.0]], [2.0**-900], precision=100, certified=True, report=report)
    assert 15.9 < report["certified"] < 16


def test_precisions_in_decimal_digits() -> None:
    for dps in (1, 15, 50, 300):
        with mpmath.workdps(dps):
            bits = mpmath.mp.prec
        assert sunzi.solve([[3]], [1], dps=dps) == sunzi.solve([[3]], [1], precision=bits)
        assert sunzi.inverse([[3]], dps=dps) == sunzi.inverse([[3]], precision=bits)
    assert isinstance(sunzi.inverse([[gmpy2.mpfr(3)]], dps=30)[0][0], type(gmpy2.mpfr(0)))


def test_matrices_without_an_answer() -> None:
    singular = [[1.0, 2.0], [2.0, 4.0]]
    with pytest.raises(ValueError, match="is singular, as an exact solution of A x = 0 proves|cannot explain the pivot"):
        sunzi.solve(singular, [1.0, 2.0], digits=10)
    assert max(abs(x - y) for x, y in zip(sunzi.solve([[1, 2], [2, 1]], [1, 2], digits=10), (1, 0), strict=True)) < 1e-10
    third = sunzi.Matrix([[Fraction(1, 3)]], precision=64)
    with pytest.raises(ValueError, match="no precision tried, up to .* bits, gives 40 correct digits: about 1[89] were"):
        third.inverse(digits=40)
    assert sunzi.inverse([[Fraction(1, 3)]], digits=40)[0][0] - 3 < Fraction(1, 10**40)


def test_choices_that_contradict_each_other() -> None:
    a, b = [[4.0, 1.0], [1.0, 3.0]], [1.0, 2.0]
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"precision": "much"}, "precision='much' is not valid; use a number of bits or 'auto'"),
        ({"precision": 100, "digits": 10}, "digits=10 requires precision='auto', but precision=100 is given"),
        ({"precision": 100, "dps": 10}, "dps=10 and precision=100 are both given"),
        ({"digits": 5, "dps": 10}, "dps=10 and digits=5 are both given"),
        ({"digits": 0}, "digits=0 is not valid"),
        ({"dps": -3}, "dps=-3 is out of range"),
        ({"certified": True}, "certified=True requires report="),
        ({"digits": 9, "factor_precision": 60}, "digits= is not accepted together with factor_precision="),
    ]
    for options, message in refusals:
        with pytest.raises(ValueError, match=message):
            sunzi.solve(a, b, **options)
    with pytest.raises(TypeError, match="digits=2.5 is of type float"):
        sunzi.solve(a, b, digits=2.5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="precision='auto' is not accepted together with balls"):
        sunzi.inverse(flint.arb_mat([[2]]), precision="auto")


def test_a_memory_limit_holds_for_searches() -> None:
    a = sunzi.Matrix(hilbert(40), precision=500)
    with pytest.raises(sunzi.MemoryLimitError, match="memory= of the context"):
        sunzi.inverse(a, digits=30, context=sunzi.Context(threads=1, memory=10_000))
    enough = sunzi.Context(threads=1, memory="64M")
    assert sunzi.inverse(a, digits=30, context=enough) == sunzi.inverse(a, digits=30)
