"""``sfumato sql`` and ``sfumato explain``: one query, answered or only described."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import pyarrow as pa
import typer

from sfumato import _check
from sfumato._wire import Format as Wire
from sfumato.cli.input.arguments import AsJson, JsonStyle
from sfumato.cli.opening import named_sources, open_session, query_text
from sfumato.cli.output.facts import ANSWER, cost_facts, cut_off, guarantee_facts, print_json, receipt_facts
from sfumato.cli.output.guarding import check_free, file_of
from sfumato.cli.output.writing import Format, check_output, format_of, write
from sfumato.cli.process.interrupts import interrupts
from sfumato.cli.process.shared_options import options_of, put_before
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.queries.outer.release import PostprocessedRelease
from sfumato.queries.sql.parser import LargerStatement, parse_statement
from sfumato.queries.sql.query_parameters import Parameters
from sfumato.queries.sql.rewriting import written_out
from sfumato.report.statements.guarantee_statement import statement
from sfumato.session.session import Session

if TYPE_CHECKING:
    from sfumato.queries.release.table import TableRelease

__all__ = ["answer", "explain", "params_of"]

Text: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[SQL]", help="The query; '-' reads standard input.")
]
QueryFile: TypeAlias = Annotated[
    str | None, typer.Option("--file", "-f", metavar="FILE", help="The query's file, in the place of SQL.")
]
Style: TypeAlias = Annotated[
    Format | None,
    typer.Option("--format", help="How the answer is written; by --output's ending, else a table."),
]
Output: TypeAlias = Annotated[Path | None, typer.Option("--output", help="File for the answer.")]
Params: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME[:TYPE]=VALUE",
        help="What @NAME in the query stands for; repeatable. A list is JSON, such as '[1, 2]'.",
    ),
]
NoIntervals: TypeAlias = Annotated[bool, typer.Option("--no-intervals", help="Leave the intervals out.")]
Clamp: TypeAlias = Annotated[
    bool, typer.Option("--clamp", help="Bring numbers into the range of what is possible: biased then.")
]

_EXPLANATION: Final = Wire("sfumato.explanation", 1)
_OPTION: Final = re.compile(r"(?P<name>\w+)(:(?P<type>\w+))?=(?P<value>.*)", re.DOTALL)
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TRUTHS: Final = {"true": True, "false": False}


def _in_session(command: Callable[..., None]) -> Callable[..., None]:
    """Put the arguments of `open_session` before the command's own, and hand it the session they open."""
    opening = options_of(open_session)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        words = {name: given.pop(name) for name in opening}
        if given.get("output") is not None:
            paths = named_sources(words["source"], words["tables"], words["public"])
            check_free(given["output"], sources=paths, ledger=file_of(words["ledger"]))
        with open_session(**words) as session, interrupts.stating(session.ledger, words["ledger"]):
            command(session, **given)

    return put_before(run, opening, command, without=("session",))


@_in_session
def answer(
    session: Session,
    text: Text = None,
    *,
    file: QueryFile = None,
    param: Params = None,
    style: Style = None,
    output: Output = None,
    no_intervals: NoIntervals = False,
    clamp: Clamp = False,
    as_json: JsonStyle = False,
) -> None:
    """Answer a query with differential privacy, and charge the ledger for it."""
    style = format_of(Format.JSON if as_json else style, output)
    check_output(style, output)
    query, params = query_text(text, file), params_of(param or ())
    if clamp:
        _require_alone(query, params)
    release = session.sql(query, params=params)
    clamped = {"clamp": True} if clamp else {}
    table = release.to_arrow(intervals=not no_intervals, **clamped)
    if style is Format.PARQUET:
        table = _stated(session, release, table)
    several = release.releases if isinstance(release, PostprocessedRelease) else (release,)
    keys = {name for each in several for name in each.record.keys}
    write(table, style, output, keys=keys, again=_again(session), facts=_facts(session, release))
    for line in (*cut_off(several), _account(session, release)):
        typer.echo(line, err=True)


@_in_session
def explain(
    session: Session,
    text: Text = None,
    *,
    file: QueryFile = None,
    param: Params = None,
    as_json: AsJson = False,
) -> None:
    """Say how a query would be answered, what it would cost and how far off it would be; spends nothing."""
    query, params = query_text(text, file), params_of(param or ())
    words = session.explain(query, params=params)
    if not as_json:
        typer.echo(words)
        return
    priced = session.priced(query, params=params)
    epsilons = [each.query.options.epsilon for each in priced]
    facts = {
        "explanation": words.splitlines(),
        "cost": cost_facts(decimal_sum_up(epsilons), decimal_sum_up(each.charged_delta for each in priced)),
        "losses": [json.loads(each.loss.to_json()) for each in priced],
        "remaining": guarantee_facts(
            session.account.remaining(max(each.query.options.delta for each in priced))
        ),
    }
    print_json(_EXPLANATION, facts)


