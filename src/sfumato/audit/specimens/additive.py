"""Broken additive noise: a wrong sensitivity, and floats whose low bits reveal the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.input_pairs import InputPair
from sfumato.audit.specimens.specimen import Specimen
from sfumato.privacy.calibration import analytic_gaussian_stddev

__all__ = ["FloatGaussian", "FloatLaplace", "HalfSensitivitySum"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfSensitivitySum(Specimen):
    """A sum of records in [-1, 1] with noise for a sensitivity of 1, though one record may be replaced.

    A replacement moves the sum by 2: it is 2 epsilon-DP. The larger bound is the sensitivity under add/remove
    only; the two relations are easily confused (Casacuberta, Shoemate, Vadhan, Wagaman 2022, "Widespread
    underestimation of sensitivity in differentially private libraries and how to fix it", find further ways
    to state too little for a sum).

    Examples
    --------
    >>> broken = HalfSensitivitySum(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.5, -1.0], second=[0.5, 1.0]),)
    """One record from end to end."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Return noisy sums."""
        total = float(np.clip(np.asarray(data, dtype=np.float64), -1, 1).sum())
        return total + self._generator.laplace(0.0, 1 / self.epsilon, size)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatLaplace(Specimen):
    """A number with float Laplace noise: private for real numbers, not for floats.

    The sum is rounded to the precision of the larger term, so that its low bits tell where the noise was
    added: some outputs are possible on one input only (Mironov 2012, "On significance of the smallest
    significant bits for differential privacy"; Haney, Desfontaines, Hartman, Shrestha, Hay 2022,
    "Precision-based attacks and interval refining"). `audit` judges values as real numbers and passes it;
    `audit_precision` does not.

    Examples
    --------
    >>> broken = FloatLaplace(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=0.0, second=1.0),)
    """Zero and the sensitivity."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Return noisy numbers."""
        return float(data) + self._generator.laplace(0.0, 1 / self.epsilon, size)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatGaussian(Specimen):
    """A number with float Gaussian noise: private for real numbers, not for floats; see `FloatLaplace`.

    Parameters
    ----------
    delta_claimed : float
        The delta of the claim, which impossible outputs exceed by orders of magnitude.

    Examples
    --------
    >>> broken = FloatGaussian(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    delta_claimed: float = 1e-5

    def __post_init__(self) -> None:
        super(FloatGaussian, self).__post_init__()
        object.__setattr__(self, "delta_claimed", _check.unit_interval("delta_claimed", self.delta_claimed))

    @property
    def delta(self) -> float:
        """The delta of the claim."""
        return self.delta_claimed

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=0.0, second=1.0),)
    """Zero and the sensitivity."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Return noisy numbers."""
        stddev = analytic_gaussian_stddev(sensitivity=1.0, epsilon=self.epsilon, delta=self.delta)
        return float(data) + self._generator.normal(0.0, stddev, size)
