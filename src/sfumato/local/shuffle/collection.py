"""A collection by way of a shuffler, as its analyst knows it: its guarantee, and how batches are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.base.specifications import protocol_from_specification, protocol_specification
from sfumato.local.shuffle.opening import Opening, State
from sfumato.local.shuffle.opening_keys import Keys
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Collection"]


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
    >>> from sfumato.local.shuffle import SecretKey
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

    def opening(self, key: Keys, *, state: State = None) -> Opening:
        """Return an opening, which unseals and counts this collection's batches.

        Parameters
        ----------
        key : SecretKey or sequence of SecretKey
            The analyst's secret key; or a list of all that were used in the course of the collection.
        state : path or bytes, optional
            A file in which what was opened is stored, or the bytes of another opening; see `Opening`.

        Returns
        -------
        Opening
            With nothing counted yet, or what the state holds.
        """
        return Opening(self, key, state=state)
