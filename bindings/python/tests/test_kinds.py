"""Every number type and container: taken exactly, given back as the same kind, the same bits by every road."""

import os
import random
import subprocess
import sys
from fractions import Fraction

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import (
    BITS,
    KINDS,
    exact,
    exact_rows,
    positive_definite,
    random_rows,
    round_to,
    rows_of,
    to_arb,
    to_mpfr,
)

import sunzi

RESULT_TYPE = {
    "mpf": mpmath.mpf,
    "mpfr": type(gmpy2.mpfr(0)),
    "arb": flint.arb,
    "fraction": Fraction,
    "mpq": type(gmpy2.mpfr(0)),
    "fmpq": flint.arb,
    "decimal": str,
}


def converted(rows: list[list[Fraction]], kind: str) -> list[list[object]]:
    return [[KINDS[kind](value) for value in row] for row in rows]


def contained(rows: list[list[object]], container: str) -> object:
    if container == "list":
        return rows
    if container == "tuple":
        return tuple(map(tuple, rows))
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    if container == "read_only":
        array.flags.writeable = False
    if container == "fortran":
        array = np.asfortranarray(array)
    if container == "strided":
        wide = np.empty((len(rows) * 2, len(rows[0]) * 3), dtype=object)
        wide[::2, ::3] = array
        array = wide[::2, ::3]
    return array


def product(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[sum((x * y for x, y in zip(row, col, strict=True)), Fraction(0)) for col in zip(*b)] for row in a]


def cholesky_by_definition(a: list[list[Fraction]], bits: int) -> list[list[object]]:
    with mpmath.workprec(2 * bits):
        matrix = mpmath.matrix(len(a), len(a))
        for i, row in enumerate(a):
            for j, value in enumerate(row):
                matrix[i, j] = mpmath.mpf(value.numerator) / value.denominator
        return mpmath.cholesky(matrix).tolist()


@pytest.mark.parametrize("container", ["list", "tuple", "array", "read_only", "fortran", "strided"])
def test_syrk_of_every_kind(kind: str, container: str) -> None:
    rows = random_rows(7, 4, 60, seed=1)
    expected = sunzi.syrk(sunzi.Matrix(rows, precision=BITS), precision=BITS).to_list()
    result = sunzi.syrk(contained(converted(rows, kind), container), precision=BITS)
    assert isinstance(result, list if container in ("list", "tuple") else np.ndarray)
    assert all(isinstance(value, RESULT_TYPE[kind]) for row in rows_of(result) for value in row)
    got = [[round_to(exact(value), BITS) for value in row] for row in rows_of(result)]
    assert got == expected or RESULT_TYPE[kind] is flint.arb
    # No product of these has more bits than fit, so that the fractions are the judge.
    exact_product = product([list(col) for col in zip(*rows)], rows)
    for got_row, want_row in zip(got, exact_product, strict=True):
        for value, want in zip(got_row, want_row, strict=True):
            assert abs(value - want) <= Fraction(2) ** (60 - BITS)


def test_cholesky_of_every_kind(kind: str) -> None:
    a = positive_definite(9, seed=2)
    result = sunzi.cholesky(converted(a, kind), precision=BITS)
    reference = sunzi.Matrix(a, precision=BITS).cholesky()
    got = [[round_to(exact(value), BITS) for value in row] for row in result]
    assert got == reference.to_list() or RESULT_TYPE[kind] is flint.arb
    for row, wanted in zip(got, cholesky_by_definition(a, BITS), strict=True):
        for value, want in zip(row, wanted, strict=True):
            assert abs(value - exact(want)) <= Fraction(2) ** (8 - BITS)


@pytest.mark.parametrize("kind_b", ["mpf", "mpfr", "arb", "fraction"])
def test_solve_takes_the_kind_of_the_right_side(kind: str, kind_b: str) -> None:
    a, b = positive_definite(6, seed=3), random_rows(6, 1, 40, seed=4)
    result = sunzi.solve(converted(a, kind), [KINDS[kind_b](row[0]) for row in b], precision=BITS)
    assert isinstance(result, list) and not isinstance(result[0], list)
    x = [[exact(value)] for value in result]
    for row, want in zip(product(a, x), b, strict=True):
        assert abs(row[0] - want[0]) <= Fraction(2) ** (30 - BITS)


