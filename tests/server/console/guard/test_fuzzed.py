"""Random requests without a right to anything: each gets an answer, and none changes anything."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sfumato.server.console.access.proxy_header import ProxyHeader
from sfumato.server.console.guard.request_limits import RequestLimits
from tests.server.console.setting import ORIGIN, Console, ask, console

ANSWERS = {200, 400, 401, 403, 413, 421}
LIMITS = RequestLimits(
    body=500, address_rate=1e6, address_burst=10**6, member_rate=1e6, member_burst=10**6, unfinished=1000
)


def some(source: random.Random, made: Console) -> tuple[str, str, list[tuple[bytes, bytes]], list[bytes]]:
    """A request that is nearly right in some of its parts, or of random bytes."""
    noise = source.randbytes(source.choice((0, 1, 7, 40, 3000)))
    text, _ = made.tokens.create("ada", ["read"], days=1) if source.random() < 0.02 else ("", None)
    near = [
        (b"host", source.choice((b"console.example", b"evil.example", noise))),
        (
            b"authorization",
            source.choice((b"Bearer x", b"Basic " + noise, b"bearer", text[:-1].encode(), noise)),
        ),
        (b"cookie", source.choice((b"__Host-sfumato=x", b"__Host-sfumato=" + noise, b";=;", noise))),
        (b"origin", source.choice((ORIGIN.encode(), b"null", noise))),
        (b"sec-fetch-site", source.choice((b"same-origin", b"cross-site", noise))),
        (b"content-type", source.choice((b"application/x-www-form-urlencoded", b"text/plain", noise))),
        (b"content-length", source.choice((b"0", b"500", b"501", b"-1", noise))),
        (b"x-csrf-token", source.choice((b"0" * 64, noise))),
        (b"x-remote-user", source.choice((b"carl", noise))),
        (noise[:30].lower(), noise),
    ]
    headers = source.sample(near, source.randrange(len(near)))
    method = source.choice(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", noise[:9].decode("latin-1")))
    path = source.choice(("/", "/plain", "/sign-out", "/change", "/" + noise.decode("latin-1")))
    body = [source.choice((b"", b"csrf_token=x", b"csrf_token=%zz&csrf_token", noise)) for _ in range(2)]
    return method, path, headers, body


@pytest.mark.parametrize("count", [600, 3000])
def test_random_requests_are_answered_and_change_nothing(tmp_path: Path, count: int) -> None:
    source = random.Random(26)
    proxy = ProxyHeader(header="x-remote-user", peers=("10.0.0.1",))
    statuses = set[int]()
    with console(tmp_path, proxy=proxy, limits=LIMITS) as made:
        position = made.ledger.head().position
        for _ in range(count):
            method, path, headers, body = some(source, made)
            if path == "/sign-out" and method in ("GET", "HEAD"):
                path = "/"
            host = source.random() < 0.7 and all(name != b"host" for name, _ in headers)
            answer = ask(made.app, method, path, headers, body, host=host)
            statuses.add(answer.status)
            assert answer.all(b"x-content-type-options") == [b"nosniff"]
        assert made.changed == []
        assert made.ledger.head().position <= position + 25, "failed sign-ins, few of them"
    assert statuses <= ANSWERS
    assert statuses >= {200, 400, 401, 403, 413, 421}
