"""The client half of one round of questions about prefixes; the next round depends on its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, final

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.protocols import protocol_named
from sfumato.local.device.base.randomizer import CategoricalRandomizer, Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.strings import Strings, Symbols
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["PrefixRoundRandomizer"]

_MAX: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRoundRandomizer(Randomizer):
    r"""The prefix of a string, if it goes on from a given one, or else that it does not.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`.
    strings : Strings
        What may be true.
    start : int
        The length of the given prefixes; 0 for all strings.
    given : tuple of str or bytes
        The prefixes of that length that are asked about, or whole strings that are shorter.
    stop : int
        The length of the prefixes that are reported, above ``start``; together at most 2^20.
    protocol : str
        Name of the client half that reports a category.

    Attributes
    ----------
    part : CategoricalRandomizer
        That one: its categories are the indices of the prefixes, and one more for all other strings.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: a string becomes a category by a public rule,
    and the report is that of `part`. The given prefixes come from the reports of other people, who paid for
    them. Who answers in several rounds pays for each.

    Examples
    --------
    >>> strings = Strings(length=4, alphabet="ab")
    >>> device = PrefixRoundRandomizer(epsilon=1.0, strings=strings, start=1, given=("b",), stop=2)
    >>> strings.values(device.prefixes), device.width
    (['b', 'ba', 'bb'], 5)
    """

    wire_name: ClassVar[str] = "prefix-round"
    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "strings", "start", "stop", "protocol")

    strings: Strings
    start: int = 0
    given: tuple[Any, ...] = ("",)
    stop: int
    protocol: str = "projective-geometry-response"
    part: CategoricalRandomizer = field(init=False, repr=False, compare=False)
    prefixes: Symbols = field(init=False, repr=False, compare=False)
    _indices: Mapping[bytes, int] = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        strings: object = self.strings
        if not isinstance(strings, Strings):
            _check.refuse_type("strings", "be Strings", strings, "pass Strings(length=...)")
        start, stop = _check.integer("start", self.start), _check.integer("stop", self.stop, minimum=1)
        if not start < stop <= strings.length:
            _check.refuse(
                "stop", f"be above start and at most {strings.length}", stop, "go on by a character or more"
            )
        kind = protocol_named(self.protocol)
        if kind is None or not issubclass(kind, CategoricalRandomizer):
            remedy = "take a wire name of sfumato.local.device.base.protocols"
            _check.refuse("protocol", "name a client half that reports a category", self.protocol, remedy)
        named: object = self.given
        given = tuple(named) if isinstance(named, tuple | list) else ()
        rows = _given_rows(strings, given, start)
        if len(rows) * strings.number_of_endings(stop - start) > _MAX:
            _check.refuse("stop", "make at most 2**20 prefixes", stop, "go on by fewer characters")
        prefixes = strings.extended(rows, stop)
        part = kind(epsilon=self.epsilon, domain=Domain(range(len(prefixes) + 1)))
        positions = {row.tobytes(): position for position, row in enumerate(prefixes)}
        self._set(start=start, stop=stop, given=given, part=part, prefixes=prefixes, _indices=positions)

    @property
    def _bits(self) -> int:
        return self.part.layout.bits

    def _chances(self) -> dict[str, Any]:
        given = [one.hex() if isinstance(one, bytes) else one for one in self.given]
        return {"given": given, "part": self.part.digest.hex()}

    @classmethod
    def from_parts(cls, parameters: Mapping[str, Any], given: Mapping[str, Any]) -> Self:
        """Return the randomizer of its chosen parameters; see `Randomizer.from_parts`.

        Parameters
        ----------
        parameters, given : mapping
            See `Randomizer.from_parts`.

        Returns
        -------
        PrefixRoundRandomizer
        """
        strings, listed = Strings.from_specification(parameters.get("strings")), parameters.get("given")
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise ParameterError("specification must state its prefixes, got none; use the version it is of")
        try:
            texts = [bytes.fromhex(one) for one in listed] if isinstance(strings.alphabet, bytes) else listed
        except ValueError:
            raise ParameterError("specification must state prefixes in hexadecimal, got others") from None
        chosen: dict[str, Any] = {name: parameters.get(name) for name in ("epsilon", "start", "stop")}
        return cls(strings=strings, given=tuple(texts), protocol=parameters.get("oracle", ""), **chosen)

    def _records(self, values: Any, source: RandomSource) -> Records:
        rows = np.ascontiguousarray(self.strings.symbols(values)[:, : self.stop])
        data, width, other = rows.tobytes(), rows.itemsize * self.stop, len(self.prefixes)
        found = (self._indices.get(data[at : at + width], other) for at in range(0, len(data), width))
        codes = np.fromiter(found, np.int64, len(rows))
        records = self.part.encoded(codes, source)
        self.layout.stamp(records)
        return records

    def inner(self, records: Records) -> Records:
        """Return the records of `part` that these records contain.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        uint8 array, shape (records, width)
        """
        found = records.copy()
        self.part.layout.stamp(found)
        return found

    def well_formed(self, records: Records) -> Any:
        """Return which records `part` may send.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.part.well_formed(self.inner(records))

    def probabilities(self, value: Any, **given: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a string true: private, and for few prefixes.

        Parameters
        ----------
        value
            A string.
        **given
            What `part` takes besides a value, such as a ``seed``.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        (row,) = self.strings.symbols([value])[:, : self.stop]
        part: Any = self.part
        distribution = part.probabilities(self._indices.get(row.tobytes(), len(self.prefixes)), **given)
        rows = np.array([list(record) for record in distribution], np.uint8)
        self.layout.stamp(rows)
        return {record.tobytes(): mass for record, mass in zip(rows, distribution.values(), strict=True)}


def _given_rows(strings: Strings, given: tuple[Any, ...], start: int) -> Symbols:
    """Return given prefixes as rows of symbols."""
    rule = f"be different strings of the alphabet, of at most {start} characters"
    if not given or len(set(map(type, given))) > 1 or len(set(given)) < len(given):
        _check.refuse("given", rule, len(given), "pass what the last round selected")
    rows = strings.symbols(given)
    if rows[:, start:].any() or any(len(one) > strings.length for one in given):
        _check.refuse("given", rule, max(given, key=len), "pass what the last round selected")
    return rows[:, :start]
