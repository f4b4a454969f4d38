"""Student's t noise of a scale that moves, against its exact densities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import SmoothSensitivity
from tests.cases import cases

LINE = np.concatenate([-np.logspace(8, -4, 4000), np.linspace(-30, 30, 60_001), np.logspace(-4, 8, 4000)])


def log_density(z: np.ndarray, degrees: float, log_scale: float) -> np.ndarray:
    """Up to the normalising constant, which two laws of the same degrees share."""
    return -log_scale - (degrees + 1) / 2 * np.log1p((z * math.exp(-log_scale)) ** 2 / degrees)


@cases("degrees", [0.5, 1.0, 3.0, 8.0])
@cases(("noise", "smoothness"), [(2.0, 0.05), (2.0, 0.5), (20.0, 0.01), (50.0, 1e-4)])
def test_the_loss_is_bounded(degrees: float, noise: float, smoothness: float) -> None:
    epsilon = SmoothSensitivity(noise, smoothness=smoothness, degrees=degrees).epsilon(0.0)
    greatest = 0.0
    for change in (-smoothness, 0.0, smoothness):
        # The values differ by at most both of the sensitivities.
        shift = min(1.0, math.exp(change)) / noise
        loss = log_density(LINE, degrees, 0.0) - log_density(LINE - shift, degrees, change)
        greatest = max(greatest, float(np.abs(loss).max()))
    assert greatest <= epsilon * (1 + 1e-12)
    # Both parts are needed, though not always at one outcome.
    parts = (max(1.0, degrees) * smoothness, (degrees + 1) / (2 * math.sqrt(degrees) * noise))
    assert greatest > 0.9 * max(parts)
    assert epsilon == pytest.approx(sum(parts), rel=1e-12)


def test_parameters_are_checked() -> None:
    assert SmoothSensitivity(0.0, smoothness=0.1).epsilon(0.9) == math.inf
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ParameterError, match=r"^degrees must"):
            SmoothSensitivity(1.0, smoothness=0.1, degrees=wrong)
    with pytest.raises(ParameterError, match=r"^smoothness must"):
        SmoothSensitivity(1.0, smoothness=-0.1)
