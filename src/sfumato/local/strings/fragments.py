"""Strings found by their fragments: those from all positions that came with one hash are put together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar, Final, TypeVar, final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato import _check
from sfumato.local.device.domains.strings import Symbols
from sfumato.local.device.strings import fragments as client
from sfumato.local.strings.protocol import Answered, CountedStrings

__all__ = ["Bitstogram", "FragmentProtocol", "SequenceFragmentPuzzle"]

Device = TypeVar("Device", bound=client.FragmentRandomizer)

_MAX_CANDIDATES: Final = 1 << 16
_MAX_JOINED: Final = 1 << 12
"""Beginnings of strings that go on in one bucket."""
_MAX_PAIRS: Final = 1 << 20
"""Of a beginning and a fragment, that are joined at a time: forged reports can fill one bucket with all."""
_NODES, _WEIGHTS = hermegauss(64)
_CHANCES: Final = _WEIGHTS / _WEIGHTS.sum()
"""Of nodes instead of a normal number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentProtocol(CountedStrings[Device]):
    r"""A protocol that asks about fragments.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate
        See `StringsProtocol`.
    fragment, buckets : int
        See `sfumato.local.device.BitstogramRandomizer`.

    Notes
    -----
    A string that is put together must have the hash of the bucket that its fragments came with: that costs
    nothing and refuses all but one in ``buckets`` of those put together wrongly, so few are tested.
    """

    fragment: int = 2
    buckets: int = 256

    @property
    def _endings(self) -> list[Symbols]:
        """Return the fragments that may be at each position."""
        length, size = self.strings.length, self.fragment
        return [self.strings.endings(min(size, length - start)) for start in self.device.starts]

    def _candidates(self, answered: Callable[[int], Answered]) -> Symbols:
        found, fragments = [np.zeros((0, self.strings.length), np.uint16)], len(self.device.starts)
        for row in range(self.device.rows):
            tables = []
            for index, endings in enumerate(self._endings):
                reported = answered(row * fragments + index)
                if not reported.reports:
                    return found[0]
                tables.append(self._scores(reported, endings))
            buckets, strings = self._put_together(tables)
            found.append(strings[self.device.buckets_of(strings, row) == buckets])
        return np.unique(np.concatenate(found), axis=0)

    def _scores(self, reported: Answered, endings: Symbols) -> NDArray[np.float64]:
        """Return scores of buckets and fragments, in the shape of these."""
        starts = np.arange(self.buckets)[:, None] * self.strings.base**self.fragment
        codes = starts + self.strings.numbers(endings)[None, :]
        return reported.scores(codes.ravel()).reshape(codes.shape)

    @abstractmethod
    def _put_together(self, tables: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], Symbols]:
        """Return strings, and the buckets that their fragments came with, from scores of each position."""

    @property
    def _choices(self) -> list[int]:
        """Return how many fragments may be at each position."""
        length, size = self.strings.length, self.fragment
        return [self.strings.number_of_endings(min(size, length - start)) for start in self.device.starts]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bitstogram(FragmentProtocol[client.BitstogramRandomizer]):
    r"""One string a bucket: at each position the fragment that most reports of the bucket name.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate, fragment, buckets
        See `FragmentProtocol`. A weight of 0 splits epsilon as the paper does.
    tables : int
        How many hash functions put strings into buckets: two frequent strings that share a bucket in one are
        found in another. More of them split the respondents further.
    size, hashes : int
        Of the sketch of whole strings; see `sfumato.local.HadamardCountMeanSketch`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.BitstogramRandomizer`.

    *Fragments instead of bits.* The paper asks for one bit of a string, or of its error-correcting code.
    Here it is a fragment: the variance of a Hadamard response does not depend on how many codes there are, so
    longer fragments split the respondents over fewer positions. That serves better than a code: 8 bits at
    once need shares about half as large as 8 questions about a bit each; a code that repairs one wrong
    position of six, where four would do, makes all deviations greater by a fifth and saves about half of
    that. The end of a string is a symbol, and a string that goes on after it is refused.

    References
    ----------
    Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters".

    Examples
    --------
    >>> from sfumato.local import Strings
    >>> protocol = Bitstogram(epsilon=4.0, strings=Strings(length=6))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch(["sfumato", "paint", "oil", "oil"] * 5_000, rng=1))
    20000
    >>> sorted(aggregator.estimate().found)
    ['oil', 'paint', 'sfumat']
    """

    wire_name: ClassVar[str] = "bitstogram"

    buckets: int = 1024
    tables: int = 1
    size: int = 1024
    hashes: int = 256

    def _put_together(self, tables: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], Symbols]:
        both = zip(tables, self._endings, strict=True)
        rows = np.hstack([endings[np.argmax(scores, axis=1)] for scores, endings in both])
        gone_on = ((rows[:, :-1] == 0) & (rows[:, 1:] > 0)).any(axis=1)
        return np.flatnonzero(~gone_on), rows[~gone_on]

    def chance(self, share: float, respondents: float) -> float:
        """Return about how likely a string becomes a candidate; see `StringsProtocol`.

        Parameters
        ----------
        share : float
            Of the respondents who have the string.
        respondents : float
            How many there are.

        Returns
        -------
        float
            An approximate probability, for planning.
        """
        none, some = self.deviations(share, respondents)
        right = 1.0
        for choices in self._choices:
            beaten = ndtr((share + _NODES * some) / none) ** (choices - 1)
            right *= float(_CHANCES @ beaten)
        return 1 - (1 - right) ** self.tables

    def tested(self, share: float) -> float:
        """Return about how many candidates there are; see `StringsProtocol`.

        Parameters
        ----------
        share : float
            The smallest share that is looked for.

        Returns
        -------
        float
            Roughly how many, for planning.
        """
        return self.tables + 1 / share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFragmentPuzzle(FragmentProtocol[client.SequenceFragmentPuzzleRandomizer]):
    r"""Apple's puzzle: frequent fragments with one hash of 8 bits are put together, in all ways that fit.

    Parameters
    ----------
    epsilon, strings, weight, key, false_positive_rate, fragment, buckets
        See `FragmentProtocol`. The published form is the default: fragments of two characters, 256 hashes,
        and everybody reports a fragment and the whole string, each for half of epsilon.
    sketch : str
        ``"count-mean-sketch"`` or ``"hadamard-count-mean-sketch"``, with shorter records.
    size, hashes : int
        Of both sketches.
    max_candidates : int
        How many pairs of a hash and a fragment are retained at each position; for the server.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.SequenceFragmentPuzzleRandomizer`.

    The pairs with the largest estimates are retained. In a bucket at most 4,096 beginnings of strings go on
    from one position to the next, those with the largest sums of scores.

    References
    ----------
    Apple Differential Privacy Team (2017), "Learning with privacy at scale": "sequence fragment puzzle".

    Examples
    --------
    >>> from sfumato.local import Strings
    >>> protocol = SequenceFragmentPuzzle(epsilon=8.0, strings=Strings(length=6))
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch(["sfumato", "paint", "oil", "oil"] * 1_000, rng=1))
    4000
    >>> sorted(aggregator.estimate().found)
    ['oil', 'paint', 'sfumat']
    """

    wire_name: ClassVar[str] = "sequence-fragment-puzzle"

    weight: int = 0
    sketch: str = "count-mean-sketch"
    size: int = 1024
    hashes: int = 128
    max_candidates: int = 512

    def _check_server(self) -> None:
        count = _check.integer("max_candidates", self.max_candidates, minimum=1)
        if count > _MAX_CANDIDATES:
            _check.refuse("max_candidates", "be at most 65536", count, "take fewer")
        self._set(max_candidates=count)

    def _put_together(self, tables: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], Symbols]:
        retained = [np.argsort(-scores, axis=None, kind="stable")[: self.max_candidates] for scores in tables]
        pairs = [
            np.unravel_index(indices, scores.shape) for indices, scores in zip(retained, tables, strict=True)
        ]
        buckets, strings = [np.zeros(0, np.int64)], [np.zeros((0, self.strings.length), np.uint16)]
        whole = reduce(np.intersect1d, [named for named, _ in pairs])
        for bucket in whole.tolist():
            rows, sums = np.zeros((1, 0), np.uint16), np.zeros(1)
            for (named, at), scores, endings in zip(pairs, tables, self._endings, strict=True):
                own = at[named == bucket]
                rows, sums = _joined(rows, sums, endings[own], scores[bucket, own])
            buckets.append(np.full(len(rows), bucket))
            strings.append(rows)
        return np.concatenate(buckets), np.concatenate(strings)

    def _let_through(self, choices: int) -> float:
        return min(1.0, self.max_candidates / (self.buckets * choices))

    def chance(self, share: float, respondents: float) -> float:
        """Return about how likely a string becomes a candidate; see `StringsProtocol`.

        Parameters
        ----------
        share : float
            Of the respondents who have the string.
        respondents : float
            How many there are.

        Returns
        -------
        float
            An approximate probability, for planning.
        """
        none, some = self.deviations(share, respondents)
        noise = [-float(ndtri(self._let_through(choices))) for choices in self._choices]
        return prod(float(ndtr((share - z * none) / some)) for z in noise)

    def tested(self, share: float) -> float:
        """Return about how many candidates there are; see `StringsProtocol`.

        Parameters
        ----------
        share : float
            The smallest share that is looked for.

        Returns
        -------
        float
            Roughly how many, for planning.
        """
        together = prod(self._let_through(choices) * choices for choices in self._choices)
        return min(together, _MAX_JOINED) + 1 / share


def _joined(
    rows: Symbols, sums: NDArray[np.float64], more: Symbols, scores: NDArray[np.float64]
) -> tuple[Symbols, NDArray[np.float64]]:
    """Return beginnings of strings with each fragment that may follow: the best, and their scores."""
    step = max(1, _MAX_PAIRS // max(1, len(rows)))
    first, second, total = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    for start in range(0, len(more), step):
        left, right = np.indices((len(rows), min(step, len(more) - start))).reshape(2, -1)
        right += start
        if rows.shape[1]:
            fits = (rows[left, -1] > 0) | (more[right, 0] == 0)
            left, right = left[fits], right[fits]
        first, second = np.append(first, left), np.append(second, right)
        total = np.append(total, sums[left] + scores[right])
        best = np.argsort(-total, kind="stable")[:_MAX_JOINED]
        first, second, total = first[best], second[best], total[best]
    return np.hstack([rows[first], more[second]]), total
