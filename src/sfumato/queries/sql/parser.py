"""From text to a syntax tree: BigQuery's SQL with ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...)``.

The clause is cut out of the token stream before the parser sees it, and the aggregates are left open for
named arguments by taking them off the parser's list of known functions. Both use only the documented face of
sqlglot (tokens, the FUNCTIONS table), never its private parse methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.errors import ParseError, TokenError

from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.queries.sql.pipe_syntax import unpiped
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters, parameter_names

__all__ = [
    "AGGREGATE_NAMES",
    "LargerStatement",
    "PrivateSql",
    "Statement",
    "named_parameters",
    "parse",
    "parse_statement",
    "without_explain",
]

AGGREGATE_NAMES = frozenset(
    {
        *("ANY_VALUE", "APPROX_COUNT_DISTINCT", "APPROX_QUANTILES", "APPROX_TOP_COUNT", "APPROX_TOP_SUM"),
        *("AVG", "CORR", "COUNT", "COUNTIF"),
        *("COVAR_POP", "COVAR_SAMP", "MAX", "MEDIAN", "MIN", "PERCENTILE_CONT", "STDDEV", "STDDEV_POP"),
        *("STDDEV_SAMP", "SUM", "VARIANCE", "VAR_POP", "VAR_SAMP"),
    }
)
"""Aggregates that are read as plain calls, so that they may carry named arguments."""

_MAX_CHARACTERS = 1_000_000
_MAX_NESTING = 32
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})

_OTHER_STATEMENTS = frozenset(
    {
        *("ALTER", "ANALYZE", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "COMMENT", "COMMIT", "COPY"),
        *("CREATE", "DECLARE", "DELETE", "DESC", "DESCRIBE", "DETACH", "DROP", "EXECUTE", "EXPLAIN"),
        *("EXPORT", "GRANT", "IMPORT", "INSERT", "INSTALL", "KILL", "LOAD", "MERGE", "PIVOT", "PRAGMA"),
        *("PREPARE", "REPLACE", "RESET", "REVOKE", "ROLLBACK", "SET", "SHOW", "SUMMARIZE", "TRUNCATE"),
        *("UNPIVOT", "UPDATE", "USE", "VACUUM", "VALUES"),
    }
)

_OTHER_CLAUSES = {
    "ANONYMIZATION": "write SELECT WITH DIFFERENTIAL_PRIVACY",
    "AGGREGATION_THRESHOLD": "a threshold alone is not private; write SELECT WITH DIFFERENTIAL_PRIVACY",
}


class PrivateSql(BigQuery):
    """BigQuery's dialect with its aggregates as plain calls, which take ``name => value`` arguments.

    A type of any name may be written in a CAST: UINT64 is read, others are refused by name.
    """

    SUPPORTS_USER_DEFINED_TYPES = True

    class Parser(BigQuery.Parser):  # type: ignore[misc, valid-type]
        """BigQuery's parser without its own opinion on the arguments of aggregates."""

        FUNCTIONS: ClassVar = {
            name: build for name, build in BigQuery.Parser.FUNCTIONS.items() if name not in AGGREGATE_NAMES
        }
        FUNCTION_PARSERS: ClassVar = {
            name: read
            for name, read in BigQuery.Parser.FUNCTION_PARSERS.items()
            if name not in AGGREGATE_NAMES
        }

        def _warn_unsupported(self) -> None:
            """Log nothing of a query: what is refused is stated by its error."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One parsed SELECT.

    Parameters
    ----------
    select : sqlglot.exp.Select
        The tree without its privacy clause.
    options : tuple of Token, or None
        What stands between the parentheses of OPTIONS; None for a plain SELECT.
    parameters : Parameters
        What ``@name`` in the options stands for; in the tree it is replaced.
    parts : int
        How many SELECTs share its epsilon and delta evenly, itself among them.
    """

    select: exp.Select
    options: tuple[Token, ...] | None
    parameters: Parameters = NO_PARAMETERS
    parts: int = 1


@dataclass(frozen=True, slots=True)
class LargerStatement:
    """A query around private SELECTs, which reads their answers.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        The whole, without privacy clauses.
    private : tuple of Statement
        The private SELECTs, whose trees are nodes of ``tree``.
    """

    tree: exp.Expr
    private: tuple[Statement, ...]


_DIALECT = PrivateSql()
_MARK: Final = "private:"
"""Begins the comment on the SELECTs whose clause was cut off; all other comments are removed before."""


def parse(text: str, parameters: Parameters = NO_PARAMETERS) -> Statement:
    """Read exactly one SELECT.

    Raises
    ------
    SqlSyntaxError
        If the text is not SQL; the message shows line, column and the offending text.
    UnsupportedSql
        If it is another kind of statement, more than one statement, or a form that is not answered.
    OptionError
        If parameters in the text and their values do not fit.
    """
    statement = parse_statement(text, parameters)
    if isinstance(statement, LargerStatement):
        raise UnsupportedSql(
            "one private SELECT must stand alone here, got it inside of larger SQL; ask session.sql(...), "
            "which answers both"
        )
    return statement


