"""The bins of normal pairs against their masses to 400 digits, by both rules of integration."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np

from sfumato.privacy.pairs.noise.normal import NormalPair
from tests.cases import cases

DIGITS = 400
"""Far out the mass of a bin is a difference of numbers near 2."""


@cases("width", [1.0, 0.3, 0.05, 1e-3, 1e-8])
@cases("mu", [1e-6, 0.03, 0.5, 1.0, 4.0, 20.0])
def test_masses_and_losses_are_within_their_errors(mu: float, width: float) -> None:
    for start in (-8.9, -1.3, 0.0, mu, mu + 8.0):
        cuts = np.array([start, start + 0.37 * width, start + width])
        halves, middles = 0.5 * np.diff(cuts), 0.5 * (cuts[1:] + cuts[:-1])
        product = float((halves * (np.abs(middles) + mu + 3)).max())
        if product > 3:
            continue
        points = NormalPair(mu).bins(cuts, swapped=False).points
        with mpmath.workdps(DIGITS):
            for i, (left, right) in enumerate(itertools.pairwise(cuts)):
                log_p, log_q = (
                    mpmath.log(
                        mpmath.erfc((left - m) / mpmath.sqrt(2)) - mpmath.erfc((right - m) / mpmath.sqrt(2))
                    )
                    for m in (mpmath.mpf(mu), mpmath.mpf(0))
                )
                assert abs(log_p - mpmath.log(2) - points.log_p[i]) <= points.mass_error[i]
                assert abs(log_p - log_q - points.loss[i]) <= points.loss_error[i]
