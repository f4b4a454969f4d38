"""Noise that each aggregator of Mastic adds, in full, to its share: on sums of weights, and on counters.

At a level, another string with another weight in a report's place takes one weight from a prefix and adds one
to another: twice what one weight adds, for all kinds of weights are sums of numbers that are not negative, so
that a weight changed at one prefix moves no norm further. The counters of two prefixes move by one.

Counters are of use for means only. Where no noise is paid for them, an aggregator adds to its counter's share
a uniformly random element instead: the sum is then uniform, whatever the other aggregator does or knows, and
shows nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.federated.vdaf.aggregator_noise import AggregatorNoise
from sfumato.federated.vdaf.circuits.circuit import Circuit
from sfumato.federated.vdaf.mastic.mastic import Mastic
from sfumato.federated.vdaf.poplar.poplar1_aggregator import PREFIX_SHIFT
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["MasticNoise", "weight_shift"]

_Maker = Callable[[Shift], Laplace | Gaussian]


def weight_shift(circuit: Circuit) -> Shift:
    """Return the most that a level's sums differ when one report is replaced by another valid one.

    Parameters
    ----------
    circuit : Circuit
        What weights are.

    Returns
    -------
    Shift

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> weight_shift(mastic_sum(bits=4, max_measurement=7).circuit)
    Shift(l0=2, l1=14, l2_squared=98, linf=7)
    """
    one = circuit.extent
    return Shift(l0=2 * one.l0, l1=2 * one.l1, l2_squared=2 * one.l2_squared, linf=one.linf)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MasticNoise:
    """Integer noise on an aggregate share, the same distribution at each of the two aggregators.

    Parameters
    ----------
    weights : AggregatorNoise
        On every sum of weights.
    counts : AggregatorNoise, optional
        On every counter; without it counters leave as random elements, and are not released.

    Raises
    ------
    ParameterError
        If the counters' noise does not cover two that move by one.

    Notes
    -----
    Guarantee: ``privacy_loss``, the losses of both added, under replace-one of one client's string and
    weight, of each aggregator's noise alone; conditions as of `AggregatorNoise`. Counters without noise are
    uniform and independent of all reports: the element that one aggregator adds is, whatever is added to it.

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> mastic = mastic_sum(bits=4, max_measurement=7)
    >>> noise = MasticNoise.calibrated(mastic, epsilon=1.0)
    >>> noise.weights.mechanism.scale, noise.privacy_loss.epsilon()
    (14, 1.0)
    """

    weights: AggregatorNoise
    counts: AggregatorNoise | None = None

    def __post_init__(self) -> None:
        for name in ("weights", "counts"):
            noise = getattr(self, name)
            if name == "weights" or noise is not None:
                _check.instance(name, noise, AggregatorNoise)
                if noise.shares != 2:
                    _check.refuse(name, "be of 2 aggregators", noise, "make it for two")
        if self.counts is not None and not PREFIX_SHIFT.within(self.counts.shift):
            _check.refuse("counts", f"cover {PREFIX_SHIFT}", self.counts, "use MasticNoise.calibrated")

    @classmethod
    def calibrated(
        cls, mastic: Mastic, *, epsilon: float, delta: float = 0.0, counts: bool = False, levels: int = 1
    ) -> MasticNoise:
        """Return noise that meets (epsilon, delta) over some levels: Gaussian, or Laplace where delta is 0.

        Parameters
        ----------
        mastic : Mastic
            Whose weights state how far one report moves their sums.
        epsilon, delta : float
            The guarantee of all levels together.
        counts : bool, optional
            Whether counters are released too, at half of the loss.
        levels : int, optional
            How many levels are released.

        Returns
        -------
        MasticNoise
        """
        _check.instance("mastic", mastic, Mastic)
        _check.instance("counts", counts, bool)
        _check.positive("epsilon", epsilon)
        parts = _check.integer("levels", levels, minimum=1) * (2 if counts else 1)
        shift = weight_shift(mastic.circuit)
        if not delta:
            return cls._of(
                shift,
                lambda each: Laplace.calibrated(
                    epsilon=epsilon / parts,
                    sensitivity=each.linf,
                    l0=each.l0,
                    neighboring=Neighboring.REPLACE_ONE,
                ),
                counts,
            )

        def noise(ratio: float) -> MasticNoise:
            return cls._of(shift, lambda each: _gaussian(each, ratio), counts)

        ratio = calibrate(
            lambda ratio: noise(ratio).privacy_loss * levels, epsilon=epsilon, delta=delta, tolerance=1e-3
        )
        return noise(ratio)

    @classmethod
    def _of(cls, shift: Shift, make: _Maker, counts: bool) -> MasticNoise:
        return cls(
            weights=AggregatorNoise(mechanism=make(shift), shift=shift),
            counts=AggregatorNoise(mechanism=make(PREFIX_SHIFT), shift=PREFIX_SHIFT) if counts else None,
        )

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one level's release, from one aggregator's noise alone."""
        loss = self.weights.privacy_loss
        return loss if self.counts is None else loss + self.counts.privacy_loss

    def check_covers(self, mastic: Mastic) -> None:
        """Refuse a function whose sums one report moves further than is paid for.

        Parameters
        ----------
        mastic : Mastic
            The function.

        Raises
        ------
        ParameterError
            If its sums move further.
        """
        shift = weight_shift(mastic.circuit)
        if not shift.within(self.weights.shift):
            _check.refuse("noise", f"cover {shift}", self, "use MasticNoise.calibrated for this function")

    def draw(self, mastic: Mastic, prefixes: int, source: RandomSource) -> list[int]:
        """Return one aggregator's noise, of which nobody else may learn, in the order of a share's elements.

        Parameters
        ----------
        mastic : Mastic
            The function.
        prefixes : int
            How many prefixes were asked for.
        source : RandomSource
            Of the noise; the random elements that hide counters are the operating system's.

        Returns
        -------
        list of int
        """
        each = mastic.circuit.output_length
        sums = self.weights.draw(prefixes * each, source)
        if self.counts is None:
            counters = [secrets.randbelow(mastic.circuit.field.modulus) for _ in range(prefixes)]
        else:
            counters = self.counts.draw(prefixes, source)
        return [
            number
            for i, counter in enumerate(counters)
            for number in (counter, *sums[i * each : (i + 1) * each])
        ]


def _gaussian(shift: Shift, ratio: float) -> Gaussian:
    """Return Gaussian noise of a multiple of the L2 norm: equal multiples are equal losses."""
    return Gaussian(
        sensitivity=shift.linf,
        stddev=ratio * float(shift.l2_squared) ** 0.5,
        l0=shift.l0,
        neighboring=Neighboring.REPLACE_ONE,
    )
