"""Requests that nobody's browser would send: hostile texts in every place, by members of every role.

``python -m tests.server.console.hostile COUNT`` sends so many to a console of its own and prints what came.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote_plus

from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.asking.question import Question
from tests.server.console.office import COUNT, MEMBERS, ORIGIN, Office, Reply, make_ledger
from tests.server.console.test_app import EXPECTED

__all__ = ["ALLOWED", "Attacker"]

ALLOWED = {200, 303, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 421, 429}
"""What may be answered; never 500."""

TEXTS: tuple[bytes, ...] = (
    b"", b" ", b"\0", b"ada\0", b"\r\n", b"a\r\nset-cookie: x=1", b"\xff\xfe", b"\xed\xa0\x80",
    b"\xf0\x9f\x92\xa9",
    "\u202eada\u2066".encode(), "\ufeff".encode(), "\ud800".encode("utf-8", "surrogatepass"),
    "\u0660".encode(),
    "\u00b2".encode(), b"9" * 18, b"9" * 19, b"9" * 5000, b"-1", b"0", b"01", b"+1", b"1_0", b"0x1",
    b"1e400", b"-0",
    b"1e-400", b"5e-324", b"1e308", b"nan", b"inf", b"-inf", b"1e5", b"1", b"2", b"true", b"{}", b"[]",
    b"null",
    b"[" * 50_000, b'{"a":' * 20_000, b'{"epsilon": 1e999}', b'{"epsilon": NaN}',
    b'{"epsilon": %s}' % (b"9" * 5000),
    b'{"epsilon": true}', b'{"format": "sfumato.question"}', b'{"sql": "\\ud800"}', b"x" * 200_000, b"a b",
    b"<script>",
    b"{{ 7 * 7 }}", b"{% raise %}", b"%s%n%d", b"${7}", b"'; DROP TABLE data; --", b"../../etc/passwd",
    b"..", b".",
    b"//evil.example", b"javascript:1", b"SELECT", b"SELECT 1",
    b"(" * 5000, b"SELECT " + b"-" * 3000 + b"1", b"a" * 63,
    b"ada", b"bo", b"carl", b"release", b"en", b"de", b"__class__", b"grant", b"decline", b"yes",
    b"0" * 32, b"0" * 128,
    b"0" * 64, b"f" * 64, b"\xc3\xa9", b"e\xcc\x81", b"\x7f", b"\x1b[31m", b"csv", b"arrow", b"COUNT",
    b"SUM", b"age",
)  # fmt: skip

SQL = COUNT.replace("epsilon=0.25, ", "")
TOO_MUCH = Question(sql=SQL, epsilon=0.75, purpose="a report").to_json()
"""A question that is right in every way, but more than is left: it is never charged."""

FORMS: dict[str, dict[str, str]] = {
    "/sign-in": {"token": "sfumato_" + "0" * 16 + "_" + "0" * 64},
    "/ask/price": {
        "sql": SQL, "epsilon": "0.75", "error": "", "units": "", "purpose": "a", "period": "",
        "table": "data",
        "aggregate": "", "column": "age", "lower": "0", "upper": "9", "group_by": "", "groups": "",
        "rows": "",
        "delta": "0",
    },
    "/ask/run": {"question": TOO_MUCH, "cost": '{"epsilon": 0.75}', "request": "one"},
    "/dry-run": {"sql": SQL, "epsilon": "0.5"},
    "/history/{job}/review": {"comment": "see"},
    "/grants/grant": {"analyst": "bo", "epsilon": "0.125", "reason": "a"},
    "/grants/close": {"analyst": "bo", "reason": "a"},
    "/grants/decide": {"analyst": "bo", "decision": "grant", "budget": "pure epsilon 1", "reason": "a"},
    "/account/request": {"epsilon": "1", "purpose": "more"},
    "/members/roles": {"name": "bo", "role-analyst": "yes"},
    "/members/key": {"name": "bo", "public_key": "0" * 64},
    "/members/revoke": {"name": "bo"},
    "/review/{number}/statement": dict.fromkeys(("purpose", "groups", "bounds", "numbers", "release"), "yes")
    | {"comment": "fine"},
    "/review/{number}/approve": {"statement": "{}", "signature": "0" * 128},
    "/review/{number}/return": {"comment": "no"},
    "/review/{number}/withdraw": {"comment": "no"},
}  # fmt: skip
QUERIES = ("page", "language", "again", "wait", "name", "epsilon")
FORM = b"application/x-www-form-urlencoded"
KINDS = (
    FORM, FORM + b"; charset=utf-16", FORM + b"; charset=nonsense", b"application/json", b"text/plain",
    b"\xff",
    b"multipart/form-data", b"multipart/form-data; boundary=x", b"multipart/form-data; boundary=", b"",
    b"multipart/form-data; boundary=" + b"x" * 300, FORM + b";" * 100, FORM + b"; charset*=utf-8''%ff",
)  # fmt: skip
ODD_HEADERS = (
    (b"host", b"evil.example"), (b"origin", b"null"), (b"cookie", b"__Host-sfumato=x"), (b"cookie",
    b";=;\xff"),
    (b"authorization", b"Bearer"), (b"authorization", b"\xff\xfe"), (b"content-length",
    b"99999999999999999999"),
    (b"content-length", b"-1"), (b"sec-fetch-site", b"cross-site"), (b"accept", b"\xff"),
    (b"accept-language", b"\xff"),
    (b"x-csrf-token", b"\xff" * 64), (b"transfer-encoding", b"chunked"), (b"content-encoding", b"gzip"),
    (b"range", b"bytes=0-,0-,0-"), (b"x" * 5000, b"y" * 5000), (b"x-forwarded-proto", b"\0"), (b"expect",
    b"1"),
)  # fmt: skip
ODD_METHODS = ("HEAD", "PUT", "OPTIONS", "TRACE", "get", "PO ST", "\xff", "")


def _quoted(value: bytes) -> bytes:
    return quote_plus(value).encode()


class Attacker:
    """Sends hostile requests to a console, signed in as anybody and as nobody."""

    def __init__(self, office: Office, seed: int) -> None:
        self._office, self._source = office, random.Random(seed)
        self._routes = sorted(route for route in EXPECTED if "oidc" not in route)
        console = office.console
        console.ledger.members.set_roles("boss", set(MEMBERS.values()), by="carl")
        console.ledger.reviews.request(1, by="ada", comment="please")
        names = (*MEMBERS, "boss", "nobody")
        tokens = [console.tokens.create(name, tuple(Scope), days=1)[0] for name in names]
        self._who: list[list[tuple[bytes, bytes]]] = [
            [(b"authorization", f"Bearer {t}".encode())] for t in tokens
        ]
        self._token = tokens[list(names).index("ada")]
        self._csrf = b""
        self.uncaught: list[str] = []

    async def sign_in(self) -> None:
        """Add a browser of ada's to those who send."""
        own = (b"origin", ORIGIN.encode()), (b"content-type", FORM)
        page = await self._office.answer("GET", b"/sign-in")
        cookie = page.headers["set-cookie"].partition(";")[0].encode()
        form = b"csrf_token=%s&token=%s" % (_csrf_of(page), self._token.encode())
        entered = await self._office.answer("POST", b"/sign-in", [*own, (b"cookie", cookie)], [form])
        session = (b"cookie", entered.headers["set-cookie"].partition(";")[0].encode())
        self._csrf = _csrf_of(await self._office.answer("GET", b"/ask", [session]))
        self._who += [[session], [session], []]

    async def attack(self, count: int) -> Counter[int]:
        """Send so many requests; return how often each status came."""
        await self.sign_in()
        found = Counter[int]()
        for _ in range(count):
            try:
                found[(await self._one()).status] += 1
            except Exception as error:  # of whatever kind: there must be none
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.uncaught.append(f"{error!r:.200} at {where.filename}:{where.lineno}")
        return found

    async def _one(self) -> Reply:
        source = self._source
        method, _, path = source.choice(self._routes).partition(" ")
        headers = [*source.choice(self._who)]
        body = b""
        if method == "POST":
            body, kind = self._body(FORMS.get(path, {}))
            headers += [(b"origin", ORIGIN.encode()), (b"content-type", kind)]
        if source.random() < 0.1:
            headers.insert(source.randrange(len(headers) + 1), source.choice(ODD_HEADERS))
        if source.random() < 0.05:
            method = source.choice(ODD_METHODS)
        target = self._target(path)
        if path == "/sign-out":  # so that the browser stays signed in
            headers = [header for header in headers if header[0] != b"cookie"]
        return await self._office.answer(method, target, headers, self._pieces(body))

    def _target(self, path: str) -> bytes:
        source = self._source

        def filled(_: re.Match[bytes]) -> bytes:
            return source.choice((b"1", b"2", _quoted(self._text()[:3000])))

        made = re.sub(rb"\{\w+\}", filled, path.encode())
        if source.random() < 0.05:
            made += source.choice((b"/", b"//", b"%00", b"%2e%2e", b";x", b"\xff"))
        if source.random() < 0.4:
            pairs = [
                b"%s=%s" % (source.choice(QUERIES).encode(), self._value())
                for _ in range(source.randrange(1, 4))
            ]
            made += b"?" + b"&".join(pairs)[:20_000]
        return made

    def _text(self) -> bytes:
        source = self._source
        return source.choice(TEXTS) if source.random() < 0.9 else source.randbytes(source.randrange(30))

    def _value(self) -> bytes:
        """A hostile value, quoted, or not as it should be."""
        text = self._text()
        return _quoted(text) if self._source.random() < 0.9 else text.replace(b"&", b"")

    def _body(self, form: dict[str, str]) -> tuple[bytes, bytes]:
        source = self._source
        pairs = [(name.encode(), _quoted(value.encode())) for name, value in form.items()]
        for _ in range(source.choice((0, 1, 1, 2, 3))):
            if pairs and source.random() < 0.9:
                at = source.randrange(len(pairs))
                pairs[at] = (pairs[at][0], self._value())
            else:
                pairs.append(
                    (source.choice((b"csrf_token", b"sql", b"", b"\xff", b"x" * 1000)), self._value())
                )
        if source.random() < 0.05:
            pairs = [*pairs, *pairs] * source.choice((1, 60))
        if self._csrf and source.random() < 0.95:
            pairs.insert(0, (b"csrf_token", self._csrf))
        joined = b"&".join(b"%s=%s" % pair for pair in pairs)
        if source.random() < 0.85:
            return joined, FORM
        kind = source.choice(KINDS)
        if kind.endswith(b"boundary=x") and source.random() < 0.8:
            part = b'--x\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
            file = source.choice((b"", b'; filename="f"', b"; filename*=utf-8''%ff", b"; charset=zz"))
            joined = b"".join(part % (name, file, value) for name, value in pairs[:20]) + b"--x--"
        return source.choice(
            (joined, source.randbytes(100), b"x" * ((1 << 20) + 1) if source.random() < 0.1 else b"")
        ), kind

    def _pieces(self, body: bytes) -> Sequence[bytes]:
        if self._source.random() < 0.9:
            return [body]
        cut = self._source.randrange(len(body) + 1)
        return [body[:cut], b"", body[cut:]]


def _csrf_of(page: Reply) -> bytes:
    found = re.search(b'name="csrf_token" value="([0-9a-f]{64})"', page.content)
    assert found is not None
    return found[1]


def main(count: int) -> None:
    """Attack a console of its own, and print how often each status came."""
    with tempfile.TemporaryDirectory() as name:
        make_ledger(Path(name))
        office = Office(Path(name), data=True)
        attacker = Attacker(office, 26)
        before = office.console.ledger.head().charges
        found = asyncio.run(attacker.attack(count))
        sys.stdout.write(f"{dict(sorted(found.items()))}, uncaught {Counter(attacker.uncaught)}\n")
        assert office.console.ledger.head().charges == before
        assert office.console.ledger.verify().sound
        office.console.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
