"""LDL^T, inverses, determinants, conditions, norms, traces, checks: beside exact fractions."""

import pickle
from fractions import Fraction
from typing import Any

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import KINDS, exact, exact_rows, positive_definite, random_rows

import sunzi

BITS = 160
TINY = Fraction(1, 2 ** (BITS - 20))


def determinant(rows: list[list[Fraction]]) -> Fraction:
    """By Gaussian elimination in fractions, for matrices whose leading minors are not 0."""
    rows, product = [list(row) for row in rows], Fraction(1)
    for at, row in enumerate(rows):
        product *= row[at]
        for other in rows[at + 1 :]:
            factor = other[at] / row[at]
            other[at:] = [x - factor * y for x, y in zip(other[at:], row[at:])]
    return product


def times(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]


def indefinite(order: int) -> list[list[Fraction]]:
    """Quasi-definite: positive definite, but with the second half of the rows turned."""
    half, rows = order // 2, positive_definite(order, 8)
    return [[-x if i >= half and j >= half else x for j, x in enumerate(row)] for i, row in enumerate(rows)]


def test_ldlt(kind: str) -> None:
    rows = indefinite(6)
    a = [[KINDS[kind](x) for x in row] for row in rows]
    lower, pivots = sunzi.ldlt(a, precision=BITS)
    assert type(lower[1][0]) is type(pivots[0]) is type(sunzi.cholesky([[a[0][0]]], precision=BITS)[0][0])
    l, d = exact_rows(lower), [row[0] for row in exact_rows(pivots)]
    assert all(l[i][i] == 1 and not any(l[i][i + 1 :]) for i in range(6))
    product = times([[x * y for x, y in zip(row, d)] for row in l], [list(col) for col in zip(*l)])
    assert max(abs(x - y) for p, q in zip(product, rows) for x, y in zip(p, q)) < 100 * TINY
    assert [x > 0 for x in d] == [True] * 3 + [False] * 3


def test_factors_of_indefinite_matrices() -> None:
    rows = indefinite(8)
    factors = sunzi.Ldlt(rows, precision=BITS)
    assert (factors.order, factors.precision, factors.inertia) == (8, BITS, (4, 4))
    assert (factors.L.to_list(), list(factors.d)) == sunzi.ldlt(rows, precision=BITS)
    truth = [Fraction(k, 3) for k in range(8)]
    right = [sum(x * y for x, y in zip(row, truth)) for row in rows]
    found = factors.solve(right)
    assert max(abs(x - y) for x, y in zip(found, truth)) < TINY
    assert abs(factors.det() / determinant(rows) - 1) < TINY
    assert 1 <= factors.growth < 2**8 and repr(factors) == "Ldlt(8 x 8, 160 bits)"
    other = pickle.loads(pickle.dumps(factors))
    assert other.solve(right) == found and (other.growth, other.inertia) == (factors.growth, (4, 4))
    with pytest.raises(sunzi.SingularError, match="index 0|the first") as caught:
        sunzi.ldlt([[0.0, 1.0], [1.0, 0.0]])
    assert caught.value.index == 0
    with pytest.raises(sunzi.NotSymmetricError):
        sunzi.Ldlt([[1.0, 2.0], [3.0, 4.0]])


def test_inverse(kind: str) -> None:
    rows = positive_definite(5, 9)
    report = sunzi.Report()
    inverse = sunzi.inverse([[KINDS[kind](x) for x in row] for row in rows], precision=BITS, report=report)
    found = exact_rows(inverse)
    assert found == [list(col) for col in zip(*found)]
    unit = times(rows, found)
    assert max(abs(x - (i == j)) for i, row in enumerate(unit) for j, x in enumerate(row)) < TINY
    assert report.operation == "inverse" and 40 < report.digits < 50


def test_inverse_in_arrays() -> None:
    a = np.array([[4.0, 9.0], [2.0, 2.0]])
    out = np.empty((2, 2))
    assert sunzi.inverse(a, uplo="lower_only", out=out) is out and out.tolist() == [[0.5, -0.5], [-0.5, 1.0]]
    assert isinstance(sunzi.inverse(sunzi.Matrix([[4, 2], [2, 2]], precision=60)), sunzi.Matrix)
    with pytest.raises(sunzi.NotPositiveDefiniteError):
        sunzi.inverse([[1.0, 2.0], [2.0, 1.0]], uplo="both")


def test_determinants(kind: str) -> None:
    rows = positive_definite(7, 10)
    value = sunzi.det([[KINDS[kind](x) for x in row] for row in rows], precision=BITS)
    assert abs(exact(value) / determinant(rows) - 1) < TINY
    logarithm = mpmath.log(mpmath.mpf(exact(value).numerator) / exact(value).denominator)
    assert abs(logarithm - sunzi.log_det([[KINDS["mpf"](x) for x in row] for row in rows], precision=BITS)) < 1e-40


