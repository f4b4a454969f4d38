"""The published certificate of the 2020 Census redistricting data, to its printed digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Census2020, CountBound, Hierarchy, TopDown, UnitCounts
from tests.cases import cases
from tests.run_time import run_time

LEVELS = ["state", "county", "tract", "block_group", "block"]
if run_time(__name__):
    US = Hierarchy.from_table(
        pa.table({name: [f"{name}{i}" for i in range(3)] for name in LEVELS}), LEVELS, root="us"
    )


def test_the_certificates_epsilons_come_out() -> None:
    assert f"{Census2020.epsilon():.4f}" == f"{17849145 / 1041158:.4f}" == "17.1436"
    found = {level: f"{epsilon:.2f}" for level, epsilon in Census2020.level_epsilons().items()}
    assert found == {
        "block_group": "2.93",
        "tract": "9.38",
        "county": "11.70",
        "state": "13.05",
        "us": "16.89",
    }
    assert Census2020.rho == Census2020.rho.__class__(542, 339) ** 2


def test_the_published_shares_are_whole_and_give_the_certificates_epsilons() -> None:
    assert list(Census2020.shares) == list(Census2020.levels)
    assert all(len(row) == 11 and sum(row) == 1 for row in Census2020.shares.values())
    assert Census2020.shares["state"][0] == Fraction(3773, 4097)
    assert Census2020.shares["block"][10] == Fraction(3945, 4097)
    assert Census2020.shares["tract"][6] == Fraction(1933, 4102)
    assert Census2020.shares["us"][:2] == (Fraction(0), Fraction(52, 4097))
    columns = {column: f"{epsilon:.3f}" for column, epsilon in Census2020.column_epsilons().items()}
    assert columns == {"hhgq": "7.244", "votingage": "7.566", "hispanic": "10.038", "cenrace": "10.084"}
    levels = [f"{epsilon:.3f}" for epsilon in Census2020.level_epsilons().values()]
    assert levels == ["2.926", "9.380", "11.704", "13.054", "16.889"]
    mechanism = Census2020.mechanism(US)
    assert mechanism.stddev("state") == pytest.approx(1.0996, abs=1e-3)
    whole = Fraction(1440, 4099) * Fraction(3773, 4097) * Census2020.rho  # of the states' totals
    [sigma] = [n.sigma for n in mechanism._noise(Census2020.rho) if (n.depth, n.query) == (1, 0)]
    assert float(sigma**2 * whole) == pytest.approx(1, rel=1e-8)
    assert not [n for n in mechanism._noise(Census2020.rho) if (n.depth, n.query) == (0, 0)]


def mean_exponential(t: Any, variance: float) -> Any:
    """The moment generating function of the discrete Gaussian with this parameter, from its masses."""
    x = np.arange(-40 - int(12 * variance**0.5), 41 + int(12 * variance**0.5))[:, None]
    masses = np.exp(-(x**2) / (2 * variance))
    return (masses * np.exp(t * x)).sum(axis=0) / masses.sum()


def exact_delta(epsilon: float, mechanism: TopDown) -> float:
    r"""Return delta for two neighbors of which one person is in other cells and places.

    The loss is a sum of :math:`(d^2 + 2 d x) / 2 \sigma^2` over all counts that move, by d = 1 or -1, with
    noise x. With its moment generating function M, delta is the integral of
    :math:`M(z) e^{-z \epsilon} / z (z + 1)` along a line to the right of 0, over :math:`2 \pi i` (the
    transform of :math:`(1 - e^{-y})_+`). M falls as a Gaussian there, and the rule of equal steps converges
    exponentially.
    """
    rho, step = float(Census2020.rho), 1 / 16
    z = (epsilon - rho) / (2 * rho) + 1j * np.arange(0, 5, step)
    found = np.exp(-z * epsilon) / (z * (z + 1))
    for each in mechanism._noise(Census2020.rho):
        variance = float(each.sigma**2)
        moved = np.exp(z / (2 * variance)) * mean_exponential(z / variance, variance)
        found = found * moved**each.l2_squared
    found[0] /= 2
    return float(found.real.sum() * step / np.pi)


@cases(("shares", "most"), [(None, 16.82), ([1] * 11, 16.52)])
def test_the_tight_reading_is_that_of_the_noise_as_it_is_drawn(shares: Any, most: float) -> None:
    """The exact epsilon is 16.4652 for both; the accountant proves a little more, the certificate 17.14."""
    mechanism = Census2020.mechanism(US, shares)
    loss = mechanism.privacy_loss
    assert loss.zcdp().rho <= float(Census2020.rho) * (1 + 1e-12)
    assert loss.zcdp().rho == pytest.approx(float(Census2020.rho), rel=1e-8)
    assert exact_delta(16.4652, mechanism) < Census2020.delta < exact_delta(16.4651, mechanism)
    assert 16.4652 < loss.epsilon(Census2020.delta) < most < Census2020.epsilon()
    with mpmath.workdps(40):  # continuous noise of the same rho
        mu, e = mpmath.sqrt(2 * mpmath.mpf(293764) / 114921), mpmath.mpf("16.4652")
        normal = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
    assert exact_delta(16.4652, mechanism) == pytest.approx(float(normal), rel=1e-7)


def test_a_columns_epsilon_comes_from_the_queries_that_have_it() -> None:
    alone = {query: [float(i == query) for i in range(11)] for query in (0, 4, 9)}
    assert Census2020.column_epsilons(alone[0]) == dict.fromkeys(Census2020.domain(), 0.0)
    recoded = Census2020.column_epsilons(alone[4])
    assert recoded == {"hhgq": Census2020.epsilon(), "votingage": 0, "hispanic": 0, "cenrace": 0}
    assert Census2020.column_epsilons(alone[9])["hhgq"] == 0
    assert len(set(Census2020.column_epsilons(alone[9]).values())) == 2
    table = dict.fromkeys(Census2020.levels, [Fraction(1, 11)] * 11)
    assert Census2020.column_epsilons(table) == Census2020.column_epsilons([1] * 11)


@cases(
    ("change", "message"),
    [
        (
            {"block": [Fraction(1, 10)] * 11},
            "shares must sum to 1 exactly on the level 'block', but they sum",
        ),
        ({"tract": [0.1] * 9 + [0.05] * 2}, "shares must sum to 1 exactly on the level 'tract'"),
        ({"us": [Fraction(1, 10)] * 10}, "shares must be 11 numbers on each level"),
        ({"us": "11111111111"}, "shares must be 11 numbers on each level"),
        ({"us": [2, -1] + [0] * 9}, "shares must be"),
        ({"land": [Fraction(1, 11)] * 11}, "shares must have an entry for each of"),
    ],
)
def test_a_table_of_shares_is_checked(change: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Census2020.mechanism(US, {**Census2020.shares, **change})


def test_proportions_that_are_all_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="shares must not all be 0"):
        Census2020.column_epsilons([0] * 11)


def test_the_preset_runs_and_states_stay_exact() -> None:
    counts = UnitCounts(np.arange(60) % 3, np.arange(60) * 33, np.arange(60) % 5)
    facilities = [0, 2, 1, 0, 0, 0, 0, 0]  # people at least; no housing of the last kind in one block
    bounds = [
        CountBound("block", {"block0": facilities}, {"block1": [900] * 7 + [0]}, columns=["hhgq"]),
        CountBound("block", upper={"block2": 900}),
    ]
    released = Census2020.mechanism(US, bounds=bounds).release(counts, rng=1)
    exact = np.bincount(np.arange(60) % 3, weights=np.arange(60) % 5)
    kinds = released.counts("block", "hhgq")
    assert (kinds[0] >= facilities).all()
    assert kinds[1, 7] == 0
    assert released.counts("state").tolist() == exact.tolist()
    assert released.outside_guarantee == ("the total at each state",)
    races = Census2020.domain()["cenrace"].labels
    assert (len(set(races)), races[:2], races[6], races[-1]) == (
        63, ("white", "black"), "white+black", "white+black+aian+asian+nhpi+other"
    )  # fmt: skip
    other = Hierarchy.from_table(pa.table({"state": ["a"]}), ["state"], root="us")
    with pytest.raises(ParameterError, match="levels must be those of the Census"):
        Census2020.mechanism(other)
