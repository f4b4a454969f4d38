"""The answer of a private descent: noisy counts of the last prefixes, and which strings are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["CountedPrefixes"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPrefixes:
    """Noisy counts of all prefixes that were asked for at the last level that was reached.

    Parameters
    ----------
    bits : int
        How long whole strings are; prefixes are shorter where no longer one reached the threshold.
    prefixes : tuple of str
        What was asked for, in lexicographic order.
    counts : tuple of int
        Their noisy counts, perhaps negative.
    threshold : int
        The noisy count from which a string is found.
    reports : int
        How many reports were counted.
    noise : AggregatorNoise
        The noise on each count.
    loss : PrivacyLoss
        Of the whole descent.
    levels : int
        How many levels the descent had, had it not ended early.
    simulated : bool
        Whether the noise followed from a seed.
    max_weight : int
        How much one report adds to a count at most: more than 1 where weights are summed.

    Notes
    -----
    What is asked for at a level follows from the counts of earlier levels, whose noise is independent of this
    level's: counts of whole strings are unbiased, given what was asked for. Those of the found strings alone
    are not: they are found for being large. Nor are counts of shorter prefixes: the descent ended there for
    they were small. `bands` holds for all of them at once, found or not.

    Examples
    --------
    >>> from sfumato.federated import Poplar1HeavyHitters
    >>> plan = Poplar1HeavyHitters.calibrated(bits=2, threshold=9, max_prefixes=2, epsilon=9.0, delta=1e-6)
    >>> answer = CountedPrefixes(
    ...     bits=2, prefixes=("00", "01"), counts=(40, -3), threshold=9, reports=41, noise=plan.noise,
    ...     loss=plan.privacy_loss, levels=2,
    ... )
    >>> answer.found, answer.top(1), answer.of("01")
    (['00'], [('00', 40)], -3)
    """

    bits: int
    prefixes: tuple[str, ...]
    counts: tuple[int, ...]
    threshold: int
    reports: int
    noise: AggregatorNoise = field(repr=False)
    loss: PrivacyLoss = field(repr=False)
    levels: int
    simulated: bool = False
    max_weight: int = 1

    @property
    def _whole(self) -> bool:
        return bool(self.prefixes) and len(self.prefixes[0]) == self.bits

    @property
    def found(self) -> list[str]:
        """Whole strings whose noisy counts reach the threshold, the most frequent first."""
        return [string for string, _ in self.top(len(self.prefixes))]

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on each count."""
        return self.noise.stddev

    def top(self, k: int) -> list[tuple[str, int]]:
        """Return the ``k`` found strings with the largest noisy counts, or all there are, in falling order.

        Parameters
        ----------
        k : int
            At least 0.

        Returns
        -------
        list of (str, int)
        """
        if not self._whole:
            return []
        pairs = sorted(zip(self.prefixes, self.counts, strict=True), key=lambda pair: (-pair[1], pair[0]))
        return [pair for pair in pairs if pair[1] >= self.threshold][: _check.integer("k", k)]

    def of(self, prefix: str) -> int:
        """Return the noisy count of a prefix that was asked for.

        Parameters
        ----------
        prefix : str
            One of `prefixes`.

        Returns
        -------
        int

        Raises
        ------
        ParameterError
            If it was not asked for.
        """
        if prefix not in self.prefixes:
            _check.refuse_type("prefix", "be one that was asked for", prefix, "see prefixes")
        return self.counts[self.prefixes.index(prefix)]

    def bands(self, level: float = 0.95) -> Interval[NDArray[np.int64]]:
        """Return intervals that hold the exact counts of all prefixes at once.

        Parameters
        ----------
        level : float
            Wanted coverage of all together, strictly between 0 and 1 (Bonferroni).

        Returns
        -------
        Interval
            Arrays in the order of `prefixes`, within 0 and what all reports together can add.

        Notes
        -----
        The descent may end at any level, and does so where noise is far below 0. Half of the error is the
        last level's, the others share the other half: so the bands of the level at which it ends hold with
        the wanted probability, and given that whole strings were reached with at least that.
        """
        risk = (1 - _check.unit_interval("level", level)) / len(self.prefixes)
        if self.levels > 1:
            risk /= 2 if self._whole else 2 * (self.levels - 1)
        margin, counts = self.noise.margin(1 - risk), np.array(self.counts, np.int64)
        largest = self.reports * self.max_weight
        lower, upper = (np.clip(counts + side, 0, largest) for side in (-margin, margin))
        return Interval(lower, upper, tight=False)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table of the found strings: string, count, ends of its band, deviation.

        Parameters
        ----------
        level : float
            Coverage of the bands.

        Returns
        -------
        dict of list
            As frames take them, the most frequent first.
        """
        rows = [self.prefixes.index(string) for string in self.found]
        bands = self.bands(level)
        return {
            "string": [self.prefixes[row] for row in rows],
            "count": [self.counts[row] for row in rows],
            "lower": bands.lower[rows].tolist(),
            "upper": bands.upper[rows].tolist(),
            "stddev": [self.stddev] * len(rows),
        }
