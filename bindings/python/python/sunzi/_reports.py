"""What calls tell about themselves: dictionaries whose entries are attributes as well."""

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
    """What a call did: pass one as `report=`, and read it when the call has returned.

    Which of the attributes are there depends on the operation; `report.keys()` lists them.

    >>> import sunzi
    >>> report = sunzi.Report()
    >>> _ = sunzi.cholesky([[4.0, 2.0], [2.0, 10.0]], report=report)
    >>> report.operation, report.order, report.precision_bits == report["precision_bits"] == 53
    ('cholesky', 2, True)
    """

    operation: str
    """`syrk`, `cholesky`, ..."""
    rows: int
    """Products: rows contracted. On vectors: entries of the result."""
    cols: int
    """Products: columns of the result. On vectors: terms of the longest sum."""
    order: int
    """Rows of the matrix that is factored or solved with."""
    columns: int
    """Right sides."""
    precision_bits: int
    """Bits of the result."""
    working_bits: int
    """Bits on the way."""
    accuracy: Literal["entrywise", "norm"]
    """What holds for the result."""
    range_bits: int
    """Bits of `working_bits` that accuracy entry by entry takes for the range of exponents."""
    missing_bits: int
    """Bits more that accuracy entry by entry would have taken; 0 where it was reached."""
    digits: float
    """About how many digits are right, of solutions and inverses."""
    kernel: str
    """Name of the kernel."""
    threads: int
    """Worker threads."""
    primes: int
    """Primes of the residues."""
    planned_bytes: int
    """Bytes that the plan allows for, the result included."""
    seconds: float
    """Wall-clock seconds in the library."""
    input_seconds: float
    """Seconds in which operands were read."""
    compute_seconds: float
    """Seconds of the computation."""
    output_seconds: float
    """Seconds in which the result was made."""
    iterations: int
    """Steps of a refined solve."""
    backward_error_log2: int
    """A refined solve: the backward error that was reached is about 2 to this power."""
    factorisation: Report
    """The report of the factorisation that a solve began with."""
    phases: dict[str, float]
    """Seconds of the phases of a product."""
    tasks: dict[str, float]
    """Seconds of the tasks of a factorisation, summed over threads."""


class Plan(Numbers):
    """What a call would take, as `plan` says it; which attributes are there depends on the operation.

    >>> import sunzi
    >>> plan = sunzi.plan("solve", 100, 3, precision=512)
    >>> plan.planned_bytes >= plan.least_bytes > 0
    True
    """

    operation: str
    """`syrk`, `cholesky`, ..."""
    rows: int
    """Rows of the result."""
    cols: int
    """Columns of the result."""
    contracted: int
    """Rows contracted."""
    order: int
    """Rows of the matrix that is factored or solved with."""
    columns: int
    """Right sides."""
    precision_bits: int
    """Bits of the result."""
    working_bits: int
    """Bits on the way."""
    accuracy: Literal["entrywise", "norm"]
    """What is promised of the result."""
    range_bits: int
    """Bits of `working_bits` for the range of exponents."""
    kernel: str
    """Name of the kernel."""
    threads: int
    """Worker threads."""
    primes: int
    """Primes of the residues."""
    planned_bytes: int
    """Bytes that the call takes, the result included."""
    least_bytes: int
    """The least memory limit under which it runs."""
    factor_bytes: int
    """Bytes of a factor."""
    factorisation_bytes: int
    """Bytes of the factorisation that a solve begins with."""
    bytes: dict[str, int]
    """Bytes of the parts of a product."""


class Verification(Numbers):
    """What a check has looked at, and how near the bounds the result came; see `verify`."""

    vector_count: int
    """Random vectors multiplied."""
    entry_count: int
    """Entries compared one by one."""
    worst_residual: float
    """The largest residual in units of its bound; 0 for exact integers."""
    worst_entry: float
    """The largest error of a compared entry in units of its bound."""
    worst_place: list[int] | None
    """Row and column of that entry, from 0."""
    prime: int | None
    """The prime of Freivalds' test, where it was made."""
    seed: int
    """The seed that repeats the random choices."""
