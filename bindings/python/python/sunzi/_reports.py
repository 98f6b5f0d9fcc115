"""Statistics of calls, plans and checks: dictionaries whose entries are attributes as well."""

from __future__ import annotations

from typing import Any, Literal


class Numbers(dict[str, Any]):
    """A dictionary whose entries can be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            known = ", ".join(self) if self else "nothing yet; pass it to a call"
            raise AttributeError(f"no '{name}' in this {type(self).__name__}, which has {known}")
        return Report(self[name]) if name == "factorisation" else self[name]


class Report(Numbers):
    """Statistics of a call: pass an instance as `report=`, and read it after the call.

    The attributes depend on the operation; `report.keys()` lists them.

    Examples
    --------
    >>> import sunzi
    >>> report = sunzi.Report()
    >>> _ = sunzi.cholesky([[4.0, 2.0], [2.0, 10.0]], report=report)
    >>> report.operation, report.order, report.precision_bits == report["precision_bits"] == 53
    ('cholesky', 2, True)
    """

    operation: str
    """Name of the operation: `syrk`, `cholesky`, ..."""
    rows: int
    """For products: number of rows that are contracted. For functions on vectors: entries of the result."""
    cols: int
    """For products: number of columns of the result. For functions on vectors: terms of the longest sum."""
    order: int
    """Number of rows of the matrix that is factored or solved with."""
    columns: int
    """Number of right-hand sides."""
    precision_bits: int
    """Precision of the result in bits."""
    working_bits: int
    """Precision of the computation in bits."""
    accuracy: Literal["entrywise", "norm"]
    """Accuracy of the result."""
    range_bits: int
    """Part of `working_bits` that `accuracy='entrywise'` needs for the range of the exponents."""
    missing_bits: int
    """Additional bits that `accuracy='entrywise'` would have needed; 0 if it was reached."""
    growth_bits: int
    """For `lu`: entries of `U` are at most 2 to this power times a power of two near the largest entry of their column of
    `A`."""
    repeats: int
    """For `lu`: number of factorisations with fewer bits before the last one."""
    digits: float
    """Estimated number of correct digits of a solution or an inverse by Cholesky."""
    certified: float
    """Proven number of correct digits, with `certified=True`."""
    kernel: str
    """Name of the kernel."""
    threads: int
    """Number of worker threads."""
    primes: int
    """Number of primes."""
    planned_bytes: int
    """Bytes in the plan, the result included."""
    seconds: float
    """Wall-clock seconds in the library."""
    input_seconds: float
    """Seconds for reading the operands."""
    compute_seconds: float
    """Seconds for the computation."""
    output_seconds: float
    """Seconds for making the result."""
    iterations: int
    """Number of steps of a refined solve."""
    backward_error_log2: int
    """For a refined solve: the backward error is about 2 to this power."""
    factorisation: Report
    """Report of the factorisation of a solve."""
    phases: dict[str, float]
    """Seconds for the phases of a product."""
    tasks: dict[str, float]
    """Seconds for the tasks of a factorisation, summed over threads."""


class Plan(Numbers):
    """Memory that a call would take, as `plan` computes it.

    The attributes depend on the operation; `plan.keys()` lists them.

    Examples
    --------
    >>> import sunzi
    >>> plan = sunzi.plan("solve", 100, 3, precision=512)
    >>> plan.planned_bytes >= plan.least_bytes > 0
    True
    """

    operation: str
    """Name of the operation: `syrk`, `cholesky`, ..."""
    rows: int
    """Number of rows of the result."""
    cols: int
    """Number of columns of the result."""
    contracted: int
    """Number of rows that are contracted."""
    order: int
    """Number of rows of the matrix that is factored or solved with."""
    columns: int
    """Number of right-hand sides."""
    precision_bits: int
    """Precision of the result in bits."""
    working_bits: int
    """Precision of the computation in bits."""
    accuracy: Literal["entrywise", "norm"]
    """Promised accuracy of the result."""
    range_bits: int
    """Part of `working_bits` for the range of the exponents."""
    kernel: str
    """Name of the kernel."""
    threads: int
    """Number of worker threads."""
    primes: int
    """Number of primes."""
    planned_bytes: int
    """Largest number of bytes that the call takes at one time, the result included."""
    least_bytes: int
    """Least memory limit under which the call runs."""
    factor_bytes: int
    """Bytes of the factor."""
    factorisation_bytes: int
    """Bytes of the factorisation of a solve."""
    bytes: dict[str, int]
    """Bytes of the parts of a product."""


class Verification(Numbers):
    """Extent of a check, and the largest errors relative to their bounds; see `verify`."""

    vector_count: int
    """Number of random vectors that were multiplied."""
    entry_count: int
    """Number of entries that were compared one by one."""
    worst_residual: float
    """Largest residual relative to its bound; 0 for exact integers."""
    worst_entry: float
    """Largest error of a compared entry relative to its bound."""
    worst_place: list[int] | None
    """Row and column of that entry, from 0."""
    prime: int | None
    """Prime of Freivalds' test, or None."""
    seed: int
    """Seed that repeats the random choices."""
