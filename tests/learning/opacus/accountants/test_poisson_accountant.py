"""The accountants by Opacus's names, against an independent one and by their own laws."""

from __future__ import annotations

from typing import Any

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from sfumato.errors import ParameterError
from sfumato.learning.opacus.accountants import (
    GaussianAccountant,
    PoissonAccountant,
    PRVAccountant,
    RDPAccountant,
    create_accountant,
)
from sfumato.learning.opacus.accountants.utils import get_noise_multiplier


def test_epsilon_is_that_of_another_accountant() -> None:
    accountant, other = RDPAccountant(), PLDAccountant(value_discretization_interval=1e-3)
    for noise, rate, count in ((1.0, 0.02, 200), (0.9, 0.01, 100)):
        for _ in range(count):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
        other.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count))
    assert accountant.history == [(1.0, 0.02, 200), (0.9, 0.01, 100)]
    assert len(accountant) == 300
    for delta in (1e-3, 1e-5):
        assert accountant.get_epsilon(delta) == pytest.approx(other.get_epsilon(delta), rel=1e-2)


def test_all_three_names_are_one_and_nothing_costs_nothing() -> None:
    assert RDPAccountant is PRVAccountant is GaussianAccountant is PoissonAccountant
    assert all(isinstance(create_accountant(name), PoissonAccountant) for name in ("rdp", "gdp", "prv"))
    accountant = create_accountant("prv")
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.step(noise_multiplier=2.0, sample_rate=1.0)
    again = PRVAccountant()
    again.load_state_dict(accountant.state_dict())
    assert again.history == [(2.0, 1.0, 1)]
    again.step(noise_multiplier=2.0, sample_rate=1.0)
    assert accountant.get_epsilon(1e-5) < again.get_epsilon(1e-5)


def test_the_noise_found_meets_its_target_and_less_does_not() -> None:
    noise = get_noise_multiplier(target_epsilon=3.0, target_delta=1e-4, sample_rate=1 / 49, epochs=2)
    for factor, meets in ((1.0, True), (0.999, False)):
        accountant = PRVAccountant()
        for _ in range(98):
            accountant.step(noise_multiplier=noise * factor, sample_rate=1 / 49)
        assert (accountant.get_epsilon(1e-4) <= 3.0) is meets
    steps = get_noise_multiplier(target_epsilon=3.0, target_delta=1e-4, sample_rate=1 / 49, steps=98)
    assert steps == noise


def test_wrong_arguments_are_refused() -> None:
    usual: Any = {"target_epsilon": 1.0, "target_delta": 1e-5, "sample_rate": 0.1}
    for refused, message in (
        (lambda: create_accountant("moments"), "mechanism must be 'rdp', 'gdp' or 'prv'"),
        (lambda: PRVAccountant().step(noise_multiplier=-1.0, sample_rate=0.1), "noise_multiplier must be"),
        (lambda: PRVAccountant().step(noise_multiplier=1.0, sample_rate=1.5), "sample_rate must be from 0"),
        (lambda: PRVAccountant().load_state_dict({"history": [(1.0, 2.0, 3)]}), "sample_rate must be from"),
        (lambda: get_noise_multiplier(**usual), "steps must be given, or epochs"),
        (lambda: get_noise_multiplier(**usual, epochs=1, steps=1), "steps must be given, or epochs"),
        (lambda: get_noise_multiplier(**usual, steps=1, accountant="x"), "accountant must be 'rdp'"),
        (lambda: get_noise_multiplier(**(usual | {"sample_rate": 0.0}), steps=1), "sample_rate must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            refused()
