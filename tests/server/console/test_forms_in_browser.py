"""Every form of the console, sent in a real browser by the keyboard alone, without scripts, does its work.

Then axe looks at states of the screens that no form leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.ledger import Renewal, Role
from sfumato.server.console.access.permissions import Scope
from tests.browser import Browser
from tests.server.console.desk import Desk, desk
from tests.server.console.keyboard_forms import FORMS, KeyboardForm
from tests.server.console.office import make_ledger
from tests.server.console.visitor import WIDTHS

pytestmark = pytest.mark.browser

LOOKS = 60


@pytest.fixture
def here(tmp_path: Path, key: Ed25519PrivateKey, browser: Browser) -> Iterator[Desk]:
    with desk(tmp_path, key, browser) as made:
        yield made


def send(here: Desk, one: KeyboardForm) -> None:
    """Send a form, and check what it says and does."""
    visitor = here.visitor
    here.sign_in(one.who)
    one.before(here)
    for words in one.way:
        visitor.press(words)
    before = here.everything() if one.holds is None else one.holds(here)
    for words, text in one.fields.items():
        visitor.fill(words, text if isinstance(text, str) else text(here), one.under)
    if one.press == "Enter":
        method, path = visitor.press_enter()
    else:
        method, path = visitor.press(one.press or one.form.button, one.under, comes=not one.look)
    assert method == one.form.method
    assert re.fullmatch(re.escape(one.form.action).replace(r"\{\}", "[^/]+"), path), path
    here.clock.go_on()
    if one.look:
        here.take_file()
        visitor.press(one.look)
    for _ in range(LOOKS):
        if one.says in visitor.text or not visitor.finds("Look again"):
            break
        visitor.press("Look again")
    assert one.says in visitor.text, visitor.text
    visitor.name = visitor.signed_in_as()
    if one.holds is None:
        assert here.everything() == before
    else:
        assert before != one.becomes
        assert one.holds(here) == one.becomes


def test_every_form_is_sent_by_the_keyboard(here: Desk) -> None:
    found = dict[tuple[str, ...], list[str]]()
    for one in FORMS:
        try:
            send(here, one)
        except AssertionError as error:
            raise AssertionError(f"{one.form} by {one.who or 'the public'}: {error}") from error
        if (parts := here.visitor.parts()) not in found:
            found[parts] = here.visitor.violations(WIDTHS[:1])
    assert len(found) > 15
    assert {place: each for place, each in found.items() if each} == {}


OPEN = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0) COUNT(*) AS {} FROM data"


def jobs_in_states(here: Desk) -> dict[str, str]:
    """Make jobs of ada's, more than a page of them, and let no time pass; return paths of some by state."""
    failed = here.fail(OPEN.format(0.01, "a"), "fails")
    here.clock.stop()
    running = here.submit(OPEN.format(0.01, "b"), "runs")
    here.run(running)
    queued = [here.submit(OPEN.format(0.01, "c"), f"waits {number}") for number in range(26)]
    refused = here.submit(OPEN.format(9.0, "d"), "costs too much")
    made = {"failed": failed, "running": running, "queued": queued[-1], "refused": refused}
    assert {state: here.asking.job("ada", job.id).state for state, job in made.items()} == dict(
        zip(made, made, strict=True)
    )
    return {state: f"/history/{job.id}" for state, job in made.items()}


def publish_and_withdraw(here: Desk) -> None:
    reviews = here.ledger.reviews
    reviews.request(1, by="ada")
    approval = reviews.approval(1, by="rita")
    reviews.approve(approval, approval.sign(here.key))
    reviews.publish(1, by="carl")
    reviews.withdraw(1, by="carl", comment="an <error>")


def look(here: Desk, who: str, path: str, says: str) -> dict[str, list[str]]:
    """Return what is wrong with a page, for axe or on a telephone.

    What is no path is pressed, and the page that comes is gone through by Tab.
    """
    visitor = here.visitor
    here.sign_in(who)
    if path.startswith("/"):
        visitor.open(path)
    else:
        visitor.press(path)
    assert says in visitor.text, visitor.text
    found = visitor.violations(WIDTHS[:1]) + ([] if path.startswith("/") else visitor.stops())
    if visitor.browser.run("return document.documentElement.scrollWidth > innerWidth"):
        found.append("it is wider than a telephone")
    return {f"{path}: {says}": found} if found else {}


def test_axe_finds_nothing_in_any_state_of_a_screen(here: Desk) -> None:
    found = dict[str, list[str]]()
    members, tokens = here.ledger.members, here.office.console.tokens
    members.set_roles("eve", {Role.ANALYST}, by="carl")
    here.office.tokens["eve"] = tokens.create("eve", tuple(Scope), days=1)[0]
    for who, path, says in (
        ("", "/releases", "Nothing was published yet."),
        ("eve", "/account", "You have no budget yet"),
        ("eve", "/history", "You asked nothing yet."),
        ("carl", "/review", "Nothing waits for a decision."),
        ("carl", "/epsilon?epsilon=1&unit=person", "Records of the Differential Privacy Deployments"),
    ):
        found |= look(here, who, path, says)
    publish_and_withdraw(here)
    for number in range(100):
        members.record_failed_login(f"eve {number}")
    jobs = jobs_in_states(here)
    for who, path, says in (
        ("carl", "/log?page=3", "Page 3 of 3"),
        ("carl", "Newer", "Page 2 of 3"),
        ("carl", "/review/1", "withdrawn by carl"),
        ("ada", "/history", "Page 1 of 2"),
        ("ada", "Older", "Page 2 of 2"),
        *(("ada", path, f"State: {state}") for state, path in jobs.items()),
        ("", "/releases", "an <error>"),
        ("", "/releases/1", "This release was withdrawn"),
    ):
        found |= look(here, who, path, says)
    assert found == {}


def test_a_period_is_filled_in_where_budgets_renew(tmp_path: Path, browser: Browser) -> None:
    monthly = Renewal(every="month", column="day")
    with desk(tmp_path, make_ledger(tmp_path, monthly), browser, renewal=monthly) as here:
        visitor = here.visitor
        assert look(here, "ada", "/ask", "Period") == {}
        for under, fields in (
            ("In SQL", {"Question": OPEN.format(0.25, "n"), "Period": "2026-02"}),
            ("Without SQL", {"Delta": "0", "Epsilon": "0.5", "Period": "2026-01"}),
        ):
            for words, text in fields.items():
                visitor.fill(words, text, under)
            visitor.press("What does it cost?", under)
            visitor.press("Spend …")
            visitor.press("Ask")
        assert [entry.period for entry in here.ledger.entries()] == ["2026-02", "2026-01"]
        for path, says in (("/grants", "anew"), ("/budget", "2026-02"), ("/dataset", "month")):
            assert look(here, "carl", path, says) == {}
