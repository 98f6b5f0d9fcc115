"""LU, and systems, inverses and determinants of general matrices: compared with exact fractions."""

import copy
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import gmpy2
import numpy as np
import pytest
from conftest import KINDS, exact, exact_rows, positive_definite, random_rows

import sunzi

BITS = 160
Rows = list[list[Fraction]]

INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
GENERAL = [[1.0, 2.0], [3.0, 4.0]]


def times(a: Rows, b: Rows) -> Rows:
    return [[sum((x * y for x, y in zip(row, col)), Fraction(0)) for col in zip(*b)] for row in a]


def sizes(rows: Rows) -> Rows:
    return [[abs(x) for x in row] for row in rows]


def transpose(rows: Rows) -> Rows:
    return [list(col) for col in zip(*rows)]


def identity(order: int) -> Rows:
    return [[Fraction(i == j) for j in range(order)] for i in range(order)]


def to_flint(rows: Rows) -> flint.fmpq_mat:
    return flint.fmpq_mat(
        len(rows), len(rows[0]), [flint.fmpq(x.numerator, x.denominator) for row in rows for x in row]
    )


def of_flint(rows: flint.fmpq_mat) -> Rows:
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in rows.tolist()]


def solved(a: Rows, b: Rows) -> Rows:
    return of_flint(to_flint(a).solve(to_flint(b)))


def determinant(rows: Rows) -> Fraction:
    found = to_flint(rows).det()
    return Fraction(int(found.p), int(found.q))


def is_near(found: Rows, want: Rows, bits: int) -> bool:
    """In the maximum norm of the worst column."""
    pairs = zip(transpose(found), transpose(want))
    return all(max(abs(x - y) for x, y in zip(p, q)) <= max(map(abs, q)) / 2**bits for p, q in pairs)


def residual_is_small(a: Rows, x: Rows, b: Rows, bound: Rows, bits: int) -> bool:
    """`|b - A x| <= 2^-bits bound`, entry by entry."""
    rest = zip(times(a, x), b, bound)
    return all(abs(p - q) <= r / 2**bits for row in rest for p, q, r in zip(*row))


@pytest.mark.parametrize("accuracy", ["entrywise", "norm"])
@pytest.mark.parametrize("order", [1, 2, 9, 33])
def test_factors_and_solutions(order: int, accuracy: Any) -> None:
    rows, right = random_rows(order, order, 100, seed=order), random_rows(order, 3, 100, seed=90 + order)
    report = sunzi.Report()
    factors = sunzi.lu(rows, precision=BITS, accuracy=accuracy, report=report)
    assert (report.operation, report.order, report.precision_bits) == ("lu", order, BITS)
    assert report.accuracy == accuracy and report.growth_bits >= 0 and report.compute_seconds >= 0
    assert (factors.order, factors.precision) == (order, BITS) and repr(factors) == f"Lu({order} x {order}, 160 bits)"
    lower, upper = exact_rows(factors.lower), exact_rows(factors.upper)
    assert sorted(factors.rows) == list(range(order)) and all(type(row) is int for row in factors.rows)
    assert all(lower[i][i] == 1 and not any(lower[i][i + 1 :]) and not any(upper[i][:i]) for i in range(order))
    assert all(abs(x) <= 1 + Fraction(1, 2**BITS) for row in lower for x in row)
    ordered = [rows[row] for row in factors.rows]
    bound = times(sizes(lower), sizes(upper))
    if accuracy == "norm":
        most = [max(abs(x) for x in col) for col in zip(*rows)]
        bound = [[x + max(most[j], abs(upper[j][j])) for j, x in enumerate(row)] for row in bound]
    assert residual_is_small(lower, upper, ordered, bound, BITS - 2)
    solution, mirrored = factors.solve(right), factors.solve(right, transposed=True)
    assert is_near(exact_rows(solution), solved(rows, right), BITS - 30)
    assert is_near(exact_rows(mirrored), solved(transpose(rows), right), BITS - 30)
    assert abs(exact(factors.det()) / determinant(rows) - 1) < Fraction(1, 2 ** (BITS - 30))
    inverse = factors.inverse()
    assert isinstance(inverse, sunzi.Matrix) and inverse == sunzi.lu(rows, precision=BITS, accuracy=accuracy).inverse()
    assert is_near(exact_rows(inverse), solved(rows, identity(order)), BITS - 30)
    if accuracy == "entrywise":
        x = exact_rows(solution)
        bound = times(times(sizes(lower), sizes(upper)), sizes(x))
        assert residual_is_small(ordered, x, [right[row] for row in factors.rows], bound, BITS - 4)
        moved = [[exact_rows(mirrored)[row][j] for j in range(3)] for row in factors.rows]
        bound = times(times(sizes(transpose(upper)), sizes(transpose(lower))), sizes(moved))
        assert residual_is_small(transpose(rows), exact_rows(mirrored), right, bound, BITS - 4)


