"""Which protocol to find strings by, and with which parameters, before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.plan_comparison import Choice, Limits, none_left
from sfumato.local.device.domains.strings import Strings
from sfumato.local.strings.fragments import Bitstogram, SequenceFragmentPuzzle
from sfumato.local.strings.prefixes import PrefixExtending, TreeHist
from sfumato.local.strings.protocol import StringsProtocol

__all__ = ["FrequentStrings", "StringsChoice", "StringsPlan"]

_WEIGHTS: Final = (0, 1, 2, 4, 8, 16)
_WORK: Final = 1 << 33
"""Hashes that a server takes some seconds for."""
_LOOKED_UP: Final = 1 << 18
_BUCKETS: Final = 4096
_PIECES: Final = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StringsPlan:
    """What one protocol would find, and what it costs.

    Parameters
    ----------
    protocol : StringsProtocol
        With the parameters that find the smallest shares.
    share : float
        The smallest share that is found with the wanted probability.
    threshold : float
        About the estimate of a share above which a candidate is found.
    bytes : int
        Of a report.
    stored_bytes : int
        What an aggregator stores, for all reports.

    Examples
    --------
    >>> from sfumato.local import FrequentStrings, Strings, choose
    >>> plan = choose(FrequentStrings(Strings(length=4)), epsilon=4.0, n=100_000).best
    >>> 0 < plan.share < 0.05, plan.bytes == plan.protocol.device.width
    (True, True)
    """

    protocol: StringsProtocol[Any]
    share: float
    threshold: float
    bytes: int
    stored_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StringsChoice(Choice[StringsPlan]):
    """All protocols that find strings, the one with the smallest share first.

    Parameters
    ----------
    plans : tuple of StringsPlan
        Those that find strings with so many respondents, the smallest share first.
    ruled_out : mapping of str to str
        The others, with the reason.

    Examples
    --------
    >>> from sfumato.local import FrequentStrings, Strings, choose
    >>> choice = choose(FrequentStrings(Strings(length=4)), epsilon=4.0, n=100_000)
    >>> choice.best.share == min(plan.share for plan in choice.plans)
    True
    """

    def __str__(self) -> str:
        lines = [
            f"{'protocol':<26}{'share':>10}{'threshold':>11}{'weight':>8}{'questions':>11}{'bytes':>7}{'stored':>13}"
        ]
        for plan in self.plans:
            device = plan.protocol.device
            lines.append(
                f"{type(plan.protocol).__name__:<26}{plan.share:>10.4f}{plan.threshold:>11.4f}{device.weight:>8}"
                f"{device.questions:>11}{plan.bytes:>7}{plan.stored_bytes:>13,}"
            )
        return self._table(*lines)


@final
@dataclass(frozen=True, slots=True)
class FrequentStrings:
    """The question which strings many people have, for `sfumato.local.choose`.

    Parameters
    ----------
    strings : Strings
        What may be reported.
    power : float
        How likely a string of the planned share is to be found, strictly between 0 and 1.
    false_positive_rate : float
        See `StringsProtocol`.

    Notes
    -----
    All protocols that find strings are compared by the smallest share that they find. Tried are several
    weights of the whole string, levels of prefixes that the server needs at most some seconds for, and
    fragments with at most 2^18 codes, in at most 4096 buckets; see `StringsProtocol.smallest_share`.

    Examples
    --------
    >>> from sfumato import local
    >>> choice = local.choose(FrequentStrings(Strings(length=8)), epsilon=4.0, n=1_000_000)
    >>> type(choice.best.protocol).__name__, round(choice.best.share, 3)
    ('PrefixExtending', 0.003)
    """

    strings: Strings
    _: KW_ONLY
    power: float = 0.5
    false_positive_rate: float = 0.05

    def __post_init__(self) -> None:
        _check.instance("strings", self.strings, Strings, "pass Strings(length=...)")
        _check.unit_interval("power", self.power)

    def plan(self, epsilon: float, n: int, limits: Limits) -> StringsChoice:
        """Return the protocols that find strings; called by `sfumato.local.choose`.

        Parameters
        ----------
        epsilon : float
            Of all that one person reports.
        n : int
            How many people will report.
        limits : Limits
            What a protocol may cost.

        Returns
        -------
        StringsChoice
            The smallest shares first.
        """
        limits.without_seconds()
        plans: list[StringsPlan] = []
        out: dict[str, str] = {}
        for kind in (PrefixExtending, TreeHist, Bitstogram, SequenceFragmentPuzzle):
            found = []
            for chosen in _tried(kind, self.strings, n):
                try:
                    protocol: StringsProtocol[Any] = kind(
                        epsilon=epsilon,
                        strings=self.strings,
                        false_positive_rate=self.false_positive_rate,
                        **chosen,
                    )
                except ParameterError as refused:
                    out.setdefault(kind.__name__, str(refused))
                    continue
                why = limits.too_long(protocol)
                if why is None:
                    found.append(_planned(protocol, n, self.power))
                else:
                    out.setdefault(kind.__name__, why)
            best = min(found, key=lambda plan: plan.share, default=None)
            if best is not None and best.share < 1:
                plans.append(best)
                out.pop(kind.__name__, None)
            elif best is not None or kind.__name__ not in out:
                out[kind.__name__] = "no share is found"
        if not plans:
            none_left("epsilon, n and max_bytes", "let some protocol find a string", out)
        return StringsChoice(plans=tuple(sorted(plans, key=lambda plan: plan.share)), ruled_out=out)


def _planned(protocol: StringsProtocol[Any], respondents: int, power: float) -> StringsPlan:
    share = protocol.smallest_share(respondents, power)
    return StringsPlan(
        protocol=protocol,
        share=share,
        threshold=protocol.threshold(share, respondents),
        bytes=protocol.device.width,
        stored_bytes=protocol.stored_bytes(respondents),
    )


def _tried(kind: type[Any], strings: Strings, respondents: int) -> Iterator[dict[str, Any]]:
    """Yield parameters to try of a protocol."""
    if kind in (PrefixExtending, TreeHist):
        # By hashing, each extension is asked of each report; by a sketch, of each function.
        maximum = _WORK // respondents if kind is PrefixExtending else _LOOKED_UP
        for levels in _levels(strings, maximum, 64):
            yield from ({"weight": weight, "levels": levels, "max_candidates": 64} for weight in _WEIGHTS)
        return
    fragments = range(1, strings.length + 1)
    for fragment in (one for one in fragments if strings.base**one <= _LOOKED_UP // _PIECES):
        # As many buckets as there is room for, so that few frequent strings share one.
        room = (_LOOKED_UP // strings.base**fragment).bit_length() - 1
        buckets = min(_BUCKETS, 1 << room) if kind is Bitstogram else _PIECES
        yield from ({"weight": weight, "fragment": fragment, "buckets": buckets} for weight in _WEIGHTS)


def _levels(strings: Strings, maximum: int, max_candidates: int) -> Iterator[tuple[int, ...]]:
    """Yield lengths of prefixes with at most so many extensions from one to the next, in even steps."""
    length, seen = strings.length, set()
    firsts = [at for at in range(1, length) if strings.number_of_endings(at) <= max(maximum, strings.base)]
    steps = [
        at
        for at in range(1, length)
        if max_candidates * strings.number_of_endings(at) <= max(maximum, max_candidates * strings.base)
    ]
    for first in firsts[-3:]:
        for step in steps:
            levels = tuple(range(first, length, step))
            if levels not in seen:
                seen.add(levels)
                yield levels
