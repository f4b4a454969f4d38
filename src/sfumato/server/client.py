"""Speak with a shuffler's service: send envelopes, or collect batches."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Sequence
from typing import Any, Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import SourceError

__all__ = ["Visitor"]

_LATER: Final = (429, 503)
_PATH: Final = re.compile(r"(/[a-zA-Z0-9._~-]+)*/?")


@final
class Visitor:
    """A connection to one service, which is made again where it broke.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8420`` or, of one of many collections, ``https://shuffler.example/week-7``.
    timeout : float
        Seconds to wait for an answer.
    attempts : int
        How often a request is made before its failure is one. To send an envelope again is harmless: the
        shuffler knows its nonce.
    context : ssl.SSLContext, optional
        Of certificates that are trusted; the system's by default.

    Examples
    --------
    Nothing is sent before a method asks for something:

    >>> with Visitor("http://127.0.0.1:8420", timeout=5.0) as visitor:
    ...     pass

    A device then calls ``visitor.send([envelope])``, and the analyst ``visitor.batch(1, key)``.
    """

    def __init__(
        self, url: str, *, timeout: float = 30.0, attempts: int = 5, context: ssl.SSLContext | None = None
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # a port that is no number, or brackets that do not close
            parts, port = urlsplit(""), None
        more = parts.query or parts.fragment or parts.username is not None or not _PATH.fullmatch(parts.path)
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or more:
            _check.refuse(
                "url",
                "be http:// or https://, a host, perhaps a port and a collection's name",
                url,
                "leave out the rest",
            )
        _check.positive("timeout", timeout)
        self._attempts = _check.integer("attempts", attempts, minimum=1)
        self._url, self._base = url, parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context() if context is None else context
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def collection(self) -> dict[str, Any]:
        """Return what the service states about its collection; compare its id with one that you trust.

        Returns
        -------
        dict
            What `sfumato.local.device.PublicCollection.from_specification` reads.

        Raises
        ------
        SourceError
            If there is no such answer, after all attempts.
        """
        return self._json("/v1/collection")

    def status(self) -> dict[str, Any]:
        """Return the service's public numbers: its collection's id, batch size, and released batches.

        Returns
        -------
        dict
            Public numbers; ``"batches"`` is how many were released.

        Raises
        ------
        SourceError
            If there is no such answer, after all attempts.
        """
        return self._json("/v1/status", "batches")

    def send(self, envelopes: Sequence[bytes]) -> dict[str, int]:
        """Send envelopes in one request, and return how many were taken and how many refused.

        Parameters
        ----------
        envelopes : sequence of bytes
            As `sfumato.local.device.PublicCollection.envelope` returned them.

        Returns
        -------
        dict of int
            ``"taken"`` and ``"refused"``.

        Raises
        ------
        SourceError
            If there is no such answer, after all attempts; what was taken is not known then. Send the same
            envelopes again.
        """
        status, body = self._ask("POST", "/v1/reports", b"".join(envelopes), {})
        if status not in (200, 422):
            raise SourceError(f"{self._url} must take envelopes, got status {status}; send them again later")
        return self._read(body, "taken", "refused")

    def batch(self, number: int, key: SecretKey) -> bytes:
        """Return a released batch.

        Parameters
        ----------
        number : int
            Of the batch, from 1 on.
        key : SecretKey
            The analyst's, which proves who asks.

        Returns
        -------
        bytes
            To pass to `sfumato.local.shuffle.Opening.add`.

        Raises
        ------
        SourceError
            If the service does not give it.
        """
        headers = {"authorization": "Bearer " + key.word.decode()}
        path = f"/v1/batches/{_check.integer('number', number, minimum=1)}"
        status, body = self._ask("GET", path, None, headers)
        if status != 200:
            raise SourceError(f"{self._url} must give batch {number}, got status {status}; ask its operator")
        return body

    def keys(self) -> dict[str, Any]:
        """Return which keys a shuffler offers; see `sfumato.local.device.offered_key`.

        Returns
        -------
        dict
            What `offered_key` reads.

        Raises
        ------
        SourceError
            If there is no such answer, after all attempts.
        """
        return self._json("/v1/keys")

    def _json(self, path: str, *counts: str) -> dict[str, Any]:
        status, body = self._ask("GET", path, None, {})
        return self._read(body if status == 200 else b"", *counts)

    def _read(self, body: bytes, *counts: str) -> dict[str, Any]:
        """Return an answer in JSON, in which some parts must be whole numbers."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or any(type(content.get(name)) is not int for name in counts):
            raise SourceError(f"{self._url} must be a shuffler's service, got another answer; check the URL")
        return content

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        status, answer, why = 0, b"", ""
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(min(2.0, 0.1 * 2**attempt))
            try:
                self._connection.request(method, self._base + path, body=body, headers=headers)
                response = self._connection.getresponse()
                status, answer = response.status, response.read()
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                self._connection.close()
                status, why = 0, f"{type(error).__name__}"
                continue
            if status not in _LATER:
                break
        if not status:
            raise SourceError(f"{self._url} must answer, got {why}; is the service running?")
        return status, answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