def test_determinants_at_the_edges() -> None:
    huge = sunzi.Matrix([["1e200000000", 0], [0, "1e200000000"]], precision=60, numbers="gmpy2")
    with pytest.raises(ValueError, match="exponent 13287712"):
        sunzi.det(huge)
    assert sunzi.log_det(huge) > 9e8
    assert sunzi.det(sunzi.Matrix.zeros(0, 0, precision=60)) == 1
    assert sunzi.det([[9.0, 7.0], [3.0, 5.0]], uplo="lower_only") == 36.0


@pytest.mark.parametrize("scaled", [False, True])
def test_conditions(scaled: bool) -> None:
    rows = [[Fraction(1, i + j + 1) for j in range(6)] for i in range(6)]
    if scaled:
        rows = [[x * 2 ** (20 * i + 20 * j) for j, x in enumerate(row)] for i, row in enumerate(rows)]
    found = sunzi.condition(rows, scaled=scaled, precision=200)
    inverse = exact_rows(sunzi.inverse(rows, precision=300))
    sizes = lambda matrix: max(sum(map(abs, col)) for col in zip(*matrix))
    if scaled:
        assert 2**10 < found < 2**24 < sunzi.condition(rows, precision=200)
    else:
        truth = sizes(rows) * sizes(inverse)
        assert truth / 3 < found <= truth * (1 + Fraction(1, 2**50))
    factor = sunzi.Cholesky(rows, precision=200)
    assert not scaled or found == factor.scaled_condition()


ORDERS: list[Any] = ["fro", 1, np.inf, "inf", float("inf"), "max"]


@pytest.mark.parametrize("ord", ORDERS)
def test_norms(ord: Any, kind: str) -> None:
    rows = random_rows(5, 7, 90, seed=11)
    found = exact(sunzi.norm([[KINDS[kind](x) for x in row] for row in rows], ord, precision=BITS))
    sizes = [[abs(x) for x in row] for row in rows]
    squares = sum(x * x for row in rows for x in row)
    with gmpy2.context(precision=400):
        root = exact(gmpy2.sqrt(gmpy2.mpq(squares.numerator, squares.denominator)))
    sums = {"fro": root, "1": max(map(sum, zip(*sizes))), "inf": max(map(sum, sizes)), "max": max(map(max, sizes))}
    truth = sums[str(ord)]
    assert abs(found / truth - 1) < Fraction(1, 2 ** (BITS - 2))


def test_norms_at_the_edges() -> None:
    huge = sunzi.Matrix([["3e200000000", "4e200000000"]], precision=60, numbers="gmpy2")
    assert abs(sunzi.norm(huge) / huge[0, 1] - gmpy2.mpfr("1.25")) < 1e-15
    assert sunzi.norm(np.array([3.0, 4.0])) == 5.0 and sunzi.norm(sunzi.Matrix([[3, 0], [0, 4]], precision=60).T) == 5
    assert sunzi.norm(sunzi.Matrix.zeros(0, 3, precision=60)) == 0
    for ord in (2, "nuc", "two", -1):
        with pytest.raises(ValueError, match="is not valid; use 'fro' .*spectral norm"):
            sunzi.norm([[1.0]], ord)  # type: ignore[arg-type]


def test_traces_and_diagonals(kind: str) -> None:
    rows = random_rows(4, 6, 80, seed=12)
    a = [[KINDS[kind](x) for x in row] for row in rows]
    near = lambda found, want: abs(found - want) <= abs(want) / 2**BITS
    assert near(exact(sunzi.trace(a, precision=BITS)), sum(rows[i][i] for i in range(4)))
    assert all(near(exact(x), rows[i][i]) for i, x in enumerate(sunzi.diagonal(a, precision=BITS)))
    assert sunzi.diagonal(np.arange(6.0).reshape(2, 3)).tolist() == [0.0, 4.0]
    assert sunzi.diagonal(sunzi.Matrix(rows, precision=BITS)).shape == (4, 1)
    assert sunzi.diagonal(flint.arb_mat([[1, 2], [3, 4]])).ncols() == 1


