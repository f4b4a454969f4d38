"""A clip norm that follows a quantile of the gradients' norms, privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import TYPE_CHECKING, final

from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping, norms_of
from sfumato.learning.clipping.flat import SingleNorm
from sfumato.numerics.rounding import div_up, mul_up

if TYPE_CHECKING:
    from sfumato.learning.noise.noise import Noise

__all__ = ["AdaptiveQuantile"]

_MIN, _MAX = 2.0**-40, 2.0**40
_SLACK = 1 + 2.0**-48


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveQuantile(SingleNorm):
    r"""Flat clipping whose norm moves towards a quantile of the norms after every step.

    Parameters
    ----------
    clip_norm : float
        Of the present step; the first is chosen beforehand, such as 0.1.
    count_stddev : float
        Standard deviation of the noise on the count, in examples; a twentieth of the expected batch size is
        usual. Above half of the noise multiplier.
    quantile : float
        The share of examples that are to keep their gradients whole.
    learning_rate : float
        By which the clip norm moves, in the log.

    Notes
    -----
    After a step, :math:`\tilde b` is the noisy count of norms up to the clip norm, over the expected batch
    size, and the clip norm is multiplied by :math:`e^{-\eta (\tilde b - q)}`.

    Guarantee: a step with `stddevs` of a noise multiplier z and the count together cost what ``Gaussian(z)``
    does. Proof: each example adds :math:`\pm 1/2` to the count less half the batch, so that both, divided by
    their noise's deviations :math:`z_g C` and :math:`\sigma_b`, move by at most :math:`\sqrt{1/z_g^2 +
    1/(2\sigma_b)^2}`, which is :math:`1/z` for :math:`z_g = (z^{-2} - (2\sigma_b)^{-2})^{-1/2}`. The norms of
    later steps follow from earlier releases.

    References
    ----------
    Andrew, Thakkar, McMahan, Ramaswamy (2021), "Differentially private learning with adaptive clipping",
    Theorem 1 and Algorithm 1.

    Examples
    --------
    >>> clipping = AdaptiveQuantile(clip_norm=0.1, count_stddev=5.0)
    >>> round(clipping.gradient_multiplier(1.0), 6)
    1.005038
    """

    count_stddev: float
    quantile: float = 0.5
    learning_rate: float = 0.2

    def __post_init__(self) -> None:
        SingleNorm.__post_init__(self)
        object.__setattr__(self, "count_stddev", _check.positive("count_stddev", self.count_stddev))
        object.__setattr__(self, "quantile", _check.unit_interval("quantile", self.quantile))
        object.__setattr__(self, "learning_rate", _check.positive("learning_rate", self.learning_rate))

    def gradient_multiplier(self, noise_multiplier: float) -> float:
        """Return the noise multiplier of the gradients alone, rounded up.

        Parameters
        ----------
        noise_multiplier : float
            Of the gradients and the count together, as it is charged; below twice ``count_stddev``.

        Returns
        -------
        float
            Greater than ``noise_multiplier``: the count's noise takes up a part of it.
        """
        noise = _check.non_negative("noise_multiplier", noise_multiplier)
        share = div_up(noise, 2 * self.count_stddev)
        if share >= 1:
            remedy = "raise count_stddev, or the batch size with it"
            _check.refuse("noise_multiplier", "be below twice count_stddev", noise_multiplier, remedy)
        return mul_up(noise, _SLACK / sqrt((1 - share) * (1 + share) * (2 - _SLACK)))

    def stddevs(
        self, noise_multiplier: float, names: Sequence[str], sizes: Sequence[int]
    ) -> tuple[float, ...]:
        """Return the standard deviation of each parameter's noise: more than without a count.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.
        names : sequence of str
            The parameters' names.
        sizes : sequence of int
            Their numbers of entries.

        Returns
        -------
        tuple of float
            One for each parameter, for the sum over a batch.
        """
        return Clipping.stddevs(self, self.gradient_multiplier(noise_multiplier), names, sizes)

    def after(
        self,
        squared_norms: Tensor,
        *,
        noise_multiplier: float,
        expected_batch_size: float,
        step: int,
        noise: Noise,
    ) -> AdaptiveQuantile:
        """Return the next step's clipping, from a noisy count of norms up to the clip norm.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of each example's gradient.
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.
        expected_batch_size : float
            Of the run.
        step : int
            The step that the norms are of.
        noise : Noise
            What the count's noise is drawn from.

        Returns
        -------
        Clipping
        """
        self.gradient_multiplier(noise_multiplier)
        expected = _check.positive("expected_batch_size", expected_batch_size)
        norms = norms_of(squared_norms)
        below = int((norms <= self.clip_norm).all(0).sum())
        centred = below - norms.shape[1] / 2 + noise.scalar(step=step, stddev=self.count_stddev)
        # Far outside [0, 1] only by noise; held so that one step moves little.
        share = min(max(centred / expected + 0.5, -1.0), 2.0)
        moved = self.clip_norm * exp(-self.learning_rate * (share - self.quantile))
        return replace(self, clip_norm=min(max(moved, _MIN), _MAX))
