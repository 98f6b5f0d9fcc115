"""Semidefinite programs at any precision, from matrices of Python's numbers, polynomials, or files of SDPB and SDPA.

    primal   min f + c^T x        X = sum_p x_p A_p - C >= 0,   B^T x = b
    dual     max f + C . Y + b^T y    A_p . Y + (B y)_p = c_p,   Y >= 0

`solve` takes c, C and the matrices A_p block by block, `solve_polynomials` a program as SDPB's pmp2sdp takes it, and
`solve_file` whatever `sunzi sdp` reads. All take the options of `Options`, which have SDPB's names and meanings, and
`precision` (bits of all numbers; by default 400 as SDPB has them, or more where numbers bring more along), `context`
(threads, and a memory limit for all beside the program) and `progress`, which is called with each `Iteration`; an
exception in it ends the run and comes through, as Ctrl-C does. The bits of a solution do not depend on threads.

With `checkpoint`, a folder, a run goes on from the checkpoint that it finds there, and writes its state there every
`checkpoint_interval` seconds (3600), at its end, and where an exception or Ctrl-C ends it: that of the last iteration.
`initial_checkpoint` is a folder to begin with, whose checkpoint must be there: one of this package, of `sunzi sdp`, or
SDPB's text files. At the same precision a run that goes on has the bits of one that was never stopped. A checkpoint of
another program is refused; as the initial one it gives its point, where blocks have the same sizes.
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
    """Options of the solver: SDPB's names, its meanings and its defaults, of `solve` those of SDPA-GMP.

    Numbers may be of any type, strings such as `"1e-40"` among them.
    """

    findPrimalFeasible: bool
    """End at a primal feasible point."""
    findDualFeasible: bool
    """End at a dual feasible point."""
    detectPrimalFeasibleJump: bool
    """End after a primal step of 1."""
    detectDualFeasibleJump: bool
    """End after a dual step of 1."""
    ramp: bool
    """Make the first iterations at fewer bits (the default)."""
    maxIterations: int
    """Iterations at most; 500."""
    maxRuntime: int
    """Seconds at most; no limit."""
    dualityGapThreshold: Any
    """The gap of an optimal point; 1e-30."""
    primalErrorThreshold: Any
    """The error of a primal feasible point; 1e-30."""
    dualErrorThreshold: Any
    """The error of a dual feasible point; 1e-30."""
    initialMatrixScalePrimal: Any
    """X begins as this multiple of the identity; 1e20, of `solve` and SDPA's files 1e4."""
    initialMatrixScaleDual: Any
    """Y begins as this multiple of the identity; 1e20, of `solve` and SDPA's files 1e4."""
    feasibleCenteringParameter: Any
    """The factor by which X Y is to shrink at feasible points; 0.1."""
    infeasibleCenteringParameter: Any
    """The factor by which X Y is to shrink at other points; 0.3."""
    stepLengthReduction: Any
    """The part of the way to the boundary that a step takes; 0.7, of `solve` and SDPA's files 0.9."""
    minPrimalStep: Any
    """End where a primal step is smaller; 0."""
    minDualStep: Any
    """End where a dual step is smaller; 0."""
    maxComplementarity: Any
    """End where Tr(X Y) over the number of rows exceeds it; 1e100."""
    infeasibilityThreshold: Any
    """End where a ray shows to this error that nothing is feasible; 1e-20, of polynomials and SDPB's files never."""
    lowerBound: Any
    """End where a point that is only primal feasible has an objective below it; none."""
    upperBound: Any
    """End where a point that is only dual feasible has an objective above it; none."""


class Iteration(Numbers):
    """One iteration, as `progress` is told it; numbers are rounded to `float`."""

    number: int
    """Its number, from 1."""
    seconds: float
    """Seconds since the run began."""
    precision_bits: int
    """Bits at which it was made."""
    mu: float
    """Tr(X Y) over the number of rows."""
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
    """The step of x and X."""
    dual_step: float
    """The step of y and Y."""
    beta: float
    """The centring parameter."""


@dataclass(frozen=True)
class Solution:
    """What a run found, and how it ended."""

    termination: str
    """Why it ended, in SDPB's words: `found primal-dual optimal solution`, `maxIterations exceeded`, ..."""
    remark: str | None
    """What there is to say about the end, where there is more than that."""
    iterations: int
    """Iterations made."""
    primal_objective: Any
    """`f + c^T x`, a number of the type that results have."""
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
    """x, a flat list or the like; of SDPB's programs all blocks one below the other."""
    y: Any
    """y, one number for each equation; of polynomials the free variables of the functional."""
    X: list[Any]
    """X block by block: square matrices, and flat lists for diagonals."""
    Y: list[Any]
    """Y block by block."""
    precision_bits: int
    """Bits of all numbers."""
    seconds: float
    """Seconds of the run."""
    phases: dict[str, float]
    """What they were spent on."""

    @property
    def is_optimal(self) -> bool:
        """Whether both points are feasible, and the gap is below its threshold."""
        return self.termination == "found primal-dual optimal solution"

    def __repr__(self) -> str:
        """How it ended; the numbers of points may be many."""
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
    """`min c^T x` with `X = sum_p x_p A_p - C >= 0` block by block, and `B^T x = b`; and its dual.

    Each block is a pair `(C, [A_0, A_1, ...])` of a matrix C and one for each number of `c`. A matrix is anything that
    holds a square matrix of numbers, symmetric; a flat list or one column, which is the diagonal of a diagonal block; a
    dictionary `{(row, column): number}` of the entries that are not 0, each once, in one triangle; or None for 0.
    A block whose matrices have no entry beside the diagonal in any dictionary is diagonal. `equations` is a pair
    `(B, b)`: B has a row for each number of `c` and a column for each number of `b`.

    Numbers and containers are those of all functions of the package; x, y and blocks come back in the container of
    `c`. Raises `TypeError`, `ValueError`, `NotSymmetricError` with block, matrix and place.

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
    """Solves the program in a file: SDPA's sparse format (`.dat-s`), SDPB's blocks (a directory or a zip archive), or
    a polynomial program as pmp2sdp takes it (`.json`, `.m`, `.nsv`).

    x, y and blocks are of type `Matrix`, whose entries are shown as `numbers`, as the objectives are. Raises `OSError`,
    and `ValueError` with file, line and numbers.
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
    """Solves `max a . z` over the z with `n . z = 1` and `sum_i z_i P_i(x) >= 0` for all `x >= 0`.

    `program` has the fields of SDPB's `pmp.json`: `objective` (a), `normalization` (n; else z_0 is 1), and
    `PositiveMatrixWithPrefactorArray`, a list of dictionaries with `polynomials` (for each row and column of the
    matrix a list with the coefficients of each P_i, from the constant one on) and whatever else pmp2sdp takes:
    `prefactor`, `samplePoints`, `bilinearBasis`, ... Numbers may be of any type, in lists or arrays, and are rounded
    to twice the precision. The bound is `dual_objective`; y are the entries of z but the one that `normalization`
    determines. Results are as those of `solve_file`.

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
    """The same with every number as a string of enough digits for `bits` bits."""
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
