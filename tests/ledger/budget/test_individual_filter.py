"""Per-record accounting: every record within its own limit, whatever the others contribute."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.ledger.budget.individual_filter import IndividualFilter
from sfumato.privacy.conversion import gdp_delta
from sfumato.privacy.neighboring import Neighboring
from tests.chance import accepts_only, mean_at_most

NORMS = st.lists(st.lists(st.floats(0.0, 5.0), min_size=3, max_size=3), min_size=1, max_size=12)


@given(NORMS, st.floats(0.3, 30.0))
def test_no_record_spends_more_than_its_limit_in_exact_arithmetic(
    rounds: list[list[float]], stddev: float
) -> None:
    account, exact = IndividualFilter(records=3, rho=0.5), [Fraction(0)] * 3
    for norms in rounds:
        for record, admitted in enumerate(account.admit(norms, stddev=stddev)):
            if admitted:
                exact[record] += (Fraction(norms[record]) / Fraction(stddev)) ** 2 / 2
    for record, spent in enumerate(account.spent_by_record()):
        assert exact[record] <= Fraction(float(spent)) <= Fraction(1, 2)
        left = Fraction(float(account.left_by_record()[record]))
        assert left <= Fraction(1, 2) - exact[record]


@given(NORMS)
def test_who_takes_part_does_not_depend_on_other_records(rounds: list[list[float]]) -> None:
    together, alone = IndividualFilter(records=3, rho=0.5), IndividualFilter(records=1, rho=0.5)
    for norms in rounds:
        assert together.admit(norms, stddev=2.0)[1] == alone.admit(norms[1:2], stddev=2.0)[0]


def test_a_record_that_no_longer_fits_may_still_pay_less() -> None:
    account = IndividualFilter(records=2, rho=1.0)
    assert account.admit([1.4, 0.1], stddev=1.0).tolist() == [True, True]
    assert account.admit([1.0, 0.1], stddev=1.0).tolist() == [False, True]
    assert account.admit([0.1, 0.1], stddev=1.0).tolist() == [True, True]
    assert account.admit([np.inf, 0.0], stddev=1.0).tolist() == [False, True]


def test_an_adaptive_adversary_learns_no_more_than_the_limit() -> None:
    """The loss of one record's presence, simulated."""
    rho, paths, rng = 0.5, 20_000, np.random.default_rng(7)
    account = IndividualFilter(records=paths, rho=rho)
    loss, last = np.zeros(paths), np.zeros(paths)
    for _ in range(150):
        # The next norm follows the loss so far, which an adversary who knows all others can work out.
        norms = np.where(last > 0, 0.25, 0.1)
        mu = np.where(account.admit(norms, stddev=1.0), norms, 0.0)
        loss += mu * rng.normal(mu, 1.0) - mu * mu / 2
        last = loss

    def check(limit: float) -> None:
        for epsilon in (0.5, 1.0, 2.0):
            gain = np.maximum(0.0, -np.expm1(epsilon - loss))
            mean_at_most(gain)(gdp_delta(np.sqrt(2 * limit), epsilon))

    accepts_only(check, rho, nearly=0.8 * rho)


def test_nothing_about_records_is_shown() -> None:
    account = IndividualFilter(records=4, rho=0.5, neighboring=Neighboring.ZERO_OUT)
    before = repr(account)
    account.admit([0.1, 0.2, 3.0, 4.0], stddev=1.0)
    assert repr(account) == before
    assert str(account.guarantee) == "0.5-zCDP, zero out one unit"
    with pytest.raises(ParameterError, match=r"they are others, or not as many") as caught:
        account.admit([0.123, -4.5, 0.0, 0.0], stddev=1.0)
    assert "4.5" not in str(caught.value)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(NeighboringMismatch, match="must be add/remove or zero-out"):
        IndividualFilter(records=1, rho=1.0, neighboring=Neighboring.REPLACE_ONE)
    with pytest.raises(ParameterError, match="rho must be positive"):
        IndividualFilter(records=1, rho=0.0)
    with pytest.raises(ParameterError, match="records must be an integer"):
        IndividualFilter(records=-1, rho=1.0)
    account = IndividualFilter(records=2, rho=1.0)
    for norms in ([1.0], [np.nan, 1.0], [[1.0, 1.0]]):
        with pytest.raises(ParameterError, match="norms must be one non-negative number"):
            account.admit(norms, stddev=1.0)
    with pytest.raises(ParameterError, match="stddev must be positive"):
        account.admit([1.0, 1.0], stddev=0.0)
    assert account.spent_by_record().tolist() == [0.0, 0.0]
