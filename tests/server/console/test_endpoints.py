"""Whatever is sent gets a page: no error of the console itself, and nothing that only its operator may know."""

from __future__ import annotations

from tests.server.console.office import FORM, Office


def test_a_form_of_parts_with_a_character_set_of_its_own_is_not_read(office: Office) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n\\ud800+2AA-\r\n--x--\r\n'
    for charset in ("undefined", "idna", "utf-7", "unicode_escape"):
        kind = f"multipart/form-data; boundary=x; charset={charset}".encode()
        assert office.send("ada", "/account/request", part, kind).status == 415
    assert office.console.ledger.members.budget_requests() == ()


def test_what_is_no_form_is_not_read(office: Office) -> None:
    for body in (b"\xff", b"&".join([b"a=1"] * 101), b"&" * 10**6):
        assert office.send("ada", "/account/request", body, FORM).status == 400


def test_the_first_field_of_a_name_counts(office: Office) -> None:
    body = b"epsilon=0.25&epsilon=2&purpose=a+report&purpose=%zz%ff%00"
    assert office.send("ada", "/account/request", body, FORM).status == 303
    (wish,) = office.console.ledger.members.budget_requests()
    assert (wish.budget.epsilon, wish.purpose) == (0.25, "a report")
