"""Tokens by which programs and people are recognised: random, for one member, with scopes and an end.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     store = TokenStore(Path(folder) / "tokens.json", now=lambda: 0.0)
...     text, token = store.create("ada", {Scope.READ, Scope.ASK}, days=30)
...     store.verified(text) == token, token.name, sorted(token.scopes)
(True, 'ada', [<Scope.ASK: 'ask'>, <Scope.READ: 'read'>])

A token is ``sfumato_``, its identifier and its secret, 256 random bits; only the SHA-256 of the secret is
stored, which is enough for a secret that nobody can guess. Tokens are found by the identifier, which is no
secret, and the hash is compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn, final

from sfumato import _check
from sfumato._durable import lock_beside, replace_file
from sfumato._wire import BOOLEAN, BYTES, INTEGER, TEXT, Format, Names, Record, canonical, parse, sequence
from sfumato.errors import SourceError
from sfumato.ledger.log.words import check_name
from sfumato.server.console.access.permissions import Scope

__all__ = ["AccessToken", "InvalidToken", "TokenStore"]

_FORMAT: Final = Format("sfumato.console-tokens")
_TOKEN: Final = re.compile(r"sfumato_([0-9a-f]{16})_([0-9a-f]{64})")
_DAY: Final = 86_400
_LONGEST: Final = 366
_NONE: Final = bytes(32)
"""A hash that no secret is known to have: for identifiers that are not there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What is stored of a token: everything but its secret.

    Parameters
    ----------
    id : str
        Its identifier, which is a part of it and no secret.
    name : str
        The member that it is for.
    scopes : frozenset of Scope
        What it may be used for.
    digest : bytes
        The SHA-256 of its secret.
    created, expires : int
        Seconds since 1970.
    revoked : bool
        Whether it was taken back.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    digest: bytes = field(repr=False)
    created: int
    expires: int
    revoked: bool = False

    def usable(self, now: float) -> bool:
        """Return whether it is neither revoked nor over.

        Parameters
        ----------
        now : float
            Seconds since 1970.
        """
        return not self.revoked and now < self.expires


