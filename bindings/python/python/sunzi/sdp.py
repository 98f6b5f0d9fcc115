"""Semidefinite programs at any precision, from matrices of Python numbers, polynomials, or files of SDPB and SDPA.

    primal   min f + c^T x             subject to   X = sum_p x_p A_p - C >= 0,   B^T x = b
    dual     max f + C . Y + b^T y     subject to   A_p . Y + (B y)_p = c_p,      Y >= 0

`solve` takes c, C and the matrices A_p block by block. `solve_polynomials` takes a program in the form of SDPB's
pmp2sdp. `solve_file` takes a file that `sunzi sdp` reads.

Options of all functions
------------------------
precision : int, optional
    Precision of all numbers in bits. The default is 400, as in SDPB, or more if the given numbers have more.
context : Context, optional
    Threads, and a memory limit for everything except the program. A solution is bitwise the same for any number of
    threads.
progress : callable, optional
    The run calls it with each `Iteration`. An exception in it ends the run and is raised, as is Ctrl-C.
checkpoint : path, optional
    Folder for checkpoints. A run continues from the checkpoint in the folder, if there is one. It writes a checkpoint
    every `checkpoint_interval` seconds, at its end, and, with the state after the last iteration, if an exception or
    Ctrl-C ends it.
initial_checkpoint : path, optional
    Folder with a checkpoint from which the run starts: one of this package or of `sunzi sdp`, or the text files of
    SDPB.
checkpoint_interval : float, optional
    Seconds between two checkpoints; 3600 by default.
**options
    The options of `Options`, with the names and the meanings of SDPB.

A run that continues at the same precision gives bitwise the same solution as a run without interruption. A checkpoint
of another program is refused in `checkpoint`; in `initial_checkpoint` it provides the starting point if the blocks have
the same sizes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from sunzi import _sunzi
from sunzi._reports import Numbers
from sunzi._sunzi import Context, Matrix

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sunzi._sunzi import _Numbers

__all__ = ["Iteration", "Options", "Solution", "solve", "solve_file", "solve_polynomials"]

_DEFAULT_BITS = 400


class Options(TypedDict, total=False):
    """Options of the solver: the names, meanings and defaults of SDPB; for `solve`, the defaults of SDPA-GMP.

    Numbers may have any type; strings such as `"1e-40"` are accepted.
    """

    findPrimalFeasible: bool
    """End the run at a primal feasible point; False by default."""
    findDualFeasible: bool
    """End the run at a dual feasible point; False by default."""
    detectPrimalFeasibleJump: bool
    """End the run after a primal step of 1; False by default."""
    detectDualFeasibleJump: bool
    """End the run after a dual step of 1; False by default."""
    ramp: bool
    """Compute the first iterations with fewer bits; True by default."""
    maxIterations: int
    """Largest number of iterations; 500 by default."""
    maxRuntime: int
    """Largest duration in seconds; no limit by default."""
    dualityGapThreshold: Any
    """Largest gap of an optimal point; 1e-30 by default."""
    primalErrorThreshold: Any
    """Largest error of a primal feasible point; 1e-30 by default."""
    dualErrorThreshold: Any
    """Largest error of a dual feasible point; 1e-30 by default."""
    initialMatrixScalePrimal: Any
    """X starts as this multiple of the identity; 1e20 by default, 1e4 for `solve` and files of SDPA."""
    initialMatrixScaleDual: Any
    """Y starts as this multiple of the identity; 1e20 by default, 1e4 for `solve` and files of SDPA."""
    feasibleCenteringParameter: Any
    """Least beta at feasible points, where steps aim at X Y = beta mu I; 0.1 by default."""
    infeasibleCenteringParameter: Any
    """Least beta at all other points, where steps aim at X Y = beta mu I; 0.3 by default."""
    stepLengthReduction: Any
    """Fraction of the distance to the boundary that a step takes; 0.7 by default, 0.9 for `solve` and files of SDPA."""
    minPrimalStep: Any
    """End the run if a primal step is smaller than this; 0 by default."""
    minDualStep: Any
    """End the run if a dual step is smaller than this; 0 by default."""
    maxComplementarity: Any
    """End the run if Tr(X Y) divided by the number of rows is larger than this; 1e100 by default."""
    infeasibilityThreshold: Any
    """End the run if a ray shows, up to this error, that no feasible point exists; 1e-20 by default, never for
    polynomials and files of SDPB."""
    lowerBound: Any
    """End the run if a point is primal but not dual feasible and its primal objective is at most this; none by
    default."""
    upperBound: Any
    """End the run if a point is dual but not primal feasible and its dual objective is at least this; none by
    default."""


class Iteration(Numbers):
    """The state of a run at one iteration, which `progress` receives. Numbers are rounded to `float`."""

    number: int
    """Number of the iteration, from 1."""
    seconds: float
    """Seconds since the start of the run."""
    precision_bits: int
    """Precision of the iteration in bits."""
    mu: float
    """Tr(X Y) divided by the number of rows."""
    primal_objective: float
    """`f + c^T x` before the step."""
    dual_objective: float
    """`f + C . Y + b^T y` before the step."""
    gap: float
    """`|p - d| / max(|p| + |d|, 1)`."""
    primal_matrix_error: float
    """The largest entry of `A(x) - C - X`."""
    primal_free_error: float
    """The largest entry of `b - B^T x`."""
    dual_error: float
    """The largest entry of `c - A*(Y) - B y`."""
    primal_step: float
    """Length of the step of x and X."""
    dual_step: float
    """Length of the step of y and Y."""
    beta: float
    """Centring parameter."""


@dataclass(frozen=True)
class Solution:
    """The result of a run, and the reason of its end."""

    termination: str
    """Reason of the end, in SDPB's words: `found primal-dual optimal solution`, `maxIterations exceeded`, ..."""
    remark: str | None
    """A remark on the end of the run, or None."""
    iterations: int
    """Number of iterations."""
    primal_objective: Any
    """`f + c^T x`, a number of the type of the results."""
    dual_objective: Any
    """`f + C . Y + b^T y`."""
    gap: float
    """`|p - d| / max(|p| + |d|, 1)`."""
    primal_error: float
    """The largest entry of `A(x) - C - X` and of `b - B^T x`."""
    dual_error: float
    """The largest entry of `c - A*(Y) - B y`."""
    dimacs_errors: tuple[float, ...]
    """The six errors of the DIMACS challenge, by which benchmarks compare solutions."""
    x: Any
    """The vector x, as a flat list or array; for SDPB's programs, all blocks one below the other."""
    y: Any
    """The vector y, one number for each equation; for polynomials, the free variables of the functional."""
    X: list[Any]
    """The blocks of X: square matrices, and flat lists for diagonal blocks."""
    Y: list[Any]
    """The blocks of Y."""
    precision_bits: int
    """Precision of all numbers in bits."""
    seconds: float
    """Duration of the run in seconds."""
    phases: dict[str, float]
    """Seconds of the phases of the run."""

    @property
    def is_optimal(self) -> bool:
        """Whether both points are feasible and the gap is below its threshold."""
        return self.termination == "found primal-dual optimal solution"

    def __repr__(self) -> str:
        """A summary without the points, which may have many entries."""
        return f"<Solution: {self.termination} after {self.iterations} iterations, gap {self.gap:.2g}>"


