"""Multiprecision dense linear algebra (2 to 5000 bits) through word-size residues.

Functions accept lists of rows, NumPy arrays, `mpmath.matrix`, `flint.arb_mat` and `Matrix`. Entries may be
`mpmath.mpf`, `gmpy2.mpfr`, `flint.arb`, `fractions.Fraction`, `decimal.Decimal`, `int`, `float` or decimal strings. A
result has the container and the number type of the operand that the function names. Results are bitwise reproducible:
they do not depend on threads, kernel, devices or memory limit.

Options of all functions
------------------------
A function accepts the keywords that its signature lists.

precision : int, optional
    Precision of the result in bits. The default is the largest precision among the operands: an `mpfr` has its own
    precision, `mpf` and `arb` have the precision of `mpmath.mp` and `flint.ctx`, and `float` has 53 bits. `int`,
    `Fraction`, `Decimal` and `str` have no precision; if all operands are of these types, `precision=` is required.
    Operands are used exactly, except that fractions and decimals are rounded: to this precision, or to 64 bits more in
    the operands of factorisations and solves. `solve` and `inverse` also accept `precision="auto"`, `digits=` and
    `dps=`.
accuracy : {'entrywise', 'norm'}
    Error bound of each entry. With `entrywise`, the default, the error is at most a small multiple of `2^-precision`
    times the sum of the magnitudes of the entry's terms, a componentwise bound. With `norm` it is at most a small
    multiple of `2^-precision` times the norms of a row and a column, which takes a little less time. Results that are
    requested to be exact are exact in both cases.
uplo : {'both', 'lower', 'upper', 'lower_only', 'upper_only'}, optional
    Triangle of a symmetric operand that is read. `both`, the default, reads both triangles, which must agree. `lower`
    and `upper` read one triangle; the other triangle must be empty (zeros, or entries that are not finite numbers), or
    equal up to `2^(2-b) sqrt(a_ii a_jj)` for numbers of `b` bits; otherwise `NotSymmetricError` is raised. `lower_only`
    and `upper_only` read one triangle and ignore the other.
context : Context, optional
    Threads, memory limit, kernel and devices of the call. The default is one context for the process.
progress : callable, optional
    The call invokes `progress(done, total)` a few times per second on the calling thread. An exception in it cancels
    the call and is raised.
out : numpy.ndarray, optional
    Array of objects or doubles that receives the result and is returned.
report : dict, optional
    A `Report`, or any dictionary. The call empties it and writes its statistics to it: planned memory, kernel, seconds.

Balls ----- If an operand of `gemm`, `syrk`, `trsm`, `solve`, `inverse`, `cholesky`, `Cholesky`, `det` or `log_det` is
an `arb_mat` or holds `arb`, the result holds balls too. They contain the exact result for every point of the operands'
balls; other operands have the radius 0. `ValueError` is raised if it cannot be shown that all matrices in the balls are
nonsingular or, for a Cholesky factorisation, positive definite.

Errors
------
All functions raise `TypeError` and `ValueError` with the place of an entry that is not accepted, `ValueError` for
shapes that do not match, `OverflowError` for a result that is too large for `float`, and `MemoryLimitError` (a
`MemoryError`) with the least sufficient memory limit. Calls release the interpreter's lock while they compute, and
Ctrl-C ends them.

>>> import sunzi
>>> sunzi.cholesky([["4", "2"], ["2", "10"]], precision=30)
[['2.0000000000', '0'], ['1.0000000000', '3.0000000000']]
"""

import sys

from sunzi import sdp
from sunzi._absent import absent
from sunzi._batches import cholesky_batch, gemm_batch, syrk_batch, trsm_batch
from sunzi._elementwise import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cbrt,
    ceil,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    log,
    log1p,
    log2,
    log10,
    reciprocal,
    rint,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from sunzi._functions import cholesky, gemm, log_det, plan, solve, syrk, trsm, weighted_gram
from sunzi._matrices import eye, hstack, vstack, zeros
from sunzi._reports import Plan, Report, Verification
from sunzi._sunzi import (
    CancelledError,
    CheckError,
    Cholesky,
    Context,
    DeviceError,
    Ldlt,
    Lu,
    Matrix,
    MemoryLimitError,
    NotPositiveDefiniteError,
    NotSymmetricError,
    SingularError,
    __version__,
    kernels,
)
from sunzi._symmetric import condition, det, diagonal, inverse, ldlt, lu, norm, trace, verify
from sunzi._vectors import (
    axpy,
    dot,
    extreme_eigenvalue,
    gemv,
    ger,
    nrm2,
    pencil_eigenvalue,
    symm,
    symv,
    syr2k,
    trmm,
    trmv,
    trsv,
)

__all__ = [
    "CancelledError",
    "CheckError",
    "Cholesky",
    "Context",
    "DeviceError",
    "Ldlt",
    "Lu",
    "Matrix",
    "MemoryLimitError",
    "NotPositiveDefiniteError",
    "NotSymmetricError",
    "Plan",
    "Report",
    "SingularError",
    "Verification",
    "__version__",
    "absolute",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "axpy",
    "cbrt",
    "ceil",
    "cholesky",
    "cholesky_batch",
    "condition",
    "cos",
    "cosh",
    "det",
    "diagonal",
    "dot",
    "exp",
    "expm1",
    "extreme_eigenvalue",
    "eye",
    "floor",
    "gemm",
    "gemm_batch",
    "gemv",
    "ger",
    "hstack",
    "inverse",
    "kernels",
    "ldlt",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_det",
    "lu",
    "norm",
    "nrm2",
    "pencil_eigenvalue",
    "plan",
    "reciprocal",
    "rint",
    "sdp",
    "sign",
    "sin",
    "sinh",
    "solve",
    "sqrt",
    "square",
    "symm",
    "symv",
    "syr2k",
    "syrk",
    "syrk_batch",
    "tan",
    "tanh",
    "trace",
    "trmm",
    "trmv",
    "trsm",
    "trsm_batch",
    "trsv",
    "trunc",
    "verify",
    "vstack",
    "weighted_gram",
    "zeros",
]


def __getattr__(name: str) -> object:
    raise AttributeError(absent(name), name=name, obj=sys.modules[__name__])
