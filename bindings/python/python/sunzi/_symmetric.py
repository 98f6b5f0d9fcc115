"""Signatures and documentation of factors, inverses, norms, and checks of results.

The docstring of the package `sunzi` describes the options of all functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._functions import Progress, _shared
from sunzi._kinds import like_first, pair_like_first
from sunzi._reports import Verification
from sunzi._sunzi import Context, Lu

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle


@pair_like_first
def ldlt(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Factor a symmetric `A` as `A = L D Lᵀ`, without pivoting.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric matrix, which need not be positive definite.
    uplo, accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    tuple
        `(L, d)`: the unit lower triangular `L`, of the same kind as `a`, and the diagonal `d` of `D` as a flat list or
        array.

    Raises
    ------
    SingularError
        A pivot is 0; `index` is its index.
    NotSymmetricError
        As `cholesky`.

    Notes
    -----
    Accuracy: `|A - L D Lᵀ| <= 2^(3 - precision) |L| |D| |Lᵀ|` for every entry; with `accuracy="norm"`,
    `2^(3 - precision) sqrt(g_i g_j)`, where `g` is the diagonal of `|L| |D| |Lᵀ|`. For positive definite matrices `g_i`
    is about `a_ii`, and for quasi-definite ones it is moderate; for other matrices it may have any size, which
    `Ldlt.growth` measures. Cost: n³ / 6 word products for each of about 2 precision / 52 primes. `Ldlt` keeps the
    factors for solves.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.ldlt([[1.0, 2.0], [2.0, -3.0]])
    ([[1.0, 0.0], [2.0, 1.0]], [1.0, -7.0])
    """
    options = {"uplo": uplo} | _shared(accuracy, precision, context, progress, None, report)
    return _sunzi.ldlt(a, options)


