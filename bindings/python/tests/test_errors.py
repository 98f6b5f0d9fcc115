"""Bad input: an exception of the right class, with the numbers in its text, and never anything worse."""

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from conftest import positive_definite, random_rows

import sunzi

GOOD = [[4.0, 2.0], [2.0, 10.0]]

CALLS: dict[str, Callable[[object], object]] = {
    "syrk": sunzi.syrk,
    "gemm": lambda a: sunzi.gemm(a, a),
    "gemm_b": lambda a: sunzi.gemm(GOOD, a),
    "trsm": lambda a: sunzi.trsm(GOOD, a),
    "cholesky": sunzi.cholesky,
    "solve": lambda a: sunzi.solve(a, [1.0, 2.0]),
    "solve_b": lambda a: sunzi.solve(GOOD, a),
    "log_det": sunzi.log_det,
    "Matrix": sunzi.Matrix,
    "Cholesky": sunzi.Cholesky,
    "matmul": lambda a: sunzi.Matrix(GOOD) @ a,
    "add": lambda a: sunzi.Matrix(GOOD) + a,
}


@pytest.fixture(params=list(CALLS))
def call(request: pytest.FixtureRequest) -> Callable[[object], object]:
    return CALLS[request.param]


@pytest.mark.parametrize(
    "nan, kind",
    [
        (float("nan"), "NaN"),
        (float("-inf"), "infinite"),
        (gmpy2.mpfr("nan"), "NaN"),
        (gmpy2.mpfr("inf"), "infinite"),
        (mpmath.nan, "NaN"),
        (-mpmath.inf, "infinite"),
        (flint.arb("nan"), "NaN"),
        (flint.arb("inf"), "infinite"),
        ("nan", "NaN"),
        ("-Infinity", "infinite"),
    ],
)
def test_entries_that_are_not_finite(nan: object, kind: str) -> None:
    with pytest.raises(ValueError, match=f"row 1, column 0 is {kind}"):
        sunzi.Matrix([[1.0, 2.0], [nan, 10.0]], precision=60)


def test_nan_in_every_function(call: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match="row 1, column 0 is NaN"):
        call([[4.0, 2.0], [float("nan"), 10.0]])
    with pytest.raises(ValueError, match="row 1, column 0 is NaN"):
        call(np.array([[4.0, 2.0], [np.nan, 10.0]]))


def test_ragged_lists(call: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match="ragged: row 1 has 3 entries, but row 0 has 2"):
        call([[4.0, 2.0], [2.0, 10.0, 1.0]])
    with pytest.raises(ValueError, match="row 0 is a number, but row 1 is a list"):
        call([4.0, [1.0]])
    with pytest.raises(TypeError, match="row 1 is of type float, but row 0 is a list"):
        call([[4.0], 1.0])


@pytest.mark.parametrize(
    "entry, name",
    [
        (None, "NoneType"),
        (1j, "complex"),
        (gmpy2.mpc(1), "mpc"),
        (mpmath.mpc(1), "mpc"),
        (b"1", "bytes"),
        ([], "list"),
        (object(), "object"),
        (flint.acb(1), "acb"),
        (np.complex64(1), "complex64"),
    ],
)
def test_entries_of_a_wrong_type(call: Callable[[object], object], entry: object, name: str) -> None:
    with pytest.raises(TypeError, match=rf"row 1, column 0 is of type .*{name}: use mpmath.mpf"):
        call([[4.0, 2.0], [entry, 10.0]])


@pytest.mark.parametrize("operand", [None, 3, 2.5, "12", b"12", {1: 2}, object(), mpmath.mpf(1), {1.0}])
def test_operands_of_a_wrong_type(call: Callable[[object], object], operand: object) -> None:
    if call is CALLS["add"] and isinstance(operand, (int, float, str, mpmath.mpf)):
        return  # a number is added to each entry
    with pytest.raises(TypeError, match="is of type .*: use a list of rows"):
        call(operand)


def test_arrays_of_a_wrong_kind(call: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match="has 3 dimensions"):
        call(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="has 0 dimensions"):
        call(np.zeros(()))
    for dtype in ("c16", "?", "S3", "M8[s]"):
        with pytest.raises(TypeError, match="has the dtype"):
            call(np.zeros((2, 2), dtype=dtype))


