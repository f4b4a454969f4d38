"""All leaves and nodes of this package, and a function that reads any of them from JSON.

Reading a loss needs the class of every part that it names. This module imports them all, so that
`loss_from_json` knows what `sfumato.privacy.serialization.serialized_as` registered.
"""

from __future__ import annotations

from typing import Final, cast

from sfumato._wire import Codec
from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_gaussian_sum import DiscreteGaussianSum
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.leaves.discrete_pair import DiscretePair
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.gaussian_dp import GaussianDP
from sfumato.privacy.leaves.gaussian_sparse_vector import GaussianSparseVector
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.leaves.leaf import GroupPrivacy
from sfumato.privacy.leaves.mean_concentrated import CDP
from sfumato.privacy.leaves.noisy_iteration import NoisyIteration
from sfumato.privacy.leaves.noisy_max import ReportNoisyMax
from sfumato.privacy.leaves.profile import Profile
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.leaves.rdp_curve import RDPCurve
from sfumato.privacy.leaves.skellam import Skellam
from sfumato.privacy.leaves.smooth_noise import SmoothGaussian, SmoothLaplace
from sfumato.privacy.leaves.smooth_sensitivity import SmoothSensitivity
from sfumato.privacy.leaves.sparse_vector import SparseVector
from sfumato.privacy.leaves.staircase import Staircase
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.leaves.thresholded_sampling import ThresholdedSampling
from sfumato.privacy.leaves.trade_off import TradeOff
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.allocation import RandomAllocation
from sfumato.privacy.nodes.among_decoys import AmongDecoys
from sfumato.privacy.nodes.balls_in_bins import BallsInBins
from sfumato.privacy.nodes.block_bound import BlockBound
from sfumato.privacy.nodes.choice import AdaptiveChoice, Parallel
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.mixture import Mixture
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.poisson_records import PoissonRecords
from sfumato.privacy.nodes.poisson_replace_one import PoissonReplaceOne
from sfumato.privacy.nodes.post_processed import PostProcessed
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping
from sfumato.privacy.nodes.separated_poisson import SeparatedPoisson
from sfumato.privacy.nodes.shuffled import Shuffled
from sfumato.privacy.nodes.thresholded import DistanceTest, ThresholdedSelection
from sfumato.privacy.nodes.truncated import TruncatedPoisson
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement
from sfumato.privacy.serialization import from_text

__all__ = ["LOSS", "LOSS_CLASSES", "loss_from_json"]

LOSS_CLASSES: tuple[type[PrivacyLoss], ...] = (
    AdaptiveChoice,
    AmongDecoys,
    ApproximateDP,
    BallsInBins,
    BlockBound,
    CDP,
    GroupPrivacy,
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DiscretePair,
    DistanceTest,
    Exponential,
    FixedSizeSampled,
    Gaussian,
    GaussianDP,
    GaussianSparseVector,
    Laplace,
    Mixture,
    NoisyIteration,
    Parallel,
    PoissonRecords,
    PoissonReplaceOne,
    PoissonStopping,
    PoissonSubsampled,
    PostProcessed,
    Profile,
    PureDP,
    RDPCurve,
    RandomAllocation,
    RandomStopping,
    RandomizedResponse,
    ReportNoisyMax,
    SampledWithReplacement,
    SeparatedPoisson,
    Shuffled,
    Skellam,
    SmoothGaussian,
    SmoothLaplace,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    SupportResponse,
    ThresholdedSampling,
    ThresholdedSelection,
    TradeOff,
    ZCDP,
    TruncatedPoisson,
)
"""Every leaf and node; `Repeated` and `Composed` are apart."""


def loss_from_json(text: str) -> PrivacyLoss:
    """Read a loss that `PrivacyLoss.to_json` wrote, now or in an earlier version.

    Parameters
    ----------
    text : str
        The JSON text.

    Returns
    -------
    PrivacyLoss
        The same loss, in normal form.

    Raises
    ------
    ParameterError
        If the text is malformed, or names a node, a parameter or a version that is not known here.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> loss_from_json((Gaussian(1.5) * 3).to_json())
    Gaussian(noise_multiplier=1.5) * 3
    """
    return cast("PrivacyLoss", from_text(text))


LOSS: Final[Codec[PrivacyLoss]] = Codec(
    lambda loss: loss.to_json(), lambda _, written: loss_from_json(written)
)
"""A loss as a field of a document: the text of its own."""
