"""Signatures and documentation of the functions on matrices; the native module does the work.

The docstring of the package `sunzi` describes the options of all functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._kinds import like_first, like_second
from sunzi._reports import Plan
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle

Progress = Callable[[int, int], object]


@like_first
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
    """Compute `alpha PᵀP + beta C` or, with `transpose`, `alpha P Pᵀ + beta C`.

    Parameters
    ----------
    p : matrix, K x N
        With `transpose`, P is N x K.
    alpha, beta : number, optional
        Scalars; the default is 1. `beta` requires `c`.
    c : matrix, N x N, optional
        Symmetric matrix. Both triangles are read and must agree, unless `uplo` names one of them.
    exact : bool
        Whether the entries are integers and the result must be exact; the result then has the precision that it needs.
        Strings and fractions are read exactly and must be integers.
    uplo, accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, N x N
        The symmetric result, of the same kind as `p`.

    Notes
    -----
    Accuracy: `|computed - exact| <= 2^(1 - precision) |Pᵀ| |P|` for every entry; with `accuracy="norm"`,
    `2^(1 - precision) ||p_i|| ||p_j||`.
    Cost: K N (N + 1) / 2 word products for each of about (2 precision + log2 K) / 52 primes.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.syrk([[1, 2], [3, 4]], exact=True)
    [[Fraction(10, 1), Fraction(14, 1)], [Fraction(14, 1), Fraction(20, 1)]]
    >>> sunzi.syrk([[1.0, 2.0]], c=[[1.0, 0.0], [5.0, 1.0]], uplo="lower")
    [[2.0, 7.0], [7.0, 5.0]]
    """
    options = {"transpose": transpose, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c, "exact": exact}
    return _sunzi.syrk(p, options | _shared(accuracy, precision, context, progress, out, report))


@like_first
def weighted_gram(
    p: Any,
    d: Any,
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
    """Compute `alpha Pᵀ diag(d) P + beta C` or, with `transpose`, `alpha P diag(d) Pᵀ + beta C`.

    Parameters
    ----------
    p : matrix, K x N
        With `transpose`, P is N x K.
    d : vector, K
        Weights of either sign.
    alpha, beta, c, exact, uplo, accuracy, precision, context, progress, out, report
        As in `syrk`.

    Returns
    -------
    matrix, N x N
        The symmetric result, of the same kind as `p`.

    Notes
    -----
    Accuracy: `|computed - exact| <= 2^(1 - precision) |Pᵀ| |D| |P|` for every entry; with `accuracy="norm"`,
    `2^(1 - precision) r_i r_j`, where `r_i` is the square root of `(Pᵀ |D| P)_ii`.
    Cost: between half and five eighths of that of `gemm`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.weighted_gram([[1.0, 3.0], [2.0, 4.0]], [10.0, -1.0])
    [[6.0, 22.0], [22.0, 74.0]]
    """
    options = {"transpose": transpose, "uplo": uplo, "alpha": alpha, "beta": beta, "c": c, "exact": exact}
    return _sunzi.weighted_gram(p, d, options | _shared(accuracy, precision, context, progress, out, report))


@like_first
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
    """Compute `alpha op(A) op(B) + beta C`.

    Parameters
    ----------
    a, b : matrix
        `op(A)` is M x K and `op(B)` is K x N; `op` is the transpose if `transpose_a` or `transpose_b` is set.
    alpha, beta : number, optional
        Scalars; the default is 1. `beta` requires `c`.
    c : matrix, M x N, optional
        Matrix that is added.
    exact : bool
        As in `syrk`.
    accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, M x N
        The result, of the same kind as `a`.

    Notes
    -----
    Accuracy: `|computed - exact| <= 2^(1 - precision) |op(A)| |op(B)|` for every entry; with `accuracy="norm"`,
    `2^(1 - precision) ||a_i|| ||b_j||` with the norms of rows of `op(A)` and columns of `op(B)`.
    Cost: M N K word products for each prime; half of that if `op(B)` is the transpose of `op(A)` in the same memory
    (two views of one `Matrix`).

    Examples
    --------
    >>> import sunzi
    >>> sunzi.gemm([[1, 2]], [[3], [4]], exact=True)
    [[Fraction(11, 1)]]
    """
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "beta": beta, "c": c}
    return _sunzi.gemm(a, b, options | {"exact": exact} | _shared(accuracy, precision, context, progress, out, report))


@like_second
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
    """Solve the triangular system `op(T) X = alpha B` or, with `side="right"`, `X op(T) = alpha B`.

    Parameters
    ----------
    t : matrix, n x n
        Triangular matrix, of which the triangle `uplo` is read (with `unit`, its diagonal is not read and consists of
        ones).
    b : matrix, n x m
        Right-hand sides; m x n for `side="right"`.
    transpose : bool
        `op(T)` is `Tᵀ`.
    alpha : number, optional
        Scalar; the default is 1.
    accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix
        The solution X, with the shape and of the same kind as `b`.

    Raises
    ------
    SingularError
        The diagonal has a zero; `index` is the index of the first one.

    Notes
    -----
    Accuracy: `|alpha B - op(T) X| <= 2^(1 - precision) |op(T)| |X|` for every entry and any condition; with
    `accuracy="norm"`, `2^(1 - precision) (||t_i|| ||x_j|| + |alpha b_ij|)`.
    Cost: n² m / 2 word products for each of about 2 precision / 52 primes.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.trsm([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0])
    [1.0, 2.0]
    """
    options = {"side": side, "uplo": uplo, "transpose": transpose, "unit": unit, "alpha": alpha}
    return _sunzi.trsm(t, b, options | _shared(accuracy, precision, context, progress, out, report))


@like_first
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
    """Compute the lower triangular `L` with `A = L Lᵀ` for a symmetric positive definite `A`.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric positive definite matrix.
    uplo : str, optional
        Triangle that is read; see `help(sunzi)`. With `upper` and `upper_only` the result is `U = Lᵀ` with `A = UᵀU`.
    accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, n x n
        The triangular factor, of the same kind as `a`.

    Raises
    ------
    NotPositiveDefiniteError
        `index` (from 0) is the first computed pivot that is not positive.
    NotSymmetricError
        `place` is the first entry that differs from its mirror image.

    Notes
    -----
    Accuracy: `|A - L Lᵀ| <= 2^(2 - precision) |L| |Lᵀ|` for every entry, any n and any condition of `A`; with
    `accuracy="norm"`, `2^(2 - precision) sqrt(a_ii a_jj)`. `report["accuracy"]` is `norm` if entries of the factor are
    so small relative to the matrix that none of the working precisions tried was sufficient; `report["missing_bits"]`
    is the number of missing bits.
    Cost: n³ / 6 word products for each of about 2 precision / 52 primes.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.cholesky([[4.0, 2.0], [2.0, 10.0]])
    [[2.0, 0.0], [1.0, 3.0]]
    >>> sunzi.cholesky([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
        ...
    sunzi.NotPositiveDefiniteError: the matrix is not positive definite: index 1: ...
    """
    return _sunzi.cholesky(a, {"uplo": uplo} | _shared(accuracy, precision, context, progress, out, report))


@like_second
def solve(
    a: Any,
    b: Any,
    *,
    uplo: _Triangle | None = None,
    factor_precision: int | None = None,
    digits: int | None = None,
    certified: bool = False,
    dps: int | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | Literal["auto"] | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    out: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """Solve `A X = B` for a square `A`.

    Parameters
    ----------
    a : matrix, n x n
        Any square matrix. A symmetric positive definite one is factored by Cholesky. One that is not symmetric, or
        proven not to be positive definite, is factored by LU with partial pivoting, see `lu`; but the options `uplo`
        and `factor_precision` require a symmetric positive definite matrix.
    b : matrix, n x m, or flat with n entries
        Right-hand sides.
    factor_precision : int, optional
        Precision of the factor, smaller than `precision`. The factorisation is cheaper, and the solution is refined.
    digits : int, optional
        Number of correct digits of the result, in the maximum norm of the worst column. The call searches for the
        smallest precision, to within a few bits, at which an estimate or, with `certified`, a proof shows that the
        result has this number of correct digits. `precision="auto"` requests 30 digits, or the number that the type of
        the results holds (15 for `float`); `report["precision_bits"]` is the precision that was found.
    certified : bool
        Prove how many digits are correct and store the number as `report["certified"]`, which about doubles the work.
        It requires `report` or `digits`. The number is 0 if no proof is found.
    dps : int, optional
        Precision of the result in decimal digits, in place of `precision`; converted to bits as mpmath does.
    uplo, accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix
        The solution X, with the shape and of the same kind as `b`.

    Raises
    ------
    SingularError
        By LU: no pivot is found, see `lu`.
    NotPositiveDefiniteError, NotSymmetricError
        As `cholesky`, in three cases: with an option that requires a symmetric positive definite matrix; for a
        symmetric matrix that is proven to be singular; and if this precision does not decide whether the matrix is
        positive definite (pass a larger precision, or use `lu`).
    ValueError
        The refinement does not converge, or no precision within reach gives `digits`.

    Notes
    -----
    Accuracy: `|b - A x| <= 2^(4 - precision) (|L| |Lᵀ| |x| + |b|)` for every entry; with `accuracy="norm"`,
    `2^(4 - precision) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)`; with `factor_precision`,
    `|b - A x| <= 2^(1 - precision) (|A| |x| + |b|)`; by LU as `Lu.solve`.
    `report.factorisation.operation` is the factorisation that was used, `cholesky` or `lu`. `report.digits`, an
    estimate of the number of correct digits, exists with Cholesky only.
    Cost: one factorisation, and n² m word products for each prime. `Cholesky` and `Lu` keep the factors for several
    calls. With `digits` one to four precisions are tried.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.solve([[4.0, 2.0], [2.0, 10.0]], [8.0, 22.0])
    [1.0, 2.0]
    >>> sunzi.solve([[1.0, 2.0], [4.0, 4.0]], [5.0, 12.0])
    [1.0, 2.0]
    >>> sunzi.solve([[1.0, 2.0**-60], [2.0**-60, 1.0]], [1.0, 0.0])[1] == -(2.0**-60)
    True
    >>> report = sunzi.Report()
    >>> x = sunzi.solve([["3", "1"], ["1", "2"]], ["1", "0"], digits=40, certified=True, report=report)
    >>> report.digits >= report.certified >= 40, report.precision_bits < 200
    (True, True)
    """
    options: dict[str, Any] = {"uplo": uplo, "factor_precision": factor_precision}
    options |= {"digits": digits, "certified": certified, "dps": dps}
    return _sunzi.solve(a, b, options | _shared(accuracy, precision, context, progress, out, report))


def log_det(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    certified: bool = False,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Compute `log det A` for a symmetric positive definite `A`.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric positive definite matrix; see `cholesky`.
    certified : bool
        The result is two fractions, between which the logarithm is proven to lie. The proof holds for the numbers as
        they are given, before fractions and decimals are rounded, and for every matrix in given balls.
    uplo, accuracy, precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    number
        The logarithm, of the type of the entries of `a`; with `certified` a pair `(low, high)` of fractions.

    Raises
    ------
    NotPositiveDefiniteError, NotSymmetricError
        As `cholesky`.
    ValueError
        With `certified` and for balls: no proof is found that the determinant is positive.

    Notes
    -----
    Accuracy with `certified`: the interval is a few units in the last place wide. Cost: a factorisation and an inverse,
    with as many bits as the condition requires.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.log_det([[4.0, 2.0], [2.0, 10.0]])
    3.58351893845611
    >>> low, high = sunzi.log_det([["1/3", "0"], ["0", "3"]], precision=60, certified=True)
    >>> low <= 0 <= high, float(high - low) < 1e-17
    (True, True)
    """
    return _sunzi.log_det(a, {"uplo": uplo, "certified": certified} | _shared(accuracy, precision, context, progress, None, None))


def plan(
    operation: Literal["syrk", "gemm", "cholesky", "trsm", "solve", "inverse"],
    *sizes: int,
    precision: int,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    range_bits: int | None = None,
    factor_precision: int | None = None,
    context: Context | None = None,
) -> Plan:
    """Compute the memory that a call would take; nothing else is computed.

    Parameters
    ----------
    operation, *sizes
        `plan("syrk", rows, cols)`, `plan("gemm", rows, cols, contracted)`, `plan("cholesky", order)`,
        `plan("trsm", order, columns)`, `plan("solve", order, columns)` or `plan("inverse", order)`.
    precision : int
        Precision of the result in bits.
    range_bits : int, optional
        Additional bits for the range of the exponents with `accuracy="entrywise"`: the wider the range of magnitudes of
        the entries, the more bits a call needs; `report["range_bits"]` of a call is the number that it needed. By
        default the plan assumes that all entries are of equal magnitude.
    factor_precision : int, optional
        Precision of the factor, for the plan of a refined solve; see `solve`.
    accuracy, context
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    Plan
        Total bytes (`planned_bytes`), bytes of the parts, kernel, primes, tiles.

    Notes
    -----
    The bytes include the result but not the operands in the library's format. A call on Python numbers also takes 8 (1
    + ceil(bits / 64)) bytes for each entry of an operand while it runs.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.plan("cholesky", 100, precision=512).factor_bytes
    720000
    """
    options: dict[str, Any] = {"range_bits": range_bits, "factor_precision": factor_precision}
    shared = _shared(accuracy, precision, context, None, None, None)
    return Plan(_sunzi.plan(operation, list(sizes), options | shared))


def _shared(
    accuracy: Literal["entrywise", "norm"],
    precision: int | Literal["auto"] | None,
    context: Context | None,
    progress: Progress | None,
    out: Any,
    report: dict[str, Any] | None,
) -> dict[str, Any]:
    numbers = {"accuracy": accuracy, "precision": precision}
    return numbers | {"context": context, "progress": progress, "out": out, "report": report}
