"""The budget's screen: spent and left as the ledger has it, and whether a head was taken away."""

from __future__ import annotations

from tests.server.console.office import MEMBERS, Office


def test_accounts_are_shown_with_what_is_left(office: Office) -> None:
    page = office.get("carl", "/budget").text
    assert "the dataset" in page
    assert "0.25 spent, 1.75 left" in page
    assert "0.25 spent, 0.25 left" in page
    assert "No head of the log was ever taken away" in page
    office.post("otto", "/log/export")
    assert "0 charges came since" in office.get("carl", "/budget").text


def test_no_one_else_sees_it(office: Office) -> None:
    for name in ("", *MEMBERS):
        assert office.get(name, "/budget").status == {"": 303, "carl": 200, "otto": 200}.get(name, 403)
