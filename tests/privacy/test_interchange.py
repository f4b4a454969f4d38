"""Losses from and to dp-accounting's events; the library's own numbers are the oracle."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MissingExtra, NeighboringMismatch, ParameterError
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Exponential,
    FixedSizeSampled,
    Gaussian,
    GaussianDP,
    Laplace,
    Neighboring,
    PoissonStopping,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    RandomStopping,
    SampledWithReplacement,
    compose,
)
from sfumato.privacy.interchange import from_dp_event, to_dp_event

try:
    import dp_accounting.pld
    import dp_accounting.rdp
    from dp_accounting import dp_event as events
except ImportError:
    events = None

needs_library = pytest.mark.skipif(events is None, reason="needs the dp-accounting extra")

NOISE = st.floats(0.5, 50.0)
LEAVES = st.one_of(
    NOISE.map(Gaussian),
    NOISE.map(Laplace),
    NOISE.map(ZCDP),
    st.builds(DiscreteLaplace, NOISE, st.integers(1, 5)),
)
SAMPLED = st.builds(PoissonSubsampled, LEAVES, st.floats(0.0, 1.0))
TERMS = st.tuples(st.one_of(LEAVES, SAMPLED), st.integers(0, 9))


@needs_library
@given(st.lists(TERMS, max_size=5))
def test_a_loss_comes_back_as_it_was_or_barely_larger(terms: list[tuple[PrivacyLoss, int]]) -> None:
    loss = compose(term * count for term, count in terms)
    back = from_dp_event(to_dp_event(loss))
    assert from_dp_event(to_dp_event(back)) == back
    if all(isinstance(term, Gaussian | Laplace | ZCDP) for term, _ in loss.terms):
        assert back == loss
    assert sorted(count for _, count in back.terms) == sorted(count for _, count in loss.terms)


@needs_library
def test_samples_of_fixed_size_come_back() -> None:
    base = Gaussian(1.5, neighboring=Neighboring.REPLACE_ONE)
    for loss in (FixedSizeSampled(base, 50, 1000) * 7, SampledWithReplacement(base, 50, 1000)):
        event = to_dp_event(loss)
        assert from_dp_event(event, neighboring=Neighboring.REPLACE_ONE) == loss
        with pytest.raises(NeighboringMismatch):
            from_dp_event(event)


@needs_library
def test_randomized_response_at_the_ends_of_its_parameter_is_read_upwards() -> None:
    def read(parameter: float) -> float:
        event = events.RandomizedResponseDpEvent(parameter, 50)
        return from_dp_event(event, neighboring=Neighboring.REPLACE_ONE).pure().epsilon

    assert read(1.0) == 0.0
    assert 0.0 < read(1 - 2.0**-53) < 1e-14
    assert 717.7134 < read(1e-310) < 717.7135


@needs_library
def test_events_of_the_library_are_priced_as_it_prices_them() -> None:
    samples = [
        events.GaussianDpEvent(2.0),
        events.SelfComposedDpEvent(events.LaplaceDpEvent(10.0), 20),
        events.DiscreteLaplaceDpEvent(0.25, 2),
        events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.5)), 40),
        events.ComposedDpEvent(
            [
                events.NoOpDpEvent(),
                events.GaussianDpEvent(5.0),
                events.LaplaceDpEvent(7.0),
            ]
        ),
    ]
    for event in samples:
        accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
        theirs = accountant.compose(event).get_epsilon(1e-5)
        lower, upper, _ = from_dp_event(event).epsilon_interval(1e-5)
        assert lower <= theirs
        assert upper == pytest.approx(theirs, rel=3e-3)


@needs_library
def test_the_other_events_mean_what_they_say() -> None:
    assert from_dp_event(events.NoOpDpEvent()) == compose([])
    assert isinstance(to_dp_event(compose([])), events.NoOpDpEvent)
    assert from_dp_event(events.NonPrivateDpEvent()).quick_epsilon(0.5) == float("inf")
    assert from_dp_event(events.ZCDpEvent(0.3)) == ZCDP(0.3)
    one = from_dp_event(events.GaussianDpEvent(1.0), neighboring=Neighboring.REPLACE_ONE)
    assert one == Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE)


@needs_library
@given(st.floats(0.01, 1.0), st.integers(2, 20))
def test_randomized_response_keeps_its_epsilon(noise: float, categories: int) -> None:
    event = events.RandomizedResponseDpEvent(noise, categories)
    loss = from_dp_event(event, neighboring=Neighboring.REPLACE_ONE)
    truth = math.log1p(categories * (1 - noise) / noise)
    assert truth <= loss.epsilon(0.0) <= truth + 1e-12
    back = to_dp_event(loss)
    assert back.num_buckets == categories
    assert back.noise_parameter == pytest.approx(noise, rel=1e-12)
    assert back.noise_parameter <= noise
    with pytest.raises(NeighboringMismatch, match="must be replace-one"):
        from_dp_event(event)


@dataclass(frozen=True)
class EpsilonDeltaDpEvent:
    """As the library has it after 0.6, like the three that follow."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class DiscreteGaussianDpEvent:
    sigma: float
    sensitivity: float = 1.0
    dimension: int | None = None


