"""A `Matrix` as text: `repr`, format specifications beside Python's own, HTML."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

import pytest

import sunzi

SPECS = ["g", ".6g", ".1g", ".0g", ".17g", "e", ".3e", ".0e", "f", ".2f", ".0f", ".30f", "#.4g", "#.0f", ".4G", ".2E"]
SPECS += ["12.3f", "<12.3f", "^13.3e", "+.3g", " .3g", "012.2f", "*>15.4g", "x=+12.1f", "-.2f", "020.3e", "<08.1f", "8"]


def one(value: object, spec: str, bits: int = 53) -> str:
    """The text of one number."""
    text = format(sunzi.Matrix([[value]], precision=bits), spec)
    assert text.startswith("[[") and text.endswith("]]")
    return text[2:-2]


@pytest.mark.parametrize("spec", SPECS)
def test_formats_are_those_of_floats(spec: str) -> None:
    rng = random.Random(1)
    values = [0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.001, 123456.0, 1234567.0, 999999.5, 9.995, 0.00012345, 1e-5, 1e22, 0.95]
    values += [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-12, 12) for _ in range(60)]
    values += [rng.randrange(-999, 999) / 2 ** rng.randrange(8) for _ in range(60)]  # many ties
    for value in values:
        want = format(value, "8g" if spec == "8" else spec)
        assert one(value, spec) == want, (value, spec)


@pytest.mark.parametrize("count", [1, 5, 40, 150])
def test_digits_of_many_bits_are_rounded_once(count: int) -> None:
    rng = random.Random(2)
    for _ in range(20):
        value = Fraction(rng.getrandbits(400) * 2 + 1, 1 << rng.randrange(300, 500)) * rng.choice([1, -1])
        with localcontext() as context:
            context.prec = 1000
            exact = Decimal(value.numerator) / Decimal(value.denominator)
            context.prec, context.rounding = count, ROUND_HALF_EVEN
            want = +exact
            assert Decimal(one(value, f".{count}g", 402)) == want
            assert Decimal(one(value, f".{count - 1}e", 402)) == want
            context.prec = 1000
            assert Decimal(one(value, f".{count}f", 402)) == exact.quantize(Decimal(1).scaleb(-count))


def test_numbers_far_out() -> None:
    assert one("1e300000000", ".3g", 64) == "1e+300000000" and one("-1e-300000000", ".3e", 64) == "-1.000e-300000000"
    assert one("1e-300000000", ".3f", 64) == "0.000" and one("1e300000000", ".2f", 64) == "1.00e+300000000"


def test_rows_and_columns() -> None:
    a = sunzi.Matrix([[1, -20], [Fraction(1, 3), 4]], precision=200)
    assert f"{a:.3g}" == "[[    1, -20],\n [0.333,   4]]" == format(a, ".3g")
    assert f"{a.T:g}" == "[[  1, 0.333333],\n [-20,        4]]"
    assert f"{a}" == str(a) and str(a).startswith("2 x 2 matrix of 200-bit floats\n")
    assert f"{sunzi.zeros(0, 3, precision=60):g}" == "[]" and f"{sunzi.zeros(2, 0, precision=60):g}" == "[[],\n []]"
    large = format(sunzi.zeros(40, 30, precision=60), "g")
    assert large.count("0") == 1200 and "..." not in large, "all entries"


@pytest.mark.parametrize("spec", ["d", "s", ".", "5.f", ".3x", "%", ",", ".3g ", "1" * 30, ".9999999f", "<<<"])
def test_formats_that_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="is not a format of the entries of a Matrix.*use "):
        format(sunzi.Matrix([[1.5]]), spec)


def test_repr_shows_numbers() -> None:
    a = sunzi.Matrix([[1, "0.1"], [-2, "1e-40"]], precision=100)
    assert repr(a) == "Matrix([[ 1,   0.1],\n        [-2, 1e-40]], precision=100, numbers='str')"
    whole = eval(repr(sunzi.Matrix([[1, 2], [3, 4.5]])), {"Matrix": sunzi.Matrix})
    assert whole == [[1, 2], [3, 4.5]] and whole.precision == 53 and whole.numbers == "float"
    large = repr(sunzi.zeros(9, 20, precision=60, numbers="mpmath"))
    assert large.endswith(", ...],\n        ...], shape=(9, 20), precision=60, numbers='mpmath')")
    assert large.count("\n") == 8 and large.count("0, ") == 8 * 8 + 1  # and one in the precision
    assert repr(sunzi.zeros(0, 2, precision=60)) == "Matrix([], shape=(0, 2), precision=60, numbers='fraction')"


def test_html() -> None:
    html = sunzi.Matrix([[1, -2.5]])._repr_html_()
    assert html.startswith("<table><caption>1 &times; 2, 53 bits, float</caption><tbody><tr>")
    assert html.count("<td") == 2 and ">-2.5</td>" in html and html.endswith("</tr></tbody></table>")
    large = sunzi.zeros(20, 20, precision=60)._repr_html_()
    assert large.count("<tr>") == 9 and large.count("&hellip;") == 8 and large.count("&vellip;") == 1
