"""``sfumato console demo``: the curator's console on the census excerpt, with a member for each role."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sfumato import _check, server
from sfumato.cli.configuring.settings_text import toml_value
from sfumato.cli.data import ACS, ACS_DOMAIN
from sfumato.cli.governance.signing_key import make_signing_key
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.member_events import Role
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.settings import read_settings
from sfumato.session.connection import connect

__all__ = ["DemoMember", "console_demo", "make_office"]

_EPSILON, _DELTA, _UNIT = 2.0, 1e-7, "person_id"
_GRANTED: Final = 1.0

QUESTION: Final = """\
SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=0.25, delta=1e-8, max_groups_contributed=1)
  state, COUNT(*) AS people
FROM data GROUP BY state"""
"""What the demo proposes to ask."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMember:
    """Somebody of the demo.

    Parameters
    ----------
    name : str
    role : Role
    page : str
        The path of the page on which they begin.
    scopes : tuple of Scope
        What their token may be used for.
    """

    name: str
    role: Role
    page: str
    scopes: tuple[Scope, ...]


MEMBERS: Final = (
    DemoMember(name="ada", role=Role.ANALYST, page="/ask", scopes=(Scope.READ, Scope.ASK)),
    DemoMember(name="rita", role=Role.REVIEWER, page="/review", scopes=(Scope.READ, Scope.REVIEW)),
    DemoMember(
        name="carl", role=Role.CURATOR, page="/budget", scopes=(Scope.READ, Scope.GRANT, Scope.PUBLISH)
    ),
    DemoMember(name="otto", role=Role.AUDITOR, page="/log", scopes=(Scope.READ,)),
)
"""A member for each role."""


def console_demo(folder: Path | None, port: int, say: Callable[[str], None]) -> None:
    """Make an office and run its console until the process is asked to end.

    Parameters
    ----------
    folder : Path, optional
        A new or empty one that stays, once the console has begun; without it, one that ends with the demo.
    port : int
        0 for any that is free.
    say : callable
        Receives what is printed.
    """
    with _place(folder) as (place, stays), ExitStack() as undo:
        undo.callback(_empty, place)
        tokens = make_office(place)

        def started(origin: str) -> None:
            undo.pop_all()  # from here on somebody has the tokens
            for line in _introduction(place, origin, tokens, stays=stays):
                say(line)

        server.serve_console(read_settings(place / "console.toml", port=port), say, started=started)


def make_office(folder: Path) -> Mapping[str, str]:
    """Make a ledger of the census excerpt, its members, a reviewer's key and the console's settings.

    Parameters
    ----------
    folder : Path
        An empty one.

    Returns
    -------
    mapping of str to str
        The members' tokens, by name.
    """
    file = folder / "census.ledger"
    with connect(ACS, privacy_unit=_UNIT, epsilon=_EPSILON, delta=_DELTA, ledger=file):
        pass
    curator = next(one.name for one in MEMBERS if one.role is Role.CURATOR)
    with Ledger.manage(file) as ledger:
        ledger.members.set_roles(curator, {Role.CURATOR})
        for one in MEMBERS:
            if one.role is not Role.CURATOR:
                ledger.members.set_roles(one.name, {one.role}, by=curator)
            if one.role is Role.REVIEWER:
                key = make_signing_key(folder / f"{one.name}.pem", None)
                ledger.members.register_key(one.name, key.public_key(), by=curator)
            if one.role is Role.ANALYST:
                granted = Budget.approximate(epsilon=_GRANTED, delta=_DELTA / 2)
                ledger.grant(one.name, granted, by=curator, reason="the demo")
    (folder / "console.toml").write_text(_settings(), encoding="utf-8")
    store = TokenStore(read_settings(folder / "console.toml").tokens)
    return {one.name: store.create(one.name, one.scopes, days=1)[0] for one in MEMBERS}


def _empty(folder: Path) -> None:
    """Remove what was made before anybody had a token for it: the same folder is to be tried again."""
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


@contextmanager
def _place(folder: Path | None) -> Iterator[tuple[Path, bool]]:
    """Give the folder, and whether it stays."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="sfumato-console-") as made:
            yield Path(made), False
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        used = any(folder.iterdir())
    except OSError as error:
        _check.refuse("--folder", "be a folder that can be made", str(folder), error.strerror or "check it")
    if used:
        remedy = "name another; a demo that was made before goes on by 'sfumato console serve'"
        _check.refuse("--folder", "be new or empty", str(folder), remedy)
    yield folder.resolve(), True


def _settings() -> str:
    """Return the console's settings, as a curator writes them."""
    return f"""\
ledger = "census.ledger"
title = "Census excerpt"

[dataset]
source = {toml_value(ACS)}
privacy-unit = "{_UNIT}"
epsilon = {_EPSILON}
delta = {_DELTA}
domains = {{ data = {toml_value(ACS_DOMAIN)} }}
"""


def _introduction(folder: Path, origin: str, tokens: Mapping[str, str], *, stays: bool) -> Iterator[str]:
    """Yield what there is, who enters how, and the way to a published answer."""
    names = {one.role: one.name for one in MEMBERS}
    analyst, reviewer, curator = (names[role] for role in (Role.ANALYST, Role.REVIEWER, Role.CURATOR))
    yield (
        "\n27,253 people of the American Community Survey of 2019, whose rows are public. All answers\n"
        f"together may spend ({_EPSILON:g}, {_DELTA:g})-DP for each person; {analyst} may spend epsilon "
        f"{_GRANTED:g} of it."
    )
    yield f"Everything is in {folder}" + (
        f"; 'sfumato console serve {folder / 'console.toml'}' goes on with it."
        if stays
        else ", which is removed at the end."
    )
    yield "\nEach signs in with a token, which is over in a day, in a private window of their own:\n"
    for one in MEMBERS:
        yield f"  {one.name:<4}  {one.role.value:<8}  {origin}{one.page:<7}  {tokens[one.name]}"
    yield f"  everybody       {origin}/releases"
    yield "\nTo publish an answer:\n"
    yield f"1. {analyst} asks, looks at the price, and spends it:\n"
    yield from (f"     {line}" for line in QUESTION.splitlines())
    yield f"\n2. {analyst} opens the answer in History, and asks for a review."
    yield f"3. {reviewer} opens it in Review, reads its page, confirms the checklist, saves the statement."
    yield f"4. {reviewer} signs: sfumato review sign statement.json --key {folder / f'{reviewer}.pem'}"
    yield f"5. {reviewer} pastes the signature, and approves."
    yield f"6. {curator} opens it in Review, and publishes."
    yield f"7. Everybody reads it at {origin}/releases/1\n"
    yield "Ctrl-C ends the demo."
