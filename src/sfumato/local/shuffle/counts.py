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
    the other categories has one distribution, so the loss is that of two sums, of half the epsilon and delta
    each.

    Each count of ``clients`` honest clients has discrete Laplace noise of scale :math:`2/\epsilon`, as a
    curator's would have, with a standard error of about :math:`2\sqrt2/\epsilon`, whatever the number of
    clients and of categories.

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
            _check.refuse_type("domain", "be a Domain", given, "pass Domain(values)")
        scale = 2 / Fraction(self.epsilon)
        checked_scale(scale)
        split = self._split(1, scale, self.epsilon / 2, self.delta / 2)
        bounded(len(self.domain) * split.shares)
        return client.ShuffledCountsRandomizer(epsilon=self.epsilon, domain=self.domain, split=split)

    @property
    def totals(self) -> int:
        """One sum for each category."""
        return len(self.domain)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on two sums, and the masses of what mixed shares reveal beside them."""
        return mixed_loss(self.device.split, self.device.scale, 1) * 2

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up the parts of each category's number, modulo 2^64; the estimate then takes a power of two.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        indices, shares = self.device.opened(records)
        sums = np.zeros(len(self.domain), np.uint64)
        np.add.at(sums, indices, shares)
        return sums.view(np.int64)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return the estimated shares of the categories, from the sums of so many messages.

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
        """Return the error model of the shares of so many clients, all of them honest.

        Parameters
        ----------
        clients : int
            At least 1.

        Returns
        -------
        NoiseErrorModel
            With the noise that they add together.
        """
        return NoiseErrorModel(noise=self._noise(self.device.scale, clients, rounded=False), clients=clients)

    def variance(self, n: int) -> float:
        """Return the variance of a share's estimate from ``n`` clients, whatever the share is.

        Parameters
        ----------
        n : int
            Clients, at least 1.

        Returns
        -------
        float
            By noise alone; its root is a standard error in units of shares.
        """
        clients = _check.integer("n", n, minimum=1)
        return self.error_model(clients).noise.variance / clients**2

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
        generator, clients = seeded(rng), int(counts.sum())
        noise = self._drawn(self.device.scale, clients, generator, len(counts))
        return self.estimate(counts + noise, clients * self.messages, simulated=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseErrorModel(ErrorModel):
    """The error model of shares whose noise has one distribution and is independent of everything else.

    Parameters
    ----------
    noise : SharedNoise
        On each count.
    clients : int
        Whose counts they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import Domain
    >>> protocol = ShuffledCounts(epsilon=1.0, delta=1e-6, clients=10_000, domain=Domain(["yes", "no"]))
    >>> model = protocol.error_model(10_000)
    >>> ratio = model.variance(np.array([0.3]))[0] / 10_000 / protocol.variance(10_000)
    >>> round(float(ratio), 6)
    1.0
    """

    noise: SharedNoise
    clients: int

    def variance(self, share: Array) -> Array:
        """Return the variance of one client's part in an estimate.

        Parameters
        ----------
        share : array
            True shares.

        Returns
        -------
        ndarray of float64
            The same number for every share.
        """
        return np.full(np.shape(share), self.noise.variance / self.clients)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one client's part, which is diagonal.

        Parameters
        ----------
        shares : array, shape (categories,)
            True shares.
        rows : int64 array
            Indices of the rows that are wanted.

        Returns
        -------
        ndarray of float64, shape (rows, categories)
            Zero but for the variances.
        """
        return np.asarray((rows[:, None] == np.arange(len(shares))) * self.noise.variance / self.clients)

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares from which the noise deviates so far, with the probability that z stands for.

        Parameters
        ----------
        frequencies : array
            Estimated shares.
        reports : int
            Clients that were counted.
        z : float
            Standard deviations of a normal distribution, whose two-sided probability is meant.

        Returns
        -------
        Interval
            Exact in the noise; not cut off at 0 and 1.
        """
        half = self.noise.half_width(1 - 2 * float(ndtr(-z))) / reports
        return Interval(frequencies - half, frequencies + half)
