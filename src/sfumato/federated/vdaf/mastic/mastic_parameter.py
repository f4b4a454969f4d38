"""What aggregators ask of a batch of Mastic reports: sums of weights below some prefixes of one length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter

__all__ = ["MasticParameter"]


@final
@dataclass(frozen=True, slots=True)
class MasticParameter:
    """Prefixes of one length, and whether the weights are checked with them.

    Weights are checked once, with the first parameter that a batch of reports is asked.

    Parameters
    ----------
    asked : AggregationParameter
        The prefixes, at least one.
    check_weights : bool
        Whether the proofs that weights are valid are verified.

    Raises
    ------
    ParameterError
        If there is no prefix.

    Examples
    --------
    >>> first = MasticParameter.of("0", "1", check_weights=True)
    >>> MasticParameter.of("01", check_weights=False).follows(first), first.follows(None)
    (True, True)
    """

    asked: AggregationParameter
    check_weights: bool

    def __post_init__(self) -> None:
        _check.instance("asked", self.asked, AggregationParameter)
        if not self.asked.prefixes:
            _check.refuse_type("asked", "hold at least one prefix", self.asked, "ask for a prefix")
        _check.instance("check_weights", self.check_weights, bool)

    @classmethod
    def of(cls, *prefixes: str, check_weights: bool) -> MasticParameter:
        """Return the parameter for prefixes in any order.

        Parameters
        ----------
        *prefixes : str
            At least one; all of one length.
        check_weights : bool
            Whether weights are checked.

        Returns
        -------
        MasticParameter
        """
        return cls(AggregationParameter.of(*prefixes), check_weights)

    @property
    def level(self) -> int:
        """The prefixes' length less 1."""
        return self.asked.level

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes, in lexicographic order."""
        return self.asked.prefixes

    def follows(self, previous: MasticParameter | None) -> bool:
        """Return whether reports may be verified with this parameter after another one.

        Parameters
        ----------
        previous : MasticParameter or None
            The last one that was used, None for the first.

        Returns
        -------
        bool
            Whether weights are checked with the first one and with no other, and the level is higher. Unlike
            those of Poplar1, prefixes may begin with any others.
        """
        if previous is None:
            return self.check_weights
        return not self.check_weights and self.level > previous.level

    def to_bytes(self) -> bytes:
        """Return the draft's encoding: that of the prefixes, and a byte.

        Returns
        -------
        bytes
        """
        return self.asked.to_bytes() + bytes([self.check_weights])

    @classmethod
    def from_bytes(cls, encoded: bytes) -> MasticParameter:
        """Read the draft's encoding.

        Parameters
        ----------
        encoded : bytes
            What `to_bytes` returned.

        Returns
        -------
        MasticParameter

        Raises
        ------
        ParameterError
            If it is no such encoding.
        """
        _check.instance("encoded", encoded, bytes)
        if encoded[-1:] not in (b"\0", b"\1"):
            _check.refuse_type("encoded", "end with a byte of 0 or 1", encoded, "pass what to_bytes returned")
        return cls(AggregationParameter.from_bytes(encoded[:-1]), encoded[-1] == 1)