def test_flat_operands_give_flat_results() -> None:
    a = [[4.0, 2.0], [2.0, 10.0]]
    assert sunzi.solve(a, [8.0, 22.0]) == [1.0, 2.0]
    assert sunzi.solve(a, [[8.0], [22.0]]) == [[1.0], [2.0]]
    flat = sunzi.solve(np.array(a), np.array([8.0, 22.0]))
    assert flat.shape == (2,) and flat.dtype == np.float64 and flat.tolist() == [1.0, 2.0]
    objects = sunzi.solve(a, np.array([gmpy2.mpfr(8), gmpy2.mpfr(22)]))
    assert objects.shape == (2,) and objects.dtype == object and objects.tolist() == [1, 2]


def test_float64_arrays_stay_float64() -> None:
    rng = np.random.default_rng(5)
    p = rng.standard_normal((20, 6))
    q = sunzi.syrk(p)
    assert isinstance(q, np.ndarray) and q.dtype == np.float64 and q.shape == (6, 6)
    want = product([[Fraction(x) for x in col] for col in p.T], [[Fraction(x) for x in row] for row in p])
    scale = max(abs(value) for row in want for value in row)
    assert max(abs(Fraction(q[i, j]) - want[i][j]) for i in range(6) for j in range(6)) <= scale * Fraction(2) ** -52
    assert (q == q.T).all()
    more = sunzi.syrk(p.astype(object), precision=300)
    assert more.dtype == object and isinstance(more[0, 0], float)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i4", "i8", "u8", ">f8", "U"])
def test_numpy_types(dtype: str) -> None:
    array = np.array([[1, 2], [3, 4]], dtype=dtype)
    result = sunzi.syrk(array, precision=100)
    assert exact_rows(result) == [[10, 14], [14, 20]]


def test_lists_of_arrays() -> None:
    assert sunzi.syrk([np.array([1.0, 2.0]), (3.0, 4.0)]) == [[10.0, 14.0], [14.0, 20.0]]
    rows = [np.array([gmpy2.mpfr(1), gmpy2.mpfr(2)], dtype=object), [3, 4]]
    assert exact_rows(sunzi.syrk(rows)) == [[10, 14], [14, 20]]
    assert sunzi.syrk([np.zeros((2, 2))[0], np.ones(2)])[0][0] == 1.0


def test_numpy_scalars_in_lists() -> None:
    row = [np.int64(3), np.float64(0.5), np.float32(0.25), np.uint8(7)]
    assert sunzi.Matrix([row], precision=60).to_list("fraction") == [[3, Fraction(1, 2), Fraction(1, 4), 7]]


def test_matrices_of_other_packages() -> None:
    a = positive_definite(5, seed=6)
    expected = sunzi.Matrix(a, precision=BITS).cholesky().to_list()
    by_mpmath = sunzi.cholesky(mpmath.matrix(converted(a, "mpf")))
    assert isinstance(by_mpmath, mpmath.matrix) and exact_rows(by_mpmath) == expected
    # Balls, whose midpoints may be rounded the other way.
    near = lambda rows: all(
        abs(value - want) <= Fraction(2) ** (4 - BITS)
        for row, wanted in zip(rows, expected, strict=True)
        for value, want in zip(row, wanted, strict=True)
    )
    by_flint = sunzi.cholesky(flint.arb_mat(converted(a, "arb")))
    assert isinstance(by_flint, flint.arb_mat) and near(exact_rows(by_flint))
    by_fractions = sunzi.cholesky(flint.fmpq_mat(converted(a, "fmpq")), precision=BITS)
    assert isinstance(by_fractions, flint.arb_mat) and near(exact_rows(by_fractions))


