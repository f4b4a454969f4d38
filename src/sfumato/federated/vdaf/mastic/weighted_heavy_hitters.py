"""Weighted heavy hitters by Mastic: the sums of every level are noised by both aggregators, and charged.

>>> import os
>>> from sfumato.federated import MasticHeavyHitters, UsedVerifyKeys, mastic_sum
>>> plan = MasticHeavyHitters.calibrated(
...     mastic_sum(bits=8, max_measurement=10),
...     bits_per_level=4, threshold=600, max_prefixes=4, epsilon=2.0, delta=1e-6,
... )
>>> key, texts = os.urandom(32), ["01101001"] * 150 + ["11110000"] * 300 + ["00000001"] * 3
>>> reports = plan.mastic.shard(texts, [10] * 150 + [3] * 300 + [10] * 3)
>>> sides = [plan.aggregator(key, j, UsedVerifyKeys()) for j in range(2)]
>>> for j, side in enumerate(sides):
...     side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
>>> plan.run(sides, rng=1).found
['01101001', '11110000']

Guarantee: `MasticHeavyHitters.privacy_loss`, under replace-one of a client's string and weight, against
everyone but the two aggregators, and against an aggregator that follows the protocol, who lacks the other's
noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from sfumato import _check
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.mastic.mastic import Mastic
from sfumato.federated.vdaf.mastic.mastic_aggregator import MasticAggregator
from sfumato.federated.vdaf.mastic.mastic_noise import MasticNoise, weight_shift
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.mastic.mastic_rounds import both_shares, check_pair
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.prefixes.counted_prefixes import CountedPrefixes
from sfumato.federated.vdaf.prefixes.descent import PrefixDescent, charge_all
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MasticHeavyHitters"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MasticHeavyHitters(PrefixDescent):
    """A plan to find the strings with the largest total weights, with a loss that is fixed beforehand.

    The descent sums the weights below prefixes of a few bits, extends those whose noisy sums reach the
    threshold, and so on to whole strings. Counters are not released.

    Parameters
    ----------
    mastic : Mastic
        The function, of one number as a weight: `mastic_count` or `mastic_sum`.
    mechanism : Laplace or Gaussian
        The noise of each aggregator on every sum: on whole numbers, under replace-one, for two sums
        (``l0=2``) that move by the largest weight.
    threshold : int
        The noisy sum from which a prefix is extended, and a string found.
    max_prefixes : int
        How many prefixes are extended at most: those with the largest noisy sums.
    bits_per_level : int, optional
        By how many bits prefixes grow from level to level, from 1 to 16.
    minimum_reports : int, optional
        How many counted reports a level is answered for at least.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the noise does not cover two sums.

    Notes
    -----
    Guarantee: ``privacy_loss``, the sum of all levels' losses, under replace-one of a client's string and
    weight. A report adds one valid weight to one prefix of a level at most, so that another one in its place
    moves two sums by the largest weight each. Later prefixes are chosen from released sums, and the noise of
    each level is fixed beforehand, so that losses add (Dwork, Rothblum and Vadhan, FOCS 2010; of dominating
    pairs, Zhu, Dong and Wang, AISTATS 2022). Each aggregator's noise alone gives the loss. Conditions: one
    aggregator keeps its noise to itself, both follow the protocol otherwise, and the client's report is
    valid. Against an aggregator that deviates nothing is claimed. Secret sharing makes the guarantee
    computational against the aggregators.

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> plan = MasticHeavyHitters.calibrated(
    ...     mastic_sum(bits=32, max_measurement=100),
    ...     bits_per_level=4, threshold=5000, max_prefixes=20, epsilon=1.0, delta=1e-6,
    ... )
    >>> len(plan.levels), plan.privacy_loss.epsilon(1e-6) <= 1.0
    (8, True)
    """

    mastic: Mastic
    mechanism: Laplace | Gaussian
    threshold: int
    max_prefixes: int
    bits_per_level: int = 1
    minimum_reports: int = 1

    def __post_init__(self) -> None:
        _check.instance("mastic", self.mastic, Mastic)
        if self.mastic.circuit.result([0] * self.mastic.circuit.output_length) != 0:  # but a list
            remedy = "use mastic_count or mastic_sum, or MasticAttributeMetrics for vectors"
            _check.refuse("mastic", "sum one number", self.mastic, remedy)
        self.check_descent()
        MasticNoise(weights=self.noise).check_covers(self.mastic)

    @classmethod
    def calibrated(
        cls,
        mastic: Mastic,
        *,
        threshold: int,
        max_prefixes: int,
        epsilon: float,
        delta: float,
        bits_per_level: int = 1,
        minimum_reports: int = 1,
    ) -> MasticHeavyHitters:
        """Return the plan with Gaussian noise that meets (epsilon, delta) over all levels.

        Parameters
        ----------
        mastic, threshold, max_prefixes, bits_per_level, minimum_reports
            As in the class.
        epsilon, delta : float
            The guarantee of the whole descent.

        Returns
        -------
        MasticHeavyHitters
        """
        _check.instance("mastic", mastic, Mastic)
        _check.unit_interval("delta", delta, "pass a small probability such as 1e-6")
        levels = -(-mastic.bits // _check.integer("bits_per_level", bits_per_level, minimum=1))
        noise = MasticNoise.calibrated(mastic, epsilon=epsilon, delta=delta, levels=levels)
        return cls(
            mastic=mastic,
            mechanism=noise.weights.mechanism,
            threshold=threshold,
            max_prefixes=max_prefixes,
            bits_per_level=bits_per_level,
            minimum_reports=minimum_reports,
        )

    @property
    def bits(self) -> int:  # type: ignore[override]
        """How long the strings are."""
        return self.mastic.bits

    @property
    def noise(self) -> AggregatorNoise:
        """The noise of both aggregators on each sum."""
        return AggregatorNoise(mechanism=self.mechanism, shift=weight_shift(self.mastic.circuit))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the whole descent, whether or not it ends early."""
        return self.mechanism.privacy_loss * len(self.levels)

    def aggregator(self, verify_key: bytes, aggregator: int, used_keys: UsedVerifyKeys) -> MasticAggregator:
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
        MasticAggregator
        """
        return MasticAggregator(
            self.mastic,
            verify_key,
            aggregator,
            used_keys,
            noise=MasticNoise(weights=self.noise),
            levels=self.levels,
            minimum_reports=self.minimum_reports,
        )

    def run(
        self,
        sides: Sequence[MasticAggregator],
        *,
        ledgers: Sequence[Any] = (),
        delta: float = 0.0,
        rng: Rng = None,
    ) -> CountedPrefixes:
        """Find the strings of large weight: sum, choose, extend, from level to level.

        Parameters
        ----------
        sides : sequence of MasticAggregator
            What `aggregator` returned for 0 and 1, with the same reports received.
        ledgers : sequence of Ledger, optional
            Each is charged the whole loss before any report is read; each aggregator has its own. Where one
            refuses, those before it stay charged.
        delta : float, optional
            Where the charge's own guarantee is read.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        CountedPrefixes
            The noisy sums of the last level that was reached, as its counts.

        Raises
        ------
        ParameterError
            If the aggregators are not this plan's, or sums could wrap; nothing is charged then.
        """
        wanted = [self.aggregator(bytes(SEED_SIZE), j, UsedVerifyKeys()) for j in range(2)]
        check_pair(self.mastic, sides, wanted)
        source = random_source(rng)
        charge_all(
            ledgers,
            self.privacy_loss,
            delta=delta,
            description=f"weighted heavy hitters of {self.bits} bits",
            simulated=source.simulated,
        )
        asked, sums = self.descend(lambda asked: self._sums(sides, asked, source))
        return CountedPrefixes(
            bits=self.bits,
            prefixes=asked.prefixes,
            counts=tuple(sums),
            threshold=self.threshold,
            reports=sides[0].reports,
            noise=self.noise,
            loss=self.privacy_loss,
            levels=len(self.levels),
            simulated=source.simulated,
            max_weight=self.mastic.circuit.extent.linf,
        )

    def _sums(
        self, sides: Sequence[MasticAggregator], asked: AggregationParameter, source: RandomSource
    ) -> list[int]:
        parameter = MasticParameter(asked, check_weights=asked.level == self.levels[0])
        shares = both_shares(self.mastic, sides, parameter, source)
        return self.mastic.unshard(parameter, shares, signed=True)
