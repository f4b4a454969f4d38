"""Records in groups of public sizes, for tests that compare groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch, UnboundedSensitivity
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.query.records import as_numbers
from sfumato.privacy.neighboring import Neighboring

__all__ = ["as_sizes", "check_fixed_groups", "checked_release", "real_column"]

_MOST: Final = 1 << 20


def as_sizes(sizes: object, *, exactly: int | None = None) -> tuple[int, ...]:
    """Return the public sizes of groups, at least two of them, or refuse what are none."""
    if not isinstance(sizes, Sequence) or isinstance(sizes, str) or len(sizes) < 2:
        _check.refuse("sizes", "hold at least two numbers of records", sizes, "pass one for each group")
    found = tuple(
        _check.integer("sizes", size, minimum=1, remedy="leave out a group without records") for size in sizes
    )
    if exactly is not None and len(found) != exactly:
        remedy = "use KruskalWallis for more groups"
        _check.refuse("sizes", f"hold {exactly} numbers of records", sizes, remedy)
    if sum(found) > _MOST:
        _check.refuse("sizes", "add up to at most 2**20", sizes, "test a public part of the records")
    return found


def check_fixed_groups(neighboring: Neighboring) -> None:
    """Refuse all relations but replace-one, under which a record is replaced within its group.

    Raises
    ------
    UnboundedSensitivity
        For any other.
    """
    if neighboring is not Neighboring.REPLACE_ONE:
        raise UnboundedSensitivity(
            f"neighboring must be replace-one where the groups' sizes are public, got {neighboring}; "
            "pass Neighboring.REPLACE_ONE"
        )


def real_column(data: Any, count: int) -> NDArray[np.float64]:
    """Return so many real numbers: of more the first, what is missing and NaN as 0."""
    array = as_numbers(data, integral=False)[:count].astype(np.float64)
    padded = np.zeros(count)
    padded[: array.size] = np.nan_to_num(array, nan=0.0, posinf=math.inf, neginf=-math.inf)
    return padded


def checked_release(query: Query, release: object) -> LatticeRelease:
    """Return a release of a query under replace-one, or refuse it."""
    release = query.check_release(release)
    if release.neighboring is not Neighboring.REPLACE_ONE:
        rule, found = "be under replace-one", f"it is for {release.neighboring}"
        remedy = "pass neighboring=Neighboring.REPLACE_ONE to the mechanism"
        _check.refuse_state("release", rule, found, remedy, error=NeighboringMismatch)
    return release