@pytest.mark.parametrize("bits", [2, 3, 53, 63, 64, 65, 127, 128, 129, 500, 1024, 4000])
@pytest.mark.parametrize("numbers", ["mpf", "mpfr", "arb", "fraction"])
def test_round_trips_at_every_limb_edge(bits: int, numbers: str) -> None:
    names = {"mpf": "mpmath", "mpfr": "gmpy2", "arb": "flint", "fraction": "fraction"}
    rows = [[round_to(value, bits) for value in row] for row in random_rows(3, 3, bits, seed=bits)]
    rows[1][1] = Fraction(0)
    make = (lambda value: to_mpfr(value, bits)) if numbers == "mpfr" else KINDS[numbers]
    matrix = sunzi.Matrix([[make(value) for value in row] for row in rows], precision=bits)
    assert matrix.precision == bits and matrix.numbers == names[numbers]
    assert exact_rows(matrix) == rows
    for other in names.values():
        assert [[exact(x) for x in row] for row in matrix.to_list(other)] == rows
    assert exact_rows(matrix.to_mpmath()) == exact_rows(matrix.to_flint()) == exact_rows(matrix.to_gmpy2()) == rows
    assert all(x.precision == bits for row in matrix.to_gmpy2() for x in row)
    decimal = sunzi.Matrix(matrix.to_list("str"), precision=bits)
    assert decimal == matrix, "decimals have enough digits to be read back"


def test_mpf_results_are_normal_and_work_on() -> None:
    x = sunzi.cholesky([[mpmath.mpf(2)]])[0][0]
    assert x == mpmath.sqrt(2) and x._mpf_ == mpmath.sqrt(2)._mpf_ and hash(x) == hash(mpmath.sqrt(2))
    assert type(x._mpf_[1]) is type(mpmath.mpf(3)._mpf_[1])
    assert x * x - 2 != 1


def test_mpfr_results_work_on() -> None:
    x = sunzi.cholesky([[gmpy2.mpfr(2, 300)]])[0][0]
    with gmpy2.context(precision=300):
        assert x == gmpy2.sqrt(gmpy2.mpfr(2)) and x.precision == 300
        assert abs(x * x - 2) < gmpy2.mpfr(2) ** -297
        assert gmpy2.from_binary(gmpy2.to_binary(x)) == x
        assert gmpy2.mpfr(str(x)) == x and x.rc == 0


@pytest.mark.parametrize("text", ["1", "-2.5", "1e10", "+.5E-3", "123456789012345678901234567890.5", "1_000"])
def test_decimals(text: str) -> None:
    value = sunzi.Matrix([[text]], precision=BITS).to_list("fraction")[0][0]
    assert value == round_to(Fraction(text.replace("_", "")), BITS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1.8p-3", Fraction(3, 16)),
        ("-0XfF", Fraction(-255)),
        ("1/3", Fraction(1, 3)),
        ("1d3", Fraction(1000)),
        ("1.5*^-1", Fraction(15, 100)),
        ("4.`300.", Fraction(4)),
        ("1.5``30*^-2", Fraction(15, 1000)),
    ],
)
def test_forms_of_files(text: str, value: Fraction) -> None:
    assert sunzi.Matrix([[text]], precision=BITS).to_list("fraction")[0][0] == round_to(value, BITS)


def test_integers_in_strings_are_exact() -> None:
    long = 10**100 + 1
    assert Fraction(sunzi.gemm([[str(long), str(-(10**100))]], [[1], [1]], exact=True)[0][0]) == 1
    assert Fraction(sunzi.gemm([[str(long)]], [[1]], precision=340)[0][0]) == long


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-22, 7), Fraction(10**50, 3**40)])
@pytest.mark.parametrize("bits", [2, 64, 333])
def test_fractions_are_rounded_to_nearest(value: Fraction, bits: int) -> None:
    for number in (value, gmpy2.mpq(value), flint.fmpq(value.numerator, value.denominator)):
        assert sunzi.Matrix([[number]], precision=bits).to_list("fraction") == [[round_to(value, bits)]]


def test_inputs_are_taken_exactly_beyond_the_precision_of_the_result() -> None:
    # The leading parts cancel: at 64 bits each the product would be 0.
    tiny = Fraction(1, 2**150)
    a = [[to_mpfr(1 + tiny, 200), gmpy2.mpfr(1, 64)]]
    b = [[gmpy2.mpfr(1, 64)], [gmpy2.mpfr(-1, 64)]]
    result = sunzi.gemm(a, b, precision=256)
    assert exact(result[0][0]) == tiny and result[0][0].precision == 256
    assert sunzi.gemm([[10**60 + 1, -(10**60)]], [[1], [1]], precision=300)[0][0] == 1


