"""Steps on batches that did not come from the run's loader."""

from __future__ import annotations

import warnings

from sfumato import _check
from sfumato.learning.noise.correlated import CorrelatedNoise
from sfumato.learning.noise.noise import Noise
from sfumato.learning.training.loop.schedules import Schedules
from sfumato.learning.training.loop.steps import Steps

__all__ = ["admit_foreign"]


def admit_foreign(steps: Steps, noise: Noise, schedules: Schedules, *, first: bool) -> None:
    """Refuse such a step where it has no price; say once what its price is.

    Parameters
    ----------
    steps, noise, schedules
        The run's.
    first : bool
        Whether it is the first one.
    """
    if steps.durable:
        remedy = "iterate over the loader that make_private returned"
        rule = "come from the private loader, as a ledger was charged for its sampling"
        _check.refuse_state("batch", rule, "it came from elsewhere", remedy)
    if isinstance(noise, CorrelatedNoise) or schedules:
        rule = "come from the private loader where noise is correlated or has a schedule"
        _check.refuse_state("batch", rule, "it came from elsewhere", "iterate over the returned loader")
    if first:
        warnings.warn(
            "a batch did not come from the loader that make_private returned: such steps are accounted "
            "without amplification, as if each example were in every one of them, once, under zero-out; "
            "iterate over the returned loader",
            UserWarning,
            stacklevel=4,
        )
