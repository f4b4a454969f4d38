r"""Decode counts of bits to strings: which candidates were reported, how often, and how surely.

The share of filters with a bit is the sum of the shares of the strings that have the bit, in each cohort: a
regression with as many rows as there are bits of all cohorts, and a column of ones for each candidate at its
bits. Candidates are chosen by a non-negative LASSO and fitted by non-negative least squares; those that are
significant there are fitted once more, without the others. A free column of ones absorbs strings that are no
candidates: these are distributed evenly over the bits of many cohorts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.special import log_ndtr, ndtri

from sfumato import _check
from sfumato.local.device.frequency.rappor import RapporRandomizer
from sfumato.local.frequency.found_shares import drawn_shares
from sfumato.local.frequency.rappor.lasso import DesignMatrix, lasso, nonnegative
from sfumato.local.frequency.variance import Array
from sfumato.numerics.interval import Interval

__all__ = ["Decoded", "decoded"]

_BY_CHANCE: Final = 50
"""About how many candidates that nobody reported the LASSO may let in."""
_MAX_CHOSEN: Final = 2000


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """What counts of bits estimate about candidate strings.

    Parameters
    ----------
    candidates : tuple
        The strings, in the order of all arrays.
    frequencies : array
        Estimates of the shares of devices that have each; 0 for those that the last fit leaves out.
    stddev : array
        How far these deviate; infinite for those that the fit leaves out.
    log_p_values : array
        Log of the chance of such an estimate, or a greater one, of a string that no device has, as if no
        other were tested; 0 for those left out.
    significant : array of bool
        Which are detected after the correction.
    reports : int
        How many there were.
    level : float
    correction : str
        See `RapporEstimate.decode`.

    Notes
    -----
    Errors are normal ones of the last fit, and take the candidates that it has for given; the correction
    counts all candidates, chosen or not. Chances are therefore approximate, as in the paper, and a share that
    is just large enough to be detected is estimated too high on average. Where the variance of residuals
    is above what randomization explains, because of strings that are no candidates, errors are widened by it.

    Examples
    --------
    >>> from sfumato.local import Rappor
    >>> oracle = Rappor(cohorts=8)
    >>> estimate = oracle.simulate({"blue": 60_000, "red": 40_000}, rng=1)
    >>> decoded = estimate.decode(["blue", "green", "red"])
    >>> decoded.detected[:2]
    ['blue', 'red']
    >>> decoded.frequencies[::2].round(1).tolist()
    [0.6, 0.4]
    """

    candidates: tuple[str | bytes, ...]
    frequencies: Array
    stddev: Array
    log_p_values: Array
    significant: NDArray[np.bool_]
    reports: int
    level: float
    correction: str

    @property
    def counts(self) -> Array:
        """Estimates of how many devices have each."""
        return self.frequencies * self.reports

    @property
    def p_values(self) -> Array:
        """The chances whose logs `log_p_values` has."""
        return np.exp(self.log_p_values)

    @property
    def detected(self) -> list[str | bytes]:
        """The strings that are significant, the most frequent first."""
        order = np.argsort(-self.frequencies, kind="stable")
        return [self.candidates[index] for index in order.tolist() if self.significant[index]]

    def interval(self, level: float = 0.95) -> Interval[Array]:
        """Return an interval for each share, within [0, 1], which is all of that for those left out.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1; see the notes of the class.

        Returns
        -------
        Interval
            Arrays over the candidates.
        """
        reach = -float(ndtri((1 - _check.unit_interval("level", level)) / 2))
        away = reach * self.stddev
        return Interval(
            np.clip(self.frequencies - away, 0.0, 1.0), np.clip(self.frequencies + away, 0.0, 1.0)
        )

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table, of the detected strings: most frequent first.

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        dict of list or array
            ``"candidate"``, ``"frequency"``, ``"lower"``, ``"upper"``, ``"stddev"`` and ``"p_value"``.
        """
        order = np.argsort(-self.frequencies, kind="stable")
        indices = order[self.significant[order]]
        lower, upper, _ = self.interval(level)
        return {
            "candidate": [self.candidates[index] for index in indices.tolist()],
            "frequency": self.frequencies[indices],
            "lower": lower[indices],
            "upper": upper[indices],
            "stddev": self.stddev[indices],
            "p_value": self.p_values[indices],
        }

    def plot(self, ax: Any = None, *, level: float = 0.95, most: int = 30) -> Any:
        """Draw the shares of the detected strings with their intervals, largest first; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of each interval.
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
        return drawn_shares(self.to_dict(level), "candidate", most, ax)


def decoded(
    device: RapporRandomizer,
    shares: Array,
    variances: Array,
    reports: int,
    candidates: Sequence[str | bytes],
    *,
    level: float,
    correction: str,
) -> Decoded:
    """Return what shares of bits say of candidates; see `RapporEstimate.decode`, which is the one to call."""
    risk = 1 - _check.unit_interval("level", level)
    if correction not in ("bonferroni", "fdr"):
        _check.refuse("correction", "be 'bonferroni' or 'fdr'", correction, "leave it out")
    given: object = candidates
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    names = tuple(candidates) if listed else ()
    if not names or len(set(names)) < len(names):
        rule = "be one or more different strings, in a list"
        _check.refuse_type("candidates", rule, given, "pass each string once")
    fit = _Fit(np.zeros(len(names)), np.full(len(names), np.inf))
    rows = np.flatnonzero(np.isfinite(variances).ravel())
    if len(rows):
        weights = 1 / np.sqrt(variances.ravel()[rows])
        matrix = diags(weights) @ _columns(device, names)[rows]
        design, target = DesignMatrix(matrix, weights), shares.ravel()[rows] * weights
        fit = _fitted(design, target, _chosen(design, target))
        fit = _fitted(design, target, np.flatnonzero(_significant(fit.logs(), risk, correction)))
    logs = fit.logs()
    return Decoded(
        candidates=names,
        frequencies=fit.frequencies,
        stddev=fit.stddev,
        log_p_values=logs,
        significant=_significant(logs, risk, correction),
        reports=reports,
        level=level,
        correction=correction,
    )


def _columns(device: RapporRandomizer, names: Sequence[str | bytes]) -> csr_matrix:
    """Return which bits of which cohorts each candidate has, shape (cohorts * bits, candidates)."""
    cohorts, count = device.cohorts, len(names)
    held = np.arange(cohorts).tolist()
    indices = device.indices((name for name in names for _ in held), held * count)
    lines = indices.reshape(count, cohorts, -1) + (np.arange(cohorts) * device.bits)[:, None]
    columns = np.repeat(np.arange(count), cohorts * device.hashes)
    ones = np.ones(len(columns))
    made = csr_matrix((ones, (lines.ravel(), columns)), shape=(cohorts * device.bits, count))
    made.sum_duplicates()
    made.data[:] = 1.0  # two hash functions that agree set one bit
    return made


class _Fit(NamedTuple):
    """Estimates and how far they deviate, of all candidates; 0 and infinite for those left out."""

    frequencies: Array
    stddev: Array

    def logs(self) -> Array:
        """Return the logs of the chances of such estimates where there is nothing; see `Decoded`."""
        return np.asarray(np.where(self.stddev < np.inf, log_ndtr(-self.frequencies / self.stddev), 0.0))


def _chosen(design: DesignMatrix, target: Array) -> NDArray[np.int64]:
    """Return the candidates that the LASSO lets in."""
    free, count = design.apart(target), len(design.norms)
    entry = max(0.0, -float(ndtri(min(0.5, _BY_CHANCE / count))))
    chosen = np.flatnonzero(lasso(design, free, entry * design.norms))
    if len(chosen) > _MAX_CHOSEN:
        scores = design.back(free)[chosen] / design.norms[chosen]
        chosen = np.sort(chosen[np.argsort(-scores)[:_MAX_CHOSEN]])
    return chosen


def _fitted(design: DesignMatrix, target: Array, chosen: NDArray[np.int64]) -> _Fit:
    """Return the non-negative fit of some candidates, and the errors of a free one of those above 0."""
    free, count = design.apart(target), len(design.norms)
    frequencies, stddev = np.zeros(count), np.full(count, np.inf)
    if len(chosen):
        frequencies[chosen] = nonnegative(design.gram(chosen), design.back(free)[chosen])
    retained = np.flatnonzero(frequencies)
    if len(retained):
        residual = free - design.times(frequencies)
        spare = len(target) - len(retained) - 1
        wider = max(1.0, float(residual @ residual) / spare) if spare > 0 else 1.0
        inverse = np.linalg.pinv(design.gram(retained), hermitian=True)
        stddev[retained] = np.sqrt(wider * np.diag(inverse))
    return _Fit(frequencies, stddev)


def _significant(logs: Array, risk: float, correction: str) -> NDArray[np.bool_]:
    """Return which tests are significant after a correction: Bonferroni's, or Benjamini's and Hochberg's."""
    count = len(logs)
    if correction == "bonferroni":
        return np.asarray(logs <= np.log(risk / count))
    order = np.argsort(logs)
    below = logs[order] <= np.log(risk * np.arange(1, count + 1) / count)
    last = int(np.flatnonzero(below)[-1]) + 1 if below.any() else 0
    found = np.zeros(count, np.bool_)
    found[order[:last]] = True
    return found
