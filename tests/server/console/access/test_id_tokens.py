"""ID tokens that are forged, of others, or over; and providers that misbehave, over real sockets."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sfumato.errors import SourceError
from tests.run_time import run_time

if run_time(__name__):
    from joserfc import jws, jwt
    from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

    from sfumato.server.console.access.id_tokens import InvalidIdToken, checked_claims, read_keys
    from sfumato.server.console.access.oidc_provider import OidcProvider
    from sfumato.server.console.access.oidc_settings import OidcSettings

NOW = 1_000_000
CLAIMS = {
    "iss": "https://id.example", "aud": "console", "sub": "s-ada", "nonce": "n", "iat": NOW, "exp": NOW + 300,
}  # fmt: skip


def made_token(key: Any, *, alg: str = "ES256", kid: str = "one", **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    text: str = jwt.encode({"alg": alg, "kid": kid}, claims, key, algorithms=[alg])
    return text


def part(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


def checked(text: object, keys: Any, **changes: Any) -> Any:
    expected = {"issuer": "https://id.example", "client_id": "console", "nonce": "n", "now": NOW, **changes}
    return checked_claims(text, keys, **expected)


def a_key(kid: str = "one") -> Any:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


def public(*keys: Any) -> dict[str, Any]:
    return {"keys": [key.as_dict(private=False) for key in keys]}


def test_a_token_holds_for_its_issuer_client_time_and_sign_in_alone() -> None:
    key = a_key()
    keys = read_keys(public(key))
    assert checked(made_token(key), keys)["sub"] == "s-ada"
    assert checked(made_token(key, aud=["console"]), keys)["sub"] == "s-ada"
    assert checked(made_token(key, aud=["console", "other"], azp="console"), keys)["sub"] == "s-ada"
    assert checked(made_token(key, exp=NOW - 59), keys)
    assert checked(made_token(key, iat=NOW + 60), keys)
    wrong: tuple[dict[str, Any], ...] = (
        {"iss": "https://evil.example"}, {"iss": None}, {"iss": "https://id.example/"},
        {"aud": "other"}, {"aud": None}, {"aud": ["other"]}, {"aud": ["console", "other"]}, {"azp": "other"},
        {"exp": NOW - 60}, {"exp": None}, {"exp": "9999999999"}, {"exp": True},
        {"iat": NOW + 61}, {"iat": None}, {"nbf": NOW + 61}, {"nbf": "x"},
        {"nonce": "m"}, {"nonce": None}, {"nonce": 1},
    )  # fmt: skip
    for changes in wrong:
        with pytest.raises(InvalidIdToken) as error:
            checked(made_token(key, **changes), keys)
        assert "s-ada" not in str(error.value)
    half = json.dumps({**CLAIMS, "nonce": "\ud800"}).encode()  # of a pair: no Unicode text
    for payload in (half, b"[]", b"{", b'"x"', b"\xff"):
        text = jws.serialize_compact({"alg": "ES256", "kid": "one"}, payload, key)
        with pytest.raises(InvalidIdToken):
            checked(text, keys)


def test_a_signature_by_another_key_or_by_none_does_not_hold() -> None:
    key, other = a_key(), a_key()
    keys = read_keys(public(key))
    head, body, signature = made_token(key).split(".")
    secret = OctKey.import_key(json.dumps(key.as_dict(private=False)))
    shared = OctKey.generate_key(256, {"kid": "one"})
    wrong = [
        made_token(other),
        made_token(key, kid="two"),
        f"{head}.{part({**CLAIMS, 'sub': 's-eve'})}.{signature}",
        f"{part({'alg': 'none', 'kid': 'one'})}.{body}.",
        f"{part({'alg': 'none'})}.{body}.",
        f"{head}.{body}.",
        f"{head}.{body}",
        made_token(secret, alg="HS256"),
        made_token(shared, alg="HS256"),
        "",
        "x" * 70_000,
        None,
        {"id_token": "x"},
    ]
    for text in wrong:
        with pytest.raises(InvalidIdToken):
            checked(text, keys)
    with pytest.raises(InvalidIdToken):
        checked(made_token(shared, alg="HS256"), KeySet([shared]))
    rsa = RSAKey.generate_key(2048, {"kid": "one"})
    for alg in ("RS256", "PS256"):
        assert checked(made_token(rsa, alg=alg), read_keys(public(rsa)))["sub"] == "s-ada"


def test_keys_for_other_uses_are_not_for_signatures() -> None:
    key, sealing = a_key(), ECKey.generate_key("P-256", {"kid": "two", "use": "enc"})
    shared = OctKey.generate_key(256, {"kid": "three"})
    mixed = {"keys": [*public(key, sealing)["keys"], shared.as_dict(private=True), {"kty": "RSA"}, 7, None]}
    keys = read_keys(mixed)
    assert [one.kid for one in keys.keys] == ["one"]
    empty: tuple[Any, ...] = ({}, [], None, {"keys": {}}, {"keys": mixed["keys"][1:]})
    for none in empty:
        with pytest.raises(InvalidIdToken, match="no key"):
            read_keys(none)


class Answers(BaseHTTPRequestHandler):
    """Answers with what a test has put in, by path."""

    documents: dict[str, Any]
    asked: list[str]

    def do_GET(self) -> None:
        found = self.documents.get(self.path, (404, {}))
        status, document = found if isinstance(found, tuple) else (200, found)
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.asked.append(self.path)
        self.send_response(status)
        if status == 302:
            self.send_header("location", "/keys")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    documents, asked = dict[str, Any](), list[str]()
    handler = type("Handler", (Answers,), {"documents": documents, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        names = {"authorization_endpoint": "/go?x=1", "token_endpoint": "/token", "jwks_uri": "/keys"}
        described = {"issuer": url} | {name: url + path for name, path in names.items()}
        documents["/.well-known/openid-configuration"] = described
        try:
            yield url, documents, asked
        finally:
            server.shutdown()
            thread.join()


def test_a_new_key_is_asked_for_once_a_minute() -> None:
    old, new = a_key("old"), a_key("new")
    now = float(NOW)
    with serving() as (url, documents, asked):
        own = OidcSettings(issuer=url, client_id="console", redirect_uri="https://console.example/back")
        provider = OidcProvider(own, now=lambda: now)
        assert provider.sign_in_url(state="s t").endswith("/go?x=1&state=s+t")

        def claims() -> Any:
            return provider.claims_of("code", verifier="v", nonce="n")

        documents["/keys"] = public(old)
        documents["/token"] = {"id_token": made_token(old, kid="old", iss=url)}
        assert claims()["sub"] == "s-ada"
        documents["/keys"] = public(new)
        documents["/token"] = {"id_token": made_token(new, kid="new", iss=url)}
        for _ in range(3):
            with pytest.raises(InvalidIdToken):
                claims()
        assert asked.count("/keys") == 1
        now += 60
        assert claims()["sub"] == "s-ada"
        assert asked.count("/keys") == 2
        assert asked.count("/.well-known/openid-configuration") == 1
        now += 3600
        with pytest.raises(InvalidIdToken):  # that token is over
            claims()
        assert asked.count("/.well-known/openid-configuration") == 2


def test_a_provider_that_misbehaves_is_no_provider() -> None:
    with serving() as (url, documents, asked):
        own = OidcSettings(issuer=url, client_id="console", redirect_uri="https://console.example/back")
        described = documents["/.well-known/openid-configuration"]
        wrong: tuple[Any, ...] = (
            {**described, "issuer": "http://127.0.0.1:1"},
            {**described, "token_endpoint": "http://id.example/token"},
            {**described, "jwks_uri": "file:///etc/passwd"},
            {**described, "jwks_uri": None},
            [described],
            b"{",
            b"[" * 100_000,
            b" " * (1 << 20) + b"{}",
            (500, {}),
            (302, {}),
        )
        for document in wrong:
            documents["/.well-known/openid-configuration"] = document
            with pytest.raises(SourceError, match="must"):
                OidcProvider(own).describe()
        assert "/keys" not in asked, "it is not followed elsewhere"
        documents["/.well-known/openid-configuration"] = described
        documents["/token"] = (302, {})
        documents["/keys"] = public(a_key())
        with pytest.raises(SourceError, match="got status 302"):
            OidcProvider(own).claims_of("code", verifier="v", nonce="n")
        documents["/token"] = {}
        with pytest.raises(InvalidIdToken, match="no ID token"):
            OidcProvider(own).claims_of("code", verifier="v", nonce="n")
