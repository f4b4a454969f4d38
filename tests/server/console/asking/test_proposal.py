"""Proposals say the price in the account's own units, and the error that the answer has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError
from sfumato.ledger import Budget
from sfumato.server.console.asking.planning_tables import planning_session
from sfumato.server.console.asking.proposal import Wanted, propose
from sfumato.server.console.asking.question import Question
from sfumato.session.session import Session

BUDGETS: dict[str, tuple[dict[str, float], Budget]] = {
    "epsilon": ({"epsilon": 1.0}, Budget.pure(epsilon=0.5)),
    "rho": ({"rho": 0.1, "delta": 1e-6}, Budget.zcdp(rho=0.05, delta=1e-6)),
    "mu": ({"mu": 1.0, "delta": 1e-6}, Budget.gaussian(mu=0.5, delta=1e-6)),
}
TEXT = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0) COUNT(*) AS n,
AVG(pay, contribution_bounds_per_group => (0, 10)) AS pay FROM data"""


@pytest.fixture(params=[*BUDGETS])
def asker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    whole, own = BUDGETS[request.param]
    people = pa.table({"person": range(9), "pay": [1.5] * 9})
    with sf.connect(people, privacy_unit="person", ledger=tmp_path / "ledger", **whole) as session:  # type: ignore[call-overload]
        session.ledger.grant("ada", own)
        plan = planning_session(session)
        yield plan.as_analyst("ada")
        plan.engine.close()


def test_the_price_is_what_is_charged_and_the_error_what_was_wanted(asker: Session) -> None:
    wanted = Wanted(error={"n": 40.0, "pay": 12.0}, units=50.0)
    proposal = propose(asker, Question(sql=TEXT), wanted=wanted)
    widths = {column.name: column.half_width for column in proposal.columns}
    assert 35 < (widths["n"] or 0) <= 40.5 or 10 < (widths["pay"] or 0) <= 12.2
    again = propose(asker, proposal.question)
    assert again.cost == proposal.cost
    before = asker.account.remaining()
    cost: dict[str, Any] = dict(proposal.cost)
    assert json.loads(json.dumps(proposal.to_json()))["cost"] == cost
    paid = asker.as_analyst("ada", defaults=proposal.question.defaults)
    for priced in paid.priced(TEXT):
        paid.account.charge(priced.loss, delta=priced.charged_delta)
    left = asker.account.remaining()
    for unit in ("epsilon", "rho", "mu"):
        if getattr(before, unit) is not None:
            assert proposal.before[unit] == getattr(before, unit)
            assert proposal.after[unit] == getattr(left, unit)
            assert proposal.sentence.startswith("Spend ")
            assert proposal.sentence.endswith(f"{unit}.")


def test_what_does_not_fit_is_offered_smaller_and_the_offer_fits(asker: Session) -> None:
    proposal = propose(asker, Question(sql=TEXT, epsilon=40.0))
    assert not proposal.fits
    assert proposal.after == proposal.before
    assert proposal.sentence.startswith("Needs ")
    offer = proposal.offer
    assert offer is not None
    assert offer.epsilon is not None
    smaller = propose(asker, Question(sql=TEXT, epsilon=offer.epsilon))
    assert smaller.fits
    assert smaller.columns[0].half_width == offer.columns[0].half_width


def test_an_error_and_an_epsilon_are_not_both_stated(asker: Session) -> None:
    with pytest.raises(ParameterError, match="epsilon must be left out where an error is wanted"):
        propose(asker, Question(sql=TEXT, epsilon=1.0), wanted=Wanted(error=9.0, units=5.0))
    stated = TEXT.replace("delta=0", "delta=0, epsilon=0.1")
    with pytest.raises(ParameterError, match="error must choose the epsilon, but the text states its own"):
        propose(asker, Question(sql=stated), wanted=Wanted(error=9.0, units=5.0))
    for units in (5e-324, 0.5, 1e308, float("nan")):
        with pytest.raises(ParameterError, match="units must be"):
            Wanted(error=9.0, units=units)
