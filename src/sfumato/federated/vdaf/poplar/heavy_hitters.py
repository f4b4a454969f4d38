"""Private heavy hitters by Poplar1: the counts of every level are noised by both aggregators, and charged.

>>> import os
>>> from sfumato.federated import Poplar1HeavyHitters, UsedVerifyKeys
>>> plan = Poplar1HeavyHitters.calibrated(
...     bits=8, bits_per_level=4, threshold=60, max_prefixes=4, epsilon=2.0, delta=1e-6
... )
>>> key, texts = os.urandom(32), ["01101001"] * 150 + ["11110000"] * 100 + ["00000001"] * 3
>>> reports = plan.poplar1.shard(texts)
>>> sides = [plan.aggregator(key, j, UsedVerifyKeys()) for j in range(2)]
>>> for j, side in enumerate(sides):
...     side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
>>> plan.run(sides, rng=1).found
['01101001', '11110000']

Guarantee: `Poplar1HeavyHitters.privacy_loss`, under replace-one of a client's string, against everyone but
the two aggregators, and against an aggregator that follows the protocol, who lacks the other's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.poplar.poplar1 import Poplar1
from sfumato.federated.vdaf.poplar.poplar1_aggregator import PREFIX_SHIFT, Poplar1Aggregator
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.prefixes.counted_prefixes import CountedPrefixes
from sfumato.federated.vdaf.prefixes.descent import PrefixDescent, charge_all
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Poplar1HeavyHitters"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Poplar1HeavyHitters(PrefixDescent):
    """A plan to find the strings that many clients have, with a privacy loss that is fixed beforehand.

    The descent counts the prefixes of a few bits, keeps those whose noisy counts reach the threshold, counts
    their extensions, and so on to whole strings.

    Parameters
    ----------
    bits : int
        How long the strings are.
    mechanism : Laplace or Gaussian
        The noise of each aggregator on every count: on whole numbers, under replace-one, for two counts
        (``l0=2``) that move by one.
    threshold : int
        The noisy count from which a prefix is extended, and a string found.
    max_prefixes : int
        How many prefixes are extended at most: those with the largest noisy counts.
    bits_per_level : int, optional
        By how many bits prefixes grow from level to level, from 1 to 16. More are fewer releases, and so
        less noise, but two to that power as many counts.
    context : bytes, optional
        The application's name.
    minimum_reports : int, optional
        How many counted reports a level is answered for at least.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the noise does not cover two counts.

    Notes
    -----
    Guarantee: ``privacy_loss``, the sum of all levels' losses, under replace-one. A report counts at one
    prefix of a level at most, so that another string in its place moves two counts by one. Later prefixes
    are chosen from released counts, and the noise of each level is fixed beforehand, so that losses add
    (Dwork, Rothblum and Vadhan, FOCS 2010; of dominating pairs, Zhu, Dong and Wang, AISTATS 2022). Each
    aggregator's noise alone gives the loss. Conditions: one aggregator keeps its noise to itself, both follow
    the protocol otherwise, and the client's report is valid. Against an aggregator that deviates nothing is
    claimed. Secret sharing makes the guarantee computational against the aggregators.

    Examples
    --------
    >>> from sfumato.federated import Poplar1HeavyHitters
    >>> plan = Poplar1HeavyHitters.calibrated(
    ...     bits=256, bits_per_level=4, threshold=500, max_prefixes=20, epsilon=1.0, delta=1e-6
    ... )
    >>> len(plan.levels), plan.privacy_loss.epsilon(1e-6) <= 1.0, plan.noise.margin(0.95)
    (64, True, 133)
    """

    bits: int
    mechanism: Laplace | Gaussian
    threshold: int
    max_prefixes: int
    bits_per_level: int = 1
    context: bytes = b""
    minimum_reports: int = 1

    def __post_init__(self) -> None:
        self.check_descent()
        Poplar1(self.bits, self.context)
        AggregatorNoise(mechanism=self.mechanism, shift=PREFIX_SHIFT)

    @classmethod
    def calibrated(
        cls,
        *,
        bits: int,
        threshold: int,
        max_prefixes: int,
        epsilon: float,
        delta: float,
        bits_per_level: int = 1,
        context: bytes = b"",
        minimum_reports: int = 1,
    ) -> Poplar1HeavyHitters:
        """Return the plan with the smallest Gaussian noise that meets (epsilon, delta) over all levels.

        Parameters
        ----------
        bits, threshold, max_prefixes, bits_per_level, context, minimum_reports
            As in the class.
        epsilon, delta : float
            The guarantee of the whole descent.

        Returns
        -------
        Poplar1HeavyHitters
        """
        _check.integer("bits", bits, minimum=1)
        levels = -(-bits // _check.integer("bits_per_level", bits_per_level, minimum=1))
        relation = Neighboring.REPLACE_ONE
        # All levels together are one vector of which two entries a level move by one.
        whole = Gaussian.calibrated(
            epsilon=epsilon, delta=delta, sensitivity=1, l0=PREFIX_SHIFT.l0 * levels, neighboring=relation
        )
        return cls(
            bits=bits,
            mechanism=Gaussian(sensitivity=1, stddev=whole.stddev, l0=PREFIX_SHIFT.l0, neighboring=relation),
            threshold=threshold,
            max_prefixes=max_prefixes,
            bits_per_level=bits_per_level,
            context=context,
            minimum_reports=minimum_reports,
        )

    @property
    def poplar1(self) -> Poplar1:
        """The function that clients shard their strings by."""
        return Poplar1(self.bits, self.context)

    @property
    def noise(self) -> AggregatorNoise:
        """The noise of both aggregators on each count."""
        return AggregatorNoise(mechanism=self.mechanism, shift=PREFIX_SHIFT)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the whole descent, whether or not it ends early."""
        return self.mechanism.privacy_loss * len(self.levels)

    def aggregator(self, verify_key: bytes, aggregator: int, used_keys: UsedVerifyKeys) -> Poplar1Aggregator:
        """Return one aggregator, which adds its noise and answers at the plan's levels only.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret, 32 bytes.
        aggregator : int
            0, the leader, or 1.
        used_keys : UsedVerifyKeys
            Where the key is claimed.

        Returns
        -------
        Poplar1Aggregator
        """
        return Poplar1Aggregator(
            self.poplar1,
            verify_key,
            aggregator,
            used_keys,
            noise=self.noise,
            levels=self.levels,
            minimum_reports=self.minimum_reports,
        )

    def run(
        self,
        sides: Sequence[Poplar1Aggregator],
        *,
        ledgers: Sequence[Any] = (),
        delta: float = 0.0,
        rng: Rng = None,
    ) -> CountedPrefixes:
        """Find the frequent strings: count, keep, extend, from level to level.

        Parameters
        ----------
        sides : sequence of Poplar1Aggregator
            What `aggregator` returned for 0 and 1, with the same reports received.
        ledgers : sequence of Ledger, optional
            Each is charged the whole loss before any report is read; each aggregator keeps its own. Where one
            refuses, those before it stay charged.
        delta : float, optional
            Where the charge's own guarantee is read.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        CountedPrefixes
            The noisy counts of the last level that was reached.

        Raises
        ------
        ParameterError
            If the aggregators are not this plan's; nothing is charged then.
        """
        self._check_sides(sides)
        source = random_source(rng)
        charge_all(
            ledgers,
            self.privacy_loss,
            delta=delta,
            description=f"heavy hitters of {self.bits} bits",
            simulated=source.simulated,
        )
        parameter, counts = self.descend(lambda asked: self._counts(sides, asked, source))
        return CountedPrefixes(
            bits=self.bits,
            prefixes=parameter.prefixes,
            counts=tuple(counts),
            threshold=self.threshold,
            reports=sides[0].reports,
            noise=self.noise,
            loss=self.privacy_loss,
            levels=len(self.levels),
            simulated=source.simulated,
        )

    def _check_sides(self, sides: Sequence[Poplar1Aggregator]) -> None:
        """Refuse aggregators with other noise, or at other levels, than the loss is of."""
        if len(sides) != 2:
            _check.refuse("len(sides)", "be 2", len(sides), "pass both aggregators")
        remedy = "pass plan.aggregator(key, 0, used_keys) and plan.aggregator(key, 1, used_keys)"
        for j, side in enumerate(sides):
            _check.instance("sides", side, Poplar1Aggregator, remedy)
            if not side.serves(self.aggregator(bytes(SEED_SIZE), j, UsedVerifyKeys())):
                _check.refuse_type("sides", "be aggregators 0 and 1 of this plan", side, remedy)

    def _counts(
        self, sides: Sequence[Poplar1Aggregator], parameter: AggregationParameter, source: RandomSource
    ) -> list[int]:
        """Return noisy counts of prefixes: both rounds of messages, here within one process."""
        poplar = self.poplar1
        opened, sound = poplar.verifier_shares_to_message(
            parameter, [side.begin(parameter) for side in sides]
        )
        messages, passed = poplar.verifier_shares_to_message(
            parameter, [side.answer(opened, sound) for side in sides]
        )
        agreed: NDArray[np.bool_] = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
        for side in sides:
            side.count(agreed)
        return poplar.unshard(parameter, [side.aggregate_share(source) for side in sides], signed=True)
