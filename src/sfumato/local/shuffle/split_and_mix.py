"""What split-and-mix protocols share: enough shares, a modulus that nothing wraps around, and the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.local.frequency.variance import Array
from sfumato.local.shuffle.mixing_bound import fewest_shares, revealing_mass
from sfumato.local.shuffle.noise import SharedNoise
from sfumato.local.shuffle.protocol import ShuffleProtocol
from sfumato.numerics.decimals import outward
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SplitProtocol", "lifted", "mixed_loss"]

Device = TypeVar("Device", bound=Randomizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitProtocol(ShuffleProtocol[Device], Generic[Device]):
    r"""A protocol of sums, to which each client adds shares of its number and of a little noise.

    Parameters
    ----------
    epsilon, delta, clients
        See `ShuffleProtocol`.
    max_clients : int, optional
        The maximum number of clients, honest or not, whose messages are ever added up: their sum must not
        wrap around. Twice ``clients`` if left out.

    Notes
    -----
    Guarantee: see `ShuffleProtocol`. Replace-one: the loss is that of discrete Laplace noise of the stated
    epsilon, and of a mass (at most delta) with which the mixed shares may reveal more than their sum.

    *Proof.* Reveal the messages of all clients but of some ``clients`` honest ones, with the changed one
    among them; nothing of that depends on the changed datum. The noise of these adds up to exactly discrete
    Laplace noise (`sfumato.numerics.sampling.integer_noise.polya`), and taking the sum modulo q is
    post-processing. That the mixed shares reveal little more than the sum is proved in
    `sfumato.local.shuffle.mixing_bound`, for all numbers at once: also for those that the noise, and rounding
    at random, make. More honest clients only add noise.

    *All or nothing.* If one message is lost, or sent by somebody who means harm, the sum is any number. If
    messages are missing, or those of more than `max_clients` were added up, there is no estimate (NaN).

    Examples
    --------
    >>> from sfumato.local import shuffle
    >>> protocol = shuffle.ShuffledSum(epsilon=1.0, delta=1e-6, clients=1000, bounds=(0.0, 1.0))
    >>> isinstance(protocol, SplitProtocol), protocol.batch
    (True, 2000)
    >>> protocol.check_batch(2000)
    """

    added: ClassVar[None] = None
    """Shares are added up modulo a power of two."""

    max_clients: int | None = None

    def __post_init__(self) -> None:
        clients = _check.integer("clients", self.clients, minimum=1)
        largest = 2 * clients if self.max_clients is None else self.max_clients
        remedy = "it counts the honest clients too"
        object.__setattr__(
            self, "max_clients", _check.integer("max_clients", largest, minimum=clients, remedy=remedy)
        )
        ShuffleProtocol.__post_init__(self)

    @property
    def batch(self) -> int:
        """The maximum number of clients whose messages are added up."""
        return self.clients if self.max_clients is None else self.max_clients

    def check_batch(self, size: int) -> None:
        """Refuse batches whose sums might wrap around.

        Parameters
        ----------
        size : int
            Clients of the batch.

        Raises
        ------
        ParameterError
            If there are more than `batch`.
        """
        if size > self.batch:
            _check.refuse("batch_size", f"be at most {self.batch}", size, "pass max_clients= of as many")

    def _split(self, range_: int, scale: Fraction, epsilon: float, delta: float) -> Split:
        r"""Return how numbers from 0 to ``range_`` are split, with noise of a scale and its pure epsilon.

        Notes
        -----
        Noise of R parts leaves t with probability at most :math:`2^{-40}` for :math:`t = 2s(41+R)\ln 2`: with
        :math:`q = e^{-1/s}` and X of Pólya's distribution, :math:`E q^{-X/2} = (1+\sqrt q)^R \le 2^R`, so
        :math:`P(X \ge t) \le 2^R e^{-t/2s}`, on either side.
        """
        tail = math.ceil(2 * float(scale) * math.log(2) * (41 + self.batch / self.clients))
        bits = (self.batch * range_ + 2 * tail + 2).bit_length()
        lone = Split(self.clients, 2, bits)
        return Split(self.clients, fewest_shares(lone.clients, bits, epsilon, delta), bits)

    def _noise(self, scale: Fraction, clients: float, *, rounded: bool) -> SharedNoise:
        """Return the distribution of the noise of so many clients, with roundings at their maximum."""
        rounding = clients / 4 if rounded else 0.0
        return SharedNoise(scale=float(scale), parts=clients / self.clients, rounding=rounding)

    def _counted(self, reports: int) -> int:
        """Return how many clients sent so many messages, or 0 if no estimate can be made of them."""
        clients, rest = divmod(reports, self.messages)
        return 0 if rest or clients > self.batch else clients

    def _drawn(self, scale: Fraction, clients: int, generator: np.random.Generator, size: int) -> Any:
        """Draw the noise of so many clients, for simulations."""
        if not clients:
            return np.zeros(size, np.int64)
        chance = -math.expm1(-1 / float(scale))
        up, down = generator.negative_binomial(clients / self.clients, chance, (2, size))
        return up - down


@lru_cache(maxsize=64)
def mixed_loss(split: Split, scale: Fraction, sensitivity: int) -> PrivacyLoss:
    """Return the loss of one sum, of mixed shares, that a client moves by at most ``sensitivity``."""
    noise = DiscreteLaplace(scale, sensitivity, neighboring=Neighboring.REPLACE_ONE)
    mass = revealing_mass(split.clients, split.shares, split.bits, noise.pure().epsilon)
    return noise + ApproximateDP(0.0, outward(mass), neighboring=Neighboring.REPLACE_ONE) if mass else noise


def lifted(totals: NDArray[np.int64], bits: int, middle: float) -> Array:
    """Return the numbers nearest to ``middle`` that are such totals modulo ``2**bits``."""
    low = math.floor(middle) - (1 << (bits - 1))
    return low + (totals - low & (1 << bits) - 1).astype(np.float64)
