"""Strings found by their prefixes: those that many have are extended, level by level, to whole strings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato import _check
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.strings import Symbols, hashed_rows
from sfumato.local.device.strings import prefixes as client
from sfumato.local.strings.estimate import HeavyHitters
from sfumato.local.strings.protocol import Answered, CountedStrings, StringsProtocol

__all__ = ["PrefixExtending", "PrefixProtocol", "ReportKeeper", "TreeHist"]

Result_co = TypeVar("Result_co", covariant=True)

_MANY: Final = 1 << 12


class Keeper(Protocol[Result_co]):
    """What estimates something from records."""

    @property
    def device(self) -> Randomizer:
        """The client half."""

    def estimate(self, records: Records, *, simulated: bool = False) -> Result_co:
        """Return the estimate from records."""


@final
class ReportKeeper(Intake[Keeper[Result_co]], Generic[Result_co]):
    """The accepted reports to one protocol, in pieces that merge; their memory grows with their number.

    Parameters
    ----------
    oracle : protocol
        Made by its ``aggregator()``.

    Notes
    -----
    Whatever comes is counted as accepted or as refused, and never raises; see
    `sfumato.local.base.base_aggregator.Intake`. What is reported does not depend on the order of the records.
    """

    __slots__ = ("_few", "_pieces")

    def __init__(self, oracle: Keeper[Result_co]) -> None:
        super().__init__(oracle)
        self._pieces: list[Records] = []
        self._few: list[Records] = []

    @property
    def records(self) -> Records:
        """All accepted records, one a row."""
        empty = np.zeros((0, self._oracle.device.width), np.uint8)
        if len(self._pieces) != 1 or self._few:
            self._pieces, self._few = [np.concatenate([empty, *self._pieces, *self._few])], []
        return self._pieces[0]

    def _keep(self, records: Records) -> None:
        self._few.append(records.copy())
        # Records that come one by one are not stored one by one.
        if len(self._few) >= _MANY:
            self._pieces.append(np.concatenate(self._few))
            self._few = []

    def _join(self, other: Any) -> None:
        self._pieces.append(other.records.copy())

    def _state(self) -> tuple[int, bytes]:
        return len(self.records), self.records.tobytes()

    def _possible(self, accepted: int, state: bytes) -> bool:
        return len(state) == self._oracle.device.width * accepted

    def _restore(self, count: int, state: bytes) -> bool:
        device = self._oracle.device
        if len(state) != device.width * count:
            return False
        records = np.frombuffer(state, np.uint8).reshape(count, device.width)
        if not (device.layout.genuine(records).all() and device.well_formed(records).all()):
            return False
        self._pieces, self._few = [records], []
        return True

    def estimate(self) -> Result_co:
        """Return the estimate from the accepted reports."""
        return self._oracle.estimate(self.records, simulated=self._simulated)


Device = TypeVar("Device", bound=client.PrefixRandomizer)

_MAX_CANDIDATES: Final = 1 << 12
_MAX_EXTENDED: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixProtocol(StringsProtocol[Device]):
    """A protocol that asks about prefixes.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate
        See `StringsProtocol`.
    levels : tuple of int, optional
        The lengths of the prefixes; see `sfumato.local.device.PrefixExtendingRandomizer`.
    max_candidates : int
        How many prefixes go on from a level, or how many would by chance alone; for the server.
    """

    levels: tuple[int, ...] | None = None
    max_candidates: int = 64

    def _check_server(self) -> None:
        count = _check.integer("max_candidates", self.max_candidates, minimum=1)
        if count > _MAX_CANDIDATES:
            _check.refuse("max_candidates", f"be at most {_MAX_CANDIDATES}", count, "take fewer")
        self._set(max_candidates=count)
        if max(self._extended()) > _MAX_EXTENDED:
            _check.refuse(
                "levels",
                "have at most 2**22 extensions from one to the next",
                self.levels,
                "pass more levels",
            )

    def _extended(self) -> list[int]:
        """Return how many extensions are looked at, level by level, the whole strings last."""
        ends = [*self.device.lengths, self.strings.length]
        steps = [self.strings.number_of_endings(stop - start) for start, stop in pairwise(ends)]
        return [self.strings.number_of_endings(ends[0]), *(self.max_candidates * step for step in steps)]

    @abstractmethod
    def _going_on(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which extensions go on, by their scores."""

    def _candidates(self, answered: Callable[[int], Answered]) -> Symbols:
        rows = np.zeros((1, 0), np.uint16)
        for question, stop in enumerate(self.device.lengths):
            rows, reported = self.strings.extended(rows, stop), answered(question)
            if not reported.reports:
                return np.zeros((0, self.strings.length), np.uint16)
            # A prefix of a string has the hash of the string that it is.
            scores = reported.scores(hashed_rows(rows, self.device.key, "whole"))
            going = np.flatnonzero(self._going_on(scores))
            following = [*self.device.lengths, self.strings.length][question + 1]
            largest = min(_MAX_CANDIDATES, _MAX_EXTENDED // self.strings.number_of_endings(following - stop))
            rows = rows[going[np.argsort(-scores[going], kind="stable")[:largest]]]
        return self.strings.extended(rows, self.strings.length)

    def chance(self, share: float, respondents: float) -> float:
        """Return about how likely a string becomes a candidate; see `StringsProtocol`."""
        none, some = self.deviations(share, respondents)
        noise = [-ndtri(min(1.0, self.max_candidates / extensions)) for extensions in self._extended()[:-1]]
        return prod(float(ndtr((share - z * none) / some)) for z in noise)

    def tested(self, share: float) -> float:
        """Return about how many candidates there are; see `StringsProtocol`."""
        return float(self._extended()[-1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixExtending(PrefixProtocol[client.PrefixExtendingRandomizer]):
    r"""The prefix extending method ("PEM"): the best prefixes of each level go on; smallest error of all.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate, levels, max_candidates
        See `PrefixProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.PrefixExtendingRandomizer`.

    Respondents are split over the levels and the whole string. Reports are by `OptimalLocalHashing` of
    fingerprints of 32 bits, so any extension can be asked about, and all reports are stored until the end:
    some seven bytes each. The ``max_candidates`` extensions with the largest estimates go on.

    References
    ----------
    Wang, Li, Jha (2019), "Locally differentially private heavy hitter identification", IEEE Transactions on
    Dependable and Secure Computing.

    Examples
    --------
    >>> from sfumato.local import Strings
    >>> protocol = PrefixExtending(epsilon=4.0, strings=Strings(length=6))
    >>> keeper = protocol.aggregator()
    >>> keeper.add_batch(protocol.randomize_batch(["sfumato", "paint", "oil", "oil"] * 5_000, rng=1))
    20000
    >>> keeper.estimate().found
    ['oil', 'paint', 'sfumat']
    """

    wire_name: ClassVar[str] = "prefix-extending"

    def _going_on(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        chosen = np.zeros(len(scores), np.bool_)
        chosen[np.argsort(-scores, kind="stable")[: self.max_candidates]] = True
        return chosen

    def stored_bytes(self, respondents: int) -> int:
        """Return how many bytes a keeper stores: all records.

        Parameters
        ----------
        respondents : int
            How many report.

        Returns
        -------
        int
            Of memory or of a state.
        """
        return respondents * self.device.width

    def aggregator(self, state: bytes | None = None) -> ReportKeeper[HeavyHitters]:
        """Return an empty keeper of reports, or the one whose ``to_bytes()`` is given.

        Parameters
        ----------
        state : bytes, optional
            As a keeper's ``to_bytes`` wrote it.

        Returns
        -------
        ReportKeeper
            Used like an `Aggregator`; it stores the reports, as they are read several times.
        """
        made: ReportKeeper[HeavyHitters] = ReportKeeper(self)
        return made if state is None else made.load(state)

    def estimate(self, records: Records, *, simulated: bool = False) -> HeavyHitters:
        """Return the strings that records reveal; mostly called by a keeper.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            All well-formed records.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        HeavyHitters
            The candidates and which of them are found.
        """
        device, asked = self.device, self.device.asked(records)
        counts = self.reports_by_question(asked).tolist()

        def answered(question: int) -> Answered:
            whole = question == device.questions
            own = asked == question if device.weight or not whole else slice(None)
            pieces = device.cut(records[own], whole=whole)
            return Answered(self.whole if whole else self.part, pieces, counts[question])

        return self.heavy_hitters(answered, len(records), simulated=simulated)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeHist(CountedStrings[client.TreeHistRandomizer], PrefixProtocol[client.TreeHistRandomizer]):
    r"""A tree of prefixes, each level with a sketch: whatever stands out of the noise goes on.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate, levels, max_candidates
        See `PrefixProtocol`. A weight of 0 splits epsilon as the paper does; splitting the respondents finds
        smaller shares for an epsilon up to about 4.
    size, hashes : int
        Of the sketches; see `sfumato.local.HadamardCountMeanSketch`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.TreeHistRandomizer`.

    An aggregator stores a sketch for each level and one of whole strings. An extension goes on if its
    estimate is above the normal quantile that lets through ``max_candidates`` of those without respondents,
    on average; of those at most the 4,096 best, and fewer where they would have more than 2^22 extensions,
    since a few forged reports may raise all estimates at once. The paper's sketch has random signs, where
    this one takes off the mean of what collisions add: that leaves no bias either, and the same variance.

    References
    ----------
    Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters".

    Examples
    --------
    >>> from sfumato.local import Strings
    >>> protocol = TreeHist(epsilon=4.0, strings=Strings(length=6))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch(["sfumato", "paint", "oil", "oil"] * 5_000, rng=1))
    20000
    >>> aggregator.estimate().found
    ['oil', 'paint', 'sfumat']
    """

    wire_name: ClassVar[str] = "treehist"

    size: int = 1024
    hashes: int = 256

    def _going_on(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        smallest = -ndtri(min(1.0, self.max_candidates / max(1, len(scores))))
        return np.asarray(scores >= smallest)
