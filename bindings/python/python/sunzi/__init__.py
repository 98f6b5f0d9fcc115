"""Dense linear algebra on big floats (2 to 5000 bits), through word-size residues.

Functions take lists of rows, NumPy arrays, `mpmath.matrix`, `flint.arb_mat` or `Matrix`, of `mpmath.mpf`, `gmpy2.mpfr`,
`flint.arb`, `fractions.Fraction`, `decimal.Decimal`, `int`, `float` or decimal strings, and return the same kind.
Results have the same bits on any number of threads, kernel or memory limit.

>>> import sunzi
>>> sunzi.cholesky([["4", "2"], ["2", "10"]], precision=30)
[['2.0000000000', '0'], ['1.0000000000', '3.0000000000']]
"""

import sys

from sunzi._absent import absent
from sunzi._batches import cholesky_batch, gemm_batch, syrk_batch, trsm_batch
from sunzi._functions import cholesky, gemm, log_det, plan, solve, syrk, trsm
from sunzi._matrices import hstack, vstack
from sunzi._reports import Plan, Report, Verification
from sunzi._sunzi import (
    CancelledError,
    CheckError,
    Cholesky,
    Context,
    DeviceError,
    Ldlt,
    Matrix,
    MemoryLimitError,
    NotPositiveDefiniteError,
    NotSymmetricError,
    SingularError,
    __version__,
    kernels,
)
from sunzi._symmetric import condition, det, diagonal, inverse, ldlt, norm, trace, verify
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
    "Matrix",
    "MemoryLimitError",
    "NotPositiveDefiniteError",
    "NotSymmetricError",
    "Plan",
    "Report",
    "SingularError",
    "Verification",
    "__version__",
    "axpy",
    "cholesky",
    "cholesky_batch",
    "condition",
    "det",
    "diagonal",
    "dot",
    "extreme_eigenvalue",
    "gemm",
    "gemm_batch",
    "gemv",
    "ger",
    "hstack",
    "inverse",
    "kernels",
    "ldlt",
    "log_det",
    "norm",
    "nrm2",
    "pencil_eigenvalue",
    "plan",
    "solve",
    "symm",
    "symv",
    "syr2k",
    "syrk",
    "syrk_batch",
    "trace",
    "trmm",
    "trmv",
    "trsm",
    "trsm_batch",
    "trsv",
    "verify",
    "vstack",
]


def __getattr__(name: str) -> object:
    raise AttributeError(absent(name), name=name, obj=sys.modules[__name__])
