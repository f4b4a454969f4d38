"""Scalar expressions: what each becomes, its type, and that nothing outside the whitelist gets through."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from sqlglot import exp

from sfumato.errors import QueryError
from sfumato.queries.plan.constants import python_value
from sfumato.queries.plan.query import Column, ColumnType, Expression, Scan, Schema
from sfumato.queries.sql.clauses.table_expressions import Rows
from sfumato.queries.sql.expressions.functions import FUNCTION_NAMES
from sfumato.queries.sql.expressions.scalar import read_constant, read_expression
from sfumato.queries.sql.parser import parse
from tests.cases import cases

B, N, F, T, D, M = (
    ColumnType.BOOLEAN,
    ColumnType.INTEGER,
    ColumnType.FLOAT,
    ColumnType.TEXT,
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
)
COLUMNS = {"b": B, "i": N, "Real": F, "t": T, "d": D, "m": M}
SCHEMA = Schema(tuple(Column(name, type_) for name, type_ in COLUMNS.items()))
ROWS = Rows.of(Scan("data", SCHEMA, None), "data")

NODES = {
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub),
    *(exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.DPipe, exp.Case, exp.If, exp.TryCast, exp.DataType, exp.Var),
    *(
        exp.Coalesce,
        exp.Greatest,
        exp.Least,
        exp.Nullif,
        exp.Abs,
        exp.Sign,
        exp.Sqrt,
        exp.Ln,
        exp.Log,
        exp.Exp,
    ),
    *(exp.Floor, exp.Ceil, exp.Pow, exp.Round, exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring),
    *(exp.StartsWith, exp.Extract, exp.DateTrunc, exp.TimestampTrunc),
}


def expression(text: str) -> Expression:
    return read_expression(parse(f"SELECT {text} FROM data").select.expressions[0], ROWS, "the expression")


@cases(
    ("text", "canonical", "type_"),
    [
        ("I", "`i`", N),
        ("data.real", "`Real`", F),
        ("1", "1", N),
        ("007", "7", N),
        ("-0", "0", N),
        ("-9223372036854775808", "-9223372036854775808", N),
        ("1.50", "1.5", F),
        ("1e3", "1000.0", F),
        (".5", "0.5", F),
        ("-2.", "-2.0", F),
        ("'it\\'s'", "'it\\'s'", T),
        ('"dq"', "'dq'", T),
        ("r'a'", "'a'", T),
        ("true", "TRUE", B),
        ("i + 1 * 2", "`i` + (1 * 2)", N),
        ("((i) + (1)) * 2", "(`i` + 1) * 2", N),
        ("i + 1.0", "`i` + 1.0", F),
        ("i / 2", "`i` / 2", F),
        ("i - -i", "`i` - (-`i`)", N),
        ("i % 3", "MOD(`i`, 3)", N),
        ("MOD(real, i)", "MOD(`Real`, `i`)", F),
        ("i = real", "`i` = `Real`", B),
        ("i != 1", "`i` <> 1", B),
        ("i <> 1", "`i` <> 1", B),
        ("b AND NOT b OR i > 1", "(`b` AND (NOT `b`)) OR (`i` > 1)", B),
        ("b AND (b AND (b AND b))", "`b` AND `b` AND `b` AND `b`", B),
        ("t IS NOT NULL", "NOT (`t` IS NULL)", B),
        ("i IN (1, -2, 3.5)", "`i` IN (1, -2, 3.5)", B),
        ("i NOT IN (1)", "NOT (`i` IN (1))", B),
        ("i BETWEEN 1 AND 2", "`i` BETWEEN 1 AND 2", B),
        ("i NOT BETWEEN 1 AND 2", "NOT (`i` BETWEEN 1 AND 2)", B),
        ("t LIKE 'a%_'", "`t` LIKE 'a%_'", B),
        ("t NOT LIKE 'a'", "NOT (`t` LIKE 'a')", B),
        ("CASE WHEN b THEN i END", "CASE WHEN `b` THEN `i` ELSE NULL END", N),
        ("CASE i WHEN 1 THEN 2 ELSE 2.5 END", "CASE `i` WHEN 1 THEN 2 ELSE 2.5 END", F),
        ("IF(b, t, NULL)", "CASE WHEN `b` THEN `t` ELSE NULL END", T),
        ("IFNULL(i, 0)", "COALESCE(`i`, 0)", N),
        ("COALESCE(NULL, i, real)", "COALESCE(NULL, `i`, `Real`)", F),
        ("NULLIF(t, '')", "NULLIF(`t`, '')", T),
        ("CAST(t AS INT64)", "SAFE_CAST(`t` AS INT64)", N),
        ("SAFE_CAST(t AS FLOAT64)", "SAFE_CAST(`t` AS FLOAT64)", F),
        ("CAST(i AS bigint)", "`i`", N),
        ("t::date", "SAFE_CAST(`t` AS DATE)", D),
        ("CAST(NULL AS STRING)", "SAFE_CAST(NULL AS STRING)", T),
        ("CAST(t AS BigNumeric)", "SAFE_CAST(`t` AS NUMERIC)", ColumnType.DECIMAL),
        ("NUMERIC '1.50'", "SAFE_CAST('1.50' AS NUMERIC)", ColumnType.DECIMAL),
        ("CAST(CAST(i AS NUMERIC) AS DECIMAL)", "SAFE_CAST(`i` AS NUMERIC)", ColumnType.DECIMAL),
        ("CAST(b AS uint64)", "SAFE_CAST(SAFE_CAST(`b` AS INT64) AS UINT64)", ColumnType.DECIMAL),
        ("SAFE_CAST(NULL AS UINT64)", "SAFE_CAST(NULL AS UINT64)", ColumnType.DECIMAL),
        ("CAST(d AS DATETIME)", "SAFE_CAST(`d` AS TIMESTAMP)", M),
        ("ABS(i)", "ABS(`i`)", N),
        ("ROUND(i)", "ROUND(`i`)", F),
        ("ROUND(real, 2)", "ROUND(`Real`, 2)", F),
        ("CEILING(real)", "CEIL(`Real`)", F),
        ("FLOOR(real)", "FLOOR(`Real`)", F),
        ("SQRT(i)", "SQRT(`i`)", F),
        ("LN(i)", "LN(`i`)", F),
        ("EXP(i)", "EXP(`i`)", F),
        ("SIGN(real)", "SIGN(`Real`)", F),
        ("POW(i, 2)", "POWER(`i`, 2)", F),
        ("LEAST(i, real)", "LEAST(`i`, `Real`)", F),
        ("GREATEST(d, '2020-01-01')", "GREATEST(`d`, SAFE_CAST('2020-01-01' AS DATE))", D),
        ("LENGTH(t)", "LENGTH(`t`)", N),
        ("CHAR_LENGTH(t)", "LENGTH(`t`)", N),
        ("UPPER(LOWER(TRIM(t)))", "UPPER(LOWER(TRIM(`t`)))", T),
        ("SUBSTRING(t, 2)", "SUBSTRING(`t`, 2)", T),
        ("SUBSTR(t, 1, 3)", "SUBSTRING(`t`, 1, 3)", T),
        ("CONCAT(t, 'x', t)", "`t` || 'x' || `t`", T),
        ("t || 'x' || t", "`t` || 'x' || `t`", T),
        ("STARTS_WITH(t, 'x')", "STARTS_WITH(`t`, 'x')", B),
        ("EXTRACT(year FROM d)", "EXTRACT(YEAR FROM `d`)", N),
        ("EXTRACT(HOUR FROM m)", "EXTRACT(HOUR FROM `m`)", N),
        ("DATE_TRUNC(d, month)", "DATE_TRUNC(`d`, MONTH)", D),
        ("TIMESTAMP_TRUNC(m, HOUR)", "TIMESTAMP_TRUNC(`m`, HOUR)", M),
        ("DATE_TRUNC(m, DAY)", "TIMESTAMP_TRUNC(`m`, DAY)", M),
        ("DATE '2020-02-29'", "SAFE_CAST('2020-02-29' AS DATE)", D),
        ("m > '2020-01-01'", "`m` > SAFE_CAST('2020-01-01 00:00:00' AS TIMESTAMP)", B),
        ("TIMESTAMP '2020-01-01T10:00:00+02:00'", "SAFE_CAST('2020-01-01 08:00:00' AS TIMESTAMP)", M),
    ],
)
def test_canonical_form_and_type(text: str, canonical: str, type_: ColumnType) -> None:
    made = expression(text)
    assert (made.sql, made.type) == (canonical, type_)
    assert expression(made.sql) == made
    assert {type(node) for node in made.tree.walk()} <= NODES


def test_log10() -> None:
    made = expression("LOG10(i)")
    assert isinstance(made.tree, exp.Log)
    assert (made.tree.this.name, made.tree.expression.name, made.type) == ("10", "i", F)
    assert isinstance(expression("LOG(i)").tree, exp.Ln)


def test_nulls_of_least_and_concat_do_not_depend_on_the_engine() -> None:
    assert expression("LEAST(i, 1)").tree.args["ignore_nulls"] is False
    assert isinstance(expression("CONCAT(t, t)").tree, exp.DPipe)


def test_long_chains_stay_shallow() -> None:
    made = expression(" AND ".join(f"i > {number}" for number in range(4000)))
    depth = max(sum(1 for _ in iter_parents(leaf)) for leaf in made.tree.find_all(exp.Identifier))
    assert depth < 20


def iter_parents(node: exp.Expr) -> list[exp.Expr]:
    parents = []
    parent = node.parent
    while parent is not None:
        parents.append(parent)
        parent = parent.parent
    return parents


@cases("text", ["i + 1 / 0", "SUBSTR(t, 0)", "LIKE", "i IN (i)", "SAFE.LN(i)", "t.x.y", "m > d"])
def test_what_is_refused_or_not_is_decided_by_the_text(text: str) -> None:
    if text == "i + 1 / 0":
        assert expression(text).type is F
    else:
        with pytest.raises(QueryError):
            expression(text)


@cases("text", ["CAST('1' AS INT64)", "i", "1 + 1", "NULL", "UPPER('a')", "CAST(1 AS STRING)"])
def test_only_literals_are_constants(text: str) -> None:
    with pytest.raises(QueryError):
        read_constant(parse(f"SELECT {text} FROM data").select.expressions[0], "a bound")


@pytest.mark.parametrize(("text", "value"), [("-3", -3), ("2.5", 2.5), ("'a'", "a"), ("FALSE", False)])
def test_values_of_constants(text: str, value: object) -> None:
    constant = read_constant(parse(f"SELECT {text} FROM data").select.expressions[0], "a bound")
    assert python_value(constant) == value


_numbers = st.sampled_from(["i", "Real", "3", "-2", "1.5", "CAST(t AS INT64)"])
_texts = st.sampled_from(["t", "'x'", "CAST(i AS STRING)"])
_truths = st.sampled_from(["b", "TRUE", "t IS NULL", "d > '2020-01-01'", "i IN (1, 2)", "t LIKE 'a%'"])


def _grow(children: st.SearchStrategy[tuple[str, str, str]]) -> st.SearchStrategy[tuple[str, str, str]]:
    def combine(left: tuple[str, str, str], right: tuple[str, str, str], pick: int) -> tuple[str, str, str]:
        (n, t, b), (m, s, c) = left, right
        numbers = [
            f"{n} + {m}",
            f"({n}) * {m}",
            f"{n} / {m}",
            f"-({n})",
            f"ABS({n})",
            f"IF({b}, {n}, {m})",
            f"LENGTH({t})",
        ]
        texts = [
            f"{t} || {s}",
            f"UPPER({t})",
            f"COALESCE({t}, {s})",
            f"CASE WHEN {b} THEN {t} END",
            f"SUBSTR({t}, 2)",
        ]
        truths = [
            f"{b} AND {c}",
            f"{b} OR ({c})",
            f"NOT {b}",
            f"{n} < {m}",
            f"{t} = {s}",
            f"({n}) BETWEEN {m} AND 9",
        ]
        return numbers[pick % len(numbers)], texts[pick % len(texts)], truths[pick % len(truths)]

    return st.builds(combine, children, children, st.integers(0, 100))


@given(st.recursive(st.tuples(_numbers, _texts, _truths), _grow, max_leaves=12))
def test_random_expressions_are_canonical_and_closed(texts: tuple[str, str, str]) -> None:
    for text, types in zip(texts, ({N, F}, {T}, {B}), strict=True):
        made = expression(text)
        assert made.type in types
        assert expression(made.sql) == made
        assert {type(node) for node in made.tree.walk()} <= NODES


def test_every_listed_function_is_in_the_documentation(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "sql.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTION_NAMES if f"`{name}(" not in page] == []


@cases(("name", "moment"), [("DATE", "d"), ("TIMESTAMP", "m"), ("DATETIME", "m")])
def test_what_is_subtracted_is_added_with_the_other_sign(name: str, moment: str) -> None:
    for count in (1, 5):
        less = expression(f"{name}_SUB({moment}, INTERVAL {count} DAY)")
        assert less == expression(f"{name}_ADD({moment}, INTERVAL -{count} DAY)")
        assert less == expression(f"{moment} - INTERVAL {count} DAY")
        assert less != expression(f"{name}_ADD({moment}, INTERVAL {count} DAY)")
