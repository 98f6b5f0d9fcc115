"""Signatures and documentation of functions on vectors, triangular and symmetric matrices, and of extreme eigenvalues.

The docstring of the package `sunzi` describes the options of all functions. A vector is a flat list or array, or a
matrix of one column or one row. A result that is a vector is a column; it is flat if the given vector is flat.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._functions import Progress, _shared
from sunzi._kinds import like_first, like_second, like_third
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle


@like_second
def gemv(
    a: Any,
    x: Any,
    *,
    transpose: bool = False,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha op(A) x + beta c` for a matrix and vectors.

    Parameters
    ----------
    a : matrix, m x n
        With `transpose`, `op(A)` is `Aᵀ`.
    x : vector
        Vector with as many entries as `op(A)` has columns.
    alpha, beta : number, optional
        Scalars; the default is 1. `beta` requires `c`.
    c : vector, optional
        Vector that is added.
    precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    vector
        The result, of the same kind as `x`.

    Notes
    -----
    Accuracy: `|computed - exact| <= 2^(1 - precision) (|alpha| |op(A)| |x| + |beta| |c|)` for every entry.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.gemv([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0])
    [-1.0, -1.0]
    """
    options = {"transpose": transpose, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.gemv(a, x, options | _shared("entrywise", precision, context, progress, out, report))


@like_second
def symv(
    a: Any,
    x: Any,
    *,
    uplo: _Triangle | None = None,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha A x + beta c` for a symmetric matrix and vectors.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric matrix. Both triangles are read and must agree, unless `uplo` names one of them.
    x : vector of n entries
        The vector that is multiplied.
    alpha, beta, c
        As in `gemv`.
    uplo, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    vector
        The result, of the same kind as `x`, with the accuracy of `gemv`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.symv([[1.0, 9.0], [2.0, 4.0]], [1.0, 1.0], uplo="lower_only")
    [3.0, 6.0]
    """
    options = {"uplo": uplo, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.symv(a, x, options | _shared("entrywise", precision, context, progress, out, report))


@like_second
def trmv(
    t: Any,
    x: Any,
    *,
    uplo: Literal["lower", "upper"] = "lower",
    transpose: bool = False,
    unit: bool = False,
    alpha: Any = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha op(T) x` for a triangular matrix and a vector.

    Parameters
    ----------
    t : matrix, n x n
        Triangular matrix, of which the triangle `uplo` is read (with `unit`, its diagonal is not read and consists of
        ones).
    x : vector of n entries
        The vector that is multiplied.
    transpose : bool
        `op(T)` is `Tᵀ`.
    alpha : number, optional
        Scalar; the default is 1.
    precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    vector
        The result, of the same kind as `x`, with the accuracy of `gemv`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.trmv([[2.0, 0.0], [1.0, 4.0]], [1.0, 2.0])
    [2.0, 9.0]
    """
    options = {"uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trmv(t, x, options | _shared("entrywise", precision, context, progress, out, report))


@like_second
def trsv(
    t: Any,
    b: Any,
    *,
    uplo: Literal["lower", "upper"] = "lower",
    transpose: bool = False,
    unit: bool = False,
    alpha: Any = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Solve the triangular system `op(T) x = alpha b` for a vector.

    Parameters
    ----------
    t, transpose, unit, alpha
        As in `trmv`.
    b : vector of n entries
        Right-hand side.
    precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    vector
        The solution x, of the same kind as `b`.

    Raises
    ------
    SingularError
        The diagonal has a zero; `index` is the index of the first one.

    Notes
    -----
    Accuracy: `|alpha b - op(T) x| <= 2^(1 - precision) |op(T)| |x|` for every entry and any condition.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.trsv([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0])
    [1.0, 2.0]
    """
    options = {"uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trsv(t, b, options | _shared("entrywise", precision, context, progress, out, report))


@like_first
def ger(
    x: Any,
    y: Any,
    *,
    alpha: Any = None,
    c: Any = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha x yᵀ + C` for two vectors and a matrix.

    Parameters
    ----------
    x, y : vector
        Vectors of m and n entries.
    alpha : number, optional
        Scalar; the default is 1.
    c : matrix, m x n, optional
        Matrix that is added.
    precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, m x n
        The result; each entry is the exact number, rounded once.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.ger([[1.0], [2.0]], [3.0, 4.0])
    [[3.0, 4.0], [6.0, 8.0]]
    """
    options = {"alpha": alpha, "c": c}
    return _sunzi.ger(x, y, options | _shared("entrywise", precision, context, progress, out, report))


@like_third
def axpy(
    alpha: Any,
    x: Any,
    y: Any,
    *,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha x + y` for two vectors.

    Parameters
    ----------
    alpha : number
        Scalar.
    x, y : vector
        Vectors of the same number of entries.
    precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    vector
        The result, of the same kind as `y`; each entry is the exact number, rounded once.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.axpy(-2.0, [1.0, 2.0], [10.0, 20.0])
    [8.0, 16.0]
    """
    return _sunzi.axpy(alpha, x, y, _shared("entrywise", precision, context, progress, out, report))


def dot(
    x: Any,
    y: Any,
    *,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Compute `xᵀ y`, a number with `|computed - exact| <= 2^(1 - precision) |x|ᵀ |y|`.

    Parameters
    ----------
    x, y : vector
        Vectors of the same number of entries.
    precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.dot([1.0, 2.0, 3.0], [4.0, -5.0, 6.0])
    12.0
    """
    return _sunzi.dot(x, y, _shared("entrywise", precision, context, progress, None, None))


def nrm2(
    x: Any,
    *,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Compute the Euclidean norm of a vector, a number with a relative error of at most `2^(1 - precision)`.

    Parameters
    ----------
    x : vector
        Any vector.
    precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.nrm2([3.0, -4.0])
    5.0
    """
    return _sunzi.nrm2(x, _shared("entrywise", precision, context, progress, None, None))


@like_second
def trmm(
    t: Any,
    b: Any,
    *,
    side: Literal["left", "right"] = "left",
    uplo: Literal["lower", "upper"] = "lower",
    transpose: bool = False,
    unit: bool = False,
    alpha: Any = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha op(T) B` for a triangular matrix or, with `side="right"`, `alpha B op(T)`.

    Parameters
    ----------
    t : matrix, n x n
        Triangular matrix, of which the triangle `uplo` is read (with `unit`, its diagonal is not read and consists of
        ones).
    b : matrix, n x m
        m x n for `side="right"`.
    transpose : bool
        `op(T)` is `Tᵀ`.
    alpha : number, optional
        Scalar; the default is 1.
    accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix
        The result, with the shape and of the same kind as `b`, with the accuracy of `gemm`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.trmm([[2.0, 0.0], [1.0, 4.0]], [[1.0, 0.0], [2.0, 1.0]])
    [[2.0, 0.0], [9.0, 4.0]]
    """
    options = {"side": side, "uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trmm(t, b, options | _shared(accuracy, precision, context, progress, out, report))


@like_second
def symm(
    a: Any,
    b: Any,
    *,
    side: Literal["left", "right"] = "left",
    uplo: _Triangle | None = None,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha A B + beta C` for a symmetric `A` or, with `side="right"`, `alpha B A + beta C`.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric matrix. Both triangles are read and must agree, unless `uplo` names one of them.
    b : matrix, n x m
        m x n for `side="right"`.
    alpha, beta, c
        As in `gemm`; `c` has the shape of `b`.
    uplo, accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix
        The result, with the shape and of the same kind as `b`, with the accuracy of `gemm`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.symm([[1.0, 9.0], [2.0, 4.0]], [[1.0], [1.0]], uplo="lower_only")
    [[3.0], [6.0]]
    """
    options = {"side": side, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.symm(a, b, options | _shared(accuracy, precision, context, progress, out, report))


@like_first
def syr2k(
    a: Any,
    b: Any,
    *,
    transpose: bool = False,
    uplo: _Triangle | None = None,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Compute `alpha (AᵀB + BᵀA) + beta C` or, with `transpose`, `alpha (A Bᵀ + B Aᵀ) + beta C`.

    Parameters
    ----------
    a, b : matrix, K x N
        With `transpose`, they are N x K.
    alpha, beta, c
        As in `syrk`.
    uplo, accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, N x N
        The symmetric result, of the same kind as `a`.

    Notes
    -----
    Accuracy: the error of each entry is at most `2^(1 - precision)` times the sum of the magnitudes of the terms of
    both products or, with `accuracy="norm"`, times the products of the norms of their columns; see `gemm`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.syr2k([[1.0, 2.0]], [[3.0, 4.0]])
    [[6.0, 10.0], [10.0, 16.0]]
    """
    options = {"transpose": transpose, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.syr2k(a, b, options | _shared(accuracy, precision, context, progress, out, report))


def extreme_eigenvalue(
    a: Any,
    *,
    which: Literal["smallest", "largest"] = "smallest",
    uplo: _Triangle | None = None,
    precision: int = 32,
    context: Context | None = None,
    progress: Progress | None = None,
) -> tuple[Fraction, Fraction]:
    """Enclose the smallest or the largest eigenvalue of a symmetric matrix between two fractions, with proof.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric matrix. The interval holds for the numbers as they are given: it allows for the change of the
        eigenvalue by the rounding of fractions and decimals, which are read to `2 precision + 64` bits.
    which : {'smallest', 'largest'}
        The eigenvalue to enclose.
    precision : int
        The fractions differ by at most `2^-precision` times the eigenvalue, or by `2^(-2 precision - 32)` times the
        norm of the matrix if the eigenvalue is smaller than about `2^-precision` times the norm.
    uplo, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    tuple of Fraction
        The lower and the upper bound.

    Examples
    --------
    >>> import sunzi
    >>> low, high = sunzi.extreme_eigenvalue([[2.0, 1.0], [1.0, 2.0]])
    >>> low <= 1 <= high and high - low < 1e-9
    True
    """
    options = {"which": which, "uplo": uplo} | _shared("entrywise", precision, context, progress, None, None)
    return _sunzi.eigenvalue(a, None, options)


def pencil_eigenvalue(
    l: Any,  # noqa: E741
    x: Any,
    *,
    which: Literal["smallest", "largest"] = "smallest",
    uplo: _Triangle | None = None,
    precision: int = 32,
    context: Context | None = None,
    progress: Progress | None = None,
) -> tuple[Fraction, Fraction]:
    """Enclose the smallest or the largest eigenvalue of `L⁻¹ X L⁻ᵀ` between two fractions, with proof.

    Interior-point methods compute step lengths from this eigenvalue.

    Parameters
    ----------
    l : matrix, n x n
        Lower triangular matrix, of which the lower triangle is read.
    x : matrix, n x n
        Symmetric matrix. Both triangles are read and must agree, unless `uplo` names one of them.
    which, precision
        As in `extreme_eigenvalue`. Fractions and decimals are rounded to `2 precision + 64` bits, and the interval
        holds for the rounded operands.
    uplo, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    tuple of Fraction
        The lower and the upper bound.

    Examples
    --------
    >>> import sunzi
    >>> low, high = sunzi.pencil_eigenvalue([[2.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 3.0]], which="largest")
    >>> low <= 3 <= high and high - low < 1e-8
    True
    """
    options = {"which": which, "uplo": uplo} | _shared("entrywise", precision, context, progress, None, None)
    return _sunzi.eigenvalue(x, l, options)
