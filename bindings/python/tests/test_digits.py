"""Correct digits: what a factor estimates and proves, beside exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sunzi


def hilbert(order: int) -> list[list[Fraction]]:
    return [[Fraction(1, i + j + 1) for j in range(order)] for i in range(order)]


def lost_digits(solution: list[Fraction]) -> float:
    """Of a solution whose entries are all 1."""
    worst = max(abs(x - 1) for x in solution)
    return (worst.denominator.bit_length() - worst.numerator.bit_length()) * 0.30103


@pytest.mark.parametrize("precision", [100, 120, 300])
def test_digits_of_solutions(precision: int) -> None:
    a = sunzi.Matrix(hilbert(16), precision=400)
    right = [sum(row) for row in hilbert(16)]
    factor = sunzi.Cholesky(a, precision=precision)
    x = factor.solve(right, precision=precision)
    truth = lost_digits(x)
    b = sunzi.Matrix(right, precision=400)
    stated = factor.solution_digits(a, b, x)
    proven = factor.solution_digits(a, b, x, certified=True)
    assert truth - 2.5 < stated < truth + 0.5
    assert truth - 3.5 < proven < truth + 0.5
    assert 2.0**60 < factor.scaled_condition() < 2.0**100


def test_digits_of_logarithms_and_inverses() -> None:
    a = sunzi.Matrix(hilbert(12), precision=300)
    coarse, fine = sunzi.Cholesky(a, precision=90), sunzi.Cholesky(a, precision=300)
    error = abs(coarse.log_det() - fine.log_det()) / abs(fine.log_det())
    assert 10.0 ** -coarse.log_det_digits() > error
    assert 10.0 ** -coarse.log_det_digits(a, certified=True) > error
    assert 2 < coarse.inverse_digits(a, coarse.inverse()) < fine.inverse_digits(a, fine.inverse()) - 50
    assert coarse.inverse_digits(a, coarse.inverse(), certified=True) > 1
    with pytest.raises(ValueError, match="requires a="):
        coarse.log_det_digits(certified=True)


def test_reports_have_digits() -> None:
    report: dict[str, object] = {}
    sunzi.solve(hilbert(8), [Fraction(1)] * 8, precision=120, report=report)
    digits = report["digits"]
    assert isinstance(digits, float) and 20 < digits < 36


def test_digits_are_those_of_the_numbers_that_are_returned() -> None:
    """A solution of 300 bits that is returned as doubles has their digits."""
    a, b = [[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0]
    digits: list[float] = []
    for right in [b, np.array(b), sunzi.Matrix([[1], [1]], precision=300, numbers="float"), ["1", "1"]]:
        report: dict[str, object] = {}
        sunzi.solve(a, right, precision=300, report=report)
        assert isinstance(report["digits"], float)
        digits.append(report["digits"])
    assert 15 < digits[0] < 16 and digits[1] == digits[0] and digits[2] > 80, digits
    report = {}
    sunzi.inverse(a, precision=300, out=np.zeros((2, 2)), report=report)
    assert report["digits"] == digits[0]
    sunzi.inverse(a, precision=300, out=np.zeros((2, 2), dtype=object), report=report)
    assert report["digits"] == digits[0]
    sunzi.inverse(sunzi.Matrix(a, precision=300), precision=300, report=report)
    assert report["digits"] > 80
    wide = sunzi.Matrix(a, precision=300, numbers="fraction")
    sunzi.inverse(wide, precision=300, out=np.zeros((2, 2)), report=report)
    assert report["digits"] == digits[0], "an array of doubles holds their digits, of whatever numbers"
    sunzi.inverse(wide, precision=300, out=np.zeros((2, 2), dtype=object), report=report)
    assert report["digits"] > 80
