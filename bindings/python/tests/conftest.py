"""What the tests share: number types, exact values, known matrices."""

import random
from collections.abc import Callable
from fractions import Fraction

import flint
import gmpy2
import mpmath
import pytest


def to_mpf(value: Fraction) -> mpmath.mpf:
    """Exactly: the values of the tests are dyadic."""
    power = value.denominator.bit_length() - 1
    assert value.denominator == 1 << power
    number = value.numerator
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(number, -power))


def to_mpfr(value: Fraction, bits: int) -> gmpy2.mpfr:
    return gmpy2.mpfr(gmpy2.mpq(value.numerator, value.denominator), bits)


def to_arb(value: Fraction) -> flint.arb:
    power = value.denominator.bit_length() - 1
    return flint.arb((value.numerator, -power))


def exact(value: object) -> Fraction:
    """Any result as the fraction that it is."""
    if isinstance(value, mpmath.mpf):
        sign, man, exp, _ = value._mpf_
        number = -int(man) if sign else int(man)
        return Fraction(number) * Fraction(2) ** exp
    if isinstance(value, type(gmpy2.mpfr(0))):
        return Fraction(*map(int, value.as_integer_ratio()))
    if isinstance(value, flint.arb):
        # Of a ball its midpoint; test_balls.py looks at radii.
        man, exp = value.mid().man_exp()
        return Fraction(int(man)) * Fraction(2) ** int(exp)
    return Fraction(value)


def rows_of(result: object) -> list[list[object]]:
    """The entries of any container, row by row."""
    if isinstance(result, mpmath.matrix):
        return result.tolist()
    if isinstance(result, flint.arb_mat):
        return [[result[i, j] for j in range(result.ncols())] for i in range(result.nrows())]
    if hasattr(result, "to_list"):
        return result.to_list()
    rows = result.tolist() if hasattr(result, "tolist") else result
    return [row if isinstance(row, list) else [row] for row in rows]


def exact_rows(result: object) -> list[list[Fraction]]:
    return [[exact(value) for value in row] for row in rows_of(result)]


def round_to(value: Fraction, bits: int) -> Fraction:
    """To nearest, ties to even: by MPFR."""
    with gmpy2.context(precision=bits):
        return exact(gmpy2.mpfr(gmpy2.mpq(value.numerator, value.denominator), bits))


def random_rows(rows: int, cols: int, bits: int, seed: int) -> list[list[Fraction]]:
    """Dyadic fractions of so many bits, exponents some way apart."""
    rng = random.Random(seed)
    draw = lambda: Fraction(rng.getrandbits(bits) * 2 + 1, 1 << max(0, bits + rng.randrange(-20, 20)))
    return [[draw() * rng.choice([1, -1]) for _ in range(cols)] for _ in range(rows)]


def positive_definite(order: int, seed: int) -> list[list[Fraction]]:
    """`B Bᵀ + order I` for a small integer `B`, over 64."""
    rng = random.Random(seed)
    b = [[rng.randrange(-9, 10) for _ in range(order)] for _ in range(order)]
    entry = lambda i, j: sum(x * y for x, y in zip(b[i], b[j], strict=True)) + (order if i == j else 0)
    return [[Fraction(entry(i, j), 64) for j in range(order)] for i in range(order)]


BITS = 200

KINDS: dict[str, Callable[[Fraction], object]] = {
    "mpf": to_mpf,
    "mpfr": lambda value: to_mpfr(value, BITS),
    "arb": to_arb,
    "fraction": lambda value: value,
    "mpq": lambda value: gmpy2.mpq(value.numerator, value.denominator),
    "fmpq": lambda value: flint.fmpq(value.numerator, value.denominator),
    "decimal": lambda value: mpmath.libmp.to_str(to_mpf(value)._mpf_, 400, strip_zeros=True),
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def own_precision() -> object:
    """Every test starts with 200 bits in mpmath and flint."""
    mpmath.mp.prec = BITS
    flint.ctx.prec = BITS
    yield
    mpmath.mp.prec = 53
    flint.ctx.prec = 53
