"""Published releases at addresses that stay; nothing else has a page."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato import report
from tests.server.console.office import COUNT, Office


def test_the_page_is_the_reports_and_follows_the_ledger(office: Office, key: Ed25519PrivateKey) -> None:
    ledger = office.console.ledger
    ledger.reviews.request(1, by="ada")
    approval = ledger.reviews.approval(1, by="rita")
    ledger.reviews.approve(approval, approval.sign(key))
    ledger.reviews.publish(1, by="carl")
    first = office.get("", "/releases/1").text
    assert first == report.stored_release(ledger, 1).html
    assert len(first) < 50_000
    made = office.console.release_pages.page(1, "en")
    assert office.console.release_pages.page(1, "en") is made
    office.ask(COUNT.replace("n FROM", "m FROM"))
    assert office.console.release_pages.page(1, "en") is made, (
        "nothing of another release is seen in its time"
    )
    ledger.reviews.withdraw(1, by="carl", comment="an error")
    assert "Withdrawn by" in office.console.release_pages.page(1, "en").decode()


def test_what_is_not_published_is_not_there(office: Office) -> None:
    office.ask(COUNT.replace("n FROM", "m FROM"))
    office.console.ledger.reviews.request(2, by="ada")
    replies = {office.get("", f"/releases/{number}").text for number in ("1", "2", "3", "x", "0", "9" * 40)}
    assert len(replies) == 1
    assert "Nothing was published yet" in office.get("", "/releases").text


def test_the_first_page_and_unknown_ones(office: Office) -> None:
    assert office.get("", "/").location == "/releases"
    assert office.get("ada", "/").location == "/releases"
    assert office.get("ada", "/nowhere").status == 404
    assert office.post("ada", "/releases").status == 405
    style = office.get("", "/static/console.css")
    assert style.headers["content-type"].startswith("text/css")
    page = office.get("ada", "/releases").text
    assert "People &lt;of&gt; a town" in page
    assert 'href="/account"' in page
    assert 'href="/grants"' not in page
