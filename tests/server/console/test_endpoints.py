"""Whatever is sent gets a page, and on it nothing that only the operator may know."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.server.console.office import FORM, Office


def test_a_form_of_parts_with_a_character_set_of_its_own_is_not_read(office: Office) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n\\ud800+2AA-\r\n--x--\r\n'
    for charset in ("undefined", "idna", "utf-7", "unicode_escape"):
        kind = f"multipart/form-data; boundary=x; charset={charset}".encode()
        assert office.send("ada", "POST", "/account/request", part, kind).status == 415
    assert office.console.ledger.members.budget_requests() == ()


def test_what_is_no_form_is_not_read(office: Office) -> None:
    for body in (b"\xff", b"&".join([b"a=1"] * 101), b"&" * 10**6):
        assert office.send("ada", "POST", "/account/request", body, FORM).status == 400


def test_the_first_field_of_a_name_counts(office: Office) -> None:
    body = b"epsilon=0.25&epsilon=2&purpose=a+report&purpose=%zz%ff%00"
    assert office.send("ada", "POST", "/account/request", body, FORM).status == 303
    (wish,) = office.console.ledger.members.budget_requests()
    assert (wish.budget.epsilon, wish.purpose) == (0.25, "a report")


def test_a_broken_ledger_and_broken_tokens_are_the_operators_affair(
    tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    assert key is not None
    office = Office(tmp_path)
    try:
        tokens = tmp_path / "console" / "tokens"
        tokens.chmod(0o644)
        assert office.get("carl", "/releases").status == 503
        tokens.write_bytes(b"{")
        tokens.chmod(0o600)
        refused = office.get("carl", "/releases")
        assert (refused.status, refused.headers["x-content-type-options"]) == (503, "nosniff")
        office.failures.clear()
        with (tmp_path / "people.ledger").open("r+b") as ledger:
            ledger.write(bytes(8192))
        for path in ("/releases", "/releases/1"):
            reply = office.get("", path)
            assert reply.status == 503
            assert "people.ledger" not in reply.text
            assert "whoever runs this console knows why" in reply.text
        assert [str(tmp_path) in said for said in office.failures] == [True, True]
    finally:
        office.console.close()


def test_a_page_has_one_address(office: Office) -> None:
    for path in ("/releases/", "//releases", "/Releases", "/members/roles/"):
        reply = office.get("carl", path)
        assert (reply.status, reply.headers.get("location")) == (404, None)
