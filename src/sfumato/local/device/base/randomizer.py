"""The interface of all client halves: a value becomes a few bytes, and only these leave the device."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.base.protocols import protocol_named
from sfumato.local.device.base.record_layout import Layout, Records
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.grid import Grid
from sfumato.local.device.domains.strings import Strings
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source

__all__ = ["CategoricalRandomizer", "Randomizer", "category_protocol"]

_FORMAT: Final = Format("sfumato.randomizer", 2, oldest=2)
_WIRE: Final = {"protocol": "oracle", "protocols": "oracles"}
"""The names in specifications of parameters that have another one here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomizer(ABC):
    r"""The client half of a protocol.

    Parameters
    ----------
    epsilon : float
        The loss of one report is at most this under replace-one: whatever bytes are sent, they are at most
        :math:`e^\epsilon` times as likely under one true value as under another. From above 0 to 40.

    Attributes
    ----------
    layout : Layout
        How a record is laid out in bytes.

    Notes
    -----
    A subclass defines how many bits it needs, its exact parameters, and how values become records. The
    specification holds all of that; its digest marks every report.

    Examples
    --------
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> server = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"]))
    >>> device = Randomizer.from_specification(server.specification())
    >>> device == server, len(device.randomize("yes"))
    (True, 5)
    """

    wire_name: ClassVar[str]
    """The protocol's name in specifications, fixed for ever; see `sfumato.local.device.base.protocols`."""
    chosen: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The parameters that a specification is read by; all other numbers in it follow from them."""

    epsilon: float
    layout: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._set(epsilon=checked_epsilon(self.epsilon))
        self._prepare()
        text = canonical(_digested(self.specification()))
        self._set(layout=Layout(self._bits, hashlib.sha256(text.encode()).digest()))

    def _set(self, **values: Any) -> None:
        """Set attributes while the randomizer is made; afterwards it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _prepare(self) -> None:
        """Check the parameters and set what follows from them, with `_set`."""

    @property
    @abstractmethod
    def _bits(self) -> int:
        """Bits of the payload."""

    @abstractmethod
    def _chances(self) -> dict[str, Any]:
        """Return the exact numbers that follow from the chosen parameters, as JSON."""

    @abstractmethod
    def _records(self, values: Any, source: RandomSource) -> Records:
        """Return one stamped record for each value."""

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records, all with the right tag, hold a payload that this protocol may send.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Each with the right tag.

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return np.ones(len(records), np.bool_)

    def within(self) -> Self:
        """Return the same client half with records that stand inside of another one's, without a tag.

        Returns
        -------
        Randomizer
            Equal to this one, with the same digest, which the tag of the whole record depends on.
        """
        made = copy.copy(self)
        object.__setattr__(made, "layout", Layout(self.layout.bits, self.digest, tag_bits=0))
        return made

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return self.layout.width

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return 1

    @property
    def report_epsilon(self) -> float:
        """The loss of all that one client sends, against whoever sees it as that client's.

        Returns
        -------
        float
            `epsilon`; infinite where messages protect only among those of others.
        """
        return self.epsilon

    @property
    def digest(self) -> bytes:
        """32 bytes that identify this specification."""
        return self.layout.digest

    def randomize(self, value: Any, rng: Rng = None) -> bytes:
        """Return the report of one person.

        Parameters
        ----------
        value
            The truth; it does not leave this call.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bytes
            `width` of them.

        Raises
        ------
        ParameterError
            If the value cannot be reported; the message does not show it.
        """
        return self._records([value], random_source(rng)).tobytes()

    def randomize_batch(self, values: Any, rng: Rng = None) -> ReportBatch:
        """Return the reports of many persons, in their order, each drawn independently.

        Parameters
        ----------
        values : array or list
            One per person.
        rng : None, int, numpy Generator or RandomSource
            As in `randomize`; a seed marks the batch as simulated.

        Returns
        -------
        ReportBatch
            As many reports as values, each of `messages` records.

        Raises
        ------
        ParameterError
            If a value cannot be reported; the message does not show it.
        """
        source = random_source(rng)
        return ReportBatch(self._records(values, source), self.digest, source.simulated)

    def specification(self) -> dict[str, Any]:
        """Return all that a device needs to report, as JSON: protocol, version and exact parameters.

        Returns
        -------
        dict
            What `json.dumps` writes. `from_specification` makes the same randomizer of it.
        """
        chosen = {_WIRE.get(name, name): _written(getattr(self, name)) for name in self.chosen}
        head = {"protocol": self.wire_name, "epsilon": self.epsilon}
        return _FORMAT.wrap({**head, **chosen, **self._chances()})

    @staticmethod
    def from_specification(specification: Mapping[str, Any], **given: Any) -> Randomizer:
        """Return the randomizer of a specification.

        Parameters
        ----------
        specification : mapping
            What `specification` returned, perhaps by way of JSON.
        **given
            What JSON could not hold, such as a ``domain`` of tuples.

        Returns
        -------
        Randomizer
            Of the class that the specification names; its `digest` is that of the sender's.

        Raises
        ------
        ParameterError
            If it is of another format, names an unknown protocol, or does not give the same parameters here.
        """
        _, fields_given = _FORMAT.unwrap("specification", specification)
        kind = protocol_named(fields_given.get("protocol"))
        if kind is None:
            raise ParameterError("specification must name a known protocol, got another; use a newer sfumato")
        made: Randomizer = kind.from_parts(fields_given, given)
        if _digested(made.specification()) != _digested(specification):
            raise ParameterError(
                "specification must hold the parameters that follow from its own, got others; "
                "use the version it is of"
            )
        return made

    @classmethod
    def from_parts(cls, parameters: Mapping[str, Any], given: Mapping[str, Any]) -> Randomizer:
        """Return the randomizer of the chosen parameters in a specification; the others follow from them.

        Parameters
        ----------
        parameters, given : mapping
            As in `from_specification`, which is the one to call.

        Returns
        -------
        Randomizer
        """
        return cls(**{name: _read(name, parameters, given) for name in cls.chosen})


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoricalRandomizer(Randomizer):
    """A client half that reports one category of a domain.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`.
    domain : Domain
        The categories that a person's value may have.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "domain")

    domain: Domain

    def _prepare(self) -> None:
        given: object = self.domain
        if not isinstance(given, Domain):
            _check.refuse_type("domain", "be a Domain", given, "pass Domain(values)")
        self._choose()

    @abstractmethod
    def _choose(self) -> None:
        """Set the exact chances for epsilon and the domain, with `_set`."""

    @abstractmethod
    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        """Return one stamped record for each index in the domain."""

    def encoded(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        """Return one stamped record for each index in the domain.

        Parameters
        ----------
        codes : int64 array, shape (n,)
            Indices of categories in the domain.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
        """
        return self._encode(codes, source)

    def _records(self, values: Any, source: RandomSource) -> Records:
        return self._encode(self.domain.codes(values), source)


def category_protocol(parameter: str, name: object) -> type[CategoricalRandomizer]:
    """Return the client half of a name, if it reports a category, and is made of an epsilon and a domain.

    Parameters
    ----------
    parameter : str
        What errors call it.
    name : object
        A wire name.

    Returns
    -------
    type
        A subclass of `CategoricalRandomizer`.

    Raises
    ------
    ParameterError
        If the name is unknown, or its client half needs other parameters.
    """
    kind = protocol_named(name)
    if kind is None or not issubclass(kind, CategoricalRandomizer) or _needs(kind) != {"epsilon", "domain"}:
        rule = "name a client half that reports a category, and is made of an epsilon and a domain"
        _check.refuse(parameter, rule, name, "take a wire name of sfumato.local.device.base.protocols")
    return kind


def _needs(kind: type[Randomizer]) -> set[str]:
    """Return the names of what a client half cannot be made without."""
    parts = (part for part in fields(kind) if part.init)
    return {part.name for part in parts if part.default is MISSING}


def _written(value: Any) -> Any:
    """Return a chosen parameter as JSON."""
    if isinstance(value, tuple):
        if value and isinstance(value[0], Domain):
            digests = b"".join(domain.digest for domain in value)
            return {"digest": hashlib.sha256(digests).hexdigest(), "each": [_written(one) for one in value]}
        return [_written(one) for one in value]
    return value.specification() if hasattr(value, "specification") else value


def _read(name: str, parameters: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """Return a chosen parameter from a specification, or None, which its own rule refuses."""
    written = parameters.get(_WIRE.get(name, name))
    if name == "strings":
        return Strings.from_specification(written)
    if name == "domain":
        return _read_domain(written, given.get(name))
    if name == "domains":
        each = written.get("each") if isinstance(written, dict) else None
        if not isinstance(each, list):
            raise ParameterError("specification must state its domains, got none; use the version it is of")
        domains = given.get(name) or [None] * len(each)
        if len(domains) != len(each):
            _check.refuse_state(
                name, f"be {len(each)}", f"{len(domains)} were given", "pass those of the specification"
            )
        return tuple(_read_domain(*pair) for pair in zip(each, domains, strict=True))
    return tuple(written) if isinstance(written, list) else written


def _read_domain(written: Any, domain: Any) -> Any:
    """Return a domain, bins or a grid from a specification."""
    if not isinstance(written, dict):
        raise ParameterError("specification must state its domain, got none; use the version it is of")
    kind: Any = Bins if "edges" in written else Grid if "grid" in written else Domain
    return kind.from_specification(written, domain)


def _digested(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return a specification with digests alone instead of domains."""
    return {
        name: part["digest"] if isinstance(part, dict) and "digest" in part else part
        for name, part in specification.items()
    }
