"""One aggregator of Poplar1: a batch of reports, counted level by level, each report once at every level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.poplar.poplar1 import Poplar1
from sfumato.federated.vdaf.poplar.sketch import SketchedReports, SketchState
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.prefixes.level_aggregator import LevelAggregator
from sfumato.federated.vdaf.report_batch import checked_flags
from sfumato.federated.vdaf.seed_expansion import NONCE_SIZE, Rows
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["PREFIX_SHIFT", "Poplar1Aggregator"]

PREFIX_SHIFT: Final = Shift.entries(2, 1)
"""The most that the counts of a level differ when one string is replaced: two of them, by one."""


@final
class Poplar1Aggregator(LevelAggregator):
    """One aggregator's side of a task: reports are received, then counted at one level after another.

    A nonce that was received before is not verified again: its verifier share is zero, and the report is
    never accepted. Nor is a report that was refused at an earlier level.

    Parameters
    ----------
    poplar1 : Poplar1
        The function.
    verify_key : bytes
        The aggregators' common secret, 32 bytes.
    aggregator : int
        0, the leader, or 1.
    used_keys : UsedVerifyKeys
        Where the key is claimed.
    noise : AggregatorNoise, optional
        What is added to every share before it leaves; without it the counts are exact.
    levels : sequence of int, optional
        Those at which counts may be asked for; all, unless given. With noise they bound the privacy loss.
    minimum_reports : int, optional
        How many counted reports a share is given out for at least.

    Raises
    ------
    ParameterError
        If the key was used before, or a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.federated import AggregationParameter, Poplar1, UsedVerifyKeys
    >>> poplar, key, asked = Poplar1(bits=4), bytes(range(32)), AggregationParameter.of("01", "11")
    >>> reports = poplar.shard(["0110", "0111", "1111"])
    >>> sides = [Poplar1Aggregator(poplar, key, j, UsedVerifyKeys()) for j in range(2)]
    >>> for j, side in enumerate(sides):
    ...     side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    >>> opened, sound = poplar.verifier_shares_to_message(asked, [side.begin(asked) for side in sides])
    >>> answers = [side.answer(opened, sound) for side in sides]
    >>> messages, passed = poplar.verifier_shares_to_message(asked, answers)
    >>> agreed = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    >>> for side in sides:
    ...     side.count(agreed)
    >>> poplar.unshard(asked, [side.aggregate_share() for side in sides])
    [2, 1]
    """

    def __init__(
        self,
        poplar1: Poplar1,
        verify_key: bytes,
        aggregator: int,
        used_keys: UsedVerifyKeys,
        *,
        noise: AggregatorNoise | None = None,
        levels: Sequence[int] | None = None,
        minimum_reports: int = 1,
    ) -> None:
        _check.instance("poplar1", poplar1, Poplar1)
        if _check.integer("aggregator", aggregator) >= 2:
            _check.refuse("aggregator", "be below 2", aggregator, "count aggregators from 0, the leader")
        if noise is not None:
            _check.instance("noise", noise, AggregatorNoise)
            if not PREFIX_SHIFT.within(noise.shift) or noise.shares != 2:
                rule = f"cover {PREFIX_SHIFT} at 2 aggregators"
                _check.refuse("noise", rule, noise, "use Poplar1HeavyHitters.calibrated")
        super().__init__(
            verify_key,
            aggregator,
            used_keys,
            function=poplar1,
            noise=noise,
            sizes=(NONCE_SIZE, poplar1.public_share_size, poplar1.input_share_size),
            levels=levels,
            minimum_reports=minimum_reports,
        )
        self._poplar1, self._noise = poplar1, noise
        self._reports: SketchedReports | None = None
        self._parameter: AggregationParameter | None = None
        self._state: SketchState | None = None
        self._sound: NDArray[np.bool_] | None = None

    def begin(self, parameter: AggregationParameter) -> Rows:
        """Return verifier shares of all reports at a level; the level before must be counted.

        Parameters
        ----------
        parameter : AggregationParameter
            What is asked; it must follow the last one.

        Returns
        -------
        numpy.ndarray

        Raises
        ------
        ParameterError
            If a level is still open, or the parameter does not follow the last one, or its level is none of
            those that may be asked for.
        """
        self._poplar1.field(parameter)
        self._check_level(parameter.level, still_open=self._state is not None)
        if self._parameter is not None and not parameter.follows(self._parameter):
            rule, remedy = "follow the last one", "ask at a higher level, below prefixes asked for there"
            _check.refuse_type("parameter", rule, parameter, remedy)
        self._reports = self._reports or self._poplar1.reports(self._aggregator, *self._messages())
        self._parameter, self._share = parameter, None
        state, shares = self._poplar1.verify_init(self._key, parameter, self._reports)
        self._state = state
        self._alive &= state.sound
        shares[~self._alive] = 0
        return shares

    def answer(self, messages: Rows, passed: NDArray[np.bool_]) -> Rows:
        """Return verifier shares of the second round.

        Parameters
        ----------
        messages, passed : numpy.ndarray
            What `Poplar1.verifier_shares_to_message` returned of the first round.

        Returns
        -------
        numpy.ndarray
            Of which those of reports that did not pass are zero.
        """
        self._check_process()
        if self._state is None or self._sound is not None:
            _check.refuse_state("answer", "follow begin", "no level waits for it", "begin a level first")
        shares, sound = self._poplar1.verify_next(self._state, messages)
        self._sound = checked_flags("passed", passed, len(sound)) & sound & self._alive
        shares[~self._sound] = 0
        return shares

    def decide(self, messages: Rows, passed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which reports this aggregator accepts at the open level.

        Parameters
        ----------
        messages, passed : numpy.ndarray
            What `Poplar1.verifier_shares_to_message` returned of the second round.

        Returns
        -------
        numpy.ndarray
            A flag for each report, for the other aggregator: a report counts if both accept it.
        """
        self._check_process()
        if self._sound is None or self._accepted is not None:
            _check.refuse_state("decide", "follow answer", "no level waits for it", "answer first")
        self._accepted = checked_flags("passed", passed, len(self._sound)) & self._sound
        return self._accepted.copy()

    def _total(self, chosen: NDArray[np.bool_]) -> bytes:
        assert self._state is not None  # noqa: S101 - a level is decided
        total = self._poplar1.aggregate(self._state.parameter, self._state.output_shares, chosen)
        self._state = self._sound = None
        return total

    def aggregate_share(self, rng: Rng = None) -> bytes:
        """Return the share of the counts at the level that was counted last, with this aggregator's noise.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bytes
            Given out once for each level: fresh noise on the same counts would be another release.

        Raises
        ------
        ParameterError
            If no level is counted, its share was given out, or fewer reports than the minimum are counted.
        """
        source, share = random_source(rng), self._waiting_share()
        if self._noise is None or self._parameter is None:
            return share
        drawn = self._noise.draw(len(self._parameter.prefixes), source)
        return self._poplar1.added(self._parameter, share, drawn)
