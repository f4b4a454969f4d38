"""Respondents whose marginals are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.local import Domain
from sfumato.local.marginals.fourier import FourierMarginals
from sfumato.local.marginals.sampled import SampledMarginals

SIZES = (2, 3, 2, 5)
DOMAINS = [Domain(range(size)) for size in SIZES]
KINDS = np.array([[0, 0, 0, 4], [1, 2, 1, 0], [0, 1, 1, 2], [1, 0, 0, 4], [0, 2, 1, 1]])
PARTS = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def counts(people: int) -> NDArray[np.int64]:
    return np.asarray(np.rint(PARTS * people), np.int64)


def truth(*attributes: int) -> NDArray[np.float64]:
    found = np.zeros([SIZES[at] for at in attributes])
    np.add.at(found, tuple(KINDS[:, list(attributes)].T), PARTS)
    return found


def protocols(epsilon: float) -> list[Any]:
    """By coefficients, by all pairs, and by two wide tables and a narrow one within one of them."""
    common: dict[str, Any] = {"epsilon": epsilon, "domains": DOMAINS}
    return [
        FourierMarginals(order=2, **common),
        SampledMarginals.every(2, **common),
        SampledMarginals(views=[(0, 1, 2), (0, 1, 3), (0, 3)], **common),
    ]
