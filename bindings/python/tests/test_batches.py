"""Batches: the numbers of single calls, problems that fail beside others, and every refusal."""

from __future__ import annotations

import signal
import time
from fractions import Fraction

import pytest
import sunzi

BLOCKS = [[[4.0, 2.0], [2.0, 10.0]], [[9.0]], [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]]
BAD = [[1.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize("precision", [None, 200])
def test_batches_have_the_numbers_of_single_calls(precision: int | None) -> None:
    factors = sunzi.cholesky_batch(BLOCKS, precision=precision)
    assert factors == [sunzi.cholesky(block, precision=precision) for block in BLOCKS]
    assert sunzi.syrk_batch(BLOCKS, precision=precision) == [sunzi.syrk(p, precision=precision) for p in BLOCKS]
    pairs = list(zip(factors, BLOCKS))
    assert sunzi.gemm_batch(pairs, precision=precision) == [sunzi.gemm(a, b, precision=precision) for a, b in pairs]
    assert sunzi.trsm_batch(pairs, precision=precision) == [sunzi.trsm(t, b, precision=precision) for t, b in pairs]
    added = [(p, c) for p, c in pairs]
    assert sunzi.syrk_batch(added, beta=2.0) == [sunzi.syrk(p, c=c, beta=2.0) for p, c in added]


def test_each_problem_has_its_own_precision() -> None:
    texts = [[["4", "2"], ["2", "10"]]]
    report: dict[str, object] = {}
    results = sunzi.cholesky_batch(BLOCKS, report=report)
    assert (report["problems"], report["failed"], report["operation"]) == (3, 0, "cholesky_batch")
    assert len(results) == 3
    with pytest.raises(ValueError, match="problem 0 of 1: .*precision="):
        sunzi.cholesky_batch(texts)
    assert sunzi.cholesky_batch(texts, precision=30) == [sunzi.cholesky(texts[0], precision=30)]


def test_a_problem_that_fails_leaves_the_others() -> None:
    blocks = [BLOCKS[0], BAD, BLOCKS[2]]
    with pytest.raises(sunzi.NotPositiveDefiniteError, match="problem 1 of 3: the matrix is not positive definite"):
        sunzi.cholesky_batch(blocks)
    factors = sunzi.cholesky_batch(blocks, errors="return")
    assert factors[0] == sunzi.cholesky(BLOCKS[0]) and factors[2] == sunzi.cholesky(BLOCKS[2])
    assert isinstance(factors[1], sunzi.NotPositiveDefiniteError)
    assert (factors[1].index, factors[1].problem) == (1, 1)


def test_refusals() -> None:
    assert sunzi.cholesky_batch([]) == []
    with pytest.raises(ValueError, match="errors='skip' is not valid; use one of raise, return"):
        sunzi.cholesky_batch(BLOCKS, errors="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="problem 0 of 1: the number of operands is 1"):
        sunzi.gemm_batch([[[1.0]]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="problem 1 of 2: "):
        sunzi.gemm_batch([([[1.0]], [[1.0]]), ([[1.0]], [[1.0], [2.0]])])
    with pytest.raises(ValueError, match="problem 0 of 1: .*NaN"):
        sunzi.syrk_batch([[[float("nan")]]])


def test_numbers_that_fail_leave_the_others() -> None:
    # The square of 1e200 is a number of the library, and of no float.
    results = sunzi.syrk_batch([[[1e200]], [[2.0]], [[float("nan")]]], errors="return")
    assert results[1] == [[4.0]]
    for at, kind in ((0, OverflowError), (2, ValueError)):
        assert isinstance(results[at], kind) and results[at].problem == at
        assert str(results[at]).startswith(f"problem {at} of 3: ")
    report: dict[str, object] = {}
    with pytest.raises(OverflowError, match="problem 0 of 2: "):
        sunzi.syrk_batch([[[1e200]], [[2.0]]], report=report)
    assert (report["problems"], report["failed"]) == (2, 1)
    with pytest.raises(TypeError, match="problem 1 of 2: the number of operands is 1; it must be 2 or 3") as refused:
        sunzi.gemm_batch([([[1.0]], [[1.0]]), [[1.0]]], errors="return")  # type: ignore[list-item]
    assert refused.value.problem == 1  # type: ignore[attr-defined]


def test_scalars_are_rounded_as_in_single_calls() -> None:
    narrow, wide = [[1.0], [1.0], [1.0]], sunzi.Matrix([[1.0], [2.0]], precision=500)
    third = Fraction(1, 3)
    results = sunzi.syrk_batch([narrow, wide, narrow], alpha=third)
    assert results[0] == results[2] == sunzi.syrk(narrow, alpha=third)
    assert results[1] == sunzi.syrk(wide, alpha=third)
    added = sunzi.gemm_batch([(wide, [[2.0]], wide), ([[1.0]], [[1.0]], [[3.0]])], alpha="0.1", beta="0.7")
    assert added[0] == sunzi.gemm(wide, [[2.0]], c=wide, alpha="0.1", beta="0.7")
    assert added[1] == sunzi.gemm([[1.0]], [[1.0]], c=[[3.0]], alpha="0.1", beta="0.7")


def test_options_that_would_say_nothing_are_refused() -> None:
    for call in (lambda: sunzi.syrk_batch([[[1.0]]], beta=2), lambda: sunzi.gemm_batch([([[1.0]], [[1.0]])], beta=2)):
        with pytest.raises(ValueError, match="beta= is given, but no problem has a c"):
            call()
    assert sunzi.syrk_batch([], beta=2) == []
    for operation, sizes, options, text in (
        ("trsm", (5, 3), {"range_bits": 8}, "range_bits=8 is not accepted for 'trsm'"),
        ("syrk", (5, 3), {"range_bits": 8, "accuracy": "norm"}, "range_bits=8 requires accuracy='entrywise'"),
        ("solve", (5, 3), {"range_bits": 8, "factor_precision": 90}, "range_bits=8 is not accepted together"),
        ("cholesky", (5,), {"factor_precision": 90}, "factor_precision= is only accepted for 'solve'"),
    ):
        with pytest.raises(ValueError, match=text):
            sunzi.plan(operation, *sizes, precision=200, **options)  # type: ignore[arg-type]


def test_tuples_of_rows_are_matrices() -> None:
    rows = ((4.0, 2.0), (2.0, 10.0))
    assert sunzi.cholesky_batch([rows]) == [sunzi.cholesky(rows)]
    assert sunzi.syrk_batch([(rows,)]) == [sunzi.syrk(rows)]


def test_a_limit_holds_for_all_precisions_together() -> None:
    problems = [sunzi.Matrix([[float(i + j) for j in range(90)] for i in range(3)], precision=p) for p in (128, 200, 300)]
    free: dict[str, int] = {}
    wanted = sunzi.syrk_batch(problems, report=free)
    alone = [sunzi.plan("syrk", 3, 90, precision=p).planned_bytes for p in (128, 200, 300)]
    assert free["planned_bytes"] > max(alone)
    limit = 1
    for _ in range(6):
        context = sunzi.Context(threads=1, memory=limit)
        try:
            report: dict[str, int] = {}
            assert sunzi.syrk_batch(problems, context=context, report=report) == wanted
            break
        except sunzi.MemoryLimitError as error:
            assert error.limit_bytes == limit < error.minimum_bytes
            limit = error.minimum_bytes
    else:
        pytest.fail(f"no end at {limit}")
    assert report["planned_bytes"] <= limit and limit > max(alone)


def test_progress_counts_all_precisions() -> None:
    seen: list[tuple[int, int]] = []
    problems = [sunzi.Matrix([[float(i + j) for j in range(60)] for i in range(60)], precision=p) for p in (99, 200, 300)]
    sunzi.syrk_batch(problems * 20, progress=lambda done, total: seen.append((done, total)))
    assert seen and all(total == 60 for _, total in seen) and max(done for done, _ in seen) == 60


class Stop(Exception):
    pass


class Watched:
    """An operand that counts how many of its kind were looked at, and sends a signal at the first."""

    seen = 0

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        import numpy

        Watched.seen += 1
        if Watched.seen == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        return numpy.ones((2, 2))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_many_small_matrices_are_interrupted() -> None:
    pytest.importorskip("numpy")

    def stop(*_: object) -> None:
        raise Stop

    matrix = sunzi.Matrix([[1.0, 2.0]], precision=2000)
    # Handlers run in Python code: none is met in the matrices behind the first operand but for looks at signals.
    operands, old = [Watched(), *[matrix] * 300_000, Watched()], signal.signal(signal.SIGALRM, stop)
    Watched.seen = 0
    try:
        with pytest.raises(Stop):
            sunzi.syrk_batch(operands)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    assert Watched.seen == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_comparison_that_is_interrupted_says_so() -> None:
    def stop(*_: object) -> None:
        raise Stop

    entries = [["0." + "3" * 2000] * 300 for _ in range(300)]
    matrix, old = sunzi.Matrix([[1.0]], precision=60), signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(Stop):
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            for _ in range(1000):
                assert matrix != entries
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


def test_what_cannot_be_read_leaves_the_rest_of_a_call_as_it_is() -> None:
    nan = [[float("nan")]]
    results = sunzi.syrk_batch([(nan, [[1.0]]), [[2.0]]], beta=2.0, errors="return")
    assert isinstance(results[0], ValueError) and results[0].problem == 0 and results[1] == [[4.0]]
    report: dict[str, object] = {}
    assert len(sunzi.cholesky_batch([nan], errors="return", report=report)) == 1
    assert (report["operation"], report["accuracy"]) == ("cholesky_batch", "entrywise")
    assert (report["problems"], report["failed"]) == (1, 1)
    with pytest.raises(ValueError, match="alpha"):
        sunzi.syrk_batch([], alpha="nonsense")


@pytest.mark.parametrize("is_batch", [False, True])
def test_upper_factors_keep_the_memory_limit(is_batch: bool) -> None:
    matrix = sunzi.Matrix([[float(i == j) * 90.0 + 1.0 for j in range(60)] for i in range(60)], precision=200)
    report: dict[str, int] = {}

    def call(context: sunzi.Context) -> object:
        if is_batch:
            return sunzi.cholesky_batch([matrix], uplo="upper", context=context, report=report, accuracy="norm")[0]
        return sunzi.cholesky(matrix, uplo="upper", context=context, report=report, accuracy="norm")

    with pytest.raises(sunzi.MemoryLimitError) as refused:
        call(sunzi.Context(threads=1, memory=1))
    least = refused.value.minimum_bytes
    assert call(sunzi.Context(threads=1, memory=least)) == sunzi.cholesky(matrix, uplo="upper", accuracy="norm")
    assert report["planned_bytes"] <= least
    with pytest.raises(sunzi.MemoryLimitError):
        call(sunzi.Context(threads=1, memory=least - 1))
    lower = sunzi.plan("cholesky", 60, precision=200, accuracy="norm", context=sunzi.Context(threads=1))
    assert least >= 2 * lower.factor_bytes