def test_default_precision_is_the_largest() -> None:
    mixed = [[gmpy2.mpfr(2, 100), gmpy2.mpfr(1, 300)], [gmpy2.mpfr(1, 300), gmpy2.mpfr(3, 80)]]
    assert sunzi.cholesky(mixed)[0][0].precision == 300
    assert sunzi.Matrix([[mpmath.mpf(1)]]).precision == BITS
    assert sunzi.Matrix([[flint.arb(1)]]).precision == BITS
    assert sunzi.Matrix([[1.0]]).precision == 53
    assert sunzi.Matrix([[1, gmpy2.mpfr(1, 77)]]).precision == 77
    assert sunzi.gemm(sunzi.Matrix([[1.0]]), sunzi.Matrix([[2]], precision=99)).precision == 99
    with mpmath.workprec(500):
        long = mpmath.mpf(1) / 3
    assert sunzi.Matrix([[long]]).precision == 499 or exact(sunzi.Matrix([[long]])[0, 0]) == exact(long)


def test_the_first_kind_of_the_order_is_taken() -> None:
    assert sunzi.Matrix([[1, 0.5]]).numbers == "float"
    assert sunzi.Matrix([[mpmath.mpf(1), 0.5]]).numbers == "mpmath"
    assert sunzi.Matrix([[mpmath.mpf(1), gmpy2.mpfr(1)]]).numbers == "gmpy2"
    assert sunzi.Matrix([[flint.arb(1), "0.5"]]).numbers == "flint"
    assert sunzi.Matrix([["0.5", 1]], precision=60).numbers == "str"


def test_no_container_drops_bits() -> None:
    """An array of doubles becomes one of objects; mpmath and flint hold their own numbers."""
    a = mpmath.matrix([[3, 0], [0, 7]])
    for b in (np.array([1.0, 2.0]), np.array([[1.0], [2.0]])):
        x = sunzi.solve(a, b)
        assert x.dtype == object and x.shape == b.shape
        assert exact(x.flat[0]) == exact(sunzi.solve(a, mpmath.matrix([1, 2]))[0])
    x = sunzi.gemm(np.array([[1.0]]), [[gmpy2.mpfr("1.1", 300)]])
    assert x.dtype == object and x[0, 0] == gmpy2.mpfr("1.1", 300)
    third = gmpy2.mpfr(gmpy2.mpq(1, 3), 400)
    for one in (mpmath.matrix([[1]]), flint.arb_mat([[1]])):
        assert exact(sunzi.gemm(one, [[third]], precision=400)[0, 0]) == exact(third)


def test_matrices_of_numpy() -> None:
    for dtype in (float, int, object):
        matrix = np.matrix([[1, 2], [3, 4]], dtype=dtype)
        assert exact_rows(sunzi.syrk(matrix, precision=60)) == [[10, 14], [14, 20]]


def test_triangles_of_arrays_of_doubles() -> None:
    a = np.array([[4.0, np.nan], [2.0, 10.0]])
    assert sunzi.cholesky(a, uplo="lower").tolist() == [[2.0, 0.0], [1.0, 3.0]]
    with pytest.raises(ValueError, match="row 0, column 1 is NaN"):
        sunzi.cholesky(a)


def test_unit_triangles_have_no_diagonal_to_read() -> None:
    for t in ([[None, "x"], [1.0, None]], [[float("nan"), None], [1.0, float("inf")]]):
        assert sunzi.trsm(t, [1.0, 3.0], unit=True) == [1.0, 2.0]
    array = np.array([[np.nan, np.inf], [1.0, 0.0]])
    assert sunzi.trsm(array, [1.0, 3.0], unit=True) == [1.0, 2.0]
    assert sunzi.trsm(array.T, [3.0, 1.0], uplo="upper", unit=True) == [2.0, 1.0]


def by_both_ways(variable: str, code: str) -> list[str]:
    """The outputs of a program that converts objects through their methods, and of one that knows their layout."""
    outputs = []
    for choice in ("portable", ""):
        environment = os.environ | {variable: choice}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    return outputs