def solve(
    c: Any,
    blocks: Sequence[tuple[Any, Sequence[Any]]],
    *,
    equations: tuple[Any, Any] | None = None,
    precision: int | None = None,
    context: Context | None = None,
    progress: Callable[[Iteration], object] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    initial_checkpoint: str | PathLike[str] | None = None,
    checkpoint_interval: float | None = None,
    **options: Unpack[Options],
) -> Solution:
    """Solve `min c^T x` subject to `X = sum_p x_p A_p - C >= 0` block by block and `B^T x = b`, together with its dual.

    Parameters
    ----------
    c : vector
        Costs, one for each variable.
    blocks : sequence
        A pair `(C, [A_0, A_1, ...])` for each block, with one matrix for each number of `c`. A matrix may be a square
        symmetric matrix of any kind; a flat list or one column, which is the diagonal of a diagonal block; a dictionary
        `{(row, column): number}` of the nonzero entries, each once, in one triangle; or None for a zero matrix. A block
        whose dictionaries have only diagonal entries is diagonal.
    equations : tuple, optional
        A pair `(B, b)`. B has a row for each number of `c` and a column for each number of `b`.
    precision, context, progress, checkpoint, initial_checkpoint, checkpoint_interval, **options
        Options of all functions; see `help(sunzi.sdp)`.

    Returns
    -------
    Solution
        x, y and the blocks have the container of `c`.

    Raises
    ------
    TypeError, ValueError, NotSymmetricError
        The message names block, matrix and place.

    Examples
    --------
    The largest eigenvalue of [[0, 1], [1, 0]] is the least t with t I - A >= 0:

    >>> import sunzi.sdp
    >>> solution = sunzi.sdp.solve(["1"], [([[0, 1], [1, 0]], [[[1, 0], [0, 1]]])], precision=200)
    >>> solution.termination, abs(float(solution.primal_objective) - 1) < 1e-15
    ('found primal-dual optimal solution', True)
    """
    run: dict[str, Any] = {"precision": precision, "context": context, "progress": progress}
    run |= {"checkpoint": checkpoint, "initial_checkpoint": initial_checkpoint}
    run["checkpoint_interval"] = checkpoint_interval
    return Solution(**_sunzi.sdp_solve(c, blocks, equations, run, dict(options)))


