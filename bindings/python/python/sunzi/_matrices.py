"""Functions that join matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sunzi import _sunzi
from sunzi._sunzi import Matrix


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