def _require_alone(query: str, params: dict[str, Any]) -> None:
    """Refuse to clamp what is computed from several answers, before anything is charged."""
    statement = written_out(parse_statement(query, Parameters.of(params)))
    if isinstance(statement, LargerStatement):
        found, remedy = "there is SQL around it, or several groupings", "clamp there, as by GREATEST(n, 0)"
        _check.refuse_state("--clamp", "be of one private SELECT alone", found, remedy)


def _stated(session: Session, release: TableRelease | PostprocessedRelease, table: pa.Table) -> pa.Table:
    """Return the table with its guarantee in the schema, where it is one release that a ledger stores."""
    if isinstance(release, PostprocessedRelease) or not session.ledger.durable:
        return table
    return statement(session.ledger, release).attached(table)


def _again(session: Session) -> str:
    if not session.ledger.durable:
        return "the answer was charged and is lost with this command's budget; pass --ledger to keep both"
    return "the answer is charged and stored: asking again with this --ledger shows it and costs nothing"


def _facts(session: Session, release: TableRelease | PostprocessedRelease) -> dict[str, Any]:
    if isinstance(release, PostprocessedRelease):
        paid, receipts = release.cost, release.receipts
    else:
        paid = (0.0, 0.0) if release.replayed else (release.epsilon, release.charged_delta)
        receipts = () if release.receipt is None else (release.receipt,)
    return ANSWER.wrap(
        {
            "guarantee": cost_facts(release.epsilon, release.delta),
            "cost": cost_facts(*paid),
            "remaining": guarantee_facts(session.account.remaining(release.delta)),
            "receipts": [receipt_facts(receipt) for receipt in receipts],
        }
    )


def _account(session: Session, release: TableRelease | PostprocessedRelease) -> str:
    cost = f"({release.epsilon:g}, {release.charged_delta:g})-DP"
    paid = f"cost nothing: the answer was paid for before, at {cost}" if release.replayed else f"cost {cost}"
    if not release.replayed and isinstance(release, PostprocessedRelease):
        paid = f"cost ({release.cost[0]:g}, {release.cost[1]:g})-DP"
    forgotten = "; no --ledger: this budget ends here" if not session.ledger.durable else ""
    return f"{paid}; left {session.account.remaining(release.delta)}{forgotten}"


def params_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Read the options; without a type a value is what it looks like.

    Parameters
    ----------
    pairs : sequence of str
        Each ``NAME=VALUE`` or ``NAME:TYPE=VALUE``, where TYPE is BOOL, INT64, FLOAT64, NUMERIC, STRING,
        DATE or TIMESTAMP. A value that begins with ``[`` is a list in JSON, unless a type says otherwise.

    Returns
    -------
    dict

    Raises
    ------
    ParameterError
        If one is not of this form, comes twice, or is not of its type.

    Examples
    --------
    >>> params_of(["eps=0.5", 'states=["CA", "NY"]', "zip:STRING=94110", "on=true"])
    {'eps': 0.5, 'states': ['CA', 'NY'], 'zip': '94110', 'on': True}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        match = _OPTION.fullmatch(pair)
        if match is None:
            _check.refuse("param", "be NAME=VALUE or NAME:TYPE=VALUE", pair, "pass --param age=18")
        name, named, text = match["name"], match["type"], match["value"]
        if name in values:
            _check.refuse("param", "name each parameter once", pair, "leave one out")
        values[name] = _guessed(pair, text) if named is None else _typed(pair, named.upper(), text)
    return values


def _guessed(pair: str, text: str) -> Any:
    if text.startswith("["):
        return _list(pair, text)
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) and not _leading_zero(text) else text


def _leading_zero(text: str) -> bool:
    """Whether digits are a code rather than a number, such as 02139."""
    digits = text.removeprefix("-")
    return digits.isdigit() and digits.startswith("0") and len(digits) > 1


def _list(pair: str, text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        _check.refuse("param", "hold a list in JSON where it begins so", pair, "pass --param 'ages=[18, 21]'")
    return found


def _typed(pair: str, type_: str, text: str) -> Any:
    read = _READERS.get(type_)
    if read is None:
        _check.refuse(
            "param", f"be of a type {', '.join(_READERS)}", pair, "name one of them, or leave it out"
        )
    value: Any = None
    with suppress(ValueError, KeyError):
        value = read(text)
    if value is None:
        _check.refuse("param", f"hold a value of {type_}", pair, "correct the value or the type")
    return value


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?[0-9]{1,60}(\.[0-9]{1,60})?", text):
        raise ValueError
    return Decimal(text)


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        raise ValueError
    return int(text)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "BOOL": lambda text: _TRUTHS[text.lower()],
    "INT64": _whole,
    "FLOAT64": float,
    "NUMERIC": _decimal,
    "STRING": str,
    "DATE": dt.date.fromisoformat,
    "TIMESTAMP": dt.datetime.fromisoformat,
}
