"""Losses from and to dp-accounting's events; the library's own numbers are the oracle."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MissingExtra, NeighboringMismatch, ParameterError
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PrivacyLoss,
    SampledWithReplacement,
    compose,
)
from sfumato.privacy.interchange import from_dp_event, to_dp_event

try:
    import dp_accounting.pld
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


class Stranger:
    """Not an event."""


@needs_library
def test_what_only_one_side_knows_is_refused_by_name() -> None:
    unknown: list[Any] = [
        events.UnsupportedDpEvent(),
        events.RepeatAndSelectDpEvent(events.GaussianDpEvent(1.0), 2.0, 1.0),
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
    for loss in (ApproximateDP(1.0, 1e-6), DiscreteGaussian(2), Gaussian(1.0) + DiscreteGaussian(2)):
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