def test_gmpy2_by_its_methods_gives_the_same() -> None:
    """Conversion through methods, for layouts that are not known, in a process of its own."""
    code = (
        "import gmpy2, sunzi\n"
        "c = gmpy2.context(precision=333); gmpy2.set_context(c)\n"
        "n = 6\n"
        "entry = lambda i, j: gmpy2.mpfr(1) / (i + j + 1) + (7 if i == j else -gmpy2.mpfr(2) ** -70)\n"
        "a = [[entry(i, j) for j in range(n)] for i in range(n)]\n"
        "l = sunzi.cholesky(a)\n"
        "print([[(x.as_integer_ratio(), x.precision, x.rc) for x in row] for row in l])\n"
        "gmpy2.set_context(gmpy2.context(emax=5, emin=-5, trap_overflow=True, trap_underflow=True))\n"
        "big, = sunzi.Matrix(['1e99'], precision=99).to_gmpy2()[0]\n"
        "small, = sunzi.Matrix(['1e-99'], precision=99).to_gmpy2()[0]\n"
        "print(big.as_integer_ratio(), small.as_integer_ratio())\n"
        "gmpy2.set_context(c)\n"
        "print(sunzi.Matrix([[gmpy2.mpfr(0), gmpy2.mpz(-3) ** 99, gmpy2.mpq(1, 3)]]).to_list('fraction'))\n"
    )
    by_methods, by_layout = by_both_ways("SUNZI_GMPY2", code)
    assert by_methods == by_layout and len(by_methods) > 1000


def test_both_conversions_from_and_to_flint() -> None:
    """Through the layout of python-flint's objects and through its methods: radii by methods are a little wider."""
    code = (
        "import flint, sunzi\n"
        "flint.ctx.prec = 300\n"
        "a = flint.arb_mat([[(flint.arb(i + 2).sqrt().mid() ** (j - 2)).mid() for j in range(5)] for i in range(5)])\n"
        "b = flint.arb_mat([[flint.arb(i - j, 2.0 ** (-80 * i)) for j in range(5)] for i in range(5)])\n"
        "for c in (sunzi.gemm(a, b), sunzi.gemm(b, a, precision=70), sunzi.syrk(a), sunzi.Matrix(a).to_flint()):\n"
        "    for x in c.entries():\n"
        "        print(x.mid().man_exp(), float(x.rad()))\n"
    )
    by_methods, by_layout = (
        [line.rsplit(" ", 1) for line in output.splitlines()] for output in by_both_ways("SUNZI_FLINT", code)
    )
    assert len(by_methods) == 100
    for (middle, radius), (other, narrow) in zip(by_methods, by_layout, strict=True):
        assert middle == other and float(narrow) <= float(radius) <= float(narrow) * (1 + 2.0**-27), (radius, narrow)


@pytest.mark.parametrize("bits", [2, 63, 64, 65, 128, 129, 200, 320, 1000])
def test_exact_balls_of_all_lengths(bits: int) -> None:
    """Midpoints of any number of limbs, with limbs of zeros below, are python-flint's own numbers."""
    flint.ctx.prec = 2 * bits + 100
    rng = random.Random(bits)
    draw = lambda: Fraction(rng.getrandbits(bits) | 1 << (bits - 1)) * Fraction(2) ** rng.randrange(-700, 700)
    values = [draw() for _ in range(20)]
    values += [-value for value in values[:10]] + [Fraction(0), Fraction(1), Fraction(3 << 200), Fraction(-1, 1 << 300)]
    matrix = sunzi.Matrix([values], precision=bits)
    balls = matrix.to_flint().entries()
    for ball, value in zip(balls, values, strict=True):
        known = to_arb(value)
        assert ball.is_exact() and exact(ball) == value and ball == known and ball.rad() == 0
        assert repr(ball) == repr(known) and ball - known == 0 and ball * 2 == known * 2 and ball * ball == known * known
    assert sunzi.Matrix([balls], precision=bits) == matrix
    del balls
    again = [matrix.to_flint() for _ in range(50)]
    assert all(entry == other for entry, other in zip(again[0].entries(), again[-1].entries()))
