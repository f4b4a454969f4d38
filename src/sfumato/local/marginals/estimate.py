"""Estimates of marginals from reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato._display import named
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.variance import Array
from sfumato.local.marginals.association import (
    Correlation,
    correlated,
    independent,
    scores_of,
)
from sfumato.local.marginals.coefficients import Evidence, TableErrorModel
from sfumato.local.marginals.consistency import ConsistentMarginals, agreeing
from sfumato.local.marginals.lattice import Attributes
from sfumato.local.surveys.inference.hypothesis_tests import Finding
from sfumato.mechanisms.base.release_table import Rows, drawn_few
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MarginalsEstimate"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalsEstimate:
    """The marginals of the respondents' attributes.

    Parameters
    ----------
    domains : tuple of Domain
        The attributes; they are named by their indices.
    evidence : Evidence
        The evidence of the reports.
    loss : PrivacyLoss
        Of each respondent's own report.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Notes
    -----
    The target is the respondents' own marginals. All is unbiased here, and marginals agree on what they have
    in common; cells may be below 0. `consistent` gives tables that are not, and reaches beyond the reported
    ones.

    Examples
    --------
    >>> from sfumato.local import Domain, SampledMarginals
    >>> domains = [Domain(["no", "yes"]), Domain(["small", "large"])]
    >>> protocol = SampledMarginals.every(2, epsilon=4.0, domains=domains)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("no", "small"), ("yes", "large")] * 5000, rng=1))
    10000
    >>> estimate = aggregator.estimate()
    >>> estimate.table(0, 1).round(1).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    True
    >>> estimate.independence(0, 1).p_value < 1e-6
    True
    """

    domains: tuple[Domain, ...]
    evidence: Evidence = field(repr=False)
    loss: PrivacyLoss = field(repr=False)
    simulated: bool = False

    @property
    def reports(self) -> int:
        """How many were accepted."""
        return self.evidence.reports

    def _checked(self, attributes: tuple[int, ...]) -> Attributes:
        lattice = self.evidence.lattice
        named = lattice.checked(attributes)
        if named not in lattice.starts:
            remedy = "ask consistent().table for one that is put together from those that were asked"
            _check.refuse("attributes", "be together in a table that was asked", named, remedy)
        return named

    def table(self, *attributes: int) -> Array:
        """Return the estimated shares of a marginal's cells, with one axis for each attribute.

        Parameters
        ----------
        *attributes : int
            Rising indices of attributes that are together in one of the protocol's tables.

        Returns
        -------
        ndarray of float64
            Unbiased; cells may be negative, and are NaN without reports.

        Raises
        ------
        ParameterError
            If no table of the protocol has these attributes together.
        """
        named = self._checked(attributes)
        if not self.reports:
            return np.full(self.evidence.lattice.shape(named), np.nan)
        return self.evidence.table(named).reshape(self.evidence.lattice.shape(named))

    def marginal(self, *attributes: int) -> Estimate:
        """Return the estimate of a marginal, with variances and intervals.

        Parameters
        ----------
        *attributes : int
            Rising indices of attributes that are together in one of the protocol's tables.

        Returns
        -------
        Estimate
            Over tuples of categories; of a single attribute, over its own domain. Variances are exact in the
            shares, for which the estimated ones are taken; intervals are normal ones, for many reports.
        """
        named = self._checked(attributes)
        own = [self.domains[at] for at in named]
        cells = own[0] if len(own) == 1 else Domain(list(product(*(domain.values for domain in own))))
        return Estimate(
            domain=cells,
            reports=self.reports,
            raw=self.table(*named).ravel(),
            error_model=TableErrorModel(self.evidence, named),
            loss=self.loss,
            simulated=self.simulated,
        )

    def plot(self, *attributes: int, ax: Any = None, level: float = 0.95, most: int = 30) -> Any:
        """Draw the shares of a marginal's cells with their intervals, in its own order; return the axes.

        Parameters
        ----------
        *attributes : int
            As for `marginal`, whose own plot has the largest cells first.
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of each interval.
        most : int
            How many cells are drawn at most, at least 1.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If no table of the protocol has these attributes together.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        found = self.marginal(*attributes)
        cells = product(*(self.domains[at].values for at in attributes))
        columns = zip(*(map(named, cell) for cell in cells), strict=True)
        labels = {f"attribute {at}": list(column) for at, column in zip(attributes, columns, strict=True)}
        ax = drawn_few(Rows(labels, found.frequencies, found.interval(level)), most, ax)
        ax.set_ylabel("share")
        return ax

    def correlation(self, first: int, second: int, *, scores: Any = (None, None)) -> Correlation:
        """Return the correlation of two attributes among the respondents.

        Parameters
        ----------
        first, second : int
            Rising indices of attributes that are together in one of the protocol's tables.
        scores : two sequences of float, optional
            A number for each category of both, in the order of the domains; None for their indices. With two
            categories each these do not matter, but for the sign.

        Returns
        -------
        Correlation
            With a standard error.
        """
        found = self.marginal(first, second)
        given: Any = scores if isinstance(scores, tuple | list) and len(scores) == 2 else (0, 0)
        sizes = self.evidence.lattice.shape((first, second))
        named = tuple(scores_of("scores", one, size) for one, size in zip(given, sizes, strict=True))
        return correlated(found.raw.reshape(sizes), found.covariance(), (named[0], named[1]))

    def independence(self, first: int, second: int) -> Finding:
        """Test whether two attributes are independent in the population that respondents were drawn from.

        Parameters
        ----------
        first, second : int
            Rising indices of attributes that are together in one of the protocol's tables.

        Returns
        -------
        sfumato.local.surveys.Finding
            With the p-value.

        Notes
        -----
        Wald's test with its limit distribution, for many reports. Randomization and the drawing of
        respondents are both inside: see `sfumato.local.marginals.association`.
        """
        found = self.marginal(first, second)
        known = bool(np.isfinite(found.raw).all())
        shares = found.consistent("norm-sub").frequencies if known else found.raw
        return independent(self.evidence, (first, second), shares)

    def consistent(
        self, *, width: int = 3, tolerance: float = 1e-6, rounds: int = 5000
    ) -> ConsistentMarginals:
        """Return tables that are distributions and agree on what they have in common; see `agreeing`.

        Parameters
        ----------
        width : int
            Attributes of the widest tables that are made so; wider ones are put together from them. Wide
            tables know more of one another, but what is taken off their noisy cells is missing in narrow
            ones: which errs less depends on both.
        tolerance : float
            How far cells may still be from agreement.
        rounds : int
            The maximum number that is made to get there.

        Returns
        -------
        ConsistentMarginals
            Also of attributes that were never asked together.
        """
        if not np.isfinite(self.evidence.coefficients).all() or not self.reports:
            remedy = "collect more, or ask for fewer and narrower marginals"
            _check.refuse("reports", "be enough to estimate each coefficient", self.reports, remedy)
        return agreeing(self.domains, self.evidence, width, tolerance, rounds)
