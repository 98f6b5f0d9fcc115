"""Elementary functions of the entries of a matrix, each value rounded to nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, overload

from sunzi import _sunzi
from sunzi._sunzi import Matrix

if TYPE_CHECKING:
    from sunzi._sunzi import _Array, _Rows


class _Function(Protocol):
    """A function of all entries; the result is of the same kind as the operand."""

    __name__: str

    @overload
    def __call__(self, a: Matrix, *, precision: int | None = None) -> Matrix: ...
    @overload
    def __call__(self, a: _Array, *, precision: int | None = None) -> _Array: ...
    @overload
    def __call__(self, a: _Rows, *, precision: int | None = None) -> list[Any]: ...
    @overload
    def __call__(self, a: Any, *, precision: int | None = None) -> Any: ...


_DOCUMENTATION = """Compute {meaning} of each entry `x` of a matrix.

Parameters
----------
a : matrix
    Any matrix or vector.
precision : int, optional
    Precision of the result in bits; see `help(sunzi)`. Fractions, decimals and strings are first rounded to this
    precision.

Returns
-------
matrix
    The values, of the same kind as `a`, each rounded once, to nearest.

Raises
------
ValueError
    The function is not defined for an entry, or the exponent of its value is out of range; the message names the place.

Notes
-----
Cost: one evaluation by MPFR for each entry, on one thread.
{examples}"""


def _function(name: str, meaning: str, examples: str = "") -> _Function:
    def function(a: Any, *, precision: int | None = None) -> Any:
        return _sunzi.elementwise(name, a, {"precision": precision})

    if examples:
        examples = f"\nExamples\n--------\n>>> import sunzi\n{examples}\n"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENTATION.format(meaning=meaning, examples=examples)
    return function


absolute = _function("absolute", "`|x|`", ">>> sunzi.absolute([-1.5, 2.0])\n[1.5, 2.0]")
arccos = _function("arccos", "the inverse cosine, from 0 to pi,")
arccosh = _function("arccosh", "the inverse hyperbolic cosine")
arcsin = _function("arcsin", "the inverse sine, from -pi/2 to pi/2,")
arcsinh = _function("arcsinh", "the inverse hyperbolic sine")
arctan = _function("arctan", "the inverse tangent, from -pi/2 to pi/2,")
arctanh = _function("arctanh", "the inverse hyperbolic tangent")
cbrt = _function("cbrt", "the cube root", ">>> sunzi.cbrt([-27.0, 8.0])\n[-3.0, 2.0]")
ceil = _function("ceil", "the least integer that is at least `x`,")
cos = _function("cos", "the cosine")
cosh = _function("cosh", "the hyperbolic cosine")
exp = _function("exp", "`e^x`", '>>> sunzi.exp([["1"]], precision=100)[0][0][:30]\n\'2.7182818284590452353602874713\'')
expm1 = _function("expm1", "`e^x - 1`")
floor = _function("floor", "the largest integer that is at most `x`,")
log = _function("log", "the natural logarithm", ">>> sunzi.log([1.0, 2.0])\n[0.0, 0.6931471805599453]")
log10 = _function("log10", "the logarithm to base 10")
log1p = _function("log1p", "`log(1 + x)`")
log2 = _function("log2", "the logarithm to base 2", ">>> sunzi.log2([0.25, 8.0])\n[-2.0, 3.0]")
reciprocal = _function("reciprocal", "`1 / x`", ">>> sunzi.reciprocal([4.0, 0.1])\n[0.25, 10.0]")
rint = _function(
    "rint", "the nearest integer, the even one if two are equally near,", ">>> sunzi.rint([2.5, -3.7])\n[2.0, -4.0]"
)
sign = _function("sign", "the sign, -1, 0 or 1,", ">>> sunzi.sign([-2.5, 0.0])\n[-1.0, 0.0]")
sin = _function("sin", "the sine")
sinh = _function("sinh", "the hyperbolic sine")
sqrt = _function(
    "sqrt",
    "the square root",
    ">>> a = sunzi.Matrix([[2, 4]], precision=200)\n"
    ">>> print(f\"{sunzi.sqrt(a):.50g}\")\n"
    "[[1.4142135623730950488016887242096980785696718753769, 2]]",
)
square = _function("square", "`x^2`")
tan = _function("tan", "the tangent")
tanh = _function("tanh", "the hyperbolic tangent")
trunc = _function("trunc", "the integer part of `x`, rounded towards 0,")
