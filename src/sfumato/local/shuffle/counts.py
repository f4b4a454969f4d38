"""Counts in the shuffle model with the noise of a curator: split and mix, for few categories."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sfumato import _check
from sfumato.local.base.respondents import seeded, whole_counts
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.shuffle import counts as client
from sfumato.local.device.shuffle.sums import checked_scale
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.shuffle.noise import SharedNoise
from sfumato.local.shuffle.protocol import bounded
from sfumato.local.shuffle.split_and_mix import SplitProtocol, lifted, mixed_loss
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NoiseErrorModel", "ShuffledCounts"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledCounts(SplitProtocol[client.ShuffledCountsRandomizer]):
    r"""Each client sends, for each category, shares of a one or a nought and of a little noise.

    Parameters
    ----------
    epsilon, delta, clients, max_clients
        See `SplitProtocol`.
    domain : Domain
        The categories: few, as each has messages of its own. For many there is `ShuffledHistogram`.

    Notes
    -----
    Guarantee: see `SplitProtocol`. A client that is replaced moves two counts by one each. What is seen of
    the other categories has one law, so the loss is that of two sums, of half the epsilon and delta each.

    Each count of ``clients`` honest clients has discrete Laplace noise of scale :math:`2/\epsilon`, as a
    curator's would have, and strays by about :math:`2\sqrt2/\epsilon`, whatever the number of clients and of
    categories.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> protocol = ShuffledCounts(epsilon=1.0, delta=1e-6, clients=10_000, domain=Domain(["yes", "no"]))
    >>> protocol.messages, round(10_000 * protocol.variance(10_000) ** 0.5, 1)
    (12, 2.8)
    """

    wire_name: ClassVar[str] = "shuffled-counts"

    domain: Domain

    def _make(self) -> client.ShuffledCountsRandomizer:
        given: object = self.domain
        if not isinstance(given, Domain):
            _check.refuse("domain", "be a Domain", type(given).__name__, "pass Domain(values)")
        scale = 2 / Fraction(self.epsilon)
        checked_scale(scale)
        split = self._split(1, scale, self.epsilon / 2, self.delta / 2)
        bounded(len(self.domain) * split.shares)
        return client.ShuffledCountsRandomizer(epsilon=self.epsilon, domain=self.domain, split=split)

    @property
    def messages(self) -> int:
        """How many messages each client sends."""
        return self.device.messages

    @property
    def totals(self) -> int:
        """One sum for each category."""
        return len(self.domain)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on two sums, and the masses of what mixed shares tell beside them."""
        return mixed_loss(self.device.split, self.device.scale, 1) * 2

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up the shares of each category, modulo 2^64; of that a power of two is left at last."""
        places, shares = self.device.opened(records)
        sums = np.zeros(len(self.domain), np.uint64)
        np.add.at(sums, places, shares)
        return sums.view(np.int64)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return the shares of the categories, from the sums of so many messages."""
        clients = self._counted(reports)
        counts = lifted(totals, self.device.split.bits, clients / 2)
        return Estimate(
            domain=self.domain,
            reports=clients,
            raw=counts / clients if clients else np.full(len(counts), np.nan),
            error_model=self.error_model(max(clients, 1)),
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def error_model(self, clients: int) -> NoiseErrorModel:
        """Return how far the shares of so many clients stray, all of them honest."""
        return NoiseErrorModel(noise=self._noise(self.device.scale, clients, rounded=False), clients=clients)

    def variance(self, n: int) -> float:
        """Return the variance of a share's estimate from ``n`` clients, whatever the share is."""
        clients = _check.integer("n", n, minimum=1)
        return self.error_model(clients).noise.variance / clients**2

    def simulate(self, true_counts: ArrayLike, rng: int | np.random.Generator = 0) -> Estimate:
        """Return an estimate as it might come of so many clients in each category: the same law, at once."""
        counts = whole_counts("true_counts", true_counts, len(self.domain), "pass one per category")
        generator, clients = seeded(rng), int(counts.sum())
        noise = self._drawn(self.device.scale, clients, generator, len(counts))
        return self.estimate(counts + noise, clients * self.messages, simulated=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseErrorModel(ErrorModel):
    """How far shares stray that have noise of one law, independent of each other and of the shares.

    Parameters
    ----------
    noise : SharedNoise
        On each count.
    clients : int
        Whose counts they are.
    """

    noise: SharedNoise
    clients: int

    def variance(self, share: Array) -> Array:
        """Return the variance of one client's part in an estimate."""
        return np.full(np.shape(share), self.noise.variance / self.clients)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one client's part: none but the variances."""
        return np.asarray((rows[:, None] == np.arange(len(shares))) * self.noise.variance / self.clients)

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares from which noise strays so far, with the probability that z means."""
        half = self.noise.half_width(1 - 2 * float(ndtr(-z))) / reports
        return Interval(frequencies - half, frequencies + half)
