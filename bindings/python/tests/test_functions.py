"""The functions against exact arithmetic, and against each other bit for bit."""

import itertools
from fractions import Fraction

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import BITS, exact, exact_rows, positive_definite, random_rows, round_to, to_mpfr

import sunzi


def transposed(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(col) for col in zip(*rows)]


def product(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[sum((x * y for x, y in zip(row, col, strict=True)), Fraction(0)) for col in zip(*b)] for row in a]


def integers(rows: int, cols: int, seed: int) -> list[list[int]]:
    return [[int(x * 2**90) for x in row] for row in random_rows(rows, cols, 70, seed)]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("uplo", ["both", "lower", "upper"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (40, 17)])
def test_exact_syrk(shape: tuple[int, int], uplo: str, transpose: bool) -> None:
    p = integers(*shape, seed=7)
    want = product(p, transposed(p)) if transpose else product(transposed(p), p)
    assert sunzi.syrk(p, transpose=transpose, uplo=uplo, exact=True) == want


@pytest.mark.parametrize("transpose_a, transpose_b", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 6, 3), (23, 9, 31)])
def test_exact_gemm(shape: tuple[int, int, int], transpose_a: bool, transpose_b: bool) -> None:
    m, n, k = shape
    a, b = integers(m, k, seed=8), integers(k, n, seed=9)
    given = (transposed(a) if transpose_a else a, transposed(b) if transpose_b else b)
    result = sunzi.gemm(*given, transpose_a=transpose_a, transpose_b=transpose_b, exact=True)
    assert result == product(a, b)


@pytest.mark.parametrize("bits", [53, 200, 1000])
def test_gemm_is_close_to_exact(bits: int) -> None:
    a, b = random_rows(6, 8, bits, seed=10), random_rows(8, 5, bits, seed=11)
    result = sunzi.gemm(a, b, precision=bits)
    want = product(a, b)
    for i, j in itertools.product(range(6), range(5)):
        size = sum(x * x for x in a[i]) * sum(row[j] ** 2 for row in b)
        assert (exact(result[i][j]) - want[i][j]) ** 2 <= Fraction(4) ** (1 - bits) * size
        assert round_to(exact(result[i][j]), bits) == exact(result[i][j])


