"""Types of results: that of the operand which a function names.

These decorators state for a type checker that a function of a `Matrix` gives a `Matrix`, of an array an array, of a
list a list. At run time they change nothing. Two cases are beyond them: with `out=` the result is that array, and if
any operand has balls of python-flint, the result has them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from typing_extensions import Concatenate, ParamSpec

    from sunzi._sunzi import Matrix, _Array, _Rows

    _P = ParamSpec("_P")

    class _LikeFirst(Protocol[_P]):
        """A function with a result like its first operand."""

        @overload
        def __call__(self, a: Matrix, /, *args: _P.args, **options: _P.kwargs) -> Matrix: ...
        @overload
        def __call__(self, a: _Array, /, *args: _P.args, **options: _P.kwargs) -> _Array: ...
        @overload
        def __call__(self, a: _Rows, /, *args: _P.args, **options: _P.kwargs) -> list[Any]: ...
        @overload
        def __call__(self, a: Any, /, *args: _P.args, **options: _P.kwargs) -> Any: ...

    class _LikeSecond(Protocol[_P]):
        """A function with a result like its second operand."""

        @overload
        def __call__(self, a: Any, b: Matrix, /, *args: _P.args, **options: _P.kwargs) -> Matrix: ...
        @overload
        def __call__(self, a: Any, b: _Array, /, *args: _P.args, **options: _P.kwargs) -> _Array: ...
        @overload
        def __call__(self, a: Any, b: _Rows, /, *args: _P.args, **options: _P.kwargs) -> list[Any]: ...
        @overload
        def __call__(self, a: Any, b: Any, /, *args: _P.args, **options: _P.kwargs) -> Any: ...

    class _LikeThird(Protocol[_P]):
        """A function with a result like its third operand."""

        @overload
        def __call__(self, a: Any, b: Any, c: Matrix, /, *args: _P.args, **options: _P.kwargs) -> Matrix: ...
        @overload
        def __call__(self, a: Any, b: Any, c: _Array, /, *args: _P.args, **options: _P.kwargs) -> _Array: ...
        @overload
        def __call__(self, a: Any, b: Any, c: _Rows, /, *args: _P.args, **options: _P.kwargs) -> list[Any]: ...
        @overload
        def __call__(self, a: Any, b: Any, c: Any, /, *args: _P.args, **options: _P.kwargs) -> Any: ...

    class _PairLikeFirst(Protocol[_P]):
        """A function with two results like its first operand."""

        @overload
        def __call__(self, a: Matrix, /, *args: _P.args, **options: _P.kwargs) -> tuple[Matrix, Matrix]: ...
        @overload
        def __call__(self, a: _Array, /, *args: _P.args, **options: _P.kwargs) -> tuple[_Array, _Array]: ...
        @overload
        def __call__(self, a: _Rows, /, *args: _P.args, **options: _P.kwargs) -> tuple[list[Any], list[Any]]: ...
        @overload
        def __call__(self, a: Any, /, *args: _P.args, **options: _P.kwargs) -> tuple[Any, Any]: ...


def like_first(function: Callable[Concatenate[Any, _P], Any]) -> _LikeFirst[_P]:
    """State that the result of a function is like its first operand."""
    return function


def like_second(function: Callable[Concatenate[Any, Any, _P], Any]) -> _LikeSecond[_P]:
    """State that the result of a function is like its second operand."""
    return function


def like_third(function: Callable[Concatenate[Any, Any, Any, _P], Any]) -> _LikeThird[_P]:
    """State that the result of a function is like its third operand."""
    return function


def pair_like_first(function: Callable[Concatenate[Any, _P], tuple[Any, Any]]) -> _PairLikeFirst[_P]:
    """State that the two results of a function are like its first operand."""
    return function
