"""What is known of a generator's noise before a row is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sfumato.synthetic.marginals.workload import Clique

__all__ = ["PublicNoise"]


class PublicNoise(NamedTuple):
    """Standard deviations of the noise that a generator draws; which tables it measures, the rows decide.

    Attributes
    ----------
    columns : sequence of float
        Of a cell of each column's table.
    tables : mapping of tuple of int to float
        Of a cell of each table of several columns, where that is measured once.
    measured : int
        Up to how many of these are measured, about.
    """

    columns: list[float]
    tables: Mapping[Clique, float]
    measured: int
