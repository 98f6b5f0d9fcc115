"""Functions of entries beside those of gmpy2, which are MPFR's, and scalars added to matrices."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import exact, round_to, to_mpfr

import sunzi

OF_GMPY2 = {
    "absolute": abs,
    "arccos": gmpy2.acos,
    "arccosh": gmpy2.acosh,
    "arcsin": gmpy2.asin,
    "arcsinh": gmpy2.asinh,
    "arctan": gmpy2.atan,
    "arctanh": gmpy2.atanh,
    "cbrt": gmpy2.cbrt,
    "ceil": lambda x: gmpy2.mpfr(gmpy2.mpz(math.ceil(exact(x)))),
    "cos": gmpy2.cos,
    "cosh": gmpy2.cosh,
    "exp": gmpy2.exp,
    "expm1": gmpy2.expm1,
    "floor": lambda x: gmpy2.mpfr(gmpy2.mpz(math.floor(exact(x)))),
    "log": gmpy2.log,
    "log10": gmpy2.log10,
    "log1p": gmpy2.log1p,
    "log2": gmpy2.log2,
    "reciprocal": lambda x: 1 / x,
    "rint": lambda x: gmpy2.mpfr(gmpy2.mpz(round(exact(x)))),
    "sign": lambda x: gmpy2.mpfr(gmpy2.sign(x)),
    "sin": gmpy2.sin,
    "sinh": gmpy2.sinh,
    "sqrt": gmpy2.sqrt,
    "square": gmpy2.square,
    "tan": gmpy2.tan,
    "tanh": gmpy2.tanh,
    "trunc": lambda x: gmpy2.mpfr(gmpy2.mpz(math.trunc(exact(x)))),
}
VALUES = [Fraction(n, 7 * 2**9) for n in (-9000, -3600, -3583, -1792, -5, 1, 3, 1792, 3583, 3590, 8960, 70000)]


@pytest.mark.parametrize("bits", [2, 53, 64, 65, 300, 1000])
@pytest.mark.parametrize("name", list(OF_GMPY2))
def test_values_are_rounded_once(name: str, bits: int) -> None:
    function = getattr(sunzi, name)
    assert function.__name__ == name and "each entry" in function.__doc__
    of_gmpy2: Any = OF_GMPY2[name]
    compared = 0
    for value in VALUES:
        x = to_mpfr(value, 200)
        with gmpy2.context(precision=bits):
            want = of_gmpy2(x)
        if gmpy2.is_finite(want):
            got = function([[x]], precision=bits)[0][0]
            assert isinstance(got, type(x)) and got.precision == bits and got == want, (value, got, want)
            compared += 1
        else:
            with pytest.raises(ValueError, match=f"{name} of .* is not a real number at row 0, column 0"):
                function([[x]], precision=bits)
    assert compared >= 3


def test_functions_are_those_of_gmpy2() -> None:
    from sunzi import _elementwise

    functions = {name for name, value in vars(_elementwise).items() if callable(value) and not name.startswith("_")}
    assert functions - {"Matrix", "Any", "Protocol", "overload"} == set(OF_GMPY2) <= set(sunzi.__all__)


def test_results_are_of_the_operands_kind() -> None:
    third = Fraction(1, 3)
    assert sunzi.sqrt([4.0, 9.0]) == [2.0, 3.0]
    array = sunzi.sqrt(np.array([[4.0, 9.0]]))
    assert array.dtype == np.float64 and array.tolist() == [[2.0, 3.0]]
    matrix = sunzi.exp(sunzi.Matrix([[0, 1]], precision=90, numbers="mpmath"))
    assert isinstance(matrix, sunzi.Matrix) and matrix.precision == 90 and isinstance(matrix[0, 1], mpmath.mpf)
    assert isinstance(sunzi.cos(mpmath.matrix([[1]])), mpmath.matrix)
    assert isinstance(sunzi.cos(flint.arb_mat([[1]])), flint.arb_mat)
    assert sunzi.square([[third]], precision=80)[0][0] == round_to(round_to(third, 80) ** 2, 80)
    assert sunzi.floor([Decimal("-2.5")], precision=60) == [Decimal(-3)]
    with pytest.raises(ValueError, match="pass precision="):
        sunzi.exp([1])


def test_many_entries_and_their_places() -> None:
    entries = [[float(row * 50 + col + 1) for col in range(50)] for row in range(40)]
    roots = sunzi.sqrt(sunzi.Matrix(entries, precision=53)).to_numpy("float")
    assert (roots == np.sqrt(np.array(entries))).all()
    entries[31][17] = -1.0
    for work in (sunzi.sqrt, sunzi.log):
        with pytest.raises(ValueError, match="is not a real number at row 31, column 17"):
            work(entries)


def test_numbers_without_a_value() -> None:
    for function, number, infinite in (("log", 0, "0"), ("log2", 0, "0"), ("reciprocal", 0, "0"), ("log1p", -1, "-1")):
        with pytest.raises(ValueError, match=f"{function} of {infinite} is infinite at row 0, column 1"):
            getattr(sunzi, function)([[1, number]], precision=60)
    with pytest.raises(ValueError, match="arctanh of -1 is infinite"):
        sunzi.arctanh([-1.0])
    for function, number, sign in (("exp", "1e20", ""), ("exp", "-1e20", "-"), ("square", "1e200000000", "")):
        with pytest.raises(ValueError, match=f"exponent {sign}1073741824 at row 1, column 0 is outside"):
            getattr(sunzi, function)([["1"], [number]], precision=60)
    with pytest.raises(ValueError, match="exponent -1073741824 at row 1, column 0 is outside"):
        sunzi.square([["1"], ["1e-200000000"]], precision=60)
    with pytest.raises(ValueError, match=r"sin is only computed for numbers below 2\^100000"):
        sunzi.sin([["1e300000000"]], precision=60)


def test_numbers_are_added_to_each_entry() -> None:
    a = sunzi.Matrix([[1, Fraction(1, 3)], [-5, 0]], precision=120)
    third = a[0, 1]
    assert (a + 1).to_list() == (1 + a).to_list() == [[2, round_to(third + 1, 120)], [-4, 1]]
    assert (a - 2).to_list() == [[-1, round_to(third - 2, 120)], [-7, -2]]
    assert (2 - a).to_list() == [[1, round_to(2 - third, 120)], [7, 2]]
    for half in (0.5, Fraction(1, 2), gmpy2.mpfr("0.5"), mpmath.mpf("0.5"), flint.arb("0.5"), Decimal("0.5"), "0.5"):
        assert (a + half)[1, 1] == Fraction(1, 2) and (a + half).precision == 120 and (a + half).numbers == "fraction"
    assert (np.float64(0.5) + a) == a + 0.5
    tenth = (sunzi.zeros(1, 1, precision=200) + "0.1")[0, 0]
    assert tenth == round_to(Fraction(1, 10), 200)
    assert (a[0] + 1)[1] == round_to(third + 1, 120), "a row is still a row"
    with pytest.raises(ValueError, match="the other operand is NaN"):
        a + float("nan")
    with pytest.raises(TypeError, match="the other operand"):
        a + None
    with pytest.raises(ValueError, match="exponent 1073741824 at row 0, column 0"):
        sunzi.Matrix([["3e323228496"]], precision=60) + "3e323228496"


def test_exactness_of_sums_with_numbers_of_more_bits() -> None:
    a = sunzi.Matrix([[1.0]])
    with gmpy2.context(precision=300):
        tiny = gmpy2.mpfr(2) ** -53 + gmpy2.mpfr(2) ** -200
    assert exact((a + tiny)[0, 0]) == 1 + Fraction(1, 2**52), "a tie that the last bit of the number decides"
