"""Releases: a value that may be shown, its privacy loss and relation; and noisy numbers on a lattice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import html_facts
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.rational import floor_log2, power_of_two
from sfumato.mechanisms.base.release_table import Rows, as_pandas, as_polars, drawn, notebook_table, rows_of
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["LatticeRelease", "Release", "read_only"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """An answer that may be shown; nothing in it is raw data.

    Parameters
    ----------
    value : Any
        The answer; arrays are made read-only.
    loss : PrivacyLoss
        What the release cost.
    neighboring : Neighboring
        Who is protected: the relation of the loss.
    receipt : Receipt or None
        Proof of the charge, where a ledger was charged.
    simulated : bool
        Whether the randomness came from a seed; such a release protects nobody.
    labels : mapping of str to sequence, or None
        What the entries of the value are, as columns of its table; from public parameters.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> release = Laplace(sensitivity=1, scale=2).release(100, rng=7)
    >>> release.map(lambda count: max(0, count)).value == release.value
    True
    """

    value: Any
    loss: PrivacyLoss
    neighboring: Neighboring
    receipt: Receipt | None = None
    simulated: bool = False
    labels: Mapping[str, Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(self.value))

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return f"{type(self).__name__}(value={self.value!r}, loss={self.loss!r}{simulated})"

    def _repr_html_(self) -> str:
        facts = {"cost": repr(self.loss), "protected": str(self.neighboring)}
        if self.receipt is not None:
            facts["receipt"] = str(self.receipt)
        if self.simulated:
            facts["simulated"] = "the noise came from a seed: nobody is protected"
        name = type(self).__name__
        try:
            rows = self._rows(None)
            if rows.ends is not None:
                stated = isinstance(getattr(self, "interval", None), Interval)
                level = getattr(self, "level", None) if stated else 0.95
                facts = {
                    "in brackets": "intervals" if level is None else f"{100 * level:g} % intervals"
                } | facts
            return notebook_table(rows, name, facts)
        except ParameterError:  # an array of several axes, or a value that is no table
            found = type(self.value).__name__
            if isinstance(self.value, np.ndarray):
                found = f"array of shape {self.value.shape}"
            elif isinstance(self.value, Mapping | list | tuple):
                found = f"{len(self.value):,} entries"
            return html_facts(name, {"value": found, **facts})

    def map(self, function: Callable[[Any], Any]) -> Release:
        """Return a release of a function of the value.

        Parameters
        ----------
        function : callable
            Of the value alone. A function that reads the data too is no post-processing, and nothing here
            can tell.

        Returns
        -------
        Release
            With the same loss and receipt: post-processing costs nothing (Dwork, Roth 2014, Proposition 2.1).
        """
        return Release(
            value=function(self.value),
            loss=self.loss,
            neighboring=self.neighboring,
            receipt=self.receipt,
            simulated=self.simulated,
        )

    def table(self, *, intervals: bool = False, level: float | None = None) -> dict[str, NDArray[Any]]:
        """Return the answer as columns: what each row is, its value, and the ends of its interval.

        Parameters
        ----------
        intervals : bool
            Add ``lower`` and ``upper``, where the release has intervals.
        level : float, optional
            Coverage of the intervals, strictly between 0 and 1; 0.95, or that of the release if it has one.

        Returns
        -------
        dict of str to array
            One row for a number, one for each entry of an array, a list or a mapping; ``pyarrow.table`` takes
            it.

        Raises
        ------
        ParameterError
            If the value is neither, or the level is not one of the release's intervals.

        Notes
        -----
        Post-processing: it costs nothing. The row of a query that estimates a number, such as `Mean`, is that
        number with its interval; the rows of any other are what was measured.

        Examples
        --------
        >>> from sfumato.mechanisms import Histogram, Laplace
        >>> colours = Laplace.for_query(Histogram(categories=("red", "green")), epsilon=1.0)
        >>> table = colours.release(["red"] * 50, rng=1).table(intervals=True)
        >>> {name: column.tolist() for name, column in table.items()}
        {'category': ['red', 'green'], 'value': [49, 0], 'lower': [46.0, -3.0], 'upper': [52.0, 3.0]}
        """
        return self._rows(level).table(intervals=intervals)

    def to_pandas(self, *, intervals: bool = False, level: float | None = None) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        intervals, level
            As for `table`.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(self.table(intervals=intervals, level=level))

    def to_polars(self, *, intervals: bool = False, level: float | None = None) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        intervals, level
            As for `table`.

        Returns
        -------
        polars.DataFrame
        """
        return as_polars(self.table(intervals=intervals, level=level))

    def plot(self, ax: Any = None, *, level: float | None = None) -> Any:
        """Draw the answer with its intervals, if it has any; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float, optional
            As for `table`.

        Returns
        -------
        matplotlib.axes.Axes
            With bars for categories and cells, a line over quantiles, or points.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        return drawn(self._rows(level), ax)

    def _rows(self, level: float | None) -> Rows:
        """Return the rows of the table, with intervals where the release has any."""
        if level is not None:
            _check.unit_interval("level", level)
        rows = rows_of(self.value, self.labels)
        interval, own = getattr(self, "interval", None), getattr(self, "level", None)
        if isinstance(interval, Interval) and level not in (None, own):
            _check.refuse("level", f"be {own}, which the interval was made for", level, "leave it out")
        return rows._replace(
            ends=interval(0.95 if level is None else level) if callable(interval) else interval
        )


def read_only(value: Any) -> Any:
    """Return an array as a view that cannot be written to, and anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeRelease(Release):
    """A noisy number, or an array of them: exact integer noise on whole steps.

    Parameters
    ----------
    steps : int or int64 array
        The noisy answer as a whole number of lattice steps; arrays are made read-only.
    step : int or Fraction
        Distance between the lattice's points; the int 1 where answers are whole numbers and stay ints.
    distribution : SymmetricDistribution
        Distribution of the noise of every entry, in steps; public.
    query : Query or None
        What was asked, where a `Measurement` released it.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Attributes
    ----------
    value : int, float or array
        The noisy answer shaped as the exact one, exact ints on whole numbers, else the nearest floats.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> release = Laplace(sensitivity=1, scale=2).release(100, rng=7)
    >>> release.interval(0.95).upper - release.value, release.simulated
    (6.0, True)
    """

    steps: int | NDArray[np.int64]
    step: int | Fraction
    distribution: SymmetricDistribution
    query: object = None
    value: Any = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.step, int) and self.step != 1:
            _check.refuse("step", "be 1 or a Fraction", self.step, "pass a Fraction")
        object.__setattr__(self, "steps", read_only(self.steps))
        value = self.steps if isinstance(self.step, int) else _scaled(self.steps, self.step)
        object.__setattr__(self, "value", read_only(value))

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return (
            f"LatticeRelease(value={self.value!r}, stddev={self.stddev:.6g}, loss={self.loss!r}{simulated})"
        )

    def _rows(self, level: float | None) -> Rows:
        """Return what the query estimates with its interval, or else the measured entries with theirs."""
        level = 0.95 if level is None else _check.unit_interval("level", level)
        asked: Any = getattr(self.query, "before_transformations", lambda: None)()
        estimate_interval = getattr(asked, "estimate_interval", None)
        if callable(estimate_interval):
            return rows_of(asked.estimate(self), self.labels, estimate_interval(self, level))
        labels = getattr(asked, "labels", None) if self.labels is None else self.labels
        return rows_of(self.value, labels, self.interval(level))

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of each entry."""
        return self.distribution.stddev * float(self.step)

    def interval(self, level: float = 0.95) -> Interval[Any]:
        """Return the smallest central lattice interval, per entry, with coverage at least the level.

        Parameters
        ----------
        level : float
            Wanted coverage of each entry, strictly between 0 and 1.

        Returns
        -------
        Interval
            Ends are lattice points, rounded outward to floats.

        Notes
        -----
        The target is the exact answer that the noise was added to: the bounded answer, on the grid. An answer
        that had to be rounded to the grid lies within half a step of it. The interval follows from the
        released value and public parameters only.
        """
        half, _ = self.distribution.half_width(_check.unit_interval("level", level))
        return Interval(
            _outward(self.steps - half, Fraction(self.step), -math.inf),
            _outward(self.steps + half, Fraction(self.step), math.inf),
        )

    def coverage(self, level: float = 0.95) -> float:
        """Return the exact coverage of ``interval(level)``, rounded down; it is at least the level.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        float
        """
        return self.distribution.half_width(_check.unit_interval("level", level))[1]


def _scaled(steps: int | NDArray[np.int64], step: Fraction) -> float | NDArray[np.float64]:
    if not isinstance(steps, np.ndarray):
        return float(steps * step)
    exponent = floor_log2(step)
    scale = step / power_of_two(exponent)  # at least 1 and less than 2: no float of it overflows
    return np.asarray(np.ldexp(steps * float(scale), exponent), dtype=np.float64)


def _outward(steps: int | NDArray[np.int64], step: Fraction, away: float) -> float | NDArray[np.float64]:
    if not isinstance(steps, np.ndarray):
        return fraction_down(steps * step) if away == -math.inf else fraction_up(steps * step)
    scaled = np.asarray(_scaled(steps, step))
    if step == power_of_two(floor_log2(step)) and bool(np.all(np.abs(steps) <= 1 << 53)):
        return scaled
    # Mantissas s and c, from 1 to 2, err by half an ulp each, which moves their product by (s + c) / 2 ulp at
    # most. With the product's own half that is less than 2: s + c < 3 where s c < 2, and beyond its ulp is
    # twice as large. A subnormal result adds a half of its own, larger ulp, of which those 2 are at most 1.
    for _ in range(2):
        scaled = np.nextafter(scaled, away)
    return scaled
