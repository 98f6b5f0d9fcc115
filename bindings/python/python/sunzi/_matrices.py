"""Functions that make matrices, and join them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sunzi import _sunzi
from sunzi._sunzi import Matrix

if TYPE_CHECKING:
    from sunzi._sunzi import _Numbers


def eye(rows: int, cols: int | None = None, *, precision: int, numbers: _Numbers = "fraction") -> Matrix:
    """Make a `Matrix` with ones on its diagonal and zeros elsewhere.

    Parameters
    ----------
    rows : int
        Number of rows.
    cols : int, optional
        Number of columns; the default is `rows`.
    precision : int
        Precision in bits.
    numbers : str
        Type of single entries; see `Matrix`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.eye(2, precision=100)
    Matrix([[1, 0],
            [0, 1]], precision=100, numbers='fraction')
    """
    if cols is None or cols == rows:
        return Matrix.identity(rows, precision=precision, numbers=numbers)
    return Matrix.identity(max(rows, cols), precision=precision, numbers=numbers)[:rows, :cols].copy()


def zeros(rows: int, cols: int, *, precision: int, numbers: _Numbers = "fraction") -> Matrix:
    """Make a `Matrix` of zeros; parameters as in `eye`.

    Examples
    --------
    >>> import sunzi
    >>> sunzi.zeros(1, 2, precision=100) + 1
    Matrix([[1, 1]], precision=100, numbers='fraction')
    """
    return Matrix.zeros(rows, cols, precision=precision, numbers=numbers)


def vstack(parts: Iterable[Any], *, precision: int | None = None) -> Matrix:
    """Stack matrices vertically into one `Matrix`; a flat list is a row.

    Parameters
    ----------
    parts : iterable
        Matrices of any kind that `Matrix` accepts, with the same number of columns.
    precision : int, optional
        Precision of the result; the default is the largest precision that the parts have or need.

    Raises
    ------
    ValueError
        The numbers of columns differ.

    Examples
    --------
    >>> import sunzi
    >>> a = sunzi.Matrix([[1.0, 2.0]])
    >>> sunzi.vstack([a, a[0], [3.0, 4.0]]).to_list()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return _sunzi.joined(parts, False, precision)


def hstack(parts: Iterable[Any], *, precision: int | None = None) -> Matrix:
    """Stack matrices horizontally into one `Matrix`; a flat list is a column. Parameters and errors as in `vstack`.

    Examples
    --------
    >>> import sunzi
    >>> a = sunzi.Matrix([[1.0], [2.0]])
    >>> sunzi.hstack([a, [3.0, 4.0]]).to_list()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return _sunzi.joined(parts, True, precision)
