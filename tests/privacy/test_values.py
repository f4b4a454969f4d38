"""Guarantees, receipts, relations and conversions."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

import sfumato.privacy
from sfumato.errors import ParameterError
from sfumato.privacy import (
    ZCDP,
    Exponential,
    Guarantee,
    Neighboring,
    PoissonSubsampled,
    PureDP,
    Receipt,
    analytic_gaussian_stddev,
    gdp_delta,
    gdp_epsilon,
    rho_for,
    zcdp_delta,
    zcdp_epsilon,
)
from tests.cases import cases

ONE = Neighboring.ADD_REMOVE


@cases(
    ("guarantee", "text"),
    [
        (Guarantee(neighboring=ONE, epsilon=0.5, delta=1e-8), "(0.5, 1e-08)-DP, add/remove one unit"),
        (Guarantee(neighboring=ONE, epsilon=0.5), "0.5-DP, add/remove one unit"),
        (
            Guarantee(neighboring=Neighboring.REPLACE_ONE, epsilon=2, order=8, delta=None),
            "(8, 2)-RDP, replace one unit",
        ),
        (
            Guarantee(neighboring=Neighboring.ZERO_OUT, rho=0.1, delta=1e-9),
            "1e-09-approximate 0.1-zCDP, zero out one unit",
        ),
        (
            Guarantee(neighboring=ONE, epsilon=1, delta=1e-6, mu=0.3),
            "(1, 1e-06)-DP and 0.3-GDP, add/remove one unit",
        ),
        (
            Guarantee(neighboring=ONE, rho=0.2, answerable_epsilon=0.25, answerable_delta=1e-9),
            "0.2-zCDP, add/remove one unit; still answers epsilon up to 0.25 at delta 1e-09",
        ),
    ],
)
def test_guarantees_read_well(guarantee: Guarantee, text: str) -> None:
    assert str(guarantee) == text


@cases(
    ("epsilon", "rho", "text"),
    [
        (1.5, 0.02, "(1.5, 4e-08)-DP or 0.02-zCDP (either accepts)"),
        (1.5, 0.0, "(1.5, 4e-08)-DP (rho is used up, epsilon still accepts)"),
        (0.0, 0.02, "0.02-zCDP (epsilon is used up, rho still accepts)"),
        (0.0, 0.0, "nothing (epsilon and rho are used up)"),
        (0.0, None, "nothing (epsilon is used up)"),
        (1.5, None, "(1.5, 4e-08)-DP"),
    ],
)
def test_what_is_left_says_what_still_accepts(epsilon: float, rho: float | None, text: str) -> None:
    answerable = max(epsilon, rho or 0.0)
    left = Guarantee(
        neighboring=ONE,
        epsilon=epsilon,
        delta=4e-8,
        rho=rho,
        answerable_epsilon=answerable,
        answerable_delta=1e-9,
    )
    assert left.amounts == text
    says = f"still answers epsilon up to {answerable:g} at delta 1e-09"
    if not answerable:
        says = "no answer at delta 1e-09 fits any more"
    assert str(left) == f"{text}, add/remove one unit; {says}"


@cases(
    ("numbers", "name"),
    [
        ({}, "guarantee"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"rho": math.nan}, "rho"),
        ({"delta": 0.1}, "guarantee"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": 1.0, "delta": True}, "delta"),
        ({"epsilon": 1.0, "neighboring": "add-remove"}, "neighboring"),
    ],
)
def test_guarantees_state_numbers(numbers: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        Guarantee(**{"neighboring": ONE, **numbers})


def test_receipts_are_values() -> None:
    one = Receipt(
        ledger="l", sequence=3, digest="0123456789abcdef", neighboring=ONE, privacy_unit="person_id"
    )
    assert one == Receipt(
        ledger="l", sequence=3, digest="0123456789abcdef", neighboring=ONE, privacy_unit="person_id"
    )
    assert str(one) == "receipt 3 of ledger l, 0123456789ab"
    with pytest.raises(AttributeError):
        one.sequence = 4  # type: ignore[misc]


def test_census_2020_certificate() -> None:
    # The certificate prints 17849145/1041158; the closed form of Bun and Steinke would give 17.90.
    assert zcdp_epsilon(293764 / 114921, 1e-10) == pytest.approx(17849145 / 1041158, abs=2e-6)


@cases("epsilon", [1e-6, 0.1, 1.0, 17.0, 1e4])
@cases("delta", [0.5, 1e-3, 1e-10, 1e-100, 1e-300])
def test_rho_for_is_the_largest_that_proves(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon < zcdp_epsilon(rho * (1 + 1e-7), delta)
    # At high orders the optimum is flat, so delta moves little with rho but much with epsilon.
    assert zcdp_delta(rho, epsilon * (1 + 1e-9)) <= delta * (1 + 1e-4)


def test_conversions_at_their_ends() -> None:
    assert rho_for(1.0, 0.0) == rho_for(0.0, 1e-6) == 0.0
    assert zcdp_epsilon(0.0, 0.0) == zcdp_delta(0.0, 0.0) == 0.0
    assert zcdp_epsilon(1.0, 0.0) == gdp_epsilon(1.0, 0.0) == gdp_epsilon(math.inf, 0.5) == math.inf
    assert gdp_epsilon(0.0, 0.0) == gdp_delta(0.0, 0.0) == 0.0
    assert gdp_delta(math.inf, 5.0) == 1.0
    assert gdp_epsilon(1e-200, 1e-300) > 0.0
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match="rho must"):
            zcdp_epsilon(bad, 0.1)
        with pytest.raises(ParameterError, match="epsilon must"):
            rho_for(bad, 0.1)
        with pytest.raises(ParameterError, match="sensitivity must"):
            analytic_gaussian_stddev(sensitivity=bad, epsilon=1.0, delta=0.1)
    with pytest.raises(ParameterError, match="delta must"):
        analytic_gaussian_stddev(sensitivity=1.0, epsilon=1.0, delta=0.0)
    with pytest.raises(ParameterError, match="delta must be reached"):
        analytic_gaussian_stddev(sensitivity=1e10, epsilon=0.0, delta=1e-300)


def test_face_names_what_it_exports() -> None:
    assert dir(sfumato.privacy) == sorted(sfumato.privacy.__all__)
    assert all(getattr(sfumato.privacy, name).__doc__ for name in sfumato.privacy.__all__)


def test_room_is_light() -> None:
    code = "import sys, sfumato.privacy as p; [getattr(p, n) for n in p.__all__]; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"scipy.stats", "scipy.optimize", "duckdb", "pandas", "pyarrow"} & set(loaded)


def test_what_is_pure_has_quick_numbers_at_every_delta() -> None:
    run = PoissonSubsampled(PureDP(1.0), 0.1) * 5
    assert run.quick_epsilon(1e-30) == run.quick_epsilon(0.0) == run.epsilon(0.0)
    assert run.epsilon(1e-30) <= run.epsilon(0.0)
    assert run.quick_delta(run.epsilon(0.0)) == 0.0
    assert 0.0 < run.delta(0.1) < run.quick_delta(0.1) == 1.0


def test_a_pure_part_without_other_views_is_added_to_the_bound_of_the_rest() -> None:
    run = PureDP(0.25) + ZCDP(0.5)
    beside = Exponential(0.125).group(2) + ZCDP(0.5)
    for loss in (run, beside):
        assert loss.epsilon(1e-6) <= (0.25 + ZCDP(0.5).epsilon(1e-6)) * (1 + 1e-12)
        assert loss.delta(3.0) <= ZCDP(0.5).delta(2.75) * (1 + 1e-9)
