"""The published division of each level's budget over the queries of the 2020 Census redistricting data."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

__all__ = ["PUBLISHED_SHARES"]

_PARTS: Final = {
    "us": (4097, (0, 52, 26, 26, 26, 26, 130, 130, 26, 442, 3213)),
    "state": (4097, (3773, 6, 6, 6, 6, 6, 12, 12, 6, 34, 230)),
    "county": (4097, (3126, 10, 10, 10, 10, 10, 28, 28, 10, 101, 754)),
    "tract": (4102, (1567, 8, 5, 5, 5, 5, 1933, 20, 5, 67, 482)),
    "block_group": (4099, (1705, 3, 3, 3, 3, 3, 1055, 9, 3, 24, 1288)),
    "block": (4097, (5, 9, 5, 5, 5, 5, 21, 21, 5, 71, 3945)),
}

PUBLISHED_SHARES: Final[Mapping[str, tuple[Fraction, ...]]] = MappingProxyType(
    {level: tuple(Fraction(part, whole) for part in parts) for level, (whole, parts) in _PARTS.items()}
)
"""By level, for each query of `Census2020.queries`; a fact of the Bureau's published code (CC0).

The strategy is ``ProductionCandidate20210527US_mult8_add02_dsepJune3``. The country's total is not measured,
as those of the states are exact.
"""
