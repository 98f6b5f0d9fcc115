"""Products, factorisations and solves over the ranks of an mpi4py communicator, on distributed matrices.

A `DistMatrix` consists of the part of a matrix on this rank and a `Distribution`, a formula for the rows and columns of
each rank: blocks of whole rows, the blocks of ScaLAPACK over a grid, or the entries of Elemental. Each operand and each
result has its own distribution. No rank gathers a matrix, and the results have the same bits as on one process, for any
distribution and number of ranks. Right-hand sides, and the matrix `c` of a product, are first rounded to the precision
of the result, which has their distribution.

All functions are collective: all ranks must call them, with the same choices, scalars and precision. An argument that
is refused on one rank, or that differs between ranks, raises an exception on all ranks, with its name and values.
mpi4py initialises and finalises MPI. The package must have been built with the feature `mpi`; otherwise `Ranks` raises
an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

from sunzi import _sunzi
from sunzi._sunzi import Matrix

__all__ = ["Cholesky", "DistMatrix", "Distribution", "Plan", "Ranks", "elemental", "rows", "scalapack"]

_ORDER = {"row": 101, "column": 102}
_OP = {False: 111, True: 112}
_CONTRACTED = {False: 112, True: 111}
_UPLO = {"upper": 121, "lower": 122, "both": 123}
_DIAG = {False: 131, True: 132}
_SIDE = {"left": 141, "right": 142}

# By the name of an argument, what was given and the numbers of what may be given.
_Choices = dict[str, tuple[Any, dict[Any, int]]]
_ALONG = {"none": 0, "grid_row": 1, "grid_col": 2, "column_major": 3, "row_major": 4}
_ELEMENTAL = {"STAR": "none", "MC": "grid_row", "MR": "grid_col", "VC": "column_major", "VR": "row_major"}


_SAME_TYPE = {kind.__name__: kind for kind in (TypeError, ValueError, OverflowError, MemoryError)}


def _word(name: str, value: Any, words: dict[Any, Any]) -> Any:
    if True in words:
        return words[bool(value)]
    if value not in words:
        raise ValueError(f"{name}={value!r} is not valid; use one of {', '.join(map(str, words))}")
    return words[value]


@dataclass(frozen=True)
class Distribution:
    """The rows and columns of a matrix that each rank holds: a formula for the rows and one for the columns.

    Row `i` of a matrix of shape `shape` is on the ranks with the number `(i // block[0] + first[0]) % n`, where
    `along[0]` selects the number of a rank and `n` is the count of these numbers: the row of a rank in the grid
    (`grid_row`), its column (`grid_col`), or its place in the grid counted column by column or row by row
    (`column_major`, `row_major`). With `none` every rank has all rows. A block of 0 means consecutive rows, with
    `counts[k]` of them on the ranks with the number `k`. Columns follow the same rule, without counts. `order` is the
    order of the ranks in the grid: `row` by row or `column` by column. Ranks outside the grid have no entries.

    The functions `rows`, `scalapack` and `elemental` make the common distributions.
    """

    shape: tuple[int, int]
    grid: tuple[int, int]
    order: Literal["row", "column"]
    along: tuple[str, str]
    block: tuple[int, int]
    first: tuple[int, int]
    counts: tuple[int, ...] | None = None

    def _numbers(self) -> tuple[int, ...]:
        along = tuple(_word("along", along, _ALONG) for along in self.along)
        given = (*self.shape, *self.grid, _word("order", self.order, _ORDER), *along, *self.block, *self.first)
        numbers = tuple(map(index, given))
        if len(numbers) != 11 or not all(-(2**63) <= number < 2**63 for number in numbers):
            raise ValueError(f"a Distribution must have eleven integers of 64 bits, but it has {numbers}")
        return numbers

    def _facts(self) -> tuple[Any, ...]:
        """The values that must be the same on all ranks."""
        return (*self._numbers(), None if self.counts is None else tuple(map(index, self.counts)))

    def _number(self, rank: int, along: str) -> tuple[int, int]:
        """The number of a rank in the grid along a direction, and the count of these numbers."""
        height, width = self.grid
        row, col = divmod(rank, width) if self.order == "row" else divmod(rank, height)[::-1]
        count = {"grid_row": height, "grid_col": width}.get(along, height * width)
        number = {"grid_row": row, "grid_col": col, "column_major": row + col * height}.get(along, row * width + col)
        return number, count

    def indices(self, rank: int) -> tuple[list[int], list[int]]:
        """Return the indices of the rows and of the columns on a rank, in the order in which the rank stores them.

        >>> from sunzi.mpi import elemental
        >>> elemental((5, 4), grid=(2, 2), pair=("MC", "MR")).indices(1)
        ([1, 3], [0, 2])
        """
        if rank >= self.grid[0] * self.grid[1]:
            return [], []
        found: list[list[int]] = []
        for axis in (0, 1):
            along, length, block = self.along[axis], self.shape[axis], self.block[axis]
            if along == "none":
                found.append(list(range(length)))
                continue
            number, count = self._number(rank, along)
            if block == 0:
                counts = self.counts or ()
                start = sum(counts[:number])
                found.append(list(range(start, start + (counts[number] if number < len(counts) else 0))))
            else:
                found.append([i for i in range(length) if (i // block + self.first[axis]) % count == number])
        return found[0], found[1]

    def local_shape(self, rank: int) -> tuple[int, int]:
        """Return the numbers of rows and columns of the part of a rank."""
        if rank >= self.grid[0] * self.grid[1]:
            return (0, 0)
        return self._count(0, rank), self._count(1, rank)

    def _count(self, axis: int, rank: int) -> int:
        """The number of rows or columns on a rank of the grid."""
        along, length, block = self.along[axis], self.shape[axis], self.block[axis]
        if along == "none":
            return length
        number, count = self._number(rank, along)
        if block == 0:
            counts = self.counts or ()
            return counts[number] if number < len(counts) else 0
        whole, rest = divmod(length, block)
        before = (number - self.first[axis]) % count
        turns, last = divmod(whole, count)
        return (turns + (before < last)) * block + (rest if before == last else 0)


def rows(counts: Sequence[int], cols: int) -> Distribution:
    """Make a distribution of consecutive whole rows: rank k has `counts[k]` rows, for every rank of the communicator.

    >>> import sunzi.mpi
    >>> sunzi.mpi.rows([3, 0, 2], 7).local_shape(2)
    (2, 7)
    """
    each = tuple(counts)
    return Distribution((sum(each), cols), (len(each), 1), "row", ("grid_row", "none"), (0, 0), (0, 0), each)


def scalapack(
    descriptor: Sequence[int], *, grid: tuple[int, int], order: Literal["row", "column"] = "row"
) -> Distribution:
    """Make a distribution from a ScaLAPACK descriptor, of whose nine integers M, N, MB, NB, RSRC and CSRC are used.

    `grid` and `order` are those of the descriptor's BLACS context: `row` for `blacs_gridinit(.., "R", ..)`.
    """
    if len(descriptor) != 9:
        raise ValueError(f"a descriptor must have nine integers, but this one has {len(descriptor)}")
    _, _, m, n, mb, nb, rsrc, csrc, _ = descriptor
    if mb < 1 or nb < 1:
        raise ValueError(f"the blocks of a descriptor must be at least 1 x 1, but these are {mb} x {nb}")
    return Distribution((m, n), grid, order, ("grid_row", "grid_col"), (mb, nb), (rsrc, csrc))


def elemental(
    shape: tuple[int, int], *, grid: tuple[int, int], pair: tuple[str, str], align: tuple[int, int] = (0, 0)
) -> Distribution:
    """Make the distribution of an Elemental `DistMatrix`.

    `pair` is its `ColDist` and `RowDist`, and `align` its `ColAlign` and `RowAlign`. The grid numbers its ranks column
    by column, the default of Elemental.
    """
    along = (_word("pair", pair[0], _ELEMENTAL), _word("pair", pair[1], _ELEMENTAL))
    return Distribution(shape, grid, "column", along, (1, 1), align)


@dataclass(frozen=True)
class DistMatrix:
    """A distributed matrix: the part of this rank, and the distribution.

    The part may be of any kind that `sunzi.Matrix` accepts, or None if it has no entries.
    """

    local: Any
    distribution: Distribution


@dataclass(frozen=True)
class Plan:
    """Bytes that a call over ranks would take in addition to its operands; `Ranks.plan` makes it.

    `rank_bytes` is the largest number of bytes on this rank at one time, with an even share of the memory that the
    ranks of its node have in common. `node_bytes` is an upper bound for all ranks of the node together; with this
    number as `memory` the call is not refused, provided that its numbers and the shares of the ranks are as the plan
    assumes. `copied_bytes` is the part of these bytes for copies of operands.
    """

    copied_bytes: int
    rank_bytes: int
    node_bytes: int


# How many distributions each plan takes.
_PLANNED = {"syrk": (2, 2), "gemm": (3, 3), "cholesky": (1, 1), "trsm": (2, 2), "solve": (1, 2)}


class Ranks:
    """The ranks of a communicator, on which the methods run.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The communicator, which is duplicated.
    threads : int
        Number of worker threads of this rank.
    memory : int, optional
        Memory limit in bytes for all ranks of a node together. It covers the memory of a call except for the
        `sunzi.Matrix` of each operand and result, kept factors, and messages (1 to 8 MiB on each rank).
    kernel : str, optional
        A name of `sunzi.kernels()`.
    device : str or sequence of str, optional
        Names as for `sunzi.Context`; either all ranks or none of them must have devices.
    accuracy : {'entrywise', 'norm'}
        Error bound of each entry; see `help(sunzi)`.
    freivalds : bool
        Check each product with a random vector.

    Construction and `close` are collective; a `with` statement calls `close`. An object that is never closed keeps its
    communicator.
    """

    def __init__(
        self,
        comm: Any,
        *,
        threads: int = 1,
        memory: int | None = None,
        kernel: str | None = None,
        device: str | Sequence[str] | None = None,
        accuracy: Literal["entrywise", "norm"] = "entrywise",
        freivalds: bool = False,
    ) -> None:
        self._comm = comm.Dup()
        self._open = True
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()

        def look() -> tuple[dict[str, Any], dict[str, Any]]:
            chosen: dict[str, Any] = {
                "entrywise": _word("accuracy", accuracy, {"entrywise": True, "norm": False}),
                "freivalds": bool(freivalds),
                "threads": index(threads),
                "memory": 0 if memory is None else index(memory),
            }
            for name, bits in (("threads", 63), ("memory", 64)):
                if not 0 <= chosen[name] < 2**bits or (name, memory) == ("memory", 0):
                    raise ValueError(f"{name}={chosen[name]} is out of range")
            devices = [device] if device is None or isinstance(device, str) else list(device)
            for name in (kernel, *devices):
                if name is not None and (not isinstance(name, str) or "\0" in name or name == ""):
                    raise ValueError(f"{name!r} is not a name of a kernel or a device")
                if name is not None:
                    name.encode()  # what cannot be handed on is refused on all ranks
            joined = None if devices in ([None], []) else ",".join(map(str, devices))
            facts = {"accuracy": accuracy, "freivalds": chosen["freivalds"]}
            return {**facts, "the use of devices": joined is not None}, {**chosen, "kernel": kernel, "devices": joined}

        try:
            self._ranks = _sunzi.Ranks(self._comm.py2f(), self._compared(look)[self.rank])
        except Exception:
            self._comm.Free()
            raise

    def close(self) -> None:
        """Release the communicator. Collective."""
        self._ranks.close()
        if self._open:
            self._open = False
            self._comm.Free()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def syrk(
        self,
        p: DistMatrix,
        to: Distribution | None = None,
        *,
        transpose: bool = False,
        uplo: Literal["both", "lower", "upper"] = "both",
        alpha: Any = None,
        beta: Any = None,
        c: DistMatrix | None = None,
        precision: int | None = None,
    ) -> DistMatrix:
        """Compute `alpha PᵀP + beta C` or, with `transpose`, `alpha P Pᵀ + beta C`; see `sunzi.syrk`.

        Parameters
        ----------
        p : DistMatrix
            The matrix.
        to : Distribution, optional
            Distribution of the result; the default is the one of `c`.
        uplo : {'both', 'lower', 'upper'}
            Triangle of the result that is computed, and triangle of `c` that is read. The other triangle of the result
            is the one of `c`, or 0 without `c`.
        alpha, beta, c, precision
            As in `sunzi.syrk`.

        Notes
        -----
        Accuracy and cost as in `sunzi.syrk`; the ranks share the cost.
        """
        choices: _Choices = {"uplo": (uplo, _UPLO), "transpose": (transpose, _CONTRACTED)}
        beta = 1 if c is not None and beta is None else beta
        ready = self._ready("syrk", choices, {"p": p}, (c, to), (alpha, beta), precision)
        return DistMatrix(self._ranks.syrk(ready.choices, ready.of["p"], ready.into, ready.scalars), ready.to)

    def gemm(
        self,
        a: DistMatrix,
        b: DistMatrix,
        to: Distribution | None = None,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        alpha: Any = None,
        beta: Any = None,
        c: DistMatrix | None = None,
        precision: int | None = None,
    ) -> DistMatrix:
        """Compute `alpha op(A) op(B) + beta C`; see `sunzi.gemm`.

        The result has the distribution `to`, or by default the one of `c`.
        """
        choices = {"transpose_a": (transpose_a, _OP), "transpose_b": (transpose_b, _OP)}
        beta = 1 if c is not None and beta is None else beta
        ready = self._ready("gemm", choices, {"a": a, "b": b}, (c, to), (alpha, beta), precision)
        result = self._ranks.gemm(ready.choices, ready.of["a"], ready.of["b"], ready.into, ready.scalars)
        return DistMatrix(result, ready.to)

    def trsm(
        self,
        t: DistMatrix,
        b: DistMatrix,
        *,
        side: Literal["left", "right"] = "left",
        uplo: Literal["lower", "upper"] = "lower",
        transpose: bool = False,
        unit: bool = False,
        alpha: Any = None,
        precision: int | None = None,
    ) -> DistMatrix:
        """Solve `op(T) X = alpha B` or, with `side="right"`, `X op(T) = alpha B`; see `sunzi.trsm`.

        X has the distribution of `b`.
        """
        kinds = {"lower": _UPLO["lower"], "upper": _UPLO["upper"]}
        choices: _Choices = {
            "side": (side, _SIDE),
            "uplo": (uplo, kinds),
            "transpose": (transpose, _OP),
            "unit": (unit, _DIAG),
        }
        ready = self._ready("trsm", choices, {"t": t}, (b, None), (alpha, None), precision)
        return DistMatrix(self._ranks.trsm(ready.choices, ready.of["t"], ready.into, ready.scalars[0]), ready.to)

    def solve(
        self,
        a: DistMatrix,
        b: DistMatrix,
        *,
        uplo: Literal["both", "lower", "upper"] = "both",
        precision: int | None = None,
    ) -> DistMatrix:
        """Solve `A X = B` for a symmetric positive definite `A`; see `sunzi.solve`.

        X has the distribution of `b`.
        """
        ready = self._ready("solve", {"uplo": (uplo, _UPLO)}, {"a": a}, (b, None), (None, None), precision)
        return DistMatrix(self._ranks.solve(ready.choices[0], ready.of["a"], ready.into), ready.to)

    def cholesky(
        self, a: DistMatrix, *, uplo: Literal["both", "lower", "upper"] = "both", precision: int | None = None
    ) -> Cholesky:
        """Compute the Cholesky factor of `a` and keep it, in tiles over the ranks, for solves and the determinant."""
        ready = self._ready("cholesky", {"uplo": (uplo, _UPLO)}, {"a": a}, (None, None), (None, None), precision)
        return Cholesky(self, self._ranks.factor(ready.choices[0], ready.precision, ready.of["a"]))

    def plan(
        self,
        operation: Literal["syrk", "gemm", "cholesky", "trsm", "solve"],
        *placed: Distribution,
        precision: int,
        operand_precision: int | None = None,
        transpose: bool = False,
        transpose_b: bool = False,
        side: Literal["left", "right"] = "left",
        uplo: Literal["both", "lower", "upper"] = "both",
        unit: bool = False,
    ) -> Plan:
        """Compute the memory that a call would take from the distributions of its matrices; nothing else is computed.

        Parameters
        ----------
        operation, *placed
            `("syrk", p, to)`; `("gemm", a, b, to)`, with `transpose` for `a`; `("cholesky", a)`; `("trsm", t, b)`;
            `("solve", a, b)`; or `("solve", b)` for `Cholesky.solve`.
        precision, operand_precision : int
            Precision of the result, and precision of the operands of products and of the triangle if it differs.
        transpose, transpose_b, side, uplo, unit
            Options of the call. `uplo` is used for `cholesky` and `solve`, `side` and `unit` for `trsm`.

        Notes
        -----
        Under a memory limit the plan is the one that the call would use within the limit. `MemoryLimitError` names the
        least limit for the step that does not fit; a later step may need more. With `beta` the call also needs memory
        for tiles of `c`.

        Examples
        --------
        >>> ranks.plan("cholesky", elemental((6200, 6200), grid=(2, 2), pair=("MC", "MR")), precision=768)  # doctest: +SKIP
        Plan(copied_bytes=0, rank_bytes=..., node_bytes=...)
        """
        ready: list[Any] = []

        def look() -> tuple[dict[str, Any], None]:
            least, most = _word("operation", operation, _PLANNED)
            if not least <= len(placed) <= most or not all(isinstance(one, Distribution) for one in placed):
                raise ValueError(f"a plan of {operation} needs {most} distributions, but {placed} was passed")
            ops = _CONTRACTED if operation == "syrk" else _OP
            chosen = {
                "syrk": [_word("transpose", transpose, ops)],
                "gemm": [_word("transpose", transpose, ops), _word("transpose_b", transpose_b, ops)],
                "trsm": [_word("side", side, _SIDE), _word("unit", unit, _DIAG)],
                "cholesky": [_word("uplo", uplo, _UPLO)],
                "solve": [_word("uplo", uplo, _UPLO)],
            }.get(operation, [])
            bits = [index(precision if operand_precision is None else operand_precision), index(precision)]
            if min(bits) < 2:
                raise ValueError(f"precision={min(bits)} is not valid; use at least 2 bits")
            ready.extend((chosen, [(one.local_shape(self.rank), one._numbers()) for one in placed], bits))
            facts = {f"distribution {at}": one._facts() for at, one in enumerate(placed)}
            return {"the call": f"plan of {operation}", "choices": chosen, "precision": bits, **facts}, None

        self._compared(look)
        return Plan(*self._ranks.plan(operation, *ready))

    def _agreed(self, make: Callable[[], Any]) -> list[Any]:
        """Return the results of `make` on all ranks; an exception on one rank is raised on all, with the same type."""
        if not self._open:
            raise ValueError("this Ranks object is closed")
        error: Exception | None = None
        made: Any = None
        try:
            made = make()
        except Exception as raised:  # whatever it is, the other ranks wait
            error = raised
        said = self._comm.allgather((made, None if error is None else (type(error).__name__, str(error))))
        if error is not None:
            raise error
        for rank, (_, raised_there) in enumerate(said):
            if raised_there is not None:
                raise _SAME_TYPE.get(raised_there[0], ValueError)(f"rank {rank}: {raised_there[1]}")
        return [value for value, _ in said]

    def _compared(self, make: Callable[[], tuple[dict[str, Any], Any]]) -> list[Any]:
        """As `_agreed`, for a `make` that returns facts, which must be the same on all ranks, and a result."""
        said = self._agreed(make)
        first = said[0][0]
        for rank, (facts, _) in enumerate(said):
            for name, value in first.items():
                if name not in facts or facts[name] != value:
                    values = f"it is {value} on rank 0 and {facts.get(name)} on rank {rank}"
                    raise ValueError(f"{name} differs between ranks: {values}")
        return [more for _, more in said]

    def _ready(
        self,
        call: str,
        choices: _Choices,
        operands: dict[str, DistMatrix],
        into: tuple[DistMatrix | None, Distribution | None],
        scalars: tuple[Any, Any],
        precision: int | None,
        default: int | None = None,
    ) -> _Ready:
        """Return the operands as matrices of one precision on all ranks, and the precision of the result.

        All checks that may fail on one rank only are made in here, so that the other ranks receive the error.
        """
        held, to = into
        locals_: dict[str, Matrix] = {}
        numbers: dict[str, tuple[int, ...]] = {}
        chosen: list[int] = []
        bits_asked: list[int | None] = []

        def look() -> tuple[dict[str, Any], dict[str, int]]:
            chosen.extend(_word(name, value, words) for name, (value, words) in choices.items())
            asked = default if precision is None else index(precision)
            if asked is not None and asked < 2:
                raise ValueError(f"precision={asked} is not valid; use at least 2 bits")
            bits_asked.append(asked)
            given = operands if held is None else {**operands, "into": held}
            for name, operand in given.items():
                shown = "c or b" if name == "into" else name
                if not isinstance(operand, DistMatrix) or not isinstance(operand.distribution, Distribution):
                    raise TypeError(f"{shown} must be a DistMatrix, but it is a {type(operand).__name__}")
            if to is not None and not isinstance(to, Distribution):
                raise TypeError(f"to must be a Distribution, but it is a {type(to).__name__}")
            if held is not None and to is not None and to != held.distribution:
                raise ValueError("to= differs from the distribution of c=")
            if held is None and scalars[1] is not None:
                raise ValueError("beta= is given, but c= is not")
            if held is None and to is None and operands.keys() != {"a"}:
                raise ValueError("pass to= or c= for the distribution of the result")
            for name, operand in given.items():
                numbers[name] = operand.distribution._numbers()
                locals_[name] = self._local(name, operand, asked)
            if to is not None:
                numbers["to"] = to._numbers()
                to.local_shape(self.rank)
            target = to if held is None else held.distribution
            facts: dict[str, Any] = {"the call": call}
            for name, (value, words) in choices.items():
                facts[name] = bool(value) if True in words else str(value)
            facts |= {"precision": asked, "the use of c or b": held is not None}
            facts |= {"the use of alpha": scalars[0] is not None, "the use of beta": scalars[1] is not None}
            facts["the distribution of the result"] = None if target is None else target._facts()
            return facts, {name: local.precision for name, local in locals_.items()}

        said = self._compared(look)
        target = to if held is None else held.distribution
        bits = {name: max(found[name] for found in said) for name in locals_}
        result_bits = bits_asked[0] or max([2, *bits.values()])
        of: dict[str, Any] = {}
        wide: list[Matrix] = []

        def take() -> list[Matrix | None]:
            for name, local in locals_.items():
                if name != "into":
                    of[name] = (Matrix(local, precision=bits[name]), numbers[name])
            if held is not None:
                wide.append(self._own(held.local, locals_["into"], result_bits))
            elif target is not None:
                wide.append(Matrix.zeros(*target.local_shape(self.rank), precision=result_bits))
            return [None if one is None else _taken([[one]], result_bits) for one in scalars]

        ready: list[Matrix | None] = []
        self._agreed(lambda: ready.extend(take()))
        into_target = None if target is None else (wide[0], numbers["to" if held is None else "into"])
        return _Ready(tuple(chosen), of, into_target, tuple(ready), result_bits, target)

    @staticmethod
    def _own(given: Any, local: Matrix, precision: int) -> Matrix:
        """A local part in memory that a call may write to."""
        if local.precision != precision:
            return Matrix(local, precision=precision)
        return local.copy() if local is given else local

    def _local(self, name: str, operand: DistMatrix, precision: int | None) -> Matrix:
        shape = operand.distribution.local_shape(self.rank)
        if operand.local is None or 0 in shape:
            local = Matrix.zeros(*shape, precision=2)
        else:
            given = isinstance(operand.local, Matrix)
            local = operand.local if given else _taken(operand.local, precision)
        if local.shape != shape:
            here = f"has the shape {local.shape} on rank {self.rank}"
            raise ValueError(f"{name} {here}, but its distribution requires {shape}")
        return local


def _taken(data: Any, precision: int | None) -> Matrix:
    """The matrix of the given numbers, exactly; fractions and decimals have at least `precision` bits."""
    if precision is None:
        return Matrix(data)
    try:
        own = Matrix(data).precision
    except ValueError:  # numbers that bring no precision along, or none at all
        flat = [one for row in data for one in (row if isinstance(row, (list, tuple)) else [row])]
        own = max((one.bit_length() for one in flat if isinstance(one, int)), default=0)
    return Matrix(data, precision=max(own, precision))


@dataclass(frozen=True)
class _Ready:
    choices: Any
    of: dict[str, Any]
    into: Any
    scalars: Any
    precision: int
    to: Any = None


class Cholesky:
    """The factor `L` of `A = L Lᵀ` in tiles over the ranks; `Ranks.cholesky` makes it."""

    def __init__(self, ranks: Ranks, factor: _sunzi.RankFactor) -> None:
        self._ranks = ranks
        self._factor = factor
        self._asked = factor.precision

    @property
    def order(self) -> int:
        """Number of rows of the matrix."""
        return self._factor.order

    @property
    def precision(self) -> int:
        """Precision of the factor in bits."""
        return self._factor.precision

    def renew(
        self, a: DistMatrix, *, uplo: Literal["both", "lower", "upper"] = "both", precision: int | None = None
    ) -> None:
        """Replace the factor by the factor of `a`, with the same bits as `Ranks.cholesky`.

        The default of `precision` is the previous precision. If order and precision are unchanged and there is no
        memory limit, the new factor is written in the memory of the old one, which saves the time for fresh memory.
        After an error during the factorisation, such as `NotPositiveDefiniteError`, the factor has no rows until it is
        renewed again.
        """
        none = (None, None)
        ready = self._ranks._ready(
            "Cholesky.renew", {"uplo": (uplo, _UPLO)}, {"a": a}, none, none, precision, self._asked
        )
        self._ranks._ranks.renew(self._factor, ready.choices[0], ready.precision, ready.of["a"])
        self._asked = ready.precision

    def solve(self, b: DistMatrix, *, precision: int | None = None) -> DistMatrix:
        """Solve `A X = B`.

        X has the distribution of `b`; the default of `precision` is the precision of the factor.
        """
        ready = self._ranks._ready("Cholesky.solve", {}, {}, (b, None), (None, None), precision, self.precision)
        return DistMatrix(self._ranks._ranks.factor_solve(self._factor, ready.into), ready.to)

    def inverse(self, to: Distribution, *, precision: int | None = None) -> DistMatrix:
        """Compute the inverse of `A` with the distribution `to`.

        Each column is the solution for a column of the identity. The last bits are those of `solve`, on any number of
        ranks, and not those of `sunzi.inverse`, which is a product.
        """
        ready = self._ranks._ready("Cholesky.inverse", {}, {}, (None, to), (None, None), precision, self.precision)
        return DistMatrix(self._ranks._ranks.inverse(self._factor, ready.into), ready.to)

    def log_det(self, *, precision: int | None = None) -> Any:
        """Compute the logarithm of the determinant of `A`, one number, which is the same on all ranks."""
        like: list[Matrix] = []

        def look() -> tuple[dict[str, Any], None]:
            bits = self.precision if precision is None else index(precision)
            like.append(Matrix.zeros(1, 1, precision=bits))
            return {"the call": "Cholesky.log_det", "precision": bits}, None

        self._ranks._compared(look)
        return self._ranks._ranks.log_det(self._factor, like[0])[0, 0]

    def lower(self, to: Distribution) -> DistMatrix:
        """Return the factor itself with the distribution `to`: a lower triangle, with zeros above it."""
        ready = self._ranks._ready("Cholesky.lower", {}, {}, (None, to), (None, None), None, self.precision)
        return DistMatrix(self._ranks._ranks.lower(self._factor, ready.into), to)
