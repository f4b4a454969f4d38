"""Changes of parameters with each client's part of the noise, and what a round of them costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import canonical, parse
from sfumato.federated.distributed_noise.discrete_gaussian import DistributedDiscreteGaussian
from sfumato.federated.distributed_noise.mechanism import DistributedMechanism
from sfumato.federated.distributed_noise.poisson_binomial import DistributedPoissonBinomial
from sfumato.federated.distributed_noise.skellam import DistributedSkellam
from sfumato.federated.flower.weighted_vectors import split_shapes
from sfumato.federated.secure_aggregation.degree import security_failure_bound
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation.server import AggregatedSum
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["NoisyChanges", "read_noise", "round_loss"]

_KINDS: Final[dict[str, type[DistributedMechanism]]] = {
    "discrete-gaussian": DistributedDiscreteGaussian,
    "poisson-binomial": DistributedPoissonBinomial,
    "skellam": DistributedSkellam,
}


def read_noise(text: str) -> DistributedMechanism:
    """Return the noise whose document a text is.

    Parameters
    ----------
    text : str
        JSON that a mechanism of distributed noise wrote.

    Returns
    -------
    DistributedMechanism

    Raises
    ------
    ParameterError
        If it is no such text.
    """
    document = parse("noise", text)
    name = document.get("mechanism") if isinstance(document, dict) else None
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        _check.refuse_type("noise", "be of a known mechanism", document, "use the workflow of this version")
    return kind.from_json(document)


def round_loss(plan: SecureAggregation, noise: DistributedMechanism, colluders: int) -> PrivacyLoss:
    """Return what a round costs against the server and some colluding clients, under zero-out.

    Parameters
    ----------
    plan : SecureAggregation
        That carries the noise's messages.
    noise : DistributedMechanism
    colluders : int

    Returns
    -------
    PrivacyLoss
        That of the fewest honest survivors' noise; on a graph that is not complete, with the chance that the
        masks fail as a delta.

    Raises
    ------
    ParameterError
        If the plan does not fit the noise, or the masks do not hold against so many.
    """
    fits = (plan.length, plan.bits, plan.modular) == (noise.padded, noise.bits, True)
    if not fits or not noise.minimum_survivors <= plan.minimum_survivors <= plan.clients <= noise.clients:
        rule = "be for the plan's vectors, clients and survivors"
        _check.refuse_state("noise", rule, "it is for others", "pass noise.secure_aggregation()")
    loss = noise.loss_against(colluders)
    failure = fraction_up(
        security_failure_bound(
            plan.clients,
            degree=plan.neighbors,
            threshold=plan.shares,
            dropped=plan.clients - plan.minimum_survivors,
            corrupt=colluders,
            active=plan.active,
        )
    )
    if failure >= 1:
        rule = f"be too few to break the masks of {plan.clients} clients"
        _check.refuse("colluders", rule, colluders, "sample more clients, or raise degree and threshold")
    return loss + ApproximateDP(0.0, failure, neighboring=Neighboring.ZERO_OUT) if failure else loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyChanges:
    """How a round's changes become integers, for `ServerRound`.

    Parameters
    ----------
    noise : DistributedMechanism
    seed : bytes
        Of the rotation: public, and new for each round.
    start : sequence of ndarray
        The parameters that the clients change.
    """

    noise: DistributedMechanism
    seed: bytes
    start: Sequence[NDArray[np.float64]]

    def request_fields(self, step: str) -> Mapping[str, Any]:
        """Return what a client needs before it makes a key: it refuses too little noise then."""
        return {"noise": canonical(self.noise.to_json()), "seed": self.seed} if step == "keys" else {}

    def means(self, found: AggregatedSum, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Return the parameters, changed by the noisy sum over the number of survivors."""
        mean = self.noise.decode(found.total, self.seed) / len(found.survivors)
        changes = split_shapes(mean, shapes)
        return [np.asarray(a, np.float64) + b for a, b in zip(self.start, changes, strict=True)]
