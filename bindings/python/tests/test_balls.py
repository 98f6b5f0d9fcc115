"""Balls of python-flint: results hold those of all points, and are not much wider than python-flint's own."""

import os
import pickle
import random
from collections.abc import Callable
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
from flint import arb, arb_mat, fmpq, fmpq_mat

import sunzi

EFFORT = int(os.environ.get("SUNZI_TEST_EFFORT", "1"))
COUNT = 40 if EFFORT == 1 else 250 * EFFORT
POINTS = 20
RADII = ["none", "tiny", "some", "relative", "wide"]


def power(exponent: int) -> fmpq:
    return fmpq(1 << exponent) if exponent >= 0 else fmpq(1, 1 << -exponent)


def rational(value: arb) -> fmpq:
    mantissa, exponent = value.man_exp()
    return fmpq(mantissa) * power(int(exponent))


def dyadic(value: fmpq) -> arb:
    return arb((int(value.p), 1 - int(value.q).bit_length()))


def bounds(ball: arb) -> tuple[fmpq, fmpq]:
    return rational(ball.mid()), rational(ball.rad())


def two_units(ball: arb) -> fmpq:
    """Two units in the last place of the midpoint at the precision of python-flint."""
    mantissa, exponent = ball.mid().man_exp()
    return power(int(exponent) + abs(int(mantissa)).bit_length() + 1 - flint.ctx.prec)


def holds(ball: arb, value: fmpq) -> bool:
    middle, radius = bounds(ball)
    return abs(middle - value) <= radius