class InvalidToken(Exception):
    """A token by which nobody is recognised: unknown, wrong, revoked or over, without saying which.

    Parameters
    ----------
    name : str
        The member whose token the identifier is, if it is one's.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__("this token is not valid")
        self.name = name


_SCOPES: Final = sequence(Names("a scope", {scope.value: scope for scope in Scope}))
_RECORD: Final = Record(
    "a token",
    lambda scopes, **rest: AccessToken(scopes=frozenset(scopes), **rest),
    {
        "id": TEXT,
        "name": TEXT,
        "scopes": _SCOPES,
        "digest": BYTES,
        "created": INTEGER,
        "expires": INTEGER,
        "revoked": BOOLEAN,
    },
    {"revoked": False},
)
_RECORDS: Final = sequence(_RECORD)


@final
class TokenStore:
    """The tokens of a console in a file that its owner alone may read; for any number of processes.

    Parameters
    ----------
    path : Path
        The file, which is made by the first token, with its folder; beside it are ``.lock`` and, during a
        write, ``.new``. It is replaced as a whole, so a process sees a change with its next request.
    now : callable
        Seconds since 1970.

    Raises
    ------
    SourceError
        From every method, if the file cannot be read or others than its owner may.
    ParameterError
        From every method, if it is no such file.
    """

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._read: tuple[tuple[int, ...], Mapping[str, AccessToken]] = ((), {})

    def create(self, name: str, scopes: Iterable[Scope | str], *, days: int) -> tuple[str, AccessToken]:
        """Make a token; its text is returned this once, and stored nowhere.

        Parameters
        ----------
        name : str
            The member that it is for. It gives no right that the member's roles do not.
        scopes : iterable of Scope
            What it may be used for.
        days : int
            After which it is over, at most 366.

        Returns
        -------
        tuple of str and AccessToken
        """
        check_name("name", name)
        wanted = _checked_scopes(scopes)
        if _check.integer("days", days, minimum=1) > _LONGEST:
            _check.refuse("days", f"be at most {_LONGEST}", days, "make a new token then")
        secret = secrets.token_bytes(32)
        created = int(self._now())
        self._make_folder()
        with self._changed() as known:
            while (number := secrets.token_hex(8)) in known:
                pass
            token = AccessToken(
                id=number,
                name=name,
                scopes=wanted,
                digest=_digest(secret.hex()),
                created=created,
                expires=created + days * _DAY,
            )
            known[number] = token
        return f"sfumato_{number}_{secret.hex()}", token

    def revoke(self, number: str) -> AccessToken:
        """Take a token back; sessions that began with it end with their next request.

        Parameters
        ----------
        number : str
            Its identifier.

        Returns
        -------
        AccessToken
        """
        with self._changed() as known:
            if number not in known:
                _check.refuse("id", "be that of a token", number[:40], "'sfumato console token list' has all")
            known[number] = replace(known[number], revoked=True)
        return known[number]

    def all(self) -> tuple[AccessToken, ...]:
        """Return all tokens, those that are revoked or over too, by name and time.

        Returns
        -------
        tuple of AccessToken
        """
        return tuple(sorted(self._known().values(), key=lambda token: (token.name, token.created, token.id)))

    def find(self, number: str) -> AccessToken | None:
        """Return the token of an identifier, if it may be used now.

        Parameters
        ----------
        number : str
        """
        token = self._known().get(number)
        return token if token is not None and token.usable(self._now()) else None

    def verified(self, text: str) -> AccessToken:
        """Return the token that a text is.

        Parameters
        ----------
        text : str
            What a client sent.

        Returns
        -------
        AccessToken

        Raises
        ------
        InvalidToken
            If it is none that may be used.
        """
        parts = _TOKEN.fullmatch(text)
        if parts is None:
            raise InvalidToken
        token = self._known().get(parts[1])
        right = hmac.compare_digest(_digest(parts[2]), _NONE if token is None else token.digest)
        if token is None or not right or not token.usable(self._now()):
            raise InvalidToken("" if token is None else token.name)
        return token

    def _make_folder(self) -> None:
        """Make the folder of the file, which before its first start a console does not have."""
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self._refuse(error)

    def _known(self) -> Mapping[str, AccessToken]:
        """Return the tokens by identifier, read anew if the file is another than before."""
        try:
            about = self._path.stat()
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._refuse(error)
        version = (about.st_ino, about.st_mtime_ns, about.st_size)
        if version != self._read[0]:
            self._read = version, self._load(about)
        return self._read[1]

    def _load(self, about: os.stat_result) -> Mapping[str, AccessToken]:
        if stat.S_IMODE(about.st_mode) & 0o077:
            raise SourceError(
                f"{self._path} must be its owner's alone, but others may read or write it; run chmod 600"
            )
        try:
            content = self._path.read_bytes()
        except OSError as error:
            self._refuse(error)
        _, fields = _FORMAT.unwrap("tokens", parse("tokens", content), known={"tokens"})
        return {token.id: token for token in _RECORDS.decode("tokens", fields.get("tokens"))}

    @contextmanager
    def _changed(self) -> Iterator[dict[str, AccessToken]]:
        """Hold the file while its tokens are changed; what is left in the mapping is written."""
        try:
            held = lock_beside(self._path, wait=True)
        except OSError as error:
            self._refuse(error)
        try:
            known = dict(self._known())
            yield known
            tokens = _RECORDS.encode(tuple(known.values()))
            content = canonical(_FORMAT.wrap({"tokens": tokens})).encode()
            replace_file(self._path, self._path.with_name(self._path.name + ".new"), content)
        except OSError as error:
            self._refuse(error)
        finally:
            os.close(held)

    def _refuse(self, error: OSError) -> NoReturn:
        why = (error.strerror or type(error).__name__).lower()
        raise SourceError(
            f"the tokens' file must be one that can be read and written, but {self._path} is not: {why}"
        ) from error


def _checked_scopes(scopes: Iterable[Scope | str]) -> frozenset[Scope]:
    given = list(scopes)
    known = {scope.value: scope for scope in Scope}
    for scope in given:
        if scope not in known:
            _check.refuse("scopes", f"be some of {', '.join(known)}", str(scope)[:40], "name one of these")
    if not given:
        _check.refuse("scopes", "be at least one", given, "'read' sees what the member's roles may see")
    return frozenset(known[scope] for scope in given)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