@pytest.mark.parametrize("text", ["", "abc", "1/0", "0x", "1e", "1.2.3", "--1", "1e5e5", "١"])
def test_strings_that_are_no_decimals(text: str) -> None:
    with pytest.raises(ValueError, match="row 0, column 1 is the string .*: use a decimal number"):
        sunzi.Matrix([["1", text]], precision=60)


def test_balls_that_are_not_exact() -> None:
    with pytest.raises(ValueError, match=r"row 0, column 0 is the ball .*: pass its midpoint, x.mid\(\)"):
        sunzi.Matrix([[flint.arb(1, 0.25)]])
    assert sunzi.Matrix([[flint.arb(1, 0.25).mid()]]).to_list("float") == [[1.0]]


def huge(power: int) -> list[object]:
    mpf = mpmath.mp.make_mpf((0, mpmath.libmp.MPZ(1), power, 1))
    return [f"1e{power // 3}", mpf, flint.arb((1, power))]


@pytest.mark.parametrize("power", [2**40, -(2**40), 2**80, -(2**80), 3 * 10**9])
def test_exponents_out_of_range(power: int) -> None:
    for number in huge(power):
        with pytest.raises((ValueError, OverflowError), match="exponent|the string"):
            sunzi.Matrix([[number]], precision=60)


