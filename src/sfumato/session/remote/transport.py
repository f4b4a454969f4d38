"""HTTP to one console: a request is made again where it is safe, and errors are those of sfumato."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, final
from urllib.parse import urlsplit

from sfumato import _check, errors
from sfumato.errors import BudgetExceeded, LedgerError, SfumatoError, SourceError
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring
from sfumato.session.remote.bearer_token import BearerToken

__all__ = ["Arrived", "Transport", "is_address"]

_BASE: Final = "/api/v1"
_LATER: Final = (429, 502, 503, 504)
_LONGEST_PAUSE: Final = 30.0
_LONGEST_OWN: Final = 2.0
_AMOUNTS: Final = ("epsilon", "delta", "rho", "mu", "answerable_epsilon", "answerable_delta")


class Arrived(NamedTuple):
    """An answer."""

    status: int
    content: bytes
    headers: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """Return the JSON object that came."""
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SourceError("the address must be that of a console, got another answer; check it")
        return found


def is_address(source: object) -> bool:
    """Whether a source is the address of a console.

    Parameters
    ----------
    source : object
    """
    return isinstance(source, str) and source.lower().startswith(("https://", "http://"))


@final
class Transport:
    """A connection to one console, which is made again where it broke; safe to use from several threads.

    Parameters
    ----------
    url : str
        ``https://console.example``; ``http://`` on this machine's own addresses alone.
    token : BearerToken
    timeout : float
        Seconds to wait for one answer.
    patience : float
        Seconds in all in which a request is made again, where the connection breaks or the console is busy.
    context : ssl.SSLContext, optional
        Of certificates that are trusted; the system's by default.
    """

    def __init__(
        self,
        url: str,
        token: BearerToken,
        *,
        timeout: float = 60.0,
        patience: float = 60.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.url, self._token = url.rstrip("/"), token
        self._timeout = _check.positive("timeout", timeout)
        self._patience = _check.non_negative("patience", patience)
        self._connect = _connector(url, self._timeout, context)
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    def get(self, path: str, *, accept: str = "application/json") -> Arrived:
        """Return the answer to a reading.

        Parameters
        ----------
        path : str
        accept : str
        """
        return self.ask("GET", path, accept=accept)

    def ask(
        self, method: str, path: str, body: object = None, *, accept: str = "application/json"
    ) -> Arrived:
        """Return an answer that is no error; what is asked must be safe to ask twice.

        Parameters
        ----------
        method, path : str
        body : object, optional
            Sent as JSON.
        accept : str

        Raises
        ------
        SourceError
            If no answer came in all the time.
        SfumatoError
            What the console refused with, as the class that it names.
        """
        headers = {"accept": accept, "authorization": self._token.header()}
        content = None if body is None else _json(body)
        if content is not None:
            headers["content-type"] = "application/json"
        last = time.monotonic() + self._patience
        pause = 0.1
        while True:
            why, arrived = "", None
            try:
                arrived = self._once(method, _BASE + path, content, headers)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, ssl.SSLCertVerificationError):
                    self._unreached("its certificate is not trusted")
                why = type(error).__name__
            if arrived is not None and arrived.status not in _LATER:
                break
            wait = min(max(pause, _seconds(arrived)), _LONGEST_PAUSE)
            if time.monotonic() + wait > last:
                if arrived is None:
                    self._unreached(why)
                break
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_OWN)
        if arrived.status >= 300:
            _raise(arrived)
        return arrived

    def _once(self, method: str, path: str, body: bytes | None, sent: Mapping[str, str]) -> Arrived:
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            try:
                self._connection.request(method, path, body, dict(sent))
                with self._connection.getresponse() as reply:
                    content = reply.read()
                    headers = {name.lower(): value for name, value in reply.getheaders()}
                    return Arrived(reply.status, content, headers)
            except BaseException:  # an answer that was interrupted must not be taken for the next one
                self._drop()
                raise

    def _unreached(self, why: str) -> NoReturn:
        raise SourceError(
            f"{self.url} must answer, got {why}; is the console running, and can it be reached?"
        )

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"


def _json(body: object) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        found = "JSON has no such value"
        remedy = "write a date as a text, and a number of a library as float(...)"
        _check.refuse_state("what is sent", "be truth values, numbers, texts and lists", found, remedy)


def _connector(
    url: str, timeout: float, context: ssl.SSLContext | None
) -> Callable[[], http.client.HTTPConnection]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = parts.hostname
    more = parts.query or parts.fragment or parts.username is not None or parts.path.strip("/")
    if not host or port == 0 or more or parts.scheme not in ("http", "https"):
        _check.refuse_state("address", "be https:// and a host", "it has more or less", "leave out the rest")
    if parts.scheme == "https":
        trusted = ssl.create_default_context() if context is None else context
        return lambda: http.client.HTTPSConnection(host, port, timeout=timeout, context=trusted)
    if not _own(host):
        remedy = "write https://, so that nobody on the way reads the token"
        _check.refuse("address", "begin with https:// for another machine", host, remedy)
    return lambda: http.client.HTTPConnection(host, port, timeout=timeout)


def _own(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(arrived: Arrived | None) -> float:
    """Return after how many seconds a console wants to be asked again."""
    text = "" if arrived is None else arrived.headers.get("retry-after", "")
    return float(text[:6]) if text.isascii() and text.isdigit() else 0.0


def _raise(arrived: Arrived) -> NoReturn:
    """Raise what a console refused with, as the class of `sfumato.errors` that it names."""
    try:
        document = arrived.document()
    except SourceError:
        document = {}
    detail = str(document.get("detail") or f"the console must answer, got status {arrived.status}; ask again")
    named = getattr(errors, str(document.get("error") or ""), None)
    if named is BudgetExceeded:
        left, needed = (_guarantee(document.get(name)) for name in ("remaining", "requested"))
        if left is not None and needed is not None:
            raise BudgetExceeded(detail, remaining=left, requested=needed)
        named = LedgerError
    known = isinstance(named, type) and issubclass(named, SfumatoError)
    raise (named if known else SourceError)(detail)  # type: ignore[misc]


def _guarantee(stated: object) -> Guarantee | None:
    if not isinstance(stated, dict):
        return None
    numbers = {name: stated[name] for name in _AMOUNTS if isinstance(stated.get(name), int | float)}
    with contextlib.suppress(SfumatoError):
        return Guarantee(neighboring=Neighboring.ADD_REMOVE, **numbers)
    return None