def lu(
    a: Any,
    *,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> Lu:
    """Factor any square `A` as `P A = L U`, with partial pivoting.

    Parameters
    ----------
    a : matrix, n x n
        Any square matrix. Balls must have the radius 0.
    accuracy, precision, context, progress, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    Lu
        The factors `lower` (unit lower triangular) and `upper`, and the order of the rows `rows`: row `i` of `P A` is
        row `rows[i]` of `A`. Its methods are `solve`, `inverse` and `det`.

    Raises
    ------
    SingularError
        In column `index` all candidates for the pivot are 0 at the working precision: the matrix is singular, or a
        singular one lies within the rounding.
    ValueError
        The matrix is not square.

    Notes
    -----
    Accuracy: `|P A - L U| <= 2^(2 - precision) |L| |U|` for every entry and any n; with `accuracy="norm"`,
    `2^(2 - precision) ((|L| |U|)_ij + max(m_j, |u_jj|))`, where `m_j` is the largest magnitude in column j of `A`.
    `report["accuracy"]` is the one that was reached, and `report["growth_bits"]` bounds the growth of `U`. The number
    of correct digits of solutions depends on the condition of `A`; `solve` and `inverse` estimate or prove it.
    Cost: n³ / 3 word products for each of about 2 precision / 52 primes. The pivot is the largest candidate of its
    column, and among equals the first, as in LAPACK; rows whose magnitudes differ by a factor of more than 2^32 are
    compared as if powers of two had scaled them to equal magnitude. `P, L, U` of `scipy.linalg.lu`, with `A = P L U`,
    are `p`, `lower` and `upper`, where `p[rows[i], i]` is 1 for every `i` and all other entries of `p` are 0.

    Examples
    --------
    >>> import sunzi
    >>> factors = sunzi.lu([[1.0, 2.0], [4.0, 4.0]])
    >>> factors.rows, factors.lower.to_list(), factors.upper.to_list()
    ([1, 0], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    >>> factors.solve([5.0, 12.0]), factors.solve([1.0, 0.0], transposed=True)
    ([1.0, 2.0], [-1.0, 0.5])
    """
    return _sunzi.lu(a, _shared(accuracy, precision, context, progress, None, report))


@like_first
def inverse(
    a: Any,
    *,
    uplo: _Triangle | None = None,
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
    """Compute the inverse of a square `A`.

    Parameters
    ----------
    a : matrix, n x n
        Any square matrix, factored as in `solve`: by Cholesky if it is symmetric positive definite, else by LU.
    digits, certified, dps
        As in `solve`, for the inverse in the maximum norm.
    uplo, accuracy, precision, context, progress, out, report
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    matrix, n x n
        The inverse, of the same kind as `a`; symmetric if it was made by Cholesky.

    Raises
    ------
    SingularError, NotPositiveDefiniteError, NotSymmetricError
        As `solve`.
    ValueError
        No precision within reach gives `digits`.

    Notes
    -----
    Accuracy: `|computed - Z|_ij <= 2^(2 - precision) sqrt(z_ii z_jj)` with `Z = (L Lᵀ)⁻¹` for the Cholesky factor `L`
    at this precision; by LU, each column has the bound of `solve`. The number of correct digits of `A⁻¹` depends on the
    condition of `A`; `report["digits"]` estimates it, with Cholesky only. To multiply with the inverse, use `solve`,
    which is cheaper and more accurate.
    Cost: n³ / 2 word products for each prime, by LU 4 n³ / 3. With Cholesky the part for the inverse runs with
    additional bits, half the binary logarithm of the condition number.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.inverse([[4.0, 2.0], [2.0, 2.0]])
    [[0.5, -0.5], [-0.5, 1.0]]
    >>> sunzi.inverse([[1.0, 2.0], [4.0, 4.0]])
    [[-1.0, 0.5], [1.0, -0.25]]
    """
    options = {"uplo": uplo, "digits": digits, "certified": certified, "dps": dps}
    return _sunzi.inverse(a, options | _shared(accuracy, precision, context, progress, out, report))


def det(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Compute the determinant of a square `A`.

    Parameters
    ----------
    a : matrix, n x n
        Any square matrix, factored as in `solve`: by Cholesky if it is symmetric positive definite, else by LU.
    uplo, accuracy, precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    number
        The determinant, of the type of the entries of `a`.

    Raises
    ------
    SingularError, NotPositiveDefiniteError, NotSymmetricError
        As `solve`: a singular matrix raises an error, and the result is never 0.
    ValueError
        The exponent of the determinant is out of range; use `log_det`.

    Notes
    -----
    Accuracy: the determinant of `L Lᵀ` to one unit in the last place, for the factor `L` of `cholesky`. Let `S` be `A`
    with rows and columns scaled such that its diagonal is 1, and `e = n 2^(3 - precision) ||S⁻¹||₂`. If `n e <= 1/2`,
    the relative error with respect to `det A` is at most `3 n e` plus one unit in the last place. This relative error
    is nearly the absolute error of `log_det`; `Cholesky.log_det_digits` estimates or proves the number of correct
    digits of `log_det`. By LU, the determinant of `Pᵀ L U` to one unit in the last place; its error with respect to
    `det A` is not known.
    Cost: one factorisation.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.det([[4.0, 2.0], [2.0, 10.0]]), sunzi.det([[1.0, 2.0], [4.0, 4.0]])
    (36.0, -4.0)
    """
    return _sunzi.det(a, {"uplo": uplo} | _shared(accuracy, precision, context, progress, None, None))


def condition(
    a: Any,
    *,
    scaled: bool = False,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Estimate the condition number `||A||₁ ||A⁻¹||₁` of a symmetric positive definite `A`.

    Parameters
    ----------
    a : matrix, n x n
        Symmetric positive definite matrix.
    scaled : bool
        Estimate the condition of `A` after its diagonal has been scaled to about 1 by powers of two. Its logarithm to
        base 2 is about the number of bits that solves lose.
    uplo, accuracy, precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    number
        The estimate, of the type of the entries of `a`.

    Raises
    ------
    NotPositiveDefiniteError, NotSymmetricError
        As `cholesky`.

    Notes
    -----
    Accuracy: a lower bound, which is rarely too small by more than a factor of 3. The precision must suffice to factor
    `A`.
    Cost: one factorisation, and at most five solves with two right-hand sides. `Cholesky` keeps the factor.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.condition([[1.0, 0.0], [0.0, 0.0009765625]])
    1024.0
    """
    options = {"scaled": scaled, "uplo": uplo}
    return _sunzi.condition(a, options | _shared(accuracy, precision, context, progress, None, None))


def norm(
    a: Any,
    ord: Literal["fro", "max", "inf", 1] | float = "fro",  # noqa: A002
    *,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """Compute a norm of any matrix or vector.

    Parameters
    ----------
    a : matrix
        Any matrix or vector.
    ord : {'fro', 'max', 'inf', 1}
        `fro`: the square root of the sum of all squares; the Euclidean norm of a vector. 1: the largest sum of
        magnitudes in a column. `inf`, or `float("inf")`: the largest sum of magnitudes in a row. `max`: the largest
        magnitude.
    precision, context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    number
        The norm, of the type of the entries of `a`, to one unit in the last place.

    Raises
    ------
    ValueError
        `ord` is not one of these values.

    Examples
    --------
    >>> import sunzi
    >>> a = [[3.0, -4.0], [0.0, 12.0]]
    >>> [sunzi.norm(a, ord) for ord in ("fro", 1, "inf", "max")]
    [13.0, 16.0, 12.0, 12.0]
    """
    return _sunzi.norm(a, {"ord": ord} | _shared("entrywise", precision, context, progress, None, None))


def trace(a: Any, *, precision: int | None = None) -> Any:
    """Compute the sum of the diagonal of any matrix, rounded once: a number of the type of its entries.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.trace([[1.0, 2.0], [3.0, 4.0]])
    5.0
    """
    return _sunzi.trace(a, _shared("entrywise", precision, None, None, None, None))


@like_first
def diagonal(a: Any, *, precision: int | None = None) -> Any:
    """Return the diagonal of any matrix, as a flat list or array if the container has such a form.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.diagonal([[1.0, 2.0], [3.0, 4.0]])
    [1.0, 4.0]
    """
    return _sunzi.diagonal(a, _shared("entrywise", precision, None, None, None, None))


def verify(
    operation: Literal["syrk", "weighted_gram", "gemm", "cholesky", "solve", "inverse", "trsm"],
    *matrices: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    side: Literal["left", "right"] = "left",
    unit: bool = False,
    alpha: Any = None,
    uplo: _Triangle | None = None,
    exact: bool = False,
    seed: int | None = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check a result against its error bound by norms, independently of the code that computed it.

    Parameters
    ----------
    operation, *matrices
        The last matrix is the result. `verify("syrk", p, q)`: `q` is `PᵀP` or, with `transpose_a`, `P Pᵀ`.
        `verify("weighted_gram", p, d, q)`: `q` is `Pᵀ diag(d) P` or, with `transpose_a`, `P diag(d) Pᵀ`.
        `verify("gemm", a, b, c)`: `c` is `op(A) op(B)`. `verify("cholesky", a, l)`: `l` is lower triangular with
        `A = L Lᵀ` or, with `uplo="upper"`, upper triangular with `A = UᵀU`. `verify("solve", a, b, x)`: `A X = B`.
        `verify("inverse", a, x)`: `A X = I`. `verify("trsm", t, b, x)`: `op(T) X = alpha B` or, with `side="right"`,
        `X op(T) = alpha B`; `transpose_a`, `uplo` and `unit` are the options of `trsm`.
    uplo : str, optional
        Triangle of a symmetric matrix that is read; see `help(sunzi)`.
    exact : bool
        Whether the operands are integers and the product must be exact.
    seed : int, optional
        Seed of the random choices.
    precision : int, optional
        Precision at which the result was computed; the default is the precision of the last matrix.
    context, progress
        Options of all functions; see `help(sunzi)`.

    Returns
    -------
    Verification
        The extent of the check, and the largest error relative to its bound.

    Raises
    ------
    CheckError
        The result is wrong; the message names the worst entry and its bound.

    Notes
    -----
    A result within the bounds of the operation always passes. Random vectors and sampled entries find errors in
    products and solutions; with `exact` the check is Freivalds' test modulo a random prime; every entry of `A - L Lᵀ`
    is compared exactly. A solution that passes satisfies its equations; the number of its correct digits also depends
    on the condition, see `Cholesky.solution_digits`.
    Cost: products with a few vectors; for `cholesky` an exact product.

    Examples
    --------
    >>> import sunzi
    >>> a = [[4.0, 2.0], [2.0, 10.0]]
    >>> sunzi.verify("cholesky", a, sunzi.cholesky(a)).worst_entry
    0.0
    """
    options: dict[str, Any] = {"transpose_a": transpose_a, "transpose_b": transpose_b, "uplo": uplo}
    options |= {"side": side, "unit": unit, "alpha": alpha, "exact": exact, "seed": seed}
    shared = _shared("norm", precision, context, progress, None, None)
    return Verification(_sunzi.verify(operation, list(matrices), options | shared))
