"""A release through the console: asked for, read, signed, published, withdrawn; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato
from sfumato.ledger import Approval, Role
from sfumato.report.markup.page_style import STYLE_SOURCE
from sfumato.server.console.access.identity import PUBLIC
from sfumato.server.console.console import Console
from sfumato.server.console.pages.answer import Page
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.reviews import SCREENS
from sfumato.server.console.services.reviewing import CHECKLIST
from sfumato.server.console.settings import ConsoleSettings
from tests.server.console.office import COUNT, MEMBERS, Office, hidden_field

CONFIRMED = {name: "yes" for name, _ in CHECKLIST}


def _statement(office: Office, comment: str = "") -> str:
    page = office.post("rita", "/review/1/statement", {**CONFIRMED, "comment": comment})
    assert page.status == 200
    return hidden_field(page.text, "statement")


def test_a_release_is_published_after_anothers_signature(office: Office, key: Ed25519PrivateKey) -> None:
    assert office.get("", "/releases/1").status == 404
    assert office.get("rita", "/review/1").status == 404
    office.console.ledger.reviews.request(1, by="ada", comment="for <b>print</b>")
    assert "Release 1" in office.get("rita", "/review").text
    page = office.get("rita", "/review/1").text
    assert "for &lt;b&gt;print&lt;/b&gt;" in page
    assert COUNT in page
    assert "none: the groups are public" in page
    assert STYLE_SOURCE in office.get("rita", "/review/1/page").headers["content-security-policy"]
    statement = _statement(office, "well done")
    signature = Approval.from_json(statement).sign(key).hex()
    sent = office.post("rita", "/review/1/approve", {"statement": statement, "signature": signature})
    assert (sent.status, sent.location) == (303, "/review/1")
    signed = office.console.ledger.reviews.of(1).approval
    assert signed is not None
    assert signed.comment == "well done\nconfirmed: purpose, groups, bounds, numbers, release"
    assert office.get("", "/releases/1").status == 404
    assert office.post("carl", "/review/1/publish").status == 303
    public = office.get("", "/releases/1")
    assert public.status == 200
    assert "at most" in public.text
    assert 'lang="de"' in office.get("", "/releases/1?language=de").text
    assert office.get("", "/releases/1?language=xx").status == 404
    assert "/releases/1" in office.get("", "/releases").text
    assert office.post("carl", "/review/1/withdraw", {"comment": "an error"}).status == 303
    gone = office.get("", "/releases/1")
    assert gone.status == 410
    assert "an error" in gone.text
    office.console.ledger.verify()


def test_what_is_not_signed_is_not_approved(office: Office, key: Ed25519PrivateKey) -> None:
    office.console.ledger.reviews.request(1, by="ada")
    unread = {**CONFIRMED, "release": ""}
    assert "I read the page" in office.post("rita", "/review/1/statement", unread).text
    statement = _statement(office)
    wrong = Approval.from_json(statement).sign(Ed25519PrivateKey.generate()).hex()
    altered = statement.replace("confirmed", "confirmed all")
    right = Approval.from_json(statement).sign(key).hex()
    own = office.console.ledger.reviews.approval(1, by="rita", comment="without the checklist")
    for form in (
        {"statement": statement, "signature": wrong},
        {"statement": statement, "signature": "not hex"},
        {"statement": altered, "signature": right},
        {"statement": "{}", "signature": right},
        {"signature": right},
        {"statement": own.to_json(), "signature": own.sign(key).hex()},
    ):
        refused = office.post("rita", "/review/1/approve", form)
        assert refused.status == 400, form
        assert "must" in refused.text
    assert office.post("carl", "/review/1/publish").status == 400
    assert office.console.ledger.reviews.of(1).state == "requested"
    assert office.post("rita", "/review/1/return", {"comment": ""}).status == 400
    assert office.post("rita", "/review/1/return", {"comment": "other bounds"}).status == 303
    stale = office.post("rita", "/review/1/approve", {"statement": statement, "signature": right})
    assert stale.status == 400


def test_a_statement_is_the_signers_own_about_this_release(office: Office, key: Ed25519PrivateKey) -> None:
    office.console.ledger.reviews.request(1, by="ada")
    own = Approval.from_json(_statement(office))
    for other in (replace(own, by="carl"), replace(own, number=2)):
        form = {"statement": other.to_json(), "signature": other.sign(key).hex()}
        refused = office.post("rita", "/review/1/approve", form)
        assert (refused.status, "must be yours, about this release" in refused.text) == (400, True)
    assert office.console.ledger.reviews.of(1).state == "requested"


def test_the_review_says_what_changed_since_the_last_publication(
    office: Office, key: Ed25519PrivateKey
) -> None:
    reviews = office.console.ledger.reviews
    reviews.request(1, by="ada")
    approval = reviews.approval(1, by="rita")
    reviews.approve(approval, approval.sign(key))
    reviews.publish(1, by="carl")
    office.ask(COUNT.replace("0.25", "0.125"))
    reviews.request(2, by="ada")
    page = office.get("rita", "/review/2").text
    assert "beside release 1" in page
    assert page.count("<td>changed</td>") == 3  # the question, epsilon and the loss
    assert "Release 1</th>" in page


def test_no_one_else_may(office: Office) -> None:
    office.console.ledger.reviews.request(1, by="ada")
    for name in ("", *MEMBERS):
        allowed = {"rita": {"statement", "approve", "return"}, "carl": {"publish", "withdraw"}}.get(
            name, set()
        )
        for step in ("statement", "approve", "return", "publish", "withdraw"):
            status = office.post(name, f"/review/1/{step}").status
            assert status == (400 if step in allowed else 403), (name, step)
        seen = {"": 303, "ada": 403}.get(name, 200)
        for path in ("/review", "/review/1", "/review/1/page"):
            assert office.get(name, path).status == seen, (name, path)
    for number in ("0", "01", "x", "9" * 30, "99", "-1"):
        assert office.get("rita", f"/review/{number}").status == 404


def test_a_reviewer_sees_which_groups_a_threshold_hid(tmp_path: Path) -> None:
    query = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=1) "
        "town, COUNT(*) AS n FROM data GROUP BY town"
    )
    rows = pa.table({"id": range(400), "town": ["Ahaus", "Borken"] * 200})
    address = tmp_path / "towns.ledger"
    with sfumato.connect(rows, privacy_unit="id", epsilon=1, delta=1e-5, ledger=address) as session:
        threshold = session.sql(query).record.threshold
        session.ledger.members.set_roles("carl", {Role.CURATOR})
        session.ledger.reviews.request(1, by="carl", comment="")
    assert threshold is not None
    show = next(screen.show for screen in SCREENS if screen.path == "/review/{number}")
    settings = ConsoleSettings(ledger=str(address), folder=tmp_path / "console")
    with Console(settings) as console:
        page = show(console, Visit(identity=PUBLIC, path={"number": "1"}))
    assert isinstance(page, Page)
    said = {row["name"]: row["now"] for row in page.facts["rows"]}
    assert said["Threshold"] == f"groups with a noisy count below {threshold.units} are hidden"
    assert said["Groups"] == "2"
