"""Few tables in which all small sets of attributes are together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np

from sfumato import _check
from sfumato.local.marginals.lattice import Attributes

__all__ = ["covering"]

_ROUNDING: Final = 1e-9


def covering(sizes: Sequence[int], order: int, width: int, cells: int) -> tuple[Attributes, ...]:
    """Return tables in which all sets of ``order`` attributes are, one table at a time (greedily).

    Parameters
    ----------
    sizes : sequence of int
        Categories of each attribute.
    order : int
    width, cells : int
        The maximum numbers of attributes and cells of a table; sets with more cells get tables of their own.

    Notes
    -----
    A table starts with the first set that is in none yet, and takes the attribute that brings most such sets
    with it, of these the one that is in the fewest tables, until it is full. That is a small design, and need
    not be the smallest.

    Examples
    --------
    >>> covering((2,) * 6, 2, 3, 8)
    ((0, 1, 2), (0, 3, 4), (0, 1, 5), (1, 2, 3), (1, 4, 5), (2, 4, 5), (3, 5))
    """
    of = _check.integer("order", order, minimum=1)
    largest = _check.integer("width", width, minimum=of)
    count = len(sizes)
    row = {rest: at for at, rest in enumerate(combinations(range(count), of - 1))}
    # Which attributes fill the sets of one less up to one that is in no table yet.
    open_to = np.ones((len(row), count), np.bool_)
    for rest, at in row.items():
        open_to[at, list(rest)] = False
    logs, used = np.log(sizes), np.zeros(count, np.int64)
    views: list[Attributes] = []
    for first in combinations(range(count), of):
        if not open_to[row[first[:-1]], first[-1]]:
            continue
        view = list(first)
        gains = open_to[[row[rest] for rest in combinations(first, of - 1)]].sum(axis=0)
        while len(view) < largest:
            room = np.log(cells) - logs[view].sum() + _ROUNDING
            fits = (logs <= room) & (gains > 0)
            fits[view] = False
            if not fits.any():
                break
            # The largest gain, the smallest use, the first index.
            best = int(np.lexsort((np.arange(count), used, -np.where(fits, gains, 0)))[0])
            with_it = (
                [row[tuple(sorted((*rest, best)))] for rest in combinations(view, of - 2)] if of > 1 else []
            )
            gains = gains + open_to[with_it].sum(axis=0) if with_it else gains
            view.append(best)
        view.sort()
        used[view] += 1
        views.append(tuple(view))
        for rest in combinations(view, of - 1):
            open_to[row[rest], view] = False
    return tuple(views)
