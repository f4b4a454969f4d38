"""Histograms in the shuffle model: what a curator would publish, with a little more noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.respondents import seeded, whole_counts
from sfumato.local.device.base.bernoulli import Coin, odds_below
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.shuffle import histogram as client
from sfumato.local.device.shuffle.decoys import Decoys
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.variance import Array, ErrorModel, quadratic_ends
from sfumato.local.shuffle.protocol import TRUTH_EPSILON, ShuffleProtocol, bounded, fewest
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.among_decoys import AmongDecoys

__all__ = ["DecoyErrorModel", "ShuffledHistogram"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledHistogram(ShuffleProtocol[client.ShuffledHistogramRandomizer]):
    r"""Each client reports its category in one message, and sends decoys that name any category.

    Parameters
    ----------
    epsilon, delta, clients
        See `ShuffleProtocol`.
    domain : Domain
        The categories.

    Notes
    -----
    Guarantee: see `ShuffleProtocol`; the loss is that of `sfumato.privacy.AmongDecoys`: the truth, by
    randomized response with epsilon 16, among the draws of all honest clients.

    *Estimate.* Of T messages of n clients, :math:`D` beside the n with the truth are draws (blanks are
    counted apart), each naming a category with probability 1/k. With c messages that name a category,
    :math:`\frac{(c - D/k)/n - q}{p - q}` is unbiased, p and q being the chances of a true and of each false
    category. Given D its variance is :math:`\frac{(D/n)(1/k)(1 - 1/k) + f p(1-p) + (1-f) q(1-q)}{n(p-q)^2}`.
    The first part, some :math:`\frac{3 \ln(1/\delta)}{n^2 \epsilon^2}` for a small epsilon, is nearly all.
    It falls with n squared, as a curator's noise does, and does not grow with k.

    References
    ----------
    Balcer, Cheu (2020), "Separating local and shuffled differential privacy via histograms", where decoys
    name each category by a coin of its own.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> protocol = ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=10_000, domain=Domain(range(100)))
    >>> protocol.messages, round(protocol.privacy_loss.epsilon(1e-6), 2)
    (2, 1.0)
    """

    wire_name: ClassVar[str] = "shuffled-histogram"

    domain: Domain

    def _make(self) -> client.ShuffledHistogramRandomizer:
        given: object = self.domain
        if not isinstance(given, Domain):
            _check.refuse_type("domain", "be a Domain", given, "pass Domain(values)")
        draws = _draws(self.epsilon, self.delta, self.clients, len(self.domain))
        decoys = Decoys.at_least(draws, self.clients)
        bounded(1 + decoys.slots)
        return client.ShuffledHistogramRandomizer(epsilon=TRUTH_EPSILON, domain=self.domain, decoys=decoys)

    @property
    def totals(self) -> int:
        """One number for each category, and one for blanks."""
        return len(self.domain) + 1

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """One report by randomized response, among the draws of the honest clients."""
        return _loss(self.device.truth, self.device.decoys, self.clients, len(self.domain))

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return the estimated shares of the categories, from totals of so many messages.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        Estimate
            Its ``reports`` counts clients, not messages.
        """
        clients = reports / self.messages
        draws = float(totals[:-1].sum()) - clients
        error_model = self.error_model(draws / clients if clients else 0.0)
        raw = np.full(len(self.domain), np.nan)
        if clients:
            raw = ((totals[:-1] - draws / len(self.domain)) / clients - error_model.lie) / error_model.gap
        return Estimate(
            domain=self.domain,
            reports=round(clients),
            raw=raw,
            error_model=error_model,
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def error_model(self, draws: float | None = None) -> DecoyErrorModel:
        """Return the error model of estimates, for so many decoys of each client.

        Parameters
        ----------
        draws : float, optional
            Decoys for each client; as many as are expected if left out.

        Returns
        -------
        DecoyErrorModel
            Of one client's part.
        """
        decoys, count = self.device.decoys, len(self.domain)
        truth = self.device.truth.chance
        return DecoyErrorModel(
            truth=float(truth),
            lie=float((1 - truth) / (count - 1)),
            draws=max(0.0, float(decoys.slots * decoys.coin.chance) if draws is None else draws),
            categories=count,
        )

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Return the variance of a share's estimate from ``n`` clients, if the share is ``frequency``.

        Parameters
        ----------
        n : int
            Clients, at least 1.
        frequency : float
            The true share, from 0 to 1.

        Returns
        -------
        float
            By decoys and randomization alone; its root is a standard error in units of shares.
        """
        count = _check.integer("n", n, minimum=1)
        share = np.array([_check.share("frequency", frequency)])
        return float(self.error_model().variance(share)[0]) / count

    def simulate(self, true_counts: ArrayLike, rng: int | np.random.Generator = 0) -> Estimate:
        """Return an estimate as it might come of so many clients in each category, drawn at once.

        Parameters
        ----------
        true_counts : array of int
            How many clients are in each category of the domain.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        Estimate
            Distributed as if all clients had sent; marked as simulated.
        """
        counts = whole_counts("true_counts", true_counts, len(self.domain), "pass one per category")
        generator, n, error_model = seeded(rng), int(counts.sum()), self.error_model()
        # Randomized response is the truth with probability p - q, and else drawn evenly from all.
        retained = generator.binomial(counts, error_model.gap)
        slots = n * self.device.decoys.slots
        draws = int(generator.binomial(slots, float(self.device.decoys.coin.chance)))
        even = np.full(len(counts), 1 / len(counts))
        named = retained + generator.multinomial(n - int(retained.sum()) + draws, even)
        return self.estimate(np.append(named, slots - draws), n * self.messages, simulated=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DecoyErrorModel(ErrorModel):
    """The error model of shares that are reported among decoys.

    Parameters
    ----------
    truth, lie : float
        Chances that the message of a client names its category, and any one other.
    draws : float
        Decoys that name a category, for each client.
    categories : int
        How many there are.

    Examples
    --------
    >>> import numpy as np
    >>> model = DecoyErrorModel(truth=0.9, lie=0.01, draws=2.0, categories=11)
    >>> rare, frequent = model.variance(np.array([0.0, 0.5]))
    >>> bool(rare < frequent)
    True
    """

    truth: float
    lie: float
    draws: float
    categories: int

    @property
    def gap(self) -> float:
        """By how much likelier the true category is named."""
        return self.truth - self.lie

    def _ends(self) -> tuple[float, float]:
        """Return the variance of one client's part where another category is true, and where this one is."""
        even = 1 / self.categories
        decoys = self.draws * even * (1 - even)
        other, true = (decoys + p * (1 - p) for p in (self.lie, self.truth))
        return other / self.gap**2, true / self.gap**2

    def variance(self, share: Array) -> Array:
        """Return the variance of one client's part in an estimate.

        Parameters
        ----------
        share : array
            True shares, from 0 to 1.

        Returns
        -------
        ndarray of float64
            One for each share.
        """
        other, true = self._ends()
        return np.asarray(other + share * (true - other))

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one client's part: a message names one category only.

        Parameters
        ----------
        shares : array, shape (categories,)
            True shares.
        rows : int64 array
            Indices of the rows that are wanted.

        Returns
        -------
        ndarray of float64, shape (rows, categories)
            Covariances of one client's part.
        """
        none = -(self.lie**2) - self.draws / self.categories**2
        one = self.lie**2 - self.truth * self.lie
        found = (none + (shares[rows, None] + shares[None, :]) * one) / self.gap**2
        found[np.arange(len(rows)), rows] = self.variance(shares[rows])
        return np.asarray(found)

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most z standard deviations.

        Parameters
        ----------
        frequencies : array
            Estimated shares.
        reports : int
            Clients that were counted.
        z : float
            Standard deviations.

        Returns
        -------
        Interval
            Not cut off at 0 and 1.

        Notes
        -----
        The ends are the roots of a quadratic, with a correction of half a count; see `Support.score`. The
        count is a sum of independent indicators, with as good a normal approximation.
        """
        other, true = self._ends()
        half = 0.5 / (reports * self.gap)
        return quadratic_ends(frequencies, half, z * z / reports, other, true - other)


def _loss(truth: Coin, decoys: Decoys, clients: int, categories: int) -> PrivacyLoss:
    """Return the loss of a client among the decoys of all honest ones."""
    odds = truth.chance * (categories - 1) / (1 - truth.chance)
    reported = RandomizedResponse(min(TRUTH_EPSILON, log_up(fraction_up(odds))), categories)
    return AmongDecoys(reported, clients * decoys.slots, decoys.coin.chance)


@lru_cache(maxsize=64)
def _draws(epsilon: float, delta: float, clients: int, categories: int) -> int:
    """Return how many draws the honest clients make."""
    odds = odds_below(TRUTH_EPSILON)
    truth = Coin.below(odds / (odds + categories - 1))
    guess = math.ceil(categories * math.log(1 / delta) * max(1.0, 3 / epsilon**2))

    def price(draws: int) -> PrivacyLoss:
        return _loss(truth, Decoys.at_least(draws, clients), clients, categories)

    return fewest(price, epsilon, delta, guess)
