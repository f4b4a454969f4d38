"""The estimate of a frequency oracle: unbiased shares, their variances, and intervals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import named
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.consistency import made_consistent
from sfumato.local.frequency.fit import FitTest, fit_of
from sfumato.local.frequency.shares import TabledShares
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.mechanisms.base.release_table import Rows, as_pandas, drawn
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Estimate"]

_LARGEST: Final = 4096


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(TabledShares):
    """The shares of the categories among the respondents.

    Parameters
    ----------
    domain : Domain
        The categories, in the order of all arrays.
    reports : int
        How many were accepted.
    raw : array
        Unbiased estimates of the shares; some may be below 0 or above 1, and all are NaN without reports.
    error_model : ErrorModel
        How far they deviate.
    loss : PrivacyLoss
        Of each respondent's own report.
    simulated : bool
        Whether a report's randomness followed from a seed.
    steps : tuple of str
        The consistency steps that were taken.
    processed : array, optional
        The estimates after those steps.

    Notes
    -----
    The target is the respondents' own shares: what is inside the error is the randomization, and not that
    other people might have answered. Variances and intervals are those of the raw estimates, before any step.

    Examples
    --------
    >>> from sfumato.local import Domain, RandomizedResponse
    >>> oracle = RandomizedResponse(epsilon=2.0, domain=Domain(["red", "green", "blue"]))
    >>> estimate = oracle.simulate([7000, 0, 3000], rng=1)
    >>> estimate.frequencies.round(2).tolist()
    [0.7, -0.0, 0.3]
    >>> lower, upper, _ = estimate.interval(0.999)
    >>> bool((lower <= [0.7, 0.0, 0.3]).all() and (upper >= [0.7, 0.0, 0.3]).all())
    True
    """

    domain: Domain
    reports: int
    raw: Array
    error_model: ErrorModel
    loss: PrivacyLoss
    simulated: bool = False
    steps: tuple[str, ...] = ()
    processed: Array | None = None

    @property
    def variances(self) -> Array:
        """Estimated variances of the raw frequencies; infinite without reports."""
        if not self.reports:
            return np.full(len(self.raw), np.inf)
        return self.error_model.variance(np.clip(self.raw, 0.0, 1.0)) / self.reports

    @property
    def fit(self) -> FitTest | None:
        """Whether the reports can come of the protocol at all, whatever is true: a test of the raw estimates.

        None without reports, and where the distribution of the shares' sum is not known, as for sketches,
        several questions and shuffled messages. See `sfumato.local.FitTest`.
        """
        return fit_of(self.raw, self.reports, self.error_model)

    def forged_bias(self, forgers: int = 1) -> Interval[float]:
        r"""Return how far forged reports can move the raw estimate of any one share.

        Parameters
        ----------
        forgers : int
            Of the accepted reports, how many may be forged.

        Returns
        -------
        Interval
            The least and the greatest difference from the estimate if they were honest, on average: with
            parts from l to h of one report, :math:`(l - 1) / n` and :math:`h / n` for each forger.

        Raises
        ------
        ParameterError
            If there are fewer reports than forgers, or the protocol does not state what one report adds.

        Notes
        -----
        For any well-formed bytes, and so also for those that pass the test of `fit`: a forger who reports as
        an honest device would for an answer of its choice moves a share by at most 1 over n on average, and
        one who sends the bytes that support it by :math:`(1-q)/(p-q)` over n. For sketches, the average is
        over hash functions too.

        Examples
        --------
        >>> from sfumato import local
        >>> oracle = local.OptimizedUnaryEncoding(epsilon=1.0, domain=local.Domain(range(100)))
        >>> low, high, _ = oracle.simulate([100] * 100, rng=1).forged_bias(500)
        >>> round(low, 3), round(high, 3)
        (-0.108, 0.158)
        """
        count = _check.integer("forgers", forgers)
        if count > self.reports:
            _check.refuse("forgers", "be at most the reports", count, "pass how many of them may be forged")
        reach = self.error_model.reach
        if reach is None:
            found = "this protocol does not state it"
            _check.refuse_state("forged_bias", "be of a protocol with known parts", found, "see its page")
        each = count / self.reports if self.reports else 0.0
        return Interval(each * (reach[0] - 1), each * reach[1])

    def covariance(self, rows: Any = None) -> Array:
        """Return the estimated covariance matrix of the raw frequencies, or some of its rows.

        Parameters
        ----------
        rows : array of int, optional
            Indices in the domain; all, for up to 4096 categories.

        Returns
        -------
        array, shape (rows, categories)
        """
        if rows is None and len(self.domain) > _LARGEST:
            rule = f"be given for more than {_LARGEST} categories"
            _check.refuse("rows", rule, None, "pass the indices of the categories in question")
        indices = np.arange(len(self.domain)) if rows is None else np.asarray(rows, np.int64)
        if not self.reports:
            return np.full((len(indices), len(self.domain)), np.nan)
        return self.error_model.covariance(np.clip(self.raw, 0.0, 1.0), indices) / self.reports

    def interval(self, level: float = 0.95, *, method: str = "score") -> Interval[Array]:
        """Return an interval for each share, which holds it with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.
        method : str
            ``"score"`` holds for many reports; ``"exact"``, where the protocol has it, for any number, and
            is wider.

        Returns
        -------
        Interval
            Arrays over the categories, within [0, 1].
        """
        risk = 1 - _check.unit_interval("level", level)
        return self.error_model.interval(self.raw, self.reports, risk, method)

    def bands(self, level: float = 0.95, *, method: str = "score") -> Interval[Array]:
        """Return intervals that hold all shares at once with about the stated probability (Bonferroni).

        Parameters
        ----------
        level : float
            Wanted coverage of all together, strictly between 0 and 1.
        method : str
            See `interval`.

        Returns
        -------
        Interval
            Arrays over the categories, within [0, 1].
        """
        risk = (1 - _check.unit_interval("level", level)) / len(self.domain)
        return self.error_model.interval(self.raw, self.reports, risk, method)

    def consistent(self, step: str) -> Estimate:
        """Return the estimate after a named step of `sfumato.local.frequency.consistency`.

        Parameters
        ----------
        step : str
            Such as ``"norm-sub"`` (also called ``"simplex"``), ``"norm-mul"`` or ``"base-cut"``.

        Returns
        -------
        Estimate
            Its `frequencies` are the processed ones.

        Raises
        ------
        ParameterError
            If there are no reports, or no step of that name.

        Notes
        -----
        Post-processing: the loss stays, and so do variances and intervals, which are of the raw estimates.
        """
        if not self.reports:
            _check.refuse("reports", "be at least 1 for a consistency step", self.reports, "collect some")
        if not np.isfinite(self.raw).all():
            rule = "be enough to estimate each share, for a consistency step"
            _check.refuse("reports", rule, self.reports, "collect more")
        nothing = self.error_model.variance(np.zeros(len(self.raw))) / self.reports
        found = made_consistent(self.frequencies, nothing, step)
        return replace(self, processed=found, steps=(*self.steps, step))

    def top(self, k: int) -> list[tuple[Hashable, float]]:
        """Return the ``k`` categories with the largest estimates, in falling order.

        Parameters
        ----------
        k : int
            At least 0; all categories if there are fewer.

        Returns
        -------
        list of (category, float)
            Each with its estimated share.
        """
        count = min(_check.integer("k", k), len(self.domain))
        order = np.argsort(-self.frequencies, kind="stable")[:count]
        return [(self.domain.values[index], float(self.frequencies[index])) for index in order.tolist()]

    def below_detection(self, level: float = 0.95) -> NDArray[np.bool_]:
        """Return which intervals hold no share above 0: the estimates are too far below it to be explained.

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        bool array
            One for each category. Of many rare categories a few are so by chance, and none is known to be 0.
        """
        return self.interval(level).upper <= 0.0

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table: category, frequency, its interval, standard deviation, detection.

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        dict of list or array
            ``"category"``, ``"frequency"``, ``"lower"``, ``"upper"``, ``"stddev"`` and ``"below_detection"``
            as frames take them; see `below_detection`.
        """
        lower, upper, _ = self.interval(level)
        return {
            "category": list(self.domain.values),
            "frequency": self.frequencies,
            "lower": lower,
            "upper": upper,
            "stddev": self.stddev,
            "below_detection": upper <= 0.0,
        }

    def to_pandas(self, level: float = 0.95) -> pd.DataFrame:
        """Return `to_dict` as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        pandas.DataFrame
            A row for each category.
        """
        return as_pandas(self.to_dict(level))

    def plot(self, ax: Any = None, *, level: float = 0.95, most: int = 30) -> Any:
        """Draw the largest shares with their intervals; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of each interval.
        most : int
            How many categories are drawn at most, at least 1.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        count = min(_check.integer("most", most, minimum=1), len(self.domain))
        order = np.argsort(-self.frequencies, kind="stable")[:count]
        lower, upper, _ = self.interval(level)
        labels = {"category": [named(self.domain.values[index]) for index in order.tolist()]}
        return drawn(Rows(labels, self.frequencies[order], Interval(lower[order], upper[order])), ax)

    def of(self, value: Hashable) -> float:
        """Return the frequency of one category.

        Parameters
        ----------
        value : hashable
            A category of the domain.

        Returns
        -------
        float
            Its estimated share, after whatever steps were taken.
        """
        return float(self.frequencies[self.domain.codes([value])[0]])
