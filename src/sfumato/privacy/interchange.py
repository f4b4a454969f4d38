"""Losses from and to the events of Google's dp-accounting, for the nodes that both know.

An event says what was run, as a loss does, but not which relation is protected: with dp-accounting, the
accountant states that. What has no equal on the other side is refused, never approximated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from sfumato import _check
from sfumato.errors import MissingExtra, NeighboringMismatch
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import above, below
from sfumato.privacy.leaves.declared import ZCDP
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement

__all__ = ["from_dp_event", "to_dp_event"]

_MAX_DEPTH = 64


def from_dp_event(event: Any, *, neighboring: Neighboring = Neighboring.ADD_REMOVE) -> PrivacyLoss:
    """Return the loss of a ``dp_accounting.DpEvent``.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian, Laplace, discrete Laplace, randomized response, rho-zCDP, no-op and non-private events;
        composed, self-composed and Poisson-sampled ones, and samples of fixed size with and without
        replacement.
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
        under another than replace-one.

    Notes
    -----
    Guarantee: the loss is that of the mechanism which the event's class documents, with the same parameters,
    under the relation that is passed. Poisson sampling of several mechanisms on one sample is refused: it is
    not the composition of sampled mechanisms.

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
        Of Gaussian, Laplace, discrete Laplace, randomized response and rho-zCDP leaves, and Poisson samples
        and samples of fixed size of them.

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


_READERS: Mapping[str, _Reader] = {
    "ComposedDpEvent": lambda event, _, inner: compose(map(inner, event.events)),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "GaussianDpEvent": lambda event, relation, _: Gaussian(event.noise_multiplier, neighboring=relation),
    "LaplaceDpEvent": lambda event, relation, _: Laplace(event.noise_multiplier, neighboring=relation),
    "NoOpDpEvent": lambda event, relation, inner: compose([]),
    "NonPrivateDpEvent": lambda event, relation, _: Gaussian(0.0, neighboring=relation),
    "PoissonSampledDpEvent": lambda event, _, inner: PoissonSubsampled(
        inner(event.event), event.sampling_probability
    ),
    "RandomizedResponseDpEvent": _randomized_response,
    "SampledWithReplacementDpEvent": lambda event, _, inner: SampledWithReplacement(
        inner(event.event), event.sample_size, event.source_dataset_size
    ),
    "SampledWithoutReplacementDpEvent": lambda event, _, inner: FixedSizeSampled(
        inner(event.event), event.sample_size, event.source_dataset_size
    ),
    "SelfComposedDpEvent": lambda event, _, inner: inner(event.event) * event.count,
    "ZCDpEvent": _zcdp,
}


def _written(library: Any, term: PrivacyLoss) -> Any:
    writer = _WRITERS.get(type(term))
    if writer is None:
        _unknown("loss", "have parts that both libraries know", type(term).__name__)
    return writer(library, term)


_WRITERS: Mapping[type[PrivacyLoss], Callable[[Any, Any], Any]] = {
    DiscreteLaplace: lambda library, loss: (
        library.DiscreteLaplaceDpEvent(fraction_up(1 / Fraction(loss.scale)), loss.sensitivity)
        if loss.scale
        else library.NonPrivateDpEvent()
    ),
    FixedSizeSampled: lambda library, loss: library.SampledWithoutReplacementDpEvent(
        loss.population_size, loss.sample_size, _written(library, loss.loss)
    ),
    Gaussian: lambda library, loss: library.GaussianDpEvent(loss.noise_multiplier),
    Laplace: lambda library, loss: library.LaplaceDpEvent(loss.noise_multiplier),
    PoissonSubsampled: lambda library, loss: library.PoissonSampledDpEvent(
        loss.sampling_probability, _written(library, loss.loss)
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
