"""What multi-message protocols share: a target for the shuffled batch, and how many decoys reach it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.decoys import MOST_MESSAGES
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TRUTH_EPSILON", "ShuffleProtocol", "bounded", "fewest"]

Device = TypeVar("Device", bound=Randomizer)

TRUTH_EPSILON: Final = 16.0
"""Epsilon of the message with the truth: it lies once in some millions, and the accountant stays finite."""
_MAX: Final = 1 << 40
_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleProtocol(LocalProtocol[Device, Any], Generic[Device]):
    r"""A protocol whose clients send several messages, which a shuffler mixes with those of all others.

    Parameters
    ----------
    epsilon, delta : float
        What the mixed messages of a batch guarantee each client, under replace-one; epsilon from above 0 to
        40, delta strictly between 0 and 1.
    clients : int
        Guaranteed number of honest clients in a batch, each of whom sends once: its size less the colluders
        that are tolerated. At least 1, public.

    Attributes
    ----------
    device : Randomizer
        The client half, which a device makes again from ``device.specification()``.

    Notes
    -----
    Guarantee: :math:`(\epsilon, \delta)`-DP of all mixed messages, replace-one: `privacy_loss`. What
    colluders send is known to them and hides nobody: decoys and noise of honest clients alone are counted.
    Conditions: the shuffler mixes all messages of a batch before anybody sees them, and does not reveal which
    came together; each client takes part once; at least ``clients`` honest ones do. The loss that an estimate
    states is that one, however few messages were counted: with fewer clients it is greater. If the shuffler
    betrays its clients, what is left is the bound of ``device``: weak, or none. A client that sends more than
    its messages, or others, moves the estimate by as much: the shuffler must hold everybody to `messages`.

    What one person sends is `messages` records one after the other; what many send goes client by client, for
    a shuffler, or ``.shuffled()``.

    Examples
    --------
    Every such protocol states its loss and what a client sends:

    >>> from sfumato.local import Domain, shuffle
    >>> protocol: shuffle.ShuffleProtocol = shuffle.ShuffledCounts(
    ...     epsilon=1.0, delta=1e-6, clients=10_000, domain=Domain(["yes", "no"])
    ... )
    >>> protocol.privacy_loss.epsilon(1e-6) <= 1.0
    True
    >>> protocol.bytes_each == protocol.messages * protocol.device.width
    True
    """

    epsilon: float
    delta: float
    clients: int
    device: Device = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", _check.unit_interval("delta", self.delta))
        remedy = "pass the guaranteed number of honest clients"
        object.__setattr__(self, "clients", _check.integer("clients", self.clients, minimum=1, remedy=remedy))
        object.__setattr__(self, "device", self._make())

    @abstractmethod
    def _make(self) -> Device:
        """Return the client half, with enough decoys."""

    @property
    def messages(self) -> int:
        """How many messages each client sends."""
        return self.device.messages

    def check_clients(self, clients: int) -> None:
        """Refuse fewer honest clients than the decoys were drawn up for.

        Parameters
        ----------
        clients : int
            Guaranteed number of honest clients in the batch.

        Raises
        ------
        ParameterError
            If there are fewer than the protocol was made for.
        """
        if clients < self.clients:
            remedy = "make the batch larger, tolerate fewer colluders, or plan the protocol for these"
            _check.refuse(
                "clients", f"be at least {self.clients}, as the protocol counts on", clients, remedy
            )

    def shuffled_loss(self, clients: int) -> PrivacyLoss:
        """Return `privacy_loss`, which is of so many clients or more.

        Parameters
        ----------
        clients : int
            Guaranteed number of honest clients in the batch.

        Returns
        -------
        PrivacyLoss
            Under replace-one.
        """
        self.check_clients(clients)
        return self.privacy_loss

    @property
    def bytes_each(self) -> int:
        """How many bytes each client sends."""
        return self.messages * self.device.width

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count messages by what they say.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        said = self.device.layout.unpack(records).astype(np.int64)
        return np.bincount(said, minlength=self.totals)


def fewest(price: Callable[[int], PrivacyLoss], epsilon: float, delta: float, guess: int) -> int:
    """Return about the fewest decoys with which a loss satisfies (epsilon, delta): at most 0.5 % too many.

    Parameters
    ----------
    price : callable
        The loss with so many decoys.
    epsilon, delta : float
    guess : int
        Where to begin.
    """

    def over(decoys: int) -> float:
        """Return the log of how many times the loss's delta is the one that is allowed."""
        found = price(decoys).delta(epsilon)
        return math.log(found / delta) if found else -math.inf

    low, high = 0, max(1, guess)
    below, above = math.inf, over(high)  # at low, and at high
    while above > 0:
        low, high, below = high, high + high // 4 + 1, above
        if high > _MAX:
            _check.refuse("epsilon", "be greater", epsilon, "wait for more clients")
        above = over(high)
    while high - low > max(1, int(_SHARE * high)):
        middle = _between(low, high, below, above)
        if (found := over(middle)) > 0:
            low, below = middle, found
        else:
            high, above = middle, found
    return high


def _between(low: int, high: int, below: float, above: float) -> int:
    """Return where to look for the root between: near that of a line, on the wider side of it."""
    if not (math.isfinite(below) and math.isfinite(above)):
        return low + (high - low) * 4 // 5
    root = low + (high - low) * below / (below - above)
    step = _SHARE * high / 3
    nearest = root + step if high - root > root - low else root - step
    return min(max(low + 1, round(nearest)), high - 1)


def bounded(messages: int) -> None:
    """Refuse protocols whose clients would send absurdly much."""
    if messages > MOST_MESSAGES:
        remedy = "wait for more honest clients, take fewer categories, or a greater epsilon"
        _check.refuse("clients", f"be enough for at most {MOST_MESSAGES} messages each", messages, remedy)
