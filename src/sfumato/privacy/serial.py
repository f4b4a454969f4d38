"""Reading losses from JSON; an unknown node or parameter is refused, never skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.gaussian_dp import GaussianDP
from sfumato.privacy.leaves.gaussian_sparse_vector import GaussianSparseVector
from sfumato.privacy.leaves.iteration import NoisyIteration
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.leaves.leaf import Chained
from sfumato.privacy.leaves.mean_concentrated import CDP
from sfumato.privacy.leaves.noisy_max import MaxNoise, ReportNoisyMax
from sfumato.privacy.leaves.profile import Profile
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.leaves.rational import DiscretePair
from sfumato.privacy.leaves.rdp_curve import RDPCurve
from sfumato.privacy.leaves.smooth_noise import SmoothGaussian, SmoothLaplace
from sfumato.privacy.leaves.smooth_sensitivity import SmoothSensitivity
from sfumato.privacy.leaves.sparse_vector import SparseVector
from sfumato.privacy.leaves.staircase import Staircase
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.leaves.trade_off import TradeOff
from sfumato.privacy.loss import FORMAT, Composed, PrivacyLoss, Repeated
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.allocation import RandomAllocation
from sfumato.privacy.nodes.among_decoys import AmongDecoys
from sfumato.privacy.nodes.balls_in_bins import BallsInBins
from sfumato.privacy.nodes.block_bound import BlockBound
from sfumato.privacy.nodes.choice import AdaptiveChoice, Parallel
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.mixture import Mixture
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.processed import PostProcessed
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping
from sfumato.privacy.nodes.records import PoissonRecords
from sfumato.privacy.nodes.separated import SeparatedPoisson
from sfumato.privacy.nodes.shuffled import Shuffled
from sfumato.privacy.nodes.telltale import DistanceTest, ThresholdedSelection
from sfumato.privacy.nodes.truncated import TruncatedPoisson
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement

__all__ = ["LEAVES", "loss_from_json"]

LEAVES: tuple[Callable[..., PrivacyLoss], ...] = (
    AdaptiveChoice,
    AmongDecoys,
    ApproximateDP,
    BallsInBins,
    BlockBound,
    CDP,
    Chained,
    DiscreteGaussian,
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
    SmoothGaussian,
    SmoothLaplace,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    SupportResponse,
    ThresholdedSelection,
    TradeOff,
    ZCDP,
    TruncatedPoisson,
)
"""Every leaf and node that JSON may name, by the name of its class."""

_BY_NAME: Mapping[str, Callable[..., PrivacyLoss]] = {leaf.__name__: leaf for leaf in LEAVES}
_NAMES: Mapping[str, tuple[type[Enum], str]] = {
    "neighboring": (Neighboring, "neighboring relation"),
    "noise": (MaxNoise, "noise"),
}
_RATIONAL = re.compile(r"[0-9]+/[0-9]+")
_MAX_DEPTH = 64
_MAX_LENGTH = 2600
_REMEDY = "pass text written by to_json, in this or an earlier version of sfumato"


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
    if not isinstance(text, str):
        _refuse("be JSON text", type(text).__name__)
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except ParameterError:
        raise
    except (ValueError, RecursionError):
        _refuse("be well-formed JSON", "other text")
    if not isinstance(document, dict) or document.keys() != {"version", "loss"}:
        _refuse("be an object with version and loss", _kind(document))
    if type(document["version"]) is not int or not 1 <= document["version"] <= FORMAT:
        _refuse(f"have a version from 1 to {FORMAT}", _kind(document["version"]))
    return _loss(document["loss"], 0)


def _loss(document: Any, depth: int) -> PrivacyLoss:
    if depth > _MAX_DEPTH:
        _refuse(f"be nested at most {_MAX_DEPTH} deep", "deeper")
    if not isinstance(document, dict) or not isinstance(document.get("node"), str):
        _refuse("describe each loss as an object with a node", _kind(document))
    parameters = {name: value for name, value in document.items() if name != "node"}
    node = document["node"]
    if node == "Repeated":
        _require(node, parameters, {"loss", "count"})
        return Repeated(_loss(parameters["loss"], depth + 1), parameters["count"])
    if node == "Composed":
        _require(node, parameters, {"losses"})
        if not isinstance(parameters["losses"], list):
            _refuse("list the losses of Composed", _kind(parameters["losses"]))
        return Composed(tuple(_loss(item, depth + 1) for item in parameters["losses"]))
    return _leaf(node, parameters, depth)


def _leaf(node: str, parameters: dict[str, object], depth: int) -> PrivacyLoss:
    if node not in _BY_NAME:
        _refuse("name known nodes only", node[:40])
    values = {name: _value(name, value, depth) for name, value in parameters.items()}
    try:
        loss: PrivacyLoss = _BY_NAME[node](**values)
    except TypeError:
        _refuse(f"give {node} its parameters", ", ".join(sorted(parameters))[:200])
    # A parameter left out would take a default, whose meaning the text did not fix.
    _require(node, parameters, set(loss.parameters()))
    return loss


def _value(name: str, value: object, depth: int) -> Any:
    if isinstance(value, dict):
        return _loss(value, depth + 1)
    if isinstance(value, list):
        return tuple(_value(name, item, depth + 1) for item in value)
    if name in _NAMES:
        kind, what = _NAMES[name]
        try:
            return kind(value)
        except ValueError:
            _refuse(f"name a known {what}", _kind(value))
    if isinstance(value, str):
        if not _RATIONAL.fullmatch(value) or len(value) > _MAX_LENGTH:
            _refuse(f"write {name} as a number or as p/q", "other text")
        top, bottom = (int(part) for part in value.split("/"))
        return Fraction(top, bottom) if bottom else _refuse(f"give {name} a positive denominator", 0)
    return value


def _require(node: str, parameters: Mapping[str, object], names: set[str]) -> None:
    if parameters.keys() != names:
        _refuse(f"give {node} exactly {', '.join(sorted(names))}", ", ".join(sorted(parameters))[:200])


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = dict(pairs)
    if len(names) != len(pairs):
        _refuse("name each parameter once", "a parameter twice")
    return names


def _refuse_constant(constant: str) -> NoReturn:
    _refuse("hold finite numbers only", constant)


def _kind(value: object) -> object:
    """Return a short value as it is, and only the type of anything else."""
    return value if value is None or isinstance(value, bool | int | float) else type(value).__name__


def _refuse(rule: str, value: object) -> NoReturn:
    _check.refuse("text", rule, value, _REMEDY)