class Source:
    """Random operands of one precision."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bits = self.rng.choice([53, 100, 200, 400, 600])
        self.radii = self.rng.choice(RADII)
        self.label = f"seed {seed}, {self.bits} bits, radii {self.radii}"
        flint.ctx.prec = self.bits

    def number(self, bits: int, spread: int = 0) -> fmpq:
        return fmpq(self.rng.getrandbits(bits) - (1 << (bits - 1))) * power(self.rng.randint(-spread, spread) - bits)

    def ball(self, value: fmpq, radii: str) -> arb:
        middle, size = dyadic(value), abs(dyadic(value))
        part = arb((self.rng.randint(1, 1 << 20), -20))
        if radii == "none" or (radii == "some" and self.rng.random() < 0.4):
            return middle
        scales = {"tiny": arb((1, -self.bits)), "some": arb((1, -40)), "relative": arb((1, -20)), "wide": arb((1, -4))}
        scale = scales[radii] * (1 if radii == "some" else size)
        return arb(middle, (part * scale).mid())

    def matrix(self, rows: int, cols: int, radii: str) -> arb_mat:
        bits, spread = self.rng.choice([4, 30, self.bits]), self.rng.choice([0, 5, 100])
        entries = [self.ball(self.number(bits, spread), radii) for _ in range(rows * cols)]
        return arb_mat(rows, cols, entries)

    def definite(self, order: int, given: str | None = None) -> arb_mat:
        family = given or self.rng.choice(["gram", "graded", "hilbert", "integers", "diagonal"])
        bits = self.rng.choice([20, self.bits])
        p = [[self.number(bits) for _ in range(order)] for _ in range(order + 2)]
        if family == "integers":
            p = [[fmpq(self.rng.randint(-3, 3)) for _ in range(order)] for _ in range(order + 2)]
        scales = [self.rng.randint(-60, 60) if family == "graded" else 0 for _ in range(order)]
        rows: list[list[arb]] = []
        for i in range(order):
            rows.append([])
            for j in range(i + 1):
                if family == "hilbert":
                    value = fmpq((1 << self.bits) // (i + j + 1)) * power(-self.bits)
                elif family == "diagonal":
                    value = fmpq(self.rng.randint(1, 1 << 20) if i == j else 0)
                else:
                    value = sum((row[i] * row[j] for row in p), fmpq(i == j)) * power(scales[i] + scales[j])
                rows[i].append(self.ball(value, self.radii))
        self.label += f", {family} of order {order}"
        return arb_mat([[rows[max(i, j)][min(i, j)] for j in range(order)] for i in range(order)])

    def point(self, balls: arb_mat, symmetric: bool = False) -> fmpq_mat:
        corner = self.rng.random() < 0.3
        part = lambda: fmpq(self.rng.choice([-1, 1])) if corner else fmpq(self.rng.randint(-64, 64), 64)
        rows = [[bounds(ball)[0] + bounds(ball)[1] * part() for ball in row] for row in balls.tolist()]
        if symmetric:
            rows = [[rows[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))]
        return fmpq_mat(rows)


def assert_holds(balls: arb_mat, exact: fmpq_mat, label: str) -> None:
    for i in range(balls.nrows()):
        for j in range(balls.ncols()):
            assert holds(balls[i, j], exact[i, j]), f"{label}: row {i}, column {j}: {balls[i, j]}"


def assert_not_wider(ours: arb_mat, theirs: arb_mat, label: str) -> None:
    """At most 8 times the radii of python-flint, or two units in the last place of the midpoint; 0 where these are 0.

    A radius of python-flint is less than a unit where the last of its operations happens to be exact.
    """
    for i in range(ours.nrows()):
        for j in range(ours.ncols()):
            if theirs[i, j].is_finite():
                own, other = bounds(ours[i, j])[1], bounds(theirs[i, j])[1]
                most = max(8 * other, two_units(ours[i, j])) if other else other
                assert own <= most, f"{label}: row {i}, column {j}: {ours[i, j]} beside {theirs[i, j]}"


def assert_same(one: arb_mat, other: arb_mat, label: str) -> None:
    """The same midpoints and radii."""
    assert (one.nrows(), one.ncols()) == (other.nrows(), other.ncols()), label
    pairs = zip(one.entries(), other.entries(), strict=True)
    assert all(bounds(x) == bounds(y) for x, y in pairs), label


def solved(work: Callable[[], object]) -> object:
    """A result; `None` where there is no proof that all points are regular."""
    try:
        return work()
    except ValueError as error:
        assert "balls may contain" in str(error) or isinstance(error, sunzi.NotPositiveDefiniteError)
        return None


def test_products_hold_all_points() -> None:
    for seed in range(COUNT):
        source = Source(seed)
        m, k, n = (source.rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(3))
        a = source.matrix(m, k, source.radii)
        b = source.matrix(k, n, source.rng.choice(["none", source.radii]))
        product = sunzi.gemm(a, b)
        assert isinstance(product, arb_mat)
        assert_not_wider(product, a * b, source.label)
        gram = sunzi.syrk(a)
        assert_not_wider(gram, a.transpose() * a, source.label)
        for _ in range(POINTS):
            p = source.point(a)
            assert_holds(product, p * source.point(b), source.label)
            assert_holds(gram, p.transpose() * p, source.label)


def test_solutions_and_inverses_hold_all_points() -> None:
    for seed in range(COUNT):
        source = Source(1000 + seed)
        a = source.definite(source.rng.choice([1, 2, 3, 4, 6, 10, 14]))
        b = source.matrix(a.nrows(), source.rng.choice([1, 3]), source.rng.choice(["none", source.radii]))
        for ours, theirs, right in (
            (lambda: sunzi.solve(a, b), lambda: a.solve(b), b),
            (lambda: sunzi.inverse(a), lambda: a.inv(), None),
        ):
            try:
                other = theirs()
            except ZeroDivisionError:
                other = None
            found = solved(ours)
            # Where python-flint encloses, so do we.
            if found is None:
                assert other is None or not all(ball.is_finite() for ball in other.entries()), source.label
                continue
            if other is not None:
                assert_not_wider(found, other, source.label)
            for _ in range(POINTS):
                p = source.point(a)
                assert_holds(found, p.solve(source.point(right)) if right is not None else p.inv(), source.label)


@pytest.mark.parametrize("family", ["gram", "graded", "hilbert", "integers", "diagonal"])
def test_radii_of_larger_systems_are_at_most_8_times_those_of_python_flint(family: str) -> None:
    for seed in range(3 if EFFORT == 1 else 5 * EFFORT):
        source = Source(5000 + seed)
        a = source.definite(source.rng.choice([16, 20, 25, 30]), family)
        b = source.matrix(a.nrows(), 2, source.radii)
        assert_not_wider(sunzi.gemm(a, b), a * b, source.label)
        for ours, theirs in ((lambda: sunzi.solve(a, b), lambda: a.solve(b)), (lambda: sunzi.inverse(a), a.inv)):
            try:
                other = theirs()
            except ZeroDivisionError:
                continue
            found = solved(ours)
            if found is None:
                assert not all(ball.is_finite() for ball in other.entries()), source.label
            else:
                assert_not_wider(found, other, source.label)


def test_triangular_solutions_hold_all_points() -> None:
    for seed in range(COUNT):
        source = Source(6000 + seed)
        order, cols = source.rng.choice([1, 2, 3, 5, 8, 20]), source.rng.choice([1, 3])
        whole = source.matrix(order, order, source.radii)
        hard = source.rng.random() < 0.5
        upper, transpose, right, unit = (source.rng.random() < 0.5 for _ in range(4))
        for i in range(order):
            value = fmpq(1) if hard else fmpq(source.rng.randint(1, 1000), 1024)
            whole[i, i] = source.ball(value, source.radii)
        t = arb_mat(order, order)
        for i in range(order):
            for j in range(order):
                if i == j or (j > i) == upper:
                    t[i, j] = arb(1) if unit and i == j else whole[i, j]
        b = source.matrix(*((cols, order) if right else (order, cols)), source.rng.choice(["none", source.radii]))
        options = {"uplo": "upper" if upper else "lower", "side": "right" if right else "left"}
        found = sunzi.trsm(whole, b, transpose=transpose, unit=unit, **options)
        assert isinstance(found, arb_mat)
        own = t.transpose() if transpose != right else t
        turned = found.transpose() if right else found
        try:
            assert_not_wider(turned, own.solve(b.transpose() if right else b), source.label)
        except ZeroDivisionError:
            pass  # No proof of python-flint's.
        for _ in range(POINTS):
            p, q = source.point(own), source.point(b)
            assert_holds(turned, p.solve(q.transpose() if right else q), source.label)


def factor_of(a: fmpq_mat) -> list[list[arb]]:
    """By definition, in balls."""
    order = a.nrows()
    rows = [[arb(0)] * order for _ in range(order)]
    for i in range(order):
        for j in range(i + 1):
            left = arb(a[i, j]) - sum((rows[i][k] * rows[j][k] for k in range(j)), arb(0))
            rows[i][j] = left.sqrt() if i == j else left / rows[j][j]
    return rows


def test_factors_hold_all_points_and_are_not_much_wider() -> None:
    for seed in range(COUNT):
        source = Source(2000 + seed)
        order = source.rng.choice([1, 2, 3, 4, 6, 8])
        a = source.definite(order)
        factor = solved(lambda: sunzi.cholesky(a))
        if factor is None:
            continue
        flint.ctx.prec = 4 * source.bits + 600
        points = [factor_of(source.point(a, symmetric=True)) for _ in range(100)]
        for i in range(order):
            for j in range(order):
                unit = max(abs(factor[i, i].mid()), abs(factor[i, j].mid())) * arb((1, -source.bits))
                values = [point[i][j] for point in points]
                assert all(factor[i, j].contains(value) for value in values), source.label
                middles = sorted(rational(value.mid()) for value in values)
                spread = max(middles[-1] - middles[0], rational(unit.mid()))
                assert j > i or bounds(factor[i, j])[1] <= 256 * spread, f"{source.label}: {i}, {j}, {factor[i, j]}"
                assert j <= i or factor[i, j] == 0


def test_logarithms_hold_all_points() -> None:
    for seed in range(COUNT):
        source = Source(3000 + seed)
        a = source.definite(source.rng.choice([1, 2, 3, 4, 6]))
        found = solved(lambda: sunzi.log_det(a))
        if found is None:
            continue
        assert isinstance(found, arb)
        flint.ctx.prec = 3 * source.bits + 300
        for _ in range(POINTS):
            assert found.contains(arb(source.point(a).det()).log()), source.label


def test_determinants_hold_all_points() -> None:
    for seed in range(COUNT):
        source = Source(7000 + seed)
        a = source.definite(source.rng.choice([1, 2, 3, 4, 6]))
        try:
            found = sunzi.det(a)
        except sunzi.NotPositiveDefiniteError:
            continue
        assert isinstance(found, arb)
        for _ in range(POINTS):
            assert holds(found, source.point(a).det()), source.label
    # Where singular points are among them too.
    wide = arb_mat([[arb(1, 2), 0.5], [0.5, 1]])
    assert sunzi.det(wide).contains(0) and sunzi.det(wide).contains(arb(2.75))
    exact = sunzi.det(arb_mat([[4, 2], [2, 10]]))
    assert exact == 36 and exact.is_exact()


def test_kept_factors_of_balls() -> None:
    for seed in range(COUNT // 2):
        source = Source(8000 + seed)
        a = source.definite(source.rng.choice([1, 2, 4, 7]))
        b = source.matrix(a.nrows(), 2, source.radii)
        factor = solved(lambda: sunzi.Cholesky(a))
        if factor is None:
            continue
        for kept in (factor, pickle.loads(pickle.dumps(factor))):
            assert isinstance(kept.L, arb_mat) and kept.precision == source.bits and kept.order == a.nrows()
            assert_same(kept.L, sunzi.cholesky(a), source.label)
            assert_same(kept.U, kept.L.transpose(), source.label)
            assert_same(kept.inverse(), sunzi.inverse(a), source.label)
            assert_same(kept.solve(b), sunzi.solve(a, b), source.label)
            pairs = [[kept.det(), kept.log_det()]], [[sunzi.det(a), sunzi.log_det(a)]]
            assert_same(arb_mat(pairs[0]), arb_mat(pairs[1]), source.label)
    factor = sunzi.Cholesky([[arb(4, 0.25), arb(2)], [arb(2), arb(10)]], precision=60)
    rows = factor.inverse()
    assert isinstance(rows, list) and isinstance(rows[0][0], arb)
    solution = factor.solve([8.0, 22.0])
    assert isinstance(solution, list) and solution[0].contains(1) and not solution[0].is_exact()
    assert isinstance(factor.solve(sunzi.Matrix([[8.0], [22.0]])), list)
    for digits in (factor.log_det_digits, lambda: factor.solution_digits([[4]], [1], [1])):
        with pytest.raises(ValueError, match="correct digits are not estimated for balls"):
            digits()
    points = sunzi.Cholesky([[4.0, 2.0], [2.0, 10.0]])
    assert points.det() == 36.0


def test_certified_logarithms_hold_those_of_the_numbers_as_given() -> None:
    for seed in range(COUNT):
        rng = random.Random(9000 + seed)
        order, bits = rng.choice([1, 2, 3, 5, 8]), rng.choice([30, 53, 120, 400])
        shift, kind = rng.randint(1, 3), rng.choice(["fraction", "text", "float"])
        rows = [[Fraction(1, i + j + shift) + (i == j) * Fraction(1, 2 ** rng.randint(1, 200)) for j in range(i + 1)] for i in range(order)]
        rows = [[rows[max(i, j)][min(i, j)] for j in range(order)] for i in range(order)]
        if kind == "float":
            rows = [[Fraction(float(value)) for value in row] for row in rows]
        given = {"fraction": lambda x: x, "text": str, "float": float}[kind]
        a: object = [[given(value) for value in row] for row in rows]
        if kind == "fraction" and rng.random() < 0.5:
            a = sunzi.Matrix(a, precision=300)
        exact = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in rows]).det()
        try:
            found = sunzi.log_det(a, precision=bits, certified=True)
        except ValueError as error:
            assert exact <= 0 or "may contain" in str(error) or isinstance(error, sunzi.NotPositiveDefiniteError)
            continue
        low, high = found
        assert isinstance(low, Fraction) and isinstance(high, Fraction)
        flint.ctx.prec = 2000
        logarithm = arb(exact).log()
        assert arb(fmpq(low.numerator, low.denominator)) < logarithm + arb((1, -1500)), seed
        assert logarithm - arb((1, -1500)) < arb(fmpq(high.numerator, high.denominator)), seed
    low, high = sunzi.log_det(arb_mat([[arb(1, 0.5)]]), certified=True)
    assert low < -0.69 and high > 0.4 and high < 0.8


@pytest.mark.parametrize("bits", [53, 64, 100, 333])
def test_the_exact_result_at_the_same_precision_is_held(bits: int) -> None:
    flint.ctx.prec = bits
    inverse = sunzi.inverse(arb_mat([[3, 1], [1, 4]]))
    assert inverse[0, 0].contains(arb(4) / 11) and inverse[0, 0].contains(fmpq(4, 11))
    assert not inverse[0, 0].contains(arb(5) / 11)


def test_exact_results_have_radius_0() -> None:
    a = arb_mat([[4, 2], [2, 10]])
    assert sunzi.solve(a, arb_mat([[8], [22]])) == arb_mat([[1], [2]])
    assert sunzi.cholesky(a) == arb_mat([[2, 0], [1, 3]])
    assert sunzi.gemm(a, a) == a * a and sunzi.syrk(a)[0, 1].is_exact()
    assert sunzi.inverse(arb_mat([[4]]))[0, 0] == arb(0.25)


def test_other_operands_are_points() -> None:
    third = Fraction(1, 3)
    a = arb_mat([[3, 1], [1, 4]])
    for b in ([[third], [third]], [["1/3"], ["1/3"]], sunzi.Matrix([[third], [third]], precision=200)):
        x = sunzi.solve(a, b)
        assert isinstance(x, arb_mat) and holds(x[0, 0], fmpq(1, 11)) and holds(x[1, 0], fmpq(2, 33))
    half = mpmath.matrix([["0.5"], ["0.25"]])
    assert isinstance(sunzi.gemm(half.T, a), arb_mat) and sunzi.gemm(half.T, a)[0, 0] == arb(1.75)
    array = np.array([[3.0, 1.0], [1.0, 4.0]])
    assert isinstance(sunzi.solve(array, arb_mat([[1], [1]])), arb_mat)
    assert holds(sunzi.solve(array, arb_mat([[1], [1]]))[0, 0], fmpq(3, 11))


def test_containers_of_balls() -> None:
    rows = [[arb(3), arb(1)], [arb(1), arb(4, 0.5)]]
    inverse = sunzi.inverse(rows)
    assert isinstance(inverse, list) and isinstance(inverse[0][0], arb)
    array = sunzi.inverse(np.array(rows, dtype=object))
    assert isinstance(array, np.ndarray) and array.dtype == object
    flat = sunzi.solve(rows, [arb(1), arb(1)])
    assert isinstance(flat, list) and len(flat) == 2
    out = np.empty((2, 2), dtype=object)
    report: dict[str, object] = {}
    assert sunzi.inverse(rows, out=out, report=report) is out and not out[0, 0].is_exact()
    assert report["precision_bits"] == flint.ctx.prec
    with pytest.raises(TypeError, match="a result of balls needs the dtype object"):
        sunzi.inverse(rows, out=np.zeros((2, 2)))


def test_scalars_and_orientations() -> None:
    a, b = arb_mat([[1, arb(2, 0.5)]]), arb_mat([[3, 4]])
    c = arb_mat([[arb(1, 0.25)]])
    found = sunzi.gemm(a, b, transpose_b=True, alpha=Fraction(1, 3), beta=arb(2, 0.125), c=c)
    # (3 + 4 x) / 3 + y z for x in 2 +- 0.5, y in 2 +- 0.125, z in 1 +- 0.25.
    for x, y, z in [(1.5, 1.875, 0.75), (2.5, 2.125, 1.25), (2.0, 2.0, 1.0)]:
        exact = (3 + 4 * Fraction(x)) / 3 + Fraction(y) * Fraction(z)
        assert holds(found[0, 0], fmpq(exact.numerator, exact.denominator))
    assert bounds(found[0, 0])[1] < fmpq(2)
    gram = sunzi.syrk(a, alpha=-2, beta=3, c=arb_mat([[1, 0], [7, 1]]), uplo="lower_only")
    assert gram[0, 0] == 1 and gram[0, 1].contains(17) and gram[1, 0].contains(17)
    outer = sunzi.syrk(a, transpose=True)
    assert outer.nrows() == 1 and outer[0, 0].contains(arb(7.25)) and outer[0, 0].contains(arb(3.25))
    with pytest.raises(ValueError, match="beta= is given, but c= is not"):
        sunzi.gemm(a, b, transpose_b=True, beta=2)
    with pytest.raises(ValueError, match="alpha is infinite"):
        sunzi.gemm(a, b, transpose_b=True, alpha=arb("inf"))


def test_triangles_of_balls() -> None:
    lower = arb_mat([[4, 99], [arb(2, 0.25), 10]])
    factor = sunzi.cholesky(lower, uplo="lower_only")
    assert factor[1, 0].contains(1) and factor[0, 1] == 0 and not factor[1, 0].is_exact()
    upper = sunzi.cholesky(lower.transpose(), uplo="upper_only")
    assert upper[0, 1].overlaps(factor[1, 0]) and upper[1, 0] == 0
    # Midpoints that differ, in balls that overlap.
    near = arb_mat([[4, arb(2, 0.25)], [arb(2.125, 0.25), 10]])
    inverse = sunzi.inverse(near)
    for x in (1.75, 2.25):
        for y in (1.875, 2.375):
            point = fmpq_mat([[fmpq(4), fmpq(int(x * 8), 8)], [fmpq(int(y * 8), 8), fmpq(10)]]).inv()
            assert_holds(inverse, point, f"{x}, {y}")
    with pytest.raises(sunzi.NotSymmetricError):
        sunzi.log_det(arb_mat([[4, 2], [3, 10]]))
    assert_holds(sunzi.inverse(arb_mat([[4, 2], [3, 10]])), fmpq_mat([[4, 2], [3, 10]]).inv(), "not symmetric")


def test_what_is_refused() -> None:
    wide = arb_mat([[arb(1, 0.5), 0.75], [0.75, 1]])
    for call in (sunzi.inverse, sunzi.cholesky, sunzi.log_det, lambda a: sunzi.solve(a, arb_mat([[1], [1]]))):
        with pytest.raises(ValueError, match="the 2 x 2 balls may contain a"):
            call(wide)
    for call in (sunzi.cholesky, sunzi.log_det):
        with pytest.raises(sunzi.NotPositiveDefiniteError):
            call(arb_mat([[1, 2], [2, 1]]))
    with pytest.raises(ValueError, match="factor_precision=100 is not accepted for balls"):
        sunzi.solve(arb_mat([[1]]), arb_mat([[1]]), factor_precision=100)
    with pytest.raises(ValueError, match=r"is the ball .*: pass its midpoint, x.mid\(\)"):
        sunzi.gemm(arb_mat([[arb(1, 0.5)]]), arb_mat([[1]]), exact=True)
    with pytest.raises(ValueError, match=r"is the ball .*: pass its midpoint, x.mid\(\)"):
        sunzi.trmm(arb_mat([[arb(1, 0.5)]]), arb_mat([[1]]))
    with pytest.raises(ValueError, match="the 1 x 1 balls may contain a singular matrix"):
        sunzi.trsm(arb_mat([[arb(1, 1)]]), arb_mat([[1]]))
    assert sunzi.gemm(arb_mat([[3]]), arb_mat([[4]]), exact=True)[0, 0] == 12
