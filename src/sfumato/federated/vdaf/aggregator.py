"""One aggregator of Prio3 that remembers which keys and nonces it has used."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.prio3 import Prio3
from sfumato.federated.vdaf.report_batch import VerifyState, checked_flags, unseen
from sfumato.federated.vdaf.seed_expansion import Rows
from sfumato.numerics.randomness.one_process import OneProcess
from sfumato.numerics.randomness.source import Rng

__all__ = ["Prio3Aggregator", "UsedVerifyKeys"]


@final
class UsedVerifyKeys(OneProcess):
    """The verify keys that an organization's aggregators have used: each serves one aggregator, once.

    It lives in memory: whoever restarts must draw a new key, since the nonces are forgotten too.

    Examples
    --------
    >>> keys = UsedVerifyKeys()
    >>> keys.claim(bytes(32))
    >>> keys.claim(bytes(32))
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: verify_key must be used once, but it was used before; draw a new one
    """

    __slots__ = ("_keys",)

    _name, _remedy = "used_keys", "claim keys in the process that made it"

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def claim(self, verify_key: bytes) -> None:
        """Remember a key.

        Parameters
        ----------
        verify_key : bytes
            The key.

        Raises
        ------
        ParameterError
            If it was claimed before.
        """
        self._check_process()
        _check.instance("verify_key", verify_key, bytes)
        if verify_key in self._keys:
            _check.refuse_state("verify_key", "be used once", "it was used before", "draw a new one")
        self._keys.add(verify_key)


@final
class Prio3Aggregator(OneProcess):
    """One aggregator's side of a task: batches of reports, each report counted once.

    A nonce that this aggregator has seen is not verified again, in the same batch or a later one, whether the
    report was accepted or not: its verifier share is zero, and the report is never accepted.

    Parameters
    ----------
    prio3 : Prio3
        The function.
    verify_key : bytes
        The aggregators' common secret, 32 bytes.
    aggregator : int
        Which one this is; 0 is the leader.
    used_keys : UsedVerifyKeys
        Where the key is claimed.
    noise : AggregatorNoise, optional
        What is added to every share before it leaves; without it the sums are exact. A report is in one sum
        only, so its loss is that of one release.

    Raises
    ------
    ParameterError
        If the key was used before, or the noise does not cover the function.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.federated import prio3_count
    >>> prio3, key = prio3_count(), bytes(range(32))
    >>> reports = prio3.shard([1, 1, 0])
    >>> sides = [Prio3Aggregator(prio3, key, j, UsedVerifyKeys()) for j in range(2)]
    >>> shares = [
    ...     side.begin(reports.nonces, reports.public_shares, reports.input_shares[j])
    ...     for j, side in enumerate(sides)
    ... ]
    >>> messages, passed = prio3.verifier_shares_to_message(shares)
    >>> agreed = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    >>> for side in sides:
    ...     side.count(agreed)
    >>> prio3.unshard([side.aggregate_share() for side in sides]), sides[0].reports
    (2, 3)
    """

    _name, _remedy = "aggregator", "use it where it was made"

    def __init__(
        self,
        prio3: Prio3,
        verify_key: bytes,
        aggregator: int,
        used_keys: UsedVerifyKeys,
        *,
        noise: AggregatorNoise | None = None,
    ) -> None:
        _check.instance("prio3", prio3, Prio3)
        if noise is not None:
            _check.instance("noise", noise, AggregatorNoise)
            noise.check_covers(prio3)
        self._noise = noise
        _check.instance("used_keys", used_keys, UsedVerifyKeys)
        used_keys.claim(verify_key)
        self._prio3, self._key, self._aggregator = prio3, verify_key, aggregator
        self._nonces: set[bytes] = set()
        self._state: VerifyState | None = None
        self._accepted: NDArray[np.bool_] | None = None
        self._total = bytes(prio3.aggregate_share_size)
        self._reports = 0

    @property
    def reports(self) -> int:
        """How many reports are counted."""
        return self._reports

    def begin(self, nonces: Rows, public_shares: Rows, input_shares: Rows) -> Rows:
        """Return verifier shares of a new batch; the one before must be counted.

        Parameters
        ----------
        nonces, public_shares, input_shares : numpy.ndarray
            The clients' messages, see `Prio3.verify_init`.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, verifier_share_size)``.

        Raises
        ------
        ParameterError
            If a batch is still open or the messages have another size.
        """
        self._check_process()
        if self._state is not None:
            _check.refuse_state("begin", "follow count", "a batch is still open", "decide and count it first")
        state, shares = self._prio3.verify_init(
            self._key, self._aggregator, nonces, public_shares, input_shares
        )
        fresh = unseen(nonces, self._nonces)
        shares[~fresh] = 0
        self._state = VerifyState(state.output_shares, state.joint_seeds, state.sound & fresh)
        return shares

    def decide(self, messages: Rows, passed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which reports of the open batch this aggregator accepts.

        Parameters
        ----------
        messages, passed : numpy.ndarray
            What `Prio3.verifier_shares_to_message` returned.

        Returns
        -------
        numpy.ndarray
            A flag for each report, for the other aggregators: a report counts if all accept it.
        """
        self._check_process()
        if self._state is None or self._accepted is not None:
            _check.refuse_state("decide", "follow begin", "no batch waits for it", "begin a batch first")
        _, accepted = self._prio3.verify_next(self._state, messages)
        self._accepted = checked_flags("passed", passed, len(accepted)) & accepted
        return self._accepted.copy()

    def count(self, agreed: NDArray[np.bool_]) -> None:
        """Add the reports that all aggregators accept, and close the batch.

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
        if self._state is None or self._accepted is None:
            _check.refuse_state("count", "follow decide", "no batch is decided", "decide the batch first")
        chosen = checked_flags("agreed", agreed, len(self._accepted))
        if (chosen & ~self._accepted).any():
            _check.refuse_type("agreed", "hold only reports accepted here", agreed, "combine all decisions")
        added = self._prio3.aggregate(self._state.output_shares, chosen)
        self._total = self._prio3.merged([self._total, added])
        self._reports += int(chosen.sum())
        self._state = self._accepted = None

    def aggregate_share(self, rng: Rng = None) -> bytes:
        """Return the share of the sum over all counted reports, with noise, and start a new sum.

        No report is in two sums. Without ``noise`` the share is exact.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            None draws the noise from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bytes
        """
        self._check_process()
        share, self._total = self._total, bytes(self._prio3.aggregate_share_size)
        return share if self._noise is None else self._noise.added(self._prio3, share, rng)
