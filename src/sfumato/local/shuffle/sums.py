"""Sums and means in the shuffle model with the noise of a curator: split and mix."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.respondents import respondents, seeded
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle import sums as client
from sfumato.local.shuffle.estimate import NoisyNumber, ShuffledMeanEstimate, ShuffledSumEstimate
from sfumato.local.shuffle.split_and_mix import SplitProtocol, lifted, mixed_loss
from sfumato.numerics.sampling.integer_noise import LARGEST_POLYA
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ShuffledMean", "ShuffledSum"]

_FINEST: Final = 1 << 14
_ROUNDING: Final = 12.5
"""With (steps / epsilon)^2 this times the clients, roundings add n/4 to twice that: 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum(SplitProtocol[client.ShuffledSumRandomizer]):
    """A sum of numbers between two bounds, of which an estimate is released."""

    bounds: tuple[float, float]
    steps: int | None = None

    def _make(self) -> client.ShuffledSumRandomizer:
        steps = self._finest() if self.steps is None else _check.integer("steps", self.steps, minimum=1)
        scale = steps / Fraction(self.epsilon)
        client.checked_scale(scale)
        split = self._split(steps, scale, self.epsilon, self.delta)
        made = client.ShuffledSumRandomizer(
            epsilon=self.epsilon, bounds=self.bounds, steps=steps, split=split
        )
        object.__setattr__(self, "bounds", made.bounds)
        object.__setattr__(self, "steps", steps)
        return made

    def _finest(self) -> int:
        """Return how many steps make rounding small beside the noise."""
        wanted = math.ceil(self.epsilon * math.sqrt(_ROUNDING * self.clients))
        return max(1, min(wanted, _FINEST, int(LARGEST_POLYA * self.epsilon)))

    @property
    def totals(self) -> int:
        """One: the sum of all shares."""
        return 1

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Discrete Laplace noise on the sum, and the mass of what mixed shares reveal beside it."""
        return mixed_loss(self.device.split, self.device.scale, self.device.steps)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Add up shares, modulo 2^64; of that a power of two is left at last."""
        total = self.device.layout.unpack(records).sum(dtype=np.uint64)
        return np.array([total], np.uint64).view(np.int64)

    @abstractmethod
    def _estimated(self, total: float, clients: int, **more: Any) -> Any:
        """Return an estimate from a sum of grid points."""

    @property
    def _step(self) -> float:
        """What a step of the grid is worth."""
        return (self.bounds[1] - self.bounds[0]) / self.device.steps

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Any:
        """Return the estimate from the sum of so many messages."""
        clients, device = self._counted(reports), self.device
        noise = self._noise(device.scale, clients, rounded=True)
        more = {"noise": noise, "loss": self.privacy_loss, "simulated": simulated}
        (total,) = lifted(totals, device.split.bits, clients * device.steps / 2)
        return self._estimated(float(total), clients, **more)

    def simulate(
        self, values: ArrayLike, rng: int | np.random.Generator = 0, *, counts: ArrayLike | None = None
    ) -> Any:
        """Return an estimate as it might come of so many clients, drawn at once.

        Parameters
        ----------
        values : array
            True numbers, within the bounds.
        rng : int or numpy Generator
            A seed: this simulates, for planning.
        counts : array of int, optional
            How many clients have each number, at most ``max_clients`` in all; one if left out.
        """
        device, generator = self.device, seeded(rng)
        position = device._positions(np.asarray(values))  # noqa: SLF001 - the other half of one protocol
        people = respondents(counts, len(position))
        clients = int(people.sum())
        if clients > self.batch:
            _check.refuse(
                "counts",
                f"add up to at most {self.batch}, the maximum of clients",
                clients,
                "pass a larger max_clients",
            )
        low = np.floor(position)
        up = generator.binomial(people, position - low)
        noisy = low.astype(np.int64) @ people + up.sum() + self._drawn(device.scale, clients, generator, 1)
        return self.estimate(noisy.astype(np.int64), clients * self.messages, simulated=True)

    def _squares(self, n: int) -> float:
        """Return the variance of the sum of n clients, with rounding at its maximum."""
        clients = _check.integer("n", n, minimum=1)
        return self._step**2 * self._noise(self.device.scale, clients, rounded=True).variance


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledSum(_Sum):
    r"""Each client sends shares of its number and of a little noise; only their sum means anything.

    Parameters
    ----------
    epsilon, delta, clients, max_clients
        See `SplitProtocol`; epsilon at least 2^-14.
    bounds : tuple of float
        Bounds of the numbers that can be true; public, and never taken from the data.
    steps : int, optional
        Of the grid to which numbers are rounded at random, without bias; up to 2^14, and 2^14 times epsilon.
        If left out, so many that rounding adds at most 1 % to the variance (or the maximum).

    Notes
    -----
    Guarantee: see `SplitProtocol`. With m steps between the bounds the noise of ``clients`` honest clients is
    discrete Laplace noise of scale :math:`m/\epsilon` in steps, as a curator would draw it: the sum deviates
    by about :math:`\sqrt2/\epsilon` times the distance of the bounds, whatever the number of clients. Of n >
    ``clients`` honest ones the variance is n / ``clients`` times as great.

    *Estimate.* The sum of all shares modulo q is that of all grid points and the noise. What is nearest to
    the middle of all possible sums is taken, which is wrong with probability below :math:`2^{-40}`. Each
    client sends :math:`m \approx (\log_2 q + 2 \log_2(n/\delta))/\log_2(en)` messages of :math:`\log_2 q`
    bits.

    References
    ----------
    Ishai, Kushilevitz, Ostrovsky, Sahai (2006), "Cryptography from anonymity"; Balle, Bell, Gascón, Nissim
    (2020), "Private summation in the multi-message shuffle model"; Ghazi, Manurangsi, Pagh, Velingker (2020),
    "Private aggregation from fewer anonymous messages".

    Examples
    --------
    >>> protocol = ShuffledSum(epsilon=1.0, delta=1e-6, clients=10_000, bounds=(0.0, 100.0))
    >>> protocol.messages, protocol.device.width, round(protocol.variance(10_000) ** 0.5)
    (7, 7, 142)
    """

    wire_name: ClassVar[str] = "shuffled-sum"

    def variance(self, n: int) -> float:
        """Return the variance of the sum of ``n`` clients, with the maximum that rounding adds.

        Parameters
        ----------
        n : int
            Clients, at least 1.

        Returns
        -------
        float
            In squared units of the numbers.
        """
        return self._squares(n)

    def _estimated(self, total: float, clients: int, **more: Any) -> NoisyNumber:
        lower, upper = self.bounds
        limits = (clients * lower, clients * upper) if clients else (-math.inf, math.inf)
        value = clients * lower + total * self._step if clients else math.nan
        return ShuffledSumEstimate(reports=clients, value=value, unit=self._step, limits=limits, **more)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledMean(_Sum):
    r"""The mean of what `ShuffledSum` adds up: its standard error is about :math:`\sqrt2/(n\epsilon)` ranges.

    Parameters
    ----------
    epsilon, delta, clients, max_clients, bounds, steps
        See `ShuffledSum`.

    Notes
    -----
    Guarantee: see `SplitProtocol`. How many clients sent is public: it is seen from the messages.

    Examples
    --------
    >>> import numpy as np
    >>> protocol = ShuffledMean(epsilon=1.0, delta=1e-6, clients=500, bounds=(0.0, 1.0))
    >>> mixed = protocol.randomize_batch(np.full(500, 0.25), rng=1).shuffled(rng=2)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(mixed) == 500 * protocol.messages
    True
    >>> abs(aggregator.estimate().mean - 0.25) < 0.02
    True
    """

    wire_name: ClassVar[str] = "shuffled-mean"

    def variance(self, n: int) -> float:
        """Return the variance of the mean of ``n`` clients, with the maximum that rounding adds.

        Parameters
        ----------
        n : int
            Clients, at least 1.

        Returns
        -------
        float
            In squared units of the numbers.
        """
        return self._squares(n) / n**2

    def _estimated(self, total: float, clients: int, **more: Any) -> NoisyNumber:
        unit = self._step / max(clients, 1)
        value = self.bounds[0] + total * unit if clients else math.nan
        return ShuffledMeanEstimate(reports=clients, value=value, unit=unit, limits=self.bounds, **more)
