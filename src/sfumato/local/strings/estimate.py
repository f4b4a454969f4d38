"""The estimate from reports about strings: which are frequent, how frequent, and how surely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.frequency.found_shares import drawn_shares
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["HeavyHitters"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeavyHitters:
    r"""The strings that were found, and the candidates that were not sure enough.

    Parameters
    ----------
    candidates : tuple
        The strings that were tested, in the order of all arrays: the largest estimates first.
    frequencies : array
        Unbiased estimates of their shares.
    p_values : array
        The chance of such an estimate, or a greater one, of a string that nobody has.
    significant : array of bool
        Which are found.
    reports, respondents : int
        How many reports are of whole strings, and of all there are.
    error_model : ErrorModel
        How far estimates deviate around the shares of all respondents.
    false_positive_rate : float
        Bound on the probability that any string that nobody has is among `found`.
    loss : PrivacyLoss
        Of all that one respondent reports.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Notes
    -----
    *What is found.* Candidates come from the reports about parts of strings alone. With a weight of 1 or more
    those are of other respondents than the ones who report whole strings; with 0 they are randomized
    independently. Either way, given the candidates, the reports of whole strings are as if these had been
    fixed before. A candidate is found if its chance is at most ``false_positive_rate`` over the number of
    candidates (Bonferroni). By local hashing the chance is exact: if nobody has the string, each report
    supports it with one probability, independently. By sketches it is the greater one of that and of a normal
    error with the variance of randomization and of collisions (`sfumato.local.strings.significance`).

    *Intervals.* Each covers its candidate's share among all respondents with the stated probability, the
    candidates taken for given; found ones are no random choice of these, so where the choice matters take
    `bands`, which hold all candidates at once.

    Examples
    --------
    >>> from sfumato.local import PrefixExtending, Strings
    >>> protocol = PrefixExtending(epsilon=4.0, strings=Strings(length=6))
    >>> keeper = protocol.aggregator()
    >>> keeper.add_batch(protocol.randomize_batch(["paint", "oil", "oil"] * 4_000, rng=1))
    12000
    >>> hitters = keeper.estimate()
    >>> [string for string, _ in hitters.top(2)]
    ['oil', 'paint']
    >>> abs(hitters.of("oil") - 2 / 3) < 0.05
    True
    """

    candidates: tuple[str, ...] | tuple[bytes, ...]
    frequencies: Array
    p_values: Array
    significant: NDArray[np.bool_]
    reports: int
    respondents: int
    error_model: ErrorModel = field(repr=False)
    false_positive_rate: float
    loss: PrivacyLoss = field(repr=False)
    simulated: bool = False

    @property
    def counts(self) -> Array:
        """Estimates of how many respondents have each."""
        return self.frequencies * self.respondents

    @property
    def variances(self) -> Array:
        """Estimated variances of the frequencies."""
        if not self.reports:
            return np.full(len(self.candidates), np.inf)
        return self.error_model.variance(np.clip(self.frequencies, 0.0, 1.0)) / self.reports

    @property
    def stddev(self) -> Array:
        """Estimated standard deviations of the frequencies."""
        return np.sqrt(self.variances)

    @property
    def found(self) -> list[str] | list[bytes]:
        """The strings that are surely somebody's, the most frequent first."""
        return [text for text, sure in zip(self.candidates, self.significant, strict=True) if sure]  # type: ignore[return-value]

    def interval(self, level: float = 0.95, *, method: str = "score") -> Interval[Array]:
        """Return an interval for the share of each candidate; see `Estimate.interval` and the notes.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.
        method : str
            ``"score"``, or ``"exact"`` where the protocol has it.

        Returns
        -------
        Interval
            Arrays over the candidates, within [0, 1].
        """
        return self._within(1 - _check.unit_interval("level", level), method)

    def bands(self, level: float = 0.95, *, method: str = "score") -> Interval[Array]:
        """Return intervals that hold the shares of all candidates at once (Bonferroni).

        Parameters
        ----------
        level : float
            Wanted coverage of all together, strictly between 0 and 1.
        method : str
            See `interval`.

        Returns
        -------
        Interval
            Arrays over the candidates, within [0, 1].
        """
        risk = (1 - _check.unit_interval("level", level)) / max(1, len(self.candidates))
        return self._within(risk, method)

    def _within(self, risk: float, method: str) -> Interval[Array]:
        return self.error_model.interval(self.frequencies, self.reports, risk, method)

    def top(self, k: int) -> list[tuple[str | bytes, float]]:
        """Return the ``k`` found strings with the largest estimates (or all there are), in falling order.

        Parameters
        ----------
        k : int
            At least 0.

        Returns
        -------
        list of (string, float)
            Each with its estimated share.
        """
        count = _check.integer("k", k)
        indices = np.flatnonzero(self.significant)[:count].tolist()
        return [(self.candidates[index], float(self.frequencies[index])) for index in indices]

    def of(self, string: str | bytes) -> float:
        """Return the estimated share of a candidate.

        Parameters
        ----------
        string : str or bytes
            A candidate, found or not.

        Returns
        -------
        float
            Unbiased, and perhaps negative.

        Raises
        ------
        ParameterError
            If it is no candidate.
        """
        if string not in self.candidates:
            _check.refuse_type(
                "string",
                "be a candidate",
                string,
                "ask for a candidate",
            )
        return float(self.frequencies[self.candidates.index(string)])

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table of the found strings: string, frequency, ends of its band, deviation.

        Parameters
        ----------
        level : float
            Coverage of the bands.

        Returns
        -------
        dict of list or array
            The columns, as frames take them; most frequent first.
        """
        lower, upper, _ = self.bands(level)
        indices = self.significant
        return {
            "string": self.found,
            "frequency": self.frequencies[indices],
            "lower": lower[indices],
            "upper": upper[indices],
            "stddev": self.stddev[indices],
        }

    def plot(self, ax: Any = None, *, level: float = 0.95, most: int = 30) -> Any:
        """Draw the shares of the found strings with their bands, largest first; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of the bands, all at once.
        most : int
            How many strings are drawn at most, at least 1.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        return drawn_shares(self.to_dict(level), "string", most, ax)
