"""A collection by way of a shuffler, as its analyst knows it: its guarantee, and how batches are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.base.specifications import protocol_from_specification, protocol_specification
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.local.shuffle.mixed_batch import MixedBatch
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Collection", "Opening"]

_BLOCK = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A protocol, the shuffler's rules, and the keys of both parties.

    Parameters
    ----------
    protocol : ReportProtocol
        An oracle, another protocol of `sfumato.local`, or one with several messages.
    batch_size, colluders, analyst, shuffler, name
        See `sfumato.local.device.PublicCollection`.

    Attributes
    ----------
    device : sfumato.local.device.PublicCollection
        What the devices and the shuffler know.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or a protocol with several messages counts on more honest clients
        than ``batch_size - colluders``, or adds up fewer than ``batch_size``.

    Notes
    -----
    Guarantee: `privacy_loss`, of each client, for everything that the analyst and at most ``colluders`` other
    clients of its batch see; replace-one. Conditions: those of `sfumato.privacy.Shuffled`, or of the
    protocol; the shuffler releases only whole batches of ``batch_size`` clients, in random order and with
    nothing else, and does not work with the analyst; each client takes part in one batch, once; whether and
    when it sends does not depend on its answer, so that of all batches only one changes with it. Nonces do
    not distinguish people: who sends ``batch_size - 1`` envelopes under nonces of its own is as many
    colluders. Let clients in by something that costs, before the shuffler. Losses of several collections add
    up if each report was drawn anew, as `sfumato.local.device.PublicCollection.envelope` draws it; of reports
    of one memo they do not: those together retain their protocol's ``longitudinal_loss``, shuffled or not.

    Examples
    --------
    >>> from sfumato import local
    >>> keys = {role: SecretKey.generate(role).public for role in ("analyst", "shuffler")}
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(range(10)))
    >>> collection = Collection(protocol=oracle, batch_size=10_000, colluders=100, **keys)
    >>> collection.clients, round(collection.privacy_loss.epsilon(1e-6), 4)
    (9900, 0.0802)
    """

    protocol: ReportProtocol[Any, Any]
    batch_size: int
    analyst: PublicKey
    shuffler: PublicKey
    colluders: int = 0
    name: str = ""
    device: device.PublicCollection = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check.instance("protocol", self.protocol, ReportProtocol, "pass an oracle of sfumato.local")
        reported = device.PublicCollection(
            randomizer=self.protocol.device,
            batch_size=self.batch_size,
            colluders=self.colluders,
            analyst=self.analyst,
            shuffler=self.shuffler,
            name=self.name,
        )
        object.__setattr__(self, "device", reported)
        self.protocol.check_clients(self.clients)
        self.protocol.check_batch(self.batch_size)

    @property
    def clients(self) -> int:
        """How many honest clients each batch has at least."""
        return self.batch_size - self.colluders

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of each client, seen by the analyst; in as many batches as there are, for it is in one."""
        return self.protocol.shuffled_loss(self.clients)

    def specification(self) -> dict[str, Any]:
        """Return all of it, as JSON: what the devices read, and the protocol where JSON has it.

        Returns
        -------
        dict
            JSON that `from_specification` reads; it holds no secret.
        """
        protocol = protocol_specification(self.protocol)
        return self.device.specification() | ({} if protocol is None else {"protocol": protocol})

    @staticmethod
    def from_specification(
        specification: Mapping[str, Any], *, protocol: ReportProtocol[Any, Any] | None = None
    ) -> Collection:
        """Return the collection that `specification` described.

        Parameters
        ----------
        specification : mapping
            As `specification` returned it.
        protocol : ReportProtocol, optional
            The protocol itself, for one with a parameter that JSON does not have.

        Returns
        -------
        Collection
            With the same id.

        Raises
        ------
        ParameterError
            If it is of another format, or the protocol is not the devices'.
        """
        if protocol is None:
            given: object = specification
            parts = specification if isinstance(given, Mapping) else {}
            protocol = protocol_from_specification(parts.get("protocol"))
        domain = getattr(protocol, "domain", None)
        known = device.PublicCollection.from_specification(
            specification, **({} if domain is None else {"domain": domain})
        )
        made = Collection(
            protocol=protocol,
            batch_size=known.batch_size,
            colluders=known.colluders,
            analyst=known.analyst,
            shuffler=known.shuffler,
            name=known.name,
        )
        if made.device.id != known.id:
            raise ParameterError(
                "protocol must be the one that the devices report by, got another; pass that one"
            )
        return made

    def opening(self, key: SecretKey) -> Opening:
        """Return an opening, which unseals and counts this collection's batches.

        Parameters
        ----------
        key : SecretKey
            The analyst's secret key.

        Returns
        -------
        Opening
            With nothing counted yet.
        """
        return Opening(self, key)


@final
class Opening:
    """Opens the released batches of a collection, and counts their records.

    Parameters
    ----------
    collection : Collection
    key : SecretKey
        The analyst's.

    Notes
    -----
    A record whose seal does not open, or that is none of this protocol, is counted as refused and never an
    error: its client chose its bytes. If more are refused in a batch than ``colluders`` could have sent,
    there were more of them than the loss allows for, and the batch is among the `exposed`. Whether its
    randomness followed from a seed is what a record says of itself: one that lies marks the estimate.

    Examples
    --------
    >>> from sfumato import local
    >>> secrets = {role: SecretKey.generate(role) for role in ("analyst", "shuffler")}
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(range(10)))
    >>> keys = {role: secret.public for role, secret in secrets.items()}
    >>> collection = Collection(protocol=oracle, batch_size=100, **keys)
    >>> opening = collection.opening(secrets["analyst"])
    >>> opening.batches, opening.exposed, opening.aggregator.accepted
    (0, (), 0)

    Then call ``opening.add(batch)`` for each batch that the shuffler released, and ``opening.estimate()``.
    """

    __slots__ = ("_aggregator", "_collection", "_exposed", "_key", "_numbers", "_unsealable")

    def __init__(self, collection: Collection, key: SecretKey) -> None:
        _check.instance("key", key, SecretKey, "use SecretKey.from_file")
        if key.public != collection.analyst:
            raise ParameterError("key must be that of the collection's analyst, got another; use that one")
        self._collection, self._key = collection, key
        self._aggregator: Intake[Any] = collection.protocol.aggregator()
        self._numbers: set[int] = set()
        self._exposed: list[int] = []
        self._unsealable = 0

    @property
    def aggregator(self) -> Intake[Any]:
        """What counted the records whose seals opened."""
        return self._aggregator

    @property
    def batches(self) -> int:
        """How many batches were opened."""
        return len(self._numbers)

    @property
    def refused(self) -> Mapping[str, int]:
        """How many records were not counted, by reason; ``"seal"`` did not open."""
        return {"seal": self._unsealable, **self._aggregator.refused}

    @property
    def exposed(self) -> tuple[int, ...]:
        """The numbers of batches in which more clients lied than are tolerated; their loss may be greater."""
        return tuple(self._exposed)

    def add(self, batch: MixedBatch | bytes) -> int:
        """Open a batch, and return how many records were counted.

        Parameters
        ----------
        batch : MixedBatch or bytes
            As the shuffler released it.

        Returns
        -------
        int
            Records that were counted; the others are in `refused`.

        Raises
        ------
        ParameterError
            If it is no whole batch of this collection, or was opened before; then nothing is counted.
        """
        if not isinstance(batch, MixedBatch):
            batch = MixedBatch.from_bytes(batch)
        known = self._collection.device
        if batch.collection != known.id:
            raise ParameterError("a batch must be of this collection, got another's; use that one's file")
        if batch.sealed.shape != (known.batch_size * known.messages, known.sealed_width):
            raise ParameterError("a batch must have all records of its clients, got more or fewer")
        if batch.number in self._numbers:
            _check.refuse("a batch", "be opened once", batch.number, "leave it out")
        self._numbers.add(batch.number)
        before = self._aggregator.accepted
        for start in range(0, len(batch.sealed), _BLOCK):
            self._count(batch.sealed[start : start + _BLOCK])
        accepted = self._aggregator.accepted - before
        if len(batch.sealed) - accepted > known.colluders * known.messages:
            self._exposed.append(batch.number)
        return accepted

    def _count(self, sealed: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        known = self._collection.device
        context, width = known.report_context, 1 + known.randomizer.width
        opened = [self._key.opened(row.tobytes(), context) for row in sealed]
        # A first byte that no device writes is as good as a broken seal.
        sound = [part for part in opened if part is not None and len(part) == width and part[0] <= 1]
        self._unsealable += len(opened) - len(sound)
        records = np.frombuffer(b"".join(sound), np.uint8).reshape(-1, width)
        for simulated in (False, True):
            some = np.ascontiguousarray(records[records[:, 0] == simulated, 1:])
            self._aggregator.add_batch(ReportBatch(some, known.randomizer.digest, simulated))

    def estimate(self) -> Any:
        """Return the protocol's estimate from the counted records; some protocols ask more of `aggregator`.

        Returns
        -------
        object
            Such as an `sfumato.local.Estimate`.
        """
        counted: Any = self._aggregator
        return counted.estimate()
