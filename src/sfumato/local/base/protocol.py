"""The base of all local protocols: a client half, a price, and whole numbers that reports add up to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.base.aggregator import Aggregator
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.device.base.protocols import protocol_named
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.numerics.randomness.source import Rng
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.shuffled import Shuffled

__all__ = ["LocalProtocol", "ReportProtocol", "log_odds"]

Device = TypeVar("Device", bound=Randomizer)
Result = TypeVar("Result")


class ReportProtocol(ABC, Generic[Device, Result]):
    """A protocol as its server knows it.

    Attributes
    ----------
    device : Randomizer
        The client half, which a device makes again from ``device.specification()``.
    """

    __slots__ = ()

    wire_name: ClassVar[str]
    """What the protocol is called in files, for ever."""

    device_name: ClassVar[str] = ""
    """The wire name of the client half, where that is another one."""

    device: Device

    def __post_init__(self) -> None:
        device = self._make()
        shared = {name: getattr(device, name) for name in device.chosen if hasattr(self, name)}
        self._set(device=device, **shared)
        self._prepare()

    def _make(self) -> Device:
        """Return the client half."""
        return self._client()

    def _client(self, **more: Any) -> Device:
        """Return the client half, of the parameters that it has in common with this half, and of others."""
        kind: Any = protocol_named(self.device_name or self.wire_name)
        shared = {name: getattr(self, name) for name in kind.chosen if name not in more}
        made: Device = kind(**shared, **more)
        return made

    def _prepare(self) -> None:
        """Set what follows from the client half, with `_set`: nothing, where a protocol does not say."""

    def _set(self, **values: Any) -> None:
        """Set attributes while the protocol is made; afterwards it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of what each person sends, under replace-one, from the chances that are drawn."""

    def check_clients(self, clients: int) -> None:
        """Refuse too few honest clients for a shuffled batch: of one message each, any number is enough.

        Parameters
        ----------
        clients : int
            Guaranteed number of honest clients in the batch.
        """
        _check.integer("clients", clients, minimum=1, remedy="pass the guaranteed number of honest clients")

    def check_batch(self, size: int) -> None:
        """Refuse batches of more clients than can be added up; most protocols have no such limit.

        Parameters
        ----------
        size : int
            Clients of the batch.
        """

    def shuffled_loss(self, clients: int) -> PrivacyLoss:
        """Return the loss of each client, if only the shuffled messages of a batch are seen.

        Parameters
        ----------
        clients : int
            Guaranteed number of honest clients in the batch.

        Returns
        -------
        PrivacyLoss
            Under replace-one.
        """
        return Shuffled(self.privacy_loss, clients=clients)

    def randomize(self, value: Any, rng: Rng = None) -> bytes:
        """Return what one person sends; see `Randomizer.randomize`.

        Parameters
        ----------
        value : object
            The person's own value, of the protocol's domain.
        rng : int or numpy Generator, optional
            A seed, for simulations only. Left out, the operating system's randomness is used.

        Returns
        -------
        bytes
            One record; the person's value is protected from here on.
        """
        return self.device.randomize(value, rng)

    def randomize_batch(self, values: Any, rng: Rng = None) -> ReportBatch:
        """Return what many persons send; see `Randomizer.randomize_batch`.

        Parameters
        ----------
        values : array or list
            One value for each person.
        rng : int or numpy Generator, optional
            A seed, for simulations only.

        Returns
        -------
        ReportBatch
            One record for each person.
        """
        return self.device.randomize_batch(values, rng)

    @abstractmethod
    def aggregator(self, state: bytes | None = None) -> Intake[Any]:
        """Return what takes in reports: empty, or with the state whose bytes are given.

        Parameters
        ----------
        state : bytes, optional
            As an aggregator's ``to_bytes`` wrote it.

        Returns
        -------
        aggregator
            One that counts this protocol's reports.
        """


class LocalProtocol(ReportProtocol[Device, Result], Generic[Device, Result]):
    """A protocol whose reports add up to whole numbers.

    Attributes
    ----------
    device : Randomizer
        See `ReportProtocol`.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def totals(self) -> int:
        """How many whole numbers an aggregator stores."""

    @abstractmethod
    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to an aggregator's `totals` numbers.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """

    @abstractmethod
    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Result:
        """Return what the totals estimate; mostly called by an aggregator.

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
        object
            The protocol's estimate.
        """

    def aggregator(self, state: bytes | None = None) -> Aggregator[Result]:
        """Return an empty aggregator, or the one whose ``to_bytes()`` is given.

        Parameters
        ----------
        state : bytes, optional
            As an aggregator's ``to_bytes`` wrote it.

        Returns
        -------
        Aggregator
            One that counts this protocol's reports.
        """
        made: Aggregator[Result] = Aggregator(self)
        return made if state is None else made.restored(state)


def log_odds(odds: Fraction, epsilon: float) -> float:
    """Return a bound on the log of odds that were proved not to exceed those of ``epsilon``."""
    return min(epsilon, log_up(fraction_up(odds)))