@dataclass(frozen=True)
class ExponentialMechanismDpEvent:
    epsilon: float


@dataclass(frozen=True)
class PermuteAndFlipDpEvent:
    epsilon: float


LATER = (EpsilonDeltaDpEvent, DiscreteGaussianDpEvent, ExponentialMechanismDpEvent, PermuteAndFlipDpEvent)


@needs_library
def test_events_of_later_versions_go_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[Any, PrivacyLoss]] = [
        (EpsilonDeltaDpEvent(0.5, 1e-6), ApproximateDP(0.5, 1e-6)),
        (EpsilonDeltaDpEvent(0.5, 0.0), PureDP(0.5)),
        (DiscreteGaussianDpEvent(2.5, 3, 1), DiscreteGaussian(Fraction(5, 2), 3)),
        (DiscreteGaussianDpEvent(2.5, 2.0), DiscreteGaussianVector(Fraction(5, 2), 4)),
        (ExponentialMechanismDpEvent(0.7), Exponential(0.7)),
    ]
    for cls in LATER:
        if hasattr(events, cls.__name__):
            pytest.skip("the library has the classes itself")
    for _, loss in pairs:
        with pytest.raises(ParameterError, match="loss must have parts that both libraries know, got '"):
            to_dp_event(loss)
    for cls in LATER:
        monkeypatch.setattr(events, cls.__name__, cls, raising=False)
    for event, loss in pairs:
        assert from_dp_event(event) == loss
        assert from_dp_event(to_dp_event(loss)) == loss
    # A change of integers whose square is below 2.5 * 2.5 has one of at most 6; of one integer, 2.
    assert from_dp_event(DiscreteGaussianDpEvent(2.5, 2.5)) == DiscreteGaussianVector(Fraction(5, 2), 6)
    assert from_dp_event(DiscreteGaussianDpEvent(2.5, 2.5, 1)) == DiscreteGaussian(Fraction(5, 2), 2)
    assert from_dp_event(DiscreteGaussianDpEvent(2.5, 0.5)) == compose([])
    vector = DiscreteGaussianVector(3, 7)
    assert from_dp_event(to_dp_event(vector)) == vector
    assert from_dp_event(PermuteAndFlipDpEvent(0.7)) == PureDP(0.7)


@needs_library
def test_a_tree_is_as_many_gaussians_as_it_has_levels() -> None:
    for steps, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (1000, 10), ([3, 1024, 5], 11), ([], 0)):
        event = events.SingleEpochTreeAggregationDpEvent(2.0, steps)
        loss = from_dp_event(event, neighboring=Neighboring.ZERO_OUT)
        assert loss == Gaussian(2.0, neighboring=Neighboring.ZERO_OUT) * levels
    # Counted: of n leaves, how many complete nodes hold one.
    for steps in range(1, 70):
        most = max(sum((leaf >> level) + 1 <= steps >> level for level in range(8)) for leaf in range(steps))
        assert most == steps.bit_length()
    with pytest.raises(NeighboringMismatch, match="must be zero-out"):
        from_dp_event(events.SingleEpochTreeAggregationDpEvent(2.0, 4))


