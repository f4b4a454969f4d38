"""What every aggregator does that answers at one level after another: each report once, each share once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.report_batch import check_verify_key, checked_flags, checked_rows, unseen
from sfumato.federated.vdaf.seed_expansion import Rows
from sfumato.numerics.randomness.one_process import OneProcess

__all__ = ["LevelAggregator"]


class LevelAggregator(OneProcess):
    """Reports are received, then answered for at one level after another.

    A nonce that was received before is not verified again, and a report that was refused at a level is out
    at all later ones: both give verifier shares of zeros, and are never accepted.
    """

    _name, _remedy = "aggregator", "use it where it was made"

    def __init__(
        self,
        verify_key: bytes,
        aggregator: int,
        used_keys: UsedVerifyKeys,
        *,
        function: object,
        noise: object,
        sizes: Sequence[int],
        levels: Sequence[int] | None,
        minimum_reports: int,
    ) -> None:
        _check.instance("used_keys", used_keys, UsedVerifyKeys)
        check_verify_key(verify_key)
        self._minimum = _check.integer("minimum_reports", minimum_reports, minimum=1)
        if levels is not None:
            _check.instance("levels", levels, Sequence, "pass a tuple of levels")
            levels = [_check.integer("levels", level) for level in levels]
        self._levels = None if levels is None else frozenset(levels)
        used_keys.claim(verify_key)
        self._key, self._aggregator, self._sizes = verify_key, aggregator, tuple(sizes)
        self._terms = (function, aggregator, noise, self._levels, self._minimum)
        self._nonces: set[bytes] = set()
        self._received: list[tuple[Rows, Rows, Rows]] = []
        self._fresh: list[bool] = []
        self._alive = np.zeros(0, np.bool_)
        self._begun = False
        self._accepted: NDArray[np.bool_] | None = None
        self._share: bytes | None = None
        self._counted = 0

    @property
    def reports(self) -> int:
        """How many reports were counted at the last level."""
        return self._counted

    @property
    def received(self) -> int:
        """How many reports were received, accepted or not."""
        return len(self._fresh)

    def serves(self, other: LevelAggregator) -> bool:
        """Return whether function, noise, levels, least batch and place are another aggregator's.

        Parameters
        ----------
        other : LevelAggregator
            What it is compared with.

        Returns
        -------
        bool
        """
        return self._terms == other._terms

    def receive(self, nonces: Rows, public_shares: Rows, input_shares: Rows) -> None:
        """Store reports; nothing of them is read before the first parameter.

        Parameters
        ----------
        nonces, public_shares, input_shares : numpy.ndarray
            The clients' messages; the other aggregator receives the same reports in the same order.

        Raises
        ------
        ParameterError
            If counting has begun, or the messages have another size.
        """
        self._check_process()
        if self._begun:
            remedy = "start another aggregator, with a new key, for further reports"
            _check.refuse_state("receive", "come before begin", "counting has begun", remedy)
        names, messages = ("nonces", "public_shares", "input_shares"), (nonces, public_shares, input_shares)
        for name, message, size in zip(names, messages, self._sizes, strict=True):
            checked_rows(name, message, len(nonces), size)
        self._fresh += unseen(nonces, self._nonces).tolist()
        self._received.append(messages)

    def count(self, agreed: NDArray[np.bool_]) -> None:
        """Add the reports that both aggregators accept, and close the level; the others are out for good.

        Parameters
        ----------
        agreed : numpy.ndarray
            A flag for each report; what this aggregator did not accept must not be among them.

        Raises
        ------
        ParameterError
            If a report is among them that was not accepted here.
        """
        self._check_process()
        if self._accepted is None:
            _check.refuse_state("count", "follow decide", "no level is decided", "decide the level first")
        chosen = checked_flags("agreed", agreed, len(self._accepted))
        if (chosen & ~self._accepted).any():
            _check.refuse_type("agreed", "hold only reports accepted here", agreed, "combine both decisions")
        self._alive, self._counted, self._accepted = chosen.copy(), int(chosen.sum()), None
        self._share = self._total(chosen)

    @abstractmethod
    def _total(self, chosen: NDArray[np.bool_]) -> bytes:
        """Return the exact share of the sums over some reports, and close the level."""

    def _check_level(self, level: int, *, still_open: bool) -> None:
        """Refuse a level that may not be asked for, or while another is open."""
        self._check_process()
        if still_open:
            _check.refuse_state("begin", "follow count", "a level is still open", "decide and count it first")
        if self._levels is not None and level not in self._levels:
            remedy = "ask at the levels that are paid for"
            _check.refuse("parameter.level", f"be one of {sorted(self._levels)}", level, remedy)

    def _messages(self) -> list[Rows]:
        """Return all reports that were received, side by side, and receive no more."""
        parts = [
            np.concatenate([np.zeros((0, size), np.uint8), *(batch[i] for batch in self._received)])
            for i, size in enumerate(self._sizes)
        ]
        self._received, self._begun = [], True
        self._alive = np.array(self._fresh, np.bool_)
        return parts

    def _waiting_share(self) -> bytes:
        """Return the exact share of the level counted last, once."""
        self._check_process()
        if self._share is None:
            remedy = "count a level first"
            _check.refuse_state("aggregate_share", "follow count", "no share waits to be given out", remedy)
        if self._counted < self._minimum:
            rule, remedy = f"be at least {self._minimum}", "wait for more reports"
            _check.refuse_state("the number of counted reports", rule, "it is below", remedy)
        share, self._share = self._share, None
        return share
