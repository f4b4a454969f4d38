"""Members through the console: roles and keys, in the name of the curator who is signed in."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.ledger import Role
from tests.server.console.office import MEMBERS, Office


def test_a_curator_gives_roles_and_keys(office: Office) -> None:
    members = office.console.ledger.members
    form = {"name": "bo", "role-analyst": "yes", "role-auditor": "yes", "role-owner": "yes"}
    assert office.post("carl", "/members/roles", form).status == 303
    assert members.of("bo").roles == {Role.ANALYST, Role.AUDITOR}
    key = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
    assert office.post("carl", "/members/key", {"name": "bo", "public_key": key}).status == 303
    page = office.get("carl", "/members?name=bo").text
    assert key in page
    assert page.count(" checked>") == 2
    assert office.post("carl", "/members/revoke", {"name": "bo"}).status == 303
    assert members.of("bo").public_key is None
    assert office.post("carl", "/members/roles", {"name": "bo"}).status == 303
    assert members.of("bo").roles == frozenset()
    office.console.ledger.verify()


def test_a_curator_stays_one_and_weak_keys_are_refused(office: Office) -> None:
    before = office.console.ledger.head()
    for path, form in (
        ("roles", {"name": "carl", "role-analyst": "yes"}),
        ("roles", {"name": ""}),
        ("key", {"name": "ada", "public_key": "00" * 32}),
        ("key", {"name": "ada", "public_key": "x"}),
        ("revoke", {"name": "nobody"}),
    ):
        assert office.post("carl", f"/members/{path}", form).status == 400, (path, form)
    assert office.console.ledger.head() == before


def test_no_one_else_may(office: Office) -> None:
    for name in ("", *MEMBERS):
        for path in ("roles", "key", "revoke"):
            assert office.post(name, f"/members/{path}").status == (400 if name == "carl" else 403)
        assert office.get(name, "/members").status == {"": 303, "carl": 200}.get(name, 403)
