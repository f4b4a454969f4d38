"""``sfumato members`` and ``sfumato review``: a release on its way to the public, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.ledger import Approval, Budget, Ledger
from tests.cases import cases

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
BUDGET = ("--privacy-unit", "person_id", "--epsilon", "2")


def answered(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code in {1, 2}
    assert result.stdout == ""
    return result.stderr


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with members and one answer of ada's."""
    path = tmp_path / "l"
    answered("sql", ACS, *BUDGET, "--ledger", path, COUNT)
    answered("members", "roles", path, "carl", "curator")
    answered("members", "roles", path, "rita", "reviewer", "auditor", "--by", "carl")
    answered("ledger", "grant", path, "ada", "--epsilon", "0.5", "--by", "carl", "--reason", "a report")
    asked = COUNT.replace("data", "data WHERE age > 18")
    answered("sql", ACS, *BUDGET, "--ledger", path, "--analyst", "ada", "--purpose", "a report", asked)
    return path


def test_a_release_is_reviewed_signed_published_and_withdrawn(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("correct horse\n")
    secret = ("--passphrase-file", tmp_path / "words")
    public_key = json.loads(answered("review", "keygen", tmp_path / "rita.pem", *secret, "--json"))[
        "public_key"
    ]
    assert (tmp_path / "rita.pem").stat().st_mode & 0o777 == 0o600
    answered("members", "key", ledger, "rita", public_key, "--by", "carl")
    answered("review", "request", ledger, 2, "--by", "ada", "--comment", "for the report")
    signed = ("review", "approve", ledger, 2, "--by", "rita", "--key", tmp_path / "rita.pem")
    assert "must be a file of an Ed25519 key" in failed(*signed)
    found = json.loads(answered(*signed, *secret, "--json"))
    approval = Approval.from_json(found["approval"])
    assert (approval.by, approval.number) == ("rita", 2)
    assert approval.signed_by(public_key, bytes.fromhex(found["signature"]))
    assert answered("review", "publish", ledger, 2, "--by", "carl") == "release 2: published, by carl\n"
    shown = json.loads(answered("review", "list", ledger, "--state", "published", "--json"))["reviews"]
    assert [step["state"] for step in shown[0]["steps"]] == ["requested", "approved", "published"]
    assert "for the report" in answered("review", "list", ledger)
    assert "a report" in answered("ledger", "show", ledger)
    answered("review", "withdraw", ledger, 2, "--by", "carl", "--comment", "a better one comes")
    assert answered("review", "list", ledger, "--state", "published") == "no reviews\n"
    answered("ledger", "verify", ledger)


def test_an_approval_is_signed_away_from_the_ledger(ledger: Path, tmp_path: Path) -> None:
    key = tmp_path / "rita.pem"
    public_key = answered("review", "keygen", key).strip()
    answered("members", "key", ledger, "rita", public_key, "--by", "carl")
    answered("review", "request", ledger, 2, "--by", "ada")
    with Ledger.manage(ledger) as book:
        approval = book.reviews.approval(2, by="rita", comment="read")
        (tmp_path / "statement").write_text(approval.to_json() + "\n")
        shown = CliRunner().invoke(app, ["review", "sign", str(tmp_path / "statement"), "--key", str(key)])
        assert shown.exit_code == 0
        signature = shown.stdout.strip()
        for signed in (approval.payload, approval.receipt, approval.ledger, "by rita", "read"):
            assert signed in shown.stderr
        assert (
            json.loads(answered("review", "sign", tmp_path / "statement", "--key", key, "--json"))[
                "signature"
            ]
            == signature
        )
        book.reviews.approve(approval, bytes.fromhex(signature))
        assert book.reviews.of(2).state == "approved"
    (tmp_path / "statement").write_text(approval.to_json().replace("approval", "refusal", 1))
    assert "must be" in failed("review", "sign", tmp_path / "statement", "--key", key)


def test_a_key_that_others_can_read_signs_nothing(ledger: Path, tmp_path: Path) -> None:
    key = tmp_path / "rita.pem"
    public_key = answered("review", "keygen", key).strip()
    answered("members", "key", ledger, "rita", public_key, "--by", "carl")
    answered("review", "request", ledger, 2, "--by", "ada")
    for mode in (0o640, 0o604):
        key.chmod(mode)
        said = failed("review", "approve", ledger, 2, "--by", "rita", "--key", key)
        assert "key must be a file that its owner alone can read" in " ".join(said.split())
    with Ledger.read(ledger) as book:
        assert book.reviews.of(2).state == "requested"
    key.chmod(0o400)
    answered("review", "approve", ledger, 2, "--by", "rita", "--key", key)


def test_members_are_listed_with_their_wishes(ledger: Path) -> None:
    with Ledger.manage(ledger) as book:
        book.members.request_budget("ada", Budget.approximate(epsilon=0.75, delta=0.0), purpose="more")
    shown = answered("members", "list", ledger)
    assert "auditor, reviewer" in shown
    assert "ada asks for 0.75-DP: more" in " ".join(shown.split())
    answered("members", "decline", ledger, "ada", "--reason", "enough", "--by", "carl")
    facts = json.loads(answered("members", "list", ledger, "--json"))
    assert facts["budget_requests"] == []
    assert [member["name"] for member in facts["members"]] == ["carl", "rita"]
    assert answered("members", "roles", ledger, "rita") == "rita: none\n"


REFUSED = {
    "approved unsigned": (("review", "publish", "{ledger}", "2", "--by", "carl"), "whose state is approved"),
    "signed by who asked": (
        ("review", "return", "{ledger}", "2", "--by", "ada", "--comment", "x"),
        "number must be one whose state is requested",
    ),
    "a role of nobody": (
        ("members", "roles", "{ledger}", "eve", "curator", "--by", "eve"),
        "by must be a curator",
    ),
    "half a key": (("members", "key", "{ledger}", "rita", "00"), "64 hexadecimal digits"),
    "an old file": (("review", "keygen", "{ledger}"), "key must be a new file"),
    "a key that is none": (
        ("review", "approve", "{ledger}", "2", "--by", "rita", "--key", "{ledger}"),
        "key must be a file of an Ed25519 key in PEM",
    ),
    "no number": (("review", "request", "{ledger}", "9", "--by", "ada"), "'sfumato ledger show' says which"),
    "key and revoke": (("members", "key", "{ledger}", "rita", "00", "--revoke"), "--revoke"),
}


@cases("name", list(REFUSED))
def test_what_may_not_be_done_is_refused_in_one_line(ledger: Path, name: str) -> None:
    arguments, words = REFUSED[name]
    assert words in " ".join(failed(*(part.format(ledger=ledger) for part in arguments)).split())


def test_the_key_is_one_that_other_programs_read(tmp_path: Path) -> None:
    public_key = answered("review", "keygen", tmp_path / "key.pem").strip()
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    assert key.public_key().public_bytes_raw().hex() == public_key