def test_alpha_beta_and_c() -> None:
    a, b, c = integers(3, 4, 1), integers(4, 2, 2), integers(3, 2, 3)
    want = [[5 * x - 7 * y for x, y in zip(*rows, strict=True)] for rows in zip(product(a, b), c, strict=True)]
    assert sunzi.gemm(a, b, alpha=5, beta=-7, c=c, exact=True) == want
    assert sunzi.gemm(a, b, alpha=gmpy2.mpfr(5), beta="-7", c=c, precision=400) == want
    p = integers(3, 4, 4)
    q = [[Fraction(1)] * 4 for _ in range(4)]
    want = [[2 * x + 3 for x in row] for row in product(transposed(p), p)]
    assert sunzi.syrk(p, alpha=2, beta=3, c=q, exact=True) == want
    # The triangle that is not read may hold anything, where the other one is named.
    ragged = [[1, "x", "x", None], [1, 1, "x", None], [1, 1, 1, None], [1, 1, 1, 1]]
    assert sunzi.syrk(p, alpha=2, beta=3, c=ragged, uplo="lower", exact=True) == want
    with pytest.raises(ValueError, match="row 0, column 1"):
        sunzi.syrk(p, alpha=2, beta=3, c=ragged, exact=True)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("uplo", ["lower", "upper"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_trsm(side: str, uplo: str, transpose: bool, unit: bool) -> None:
    n, m = 7, 3
    t = [[x + (40 if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate(random_rows(n, n, 30, 12))]
    b = random_rows(n, m, 30, 13) if side == "left" else random_rows(m, n, 30, 13)
    x = sunzi.trsm(t, b, side=side, uplo=uplo, transpose=transpose, unit=unit, alpha=3, precision=300)
    kept = lambda i, j: i > j if uplo == "lower" else i < j
    diagonal = lambda i: Fraction(1) if unit else t[i][i]
    triangle = [[t[i][j] if kept(i, j) else diagonal(i) if i == j else Fraction(0) for j in range(n)] for i in range(n)]
    triangle = transposed(triangle) if transpose else triangle
    back = product(triangle, exact_rows(x)) if side == "left" else product(exact_rows(x), triangle)
    largest = max(abs(value) for row in exact_rows(x) for value in row)
    for got, want in zip(itertools.chain(*back), itertools.chain(*b), strict=True):
        assert abs(got - 3 * want) <= largest * Fraction(2) ** (-300 + 30)


@pytest.mark.parametrize("order", [0, 1, 2, 30])
def test_cholesky_of_either_triangle(order: int) -> None:
    a = positive_definite(order, seed=14)
    lower = [[x if j <= i else "not read" for j, x in enumerate(row)] for i, row in enumerate(a)]
    upper = [[x if j >= i else None for j, x in enumerate(row)] for i, row in enumerate(a)]
    whole = sunzi.cholesky(a, precision=BITS)
    assert whole == sunzi.cholesky(lower, uplo="lower", precision=BITS)
    assert whole == [list(col) for col in zip(*sunzi.cholesky(upper, uplo="upper", precision=BITS))]
    squares = product(whole, transposed(whole))
    for i, j in itertools.product(range(order), repeat=2):
        assert (squares[i][j] - a[i][j]) ** 2 <= Fraction(4) ** (2 - BITS) * a[i][i] * a[j][j]
        assert j <= i or whole[i][j] == 0


def test_symmetric_operands_are_checked_or_named() -> None:
    a, b = [[4, 1], [2, 5]], [1, 1]
    calls = [
        lambda **named: sunzi.cholesky(a, precision=BITS, **named),
        lambda **named: sunzi.solve(a, b, precision=BITS, **({"uplo": "both"} | named)),
        lambda **named: sunzi.solve(a, b, precision=BITS, factor_precision=60, **named),
        lambda **named: sunzi.log_det(a, precision=BITS, **named),
        lambda **named: sunzi.Cholesky(a, precision=BITS, **named).L,
        lambda **named: sunzi.Matrix(a, precision=BITS).cholesky(**named),
        lambda **named: sunzi.syrk([b], c=a, exact=True, **named),
    ]
    for call in calls:
        for named in ({}, {"uplo": "both"}):
            with pytest.raises(sunzi.NotSymmetricError, match="row 1, column 0 and at row 0, column 1 differ") as caught:
                call(**named)
            assert caught.value.place == (1, 0) and isinstance(caught.value, ValueError)
        for word in ("lower", "upper"):
            with pytest.raises(sunzi.NotSymmetricError, match=f"uplo='{word}_only' ignores the other") as caught:
                call(uplo=word)
            assert caught.value.place == ((1, 0) if word == "lower" else (0, 1))
        assert call(uplo="lower_only") != call(uplo="upper_only")
    assert sunzi.syrk([b], c=a, uplo="lower_only", exact=True) == [[5, 3], [3, 6]]


KINDS = {"float": float, "mpf": mpmath.mpf, "mpfr": gmpy2.mpfr, "fraction": Fraction, "str": str, "int": int}


@pytest.mark.parametrize("kind", KINDS)
def test_a_general_matrix_is_never_taken_for_a_symmetric_one(kind: str) -> None:
    for entries, empty in (((4, 1, 0, 3), "lower"), ((4, 0, 1, 3), "upper")):
        a = [[KINDS[kind](x) for x in entries[:2]], [KINDS[kind](x) for x in entries[2:]]]
        for given in (a, np.array(a, dtype=float if kind == "float" else object), sunzi.Matrix(a, precision=BITS)):
            for call in (sunzi.cholesky, sunzi.log_det, sunzi.inverse, sunzi.ldlt, sunzi.Cholesky, sunzi.Ldlt):
                with pytest.raises(sunzi.NotSymmetricError, match=f"uplo='{empty}' names a triangle that is zero"):
                    call(given, uplo=empty, precision=BITS)
            with pytest.raises(sunzi.NotSymmetricError, match="problem 0 of 1: .*row [01], column [01] is [01]"):
                sunzi.cholesky_batch([given], uplo=empty, precision=BITS)
            other = "upper" if empty == "lower" else "lower"
            for word, det in ((other, 11), (f"{empty}_only", 12)):
                assert float(sunzi.det(given, uplo=word, precision=BITS)) == pytest.approx(det)


def test_the_rounding_of_the_input_is_let_pass_where_a_triangle_is_named() -> None:
    off = 1 + 2.0**-51
    for a in ([[4.0, off], [1.0, 1.0]], np.array([[4.0, off], [1.0, 1.0]])):
        assert sunzi.cholesky(a, uplo="lower")[1][0] == 0.5  # 2^-51 is within 2^(2 - 53) sqrt(4)
        with pytest.raises(sunzi.NotSymmetricError, match="row 1, column 0 and at row 0, column 1 differ"):
            sunzi.cholesky(a)
    with pytest.raises(sunzi.NotSymmetricError, match="lower_only"):
        sunzi.cholesky(sunzi.Matrix([[4.0, off], [1.0, 1.0]], precision=200), uplo="lower")
    with pytest.raises(sunzi.NotSymmetricError, match="lower_only"):
        sunzi.cholesky([[4.0, 1 + 2.0**-49], [1.0, 1.0]], uplo="lower")


def test_results_of_syrk_are_full() -> None:
    p = sunzi.Matrix(random_rows(9, 5, 60, seed=3), precision=BITS)
    for uplo in (None, "both", "lower", "upper"):
        q = sunzi.syrk(p, uplo=uplo)
        assert q == p.T @ p == q.T and q @ p.T == (p.T @ p) @ p.T
        assert sunzi.cholesky(q[:3, :3]) == sunzi.cholesky(q)[:3, :3]


def test_solve_refined() -> None:
    a, b = positive_definite(25, seed=15), random_rows(25, 2, 40, seed=16)
    report: dict[str, object] = {}
    x = sunzi.solve(a, b, precision=1000, factor_precision=100, report=report)
    assert report["iterations"] >= 8 and report["backward_error_log2"] <= 1 - 1000
    upper = [[x if j >= i else 0 for j, x in enumerate(row)] for i, row in enumerate(a)]
    assert sunzi.solve(upper, b, uplo="upper", precision=1000, factor_precision=100) == x
    plain = sunzi.solve(a, b, precision=1000)
    assert max(abs(u - v) for u, v in zip(itertools.chain(*x), itertools.chain(*plain))) < Fraction(1, 2**960)


def test_log_det() -> None:
    a = positive_definite(12, seed=17)
    determinant = flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in a]).det()
    with mpmath.workprec(2 * BITS):
        want = mpmath.log(mpmath.mpf(int(determinant.p)) / int(determinant.q))
    rows = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in a]
    value = sunzi.log_det(rows)
    assert isinstance(value, mpmath.mpf)
    assert abs(exact(value) - exact(want)) <= abs(exact(want)) * Fraction(2) ** (10 - BITS)
    assert sunzi.Matrix(rows).log_det() == value == sunzi.Cholesky(rows).log_det()


def test_cholesky_object() -> None:
    a, b = positive_definite(8, seed=18), random_rows(8, 3, 50, seed=19)
    factor = sunzi.Cholesky(a, precision=BITS)
    assert (factor.order, factor.precision, repr(factor)) == (8, BITS, f"Cholesky(8 x 8, {BITS} bits)")
    assert factor.L.to_list() == sunzi.cholesky(a, precision=BITS)
    assert factor.solve(b) == sunzi.solve(a, b, precision=BITS)
    inverse = factor.inverse()
    unit = product(a, inverse.to_list())
    for i, j in itertools.product(range(8), repeat=2):
        assert abs(unit[i][j] - (i == j)) < Fraction(2) ** (16 - BITS)
    assert inverse == inverse.T


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kernel", sunzi.kernels())
def test_the_same_bits_on_every_path(threads: int, kernel: str) -> None:
    p = random_rows(60, 24, 200, seed=20)
    context = sunzi.Context(threads=threads, kernel=kernel, self_check=True, freivalds=True)
    matrix = sunzi.Matrix(p, precision=BITS)
    gram = sunzi.syrk(matrix, context=context)
    assert gram == sunzi.syrk(matrix)
    assert gram.cholesky(context=context) == gram.cholesky()
    tight = sunzi.plan("syrk", 60, 24, precision=BITS, context=context)["planned_bytes"]
    limited = sunzi.Context(threads=threads, kernel=kernel, self_check=True, freivalds=True, memory=tight)
    assert sunzi.syrk(matrix, context=limited) == gram


def test_devices_give_the_same_bits() -> None:
    p = sunzi.Matrix(random_rows(70, 40, 200, seed=21), precision=BITS)
    context = sunzi.Context(threads=1, device="soft:100000000")
    assert context.devices == ["soft:100000000"]
    report: dict[str, object] = {}
    assert sunzi.syrk(p, context=context, report=report) == sunzi.syrk(p)
    gram = p.T @ p
    assert gram.cholesky(context=context) == gram.cholesky()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_shapes(shape: tuple[int, int]) -> None:
    rows, cols = shape
    empty = np.empty(shape, dtype=object)
    q = sunzi.syrk(empty, precision=100)
    assert q.shape == (cols, cols) and all(value == 0 for value in q.flat)
    other = sunzi.gemm(empty, empty.T, precision=100)
    assert other.shape == (rows, rows) and all(value == 0 for value in other.flat)
    matrix = sunzi.Matrix(empty, precision=100)
    assert matrix.shape == shape and matrix.T.shape == (cols, rows)
    assert (matrix.to_mpmath().rows, matrix.to_mpmath().cols) == shape
    assert (matrix.to_flint().nrows(), matrix.to_flint().ncols()) == shape
    assert sunzi.Matrix.from_bytes(matrix.to_bytes()).shape == shape
    if rows == cols:
        assert sunzi.cholesky(empty, precision=100).shape == (0, 0)
        assert sunzi.log_det(empty, precision=100) == 0


@pytest.mark.parametrize("dtype", [object, np.float64])
def test_out(dtype: type) -> None:
    a = np.array([[4.0, 2.0], [2.0, 10.0]])
    out = np.full((2, 2), 99, dtype=dtype)
    assert sunzi.cholesky(a, out=out) is out
    assert out.tolist() == [[2, 0], [1, 3]]
    flat = np.zeros(2, dtype=dtype)
    assert sunzi.solve(a, [8.0, 22.0], out=flat) is flat and flat.tolist() == [1, 2]
    view = np.zeros((4, 4), dtype=dtype)[::2, 1::2]
    assert sunzi.syrk(a, out=view) is view and view.tolist() == [[20, 28], [28, 104]]


def test_report_and_plan() -> None:
    # A kernel that is named has tiles at every size: the plan of digits in lanes knows the bits of a call less exactly.
    context = sunzi.Context(threads=1, kernel="f64")
    p = sunzi.Matrix(random_rows(100, 50, 200, seed=22), precision=BITS)
    report: dict[str, object] = {}
    sunzi.syrk(p, context=context, report=report)
    plan = sunzi.plan("syrk", 100, 50, precision=BITS, range_bits=report["range_bits"], context=context)  # type: ignore[arg-type]
    assert report["operation"] == plan["operation"] == "syrk"
    assert report["planned_bytes"] == plan["planned_bytes"] > 50 * 50 * 8 * 5
    assert report["kernel"] == plan["kernel"] and report["precision_bits"] == BITS
    assert all(report[part] >= 0 for part in ("input_seconds", "compute_seconds", "output_seconds"))
    sunzi.cholesky(p.T @ p, context=context, report=report)
    plan = sunzi.plan("cholesky", 50, precision=BITS, range_bits=report["range_bits"], context=context)  # type: ignore[arg-type]
    assert report["planned_bytes"] == plan["planned_bytes"]
    solved: dict[str, object] = {}
    sunzi.solve(p.T @ p, p[:50], context=context, report=solved)
    assert solved["operation"] == "solve" and solved["planned_bytes"] >= report["planned_bytes"]
    assert solved["factorisation"]["planned_bytes"] == report["planned_bytes"]  # type: ignore[index]
    sunzi.trsm(sunzi.cholesky(p.T @ p), p[:50], context=context, report=solved)
    assert solved["operation"] == "trsm" and solved["planned_bytes"] > 0
    assert sunzi.plan("gemm", 10, 20, 30, precision=BITS)["contracted"] == 30


def test_a_view_of_the_same_matrix_is_a_syrk() -> None:
    p = sunzi.Matrix(random_rows(30, 12, 200, seed=23), precision=BITS)
    for a, b in [(p.T, p), (p, p.T), (p[2:9].T, p[2:9]), (p.T[1:4], p.T[1:4].T)]:
        report: dict[str, object] = {}
        result = sunzi.gemm(a, b, report=report)
        assert report["operation"] == "syrk"
        assert result == sunzi.gemm(a.copy(), b.copy()) == a @ b
    report = {}
    sunzi.gemm(p.T, p.copy(), report=report)
    assert report["operation"] == "gemm"
    sunzi.gemm(p[1:].T, p[:-1], report=report)
    assert report["operation"] == "gemm"


def test_large_against_flint() -> None:
    """A size at which every path runs on residues."""
    n = 90
    rows = [[to_mpfr(Fraction(1, i + j + 1) + (i == j), 400) for j in range(n)] for i in range(n)]
    right_side = [gmpy2.mpfr(i - 40, 400) for i in range(n)]
    x = sunzi.solve(rows, right_side, precision=300)
    flint.ctx.prec = 900
    ball = lambda value: flint.arb(flint.fmpz(int(value.numerator))) / flint.fmpz(int(value.denominator))
    system = flint.arb_mat([[ball(exact(value)) for value in row] for row in rows])
    balls = system.solve(flint.arb_mat([[ball(exact(value))] for value in right_side]))
    for value, want in zip(x, balls.entries(), strict=True):
        assert abs(ball(exact(value)) - want) < flint.arb(2) ** (16 - 300)
