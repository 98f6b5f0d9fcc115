"""Signatures and documentation of functions that solve many small problems in one call.

Each function takes a list of problems and returns the list of their results. Each result is bitwise the result of the
function for one problem, at the precision of that problem's operands unless `precision` is given. The shapes of the
problems may differ. The threads share the problems. The options are those of the functions for one problem, with one
value for all problems; `help(sunzi)` describes those of all functions.

errors : {'raise', 'return'}
    Treatment of a problem without a result: the matrix is not positive definite, an entry is not accepted, or a result
    is too large for `float`. `raise`, the default, raises the exception of the first such problem. `return` puts each
    exception at the place of its result and returns the other results. The text of the exception and its attribute
    `problem` name the number of the problem, counted from 0. A `TypeError` always ends the call.
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
    """Compute `alpha PᵀP + beta C` for many matrices `p`; see `syrk`.

    Parameters
    ----------
    problems : iterable
        A problem is `p`, or a tuple `(p, c)`. A `p` that is itself a tuple of rows must be passed as `(p,)`.
    errors : {'raise', 'return'}
        `raise` raises the exception of the first problem without a result; `return` returns exceptions among the
        results.
    transpose, uplo, alpha, beta
        As in `syrk`, for all problems.
    accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
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
    """Compute `alpha op(A) op(B) + beta C` for many pairs of matrices; see `gemm`.

    Parameters
    ----------
    problems : iterable of tuples
        A problem is `(a, b)` or `(a, b, c)`.
    errors : {'raise', 'return'}
        As in `syrk_batch`.
    transpose_a, transpose_b, alpha, beta
        As in `gemm`, for all problems.
    accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
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
    """Compute the Cholesky factors of many symmetric positive definite matrices; see `cholesky`.

    Parameters
    ----------
    matrices : iterable of matrices
        The matrices.
    errors : {'raise', 'return'}
        As in `syrk_batch`.
    uplo, accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
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
    """Solve many triangular systems; see `trsm`.

    Parameters
    ----------
    problems : iterable of tuples
        A problem is `(t, b)`.
    errors : {'raise', 'return'}
        As in `syrk_batch`.
    side, uplo, transpose, unit, alpha
        As in `trsm`, for all problems.
    accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
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
