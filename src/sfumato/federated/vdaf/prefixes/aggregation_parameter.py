"""What aggregators ask of a batch of Poplar1 reports: counts of some prefixes of one length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["AggregationParameter"]

_HEAD: Final = 6


@final
@dataclass(frozen=True)
class AggregationParameter:
    """Prefixes of one length, in lexicographic order.

    Parameters
    ----------
    level : int
        The prefixes' length less 1, from 0 to 65,535.
    prefixes : tuple of str
        Different strings of the characters 0 and 1, in lexicographic order.

    Raises
    ------
    ParameterError
        If a prefix has another length, or they are not in order.

    Examples
    --------
    >>> AggregationParameter(2, ("001", "110")).follows(AggregationParameter.of("0", "1"))
    True
    """

    level: int
    prefixes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 <= _check.integer("level", self.level) < 1 << 16:
            _check.refuse("level", "be below 65,536", self.level, "use shorter strings")
        _check.instance("prefixes", self.prefixes, tuple, "pass a tuple of strings")
        prefixes: tuple[object, ...] = self.prefixes
        for prefix in prefixes:
            if not isinstance(prefix, str) or len(prefix) != self.level + 1 or set(prefix) - {"0", "1"}:
                rule = f"be strings of {self.level + 1} characters 0 and 1"
                _check.refuse("prefixes", rule, prefix, "use the length that the level says, plus one")
        if any(first >= second for first, second in zip(self.prefixes, self.prefixes[1:], strict=False)):
            remedy = "use AggregationParameter.of, which sorts them"
            _check.refuse_type("prefixes", "be different and in lexicographic order", self.prefixes, remedy)

    @classmethod
    def of(cls, *prefixes: str) -> AggregationParameter:
        """Return the parameter for prefixes in any order.

        Parameters
        ----------
        *prefixes : str
            At least one; all of one length.

        Returns
        -------
        AggregationParameter
        """
        if not prefixes:
            _check.refuse("prefixes", "not be empty", prefixes, "pass at least one")
        return cls(len(prefixes[0]) - 1, tuple(sorted(set(prefixes))))

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        """The prefixes as zeros and ones, of shape ``(count, level + 1)``."""
        text = "".join(self.prefixes).encode()
        return (np.frombuffer(text, np.uint8) - ord("0")).reshape(len(self.prefixes), self.level + 1)

    def follows(self, previous: AggregationParameter) -> bool:
        """Return whether reports that were verified with another parameter may be verified with this one.

        Parameters
        ----------
        previous : AggregationParameter
            The last one that was used.

        Returns
        -------
        bool
            Whether the level is higher, and every prefix begins with one of the other's.
        """
        known = set(previous.prefixes)
        return self.level > previous.level and all(
            prefix[: previous.level + 1] in known for prefix in self.prefixes
        )

    def to_bytes(self) -> bytes:
        """Return the draft's encoding: level, count, and each prefix in whole bytes.

        Returns
        -------
        bytes
        """
        head = self.level.to_bytes(2, "big") + len(self.prefixes).to_bytes(4, "big")
        return head + np.packbits(self.bits, axis=1).tobytes()

    @classmethod
    def from_bytes(cls, encoded: bytes) -> AggregationParameter:
        """Read the draft's encoding.

        Parameters
        ----------
        encoded : bytes
            What `to_bytes` returned.

        Returns
        -------
        AggregationParameter

        Raises
        ------
        ParameterError
            If it is no such encoding: too short or long, not in order, or with padding that is not zero.
        """
        _check.instance("encoded", encoded, bytes)
        level, count = int.from_bytes(encoded[:2], "big"), int.from_bytes(encoded[2:_HEAD], "big")
        width = level // 8 + 1
        if len(encoded) != _HEAD + count * width:
            rule = "be 6 bytes and whole prefixes"
            _check.refuse("len(encoded)", rule, len(encoded), "pass what to_bytes returned")
        packed = np.frombuffer(encoded, np.uint8, offset=_HEAD).reshape(count, width)
        unpacked = np.unpackbits(packed, axis=1)
        if unpacked[:, level + 1 :].any():
            _check.refuse_type("encoded", "have padding of zeros", encoded, "pass what to_bytes returned")
        text = (unpacked[:, : level + 1] + np.uint8(ord("0"))).tobytes().decode()
        return cls(level, tuple(text[i : i + level + 1] for i in range(0, len(text), level + 1)))
