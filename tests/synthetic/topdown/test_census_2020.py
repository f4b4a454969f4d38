"""The published certificate of the 2020 Census redistricting data, to its printed digits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Census2020, Hierarchy, UnitCounts
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


def test_the_loss_is_rho_under_replacement_and_its_tight_reading_is_smaller() -> None:
    mechanism = Census2020.mechanism(US, [1] * 11)
    loss = mechanism.privacy_loss
    assert loss.zcdp().rho <= float(Census2020.rho) * (1 + 1e-12)
    assert loss.zcdp().rho == pytest.approx(float(Census2020.rho), rel=1e-8)
    # 16.4652 is what continuous Gaussian noise of that rho has (mpmath); discrete noise is bounded from above
    assert 16.4652 <= loss.epsilon(Census2020.delta) < 16.6 < Census2020.epsilon()


def test_a_columns_epsilon_comes_from_the_queries_that_have_it() -> None:
    alone = {query: [float(i == query) for i in range(11)] for query in (0, 4, 9)}
    assert Census2020.column_epsilons(US, alone[0]) == dict.fromkeys(Census2020.domain(), 0.0)
    recoded = Census2020.column_epsilons(US, alone[4])
    assert recoded == {"hhgq": Census2020.epsilon(), "votingage": 0, "hispanic": 0, "cenrace": 0}
    assert Census2020.column_epsilons(US, alone[9])["hhgq"] == 0
    assert len(set(Census2020.column_epsilons(US, alone[9]).values())) == 2


def test_the_preset_runs_and_states_stay_exact() -> None:
    counts = UnitCounts(np.arange(60) % 3, np.arange(60) * 33, np.arange(60) % 5)
    released = Census2020.mechanism(US, [4] + [1] * 9 + [8]).release(counts, rng=1)
    exact = np.bincount(np.arange(60) % 3, weights=np.arange(60) % 5)
    assert released.counts("state").tolist() == exact.tolist()
    assert released.outside_guarantee == ("the total at each state",)
    races = Census2020.domain()["cenrace"].labels
    assert (len(set(races)), races[:2], races[6], races[-1]) == (
        63, ("white", "black"), "white+black", "white+black+aian+asian+nhpi+other"
    )  # fmt: skip
    other = Hierarchy.from_table(pa.table({"state": ["a"]}), ["state"], root="us")
    with pytest.raises(ParameterError, match="levels must be those of the Census"):
        Census2020.mechanism(other, [1] * 11)