def test_factors_in_the_convention_of_scipy() -> None:
    a = random_rows(5, 5, 20, seed=3)
    factors = sunzi.lu(a, precision=400)
    p = [[Fraction(0)] * 5 for _ in range(5)]
    for place, row in enumerate(factors.rows):
        p[row][place] = Fraction(1)
    assert is_near(times(times(p, exact_rows(factors.lower)), exact_rows(factors.upper)), a, 390)


def test_kinds_of_numbers(kind: str) -> None:
    rows, right = random_rows(6, 6, 60, seed=21), random_rows(6, 1, 60, seed=22)
    a, b = ([[KINDS[kind](x) for x in row] for row in part] for part in (rows, right))
    flat = [row[0] for row in b]
    factors, again = sunzi.lu(a, precision=BITS), sunzi.Lu(a, precision=BITS)
    symmetric = sunzi.cholesky([[KINDS[kind](Fraction(4))]], precision=BITS)
    found = factors.solve(flat, precision=BITS)
    assert type(found[0]) is type(symmetric[0][0]) is type(factors.det())
    assert exact_rows(found) == exact_rows(again.solve(flat, precision=BITS))
    assert is_near(exact_rows(found), solved(rows, right), BITS - 30)
    if kind in ("arb", "fmpq"):
        return  # Balls, of which solve and the others accept positive definite ones.
    assert found == sunzi.solve(a, flat, precision=BITS)
    truth = solved(rows, identity(6))
    for inverse in (sunzi.inverse(a, precision=BITS), sunzi.Matrix(a, precision=BITS).inverse()):
        assert is_near(exact_rows(inverse), truth, BITS - 30)
    for det in (sunzi.det(a, precision=BITS), sunzi.Matrix(a, precision=BITS).det()):
        assert abs(exact(det) / determinant(rows) - 1) < Fraction(1, 2 ** (BITS - 30))
    matrix = sunzi.Matrix(a, precision=BITS)
    assert sunzi.solve(matrix, sunzi.Matrix(b, precision=BITS)) == matrix.solve(sunzi.Matrix(b, precision=BITS))


def test_arrays() -> None:
    a, b = np.array(GENERAL), np.array([5.0, 11.0])
    assert np.abs(sunzi.solve(a, b) - [1.0, 2.0]).max() < 1e-14 and sunzi.lu(a).solve(b).dtype == float
    out = np.empty((2, 2))
    assert sunzi.inverse(a, out=out) is out and np.abs(out - [[-2.0, 1.0], [1.5, -0.5]]).max() < 1e-14
    assert np.abs(sunzi.solve(a[::-1].T, b) - np.linalg.solve(a[::-1].T, b)).max() < 1e-13
    objects = np.array([[Fraction(x) for x in row] for row in GENERAL], dtype=object)
    assert sunzi.solve(objects, b, precision=60).dtype == float
    balls = flint.arb_mat([[1, 2], [3, 4]])
    found = sunzi.lu(balls).solve(flint.arb_mat([[5], [11]]))
    assert isinstance(found, flint.arb_mat) and all(abs(found[i, 0] - i - 1) < 1e-14 for i in range(2))
    with pytest.raises(ValueError, match=r"is the ball .*: pass its midpoint, x.mid\(\)"):
        sunzi.lu(flint.arb_mat([[flint.arb(1, 0.5)]]))


