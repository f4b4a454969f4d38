"""What the mechanisms that add noise to a rounded vector share: rotation, grid, modulus, decoding."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER, Format, Record
from sfumato.federated.distributed_noise.bounded_rounding import largest_norm_squared, round_within
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.distributed_noise.modulus import largest_scale, wraparound_bound
from sfumato.federated.distributed_noise.rotation import rotate, rotate_back
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MAX_BITS", "AdditiveNoise", "clipped"]

MAX_BITS: Final = 48
_TOLERANCE: Final = 1 + 1e-9
"""A scale that was planned on one machine is not refused by the last digits of another's exponentials."""
_LARGEST_NORM: Final = 2.0**30
"""In steps: squares of a rounded vector then add up within 64 bits."""
_LEAST_NORM: Final = 2.0**-40
"""In steps: of a coarser grid nothing of a vector is left but the rounding."""
_LEAST_NOISE: Final = 2.0**-100

_FORMAT: Final = Format("sfumato.distributed_noise", 1)
_RECORD: Final[Record[Any]] = Record(
    "parameters of distributed noise",
    dict,
    {
        "clients": INTEGER,
        "minimum_survivors": INTEGER,
        "colluders": INTEGER,
        "dimension": INTEGER,
        "clip_norm": NUMBER,
        "noise_multiplier": NUMBER,
        "bits": INTEGER,
        "wraparound": NUMBER,
        "scale": NUMBER,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveNoise(DistributedMechanism):
    """Integer noise on a rotated, rounded vector; see `DistributedDiscreteGaussian` for the parameters."""

    clients: int
    minimum_survivors: int
    dimension: int
    clip_norm: float
    noise_multiplier: float
    bits: int
    colluders: int = 0
    wraparound: float = 1e-6
    scale: float | None = None
    l2_squared: int = field(init=False, repr=False)

    _format = _FORMAT
    _record = _RECORD

    def __post_init__(self) -> None:
        self._check_clients()
        self._check_clip_norm()
        self._set("noise_multiplier", _check.positive("noise_multiplier", self.noise_multiplier))
        if self.noise_multiplier < _LEAST_NOISE:
            rule = "be at least 2^-100"
            _check.refuse("noise_multiplier", rule, self.noise_multiplier, "so little noise hides nothing")
        self._set("wraparound", _check.unit_interval("wraparound", self.wraparound))
        if not 2 <= _check.integer("bits", self.bits, minimum=1) <= MAX_BITS:
            _check.refuse("bits", f"be from 2 to {MAX_BITS}", self.bits, "call plan_bits")
        self._check_survivors()
        if self._share(1) > self._largest_share():
            most = f"{math.isqrt(self._largest_share() * self.honest_survivors):,}"
            rule = f"be at most {most} with {self.honest_survivors} honest survivors, whose noise is drawn"
            _check.refuse("noise_multiplier", rule, self.noise_multiplier, "ask for less noise")
        if self.scale is None:
            self._set("scale", self._finest())
        else:
            self._check_scale(_check.positive("scale", self.scale))
        self._set("l2_squared", self._largest_squared(self.steps))

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, rounds: int = 1, **parameters: Any) -> Self:
        """Return the mechanism with the smallest noise whose loss of some rounds meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            The guarantee; delta must be positive.
        rounds : int, default 1
            In how many rounds a client takes part.
        **parameters
            All of the class but ``noise_multiplier``.

        Returns
        -------
        AdditiveNoise
            Of this class; the noise multiplier is the smallest to one part in a million.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "noise of this kind has no pure guarantee")
        count = _check.integer("rounds", rounds, minimum=1)

        def loss(noise: Fraction) -> PrivacyLoss:
            return cls(noise_multiplier=float(noise), **parameters).privacy_loss * count

        start = analytic_gaussian_stddev(
            sensitivity=math.sqrt(count), epsilon=request.epsilon, delta=request.delta
        )
        noise = minimum_noise(loss, request, Fraction(start))
        return cls(noise_multiplier=float(noise), **parameters)

    def _check_scale(self, scale: float) -> None:
        if scale * self.clip_norm < _LEAST_NORM:
            rule = (
                f"make clip_norm at least 2^-40 of a step, which is {_LEAST_NORM / self.clip_norm:.6g} here"
            )
            _check.refuse("scale", rule, scale, "leave it out")
        if self._wraps(scale) > self.wraparound * _TOLERANCE:
            rule = f"leave a chance of at most {self.wraparound} that the sum wraps around"
            _check.refuse("scale", rule, scale, "leave it out, or take more bits")

    def _finest(self) -> float:
        found = largest_scale(lambda s: self._wraps(s) <= self.wraparound, _LARGEST_NORM / self.clip_norm)
        if found is None:
            rule = f"leave a chance of at most {self.wraparound} that the sum wraps around"
            _check.refuse("bits", rule, self.bits, "take more bits, or allow fewer clients or more chance")
        return found

    def _wraps(self, scale: float) -> float:
        norm = scale * self.clip_norm
        if norm > _LARGEST_NORM:
            return 1.0
        share = self._share(self._largest_squared(scale))
        if share > self._largest_share():
            return 1.0
        return wraparound_bound(
            bits=self.bits,
            clients=self.clients,
            norm=norm * (1 + 2.0**-30),  # the rotation's own rounding
            dimension=self.padded,
            variance=float(self.clients * share),
            noise=self._log_moment,
        )

    def _largest_squared(self, scale: float) -> int:
        return largest_norm_squared(scale * self.clip_norm, self.padded)

    def _share(self, l2_squared: int) -> Fraction:
        sure = Fraction(self.noise_multiplier) ** 2 * l2_squared
        return self._variance_for(sure / self.honest_survivors)

    @property
    def share_variance(self) -> Fraction:
        """The variance of each client's noise in squared steps; of discrete Gaussians, their parameter's."""
        return self._share(self.l2_squared)

    @abstractmethod
    def _variance_for(self, exact: Fraction) -> Fraction:
        """Return a variance at or a little above one, of noise that is drawn exactly."""

    @abstractmethod
    def _largest_share(self) -> int:
        """Return the largest variance of a client's noise that is drawn."""

    @property
    def steps(self) -> float:
        """The scale, which is known once the parameters are checked."""
        return cast("float", self.scale)

    @staticmethod
    @abstractmethod
    def _log_moment(variance: float, t: float) -> float:
        """Bound the log of the moment generating function of noise of a variance, rounded up."""

    @abstractmethod
    def _draw(self, source: RandomSource) -> NDArray[np.int64]:
        """Draw one client's noise."""

    @property
    def wraparound_bound(self) -> float:
        """A proved bound on the chance that any entry of the sum of all clients wraps around."""
        return self._wraps(self.steps)

    def encode(self, vector: ArrayLike, seed: bytes, rng: Rng = None) -> NDArray[np.int64]:
        """Return a client's message for secure aggregation: clipped, rotated, rounded, with noise.

        Parameters
        ----------
        vector : array_like of float, shape (dimension,)
            Private. A vector with an entry that is not finite counts as zeros.
        seed : bytes
            Public, the same for all clients of a round, and chosen without regard to their vectors.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        ndarray of int64, shape (padded,)
            Residues modulo 2^bits, centred on 0.

        Raises
        ------
        ParameterError
            If the vector has another shape or type; nothing of its values is shown.
        """
        given = self._check_vector(vector)
        source = random_source(rng)
        rotated = rotate(clipped(given, self.clip_norm), seed)
        rounded = round_within(rotated * self.steps, self.l2_squared, source)
        return self._residues(rounded + self._draw(source))

    def decode(self, total: ArrayLike, seed: bytes) -> NDArray[np.float64]:
        """Return the noisy sum of the survivors' vectors from the sum of their messages.

        Parameters
        ----------
        total : array_like of int, shape (padded,)
            Modulo 2^bits, as secure aggregation gives it.
        seed : bytes
            That of `encode`.

        Returns
        -------
        ndarray of float, shape (dimension,)
        """
        return rotate_back(self._check_total(total) / self.steps, seed, self.dimension)

    def variance(self, survivors: int) -> float:
        """Return a bound on the variance of each entry of the decoded sum, for so many survivors.

        Parameters
        ----------
        survivors : int
            From ``minimum_survivors`` to ``clients``.

        Returns
        -------
        float
            In squared units of the vectors: the noise of all survivors, and at most a quarter of a step
            squared for each one's rounding. It is about a sum in which no entry wraps around.
        """
        return self._check_count(survivors) * (float(self.share_variance) + 0.25) / self.steps**2

    @property
    def error_ratio(self) -> float:
        """Standard deviation of the error over that of one central Gaussian of the same noise multiplier.

        For ``minimum_survivors``, whose noise without the colluders' is what is priced; the rest is the
        grid's. With more survivors there is more noise.
        """
        central = self.noise_multiplier * self.clip_norm
        return math.sqrt(self.variance(self.minimum_survivors)) / central


def clipped(vector: NDArray[np.float64], clip_norm: float) -> NDArray[np.float64]:
    """Return the vector, scaled down to the norm; zeros if an entry is not finite."""
    largest = float(np.abs(vector).max())
    if not math.isfinite(largest):
        return np.zeros_like(vector)
    if largest == 0:
        return vector
    norm = largest * float(np.linalg.norm(vector / largest))
    return vector * (clip_norm / norm) if norm > clip_norm else vector
