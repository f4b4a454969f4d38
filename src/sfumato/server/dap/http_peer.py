"""Ask an aggregator over HTTP: what clients, collectors and leaders have in common."""

from __future__ import annotations

import http.client
import ssl
from typing import Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato.errors import SourceError

__all__ = ["HttpPeer"]

_MAX_ANSWER: Final = 1 << 26


@final
class HttpPeer:
    """A connection to one aggregator, which is made again where it broke.

    Parameters
    ----------
    url : str
        The aggregator's, with any path.
    token : str, optional
        By which the asking party is known.
    timeout : float
        Seconds to wait for an answer.

    Examples
    --------
    >>> with HttpPeer("http://127.0.0.1:8421/dap") as peer:
    ...     peer.url
    'http://127.0.0.1:8421/dap'
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        _check.positive("timeout", timeout)
        self.url, self._path = url, parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        host = parts.hostname or ""
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, parts.port, timeout=timeout)

    def ask(self, method: str, path: str, body: bytes | None = None, media: str = "") -> tuple[int, bytes]:
        """Return the status and the body of an answer.

        Raises
        ------
        SourceError
            If there is none, or it is longer than any message of use.
        """
        headers = {**self._headers, **({"content-type": media} if media else {})}
        for again in (True, False):
            try:
                self._connection.request(method, f"{self._path}/{path}", body=body, headers=headers)
                response = self._connection.getresponse()
                answer = response.read(_MAX_ANSWER + 1)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                self._connection.close()
                if again and isinstance(error, ConnectionError):  # cut since; all requests may be repeated
                    continue
                why = type(error).__name__
                raise SourceError(f"{self.url} must answer, got {why}; is the service running?") from error
            if len(answer) > _MAX_ANSWER:
                self._connection.close()
                raise SourceError(
                    f"{self.url} must answer with a message, got more than any has; check the URL"
                )
            return response.status, answer
        raise AssertionError

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> HttpPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