def parse_statement(text: str, parameters: Parameters = NO_PARAMETERS) -> Statement | LargerStatement:
    """Read one SELECT, or larger SQL with private SELECTs inside of it; raises what `parse` does.

    Examples
    --------
    >>> private = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM data"
    >>> type(parse_statement(private)).__name__
    'Statement'
    >>> type(parse_statement(f"SELECT n / 2 AS half FROM ({private})")).__name__
    'LargerStatement'
    """
    tokens = _tokens(text)
    parameters.check_names(tokens)
    piped = any(token.token_type is TokenType.PIPE_GT for token in tokens)
    _check_statement(tokens, piped=piped)
    if piped:
        tokens = unpiped(tokens, lambda words: list(_DIALECT.tokenize(words)))
    rest, clauses = _cut_clauses(tokens)
    tree = _tree(rest, text)
    parameters.bind(tree)
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this.pop()  # the root of what it holds
    if clauses:
        return _private(tree, clauses, parameters)
    if isinstance(tree, exp.SetOperation):
        raise UnsupportedSql(f"{tree.key.upper()} of SELECTs is not answered; ask for each SELECT on its own")
    if not isinstance(tree, exp.Select):
        raise UnsupportedSql("the statement must be one SELECT; write SELECT ... FROM ...")
    return Statement(tree, None)


def _private(
    tree: exp.Expr, clauses: Sequence[tuple[Token, ...]], parameters: Parameters
) -> Statement | LargerStatement:
    """Return the SELECTs whose clause was cut off, found again by their marks."""
    marked = {
        int(comment.removeprefix(_MARK)): select
        for select in tree.find_all(exp.Select)
        for comment in select.comments or []
    }
    if sorted(marked) != list(range(len(clauses))):
        raise UnsupportedSql(
            "WITH DIFFERENTIAL_PRIVACY must stand behind the SELECT of a subquery or of the whole; move it"
        )
    statements = []
    for index, options in enumerate(clauses):
        select = marked[index]
        select.pop_comments()
        if any(id(above) in map(id, marked.values()) for above in _above(select)):
            raise UnsupportedSql(
                "WITH DIFFERENTIAL_PRIVACY cannot be nested in a SELECT that has it too; write plain SELECTs "
                "of rows inside, or join the answers outside"
            )
        statements.append(Statement(select, options, parameters))
    if len(statements) == 1 and statements[0].select is tree:
        return statements[0]
    return LargerStatement(tree, tuple(statements))


def _above(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def named_parameters(text: str) -> list[str]:
    """Return the names behind each ``@`` of a text.

    >>> named_parameters("SELECT @low + @high")
    ['low', 'high']
    """
    return parameter_names(_tokens(text))


def without_explain(text: str) -> str:
    """Return a text without the EXPLAIN that it begins with.

    >>> without_explain(" explain SELECT 1")
    'SELECT 1'
    """
    return re.sub(r"\A\s*EXPLAIN\s+", "", str(text), flags=re.IGNORECASE)


def _tokens(text: str) -> list[Token]:
    if not isinstance(text, str):
        raise SqlSyntaxError(
            f"a query must be a string of SQL, got a value of type {type(text).__name__}; pass its text"
        )
    if len(text) > _MAX_CHARACTERS:
        raise SqlSyntaxError(
            f"a query must be shorter than {_MAX_CHARACTERS} characters, got {len(text)}; shorten it"
        )
    try:
        text.encode("utf-8")
        tokens = list(_DIALECT.tokenize(text))
    except UnicodeEncodeError:
        raise SqlSyntaxError(
            "a query must hold characters only, got half a surrogate pair; leave it out"
        ) from None
    except TokenError as error:
        cause = _one_line(str(error.__cause__ or error))
        raise SqlSyntaxError(
            f"the SQL cannot be split into words: {cause}; close the quote or comment"
        ) from None
    except Exception:  # whatever a tokenizer trips over, the text is at fault
        raise SqlSyntaxError(
            "the SQL cannot be split into words; look for a character that does not belong there"
        ) from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlSyntaxError("the query is empty; write SELECT ... FROM ...")
    return tokens


def _check_statement(tokens: Sequence[Token], *, piped: bool) -> None:
    first = tokens[0]
    word = first.text.upper()
    kinds = {token.token_type for token in tokens}
    if TokenType.SEMICOLON in kinds:
        raise UnsupportedSql("a query must be one statement; send the second statement on its own")
    if word == "EXPLAIN":
        raise UnsupportedSql(
            "EXPLAIN is not answered as a query; ask session.explain(...) or sfumato explain, for nothing"
        )
    if word in _OTHER_STATEMENTS:
        raise UnsupportedSql(f"{word} is not answered; only a SELECT that aggregates private rows is")
    if first.token_type is TokenType.FROM and not piped:
        raise UnsupportedSql("FROM alone is not answered; add |> AGGREGATE, or write SELECT ... FROM ...")
    beginnings = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM)
    if first.token_type not in beginnings:
        raise SqlSyntaxError(
            f"{_position(first)}: a query must begin with SELECT, got {_excerpt(first.text)}; "
            "write one SELECT"
        )
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > _MAX_NESTING:
            raise UnsupportedSql(
                f"{_position(token)}: nested more than {_MAX_NESTING} deep; simplify the query"
            )


