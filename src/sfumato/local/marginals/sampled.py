"""Marginals by tables: each respondent is counted in one, through a frequency oracle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.base.sampled_question import SampledQuestionProtocol
from sfumato.local.device.base.rows import checked_domains
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.marginals import sampled as client
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.variance import Array
from sfumato.local.marginals.coefficients import Evidence
from sfumato.local.marginals.lattice import Attributes, Lattice, analysed, functions, transformed
from sfumato.local.marginals.protocol import MarginalsProtocol
from sfumato.local.marginals.table_noise import TableNoise, best_oracle
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.mixture import Mixture

__all__ = ["SampledMarginals", "TableEvidence"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMarginals(SampledQuestionProtocol, MarginalsProtocol[client.SampledMarginalsRandomizer]):
    r"""One table for each respondent, drawn evenly, with all of epsilon: best for large epsilon.

    Parameters
    ----------
    epsilon, domains
        See `MarginalsProtocol`.
    views : sequence of sequences of int
        The tables: rising indices of their attributes, such as ``[(0, 1, 2), (2, 3)]``. Their marginals are
        estimated, and all marginals within them; others are put together from these. `every` takes those
        of one width, `sfumato.local.choose` finds few wide ones for `sfumato.local.Marginals`.
    oracle : type of Oracle, or one for each table
        The frequency oracle, such as `OptimalLocalHashing`; one whose estimates of any two categories are
        correlated alike. Without it the best for each table's cells is taken.

    Attributes
    ----------
    oracles : tuple of Oracle
        One for each table, over the numbers of its cells: the last attribute's categories run fastest.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each respondent's report, replace-one; see
    `sfumato.local.device.SampledMarginalsRandomizer`.

    *Estimates.* Every table that has a coefficient gives an unbiased estimate of it, and theirs have
    errors that are nearly independent and, but for the true shares, alike in a table: see
    `sfumato.local.marginals.table_noise`. So they are weighted by :math:`n_V / (a_V L_V + b_V)`, which is
    best if all cells are alike frequent, and unbiased whatever they are.

    References
    ----------
    Cormode, Kulkarni, Srivastava (2018), "Marginal release under local differential privacy": MargPS, MargRR
    and MargHT are `every` with `RandomizedResponse`, `OptimizedUnaryEncoding` and `OneBitHadamard`. Zhang,
    Wang, Li, He, Chen (2018), "CALM: consistent adaptive local marginal for marginal release under local
    differential privacy".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> domains = [Domain(["no", "yes"]), Domain(["no", "yes"]), Domain(range(3))]
    >>> protocol = SampledMarginals.every(2, epsilon=2.0, domains=domains)
    >>> protocol.views, [len(oracle.domain) for oracle in protocol.oracles]
    (((0, 1), (0, 2), (1, 2)), [4, 6, 6])
    """

    wire_name: ClassVar[str] = "sampled-marginals"

    views: Sequence[Sequence[int]]
    oracle: type[Oracle[Any]] | Sequence[type[Oracle[Any]]] | None = None
    oracles: tuple[Oracle[Any], ...] = field(init=False, repr=False, compare=False)
    noises: tuple[TableNoise, ...] = field(init=False, repr=False, compare=False)

    @classmethod
    def every(
        cls, order: int, *, epsilon: float, domains: Sequence[Domain], oracle: type[Oracle[Any]] | None = None
    ) -> Self:
        """Return the protocol whose tables are all those of ``order`` attributes.

        Parameters
        ----------
        order : int
            Attributes of each table, at least 1.
        epsilon : float
            Of each report.
        domains : sequence of Domain
            The attributes.
        oracle : type of Oracle, optional
            What asks for each table; chosen for each by its size if left out.

        Returns
        -------
        SampledMarginals
            Each respondent is asked for one table, which is drawn evenly.
        """
        given, width = checked_domains(domains), _check.integer("order", order, minimum=1)
        if width > len(given):
            _check.refuse(
                "order", f"be at most {len(given)}, the attributes", width, "ask for narrower tables"
            )
        views = tuple(combinations(range(len(given)), width))
        return cls(epsilon=epsilon, domains=given, views=views, oracle=oracle)

    def _make(self) -> client.SampledMarginalsRandomizer:
        sizes = [len(domain) for domain in checked_domains(self.domains)]
        kinds = self._kinds(client.checked_views(self.views, sizes), sizes)
        return self._client(protocols=tuple(kind.wire_name for kind in kinds))

    def _kinds(self, views: tuple[Attributes, ...], sizes: list[int]) -> list[type[Oracle[Any]]]:
        """Return the frequency oracle of each table."""
        given: Any = self.oracle
        if given is None:
            return [best_oracle(self.epsilon, prod(sizes[at] for at in view)) for view in views]
        kinds = list(given) if isinstance(given, tuple | list) else [given] * len(views)
        if len(kinds) != len(views) or not all(isinstance(x, type) and issubclass(x, Oracle) for x in kinds):
            rule = f"be a frequency oracle, or {len(views)} of them"
            _check.refuse("oracle", rule, given, "pass a class such as OptimalLocalHashing")
        return kinds

    def _prepare(self) -> None:
        views = self.device.views
        sizes = tuple(len(domain) for domain in self.domains)
        made: dict[tuple[type, int], Oracle[Any]] = {}
        kinds, parts = self._kinds(views, list(sizes)), self.device.parts
        for kind, part in zip(kinds, parts, strict=True):
            if (kind, len(part.domain)) not in made:
                made[kind, len(part.domain)] = kind(epsilon=self.epsilon, domain=part.domain)
        oracles = tuple(made[kind, len(part.domain)] for kind, part in zip(kinds, parts, strict=True))
        noises = {oracle: TableNoise.of(oracle) for oracle in made.values()}
        self._set(oracles=oracles, noises=tuple(noises[oracle] for oracle in oracles))
        self._set(lattice=Lattice(sizes, views))

    @property
    def counted(self) -> tuple[Oracle[Any], ...]:
        """The oracles."""
        return self.oracles

    @property
    def privacy_loss(self) -> PrivacyLoss:
        r"""One of the oracles' losses, drawn evenly, and it is public which.

        Notes
        -----
        If all are `SupportResponse` with the same numbers, so is the whole: its shared distribution draws a
        table and a report from that table's shared distribution, and what supports a row has the same chance.
        `RandomizedResponse` over k cells is that of chance 1/k, without overlap.
        """
        losses = Counter(_as_support(oracle.privacy_loss) for oracle in self.oracles)
        if len(losses) == 1:
            (loss,) = losses
            if isinstance(loss, SupportResponse):
                return loss
        weights = tuple(count / len(self.oracles) for count in losses.values())
        return Mixture(tuple(losses), weights, index_public=True)

    def _evidence(self, totals: NDArray[np.int64], reports: int) -> TableEvidence:
        counts = np.array(self.reports_of_parts(totals), np.float64)
        weights = counts / np.array([noise.even for noise in self.noises])
        sums, mass = np.zeros(self.lattice.total), np.zeros(self.lattice.total)
        for at, own in enumerate(self.pieces(totals)):
            if counts[at]:
                view, oracle = self.lattice.views[at], self.oracles[at]
                indices = self.lattice.indices(view)
                shares = oracle.shares(own, int(counts[at]))
                sums[indices] += weights[at] * analysed(shares[None, :], self.lattice.shape(view))[0]
                mass[indices] += weights[at]
        with np.errstate(invalid="ignore"):
            coefficients = sums / mass
        coefficients[0] = 1.0
        return TableEvidence(
            lattice=self.lattice,
            coefficients=coefficients,
            reports=reports,
            counts=counts,
            own=np.array([noise.own for noise in self.noises]),
            share=np.array([noise.share for noise in self.noises]),
        )

    def _asked(
        self, people: NDArray[np.int64], generator: np.random.Generator
    ) -> Iterator[NDArray[np.int64]]:
        left, count = people.copy(), len(self.oracles)
        for at in range(count):  # one table after the other: thousands of them would not fit side by side
            drawn = generator.binomial(left, 1 / (count - at))
            left -= drawn
            yield drawn


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableEvidence(Evidence):
    """The evidence of reports about tables.

    Parameters
    ----------
    lattice, coefficients, reports
        See `Evidence`.
    counts : array
        Reports about each table.
    own, share : array
        See `TableNoise`, for each table.
    """

    counts: Array
    own: Array
    share: Array

    @property
    def view_weights(self) -> Array:
        """What the coefficients of each table are weighted by."""
        return np.asarray(self.counts / (self.own + self.share))

    def precisions(self, width: int) -> dict[Attributes, float]:
        """Return how well the coefficients of sets of attributes are known; see `Evidence`."""
        found: dict[Attributes, float] = defaultdict(float)
        for view, weight in zip(self.lattice.views, self.view_weights.tolist(), strict=True):
            for among in combinations(view, min(width, len(view))):
                found[among] += weight
        return dict(found)

    def scatter(self, attributes: Attributes, shares: Array) -> Array:
        r"""Return the covariance matrix of coefficients.

        Notes
        -----
        With the weights w and their sums W over the tables that have a coefficient, it is
        :math:`\sum_V \frac{w_V^2}{W_j W_k n_V} (a_V L_V \delta_{jk} + b_V E[\varphi_j \varphi_k] - \theta_j
        \theta_k)` over the tables with both j and k.
        """
        lattice, shape = self.lattice, self.lattice.shape(attributes)
        basis = transformed(np.eye(len(shares)).reshape(-1, *shape), [functions(size) for size in shape])
        values = basis.reshape(len(shares), -1).T  # functions by cells
        means, products = values @ shares, values * shares @ values.T
        weights, supports = self.view_weights, lattice.supports(attributes)
        bit = {attribute: 1 << at for at, attribute in enumerate(attributes)}
        masks = np.array([sum(bit.get(at, 0) for at in view) for view in lattice.views])
        size = 1 << len(attributes)
        mass = _over_supersets(np.bincount(masks, weights, size))[supports]
        with np.errstate(invalid="ignore", divide="ignore"):
            each = np.where(self.counts > 0, weights**2 / self.counts, 0.0)
            own, share, once = (
                _over_supersets(np.bincount(masks, each * part, size))[supports[:, None] | supports]
                for part in (self.own, self.share, np.ones(len(each)))
            )
            found = np.diag(np.diag(own)) + share * products - once * np.outer(means, means)
            found = found / np.outer(mass, mass)
        found[supports == 0] = found[:, supports == 0] = 0.0
        missing = (mass == 0) & (supports > 0)
        found[missing] = found[:, missing] = np.inf
        return np.asarray(found)


def _over_supersets(values: NDArray[Any]) -> Array:
    """Return the sums over all numbers that have the bits of each index."""
    found, half = values.astype(np.float64), 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        pairs[:, 0] += pairs[:, 1]
        half *= 2
    return found


def _as_support(loss: PrivacyLoss) -> PrivacyLoss:
    """Return randomized response as the support response that it is, and others as they are."""
    if isinstance(loss, RandomizedResponse):
        return SupportResponse(loss.epsilon(0.0), Fraction(1, loss.categories))
    return loss