@needs_library
def test_a_random_number_of_runs_keeps_its_mean() -> None:
    base = events.GaussianDpEvent(4.0)
    for shape in (0.0, 0.5, 1.0, 3.0):
        for mean in (1.5, 10.0, 1e6):
            event = events.RepeatAndSelectDpEvent(base, mean, shape)
            loss = from_dp_event(event)
            assert isinstance(loss, RandomStopping)
            gamma = loss.stopping_probability
            if shape == 0:
                found = (1 / gamma - 1) / -math.log(gamma)
            else:
                found = shape * (1 - gamma) / (gamma * (1 - gamma**shape))
            assert found == pytest.approx(mean, rel=1e-9)
            assert loss.log_mean >= math.log(mean)
            accountant = dp_accounting.rdp.RdpAccountant()
            theirs = accountant.compose(event).get_epsilon(1e-6)
            assert loss.epsilon(1e-6) <= theirs * 1.01
            back = to_dp_event(loss)
            assert back.mean == pytest.approx(mean, rel=1e-9)
    assert from_dp_event(events.RepeatAndSelectDpEvent(base, 1.0, 1.0)) == Gaussian(4.0)
    poisson = events.RepeatAndSelectDpEvent(base, 5.0, math.inf)
    assert from_dp_event(poisson) == PoissonStopping(Gaussian(4.0), 5.0)
    assert from_dp_event(to_dp_event(from_dp_event(poisson))) == PoissonStopping(Gaussian(4.0), 5.0)
    with pytest.raises(ParameterError, match="mean must be at least 1"):
        from_dp_event(events.RepeatAndSelectDpEvent(base, 0.5, 1.0))


class Stranger:
    """Not an event."""


@needs_library
def test_what_only_one_side_knows_is_refused_by_name() -> None:
    unknown: list[Any] = [
        events.UnsupportedDpEvent(),
        events.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]),
        events.ComposedDpEvent([events.UnsupportedDpEvent()]),
        Stranger(),
        None,
    ]
    for event in unknown:
        with pytest.raises(ParameterError, match="event must be of a class that both libraries know, got "):
            from_dp_event(event)
    derived = type("GaussianDpEvent", (events.GaussianDpEvent,), {})
    with pytest.raises(ParameterError, match="event must be of a class"):
        from_dp_event(derived(1.0))
    with pytest.raises(ParameterError, match="xi must be 0"):
        from_dp_event(events.ZCDpEvent(0.3, 0.1))
    for loss in (GaussianDP(1.0), Gaussian(1.0) + GaussianDP(2.0)):
        with pytest.raises(ParameterError, match="loss must have parts that both libraries know, got '"):
            to_dp_event(loss)


@needs_library
def test_sampling_several_mechanisms_at_once_is_refused() -> None:
    pair = events.ComposedDpEvent([events.GaussianDpEvent(1.0), events.LaplaceDpEvent(1.0)])
    with pytest.raises(ParameterError, match="loss must be one mechanism"):
        from_dp_event(events.PoissonSampledDpEvent(0.1, pair))
    with pytest.raises(NeighboringMismatch):
        from_dp_event(
            events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.0)),
            neighboring=Neighboring.REPLACE_ONE,
        )


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for call in (lambda: to_dp_event(Gaussian(1.0)), lambda: from_dp_event(object())):
        with pytest.raises(MissingExtra, match=r"pip install 'sfumato\[dp-accounting\]'"):
            call()


def test_the_library_is_only_imported_on_use() -> None:
    code = "import sys, sfumato.privacy.interchange; print('dp_accounting' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
