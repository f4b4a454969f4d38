"""The console in a real browser: by a keyboard alone, without scripts, and before axe's eyes.

The guide is followed first: what it leaves is what the screens then show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sfumato.ledger import Ledger
from sfumato.server.console.pages.rendering import MENU
from sfumato.server.console.settings import read_settings
from tests.browser import Browser
from tests.cli.governance.running_console import RunningDemo, running_demo
from tests.server.console.guide import follow_guide, guide_steps
from tests.server.console.visitor import WIDTHS, Visitor

pytestmark = pytest.mark.browser

FURTHER = {
    "": ["/sign-in", "/releases/1", "/releases/9", "/releases/1?language=de"],
    "analyst": ["/members"],  # which is not permitted
    "reviewer": ["/review/1", "/review/1/page"],
    "curator": ["/review/1", "/epsilon?epsilon=1", "/members?name=ada"],
    "auditor": [],
}
"""What the menu of each role does not lead to."""

SAME_FOR_ALL = ("/releases", "/dataset")
"""What is looked at once: a role's other pages have its menu too."""


class Followed(NamedTuple):
    """What happened while the guide was followed."""

    demo: RunningDemo
    visitor: Visitor
    pressed: int
    filled: int
    violations: dict[str, list[str]]
    texts: dict[str, str]


class Looked(NamedTuple):
    """What was found on a screen."""

    violations: list[str]
    missed: list[str]
    """What the keyboard does not reach, or nobody sees that it does."""
    wide: bool
    """Whether it is wider than a telephone."""


@pytest.fixture(scope="module")
def followed(browser: Browser) -> Iterator[Followed]:
    with running_demo() as demo:
        visitor = Visitor(browser, demo.origin)
        found, texts = dict[str, list[str]](), dict[str, str]()

        def seen(step: int, what: str) -> None:
            if not what.startswith(("**", "`")):  # after which the page is another
                found[f"step {step}, {what}"] = visitor.violations(WIDTHS[:1])
                texts[what] = visitor.text

        follow_guide(demo, visitor, seen)
        yield Followed(demo, visitor, visitor.pressed, visitor.filled, found, texts)


def sign_in(followed: Followed, role: str) -> Visitor:
    visitor = followed.visitor
    if role:
        visitor.sign_in(followed.demo.names[role], followed.demo.tokens[role])
    elif visitor.name:
        visitor.sign_out()
    return visitor


@pytest.fixture(scope="module")
def screens(followed: Followed) -> dict[tuple[str, str], Looked]:
    found = dict[tuple[str, str], Looked]()
    walked = set[str]()
    for role, further in FURTHER.items():
        visitor = sign_in(followed, role)
        visitor.open("/releases")
        for path in [*visitor.menu(), *further]:
            if path in SAME_FOR_ALL and path in walked:
                continue
            visitor.open(path)
            # what roles share is looked at on a desk once; their menus are lists on a telephone
            violations = visitor.violations(WIDTHS[:1] if path in walked else WIDTHS)
            visitor.browser.resize(360)
            wide = visitor.browser.run("return document.documentElement.scrollWidth > innerWidth")
            missed = [] if path in walked else visitor.stops()
            walked.add(path)
            found[role, path] = Looked(violations, missed, wide)
    return found


def test_an_answer_is_published_in_few_steps(followed: Followed) -> None:
    assert len(guide_steps()) == 7
    assert (followed.pressed, followed.filled) == (24, 11), "9 to sign in and out; 3 tokens, 5 boxes"
    assert "Spend 0.25 of your 1 epsilon" in followed.texts["*What does it cost?*"]
    published = followed.texts["*Release 1*"]
    assert "Alabama" in published
    assert "receipt" in published.lower()
    with Ledger.read(read_settings(followed.demo.folder / "console.toml").ledger) as ledger:
        steps = [(step.state, step.by) for step in ledger.reviews.of(1).steps]
        assert len(ledger.entries()) == 1
    names = followed.demo.names
    assert steps == [
        ("requested", names["analyst"]),
        ("approved", names["reviewer"]),
        ("published", names["curator"]),
    ]


def test_axe_finds_nothing_on_the_way(followed: Followed) -> None:
    assert len(followed.violations) >= 15
    assert {place: found for place, found in followed.violations.items() if found} == {}


def test_axe_sees_what_is_wrong(followed: Followed) -> None:
    followed.visitor.open("/sign-in")
    followed.visitor.browser.run(
        "document.documentElement.removeAttribute('lang'); document.querySelector('main label').remove()"
    )
    rules = {each.split()[2].rstrip(":") for each in followed.visitor.violations()}
    assert rules >= {"html-has-lang", "label"}
    followed.visitor.open("/sign-in")


def test_axe_finds_nothing_on_any_screen_of_any_role(screens: dict[tuple[str, str], Looked]) -> None:
    assert {path for _, path in screens} >= {path for path, *_ in MENU}
    assert {place: one.violations for place, one in screens.items() if one.violations} == {}


def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    screens: dict[tuple[str, str], Looked],
) -> None:
    assert {place: one.missed for place, one in screens.items() if one.missed} == {}


def test_no_screen_is_wider_than_a_telephone(screens: dict[tuple[str, str], Looked]) -> None:
    assert [place for place, one in screens.items() if one.wide] == []


def test_who_comes_after_a_sign_out_sees_nothing_by_going_back(followed: Followed) -> None:
    visitor = sign_in(followed, "analyst")
    visitor.press("History")
    assert "SELECT" in visitor.text
    visitor.press("SELECT…")
    assert "Alabama" in visitor.text
    visitor.sign_out()
    for _ in range(2):
        visitor.go_back()
        assert visitor.path == "/sign-in"
        assert "Alabama" not in visitor.text
        assert "SELECT" not in visitor.text
    visitor.open("/history")
    assert visitor.path == "/sign-in"
