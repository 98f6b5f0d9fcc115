"""Types of the native module."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any, ClassVar, Literal, SupportsIndex, final, overload

import numpy

__version__: str
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
    "RankFactor",
    "Ranks",
    "SingularError",
    "__version__",
    "axpy",
    "batch",
    "cholesky",
    "condition",
    "det",
    "diagonal",
    "dot",
    "eigenvalue",
    "elementwise",
    "gemm",
    "gemv",
    "ger",
    "inverse",
    "joined",
    "kernels",
    "ldlt",
    "line",
    "log_det",
    "lu",
    "norm",
    "nrm2",
    "plan",
    "restored",
    "sdp_solve",
    "sdp_solve_file",
    "solve",
    "symm",
    "symv",
    "syr2k",
    "syrk",
    "trace",
    "trmm",
    "trmv",
    "trsm",
    "trsv",
    "verify",
    "weighted_gram",
]

_Array = numpy.ndarray[Any, Any]
_Rows = list[Any] | tuple[Any, ...]
_Index = SupportsIndex | slice | list[Any] | range | _Array
_Progress = Callable[[int, int], object]
_Triangle = Literal["both", "lower", "upper", "lower_only", "upper_only"]
_Numbers = Literal["gmpy2", "mpmath", "flint", "longdouble", "float", "decimal", "str", "fraction"]
_Format = Literal["mtx", "bin", "csv", "tsv", "txt", "npy", "json", "m", "dat-s"]

# The attribute `problem` exists if the call had many problems.
class NotPositiveDefiniteError(ValueError):
    problem: int
    index: int
    # True if rounding can explain the pivot, False if it is proven that no precision helps, None if neither is known.
    more_bits_might_help: bool | None
    # A lower bound of the additional bits that decide the sign of the pivot, if `more_bits_might_help` is True; else None.
    more_bits: int | None
    # True if it is proven that the matrix is singular, None if that is not known.
    singular: bool | None

class NotSymmetricError(ValueError):
    problem: int
    place: tuple[int, int]

class SingularError(ValueError):
    problem: int
    index: int

class MemoryLimitError(MemoryError):
    problem: int
    limit_bytes: int
    minimum_bytes: int

class CheckError(RuntimeError): ...
class DeviceError(RuntimeError): ...
class CancelledError(RuntimeError): ...

@final
class Context:
    def __new__(
        cls,
        threads: int | None = None,
        memory: int | str | None = None,
        kernel: str = "auto",
        device: str | Sequence[str] | None = None,
        self_check: bool = False,
        freivalds: bool = False,
    ) -> Context: ...
    @property
    def threads(self) -> int: ...
    @property
    def memory(self) -> int | None: ...
    @property
    def kernel(self) -> str: ...
    @property
    def devices(self) -> list[str]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Matrix:
    __array_ufunc__: ClassVar[None]
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __new__(cls, data: Any, *, precision: int | None = None, numbers: _Numbers | None = None) -> Matrix: ...
    @staticmethod
    def zeros(rows: int, cols: int, *, precision: int, numbers: _Numbers = "fraction") -> Matrix: ...
    @staticmethod
    def identity(order: int, *, precision: int, numbers: _Numbers = "fraction") -> Matrix: ...
    @staticmethod
    def from_bytes(data: bytes, numbers: _Numbers = "fraction") -> Matrix: ...
    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        format: _Format | None = None,
        header: bool | None = None,
        precision: int | None = None,
        numbers: _Numbers = "fraction",
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def precision(self) -> int: ...
    @property
    def numbers(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def T(self) -> Matrix: ...
    def astype(self, numbers: _Numbers) -> Matrix: ...
    def rounded(self, bits: int) -> Matrix: ...
    def round(self, ndigits: int = 0) -> Matrix: ...
    def __round__(self, ndigits: int | None = None) -> Matrix: ...
    def copy(self) -> Matrix: ...
    def cholesky(
        self,
        *,
        uplo: _Triangle | None = None,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    @overload
    def solve(
        self,
        b: Matrix,
        *,
        uplo: _Triangle | None = None,
        digits: int | None = None,
        certified: bool = False,
        dps: int | None = None,
        precision: int | Literal["auto"] | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
        report: dict[str, Any] | None = None,
    ) -> Matrix: ...
    @overload
    def solve(
        self,
        b: _Array,
        *,
        uplo: _Triangle | None = None,
        digits: int | None = None,
        certified: bool = False,
        dps: int | None = None,
        precision: int | Literal["auto"] | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
        report: dict[str, Any] | None = None,
    ) -> _Array: ...
    @overload
    def solve(
        self,
        b: _Rows,
        *,
        uplo: _Triangle | None = None,
        digits: int | None = None,
        certified: bool = False,
        dps: int | None = None,
        precision: int | Literal["auto"] | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
        report: dict[str, Any] | None = None,
    ) -> list[Any]: ...
    @overload
    def solve(
        self,
        b: Any,
        *,
        uplo: _Triangle | None = None,
        digits: int | None = None,
        certified: bool = False,
        dps: int | None = None,
        precision: int | Literal["auto"] | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
        report: dict[str, Any] | None = None,
    ) -> Any: ...
    def inverse(
        self,
        *,
        uplo: _Triangle | None = None,
        digits: int | None = None,
        certified: bool = False,
        dps: int | None = None,
        precision: int | Literal["auto"] | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
        report: dict[str, Any] | None = None,
    ) -> Matrix: ...
    def log_det(
        self,
        *,
        uplo: _Triangle | None = None,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def det(
        self,
        *,
        uplo: _Triangle | None = None,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def to_list(self, numbers: _Numbers | None = None) -> list[list[Any]]: ...
    def tolist(self, numbers: _Numbers | None = None) -> list[list[Any]]: ...
    def trace(self) -> Any: ...
    def diagonal(self) -> list[Any]: ...
    def to_numpy(self, numbers: _Numbers | None = None) -> _Array: ...
    def to_mpmath(self) -> Any: ...
    def to_gmpy2(self) -> list[list[Any]]: ...
    def to_flint(self) -> Any: ...
    def to_bytes(self) -> bytes: ...
    def save(
        self, path: str | PathLike[str], *, format: _Format | None = None, progress: _Progress | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: slice | list[Any] | range | _Array, /) -> Matrix: ...
    @overload
    def __getitem__(self, key: tuple[slice | list[Any] | range | _Array, _Index], /) -> Matrix: ...
    @overload
    def __getitem__(self, key: tuple[_Index, slice | list[Any] | range | _Array], /) -> Matrix: ...
    @overload
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __matmul__(self, other: Any, /) -> Matrix: ...
    def __rmatmul__(self, other: Any, /) -> Matrix: ...
    def __add__(self, other: Any, /) -> Matrix: ...
    def __radd__(self, other: Any, /) -> Matrix: ...
    def __sub__(self, other: Any, /) -> Matrix: ...
    def __rsub__(self, other: Any, /) -> Matrix: ...
    def __mul__(self, other: Any, /) -> Matrix: ...
    def __rmul__(self, other: Any, /) -> Matrix: ...
    def __truediv__(self, other: Any, /) -> Matrix: ...
    def __rtruediv__(self, value: Any, /) -> Any: ...
    def __neg__(self) -> Matrix: ...
    def __abs__(self) -> Matrix: ...
    def __contains__(self, number: Any, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array: ...
    def __format__(self, spec: str, /) -> str: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Cholesky:
    def __new__(
        cls,
        a: Any,
        *,
        uplo: _Triangle | None = None,
        accuracy: Literal["entrywise", "norm"] = "entrywise",
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Cholesky: ...
    @staticmethod
    def from_factor(
        l: Any, *, accuracy: Literal["entrywise", "norm"] = "norm", precision: int | None = None
    ) -> Cholesky: ...
    @staticmethod
    def _restored(
        l: Any, accuracy: str, working_bits: int | None, rounded_bits: int | None = None
    ) -> Cholesky: ...
    @staticmethod
    def _of_balls(midpoint: Matrix, radius: Matrix, precision: int) -> Cholesky: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def L(self) -> Any: ...
    @property
    def U(self) -> Any: ...
    @property
    def order(self) -> int: ...
    @property
    def precision(self) -> int: ...
    @overload
    def solve(
        self,
        b: Matrix,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    @overload
    def solve(
        self,
        b: _Array,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> _Array: ...
    @overload
    def solve(
        self,
        b: _Rows,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> list[Any]: ...
    @overload
    def solve(
        self,
        b: Any,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def inverse(
        self,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def log_det(self) -> Any: ...
    def det(self) -> Any: ...
    def log_det_digits(
        self,
        a: Any = None,
        *,
        uplo: _Triangle | None = None,
        certified: bool = False,
        context: Context | None = None,
    ) -> float: ...
    def solution_digits(
        self,
        a: Any,
        b: Any,
        x: Any,
        *,
        uplo: _Triangle | None = None,
        certified: bool = False,
        context: Context | None = None,
    ) -> float: ...
    def inverse_digits(
        self,
        a: Any,
        inverse: Any,
        *,
        uplo: _Triangle | None = None,
        certified: bool = False,
        context: Context | None = None,
    ) -> float: ...
    def scaled_condition(self, *, context: Context | None = None) -> Any: ...

_Described = tuple[Matrix, tuple[int, ...]]

@final
class RankFactor:
    @property
    def order(self) -> int: ...
    @property
    def precision(self) -> int: ...

@final
class Ranks:
    def __new__(cls, handle: int, options: dict[str, Any]) -> Ranks: ...
    def close(self) -> None: ...
    def syrk(
        self,
        choices: tuple[int, int],
        a: _Described,
        c: _Described,
        scalars: tuple[Matrix | None, Matrix | None],
    ) -> Matrix: ...
    def gemm(
        self,
        trans: tuple[int, int],
        a: _Described,
        b: _Described,
        c: _Described,
        scalars: tuple[Matrix | None, Matrix | None],
    ) -> Matrix: ...
    def trsm(
        self, kind: tuple[int, int, int, int], t: _Described, b: _Described, alpha: Matrix | None
    ) -> Matrix: ...
    def solve(self, uplo: int, a: _Described, b: _Described) -> Matrix: ...
    def plan(
        self,
        operation: str,
        choices: list[int],
        placed: list[tuple[tuple[int, int], tuple[int, ...]]],
        bits: list[int],
    ) -> tuple[int, int, int]: ...
    def factor(self, uplo: int, precision: int, a: _Described) -> RankFactor: ...
    def renew(self, factor: RankFactor, uplo: int, precision: int, a: _Described) -> None: ...
    def factor_solve(self, factor: RankFactor, b: _Described) -> Matrix: ...
    def log_det(self, factor: RankFactor, like: Matrix) -> Matrix: ...
    def inverse(self, factor: RankFactor, x: _Described) -> Matrix: ...
    def lower(self, factor: RankFactor, a: _Described) -> Matrix: ...

@final
class Ldlt:
    def __new__(
        cls,
        a: Any,
        *,
        uplo: _Triangle | None = None,
        accuracy: Literal["entrywise", "norm"] = "entrywise",
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Ldlt: ...
    @staticmethod
    def _restored(l: Matrix, d: Matrix, growth: tuple[int, int], accuracy: str) -> Ldlt: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def L(self) -> Matrix: ...
    @property
    def d(self) -> Matrix: ...
    @property
    def order(self) -> int: ...
    @property
    def precision(self) -> int: ...
    @property
    def inertia(self) -> tuple[int, int]: ...
    @property
    def growth(self) -> float: ...
    @overload
    def solve(
        self,
        b: Matrix,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    @overload
    def solve(
        self,
        b: _Array,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> _Array: ...
    @overload
    def solve(
        self,
        b: _Rows,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> list[Any]: ...
    @overload
    def solve(
        self,
        b: Any,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def solution_digits(
        self,
        a: Any,
        b: Any,
        x: Any,
        *,
        uplo: _Triangle | None = None,
        certified: bool = False,
        context: Context | None = None,
    ) -> float: ...
    def det(self) -> Any: ...

@final
class Lu:
    def __new__(
        cls,
        a: Any,
        *,
        accuracy: Literal["entrywise", "norm"] = "entrywise",
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Lu: ...
    @staticmethod
    def _restored(factors: Matrix, rows: list[int]) -> Lu: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def lower(self) -> Matrix: ...
    @property
    def upper(self) -> Matrix: ...
    @property
    def rows(self) -> list[int]: ...
    @property
    def order(self) -> int: ...
    @property
    def precision(self) -> int: ...
    @overload
    def solve(
        self,
        b: Matrix,
        *,
        transposed: bool = False,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    @overload
    def solve(
        self,
        b: _Array,
        *,
        transposed: bool = False,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> _Array: ...
    @overload
    def solve(
        self,
        b: _Rows,
        *,
        transposed: bool = False,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> list[Any]: ...
    @overload
    def solve(
        self,
        b: Any,
        *,
        transposed: bool = False,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Any: ...
    def inverse(
        self,
        *,
        precision: int | None = None,
        context: Context | None = None,
        progress: _Progress | None = None,
    ) -> Matrix: ...
    def det(self) -> Any: ...

def kernels() -> list[str]: ...
def line(matrix: Matrix, row: bool) -> Matrix: ...
def restored(data: bytes, numbers: str, rounded_bits: int | None) -> Matrix: ...
def elementwise(name: str, a: Any, options: dict[str, Any]) -> Any: ...
def joined(parts: Any, beside: bool, precision: int | None) -> Matrix: ...
def batch(operation: str, problems: list[list[Any]], options: dict[str, Any]) -> list[Any]: ...
def syrk(p: Any, options: dict[str, Any]) -> Any: ...
def weighted_gram(p: Any, d: Any, options: dict[str, Any]) -> Any: ...
def gemm(a: Any, b: Any, options: dict[str, Any]) -> Any: ...
def trsm(t: Any, b: Any, options: dict[str, Any]) -> Any: ...
def cholesky(a: Any, options: dict[str, Any]) -> Any: ...
def solve(a: Any, b: Any, options: dict[str, Any]) -> Any: ...
def log_det(a: Any, options: dict[str, Any]) -> Any: ...
def ldlt(a: Any, options: dict[str, Any]) -> tuple[Any, Any]: ...
def lu(a: Any, options: dict[str, Any]) -> Lu: ...
def inverse(a: Any, options: dict[str, Any]) -> Any: ...
def det(a: Any, options: dict[str, Any]) -> Any: ...
def condition(a: Any, options: dict[str, Any]) -> Any: ...
def norm(a: Any, options: dict[str, Any]) -> Any: ...
def trace(a: Any, options: dict[str, Any]) -> Any: ...
def diagonal(a: Any, options: dict[str, Any]) -> Any: ...
def verify(operation: str, operands: list[Any], options: dict[str, Any]) -> dict[str, Any]: ...
def gemv(a: Any, x: Any, options: dict[str, Any]) -> Any: ...
def symv(a: Any, x: Any, options: dict[str, Any]) -> Any: ...
def trmv(t: Any, x: Any, options: dict[str, Any]) -> Any: ...
def trsv(t: Any, b: Any, options: dict[str, Any]) -> Any: ...
def ger(x: Any, y: Any, options: dict[str, Any]) -> Any: ...
def dot(x: Any, y: Any, options: dict[str, Any]) -> Any: ...
def trmm(t: Any, b: Any, options: dict[str, Any]) -> Any: ...
def symm(a: Any, b: Any, options: dict[str, Any]) -> Any: ...
def syr2k(a: Any, b: Any, options: dict[str, Any]) -> Any: ...
def axpy(alpha: Any, x: Any, y: Any, options: dict[str, Any]) -> Any: ...
def nrm2(x: Any, options: dict[str, Any]) -> Any: ...
def eigenvalue(a: Any, l: Any | None, options: dict[str, Any]) -> tuple[Fraction, Fraction]: ...
def plan(operation: str, sizes: list[int], options: dict[str, Any]) -> dict[str, Any]: ...
def sdp_solve(
    c: Any, blocks: Any, equations: Any, run: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]: ...
def sdp_solve_file(
    path: str | PathLike[str], numbers: str, run: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]: ...
