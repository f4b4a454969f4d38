"""What lies below a place and restricts it: places where limits of several partitions meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from sfumato.synthetic.topdown.constraints import GroupLimits
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes

__all__ = ["Coming", "Lookahead", "below"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lookahead:
    """Coupled places within a place, whose counts by group of the finest partition are to exist.

    Parameters
    ----------
    owner : int64 array of shape (places,)
        The place, of these, that each lies in; -1 for the place that they all lie in.
    lower, upper : tuple of int64 array of shape (places, groups)
        Their limits by partition, the finest one's last.
    rest_lower, rest_upper : int64 array of shape (1 + places, groups)
        What the other parts of the place itself, and then of each of these, may sum to, by group of the
        finest partition.
    inner : bool array of shape (1 + places,)
        Which of them have coupled places in them; of the others the limits say all.
    """

    owner: Nodes
    lower: tuple[Nodes, ...]
    upper: tuple[Nodes, ...]
    rest_lower: Nodes
    rest_upper: Nodes
    inner: np.ndarray[tuple[int], np.dtype[np.bool_]]


class Coming(NamedTuple):
    """A child of a family with what lies below it, and the group of the finest partition of each cell."""

    child: int
    atom_of: Nodes
    coarse: tuple[Nodes, ...]
    look: Lookahead


def below(
    hierarchy: Hierarchy,
    parts: Sequence[GroupLimits],
    coupled: Sequence[np.ndarray[tuple[int], np.dtype[np.bool_]]],
    depth: int,
    place: int,
) -> Lookahead | None:
    """Return the coupled places within a place, None where there is none.

    Parameters
    ----------
    hierarchy : Hierarchy
    parts : sequence of GroupLimits
        The finest partition's last.
    coupled : sequence of bool array
        By depth.
    depth, place : int
        Of the place.

    Returns
    -------
    Lookahead or None
    """
    finest = parts[-1]
    groups = finest.query.groups
    owners, lower, upper = [], [[] for _ in parts], [[] for _ in parts]  # type: ignore[var-annotated]
    rests, inner = [], []
    level, known = np.array([place]), 0  # places of one depth, and how many came before them
    for d in range(depth, len(hierarchy.levels)):
        lowest = d == len(hierarchy.levels) - 1
        starts = hierarchy.starts(d) if not lowest else None
        following = []
        for number, each in enumerate(level.tolist()):
            rest = np.zeros((2, groups), np.int64)
            inside = np.zeros(0, np.int64)
            if starts is not None:
                children = np.arange(starts[each], starts[each + 1])
                held = coupled[d + 1][children]
                inside, other = children[held], children[~held]
                rest[0] = finest.lower[d + 1][other].sum(axis=0)
                high = finest.upper[d + 1][other].sum(axis=0, dtype=np.float64)
                rest[1] = np.minimum(high, float(1 << 52)).astype(np.int64)
            rests.append(rest)
            inner.append(len(inside) > 0)
            owners.append(np.full(len(inside), known + number - 1))
            following.append(inside)
        known += len(level)
        level = np.concatenate(following)
        if not len(level):
            break
        for k, part in enumerate(parts):
            lower[k].append(part.lower[d + 1][level])
            upper[k].append(part.upper[d + 1][level])
    if not inner[0]:
        return None
    both = np.array(rests)
    return Lookahead(
        np.concatenate(owners),
        tuple(np.concatenate(each) for each in lower),
        tuple(np.concatenate(each) for each in upper),
        both[:, 0],
        both[:, 1],
        np.array(inner),
    )
