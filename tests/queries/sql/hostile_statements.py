"""Statements that nobody should write: queries with words dropped, doubled and swapped, and hostile parts."""

from __future__ import annotations

import random
from collections.abc import Iterator

from sfumato.errors import QueryError
from sfumato.queries.plan.query import Query
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read_statement
from sfumato.queries.sql.parser import LargerStatement, Statement, parse_statement
from sfumato.queries.sql.rewriting import written_out
from sfumato.session.larger_query import read_larger
from tests.queries.people import CATALOG
from tests.queries.sql.test_fuzz import DEFAULTS, FORMS, HOSTILE, SEEDS, WORD, WORDS, engine

__all__ = ["outcome", "statements"]

_SEEDS = [
    *SEEDS,
    "SELECT UPPER(state) AS s, APPROX_TOP_COUNT(age + 1, 3) FROM data GROUP BY s, sex ORDER BY s",
    "FROM data |> AGGREGATE WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) APPROX_TOP_COUNT(born, 2) AS top",
]
_WORDS = [*WORDS, "APPROX_TOP_COUNT", "APPROX_TOP_COUNT(sex, 2)", "ROLLUP(state, sex)"]

_ODD = [
    "\0",
    "\ufeff",
    "\u202e",
    "é",
    "\U0001d4b3",
    "\\u0000",
    "'" * 3,
    '"' * 2,
    "`a``b`",
    "1e309",
    "-0",
    "0b1",
    "/*",
    "*/",
]
_ODD += [
    "--",
    "#",
    "\n",
    "\t",
    "{{x}}",
    "%s",
    "${x}",
    "'; DROP TABLE data; --",
    "9" * 40,
    "." * 9,
    "(" * 60,
    "NOT " * 60,
]


def statements(draw: random.Random) -> Iterator[str]:
    """Yield statements without end: of each kind about as many."""
    kinds = (_mutated, _hostile, _spliced, _words)
    while True:
        yield draw.choice(kinds)(draw)


def _mutated(draw: random.Random) -> str:
    words = WORD.findall(draw.choice(_SEEDS))
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        match draw.choice(["drop", "double", "replace", "swap", "insert", "odd"]):
            case "drop" if len(words) > 1:
                del words[at]
            case "double":
                words.insert(at, words[at])
            case "replace":
                words[at] = draw.choice(_WORDS)
            case "swap":
                words[at], words[other] = words[other], words[at]
            case "odd":
                words.insert(at, draw.choice(_ODD))
            case _:
                words.insert(at, f" {draw.choice(_WORDS)} ")
    return "".join(words)


def _hostile(draw: random.Random) -> str:
    inner = draw.choice(HOSTILE)
    for _ in range(draw.randint(0, 2)):
        form = draw.choice([
            *("({})", "-{}", "CAST({} AS STRING)", "IF(TRUE, {}, NULL)", "COALESCE({}, 1)", "[{}]"),
            *("CAST({} AS NUMERIC)", "CAST({} AS UINT64)", "CAST({} AS UINT{})"),
        ])  # fmt: skip
        inner = form.format(inner, inner)
    return draw.choice(FORMS).format(inner)


def _spliced(draw: random.Random) -> str:
    """A part of one query in the middle of another."""
    one, other = (WORD.findall(draw.choice(_SEEDS)) for _ in range(2))
    start = draw.randrange(len(other))
    at = draw.randrange(len(one))
    part = other[start : start + draw.randint(1, 12)]
    return "".join([*one[:at], " ", *part, " ", *one[at:]])


def _words(draw: random.Random) -> str:
    return " ".join(["SELECT", *draw.choices([*_WORDS, *HOSTILE, *_ODD], k=draw.randint(1, 25))])


def _read(statement: Statement) -> Query:
    return read_statement(statement, CATALOG, defaults=DEFAULTS)


def outcome(text: str) -> str:
    """Return "answered" over tables without rows, or "refused" by one of our errors; else raise.

    Raises
    ------
    Exception
        What is neither: a foreign exception.
    """
    try:
        statement = written_out(parse_statement(text))
        if isinstance(statement, LargerStatement):
            read_larger(statement, CATALOG, _read, engine())
            return "answered"
        priced = price(_read(statement))
        for job in priced.jobs:
            engine().check(job)
    except QueryError:
        return "refused"
    for job in priced.jobs:
        engine().aggregate(job, bytes(32))
    return "answered"
