r"""Reports over time: what is memoized under which key, and what happens at the limit of memos.

A report of a memoizing protocol is made in two steps. *Permanently*: the value becomes a key (the value's
index, or something coarser such as its hash), and for each key a device draws one memo, once. *Freshly*: each
report is drawn from the memo alone. So whoever sees all reports of a device sees no more than its memos, and
when which of them was in use.

The rule of the cap: the first ``max_memos`` different keys of a device are memoized, in their order. When
another one comes, the report is made of the memo that was drawn last.

Proof that reports of a device lose at most one permanent loss for each memo, and ``max_memos`` of them in
all. Two histories of keys are *alike in their changes* if at any two times the keys are equal in both or
different in both. What the rule chooses, the number of the memo in the order of drawing, is a function of
which keys are equal to which earlier ones, and so the same for both histories. Given what a device has drawn
for good, which does not depend on values, the reports are therefore one and the same random function of the
list of memos. Memo i of that list is one draw of the permanent randomization of the i-th key, independent of
all others. So the loss is that of the composition of at most ``max_memos`` permanent randomizations, of which
the reports are post-processing. A key that is the same in both histories loses nothing.

What this does not hide, and nothing that memoizes does: *when* the key changes, and when it comes back. For
histories that differ in that, only what a fresh step adds to each report stands between them, and its loss
grows with the number of reports. With ``max_memos=1`` nothing changes ever: the first key is reported for
good, and the bound holds for any two histories.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source

__all__ = ["MemoizingRandomizer", "Memory", "checked_memos"]

_MAX_MEMOS: Final = 1 << 16
_UNUSED: Final = -1


class MemoizingRandomizer(Randomizer):
    """A client half that memoizes: a permanent randomization of the value, and reports of the memo.

    Attributes
    ----------
    max_memos : int
        Largest number of memos that a device draws.
    """

    __slots__ = ()

    max_memos: int
    permanent_epsilon: Any

    @property
    @abstractmethod
    def max_keys(self) -> int:
        """How many different keys a device can have."""

    @property
    def memo_limit(self) -> int:
        """How many memos a device can have: `max_memos`, or `max_keys` if that is less."""
        return min(self.max_memos, self.max_keys)

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good, whatever its values are: none, if not overridden."""
        return 0

    @property
    @abstractmethod
    def memo_width(self) -> int:
        """Bytes of a memo."""

    @property
    @abstractmethod
    def _like(self) -> Randomizer:
        """A client half without memos whose records are laid out as those of this one."""

    @property
    def _bits(self) -> int:
        return self._like.layout.bits

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold a payload that this protocol may send.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self._like.well_formed(records)

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw what devices store for good, one row of `fixed_width` bytes each: nothing, if not overridden.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Fixed draws, independent of all values.
        """
        return np.empty((size, 0), np.uint8)

    @abstractmethod
    def keys(self, values: Any, fixed: Records) -> NDArray[np.int64]:
        """Return the key of each device's value, a whole number of at least 0.

        Parameters
        ----------
        values : array or list
            What is true on each device.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.

        Returns
        -------
        int64 array, shape (n,)
            The key of each value, at least 0.
        """

    @abstractmethod
    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the permanent memo of each key, one row of `memo_width` bytes each.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Indices of categories in the domain.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """

    @abstractmethod
    def fresh(self, memos: Records, fixed: Records, source: RandomSource) -> Records:
        """Draw one stamped report of each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped report from each memo.
        """

    def _first_reports(
        self, size: int, keys: Callable[[Records], NDArray[np.int64]], source: RandomSource
    ) -> Records:
        """Return one report each of so many new devices, given their keys by what they drew for good."""
        fixed = self.fixed(size, source)
        return self.fresh(self.memoize(keys(fixed), fixed, source), fixed, source)

    def _stamped(self, distribution: Mapping[bytes, Fraction]) -> dict[bytes, Fraction]:
        """Return a distribution over records of `_like` as one over those of this protocol."""
        records = np.frombuffer(b"".join(distribution), np.uint8).reshape(len(distribution), -1).copy()
        self.layout.stamp(records)
        return {row.tobytes(): chance for row, chance in zip(records, distribution.values(), strict=True)}

    def randomize_rounds(self, rounds: Sequence[Any], rng: Rng = None) -> list[ReportBatch]:
        """Return the reports of many new devices that are asked again and again.

        Parameters
        ----------
        rounds : sequence
            For each round what is true on each device, always in the same order of devices.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        list of ReportBatch
            One for each round.
        """
        given: object = rounds
        if not isinstance(given, list | tuple | np.ndarray) or not len(given):
            _check.refuse_type("rounds", "be a list of what is true in each", given, "pass [values] for one")
        lengths = sorted({len(values) for values in rounds})
        if len(lengths) > 1:
            found = f"they have {', '.join(map(str, lengths))}"
            _check.refuse_state("rounds", "have as many values each", found, "pass one for each device")
        source = random_source(rng)
        memory = Memory.started(self, len(rounds[0]), source)
        made = []
        for values in rounds:
            memos = memory.recall(values, source)
            records = self.fresh(memos, memory.fixed, source)
            made.append(ReportBatch(records, self.digest, source.simulated))
        return made


