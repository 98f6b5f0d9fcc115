"""Matrices joined to one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sunzi import _sunzi
from sunzi._sunzi import Matrix


def vstack(parts: Iterable[Any], *, precision: int | None = None) -> Matrix:
    """The matrices of a list one below the other, as one `Matrix`; a flat list is a row.

    Each part is anything that `Matrix` takes. The precision is the largest that they bring along and need, unless one
    is given. Raises `ValueError` where the numbers of columns differ.

    >>> import sunzi
    >>> a = sunzi.Matrix([[1.0, 2.0]])
    >>> sunzi.vstack([a, a[0], [3.0, 4.0]]).to_list()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return _sunzi.joined(parts, False, precision)


def hstack(parts: Iterable[Any], *, precision: int | None = None) -> Matrix:
    """The matrices of a list beside each other, as one `Matrix`; a flat list is a column. As `vstack` otherwise.

    >>> import sunzi
    >>> a = sunzi.Matrix([[1.0], [2.0]])
    >>> sunzi.hstack([a, [3.0, 4.0]]).to_list()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return _sunzi.joined(parts, True, precision)
