"""Many small problems in one call: signatures and documentation.

Each function takes a list of problems and returns the list of their results, each with the numbers of the single
function, at the precision of its own operands unless `precision` says one for all. Shapes may differ. The threads share
out the problems. The options are those of the single functions, for all problems alike.

errors: what becomes of a problem without a result: a matrix that is not positive definite, an entry that is no number
    or cannot be taken, a result that no `float` can hold. `raise` (the default) raises the exception of the first of
    them; `return` puts each exception in the place of its result, and the others are there. Its text and its attribute
    `problem` say the number of the problem, from 0. A `TypeError` ends the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle

Progress = Callable[[int, int], object]


def syrk_batch(
    problems: Iterable[Any],
    *,
    transpose: bool = False,
    uplo: _Triangle | None = None,
    alpha: Any = None,
    beta: Any = None,
    errors: Literal["raise", "return"] = "raise",
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> list[Any]:
    """`alpha PᵀP + beta C` of many `p`; see `syrk`. A problem is `p`, or a tuple `(p, c)`; a `p` that is itself a tuple
    of rows has to stand in one, `(p,)`.

    >>> import sunzi
    >>> sunzi.syrk_batch([[[1.0, 2.0]], [[3.0]], ([[1.0]], [[5.0]])])
    [[[1.0, 2.0], [2.0, 4.0]], [[9.0]], [[6.0]]]
    """
    options = {"transpose": transpose, "uplo": uplo, "alpha": alpha, "beta": beta}
    shared = _shared(accuracy, precision, context, progress, report)
    return _run("syrk", _problems(problems), options | shared, errors)


def gemm_batch(
    problems: Iterable[tuple[Any, ...]],
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: Any = None,
    beta: Any = None,
    errors: Literal["raise", "return"] = "raise",
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> list[Any]:
    """`alpha op(A) op(B) + beta C` of many pairs; see `gemm`. A problem is a tuple `(a, b)` or `(a, b, c)`.

    >>> import sunzi
    >>> sunzi.gemm_batch([([[2.0]], [[3.0]]), ([[1.0, 2.0]], [[1.0], [1.0]])])
    [[[6.0]], [[3.0]]]
    """
    options = {"transpose": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "beta": beta}
    shared = _shared(accuracy, precision, context, progress, report)
    return _run("gemm", _problems(problems), options | shared, errors)


def cholesky_batch(
    matrices: Iterable[Any],
    *,
    uplo: _Triangle | None = None,
    errors: Literal["raise", "return"] = "raise",
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> list[Any]:
    """The factors of many symmetric positive definite matrices; see `cholesky`.

    >>> import sunzi
    >>> blocks = [[[4.0, 2.0], [2.0, 10.0]], [[1.0, 2.0], [2.0, 1.0]]]
    >>> factors = sunzi.cholesky_batch(blocks, errors="return")
    >>> factors[0]
    [[2.0, 0.0], [1.0, 3.0]]
    >>> (factors[1].problem, factors[1].index)
    (1, 1)
    """
    shared = _shared(accuracy, precision, context, progress, report)
    return _run("cholesky", [[matrix] for matrix in matrices], {"uplo": uplo} | shared, errors)


def trsm_batch(
    problems: Iterable[tuple[Any, Any]],
    *,
    side: Literal["left", "right"] = "left",
    uplo: Literal["lower", "upper"] = "lower",
    transpose: bool = False,
    unit: bool = False,
    alpha: Any = None,
    errors: Literal["raise", "return"] = "raise",
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> list[Any]:
    """The solutions of many triangular systems; see `trsm`. A problem is a tuple `(t, b)`.

    >>> import sunzi
    >>> sunzi.trsm_batch([([[2.0]], [[4.0]]), ([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0])])
    [[[2.0]], [1.0, 2.0]]
    """
    options = {"side": side, "uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    shared = _shared(accuracy, precision, context, progress, report)
    return _run("trsm", _problems(problems), options | shared, errors)


def _problems(problems: Iterable[Any]) -> list[list[Any]]:
    return [list(problem) if isinstance(problem, tuple) else [problem] for problem in problems]


def _shared(
    accuracy: Literal["entrywise", "norm"],
    precision: int | None,
    context: Context | None,
    progress: Progress | None,
    report: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "accuracy": accuracy,
        "precision": precision,
        "context": context,
        "progress": progress,
        "report": report,
    }


def _run(
    verb: str, problems: list[list[Any]], options: dict[str, Any], errors: Literal["raise", "return"]
) -> list[Any]:
    if errors not in ("raise", "return"):
        raise ValueError(f"errors='{errors}' is not valid; use one of raise, return")
    results: list[Any] = _sunzi.batch(verb, problems, options)
    if errors == "raise":
        for result in results:
            if isinstance(result, BaseException):
                raise result
    return results
