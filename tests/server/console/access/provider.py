"""A real provider of OpenID Connect as a process of its own, which also insists on PKCE.

``python -m tests.server.console.access.provider USERS`` serves on a free port of loopback and prints its URL;
USERS is a JSON object of claims by subject. Clients must register.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

__all__ = ["Provider", "provider"]

ROOT = Path(__file__).parents[4]


@dataclass(frozen=True)
class Provider:
    """Where it is, and a client that is registered there."""

    url: str
    client_id: str
    client_secret: str

    def signs_in(self, place: str, subject: str, *, action: str = "authorize") -> str:
        """Sign a person in at the address that a browser was sent to; return where it is sent back."""
        parts = urlsplit(place)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        try:
            body = urlencode({"sub": subject, "action": action})
            headers = {"content-type": "application/x-www-form-urlencoded"}
            connection.request("POST", f"{parts.path}?{parts.query}", body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 302, answer.status
            return str(answer.headers["location"])
        finally:
            connection.close()


@contextmanager
def provider(users: Mapping[str, Mapping[str, object]], redirect_uri: str) -> Iterator[Provider]:
    """Run the process, and end it by its own id."""
    command = [sys.executable, "-m", "tests.server.console.access.provider", json.dumps(users)]
    environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1", "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        try:
            assert running.stdout is not None
            url = running.stdout.readline().strip()
            asked = json.dumps({"redirect_uris": [redirect_uri]}).encode()
            request = urllib.request.Request(
                f"{url}/oauth2/clients", asked, {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                client = json.load(answer)
            yield Provider(url, client["client_id"], client["client_secret"])
        finally:
            running.terminate()


class Pkce:
    """A WSGI application whose codes are given only to who knows the secret that they began with."""

    def __init__(self, app: Any) -> None:
        self._app, self._challenges = app, dict[str, str]()

    def __call__(self, environment: dict[str, Any], start: Any) -> Any:
        asked = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        query = parse_qs(environment.get("QUERY_STRING", ""))

        def starting(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            code = parse_qs(urlsplit(dict(headers).get("Location", "")).query).get("code")
            if code:
                assert query["code_challenge_method"] == ["S256"]
                self._challenges[code[0]] = query["code_challenge"][0]
            return start(status, headers, *rest)

        if asked == ("POST", "/oauth2/token"):
            body = environment["wsgi.input"].read(int(environment["CONTENT_LENGTH"]))
            environment["wsgi.input"] = io.BytesIO(body)
            fields = parse_qs(body.decode())
            shown = hashlib.sha256(fields["code_verifier"][0].encode()).digest()
            right = self._challenges.get(fields["code"][0])
            if base64.urlsafe_b64encode(shown).decode().rstrip("=") != right:
                start("400 Bad Request", [("Content-Type", "application/json")])
                return [b'{"error": "invalid_grant"}']
        return self._app(environment, starting)


def main(users: Mapping[str, dict[str, object]]) -> None:
    """Serve until the process is ended."""
    import oidc_provider_mock  # noqa: PLC0415
    from werkzeug.serving import make_server  # noqa: PLC0415

    app = oidc_provider_mock.app(
        require_client_registration=True,
        require_nonce=True,
        user_claims=[oidc_provider_mock.User(sub=sub, claims=claims) for sub, claims in users.items()],
    )
    server = make_server("127.0.0.1", 0, Pkce(app), threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
