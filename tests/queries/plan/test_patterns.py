"""Regular expressions: what is taken means in DuckDB what it means to Python, and the rest is refused."""

from __future__ import annotations

import random
import re

import duckdb
import pytest

from sfumato.errors import UnsupportedSql
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.plan.patterns import Pattern, PatternSpelling, parse_pattern

PYTHON = PatternSpelling(r"\Z")
REFUSED = [
    *("a**", "a+?", "(a", "a)", "[a", "[]a]", "x*", "a?b*", "(a)(b)", "((a)b)", "(?i)a", "(?P<n>a)", "(?=a)"),
    *("a|", "a||b", "^a|b", "a|b$", r"\b", r"\pL", r"\1", "a$b", "a^b", "(a)+", "(?:ab)*", "(?:a(b)){2}"),
    *("a{3,2}", "a{0}b", "x{a}", "a{1000}", "[z-a]", "(?:a*){3}b", "(?:a|b?)c", "a\\", "*a", "{2}", "(?:)"),
    *("", "^$", "[^]", "[[:alpha:]]", "a+b*a+c*a+", "(?:a|ab){12}c", "a{249}bc", "a" * 1001),
]
SHOWN = {
    "^[A-Z]{2}-([0-9]+)$": r"^[A-Z]{2,2}\-([0-9]+)\Z",
    r"\d\w\s.": r"[0-9][0-9A-Z_a-z][" + "\t-\n\f-\r " + "][^\n]",
    "a{3,}": "a{2}a+",
    "[^a-c.]": r"[^\.a-c]",
    "^(?:a|b)$": r"^(?:a|b)\Z",
}  # fmt: skip


def test_what_engines_would_disagree_on_is_refused() -> None:
    for text in REFUSED:
        with pytest.raises(UnsupportedSql, match="a regular expression must"):
            parse_pattern(text)


def test_the_spelling_leaves_nothing_to_the_engine() -> None:
    assert {text: parse_pattern(text).spelled(PYTHON) for text in SHOWN} == SHOWN


def test_what_is_ambiguous_is_looked_for_but_not_extracted() -> None:
    for text in ("foo|fob", "(?:gmail|googlemail)[.]com$", "a+ab", ".*x"):
        parse_pattern(text)
        with pytest.raises(UnsupportedSql, match="deterministic for REGEXP_EXTRACT"):
            parse_pattern(text, extracts=True)


def test_the_group_where_every_parenthesis_captures() -> None:
    snowflake = PatternSpelling("$", plain_groups=False)
    for text in ("x(y)", r"(?:a|b)\((?:c|d)?e(f)(?:g|h)", "(?:a|b(c))", "^(?:u|v)(w+)$"):
        made = parse_pattern(text, extracts=True)
        assert (
            re.compile(made.spelled(snowflake)).groups
            >= made.group
            == _position(made.spelled(snowflake), made)
        )


def _position(written: str, made: Pattern) -> int:
    """Return which parenthesis captures what the plain spelling captures."""
    for text in ("xy", "a(cef", "a(cefg", "b(efh", "bc", "uw", "vww"):
        plain, every = re.search(made.spelled(PYTHON), text), re.search(written, text)
        if plain and every and plain.group(1):
            return 1 + every.groups().index(plain.group(1))
    raise AssertionError(written)


def _written(draw: random.Random, depth: int = 0) -> str:
    """Write a pattern of few letters, so that it matches often."""
    parts = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.random()
        if kind < 0.25 and depth < 2:
            inner = _written(draw, depth + 1)
            part = f"(?:{inner}|{_written(draw, depth + 1)})" if kind < 0.12 else f"(?:{inner})"
        else:
            part = draw.choice(["a", "b", "c", "[ab]", "[^a]", r"\d", ".", r"\.", "é", r"\w", "[a-c1]"])
        parts.append(part + draw.choice(["", "", "", "?", "+", "*", "{2}", "{1,2}", "{2,}"]))
    if depth == 0 and draw.random() < 0.4:
        place = draw.randrange(len(parts))
        parts[place] = f"({parts[place]})"
    text = "".join(parts)
    if depth == 0:
        text = draw.choice(["", "", "^"]) + text + draw.choice(["", "", "$"])
    return text


def test_duckdb_and_python_agree_on_random_patterns() -> None:
    draw = random.Random(20261123)
    texts = ["".join(draw.choice("aabbcé1.\n ") for _ in range(draw.randrange(9))) for _ in range(150)]
    texts += ["aaaa\n", "\n", "", "😀a😀", "a\r\n"]
    compared = extracted = 0
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest($1) AS s", [texts])
        for _ in range(700):
            try:
                written = _written(draw)
                made = parse_pattern(written)
            except UnsupportedSql:
                continue
            compared += 1
            found = [re.search(made.spelled(PYTHON), text) for text in texts]
            sql = DUCKDB.matches("s", made)
            assert [r[0] for r in connection.sql(f"SELECT {sql} FROM t").fetchall()] == [
                match is not None for match in found
            ], written
            try:
                parse_pattern(written, extracts=True)
            except UnsupportedSql:
                continue
            extracted += 1
            sql = DUCKDB.matched_part("s", made)
            expected = [m and m.group(int(made.captures)) for m in found]
            assert [r[0] for r in connection.sql(f"SELECT {sql} FROM t").fetchall()] == expected, written
            assert expected == [_longest(made, m, text) for m, text in zip(found, texts, strict=True)], (
                written
            )
    assert compared > 200
    assert extracted > 100


def _longest(made: Pattern, match: re.Match[str] | None, text: str) -> str | None:
    """Return what an engine that looks for the longest match, such as PostgreSQL's, would extract."""
    if match is None:
        return None
    body = Pattern(made.body, start=False, end=False).spelled(PYTHON)
    ends = [len(text)] if made.end else range(len(text), match.start() - 1, -1)
    for end in ends:
        whole = re.compile(body).fullmatch(text, match.start(), end)
        if whole:
            return whole.group(int(made.captures))
    raise AssertionError(text)
