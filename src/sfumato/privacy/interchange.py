"""Losses from and to the events of Google's dp-accounting, for the nodes that both know.

An event says what was run, as a loss does, but not which relation is protected: with dp-accounting, the
accountant states that. What has no equal on the other side is refused, never approximated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from sfumato import _check
from sfumato.errors import MissingExtra, NeighboringMismatch
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.privacy._outward import above, below
from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.random_stopping import PoissonStopping, RandomStopping
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement

__all__ = ["from_dp_event", "to_dp_event"]

_MAX_DEPTH = 64


def from_dp_event(event: Any, *, neighboring: Neighboring = Neighboring.ADD_REMOVE) -> PrivacyLoss:
    """Return the loss of a ``dp_accounting.DpEvent``.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian, Laplace, discrete Laplace, discrete Gaussian, randomized response, exponential mechanism,
        permute-and-flip, (epsilon, delta), rho-zCDP, tree aggregation, no-op and non-private events;
        composed, self-composed, repeated-and-selected and Poisson-sampled ones, and samples of fixed size
        with and without replacement.
    neighboring : Neighboring
        The relation under which the event's sensitivities are stated: that of the accountant it was made for.

    Returns
    -------
    PrivacyLoss
        In normal form.

    Raises
    ------
    MissingExtra
        Without dp-accounting.
    ParameterError
        If the event, or one inside it, is of another class, or a parameter has no equal here.
    NeighboringMismatch
        Poisson sampling under another relation than add/remove, samples of fixed size and randomized response
        under another than replace-one, tree aggregation under another than zero-out.

    Notes
    -----
    Guarantee: the loss is that of the mechanism which the event's class documents, with the same parameters,
    under the relation that is passed. A discrete Gaussian of unknown dimension is priced as a vector. Of a
    tree over n steps in which a record is in one leaf, no more nodes hold the record than n has binary
    digits, each with fresh Gaussian noise: that many Gaussians (Kairouz et al. 2021, appendix D).
    Permute-and-flip has its pure epsilon (McKenna, Sheldon 2020). A random number of runs is read from its
    mean, rounded up. Poisson sampling of several mechanisms on one sample is refused: it is not the
    composition of sampled mechanisms.

    Examples
    --------
    >>> from dp_accounting import dp_event
    >>> from_dp_event(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(2.0), 10))
    Gaussian(noise_multiplier=2.0) * 10
    """
    return _read(_library("from_dp_event"), event, neighboring, 0)


def to_dp_event(loss: PrivacyLoss) -> Any:
    """Return the ``dp_accounting.DpEvent`` of a loss; its neighboring relation is not in it.

    Parameters
    ----------
    loss : PrivacyLoss
        Of Gaussian, Laplace, discrete Laplace, discrete Gaussian, randomized response, exponential, pure,
        approximate and rho-zCDP leaves, and Poisson samples, samples of fixed size and selections of them.

    Returns
    -------
    dp_accounting.DpEvent
        To be given to an accountant that is made for ``loss.neighboring``.

    Raises
    ------
    MissingExtra
        Without dp-accounting.
    ParameterError
        If dp-accounting has no event for a part.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> to_dp_event(Gaussian(2.0)).noise_multiplier
    2.0
    """
    library = _library("to_dp_event")
    _check.instance("loss", loss, PrivacyLoss, "pass a loss such as Gaussian(1.0)")
    events = [(_written(library, term), count) for term, count in loss.terms]
    parts = [event if count == 1 else library.SelfComposedDpEvent(event, count) for event, count in events]
    if not parts:
        return library.NoOpDpEvent()
    return parts[0] if len(parts) == 1 else library.ComposedDpEvent(parts)


def _library(caller: str) -> Any:
    try:
        from dp_accounting import dp_event  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra(f"{caller} needs dp-accounting; pip install 'sfumato[dp-accounting]'") from missing
    return dp_event


def _read(library: Any, event: Any, neighboring: Neighboring, depth: int) -> PrivacyLoss:
    if depth > _MAX_DEPTH:
        rule = f"be nested at most {_MAX_DEPTH} deep"
        _check.refuse_state("event", rule, "it goes deeper", "compose fewer levels")
    name = type(event).__name__
    # The class itself, not one derived from it, whose meaning may be another.
    known = name in _READERS and type(event) is getattr(library, name, None)
    if not known:
        _unknown("event", "be of a class that both libraries know", name)

    def inner(part: Any) -> PrivacyLoss:
        return _read(library, part, neighboring, depth + 1)

    return _READERS[name](event, neighboring, inner)


_Reader = Callable[[Any, Neighboring, Callable[[Any], PrivacyLoss]], PrivacyLoss]


def _discrete_laplace(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    rate = _check.fraction("noise_parameter", event.noise_parameter, "pass an inverse scale")
    return DiscreteLaplace(1 / rate, event.sensitivity, neighboring=neighboring)


def _zcdp(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    if event.xi != 0:
        _check.refuse("xi", "be 0", event.xi, "no loss here has an additive constant in its Rényi curve")
    return ZCDP(event.rho, neighboring=neighboring)


def _randomized_response(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    if neighboring is not Neighboring.REPLACE_ONE:
        raise NeighboringMismatch(
            f"neighboring must be replace-one for a RandomizedResponseDpEvent, got {neighboring}; that "
            "no one reports is seen: pass neighboring=Neighboring.REPLACE_ONE"
        )
    parameter = _check.finite("noise_parameter", event.noise_parameter, "pass a probability")
    count = event.num_buckets
    if not 0 < parameter <= 1:
        _check.refuse(
            "noise_parameter", "be above 0 and at most 1", parameter, "without noise nothing is private"
        )
    # The truth has 1 - p + p/k, and every other bucket p/k.
    odds = count * (1 - parameter) / parameter
    # Odds that are no float are those of 1 to p.
    log_truth = math.log1p(odds) if odds < math.inf else math.log(count) - math.log(parameter)
    epsilon = above(log_truth, 8.0) if odds else 0.0
    return RandomizedResponse(epsilon, count, neighboring=neighboring)


def _noise_parameter(loss: RandomizedResponse) -> float:
    """Return the p of an event, rounded down: with more of the truth it is no less of a loss."""
    epsilon, others = loss.pure().epsilon, loss.categories - 1
    lie = math.exp(-epsilon)
    return max(0.0, below(loss.categories * lie / (1 + others * lie), 16.0)) if epsilon else 1.0


def _epsilon_delta(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    if event.delta == 0:
        return PureDP(event.epsilon, neighboring=neighboring)
    return ApproximateDP(event.epsilon, event.delta, neighboring=neighboring)


def _discrete_gaussian(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    norm = _check.non_negative("sensitivity", event.sensitivity, "pass a bound on the L2 norm of the change")
    # Integers, of which the squares of the changes add up to an integer.
    squared = math.floor(Fraction(norm) ** 2)
    if squared == 0:
        return compose([])
    if event.dimension == 1:
        return DiscreteGaussian(event.sigma, math.isqrt(squared), neighboring=neighboring)
    return DiscreteGaussianVector(event.sigma, squared, neighboring=neighboring)


def _tree_aggregation(event: Any, neighboring: Neighboring, _: object) -> PrivacyLoss:
    if neighboring is not Neighboring.ZERO_OUT:
        raise NeighboringMismatch(
            f"neighboring must be zero-out for a SingleEpochTreeAggregationDpEvent, got {neighboring}; steps "
            "keep their leaves where one record is left out: pass neighboring=Neighboring.ZERO_OUT"
        )
    given = event.step_counts if isinstance(event.step_counts, Iterable) else [event.step_counts]
    counts = [_check.integer("step_counts", steps, remedy="pass the steps of each tree") for steps in given]
    return Gaussian(event.noise_multiplier, neighboring=neighboring) * max(counts, default=0).bit_length()


def _repeat_and_select(event: Any, _: object, inner: Callable[[Any], PrivacyLoss]) -> PrivacyLoss:
    loss = inner(event.event)
    if event.shape == math.inf:
        return PoissonStopping(loss, event.mean)
    mean = _check.positive("mean", event.mean, "pass the mean number of runs")
    shape = _check.finite("shape", event.shape, "pass infinity for a Poisson number of runs")
    if mean < 1:
        _check.refuse("mean", "be at least 1", mean, "only a Poisson number of runs may be none")
    if mean == 1:
        return loss
    # With a smaller probability of stopping there are more runs, and the bound is greater.
    low, high = math.log(5e-324), -(2.0**-53)
    for _ in range(200):
        middle = 0.5 * (low + high)
        enough = RandomStopping(loss, shape, math.exp(middle)).log_mean >= above(math.log(mean), 128.0, 64.0)
        low, high = (middle, high) if enough else (low, middle)
    return RandomStopping(loss, shape, math.exp(low))


_READERS: Mapping[str, _Reader] = {
    "ComposedDpEvent": lambda event, _, inner: compose(map(inner, event.events)),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "ExponentialMechanismDpEvent": lambda event, relation, _: Exponential(
        event.epsilon, neighboring=relation
    ),
    "GaussianDpEvent": lambda event, relation, _: Gaussian(event.noise_multiplier, neighboring=relation),
    "LaplaceDpEvent": lambda event, relation, _: Laplace(event.noise_multiplier, neighboring=relation),
    "NoOpDpEvent": lambda event, relation, inner: compose([]),
    "NonPrivateDpEvent": lambda event, relation, _: Gaussian(0.0, neighboring=relation),
    "PermuteAndFlipDpEvent": lambda event, relation, _: PureDP(event.epsilon, neighboring=relation),
    "PoissonSampledDpEvent": lambda event, _, inner: PoissonSubsampled(
        inner(event.event), event.sampling_probability
    ),
    "RandomizedResponseDpEvent": _randomized_response,
    "RepeatAndSelectDpEvent": _repeat_and_select,
    "SampledWithReplacementDpEvent": lambda event, _, inner: SampledWithReplacement(
        inner(event.event), event.sample_size, event.source_dataset_size
    ),
    "SampledWithoutReplacementDpEvent": lambda event, _, inner: FixedSizeSampled(
        inner(event.event), event.sample_size, event.source_dataset_size
    ),
    "SingleEpochTreeAggregationDpEvent": _tree_aggregation,
    "SelfComposedDpEvent": lambda event, _, inner: inner(event.event) * event.count,
    "ZCDpEvent": _zcdp,
}


def _written(library: Any, term: PrivacyLoss) -> Any:
    writer = _WRITERS.get(type(term))
    needed = _NEEDED.get(type(term))
    # Some classes came with later versions of the library.
    if writer is None or (needed is not None and not hasattr(library, needed)):
        _unknown("loss", "have parts that both libraries know", type(term).__name__)
    return writer(library, term)


_NEEDED: Mapping[type[PrivacyLoss], str] = {
    ApproximateDP: "EpsilonDeltaDpEvent",
    DiscreteGaussian: "DiscreteGaussianDpEvent",
    DiscreteGaussianVector: "DiscreteGaussianDpEvent",
    Exponential: "ExponentialMechanismDpEvent",
    PoissonStopping: "RepeatAndSelectDpEvent",
    PureDP: "EpsilonDeltaDpEvent",
    RandomStopping: "RepeatAndSelectDpEvent",
}


_WRITERS: Mapping[type[PrivacyLoss], Callable[[Any, Any], Any]] = {
    ApproximateDP: lambda library, loss: library.EpsilonDeltaDpEvent(*loss.pure()),
    DiscreteGaussian: lambda library, loss: library.DiscreteGaussianDpEvent(
        fraction_down(loss.stddev), loss.sensitivity, 1
    ),
    DiscreteGaussianVector: lambda library, loss: library.DiscreteGaussianDpEvent(
        fraction_down(loss.stddev), above(math.sqrt(loss.l2_squared))
    ),
    DiscreteLaplace: lambda library, loss: (
        library.DiscreteLaplaceDpEvent(fraction_up(1 / Fraction(loss.scale)), loss.sensitivity)
        if loss.scale
        else library.NonPrivateDpEvent()
    ),
    Exponential: lambda library, loss: library.ExponentialMechanismDpEvent(loss.pure().epsilon),
    FixedSizeSampled: lambda library, loss: library.SampledWithoutReplacementDpEvent(
        loss.population_size, loss.sample_size, _written(library, loss.loss)
    ),
    Gaussian: lambda library, loss: library.GaussianDpEvent(loss.noise_multiplier),
    Laplace: lambda library, loss: library.LaplaceDpEvent(loss.noise_multiplier),
    PoissonSubsampled: lambda library, loss: library.PoissonSampledDpEvent(
        loss.sampling_probability, _written(library, loss.loss)
    ),
    PoissonStopping: lambda library, loss: library.RepeatAndSelectDpEvent(
        to_dp_event(loss.loss), loss.mean, math.inf
    ),
    PureDP: lambda library, loss: library.EpsilonDeltaDpEvent(*loss.pure()),
    RandomStopping: lambda library, loss: library.RepeatAndSelectDpEvent(
        to_dp_event(loss.loss), above(math.exp(loss.log_mean), 8.0), loss.shape
    ),
    RandomizedResponse: lambda library, loss: library.RandomizedResponseDpEvent(
        _noise_parameter(loss), loss.categories
    ),
    SampledWithReplacement: lambda library, loss: library.SampledWithReplacementDpEvent(
        loss.population_size, loss.sample_size, _written(library, loss.loss)
    ),
    ZCDP: lambda library, loss: library.ZCDpEvent(loss.rho),
}


def _unknown(name: str, rule: str, value: str) -> NoReturn:
    classes = sorted(cls.__name__ for cls in _WRITERS)
    _check.refuse(name, rule, value, f"{', '.join(classes)} and their compositions go both ways")
