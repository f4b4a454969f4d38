"""One level of Mastic within one process: both aggregators verify, agree, and give out their shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.vdaf.mastic.mastic import Mastic
from sfumato.federated.vdaf.mastic.mastic_aggregator import MasticAggregator
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["both_shares", "check_pair"]


def both_shares(
    mastic: Mastic, sides: Sequence[MasticAggregator], parameter: MasticParameter, source: RandomSource
) -> list[bytes]:
    """Return both aggregators' shares of the sums, with their noise.

    Parameters
    ----------
    mastic : Mastic
        The function.
    sides : sequence of MasticAggregator
        Both of them.
    parameter : MasticParameter
        What is asked.
    source : RandomSource
        Of the noise.

    Returns
    -------
    list of bytes
    """
    messages, passed = mastic.verifier_shares_to_message(parameter, [side.begin(parameter) for side in sides])
    agreed: NDArray[np.bool_] = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    for side in sides:
        side.count(agreed)
    return [side.aggregate_share(source) for side in sides]


def check_pair(mastic: Mastic, sides: Sequence[MasticAggregator], wanted: Sequence[MasticAggregator]) -> None:
    """Refuse aggregators with other noise, or at other levels, than a loss is of, and sums that would wrap.

    Parameters
    ----------
    mastic : Mastic
        The function.
    sides : sequence of MasticAggregator
        What was passed.
    wanted : sequence of MasticAggregator
        What a plan makes.

    Raises
    ------
    ParameterError
        If they differ, or their reports could sum to a quarter of the modulus: above half of it, which noise
        may add to, a sum is read as a negative one.
    """
    if len(sides) != 2:
        _check.refuse("len(sides)", "be 2", len(sides), "pass both aggregators")
    remedy = "pass plan.aggregator(key, 0, used_keys) and plan.aggregator(key, 1, used_keys)"
    for side, other in zip(sides, wanted, strict=True):
        _check.instance("sides", side, MasticAggregator, remedy)
        if not side.serves(other):
            _check.refuse_type("sides", "be aggregators 0 and 1 of this plan", side, remedy)
    most, largest = mastic.circuit.field.modulus // 4, mastic.circuit.extent.linf
    for side in sides:
        if side.received * largest > most:
            rule = f"be at most {most // largest} for weights up to {largest}"
            _check.refuse("received reports", rule, side.received, "split them, or scale the weights down")
