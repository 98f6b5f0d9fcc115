"""Symmetric matrices by their factors, measures of any matrix, and checks: signatures and documentation.

The options that all functions share are those of `_functions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sunzi import _sunzi
from sunzi._functions import Progress, _shared
from sunzi._reports import Verification
from sunzi._sunzi import Context

if TYPE_CHECKING:
    from sunzi._sunzi import _Triangle


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
    """`(L, d)` with `A = L D Lᵀ` for a symmetric `A`, without pivoting.

    `L` is unit lower triangular, of the same kind as `a`, and `d` the diagonal of `D`, flat.

    Shapes: `a` is n x n, symmetric or with one triangle named by `uplo`, as in `cholesky`.
    Accuracy: `|A - L D Lᵀ| <= 2^(3 - precision) |L| |D| |Lᵀ|` for every entry, by norms
    `2^(3 - precision) sqrt(g_i g_j)` with `g` the diagonal of `|L| |D| |Lᵀ|`. For positive definite and quasi-definite
    matrices `g` is of the size of `A`; for others it may be of any size: `Ldlt.growth` tells it.
    Cost: n³ / 6 word products for each of about 2 precision / 52 primes. `Ldlt` keeps the factors for solves.
    Raises `SingularError` with the `index` of a pivot that is 0, `NotSymmetricError`.

    >>> import sunzi
    >>> sunzi.ldlt([[1.0, 2.0], [2.0, -3.0]])
    ([[1.0, 0.0], [2.0, 1.0]], [1.0, -7.0])
    """
    options = {"uplo": uplo} | _shared(accuracy, precision, context, progress, None, report)
    return _sunzi.ldlt(a, options)


def inverse(
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
    """The inverse of a symmetric positive definite `A`, symmetric and of the same kind as `a`.

    Shapes: `a` is n x n, symmetric or with one triangle named by `uplo`, as in `cholesky`.
    Accuracy: with `Z = (L Lᵀ)⁻¹` for the Cholesky factor at this precision
    `|computed - Z|_ij <= 2^(2 - precision) sqrt(z_ii z_jj)`; how many digits of `A⁻¹` that leaves depends on the
    condition of `A`: about `report["digits"]`. `solve` is cheaper and more accurate where the inverse is only
    multiplied with.
    Cost: n³ / 2 word products for each prime, those of the inverse at a precision raised by half the bits of the
    condition.
    Raises `NotPositiveDefiniteError`, `NotSymmetricError`.

    >>> import sunzi
    >>> sunzi.inverse([[4.0, 2.0], [2.0, 2.0]])
    [[0.5, -0.5], [-0.5, 1.0]]
    """
    return _sunzi.inverse(a, {"uplo": uplo} | _shared(accuracy, precision, context, progress, out, report))


def det(
    a: Any,
    *,
    uplo: _Triangle | None = None,
    accuracy: Literal["entrywise", "norm"] = "entrywise",
    precision: int | None = None,
    context: Context | None = None,
    progress: Progress | None = None,
) -> Any:
    """The determinant of a symmetric positive definite `A`, one number of the type of its entries; see `cholesky`.

    Accuracy: that of the determinant of `L Lᵀ` to a unit of the last place; the relative error beside `det A` is the
    absolute one of `log_det`. Symmetric matrices that are not positive definite: `Ldlt(a).det()`.
    Cost: one factorisation. Raises as `cholesky`, `ValueError` for a determinant beyond all exponents, of which
    `log_det` is the logarithm.

    >>> import sunzi
    >>> sunzi.det([[4.0, 2.0], [2.0, 10.0]])
    36.0
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
    """An estimate of the condition `||A||₁ ||A⁻¹||₁` of a symmetric positive definite `A`, of the type of its entries.

    With `scaled` that of `A` with its diagonal scaled to about 1 by powers of two: its logarithm to base 2 is about how
    many bits solves lose.
    Accuracy: a lower bound, rarely off by more than a factor of 3; the precision has to be enough to factor `A`.
    Cost: one factorisation and at most five solves with two right sides. `Cholesky` keeps the factor.
    Raises as `cholesky`.

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
    """A norm of any matrix or vector, one number of the type of its entries.

    `fro`: the root of the sum of all squares, of a vector its length. 1: the largest sum of magnitudes of a column;
    `inf`, or `float("inf")`, of a row. `max`: the largest magnitude.
    Accuracy: one unit of the last place. Raises `ValueError` for another `ord`.

    >>> import sunzi
    >>> a = [[3.0, -4.0], [0.0, 12.0]]
    >>> [sunzi.norm(a, ord) for ord in ("fro", 1, "inf", "max")]
    [13.0, 16.0, 12.0, 12.0]
    """
    return _sunzi.norm(a, {"ord": ord} | _shared("entrywise", precision, context, progress, None, None))


def trace(a: Any, *, precision: int | None = None) -> Any:
    """The sum of the diagonal of any matrix, rounded once: one number of the type of its entries.

    >>> import sunzi
    >>> sunzi.trace([[1.0, 2.0], [3.0, 4.0]])
    5.0
    """
    return _sunzi.trace(a, _shared("entrywise", precision, None, None, None, None))


def diagonal(a: Any, *, precision: int | None = None) -> Any:
    """The diagonal of any matrix, flat where its container can be.

    >>> import sunzi
    >>> sunzi.diagonal([[1.0, 2.0], [3.0, 4.0]])
    [1.0, 4.0]
    """
    return _sunzi.diagonal(a, _shared("entrywise", precision, None, None, None, None))


def verify(
    operation: Literal["syrk", "gemm", "cholesky", "solve", "inverse", "trsm"],
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
    """Checks a result, by norms, with nothing that made it; the result is the last matrix.

    `verify("syrk", p, q)`: `q` is `PᵀP`, with `transpose_a` `P Pᵀ`. `verify("gemm", a, b, c)`: `c` is `op(A) op(B)`.
    `verify("cholesky", a, l)`: `l` is lower triangular with `A = L Lᵀ`, with `uplo="upper"` upper triangular with
    `A = UᵀU`. `verify("solve", a, b, x)`: `A X = B`. `verify("inverse", a, x)`: `A X = I`. `verify("trsm", t, b, x)`:
    `op(T) X = alpha B`, with `side="right"` `X op(T) = alpha B`; `transpose_a`, `uplo`, `unit` are those of `trsm`.
    `uplo` names the triangle of a symmetric matrix that counts.
    precision: the one at which the result was made; by default that which the last matrix brings along.
    Accuracy: a result within the bounds of the operation always passes. What is wrong in a product or a solution is
    found by random vectors and sampled entries, with `exact` by Freivalds' test modulo a random prime; every entry of
    `A - L Lᵀ` is compared exactly. A solution that passes keeps its equations: how many of its digits are right depends
    on the condition too, see `Cholesky.solution_digits`.
    Cost: products with a few vectors, for `cholesky` an exact product.
    Raises `CheckError` that names the worst entry and its bound.

    >>> import sunzi
    >>> a = [[4.0, 2.0], [2.0, 10.0]]
    >>> sunzi.verify("cholesky", a, sunzi.cholesky(a)).worst_entry
    0.0
    """
    options: dict[str, Any] = {"transpose_a": transpose_a, "transpose_b": transpose_b, "uplo": uplo}
    options |= {"side": side, "unit": unit, "alpha": alpha, "exact": exact, "seed": seed}
    shared = _shared("norm", precision, context, progress, None, None)
    return Verification(_sunzi.verify(operation, list(matrices), options | shared))
