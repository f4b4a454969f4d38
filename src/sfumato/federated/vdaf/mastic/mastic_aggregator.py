"""One aggregator of Mastic: a batch of reports, summed level by level, each report once at every level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.mastic.evaluated_reports import EvaluatedReports, MasticState
from sfumato.federated.vdaf.mastic.mastic import Mastic
from sfumato.federated.vdaf.mastic.mastic_noise import MasticNoise
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.prefixes.level_aggregator import LevelAggregator
from sfumato.federated.vdaf.report_batch import checked_flags
from sfumato.federated.vdaf.seed_expansion import NONCE_SIZE, Rows
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["MasticAggregator"]


@final
class MasticAggregator(LevelAggregator):
    """One aggregator's side of a task: reports are received, then summed at one level after another.

    A nonce that was received before is not verified again: its verifier share is zero, and the report is
    never accepted. Nor is a report that was refused at an earlier level. Weights are checked at the first.

    Parameters
    ----------
    mastic : Mastic
        The function.
    verify_key : bytes
        The aggregators' common secret, 32 bytes.
    aggregator : int
        0, the leader, or 1.
    used_keys : UsedVerifyKeys
        Where the key is claimed.
    noise : MasticNoise, optional
        What is added to every share before it leaves; without it the sums are exact.
    levels : sequence of int, optional
        Those at which sums may be asked for; all, unless given. With noise they bound the privacy loss.
    minimum_reports : int, optional
        How many counted reports a share is given out for at least.

    Raises
    ------
    ParameterError
        If the key was used before, or a parameter is out of range.

    Examples
    --------
    >>> from sfumato.federated import MasticParameter, UsedVerifyKeys, mastic_sum
    >>> mastic, key = mastic_sum(bits=4, max_measurement=7), bytes(range(32))
    >>> reports = mastic.shard(["0110", "0111", "1111"], [3, 2, 7])
    >>> sides = [MasticAggregator(mastic, key, j, UsedVerifyKeys()) for j in range(2)]
    >>> for j, side in enumerate(sides):
    ...     side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    >>> asked = MasticParameter.of("01", "11", check_weights=True)
    >>> messages, passed = mastic.verifier_shares_to_message(asked, [side.begin(asked) for side in sides])
    >>> agreed = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    >>> for side in sides:
    ...     side.count(agreed)
    >>> mastic.unshard(asked, [side.aggregate_share() for side in sides])
    [5, 7]
    """

    def __init__(
        self,
        mastic: Mastic,
        verify_key: bytes,
        aggregator: int,
        used_keys: UsedVerifyKeys,
        *,
        noise: MasticNoise | None = None,
        levels: Sequence[int] | None = None,
        minimum_reports: int = 1,
    ) -> None:
        _check.instance("mastic", mastic, Mastic)
        if _check.integer("aggregator", aggregator) >= 2:
            _check.refuse("aggregator", "be below 2", aggregator, "count aggregators from 0, the leader")
        if noise is not None:
            _check.instance("noise", noise, MasticNoise)
            noise.check_covers(mastic)
        super().__init__(
            verify_key,
            aggregator,
            used_keys,
            function=mastic,
            noise=noise,
            sizes=(NONCE_SIZE, mastic.public_share_size, mastic.input_share_size(aggregator)),
            levels=levels,
            minimum_reports=minimum_reports,
        )
        self._mastic, self._noise = mastic, noise
        self._reports: EvaluatedReports | None = None
        self._parameter: MasticParameter | None = None
        self._state: MasticState | None = None

    def begin(self, parameter: MasticParameter) -> Rows:
        """Return verifier shares of all reports at a level; the level before must be counted.

        Parameters
        ----------
        parameter : MasticParameter
            What is asked; it must follow the last one, and the first must check the weights.

        Returns
        -------
        numpy.ndarray

        Raises
        ------
        ParameterError
            If a level is still open, or the parameter does not follow the last one, or its level is none of
            those that may be asked for.
        """
        self._mastic.checked(parameter)
        self._check_level(parameter.level, still_open=self._state is not None)
        if not parameter.follows(self._parameter):
            rule = "follow the last one, and check weights first"
            remedy = "check weights with the first parameter alone, and ask at a higher level each time"
            _check.refuse_type("parameter", rule, parameter, remedy)
        self._reports = self._reports or self._mastic.reports(self._aggregator, *self._messages())
        self._parameter, self._share = parameter, None
        self._state, shares = self._mastic.verify_init(self._key, parameter, self._reports)
        self._alive &= self._state.sound
        shares[~self._alive] = 0
        return shares

    def decide(self, messages: Rows, passed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which reports this aggregator accepts at the open level.

        Parameters
        ----------
        messages, passed : numpy.ndarray
            What `Mastic.verifier_shares_to_message` returned.

        Returns
        -------
        numpy.ndarray
            A flag for each report, for the other aggregator: a report counts if both accept it.
        """
        self._check_process()
        if self._state is None or self._accepted is not None:
            _check.refuse_state("decide", "follow begin", "no level waits for it", "begin a level first")
        _, sound = self._mastic.verify_next(self._state, messages)
        self._accepted = checked_flags("passed", passed, len(sound)) & sound & self._alive
        return self._accepted.copy()

    def _total(self, chosen: NDArray[np.bool_]) -> bytes:
        assert self._state is not None  # noqa: S101 - a level is decided
        total = self._mastic.aggregate(self._state.parameter, self._state.output_shares, chosen)
        self._state = None
        return total

    def aggregate_share(self, rng: Rng = None) -> bytes:
        """Return the share of the sums at the level that was counted last, with this aggregator's noise.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bytes
            Given out once for each level: fresh noise on the same sums would be another release.

        Raises
        ------
        ParameterError
            If no level is counted, its share was given out, or fewer reports than the minimum are counted.
        """
        source, share = random_source(rng), self._waiting_share()
        if self._noise is None or self._parameter is None:
            return share
        drawn = self._noise.draw(self._mastic, len(self._parameter.prefixes), source)
        return self._mastic.added(self._parameter, share, drawn)
