"""The functions: signatures and documentation. The work is done by the native module.

Options that all functions share:

accuracy: what is promised of each entry: `entrywise` (the default) an error that is small beside the entry's own terms,
    as loops of numbers of a longer precision give it, or `norm`, one beside the norms of a row and a column, which
    takes a little less time; the same bits on every machine in either case. Exact results are exact.
precision: bits of the result. By default the largest that the operands bring along: of each `mpfr` its own, of `mpf`
    and `arb` that of `mpmath.mp` and `flint.ctx`, of `float` 53. `int`, `Fraction` and `str` have none. Operands are
    taken exactly, but fractions and decimals are rounded to this precision, and to 64 bits more where they are
    factored or solved for.
uplo: which triangle of a symmetric operand counts. By default, or with `both`, both, which must agree. With `lower` or
    `upper` that one: the other has to be empty (zeros, or what is no finite number), or the same up to
    `2^(2-b) sqrt(a_ii a_jj)` for numbers of `b` bits, or else `NotSymmetricError` is raised: the answer would be that
    for another matrix. With `lower_only` or `upper_only` the other one is not looked at.
context: a `Context` (threads, memory limit, kernel); by default one for the process.
progress: called with `(done, total)` a few times in a second, on the calling thread; an exception in it cancels the
    call.
out: a NumPy array of objects or doubles that takes the result and is returned.
report: a `Report`, or any dictionary, that takes the numbers of the call: memory planned, kernel, seconds.

Balls: where an operand of `gemm`, `syrk`, `solve`, `inverse`, `cholesky` or `log_det` is an `arb_mat` or holds `arb`, the
result does, and contains the exact one for every point of the balls; the other operands are points. `ValueError` where
it cannot be shown that all points are regular, or positive definite.

Every function raises `TypeError` and `ValueError` with the place of an entry that cannot be taken, `ValueError` for
shapes that do not fit, `OverflowError` for results too large for a `float`, `MemoryLimitError` (a `MemoryError`) with
the least limit that would do. The interpreter's lock
is free while a call computes, and Ctrl-C ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._reports import Plan
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle

Progress = Callable[[int, int], object]


def syrk(
    p: Any,
    *,
    transpose: bool = False,
    uplo: _Triangle | None = None,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    exact: bool = False,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """`alpha PᵀP + beta C` (with `transpose` `alpha P Pᵀ + beta C`), of the same kind as `p`.

    Shapes: `p` is K x N, the result and `c` are N x N. `c` is symmetric: both of its triangles are
    read and must agree, unless `uplo` names the one that counts; the other is then empty or the same up to rounding.
    Accuracy: `|computed - exact| <= 2^(1 - precision) |Pᵀ| |P|` for every entry, by norms
    `2^(1 - precision) ||p_i|| ||p_j||`; with `exact` the entries are integers and the
    result is exact, at a precision that holds it: strings and fractions are read exactly, and have to be integers.
    Cost: K N (N + 1) / 2 word products for each of about (2 precision + log2 K) / 52 primes.

    >>> import sunzi
    >>> sunzi.syrk([[1, 2], [3, 4]], exact=True)
    [[Fraction(10, 1), Fraction(14, 1)], [Fraction(14, 1), Fraction(20, 1)]]
    >>> sunzi.syrk([[1.0, 2.0]], c=[[1.0, 0.0], [5.0, 1.0]], uplo="lower")
    [[2.0, 7.0], [7.0, 5.0]]
    """
    options = {"transpose": transpose, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c, "exact": exact}
    return _sunzi.syrk(p, options | _shared(accuracy, precision, context, progress, out, report))


def gemm(
    a: Any,
    b: Any,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: Any = None,
    beta: Any = None,
    c: Any = None,
    exact: bool = False,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """`alpha op(A) op(B) + beta C`, of the same kind as `a`.

    Shapes: `op(A)` is M x K, `op(B)` is K x N, the result and `c` are M x N.
    Accuracy: `|computed - exact| <= 2^(1 - precision) |A| |B|` for every entry, by norms
    `2^(1 - precision) ||a_i|| ||b_j||`; `exact` as in `syrk`. Where `op(B)` is the transpose of `op(A)` in the same
    memory (two views of one `Matrix`), half of the work is spared.
    Cost: M N K word products for each prime.

    >>> import sunzi
    >>> sunzi.gemm([[1, 2]], [[3], [4]], exact=True)
    [[Fraction(11, 1)]]
    """
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.gemm(a, b, options | {"exact": exact} | _shared(accuracy, precision, context, progress, out, report))


def trsm(
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
    """The solution `X` of `op(T) X = alpha B` (`side="right"`: of `X op(T) = alpha B`), of the same kind as `b`.

    Shapes: `t` is n x n, of which one triangle is read (with `unit` without its diagonal); `b` is n x m, on the right
    side m x n.
    Accuracy: `|alpha B - op(T) X| <= 2^(1 - precision) |op(T)| |X|` for every entry, whatever the condition, by norms
    `2^(1 - precision) (||t_i|| ||x_j|| + |alpha b_ij|)`.
    Cost: n² m / 2 word products for each of about 2 precision / 52 primes.
    Raises `SingularError` with the `index` of the first 0 on the diagonal.

    >>> import sunzi
    >>> sunzi.trsm([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0])
    [1.0, 2.0]
    """
    options = {"side": side, "uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trsm(t, b, options | _shared(accuracy, precision, context, progress, out, report))


def cholesky(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """The lower triangular `L` with `A = L Lᵀ` for a symmetric positive definite `A`, of the same kind as `a`.

    Shapes: `a` is n x n: both triangles are read and must agree, unless `uplo` names the one that counts; the other is
    then empty or the same up to rounding, or with `lower_only` or `upper_only` not even looked at. With `upper` and
    `upper_only` the result is `U = Lᵀ` with `A = UᵀU`.
    Accuracy: `|A - L Lᵀ| <= 2^(2 - precision) |L| |Lᵀ|` for every entry, by norms
    `2^(2 - precision) sqrt(a_ii a_jj)`, whatever n and the condition of `A`. `report["accuracy"]` is `norm` where the
    factor has entries so much smaller than all of the matrix that no number of bits tried was enough;
    `report["missing_bits"]` says by how much.
    Cost: n³ / 6 word products for each of about 2 precision / 52 primes.
    Raises `NotPositiveDefiniteError` with the `index` (from 0) of the first computed pivot that is not positive;
    `NotSymmetricError` with the `place` of the first entry that differs from its mirror image.

    >>> import sunzi
    >>> sunzi.cholesky([[4.0, 2.0], [2.0, 10.0]])
    [[2.0, 0.0], [1.0, 3.0]]
    >>> sunzi.cholesky([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
        ...
    sunzi.NotPositiveDefiniteError: the matrix is not positive definite: index 1: ...
    """
    return _sunzi.cholesky(a, {"uplo": uplo} | _shared(accuracy, precision, context, progress, out, report))


def solve(
    a: Any,
    b: Any,
    *,
    uplo: _Triangle | None = None,
    factor_precision: int | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """The solution `X` of `A X = B` for a symmetric positive definite `A`, of the same kind as `b`.

    Shapes: `a` is n x n, symmetric or with one triangle named by `uplo`, as in `cholesky`; `b` and the result are
    n x m, or flat with n entries.
    Accuracy: `|b - A x| <= 2^(4 - precision) (|L| |Lᵀ| |x| + |b|)` for every entry, by norms
    `2^(4 - precision) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`. With
    `factor_precision`, fewer bits, the factor is cheaper and the solution refined until
    `|b - A x| <= 2^(1 - precision) (|A| |x| + |b|)` for every entry.
    Cost: one factorisation and n² m. `Cholesky` keeps the factor for several calls.
    Raises `NotPositiveDefiniteError`, `NotSymmetricError`; `ValueError` where the refinement does not converge.

    >>> import sunzi
    >>> sunzi.solve([[4.0, 2.0], [2.0, 10.0]], [8.0, 22.0])
    [1.0, 2.0]
    >>> sunzi.solve([[1.0, 2.0**-60], [2.0**-60, 1.0]], [1.0, 0.0])[1] == -(2.0**-60)
    True
    """
    options = {"uplo": uplo, "factor_precision": factor_precision}
    return _sunzi.solve(a, b, options | _shared(accuracy, precision, context, progress, out, report))


def log_det(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """`log det A` for a symmetric positive definite `A`, one number of the type of its entries; see `cholesky`.

    >>> import sunzi
    >>> sunzi.log_det([[4.0, 2.0], [2.0, 10.0]])
    3.58351893845611
    """
    return _sunzi.log_det(a, {"uplo": uplo} | _shared(accuracy, precision, context, progress, None, None))


def plan(
    operation: Literal["syrk", "gemm", "cholesky", "trsm", "solve", "inverse"],
    *sizes: int,
    precision: int,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    range_bits: int | None = None,
    factor_precision: int | None = None,
    context: Context | None = None,
) -> Plan:
    """What a call would take, as a `Plan`: bytes in all (`planned_bytes`) and by part, kernel, primes, tiles.

    `plan("syrk", rows, cols)`, `plan("gemm", rows, cols, contracted)`, `plan("cholesky", order)`,
    `plan("trsm", order, columns)`, `plan("solve", order, columns)`, `plan("inverse", order)`. Nothing is computed.
    `factor_precision=` plans the refined solve of `solve`.
    The bytes are those beside the operands in the library's form, the result included; a call on Python numbers also
    takes 8 (1 + ceil(bits / 64)) bytes for each entry of an operand while it lasts. With accuracy entry by entry a call
    takes more bits the wider the entries are spread, `report["range_bits"]` of a call; `range_bits=` plans for so many,
    without it the entries are taken to be of one size.

    >>> import sunzi
    >>> sunzi.plan("cholesky", 100, precision=512).factor_bytes
    720000
    """
    options: dict[str, Any] = {"range_bits": range_bits, "factor_precision": factor_precision}
    shared = _shared(accuracy, precision, context, None, None, None)
    return Plan(_sunzi.plan(operation, list(sizes), options | shared))


def _shared(
    accuracy: Literal["entrywise", "norm"],
    precision: int | None,
    context: Context | None,
    progress: Progress | None,
    out: Any,
    report: dict[str, Any] | None,
) -> dict[str, Any]:
    numbers = {"accuracy": accuracy, "precision": precision}
    return numbers | {"context": context, "progress": progress, "out": out, "report": report}