def test_determinants_of_permutations() -> None:
    rng = random.Random(8)
    for order in (2, 3, 9, 33):
        for _ in range(6):
            places = rng.sample(range(order), order)
            scale = [rng.choice([-3, -1, 2, 5]) for _ in range(order)]
            rows = [[Fraction(scale[i] * (places[i] == j)) for j in range(order)] for i in range(order)]
            value = determinant(rows)
            for found in (sunzi.lu(rows, precision=BITS).det(), sunzi.Matrix(rows, precision=BITS).det()):
                assert found == value, places
    assert sunzi.det([[0.0, 1.0], [1.0, 0.0]]) == -1.0 and sunzi.det(INDEFINITE) == -3.0


def test_pickles_and_copies() -> None:
    factors = sunzi.lu(random_rows(7, 7, 80, seed=4), precision=BITS)
    for other in (pickle.loads(pickle.dumps(factors)), copy.copy(factors), copy.deepcopy(factors)):
        assert (other.lower, other.upper, other.rows) == (factors.lower, factors.upper, factors.rows)
        assert other.solve([1] * 7) == factors.solve([1] * 7) and other.det() == factors.det()
    numbers = sunzi.Lu([[gmpy2.mpfr(0), gmpy2.mpfr(2)], [gmpy2.mpfr(3), gmpy2.mpfr(4)]])
    assert isinstance(pickle.loads(pickle.dumps(numbers)).det(), type(gmpy2.mpfr(0)))


def test_precisions() -> None:
    factors = sunzi.lu([["1", "1/3"], ["1/7", "2"]], precision=300)
    assert factors.solve(sunzi.Matrix([[1], [1]], precision=64), precision=90).precision == 90
    assert factors.inverse(precision=90).precision == 90 and factors.inverse().precision == 300
    with pytest.raises(ValueError, match="precision"):
        sunzi.lu([["1", "1/3"], ["1/7", "2"]])


SINGULAR: list[list[list[float]]] = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize("a", SINGULAR)
def test_singular_matrices(a: list[list[float]]) -> None:
    index = 1 if a[0][0] else 0
    factorisations: list[Callable[[], object]] = [lambda: sunzi.lu(a), lambda: sunzi.Lu(a)]
    calls: list[Callable[[], object]] = [
        lambda: sunzi.solve(a, [1.0, 2.0]),
        lambda: sunzi.inverse(a),
        lambda: sunzi.det(a),
        lambda: sunzi.Matrix(a).inverse(),
    ]
    if index == 1:
        # Semidefinite, and proven to be singular.
        for call in calls:
            with pytest.raises(sunzi.NotPositiveDefiniteError, match="is singular, as an exact solution") as proven:
                call()
            assert proven.value.singular
        calls = []
    for call in factorisations + calls:
        text = f"^the matrix is singular, or a singular one lies within the rounding .* in column {index} all candidates"
        with pytest.raises(sunzi.SingularError, match=text) as caught:
            call()
        assert caught.value.index == index and isinstance(caught.value, ValueError)


