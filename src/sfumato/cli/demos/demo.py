"""``sfumato demo``: real data, real noise, and a budget that runs out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import _check
from sfumato.cli.data import ACS
from sfumato.cli.demos.attack_demo import attack_demo
from sfumato.cli.demos.local_demo import local_demo
from sfumato.cli.demos.truth import people_by_race, people_by_state
from sfumato.cli.output.page import Page
from sfumato.cli.output.tables import cut, dashed, plain_table, shown
from sfumato.cli.process.interrupts import interrupts
from sfumato.errors import BudgetExceeded
from sfumato.session.connection import connect
from sfumato.session.session import Session

if TYPE_CHECKING:
    from sfumato.queries.release.table import TableRelease

__all__ = ["demo"]

_EPSILON, _DELTA = 2.0, 1e-7
_NAME = 47  # characters of a race that leave room for its numbers

_STATES = """\
SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1)
  state,
  COUNT(*) AS n,
  AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
FROM data
GROUP BY state"""

_RACES = """\
SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=0.25, delta=1e-8, max_groups_contributed=1)
  race, COUNT(*) AS n
FROM data
GROUP BY race"""

_OLDER = """\
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n
FROM data WHERE age >= {age}"""


def demo(
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Write the demo's ledger to this file; else it stays in memory."),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Ask people's own devices, beside a trusted curator.")
    ] = False,
    attack: Annotated[
        bool, typer.Option("--attack", help="Publish the census four times, and attack each.")
    ] = False,
) -> None:
    """Ask real census data three questions: answered, partly hidden, and in the end refused."""
    if local or attack:
        chosen = "--local" if local else "--attack"
        if ledger is not None:
            _check.refuse("--ledger", f"be left out with {chosen}", str(ledger), "this demo keeps none")
        if local and attack:
            _check.refuse_state("--attack", "be left out with --local", "both were given", "run them in turn")
        (local_demo if local else attack_demo)()
        return
    page = Page()
    address = None if ledger is None else str(ledger)
    with (
        connect(ACS, privacy_unit="person_id", epsilon=_EPSILON, delta=_DELTA, ledger=address) as session,
        interrupts.stating(session.ledger, address),
    ):
        _introduce(page, session)
        _answer_states(page, session)
        _hide_rare_groups(page, session)
        _ask_until_refused(page, session)


def _introduce(page: Page, session: Session) -> None:
    page.say(
        "The data: 27,253 people of sixteen US states, from the American Community Survey of 2019. "
        "The unit of privacy is one person (person_id). The ledger lets all answers together spend "
        f"{session.ledger.budget}, and nothing more. The noise is real: another run gives other answers.",
    )


def _answer_states(page: Page, session: Session) -> None:
    page.title("1. A question, answered")
    release = _ask(page, session, _STATES)
    truth = people_by_state()
    names = ("state", "n", "95 % interval", "true", "income", "95 % interval", "true")
    table = plain_table(names, right=range(1, 7))
    inside = 0
    rows = release.to_arrow(intervals=True).to_pylist()
    for row in sorted(rows, key=lambda row: str(row["state"])):
        people, income = truth[row["state"]]
        inside += (row["n_lower"] <= people <= row["n_upper"]) + (
            row["income_lower"] <= income <= row["income_upper"]
        )
        table.add_row(row["state"], *_estimate(row, "n", people), *_estimate(row, "income", income))
    page.table(table)
    page.say(
        f"{inside} of {2 * len(rows)} intervals hold the true value; about 95 % do in the long run. "
        "Only this demo shows true answers, and it may: the Census Bureau and NIST publish every row of "
        "this file, so its truth is no secret. On your own data no exact answer ever leaves the engine.",
    )
    _account(page, session, release)


def _hide_rare_groups(page: Page, session: Session) -> None:
    page.title("2. Groups too rare to show")
    release = _ask(page, session, _RACES)
    answers = {row["race"]: row for row in release.to_arrow(intervals=True).to_pylist()}
    truth = people_by_race()
    table = plain_table(("race", "n", "95 % interval", "true"), right=(1, 2, 3))
    for race, people in truth.items():
        cells = _estimate(answers[race], "n", people) if race in answers else ("hidden", "", shown(people))
        table.add_row(cut(race, _NAME), *cells, style="" if race in answers else "dim")
    page.table(table)
    page.say(
        f"{len(answers)} of {len(truth)} groups are shown. That a group exists at all can give a person "
        "away, so a group appears only if its noisy count passes a threshold that follows from epsilon and "
        "delta. A real answer would not even say that the hidden ones are there; again the file is public.",
    )
    _account(page, session, release)


def _ask_until_refused(page: Page, session: Session) -> None:
    page.title("3. The budget runs out")
    for age in range(18, 100):
        try:
            release = _ask(page, session, _OLDER.format(age=age))
        except BudgetExceeded as refusal:
            page.refusal(f"BudgetExceeded: {refusal}")
            page.say(f"Left: {refusal.remaining}.")
            page.say(
                "The refused query was not charged, and no row was read for it. Asking an answered query "
                "again gives the same answer and costs nothing.",
            )
            return
        (row,) = release.to_arrow(intervals=True).to_pylist()
        page.say(f"Answer: {shown(row['n'])} people ({dashed(row['n_lower'], row['n_upper'])}).")
        _account(page, session, release)


def _estimate(row: dict[str, Any], name: str, true: float) -> tuple[str, str, str]:
    return shown(row[name]), dashed(row[f"{name}_lower"], row[f"{name}_upper"]), shown(true)


def _ask(page: Page, session: Session, query: str) -> TableRelease:
    page.code(query)
    return session.sql(query)


def _account(page: Page, session: Session, release: TableRelease) -> None:
    guarantee = f"({release.epsilon:g}, {release.delta:g})-DP" if release.delta else f"{release.epsilon:g}-DP"
    cost = "nothing, it was paid for before" if release.replayed else guarantee
    page.say(f"Cost: {cost}. Left: {session.ledger.remaining(release.delta)}.", style="green")
