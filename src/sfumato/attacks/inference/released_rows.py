"""The rows of a release: a frame's, or those that a released model makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.inference.record_matrix import table_of
from sfumato.mechanisms.base.release import Release
from sfumato.synthetic.quality.encoded_rows import rows_of

__all__ = ["released_rows"]


def released_rows(release: Any, rng: int) -> pa.Table:
    """Return what an attacker sees as rows, in an order of its own.

    Parameters
    ----------
    release : frame, released model, or release of a frame
        A model is one with ``table`` and ``sample``.
    rng : int
        For the rows that a model makes, and for the order.

    Returns
    -------
    pyarrow.Table
        Shuffled: the order of rows would decide between equally near ones.
    """
    generator = np.random.default_rng(rng)
    if isinstance(release, Release) and callable(getattr(release, "sample", None)):
        rows = rows_of("release", release, generator)
    else:
        rows = table_of("release", getattr(release, "value", release))
    return table_of("release", rows.take(pa.array(generator.permutation(rows.num_rows))))