def test_edges() -> None:
    empty = sunzi.Matrix.zeros(0, 0, precision=60)
    factors = sunzi.lu(empty)
    assert (factors.order, factors.rows, factors.det()) == (0, [], 1) and factors.inverse().shape == (0, 0)
    assert factors.solve(sunzi.Matrix.zeros(0, 2, precision=60)).shape == (0, 2)
    for call in (sunzi.lu, sunzi.Lu, sunzi.inverse, sunzi.det, lambda a: sunzi.solve(a, [1.0, 2.0])):
        with pytest.raises(ValueError, match="2 x 3"):
            call([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        with pytest.raises(TypeError, match="complex"):
            call([[1.0, 2j], [3.0, 4.0]])
    for solve in (sunzi.lu(GENERAL).solve, lambda b: sunzi.solve(GENERAL, b)):
        with pytest.raises(ValueError, match="2 x 2"):
            solve([1.0, 2.0, 3.0])
    with pytest.raises(ZeroDivisionError):
        sunzi.lu(sunzi.Matrix(random_rows(300, 300, 60, seed=5), precision=3000), progress=lambda done, total: 1 // 0)


def test_memory() -> None:
    a = sunzi.Matrix(random_rows(60, 60, 80, seed=6), precision=BITS)
    for call in (sunzi.lu, sunzi.inverse, lambda a, **options: sunzi.solve(a, a, **options)):
        with pytest.raises(sunzi.MemoryLimitError) as caught:
            call(a, context=sunzi.Context(threads=2, memory=10_000))
        assert caught.value.limit_bytes == 10_000 < caught.value.minimum_bytes
    report = sunzi.Report()
    whole = sunzi.solve(a, a, context=sunzi.Context(threads=1), report=report)
    limited = sunzi.Context(threads=2, memory=4 * report.planned_bytes)
    assert sunzi.solve(a, a, context=limited) == whole


def test_reports_name_the_factorisation() -> None:
    for a, name in ((GENERAL, "lu"), (INDEFINITE, "lu"), ([[2.0, 1.0], [1.0, 2.0]], "cholesky")):
        for operation in ("solve", "inverse"):
            report = sunzi.Report()
            if operation == "solve":
                sunzi.solve(a, [1.0, 2.0], report=report)
            else:
                sunzi.inverse(a, report=report)
            assert (report.operation, report.factorisation.operation, report.order) == (operation, name, 2)
            assert report.planned_bytes >= report.factorisation.planned_bytes > 0
            assert report.columns == (1 if operation == "solve" else 2)
            assert name == "cholesky" or report.accuracy == report.factorisation.accuracy == "entrywise"
            assert 14 < report.digits < 16 and "certified" not in report


def test_positive_definite_matrices_are_factored_by_cholesky() -> None:
    rows = positive_definite(9, 31)
    a, b = sunzi.Matrix(rows, precision=BITS), sunzi.Matrix(random_rows(9, 2, 80, seed=32), precision=BITS)
    factor = sunzi.Cholesky(a)
    for options in ({}, {"uplo": "both"}, {"uplo": "lower"}):
        assert sunzi.solve(a, b, **options) == factor.solve(b) and sunzi.det(a, **options) == factor.det()
        assert sunzi.inverse(a, **options) == a.inverse(uplo="upper_only")
    assert sunzi.solve(a, b) != sunzi.lu(a).solve(b) or sunzi.det(a) == sunzi.lu(a).det()


def test_what_requires_cholesky() -> None:
    options: list[tuple[dict[str, Any], str]] = [
        ({"uplo": "both"}, "with uplo= (solve|inverse) accepts symmetric positive definite .* leave out uplo=$"),
        ({"uplo": "both", "digits": 10}, "with uplo= (solve|inverse) accepts .* leave out uplo=$"),
    ]
    for a, error in ((GENERAL, sunzi.NotSymmetricError), (INDEFINITE, sunzi.NotPositiveDefiniteError)):
        for chosen, text in options:
            calls = [lambda: sunzi.solve(a, [1.0, 2.0], **chosen), lambda: sunzi.inverse(a, **chosen)]
            for call in calls:
                with pytest.raises(error, match=text):
                    call()
        with pytest.raises(error, match="factor_precision=30 for a result of 53 bits"):
            sunzi.solve(a, [1.0, 2.0], factor_precision=30)


def test_balls_of_general_matrices_hold_all_points() -> None:
    rng = random.Random(77)
    for seed in range(60):
        n = rng.choice([1, 2, 3, 5])
        bits = rng.choice([53, 100, 300])
        with flint.ctx.workprec(bits):
            radius = rng.choice([0, 0, 2.0**-40, 2.0**-20])
            middle = [[rng.randint(-9, 9) for _ in range(n)] for _ in range(n)]
            a = flint.arb_mat([[flint.arb(x, radius) for x in row] for row in middle])
            b = flint.arb_mat([[flint.arb(rng.randint(-9, 9), radius)] for _ in range(n)])
            point = lambda balls: flint.fmpq_mat(
                [[exactly(x.mid()) + exactly(x.rad()) * rng.choice([-1, 0, 1]) for x in row] for row in balls.tolist()]
            )
            try:
                found, inverse, det = sunzi.solve(a, b), sunzi.inverse(a), sunzi.det(a)
            except (sunzi.SingularError, ValueError):
                assert abs(flint.fmpq_mat(flint.fmpz_mat(middle)).det()) <= flint.fmpq(1, 1024)
                continue
            for _ in range(10):
                p, q = point(a), point(b)
                assert holds(det, p.det()), seed
                pairs = [(found, p.solve(q)), (inverse, p.inv())]
                for balls, exact in pairs:
                    assert all(holds(balls[i, j], exact[i, j]) for i in range(n) for j in range(exact.ncols())), seed
            theirs = a.inv()
            # Entries that are 0 are known to be tiny only.
            largest = max(abs(exactly(x.mid())) for x in theirs.entries())
            for i in range(n):
                for j in range(n):
                    own, other = exactly(inverse[i, j].rad()), exactly(theirs[i, j].rad())
                    assert own <= 8 * other + (abs(exactly(theirs[i, j].mid())) + largest / 2**40) / 2 ** (bits - 4), seed
    with pytest.raises(sunzi.SingularError):
        sunzi.inverse(flint.arb_mat([[1, 2], [2, 4]]))


def exactly(value: flint.arb) -> flint.fmpq:
    mantissa, exponent = value.man_exp()
    power = int(exponent)
    return flint.fmpq(mantissa) * (flint.fmpq(1 << power) if power >= 0 else flint.fmpq(1, 1 << -power))


def holds(ball: flint.arb, value: flint.fmpq) -> bool:
    return abs(exactly(ball.mid()) - value) <= exactly(ball.rad())


def test_digits_of_general_systems_are_true() -> None:
    """Fractions count as they are given: proofs are never above the truth, estimates by less than a digit."""
    rng = random.Random(78)
    for seed in range(40):
        n = rng.choice([2, 3, 6])
        bits = rng.choice([53, 120, 400])
        a = [[Fraction(rng.randint(-99, 99), rng.randint(1, 30)) for _ in range(n)] for _ in range(n)]
        if seed % 4 == 0:
            a[-1] = [x + Fraction(1, 1 << rng.randint(1, 200)) for x in a[0]]
        b = [Fraction(rng.randint(-99, 99), 7) for _ in range(n)]
        try:
            exact = [row[0] for row in solved(a, [[x] for x in b])]
        except ZeroDivisionError:
            continue
        size = max(abs(x) for x in exact)
        report: dict[str, Any] = {}
        found = sunzi.solve(a, b, precision=bits, certified=True, report=report)
        error = max(abs(x - y) for x, y in zip(found, exact, strict=True))
        assert report["certified"] <= report["digits"] <= bits * 0.30103 + 0.01
        if error:
            truth = math.log10(size) - math.log10(error) if size else 0.0
            assert report["certified"] <= max(truth, 0) + 1e-9 and report["digits"] <= max(truth, 0) + 1, seed
    assert sunzi.solve([[0, 3], [Fraction(1, 3), 1]], [1, 2], digits=50)[1] - Fraction(1, 3) < Fraction(1, 10**50)
    with pytest.raises(ValueError, match="singular"):
        sunzi.solve([[1, 2], [3, 6]], [1, 2], digits=10)
    with pytest.raises(ValueError, match="singular"):
        sunzi.solve([[Fraction(1, 3), Fraction(2, 3)], [1, 2]], [1, 2], digits=10)


def test_a_precision_that_does_not_decide() -> None:
    """LU takes no matrix that more bits may show to be positive definite."""
    hilbert = [[Fraction(1, i + j + 1) for j in range(30)] for i in range(30)]
    for call in (sunzi.inverse, sunzi.det, lambda a, **options: sunzi.solve(a, [1] * 30, **options)):
        with pytest.raises(sunzi.NotPositiveDefiniteError, match=": pass a larger precision=: if the .* sunzi.lu.a.$") as caught:
            call(hilbert, precision=60)
        assert caught.value.more_bits_might_help is True
    assert is_near(exact_rows(sunzi.inverse(hilbert, precision=500)), solved(hilbert, identity(30)), 300)
