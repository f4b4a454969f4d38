"""Members of the organisation that runs a ledger: roles, keys, failed logins, requests for budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.errors import LedgerMismatch, ParameterError
from sfumato.ledger import Budget, Ledger, LedgerView, Member, Role
from sfumato.ledger.log.key_points import is_point_of_large_order
from sfumato.privacy import PureDP
from tests.cases import cases

Open = Callable[..., Ledger]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()
HALF = Budget.pure(epsilon=0.5)


@pytest.fixture
def ledger(open_anywhere: Open) -> Ledger:
    ledger = open_anywhere()
    ledger.members.set_roles("carl", {Role.CURATOR})
    ledger.members.set_roles("ada", {Role.ANALYST, Role.AUDITOR}, by="carl")
    return ledger


def test_members_are_what_the_events_add_up_to(ledger: Ledger) -> None:
    ledger.members.register_key("ada", KEY, by="carl")
    ledger.members.record_failed_login("ada")
    ledger.members.record_failed_login("ada")
    ledger.members.record_failed_login("nobody yet")
    ada = Member(
        name="ada",
        roles=frozenset({Role.ANALYST, Role.AUDITOR}),
        public_key=KEY.public_bytes_raw().hex(),
        failed_logins=2,
    )
    assert ledger.members.of("ada") == ada
    assert [member.name for member in ledger.members.all()] == ["ada", "carl"]
    ledger.members.revoke_key("ada", by="carl")
    ledger.members.set_roles("ada", (), by="carl")
    assert ledger.members.of("ada") == Member(name="ada", roles=frozenset(), failed_logins=2)
    assert ledger.verify().sound


def test_a_requested_budget_is_granted_or_declined(ledger: Ledger) -> None:
    members = ledger.members
    members.request_budget("ada", Budget.pure(epsilon=0.9), purpose="everything")
    members.request_budget("ada", HALF, purpose="the yearly report")
    (wish,) = members.budget_requests()
    assert (wish.analyst, wish.budget, wish.purpose) == ("ada", HALF, "the yearly report")
    members.decline_budget("ada", reason="ask for less", by="carl")
    assert members.budget_requests() == ()
    with pytest.raises(LedgerMismatch):
        LedgerView(ledger, "ada")
    members.request_budget("ada", HALF, purpose="less")
    ledger.grant("ada", Budget.pure(epsilon=0.25), by="carl", reason="half of it")
    assert members.budget_requests() == ()
    view = LedgerView(ledger, "ada", purpose="the yearly report")
    view.charge(PureDP(0.1), delta=0.0)
    view.charge_all([{"loss": PureDP(0.05), "delta": 0.0, "purpose": "the appendix"}])
    view.reserve(PureDP(0.05), steps=2, delta=0.0)
    assert [entry.purpose for entry in view.entries()] == [
        "the yearly report",
        "the appendix",
        "the yearly report",
    ]
    assert ledger.accounts()[0].charges == 3
    assert ledger.verify().sound


WEAK = {
    "neutral": "01" + "00" * 31,
    "of order 2": "ec" + "ff" * 30 + "7f",
    "of order 4": "00" * 32,
    "of order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "another of order 8": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "neutral, in excess of p": "ee" + "ff" * 30 + "7f",
    "no point": "02" + "00" * 31,
}


@cases("name", list(WEAK))
def test_a_key_under_which_anybody_signs_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(ParameterError, match="Ed25519 key under which nobody else can sign"):
        ledger.members.register_key("ada", WEAK[name], by="carl")


def test_what_is_refused_of_weak_keys_is_a_forgery() -> None:
    """R neutral and s = 0 sign, under the neutral key, whatever is said; and no key that is drawn is weak."""
    neutral = bytes.fromhex(WEAK["neutral"])
    Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), b"whatever")
    for seed in range(8):
        key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32).public_key()
        assert is_point_of_large_order(key.public_bytes_raw().hex())


def test_who_holds_the_ledger_can_always_make_a_curator(ledger: Ledger) -> None:
    ledger.members.set_roles("carl", ())
    with pytest.raises(ParameterError, match="by must be a curator, got 'carl'"):
        ledger.members.set_roles("dora", {Role.CURATOR}, by="carl")
    ledger.members.set_roles("dora", {Role.CURATOR})
    ledger.members.set_roles("carl", {Role.CURATOR}, by="dora")


REFUSED: dict[str, tuple[Callable[[Ledger], object], str]] = {
    "an analyst grants": (lambda led: led.grant("eve", HALF, by="ada"), "by must be a curator, got 'ada'"),
    "a long reason": (
        lambda led: led.grant("eve", HALF, reason="x" * 1001),
        "reason must be one",
    ),
    "two lines": (lambda led: led.grant("eve", HALF, reason="a\nb"), "reason must be one"),
    "a stranger gives roles": (
        lambda led: led.members.set_roles("x", [], by="x"),
        "by must be a",
    ),
    "a curator steps down": (
        lambda led: led.members.set_roles("carl", (), by="carl"),
        "by must be another",
    ),
    "no role": (lambda led: led.members.set_roles("x", ["curator"]), "roles must be"),  # type: ignore[list-item]
    "no name": (lambda led: led.members.set_roles(" ", {Role.AUDITOR}), "name must be a printable name"),
    "a key of nobody": (
        lambda led: led.members.register_key("eve", KEY),
        "name must be a member's",
    ),
    "half a key": (
        lambda led: led.members.register_key("ada", "00" * 31),
        "public_key must be 64",
    ),
    "no key": (lambda led: led.members.register_key("ada", b"k"), "must be an Ed"),  # type: ignore[arg-type]
    "nothing to revoke": (
        lambda led: led.members.revoke_key("ada"),
        "that of a member with a key",
    ),
    "a stranger asks": (
        lambda led: led.members.request_budget("eve", HALF, purpose="x"),
        "must be one with an",
    ),
    "no purpose": (
        lambda led: led.members.request_budget("ada", HALF, purpose=" "),
        "purpose must be one",
    ),
    "another kind": (
        lambda led: led.members.request_budget("ada", Budget.zcdp(rho=0.1, delta=1e-6), purpose="x"),
        "budget must be of the dataset's kind",
    ),
    "no request": (
        lambda led: led.members.decline_budget("ada", reason="x"),
        "must be one whose",
    ),
    "nobody": (lambda led: led.members.of("eve"), "name must be that of a member, got 'eve'"),
    "a login of no name": (
        lambda led: led.members.record_failed_login("\n"),
        "name must be a printable name",
    ),
    "a charge for two lines": (
        lambda led: led.charge(PureDP(0.1), delta=0.0, purpose="\n"),
        "purpose must be one",
    ),
}


@cases("name", list(REFUSED))
def test_bad_input_is_refused_and_leaves_no_trace(ledger: Ledger, name: str) -> None:
    attempt, words = REFUSED[name]
    before = ledger.head()
    with pytest.raises(ParameterError, match=words):
        attempt(ledger)
    assert ledger.head() == before


def test_a_key_belongs_to_one_name_for_ever(ledger: Ledger) -> None:
    ledger.members.register_key("ada", KEY)
    ledger.members.revoke_key("ada")
    for name in ("ada", "carl"):
        with pytest.raises(ParameterError, match="a key that was never registered before, for anybody"):
            ledger.members.register_key(name, KEY.public_bytes_raw().hex().upper())


def test_what_has_no_purpose_is_written_as_before_there_were_any(open_ledger: Open) -> None:
    """The events of a ledger that uses none of this are those of every earlier version."""
    ledger = open_ledger()
    ledger.grant("ada", HALF)
    ledger.charge(PureDP(0.1), delta=0.0, analyst="ada")
    text = ledger.export()
    assert not any(word in text for word in ("purpose", "reason", '\\"by\\"'))
    fields: dict[str, Any] = {"purpose": "x"}
    ledger.charge(PureDP(0.1), delta=0.0, analyst="ada", **fields)
    assert '\\"purpose\\":\\"x\\"' in ledger.export()


def test_one_charge_is_read_by_its_number(ledger: Ledger) -> None:
    first = ledger.charge(PureDP(0.1), delta=0.0, purpose="first")
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0), b"answer")
    assert (ledger.entry(1), ledger.entry(2)) == ledger.entries()
    assert ledger.receipt(1) == first
    for number in (0, 3):
        with pytest.raises(ParameterError, match="number must be"):
            ledger.entry(number)
        with pytest.raises(ParameterError, match="number must be"):
            ledger.receipt(number)