def _cut_clauses(tokens: Sequence[Token]) -> tuple[list[Token], list[tuple[Token, ...]]]:
    """Take WITH DIFFERENTIAL_PRIVACY OPTIONS(...) off every SELECT that has it, and mark that SELECT."""
    kinds = [token.token_type for token in tokens]
    starts = [
        index for index, pair in enumerate(pairwise(kinds)) if pair == (TokenType.SELECT, TokenType.WITH)
    ]
    if not starts:
        return list(tokens), []
    for token in tokens:
        token.comments.clear()
    rest: list[Token] = []
    clauses: list[tuple[Token, ...]] = []
    end = 0
    for start in starts:
        _check_clause(tokens, start)
        tokens[start].comments.append(f"{_MARK}{len(clauses)}")
        rest += tokens[end : start + 1]
        end = start + 3
        options: tuple[Token, ...] = ()
        if end < len(tokens) and tokens[end].text.upper() == "OPTIONS":
            close = _closing_parenthesis(tokens, end + 1)
            options, end = tuple(tokens[end + 2 : close]), close + 1
        clauses.append(options)
    return [*rest, *tokens[end:]], clauses


def _check_clause(tokens: Sequence[Token], start: int) -> None:
    word = "".join(token.text.upper() for token in tokens[start + 2 : start + 3])
    if word in _OTHER_CLAUSES:
        raise UnsupportedSql(f"SELECT WITH {word} is not answered; {_OTHER_CLAUSES[word]}")
    if word != "DIFFERENTIAL_PRIVACY":
        raise SqlSyntaxError(
            f"{_position(tokens[start])}: SELECT WITH must be followed by DIFFERENTIAL_PRIVACY, "
            f"got {_excerpt(word)}; write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, ...)"
        )


def _closing_parenthesis(tokens: Sequence[Token], opening: int) -> int:
    if opening >= len(tokens) or tokens[opening].token_type is not TokenType.L_PAREN:
        raise SqlSyntaxError(
            f"{_position(tokens[opening - 1])}: OPTIONS must be followed by (name = value, ...); "
            "write OPTIONS(epsilon=1)"
        )
    depth = 0
    for index in range(opening, len(tokens)):
        depth += tokens[index].token_type is TokenType.L_PAREN
        depth -= tokens[index].token_type is TokenType.R_PAREN
        if not depth:
            return index
    raise SqlSyntaxError(
        f"{_position(tokens[opening])}: the parenthesis of OPTIONS is never closed; close it"
    )


def _tree(tokens: list[Token], text: str) -> exp.Expr:
    try:
        trees = _DIALECT.parser().parse(tokens, text)
    except ParseError as error:
        raise SqlSyntaxError(_describe(error)) from None
    except RecursionError:
        raise UnsupportedSql("the query is nested too deep; simplify it") from None
    except Exception:  # a parser that trips over a text has not understood it
        raise SqlSyntaxError(
            "the SQL cannot be parsed; compare it with the examples in the documentation"
        ) from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlSyntaxError("the SQL cannot be parsed; write one SELECT ... FROM ...")
    return trees[0]


def _describe(error: ParseError) -> str:
    if not error.errors:
        return f"the SQL cannot be parsed ({_one_line(str(error))})"
    first = error.errors[0]
    highlight = str(first.get("highlight") or "")
    column = int(first.get("col") or 1) - max(len(highlight) - 1, 0)
    position = f"line {first.get('line')}, column {max(column, 1)}"
    offending = _excerpt(highlight or "the end of the text")
    description = _one_line(str(first.get("description")).partition(" but got ")[0])
    if description.startswith("Required keyword"):  # names the parser's own classes, not SQL
        description = "the expression is incomplete"
    remedy = "correct the SQL there"
    if highlight == "=>":
        remedy = "a named argument belongs to an aggregate, and not behind DISTINCT"
    if description.startswith("Expected TYPE"):
        remedy = "write INT64 or STRING, say"
    return f"{position}: {description}, got {offending}; {remedy}"


def _position(token: Token) -> str:
    return f"line {token.line}, column {max(token.col - (token.end - token.start), 1)}"


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _one_line(text: str) -> str:
    words = " ".join(text.split()).rstrip(".")
    return words if len(words) <= 120 else words[:117] + "..."
