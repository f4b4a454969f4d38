"""The grid of the benchmark of intervals: shapes of rows, aggregates of them, and kinds of noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

__all__ = ["Case", "cases", "rows"]

_ROW: Final = "contribution_bounds_per_row => (0, 100)"
_GROUP: Final = "contribution_bounds_per_group => (0, 100)"
_TWO: Final = "contribution_bounds_per_row => ((0, 100), (0, 100))"
_FEW: Final = "contribution_bounds_per_group => (0, 3)"
_BITS: Final = "contribution_bounds_per_row => (0, 1)"

_Row: TypeAlias = tuple[str, dict[str, str], str, int, str, bool]

_COUNTS: Final = {
    "COUNT": "COUNT(*)",
    "COUNT / COUNT": "COUNT(z) / COUNT(*)",
}
_SUMS: Final = {
    "SUM": f"SUM(x, {_GROUP})",
    "SUM + SUM": f"SUM(x, {_GROUP}) + SUM(y, {_GROUP})",
    "AVG": f"AVG(x, {_GROUP})",
    "SUM / COUNT": f"SUM(x, {_GROUP}) / COUNT(*)",
    "SUM / (SUM + SUM)": f"SUM(x, {_GROUP}) / (SUM(x, {_GROUP}) + SUM(y, {_GROUP}))",
    "SUM / (COUNT + COUNT)": f"SUM(x, {_GROUP}) / (COUNT(x) + COUNT(y))",
    "(SUM - SUM) / COUNT": f"(SUM(x, {_GROUP}) - SUM(y, {_GROUP})) / COUNT(*)",
    "(SUM - 9 COUNT) / (SUM + COUNT)": (f"(SUM(x, {_GROUP}) - 9 * COUNT(*)) / (SUM(y, {_GROUP}) + COUNT(*))"),
}
_MOMENTS: Final = {
    "VAR_POP": f"VAR_POP(x, {_ROW})",
    "VAR_SAMP": f"VAR_SAMP(x, {_ROW})",
    "STDDEV_POP": f"STDDEV_POP(x, {_ROW})",
    "STDDEV_SAMP": f"STDDEV_SAMP(x, {_ROW})",
    "COVAR_POP": f"COVAR_POP(x, y, {_TWO})",
    "COVAR_SAMP": f"COVAR_SAMP(x, y, {_TWO})",
    "CORR": f"CORR(x, y, {_TWO})",
}
_QUANTILES: Final = {
    "median, its interval paid for": f"PERCENTILE_CONT(x, 0.5, interval_epsilon => 0.5, {_ROW})",
    "median off a tree": f"PERCENTILE_CONT(x, 0.5, {_ROW})",
}
_TREE: Final = f", APPROX_QUANTILES(x, 100, {_ROW}) AS many"
_LATTICE: Final = {
    "COUNT": "COUNT(*)",
    "SUM": f"SUM(i, {_FEW})",
    "SUM + SUM": f"SUM(i, {_FEW}) + SUM(j, {_FEW})",
    "COUNT / SUM": f"COUNT(*) / SUM(i, {_FEW})",
    "SUM / COUNT": f"SUM(i, {_FEW}) / COUNT(*)",
    "SUM / (COUNT + SUM)": f"SUM(i, {_FEW}) / (COUNT(*) + SUM(i, {_FEW}))",
    "(SUM - COUNT) / (SUM + COUNT)": f"(SUM(i, {_FEW}) - COUNT(*)) / (SUM(j, {_FEW}) + COUNT(*))",
    "VAR_POP": f"VAR_POP(b, {_BITS})",
    "STDDEV_SAMP": f"STDDEV_SAMP(b, {_BITS})",
}
_NOISES: Final = {
    "Laplace": ("delta=0, max_groups_contributed=1", False),
    "Gaussian": ("delta=1e-6, max_groups_contributed=50", True),
    "Laplace, threshold": ("delta=1e-6, max_groups_contributed=1", True),
}


@dataclass(frozen=True, slots=True)
class Case:
    """An aggregate of rows of a shape under a kind of noise, and whether all of its noise is enumerated."""

    part: str
    name: str
    call: str
    shape: str
    units: int
    noise: str
    options: str
    threshold: bool
    exact: bool = False

    @property
    def title(self) -> str:
        """What it is called in the table."""
        return f"{self.name}, {self.shape}, {self.units}"


def rows(shape: str, units: int) -> pa.Table:
    """Return a row for each unit: x and y within (0, 100), z missing in a third, whole i and j, bits b.

    Parameters
    ----------
    shape : str
        A name of `cases`.
    units : int

    Returns
    -------
    pyarrow.Table
    """
    one, other = np.random.default_rng(1).standard_normal((2, units))
    x, y = {
        "apart": (50 + 20 * one, 50 + 20 * (0.6 * one + 0.8 * other)),
        "constant": (np.full(units, 40.0), np.full(units, 60.0)),
        "constant at the bounds": (np.full(units, 100.0), np.zeros(units)),
        "hardly apart": (50 + 0.5 * one, 50 + 0.5 * other),
        "at both bounds": (np.where(one > 0, 100.0, 0.0), np.where(one > 0, 0.0, 100.0)),
        "near a bound": (100 - 3 * np.abs(one), 3 * np.abs(other)),
        "on a line": (50 + 20 * one, 50 + 20 * one),
        "on a falling line": (50 + 20 * one, 50 - 20 * one),
        "nearly on a line": (50 + 20 * one, 50 + 20 * (0.995 * one + 0.0999 * other)),
        "skewed": (np.exp(1 + one), np.exp(1 + 0.6 * one + 0.8 * other)),
    }[shape]
    place = np.arange(units)
    return pa.table(
        {
            "id": place,
            "g": ["a"] * units,
            "x": np.clip(x, 0, 100),
            "y": np.clip(y, 0, 100),
            "z": pa.array(x, mask=place % 3 == 0),
            "i": place % 4,
            "j": (place // 2) % 3,
            "b": np.zeros(units, np.int64) if "constant" in shape else place % 2,
        }
    )


def cases(threshold_of: Callable[[str, str], int], epsilon: float) -> Iterator[Case]:
    """Yield the grid.

    Parameters
    ----------
    threshold_of : callable
        For a SELECT list and options, how many units a group has that is shown half of the time.
    epsilon : float
        Of each query; six times as much where all noise is enumerated.
    """
    for part, calls, shape, units, noise, exact in _rows(threshold_of, epsilon):
        options = _options(noise, 6 * epsilon if exact else epsilon)
        for name, call in calls.items():
            written = f"{call} AS v{_TREE}" if "tree" in name else f"{call} AS v"
            yield Case(part, name, written, shape, units, noise, options, _NOISES[noise][1], exact)


def _options(noise: str, epsilon: float) -> str:
    return f"epsilon={epsilon}, max_rows_per_group=1, {_NOISES[noise][0]}"


def _rows(threshold_of: Callable[[str, str], int], epsilon: float) -> list[_Row]:
    """Return the parts of the grid, with the aggregates, the shape, the units and the noise of each."""
    made: list[_Row] = []
    for noise in _NOISES:
        made += [("large groups", _COUNTS | _SUMS | _MOMENTS, "apart", 3000, noise, False)]
    for noise in ("Laplace", "Gaussian"):
        made += [("skewed", _SUMS | _MOMENTS, "skewed", 3000, noise, False)]
        for shape in ("near a bound", "constant at the bounds"):
            made += [("near a bound", {"AVG": _SUMS["AVG"]}, shape, 300, noise, False)]
        variances = {name: call for name, call in _MOMENTS.items() if name != "CORR"}
        for shape in ("constant", "hardly apart", "constant at the bounds"):
            made += [("variance near 0", variances, shape, 1000, noise, False)]
        made += [("variance at its largest", variances, "at both bounds", 1000, noise, False)]
        for shape in ("on a line", "on a falling line", "nearly on a line", "at both bounds"):
            made += [("correlation near 1", {"CORR": _MOMENTS["CORR"]}, shape, 3000, noise, False)]
        made += [("small groups", _SUMS | _MOMENTS, "apart", 40, noise, False)]
    made += [("quantiles", _QUANTILES, shape, 3000, "Laplace", False) for shape in ("apart", "skewed")]
    made += [("all noise enumerated", _LATTICE, "apart", units, "Laplace", True) for units in (5, 12, 60)]
    bits = {name: _LATTICE[name] for name in ("VAR_POP", "STDDEV_SAMP")}
    made += [("all noise enumerated", bits, "constant", 60, "Laplace", True)]
    return made + _at_thresholds(threshold_of, epsilon)


def _at_thresholds(threshold_of: Callable[[str, str], int], epsilon: float) -> list[_Row]:
    """Return the groups that are seldom, half of the time, and nearly always shown."""
    made: list[_Row] = []
    for noise in ("Gaussian", "Laplace, threshold"):
        for name, call in (_COUNTS | _SUMS | {each: _MOMENTS[each] for each in ("VAR_POP", "CORR")}).items():
            middle = threshold_of(call, _options(noise, epsilon))
            for units in (middle - 3, middle, middle + 9):
                made += [("counts at the threshold", {name: call}, "apart", units, noise, False)]
    return made