@final
@dataclass(slots=True, eq=False, repr=False)
class Memory:
    """What some devices remember: a row for each.

    Parameters
    ----------
    protocol : MemoizingRandomizer
    fixed : uint8 array, shape (devices, fixed_width)
        Drawn once for good.
    keys : int64 array, shape (devices, memo_limit)
        In the order in which they were memoized; -1 where there is none yet.
    memos : uint8 array, shape (devices, memo_limit, memo_width)
        What was drawn for them.
    used : int64 array, shape (devices,)
        How many there are.
    """

    protocol: MemoizingRandomizer
    fixed: Records
    keys: NDArray[np.int64]
    memos: NDArray[np.uint8]
    used: NDArray[np.int64]

    @classmethod
    def started(cls, protocol: MemoizingRandomizer, size: int, source: RandomSource) -> Memory:
        """Return the memory of devices that have reported nothing yet.

        Parameters
        ----------
        protocol : MemoizingRandomizer
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        Memory
        """
        maximum = protocol.memo_limit
        return cls(
            protocol,
            protocol.fixed(size, source),
            np.full((size, maximum), _UNUSED, np.int64),
            np.zeros((size, maximum, protocol.memo_width), np.uint8),
            np.zeros(size, np.int64),
        )

    def recall(self, values: Any, source: RandomSource) -> Records:
        """Return the memos to report from, one for each device, and draw those that are missing.

        See the rule of the cap at the top of this module.

        Parameters
        ----------
        values : array or list
            What is true on each device now.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (devices, memo_width)
        """
        wanted = self.protocol.keys(values, self.fixed)
        found = self.keys == wanted[:, None]
        missing = np.flatnonzero(~found.any(axis=1) & (self.used < self.keys.shape[1]))
        if len(missing):
            drawn = self.protocol.memoize(wanted[missing], self.fixed[missing], source)
            position = self.used[missing]
            self.keys[missing, position], self.memos[missing, position] = wanted[missing], drawn
            self.used[missing] += 1
            found[missing, position] = True
        position = np.where(found.any(axis=1), found.argmax(axis=1), self.used - 1)
        return np.asarray(self.memos[np.arange(len(wanted)), position])


def checked_memos(given: object) -> int:
    """Return how many memos a device may draw, from 1 to 65,536.

    Parameters
    ----------
    given : object
        What the caller passed.

    Returns
    -------
    int
    """
    memos = _check.integer("max_memos", given, minimum=1)
    if memos > _MAX_MEMOS:
        _check.refuse("max_memos", f"be at most {_MAX_MEMOS}", memos, "allow fewer of them")
    return memos
