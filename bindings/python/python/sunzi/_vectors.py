"""Vectors, triangular and symmetric matrices, extreme eigenvalues: signatures and documentation.

The options that all functions share are those of `_functions`. A vector is a flat list or array, or a matrix of one
column or one row; a result that is a vector is a column, flat where the vector given is flat.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._functions import Progress, _shared
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle


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
    """`alpha op(A) x + beta c` for a matrix and vectors, of the same kind as `x`.

    Accuracy: `|computed - exact| <= 2^(1 - precision) (|alpha| |op(A)| |x| + |beta| |c|)` for every entry.

    >>> import sunzi
    >>> sunzi.gemv([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0])
    [-1.0, -1.0]
    """
    options = {"transpose": transpose, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.gemv(a, x, options | _shared("entrywise", precision, context, progress, out, report))


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
    """`alpha A x + beta c` for a symmetric matrix and vectors, of the same kind as `x`.

    Both triangles of `a` are read and must agree, unless `uplo` names the one that counts. Accuracy as in `gemv`.

    >>> import sunzi
    >>> sunzi.symv([[1.0, 9.0], [2.0, 4.0]], [1.0, 1.0], uplo="lower_only")
    [3.0, 6.0]
    """
    options = {"uplo": uplo, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.symv(a, x, options | _shared("entrywise", precision, context, progress, out, report))


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
    """`alpha op(T) x` for a triangular matrix, of which one triangle is read (with `unit` without its diagonal).

    Accuracy as in `gemv`.

    >>> import sunzi
    >>> sunzi.trmv([[2.0, 0.0], [1.0, 4.0]], [1.0, 2.0])
    [2.0, 9.0]
    """
    options = {"uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trmv(t, x, options | _shared("entrywise", precision, context, progress, out, report))


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
    """The solution `x` of `op(T) x = alpha b` for a triangular matrix, of the same kind as `b`.

    Accuracy: `|alpha b - op(T) x| <= 2^(1 - precision) |op(T)| |x|` for every entry, whatever the condition.
    Raises `SingularError` with the `index` of the first 0 on the diagonal.

    >>> import sunzi
    >>> sunzi.trsv([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0])
    [1.0, 2.0]
    """
    options = {"uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trsv(t, b, options | _shared("entrywise", precision, context, progress, out, report))


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
    """`alpha x yᵀ + C` for two vectors and a matrix; every entry is the exact number, rounded once.

    >>> import sunzi
    >>> sunzi.ger([[1.0], [2.0]], [3.0, 4.0])
    [[3.0, 4.0], [6.0, 8.0]]
    """
    options = {"alpha": alpha, "c": c}
    return _sunzi.ger(x, y, options | _shared("entrywise", precision, context, progress, out, report))


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
    """`alpha x + y` for two vectors, of the same kind as `y`; every entry is the exact number, rounded once.

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
    """`xᵀ y`, one number; `|computed - exact| <= 2^(1 - precision) |x|ᵀ |y|`.

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
    """The Euclidean norm of a vector, one number, to a relative error of `2^(1 - precision)`.

    >>> import sunzi
    >>> sunzi.nrm2([3.0, -4.0])
    5.0
    """
    return _sunzi.nrm2(x, _shared("entrywise", precision, context, progress, None, None))


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
    """`alpha op(T) B` (`side="right"`: `alpha B op(T)`) for a triangular matrix, of the same kind as `b`.

    One triangle of `t` is read (with `unit` without its diagonal). Accuracy as in `gemm`.

    >>> import sunzi
    >>> sunzi.trmm([[2.0, 0.0], [1.0, 4.0]], [[1.0, 0.0], [2.0, 1.0]])
    [[2.0, 0.0], [9.0, 4.0]]
    """
    options = {"side": side, "uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trmm(t, b, options | _shared(accuracy, precision, context, progress, out, report))


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
    """`alpha A B + beta C` (`side="right"`: `alpha B A + beta C`) for a symmetric `A`, of the same kind as `b`.

    Both triangles of `a` are read and must agree, unless `uplo` names the one that counts. Accuracy as in `gemm`.

    >>> import sunzi
    >>> sunzi.symm([[1.0, 9.0], [2.0, 4.0]], [[1.0], [1.0]], uplo="lower_only")
    [[3.0], [6.0]]
    """
    options = {"side": side, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.symm(a, b, options | _shared(accuracy, precision, context, progress, out, report))


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
    """`alpha (AᵀB + BᵀA) + beta C` (with `transpose` `alpha (A Bᵀ + B Aᵀ) + beta C`), of the same kind as `a`.

    `c` is symmetric, as in `syrk`. Accuracy: beside the sizes of the terms of both products, or their norms.

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
    """Two fractions between which the smallest or largest eigenvalue of a symmetric matrix lies, proven.

    They are `2^-precision` of the eigenvalue apart at most, or, where it is that small beside the matrix,
    `2^(-2 precision - 32)` of the norm. Fractions and decimals among the entries are rounded to `precision` bits or
    those of other entries.

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
    """The same for `L⁻¹ X L⁻ᵀ`, with the lower triangle of `l` and a symmetric `x`: what step lengths are made of.

    `uplo` names the triangle of `x` that counts; else both must agree.

    >>> import sunzi
    >>> low, high = sunzi.pencil_eigenvalue([[2.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 3.0]], which="largest")
    >>> low <= 3 <= high and high - low < 1e-8
    True
    """
    options = {"which": which, "uplo": uplo} | _shared("entrywise", precision, context, progress, None, None)
    return _sunzi.eigenvalue(x, l, options)
