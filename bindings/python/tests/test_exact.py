"""Exact products: integers of any type, strings and fractions among them, are taken as they are."""

from collections.abc import Callable
from fractions import Fraction

import gmpy2
import numpy as np
import pytest

import sunzi

# As decimals, with points and exponents that leave integers.
TEXTS = ["5", "-7", "+12", "0", "1e3", "2.50E2", "-0.0012e+4", "1_000", "123456789012345678901234567890", "0e99"]


def integer(text: str) -> Fraction:
    return Fraction(text.replace("_", ""))


def test_strings() -> None:
    assert Fraction(sunzi.syrk([["5"], ["7"]], exact=True)[0][0]) == 74
    assert Fraction(sunzi.gemm([["12345"]], [["6789"]], exact=True)[0][0]) == 12345 * 6789
    array = np.array([["12345"], ["67891"]])
    assert Fraction(sunzi.syrk(array, exact=True)[0, 0]) == 12345**2 + 67891**2


@pytest.mark.parametrize("text", TEXTS)
def test_forms_of_integers(text: str) -> None:
    want = integer(text)
    assert want.denominator == 1
    assert Fraction(sunzi.gemm([[1]], [[text]], exact=True)[0][0]) == want
    other = 10**30 + 57
    assert Fraction(sunzi.gemm([[text, other]], [[text], [1]], exact=True)[0][0]) == want**2 + other


@pytest.mark.parametrize("of", [str, Fraction, gmpy2.mpq, gmpy2.mpz, int])
def test_factors_and_sums(of: Callable[[int], object]) -> None:
    alpha, beta, c = 11, -23, 1_000_003
    assert sunzi.syrk([[5]], exact=True, alpha=of(alpha)) == [[alpha * 25]]
    result = sunzi.syrk([[5]], exact=True, alpha=of(alpha), beta=of(beta), c=[[of(c)]])
    assert Fraction(result[0][0]) == alpha * 25 + beta * c
    result = sunzi.gemm([[5]], [[of(7)]], exact=True, alpha=of(alpha), beta=of(beta), c=[[of(c)]])
    assert sunzi.Matrix(result, precision=100, numbers="fraction")[0, 0] == alpha * 35 + beta * c


NO_INTEGERS = ["2.5", "1e-1", "1.23e1", "1e-99999999999999999999", Fraction(10, 3), gmpy2.mpq(1, 2)]


@pytest.mark.parametrize("number", NO_INTEGERS)
def test_what_is_no_integer(number: object) -> None:
    with pytest.raises(ValueError, match="row 1, column 0 .*integers"):
        sunzi.syrk([[1], [number]], exact=True)
    with pytest.raises(ValueError, match="row 0, column 1 .*integers"):
        sunzi.gemm([[1]], [[1, number]], exact=True)
    with pytest.raises(ValueError, match="row 0, column 0 .*integers"):
        sunzi.syrk([[1]], exact=True, c=[[number]])
    with pytest.raises(ValueError, match="^alpha is .*integers"):
        sunzi.syrk([[1]], exact=True, alpha=number)


@pytest.mark.parametrize("text", ["1e8000000", "1e99999999999", "1e99999999999999999999999"])
def test_integers_beyond_all_matrices(text: str) -> None:
    with pytest.raises(ValueError, match="row 0, column 0 .*more than 16777216 bits|exponent"):
        sunzi.syrk([[text]], exact=True)
