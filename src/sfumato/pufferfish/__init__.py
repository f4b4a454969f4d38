"""Pufferfish privacy: secrets and correlations said out loud.

Differential privacy hides one record. Where records depend on one another, such as the minutes of one
person's day, the others still say much of it. Pufferfish privacy names the secrets, the pairs of them that
must look alike, and the class of data models under which they do. Its guarantee is no differential privacy:
it has no ``privacy_loss``, and it is void outside of its class of models.

>>> from sfumato import pufferfish
>>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])
>>> quilt = pufferfish.MarkovQuilt(chain=chain, length=100, lipschitz=1.0, epsilon=1.0)
>>> round(quilt.scale, 4), quilt.group_scale
(13.0219, 100.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.pufferfish.chains.chain_classes import MarkovChainClass, MarkovChainInterval
    from sfumato.pufferfish.chains.markov_chain import MarkovChain
    from sfumato.pufferfish.chains.quilt_run import QuiltRun
    from sfumato.pufferfish.models.bayesian_network import BayesianNetwork
    from sfumato.pufferfish.models.data_models import (
        DataModel,
        IndependentRows,
        JointDistribution,
        MarkovSequence,
        Sampler,
    )
    from sfumato.pufferfish.models.distance import NumberDistribution, ProbabilityBox, wasserstein_infinity
    from sfumato.pufferfish.neighborhoods.relations import (
        GroupNeighboring,
        HouseholdNeighboring,
        NetworkNeighboring,
    )
    from sfumato.pufferfish.quilts.influence import max_influence
    from sfumato.pufferfish.quilts.markov_quilt import MarkovQuilt
    from sfumato.pufferfish.quilts.network_quilt import NetworkQuilt
    from sfumato.pufferfish.release.accountant import PufferfishAccountant
    from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
    from sfumato.pufferfish.release.mechanism import PufferfishMechanism, PufferfishRelease
    from sfumato.pufferfish.secrets.specification import ConditionalPair, Secret, Specification
    from sfumato.pufferfish.secrets.verification import Verification, protects
    from sfumato.pufferfish.transport.attribute import GaussianAttributeMechanism
    from sfumato.pufferfish.transport.wasserstein import GeneralWasserstein, WassersteinMechanism

__all__ = [
    "BayesianNetwork",
    "ConditionalPair",
    "DataModel",
    "GaussianAttributeMechanism",
    "GeneralWasserstein",
    "GroupNeighboring",
    "HouseholdNeighboring",
    "IndependentRows",
    "JointDistribution",
    "MarkovChain",
    "MarkovChainClass",
    "MarkovChainInterval",
    "MarkovQuilt",
    "MarkovSequence",
    "NetworkNeighboring",
    "NetworkQuilt",
    "NumberDistribution",
    "ProbabilityBox",
    "PufferfishAccountant",
    "PufferfishGuarantee",
    "PufferfishMechanism",
    "PufferfishRelease",
    "QuiltRun",
    "Sampler",
    "Secret",
    "Specification",
    "Verification",
    "WassersteinMechanism",
    "max_influence",
    "protects",
    "wasserstein_infinity",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "BayesianNetwork": "sfumato.pufferfish.models.bayesian_network",
        "ConditionalPair": "sfumato.pufferfish.secrets.specification",
        "DataModel": "sfumato.pufferfish.models.data_models",
        "GaussianAttributeMechanism": "sfumato.pufferfish.transport.attribute",
        "GeneralWasserstein": "sfumato.pufferfish.transport.wasserstein",
        "GroupNeighboring": "sfumato.pufferfish.neighborhoods.relations",
        "HouseholdNeighboring": "sfumato.pufferfish.neighborhoods.relations",
        "IndependentRows": "sfumato.pufferfish.models.data_models",
        "JointDistribution": "sfumato.pufferfish.models.data_models",
        "MarkovChain": "sfumato.pufferfish.chains.markov_chain",
        "MarkovChainClass": "sfumato.pufferfish.chains.chain_classes",
        "MarkovChainInterval": "sfumato.pufferfish.chains.chain_classes",
        "MarkovQuilt": "sfumato.pufferfish.quilts.markov_quilt",
        "MarkovSequence": "sfumato.pufferfish.models.data_models",
        "NetworkNeighboring": "sfumato.pufferfish.neighborhoods.relations",
        "NetworkQuilt": "sfumato.pufferfish.quilts.network_quilt",
        "NumberDistribution": "sfumato.pufferfish.models.distance",
        "ProbabilityBox": "sfumato.pufferfish.models.distance",
        "PufferfishAccountant": "sfumato.pufferfish.release.accountant",
        "PufferfishGuarantee": "sfumato.pufferfish.release.guarantee",
        "PufferfishMechanism": "sfumato.pufferfish.release.mechanism",
        "PufferfishRelease": "sfumato.pufferfish.release.mechanism",
        "QuiltRun": "sfumato.pufferfish.chains.quilt_run",
        "Sampler": "sfumato.pufferfish.models.data_models",
        "Secret": "sfumato.pufferfish.secrets.specification",
        "Specification": "sfumato.pufferfish.secrets.specification",
        "Verification": "sfumato.pufferfish.secrets.verification",
        "WassersteinMechanism": "sfumato.pufferfish.transport.wasserstein",
        "max_influence": "sfumato.pufferfish.quilts.influence",
        "protects": "sfumato.pufferfish.secrets.verification",
        "wasserstein_infinity": "sfumato.pufferfish.models.distance",
    },
)
