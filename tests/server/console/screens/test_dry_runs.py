"""Dry runs and the dataset's facts: nothing is charged, and nothing of a row is shown."""

from __future__ import annotations

from tests.server.console.office import COUNT, MEMBERS, Office


def test_a_dry_run_shows_a_shape_and_charges_nothing(asked_office: Office) -> None:
    before = asked_office.console.ledger.head()
    page = asked_office.post("ada", "/dry-run", {"sql": COUNT, "epsilon": "0.25"}).text
    assert "n_lower" in page
    assert "made up" in page
    assert asked_office.get("ada", "/dry-run").status == 200
    assert asked_office.post("ada", "/dry-run", {"sql": "SELECT 1"}).status == 400
    assert asked_office.console.ledger.head() == before


def test_a_date_of_a_year_that_python_has_not_is_shown(asked_office: Office) -> None:
    far = {"DATE '5874897-12-31'": "value out of range", "DATE '9999-12-31' + 400": "<bdi>10001-02-03</bdi>"}
    for date, words in far.items():
        sql = f"SELECT n, {date} AS far FROM ({COUNT})"
        reply = asked_office.post("ada", "/dry-run", {"sql": sql})
        assert reply.status == 200
        assert words in reply.text


def test_the_dataset_is_described_without_a_row(asked_office: Office) -> None:
    page = asked_office.get("ada", "/dataset").text
    for word in ("age", "INT64", "none declared", "units by <bdi>id</bdi>", "2-DP"):
        assert word in page
    assert "1000" not in page


def test_who_may(asked_office: Office) -> None:
    for name in ("", *MEMBERS):
        assert asked_office.get(name, "/dry-run").status == {"": 303, "ada": 200}.get(name, 403)
        assert asked_office.post(name, "/dry-run").status == (400 if name == "ada" else 403)
        assert asked_office.get(name, "/dataset").status == (200 if name else 303)
