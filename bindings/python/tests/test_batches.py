"""Batches: the numbers of single calls, problems that fail beside others, and every refusal."""

from __future__ import annotations

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
    with pytest.raises(ValueError, match="errors is 'skip': use one of raise, return"):
        sunzi.cholesky_batch(BLOCKS, errors="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="problem 0 of 1: 1 operands"):
        sunzi.gemm_batch([[[1.0]]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="problem 1 of 2: "):
        sunzi.gemm_batch([([[1.0]], [[1.0]]), ([[1.0]], [[1.0], [2.0]])])
    with pytest.raises(ValueError, match="problem 0 of 1: .*NaN"):
        sunzi.syrk_batch([[[float("nan")]]])