def test_shapes() -> None:
    three = [[1.0, 2.0, 3.0]] * 3
    with pytest.raises(ValueError, match="2 x 2 against 3 x 3"):
        sunzi.gemm(GOOD, three)
    with pytest.raises(ValueError, match="2 x 2 .*3 x 3"):
        sunzi.Matrix(GOOD) @ three
    with pytest.raises(ValueError, match="2 x 2 against 3 x 3"):
        sunzi.Matrix(GOOD) + three
    with pytest.raises(ValueError, match="2 x 2 against 3 x 1"):
        sunzi.solve(GOOD, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="2 x 3"):
        sunzi.cholesky([[1.0, 2.0, 3.0]] * 2)
    with pytest.raises(ValueError, match="2 x 3"):
        sunzi.log_det([[1.0, 2.0, 3.0]] * 2)
    with pytest.raises(ValueError, match="3 x 3"):
        sunzi.trsm(GOOD, three)
    with pytest.raises(ValueError, match="2 x 2.*3 x 3|3 x 3.*2 x 2"):
        sunzi.syrk(GOOD, c=[[1.0] * 3] * 3)
    with pytest.raises(ValueError, match="2 x 2 against 3 x 1"):
        sunzi.Cholesky(GOOD).solve([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="3 x 1"):
        sunzi.solve(GOOD, [1.0, 2.0, 3.0], factor_precision=53)


@pytest.mark.parametrize("precision", [-1, 0, 1, 2**24 + 1, 2**40])
def test_precisions_out_of_range(precision: int) -> None:
    calls = [
        lambda: sunzi.cholesky(GOOD, precision=precision),
        lambda: sunzi.Matrix(GOOD, precision=precision),
        lambda: sunzi.Matrix(GOOD).rounded(precision),
        lambda: sunzi.Matrix.zeros(1, 1, precision=precision),
        lambda: sunzi.plan("cholesky", 5, precision=precision),
        lambda: sunzi.solve(GOOD, [1.0, 2.0], factor_precision=precision),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"(precision|bits)={precision}: .*precision of {precision} bits"):
            call()
    with pytest.raises(ValueError, match=r"2 to \d+ bits"):
        sunzi.cholesky(GOOD, precision=2**23)


def test_exact_numbers_need_a_precision() -> None:
    for number in (4, Fraction(4), "4", flint.fmpz(4), gmpy2.mpz(4), gmpy2.mpq(4)):
        with pytest.raises(ValueError, match="pass precision= in bits, or to solve and inverse digits="):
            sunzi.cholesky([[number]])
    with pytest.raises(TypeError, match="'auto' is not accepted here: only solve and inverse"):
        sunzi.cholesky(GOOD, precision="auto")


def test_not_positive_definite() -> None:
    a = [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    calls = [sunzi.cholesky, sunzi.Cholesky, sunzi.log_det, lambda a: sunzi.solve(a, [1.0] * 3, uplo="both")]
    for call in calls:
        with pytest.raises(sunzi.NotPositiveDefiniteError, match="index 1") as caught:
            call(a)
        assert caught.value.index == 1 and caught.value.more_bits is None
        assert caught.value.more_bits_might_help is False
        assert isinstance(caught.value, ValueError)
    hilbert = [[Fraction(1, i + j + 1) for j in range(30)] for i in range(30)]
    with pytest.raises(sunzi.NotPositiveDefiniteError) as caught:
        sunzi.cholesky(hilbert, precision=60)
    assert 0 < caught.value.index < 30 and caught.value.more_bits > 0
    assert caught.value.more_bits_might_help is True
    assert str(caught.value).endswith(": pass a larger precision=")


def test_matrices_that_are_not_accepted() -> None:
    """The message says which matrices are, and what there is for others."""
    indefinite, general = [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]]
    calls: dict[str, Callable[[object], object]] = {
        "det": lambda a: sunzi.det(a, uplo="both"),
        "log_det": sunzi.log_det,
        "inverse": lambda a: sunzi.inverse(a, uplo="both"),
        "solve": lambda a: sunzi.solve(a, [1.0, 2.0], uplo="both"),
    }
    for name, call in calls.items():
        accepted = f"{name} accepts symmetric positive definite matrices"
        others = "general matrices use sunzi.lu" if name == "log_det" else "general matrices leave out uplo="
        instead = "sunzi.det" if name == "log_det" else "sunzi.Ldlt"
        with pytest.raises(sunzi.NotPositiveDefiniteError, match=f"{accepted}; for other .* use {instead}") as caught:
            call(indefinite)
        assert caught.value.index == 1
        with pytest.raises(sunzi.NotSymmetricError, match=f"uplo='lower_only' .*{accepted}; for .*{others}") as other:
            call(general)
        assert other.value.place == (1, 0)
    assert sunzi.Ldlt(indefinite).det() == -3.0
    for method, options in (("det", {"uplo": "both"}), ("log_det", {}), ("inverse", {"uplo": "both"}), ("cholesky", {})):
        with pytest.raises(sunzi.NotSymmetricError, match=f"uplo='upper_only'.*{method} accepts .* general matrices"):
            getattr(sunzi.Matrix(general), method)(**options)
    with pytest.raises(sunzi.NotSymmetricError, match="no eigenvalues of general matrices"):
        sunzi.extreme_eigenvalue(general)
    balls = flint.arb_mat([[flint.arb(4, 1e-3), 1], [2, 3]])
    for name in ("cholesky", "log_det"):
        accepted = f"{name} of balls accepts .* positive definite midpoints; solve, inverse and det of balls accept general"
        with pytest.raises(sunzi.NotSymmetricError, match=accepted):
            getattr(sunzi, name)(balls)
    with pytest.raises(ValueError, match="exact=True requires integer entries"):
        sunzi.syrk([[0.5]], exact=True)
    with pytest.raises(sunzi.NotSymmetricError, match="^problem 1 of 2: the matrix is not symmetric.*uplo="):
        sunzi.cholesky_batch([[[1.0]], general])


def test_singular() -> None:
    with pytest.raises(sunzi.SingularError, match="index 1") as caught:
        sunzi.trsm([[1.0, 0.0], [5.0, 0.0]], [1.0, 2.0])
    assert caught.value.index == 1


@pytest.mark.parametrize("factor_precision", [5, 20])
def test_factors_of_too_few_bits(factor_precision: int) -> None:
    a = [[Fraction(1, i + j + 1) + (i == j) * Fraction(1, 2**90) for j in range(20)] for i in range(20)]
    text = f"factor_precision={factor_precision} for a result of 400 bits"
    with pytest.raises(sunzi.NotPositiveDefiniteError, match=text) as caught:
        sunzi.solve(a, [1] * 20, precision=400, factor_precision=factor_precision)
    assert caught.value.index > 0


def test_exact_products_beyond_the_range() -> None:
    for work in (lambda: sunzi.syrk([[2**20000 + 1]], exact=True), lambda: sunzi.gemm([["1e9999"]], [[1]], exact=True)):
        with pytest.raises(ValueError, match="the exact result may have .* bits, but products have at most"):
            work()


def test_missing_files_as_python_says_it() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        sunzi.Matrix.load("/nowhere/a.mtx")
    assert str(caught.value) == "[Errno 2] No such file or directory: '/nowhere/a.mtx'"


def test_refinement_that_stalls() -> None:
    hilbert = [[Fraction(1, i + j + 1) + (i == j) * Fraction(1, 2**150) for j in range(20)] for i in range(20)]
    with pytest.raises(ValueError, match="stalls.*: factor_precision=60 for a result of 400 bits"):
        sunzi.solve(hilbert, [1] * 20, precision=400, factor_precision=60)


def test_memory_limit() -> None:
    p = random_rows(50, 30, 100, seed=1)
    context = sunzi.Context(threads=1, memory=1000)
    with pytest.raises(sunzi.MemoryLimitError, match="1000 bytes is too small.* memory= of the context") as caught:
        sunzi.syrk(p, precision=200, context=context)
    assert isinstance(caught.value, MemoryError) and caught.value.limit_bytes == 1000
    # Entry by entry the bits depend on the entries, which the first refusal cannot know.
    for accuracy, refusals in [("norm", 0), ("entrywise", 1)]:
        with pytest.raises(sunzi.MemoryLimitError) as caught:
            sunzi.syrk(p, precision=200, accuracy=accuracy, context=context)
        while True:
            enough = sunzi.Context(threads=1, memory=caught.value.minimum_bytes)
            try:
                limited = sunzi.syrk(p, precision=200, accuracy=accuracy, context=enough)
                break
            except sunzi.MemoryLimitError as refusal:
                assert refusals > 0 and refusal.minimum_bytes > caught.value.minimum_bytes
                caught.value.minimum_bytes = refusal.minimum_bytes
                refusals -= 1
        assert limited == sunzi.syrk(p, precision=200, accuracy=accuracy)
    with pytest.raises(sunzi.MemoryLimitError):
        sunzi.cholesky(positive_definite(40, 2), precision=200, context=context)


@pytest.mark.parametrize("rows, cols", [(2**40, 2**40), (2**62, 8), (2**50, 2)])
def test_matrices_beyond_all_memory(rows: int, cols: int) -> None:
    with pytest.raises(MemoryError):
        sunzi.Matrix.zeros(rows, cols, precision=1000)


def test_options() -> None:
    with pytest.raises(ValueError, match="uplo='left' is not valid; use one of both, lower, upper, lower_"):
        sunzi.cholesky(GOOD, uplo="left")
    with pytest.raises(ValueError, match="uplo='full' is not valid; use one of both, lower, upper, lower_"):
        sunzi.syrk(GOOD, uplo="full")
    with pytest.raises(ValueError, match="side='up'"):
        sunzi.trsm(GOOD, GOOD, side="up")
    with pytest.raises(TypeError, match="context=5 is of type int"):
        sunzi.cholesky(GOOD, context=5)
    with pytest.raises(TypeError, match="progress= must be callable .* its type is int"):
        sunzi.cholesky(GOOD, progress=5)
    with pytest.raises(TypeError, match=r"report=\[\] is of type list"):
        sunzi.cholesky(GOOD, report=[])
    with pytest.raises(TypeError, match="precision=1.5 is of type float"):
        sunzi.cholesky(GOOD, precision=1.5)
    with pytest.raises(ValueError, match="beta= is given, but c= is not"):
        sunzi.syrk(GOOD, beta=2)
    with pytest.raises(ValueError, match="alpha is NaN|alpha .*NaN"):
        sunzi.syrk(GOOD, alpha=float("nan"))
    with pytest.raises(TypeError, match="alpha is of type NoneType|alpha is of type list"):
        sunzi.syrk(GOOD, alpha=[1])
    with pytest.raises(ValueError, match="not an integer"):
        sunzi.syrk([[0.5]], exact=True)
    with pytest.raises(ValueError, match="numbers='octal' is not valid; use one of gmpy2, mpmath"):
        sunzi.Matrix(GOOD, numbers="octal")


def test_contexts() -> None:
    for threads in (0, 5000):
        with pytest.raises(ValueError, match=f"threads = {threads} is not valid"):
            sunzi.Context(threads=threads)
    with pytest.raises(ValueError, match="unknown kernel 'fast'"):
        sunzi.Context(kernel="fast")
    with pytest.raises(ValueError, match="device 'disk' is none of"):
        sunzi.Context(device="disk")
    with pytest.raises(sunzi.DeviceError, match="device not available"):
        sunzi.Context(device=["cuda:77"])
    with pytest.raises(ValueError, match="threads=-1 is out of range"):
        sunzi.Context(threads=-1)
    with pytest.raises(TypeError, match=r"memory=\[1\] is of type list"):
        sunzi.Context(memory=[1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"precision={2**99} is out of range"):
        sunzi.cholesky(GOOD, precision=2**99)


def test_plans() -> None:
    with pytest.raises(ValueError, match="no plan of 'qr' with 1 sizes"):
        sunzi.plan("qr", 3, precision=100)
    with pytest.raises(ValueError, match="no plan of 'syrk' with 1 sizes"):
        sunzi.plan("syrk", 3, precision=100)


def test_out_that_does_not_fit() -> None:
    read_only = np.zeros((2, 2))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match=r"out=, an array of shape \[2, 2\], is read-only"):
        sunzi.cholesky(GOOD, out=read_only)
    assert (read_only == 0).all()
    with pytest.raises(ValueError, match=r"out= has the shape \[2, 3\], but the result is 2 x 2"):
        sunzi.cholesky(GOOD, out=np.zeros((2, 3)))
    with pytest.raises(TypeError, match="out= has the dtype float32"):
        sunzi.cholesky(GOOD, out=np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(TypeError, match="out= must be a NumPy array, but its type is list"):
        sunzi.cholesky(GOOD, out=[[0, 0], [0, 0]])


def test_indices() -> None:
    matrix = sunzi.Matrix(GOOD)
    for key, text in [((2, 0), "row 2 is out of range"), ((0, -3), "column -3"), ((0, 0, 0), "3 indices")]:
        with pytest.raises(IndexError, match=text):
            matrix[key]
    for key in ("a", (0, None), ([0, "b"], 0), 1.0, [0.5], (slice(None), [None])):
        with pytest.raises(TypeError, match="index must be an integer, a slice, a list of integers or a mask"):
            matrix[key]
    with pytest.raises(TypeError, match="@"):
        matrix * matrix
    with pytest.raises(ValueError, match="NaN"):
        matrix * float("nan")


def test_packages_that_are_not_there() -> None:
    """Without gmpy2, mpmath and flint the rest works, and what needs them says so."""
    code = (
        "import sys\n"
        "for name in ('gmpy2', 'mpmath', 'flint', 'numpy'): sys.modules[name] = None\n"
        "import sunzi\n"
        "assert sunzi.cholesky([[4.0]]) == [[2.0]]\n"
        "m = sunzi.Matrix([[1, 2]], precision=60)\n"
        "for convert in (m.to_mpmath, m.to_gmpy2, m.to_flint, m.to_numpy):\n"
        "    try: convert()\n"
        "    except ImportError: continue\n"
        "    raise SystemExit(f'{convert} did not say so')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


class Lying(list):  # type: ignore[type-arg]
    """A list that says a length of its own."""

    said = 0

    def __len__(self) -> int:
        return self.said


class OddArray(np.ndarray):  # type: ignore[type-arg]
    """An array whose methods say something else."""

    def ravel(self, *_: object) -> list[object]:  # type: ignore[override]
        return [1.0]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (3, 7)


@pytest.mark.parametrize("said", [0, 3, 2**62])
def test_containers_that_lie(said: int, call: Callable[[object], object]) -> None:
    class Row(Lying):
        pass

    Row.said = said
    good = call(GOOD)
    result = call(Row([Row([4.0, 2.0]), Row([2.0, 10.0])]))
    if isinstance(good, sunzi.Cholesky):
        assert result.L == good.L
    else:
        assert result == good
    for dtype in (object, float):
        odd = np.array(GOOD, dtype=dtype).view(OddArray)
        try:
            call(odd)
        except (TypeError, ValueError):
            pass


def test_shape_and_numbers_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = mpmath.matrix(GOOD)
    monkeypatch.setattr(type(odd), "tolist", lambda self: [[mpmath.mpf(1)]])
    assert sunzi.cholesky(odd) == sunzi.cholesky(mpmath.matrix(GOOD)), "the entries are where mpmath keeps them"
    odd._data[7, 7] = mpmath.mpf(1)
    with pytest.raises(ValueError, match="a holds 1 numbers, but its shape is 2 x 2"):
        sunzi.cholesky(odd)


def test_one_row_many_times() -> None:
    with pytest.raises(MemoryError):
        sunzi.syrk([[1.0] * 5_000_000] * 5_000_000)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_exceptions_of_numbers_come_through(exception: type[BaseException]) -> None:
    class Bad:
        @property
        def _mpf_(self) -> object:
            raise exception("mine")

    for work in (
        lambda: sunzi.syrk([[1.0]], alpha=Bad()),
        lambda: sunzi.syrk([[Bad()]]),
        lambda: sunzi.Matrix([[1.0]]) * Bad(),
    ):
        with pytest.raises(exception, match="mine"):
            work()


def test_masked_arrays() -> None:
    for dtype in (float, object):
        masked = np.ma.masked_array(np.array(GOOD, dtype=dtype), mask=[[0, 1], [0, 0]])
        with pytest.raises(TypeError, match="a is a masked array"):
            sunzi.cholesky(masked)
        with pytest.raises(TypeError, match="a: row 0 is a masked array"):
            sunzi.cholesky([masked[0], masked[1]])


@pytest.mark.parametrize("container", [list, np.array])
def test_results_too_large_for_floats(container: Callable[[object], object]) -> None:
    with pytest.raises(OverflowError, match=r"row 0, column 1 is about 2\^1329: too large for a float"):
        sunzi.gemm(container([[1e200]]), container([[1.0, 1e200]]))
    with pytest.raises(OverflowError, match="row 1, column 0"):
        sunzi.Matrix([["1"], ["-2e308"]], precision=100).to_numpy("float")
    assert sunzi.Matrix([["1e400"]], precision=100, numbers="gmpy2")[0, 0] > 0


@pytest.mark.parametrize("number", [Fraction(1, 1 << (2**30 + 9)), gmpy2.mpq(-3, gmpy2.mpz(1) << (2**30 + 2))])
def test_fractions_too_small(number: object) -> None:
    with pytest.raises(ValueError, match="exponent -1073741824 at row 0, column 1"):
        sunzi.Matrix([[1, number]], precision=64)


def test_the_least_fraction() -> None:
    least = gmpy2.mpq(5, gmpy2.mpz(1) << (2**30 + 2))
    assert sunzi.Matrix([[least]], precision=64).to_gmpy2()[0][0] != 0


def least_limit(call: Callable[[sunzi.Context], object]) -> int:
    """The least memory limit with which the call gives what it gives without one."""
    want, limit = call(sunzi.Context(threads=1)), 1
    for _ in range(8):
        try:
            assert call(sunzi.Context(threads=1, memory=limit)) == want
            return limit
        except sunzi.MemoryLimitError as error:
            assert error.limit_bytes == limit < error.minimum_bytes
            limit = error.minimum_bytes
    pytest.fail(f"the limit asked for, {limit} bytes, is never enough")


def test_the_factor_takes_a_part_of_the_memory_limit() -> None:
    order, bits = 20, 4000
    a = sunzi.Matrix(positive_definite(order, 3), precision=bits)
    b = sunzi.Matrix([[1] * 300] * order, precision=bits)
    factor = sunzi.Cholesky(a)
    solve = least_limit(lambda context: factor.solve(b, context=context))
    assert least_limit(lambda context: sunzi.solve(a, b, context=context)) == solve + factor.L.nbytes


SINGULAR = "the matrix is singular, as an exact solution of A x = 0 proves"


def singular_matrices() -> list[list[list[object]]]:
    """Matrices that are singular as they are given, and mostly not once their numbers are rounded."""
    tenths = [[Fraction(1, 10), Fraction(3, 10)], [Fraction(3, 10), Fraction(9, 10)]]
    texts = [["0.1", "3/10"], ["0.3", "0.9"]]
    return [[[1, 1], [1, 1]], [["1/3", "1/3"], ["1/3", "1/3"]], [[Fraction(1, 3)] * 2] * 2, tenths, texts]


@pytest.mark.parametrize("a", singular_matrices())
def test_a_singular_matrix_is_named_so(a: list[list[object]]) -> None:
    """At each precision at which rounding gives no factor; none says that more bits would help."""
    calls: list[Callable[[int], object]] = [
        lambda bits: sunzi.cholesky(a, precision=bits),
        lambda bits: sunzi.cholesky(a, precision=bits, uplo="upper"),
        lambda bits: sunzi.Cholesky(a, precision=bits),
        lambda bits: sunzi.solve(a, [1, 1], precision=bits),
        lambda bits: sunzi.solve(a, [1, 1], precision=bits, certified=True, report={}),
        lambda bits: sunzi.inverse(a, precision=bits),
        lambda bits: sunzi.det(a, precision=bits),
        lambda bits: sunzi.log_det(a, precision=bits),
    ]
    for call in calls:
        refused = 0
        for bits in range(90, 130):
            try:
                call(bits)
            except sunzi.NotPositiveDefiniteError as error:
                refused += 1
                assert str(error).endswith(f"{SINGULAR}: more bits will not help"), str(error)
                assert error.singular is True and error.more_bits is None and error.more_bits_might_help is False
        assert refused > 0
    for digits in (5, 40):
        with pytest.raises(ValueError, match=SINGULAR):
            sunzi.solve(a, [1, 1], digits=digits)
        with pytest.raises(ValueError, match=SINGULAR):
            sunzi.inverse(a, digits=digits)
    if a == [[1, 1], [1, 1]]:
        for factor in (sunzi.ldlt, sunzi.Ldlt):
            with pytest.raises(sunzi.SingularError, match=SINGULAR):
                factor(a, precision=100)
    with pytest.raises(sunzi.SingularError, match="zero on the diagonal at index 0") as regular:
        sunzi.ldlt([[0, 1], [1, 0]], precision=100)
    assert "is singular, as" not in str(regular.value)


def test_a_matrix_that_may_be_regular_is_not_named_singular() -> None:
    """Numbers that were rounded before, or differ from their mirror images before they are rounded."""
    third = Fraction(1, 3)
    known, unknown = 0, 0
    for bits in range(60, 80):
        rounded_before = sunzi.Matrix([[third, third], [third, third]], precision=bits)
        as_read = f"as read, with numbers rounded to {bits} bits where"
        for a, words in ((rounded_before, as_read), (rounded_before.rounded(bits - 5), SINGULAR)):
            try:
                sunzi.cholesky(a)
            except sunzi.NotPositiveDefiniteError as error:
                assert words in str(error)
                known += error.singular is True
                unknown += error.singular is None and error.more_bits_might_help is None
    assert known > 0 and unknown > 0
    regular = [[third, third], [third, third + Fraction(1, 2**400)]]
    uneven = [[third, third], [third + Fraction(1, 2**400), third]]
    for a in (regular, uneven):
        for bits in range(90, 130):
            for call in (sunzi.cholesky, sunzi.inverse, sunzi.log_det):
                try:
                    call(a, precision=bits)
                except sunzi.NotPositiveDefiniteError as error:
                    assert error.singular is None and "more bits will not help" not in str(error)
    with pytest.raises(sunzi.NotPositiveDefiniteError, match="cannot explain the pivot") as caught:
        sunzi.cholesky([[1, 2], [2, 1]], precision=100)
    assert caught.value.singular is None