def test_verify() -> None:
    p = sunzi.Matrix(random_rows(20, 6, 100, seed=13), precision=BITS)
    q, b = p.T @ p, sunzi.Matrix(random_rows(6, 3, 100, seed=14), precision=BITS)
    a = q + sunzi.Matrix.identity(6, precision=BITS)
    passing: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("syrk", p, q), {}),
        (("syrk", p.T, q), {"transpose_a": True}),
        (("gemm", p, b, p @ b), {"seed": 5}),
        (("gemm", p.T, b.T, p @ b), {"transpose_a": True, "transpose_b": True}),
        (("cholesky", a, a.cholesky()), {}),
        (("cholesky", a, a.cholesky().T), {"uplo": "upper"}),
        (("solve", a, b, sunzi.solve(a, b)), {}),
        (("solve", a, b, sunzi.solve(a, b)), {"uplo": "upper"}),
        (("inverse", a, sunzi.inverse(a)), {}),
        (("trsm", a, b, sunzi.trsm(a, b)), {}),
        (
            ("trsm", a, b.T, sunzi.trsm(a, b.T, side="right", uplo="upper", transpose=True, unit=True, alpha=3)),
            {"side": "right", "uplo": "upper", "transpose_a": True, "unit": True, "alpha": 3},
        ),
    ]
    for matrices, options in passing:
        found = sunzi.verify(*matrices, **options)
        assert isinstance(found, sunzi.Verification) and 0 <= found.worst_entry <= 1 and "seed" in found
        *others, result = matrices
        wrong = result.copy()
        wrong[0, 0] = wrong[0, 0] * (1 + Fraction(1, 2**80))
        with pytest.raises(sunzi.CheckError, match="verification failed"):
            sunzi.verify(*others, wrong, **options)
    assert sunzi.verify("gemm", [[2]], [[3]], [[6]], exact=True).prime
    with pytest.raises(sunzi.CheckError):
        sunzi.verify("gemm", [[2]], [[3]], [[7]], exact=True)
    lower = q.copy()
    lower[0, 5] = 0
    assert sunzi.verify("syrk", p, lower, uplo="lower_only").entry_count
    with pytest.raises(ValueError, match=r"no check of 'trace' with 1 matrices; use \('syrk', p, q\)"):
        sunzi.verify("trace", p)
    with pytest.raises(ValueError, match="2 x 2"):
        sunzi.verify("cholesky", [[1.0, 0.0], [0.0, 1.0]], [[1.0]])
    with pytest.raises(sunzi.CheckError):
        sunzi.verify("trsm", a, b, sunzi.trsm(a, b), uplo="upper")


def test_reports_and_plans_have_attributes() -> None:
    report = sunzi.Report()
    with pytest.raises(AttributeError, match="no 'kernel' in this Report, which has nothing yet"):
        report.kernel
    a = sunzi.Matrix(positive_definite(40, 15), precision=BITS)
    sunzi.solve(a, a, report=report)
    assert report.operation == "solve" and report.factorisation.operation == "cholesky"
    assert report.factorisation.tasks["update"] >= 0 and report["order"] == report.order == 40
    with pytest.raises(AttributeError, match="no 'phases' in this Report, which has operation, order"):
        report.phases
    for name, sizes in {"syrk": (9, 8), "gemm": (7, 8, 9), "cholesky": (9,), "trsm": (9, 2), "solve": (9, 2)}.items():
        plan = sunzi.plan(name, *sizes, precision=BITS)  # type: ignore[arg-type]
        assert isinstance(plan, sunzi.Plan) and plan.operation == name and plan.planned_bytes > 0
    factor_bytes = sunzi.plan("cholesky", 300, precision=BITS).factor_bytes
    assert sunzi.plan("inverse", 300, precision=BITS).planned_bytes > factor_bytes


def test_plans_of_refined_solves() -> None:
    whole, refined = (sunzi.plan("solve", 300, 2, precision=1000, factor_precision=bits) for bits in (None, 200))
    assert refined.operation == "solve_refined" and refined.factorisation_bytes < whole.factorisation_bytes
    a = sunzi.Matrix(positive_definite(50, 17), precision=1000)
    b, context = a[:, :2], sunzi.Context(threads=2)
    least = sunzi.plan("solve", 50, 2, precision=1000, factor_precision=200, context=context).least_bytes
    limited = sunzi.Context(threads=2, memory=least)
    assert sunzi.solve(a, b, factor_precision=200, context=limited) == sunzi.solve(a, b, factor_precision=200)
    with pytest.raises(ValueError, match="no plan of 'lu' with 1 sizes"):
        sunzi.plan("lu", 5, precision=60)  # type: ignore[arg-type]


def test_the_least_limit_of_a_plan() -> None:
    a = sunzi.Matrix(positive_definite(60, 16), precision=BITS)
    least = sunzi.plan("inverse", 60, precision=BITS, accuracy="norm", context=sunzi.Context(threads=2)).least_bytes
    within = lambda limit: sunzi.inverse(a, accuracy="norm", context=sunzi.Context(threads=2, memory=limit))
    assert within(least) == sunzi.inverse(a, accuracy="norm")
    with pytest.raises(sunzi.MemoryLimitError):
        within(least - 1)
