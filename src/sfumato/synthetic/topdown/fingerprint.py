"""A hash of what TopDown is asked: the same for the same places, questions and limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import canonical
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.limits.joint_limits import JointLimits

__all__ = ["fingerprint"]


def fingerprint(
    hierarchy: Hierarchy,
    asked: Mapping[str, object],
    groups: Sequence[NDArray[np.int64]],
    limits: JointLimits | None,
) -> str:
    """Return a hash of all that is given.

    Parameters
    ----------
    hierarchy : Hierarchy
    asked : mapping of str to object
        What JSON can hold.
    groups : sequence of int64 array
        The group of each cell, by query.
    limits : JointLimits or None
        What bounds leave to each group.

    Returns
    -------
    str
        64 hexadecimal digits, the same on all machines.
    """
    arrays = [*hierarchy.parents, *groups]
    if limits is not None:
        for part in limits.parts:
            arrays += [part.query.group_of, *part.lower, *part.upper]
    hashed = hashlib.sha256()
    places = [labels.to_pylist() for labels in hierarchy.labels]
    sizes = [array.size for array in arrays]
    hashed.update(canonical({**asked, "levels": hierarchy.levels, "places": places, "sizes": sizes}).encode())
    for array in arrays:
        hashed.update(np.ascontiguousarray(array, "<i8").tobytes())
    return hashed.hexdigest()