def solve_file(
    path: str | PathLike[str],
    *,
    numbers: _Numbers = "fraction",
    precision: int | None = None,
    context: Context | None = None,
    progress: Callable[[Iteration], object] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    initial_checkpoint: str | PathLike[str] | None = None,
    checkpoint_interval: float | None = None,
    **options: Unpack[Options],
) -> Solution:
    """Solve the program in a file.

    Parameters
    ----------
    path : path
        A file in SDPA's sparse format (`.dat-s`); SDPB's blocks, as a directory or a zip archive; or a polynomial
        program in the form of pmp2sdp (`.json`, `.m`, `.nsv`).
    numbers : str
        Type of the objectives and of the entries of the results; one of the names that `Matrix` accepts.
    precision, context, progress, checkpoint, initial_checkpoint, checkpoint_interval, **options
        Options of all functions; see `help(sunzi.sdp)`.

    Returns
    -------
    Solution
        x, y and the blocks are of type `Matrix`.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        The message names file, line and numbers.
    """
    run: dict[str, Any] = {"precision": precision, "context": context, "progress": progress}
    run |= {"checkpoint": checkpoint, "initial_checkpoint": initial_checkpoint}
    run["checkpoint_interval"] = checkpoint_interval
    return Solution(**_sunzi.sdp_solve_file(path, numbers, run, dict(options)))


def solve_polynomials(
    program: Mapping[str, Any],
    *,
    numbers: _Numbers = "fraction",
    precision: int | None = None,
    context: Context | None = None,
    progress: Callable[[Iteration], object] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    initial_checkpoint: str | PathLike[str] | None = None,
    checkpoint_interval: float | None = None,
    **options: Unpack[Options],
) -> Solution:
    """Solve `max a . z` over all z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`.

    Parameters
    ----------
    program : mapping
        The fields of SDPB's `pmp.json`: `objective` (a); `normalization` (n; by default z_0 is 1); and
        `PositiveMatrixWithPrefactorArray`, a list of dictionaries. Each has `polynomials` (for each row and column of
        the matrix a list with the coefficients of each P_i, beginning with the constant one) and optionally the other
        fields of pmp2sdp: `prefactor`, `samplePoints`, `bilinearBasis`, ... Numbers may have any type, in lists or
        arrays, and are rounded to twice the precision.
    numbers, precision, context, progress, checkpoint, initial_checkpoint, checkpoint_interval, **options
        As in `solve_file`.

    Returns
    -------
    Solution
        As in `solve_file`. The bound is `dual_objective`; y has the entries of z without the one that `normalization`
        determines.

    Examples
    --------
    The largest y with x^2 - 4 x + 7 - y >= 0 for all x >= 0 is 3:

    >>> import sunzi.sdp
    >>> matrix = {"polynomials": [[[[7, -4, 1], [-1]]]]}
    >>> program = {"objective": [0, 1], "PositiveMatrixWithPrefactorArray": [matrix]}
    >>> abs(float(sunzi.sdp.solve_polynomials(program).dual_objective) - 3) < 1e-15
    True
    """
    bits = 2 * (_DEFAULT_BITS if precision is None else precision) + 64
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pmp.json"
        path.write_text(json.dumps(_texts(program, bits)), encoding="utf-8")
        run: dict[str, Any] = {"precision": precision, "context": context, "progress": progress}
        run |= {"checkpoint": checkpoint, "initial_checkpoint": initial_checkpoint}
        run["checkpoint_interval"] = checkpoint_interval
        return Solution(**_sunzi.sdp_solve_file(path, numbers, run, dict(options)))


def _texts(value: Any, bits: int) -> Any:
    """Returns the same structure with each number as a string of enough digits for `bits` bits."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Mapping):
        return {str(key): _texts(entry, bits) for key, entry in value.items()}
    if isinstance(value, Sequence):
        return [_texts(entry, bits) for entry in value]
    if getattr(value, "ndim", 0) > 0:
        return [_texts(entry, bits) for entry in value]
    return Matrix([value], precision=min(bits, 5000), numbers="str")[0, 0]
