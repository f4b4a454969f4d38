"""``sfumato survey``: a sheet that asks a question privately, and estimates from its answers."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.input.answers import spelled, translated
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.input.columns import is_blank, read_column
from sfumato.cli.output.facts import print_json, say
from sfumato.cli.output.writing import write_text
from sfumato.local import surveys
from sfumato.local.surveys.reports.outward_decimals import PLACES, decimal_above, decimal_below
from sfumato.privacy._outward import text_above

__all__ = ["Kind", "app"]

app = typer.Typer(
    add_completion=False, help="Ask a question so that no answer betrays anybody.", no_args_is_help=True
)


class Kind(Enum):
    """The designs of `sfumato.local.surveys`.

    Examples
    --------
    >>> Kind("crosswise")
    <Kind.CROSSWISE: 'crosswise'>
    """

    TWO_COINS = "two-coins"
    WARNER = "warner"
    FORCED_RESPONSE = "forced-response"
    FORCED_CATEGORY = "forced-category"
    UNRELATED_QUESTION = "unrelated-question"
    TWO_SAMPLES = "unrelated-question-two-samples"
    CROSSWISE = "crosswise"
    KUK = "kuk"
    MANGAT = "mangat"
    TRIANGULAR = "triangular"
    ADDITIVE_SCRAMBLING = "additive-scrambling"
    MULTIPLICATIVE_SCRAMBLING = "multiplicative-scrambling"
    UNRELATED_NUMBER = "unrelated-number"


_FORMAT: Final = Format("sfumato.survey-estimate")
_SCORE_FORMAT: Final = Format("sfumato.survey-score")
_ENDS: Final = ("estimate", "stddev", "lower", "upper")
_SHEET, _REPORT = Format("sfumato.survey-sheet"), Format("sfumato.survey-report")
_CHANCES: Final = "Parameters of the design, such as truth=7/10; may be repeated."
_SUFFIXES: Final = (".html", ".txt", ".svg")
_REPORTS: Final = (".html", ".txt")
_NUMBERS: Final = {Kind.ADDITIVE_SCRAMBLING, Kind.MULTIPLICATIVE_SCRAMBLING, Kind.UNRELATED_NUMBER}

Chances: TypeAlias = Annotated[
    list[str] | None, typer.Option("--chance", metavar="NAME=CHANCE", help=_CHANCES)
]
Categories: TypeAlias = Annotated[
    str | None, typer.Option("--categories", metavar="A,B,C", help="What may be answered: forced-category.")
]
Source: TypeAlias = Annotated[
    Path,
    typer.Argument(help="CSV or Parquet with a row for each respondent; '-' reads CSV from standard input."),
]
Column: TypeAlias = Annotated[str, typer.Option("--column", help="The column of the answers.")]
Asked: TypeAlias = Annotated[Kind, typer.Option("--design", help="How the question was asked.")]
Labels: TypeAlias = Annotated[
    str | None,
    typer.Option("--labels", metavar="NO,YES", help="How the answers are written, if not as on a sheet."),
]
Separator: TypeAlias = Annotated[
    str | None,
    typer.Option("--separator", metavar="C", help="Between columns of a CSV; else , ; tab or | as it has."),
]
Level: TypeAlias = Annotated[float, typer.Option("--level", help="Of the intervals.")]
Method: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="Of the intervals: clopper-pearson, wilson or wald; of a mean bernstein, hoeffding or wald.",
    ),
]


@app.command(name="design")
def design_sheet(
    design: Annotated[Kind, typer.Argument(help="How the question is asked.")],
    *,
    question: Annotated[
        list[str], typer.Option("--question", help="The sensitive question; repeated, those of a sum score.")
    ],
    other: Annotated[str, typer.Option("--other", help="The harmless question, if the design has one.")] = "",
    chance: Chances = None,
    categories: Categories = None,
    language: Annotated[str, typer.Option("--language", help="en, de, fr or es.")] = "en",
    device: Annotated[str, typer.Option("--device", help="auto, coin, die or spinner.")] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", help="A file *.html, *.txt or *.svg; else text is printed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a sheet to print: a page for the respondents, and one for the analyst."""
    made = _design(design, chance, categories)
    several = len(question) > 1
    sheet = surveys.instruction_sheet(
        _score(made, design, len(question)) if several else made,
        question=question if several else question[0],
        other=other,
        language=language,
        device=device,  # type: ignore[arg-type]
    )
    if output is None:
        _print_text(_SHEET, sheet.text().replace("\f", "\n\n"), as_json=as_json)
        return
    if output.suffix.lower() not in _SUFFIXES:
        _check.refuse("output", f"end with {', '.join(_SUFFIXES)}", str(output), "the ending is the format")
    forms = {".html": sheet.html, ".txt": sheet.text, ".svg": sheet.svg}
    _write_text(_SHEET, output, forms[output.suffix.lower()](), as_json=as_json)


@app.command()
def analyse(
    source: Source,
    *,
    column: Column,
    design: Asked,
    chance: Chances = None,
    categories: Categories = None,
    labels: Labels = None,
    separator: Separator = None,
    level: Level = 0.95,
    method: Method = None,
    as_json: AsJson = False,
) -> None:
    """Estimate a prevalence, the shares of categories or a mean from randomized answers."""
    made = _of_one_sample(_design(design, chance, categories), design)
    estimate, left = _estimated(read_column(source, column, separator), made, labels)
    if left:
        typer.echo(f"{left} blank {'cell' if left == 1 else 'cells'}: no answer, left out", err=True)
    rows = _rows(estimate, level, method)
    one = isinstance(estimate, surveys.Prevalence | surveys.NumberEstimate)
    if as_json:
        names = ("name", *_ENDS)
        shown = [dict(zip(names, (row[0], *map(_number, row[1:])), strict=True)) for row in rows]
        facts = {
            "respondents": estimate.respondents,
            "level": level,
            "epsilon": None if math.isinf(made.epsilon) else made.epsilon,
            "estimates": shown,
        }
        print_json(_FORMAT, facts | ({"misfit": estimate.misfit} if one else {}))
        return
    for row in rows:
        typer.echo(_line(row, level))
    typer.echo(f"{estimate.respondents} respondents; epsilon {_epsilon(made.epsilon)} for each answer")
    if one and estimate.misfit < 0.01:
        typer.echo("the answers do not fit the design: were the instructions followed?", err=True)


@app.command()
def score(
    source: Source,
    *,
    column: Annotated[
        list[str], typer.Option("--column", help="The answers to one of the questions; repeated for each.")
    ],
    design: Asked,
    chance: Chances = None,
    labels: Labels = None,
    separator: Separator = None,
    level: Level = 0.95,
    method: Annotated[
        Literal["bernstein", "hoeffding", "wald"], typer.Option("--method", help="Of the mean's interval.")
    ] = "bernstein",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate how many of several things are true of a person: the mean, and the share of each number."""
    if str(source) == "-":
        _check.refuse(
            "source", "be a file", str(source), "write the answers to one: it is read for each column"
        )
    if len(set(column)) < len(column):
        _check.refuse("column", "be different each time", column, "name the column of each question")
    made = _of_one_sample(_design(design, chance, None), design)
    together = _score(made, design, len(column))
    rows = list(zip(*(read_column(source, name, separator) for name in column), strict=True))
    whole = [row for row in rows if not any(map(is_blank, row))]
    columns = [[row[place] for row in whole] for place in range(len(column))]
    estimate = together.estimate([_named(cells, made, labels) for cells in columns])
    if left := len(rows) - len(whole):
        typer.echo(f"{left} {'row' if left == 1 else 'rows'} with a blank cell, left out", err=True)
    lower, upper, _ = estimate.interval(level, method)
    shares = zip(estimate.shares, estimate.share_stddev, estimate.maximum_likelihood, strict=True)
    if as_json:
        names = ("share", "stddev", "maximum_likelihood")
        mean = dict(zip(_ENDS, map(_number, (estimate.mean, estimate.stddev, lower, upper)), strict=True))
        facts = {
            "respondents": estimate.respondents,
            "level": level,
            "epsilon": None if math.isinf(together.epsilon) else together.epsilon,
            "mean": mean,
            "shares": [dict(zip(names, map(_number, row), strict=True)) for row in shares],
        }
        print_json(_SCORE_FORMAT, facts)
        return
    typer.echo(_line(("mean", estimate.mean, estimate.stddev, lower, upper), level))
    for number, (share, stddev, likeliest) in enumerate(shares):
        typer.echo(
            f"{number} true {share:.{PLACES}f} (sd {stddev:.{PLACES}f}), likeliest {likeliest:.{PLACES}f}"
        )
    typer.echo(
        f"{estimate.respondents} respondents; epsilon {_epsilon(together.epsilon)} for all answers of one"
    )


@app.command()
def report(
    source: Source,
    *,
    question: Annotated[str, typer.Option("--question", help="The question, as it was asked.")],
    column: Column,
    design: Asked,
    chance: Chances = None,
    categories: Categories = None,
    labels: Labels = None,
    separator: Separator = None,
    level: Level = 0.95,
    method: Method = None,
    language: Annotated[str, typer.Option("--language", help="en, de, fr or es.")] = "en",
    output: Annotated[
        Path | None, typer.Option("--output", help="A file *.html or *.txt; else text is printed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of one survey: what was found, how it was asked, and what an answer shows."""
    if output is not None and output.suffix.lower() not in _REPORTS:
        _check.refuse("output", f"end with {' or '.join(_REPORTS)}", str(output), "the ending is the format")
    made = _of_one_sample(_design(design, chance, categories), design)
    estimate, left = _estimated(read_column(source, column, separator), made, labels)
    found = surveys.SurveyReport(
        question=question, estimate=estimate, level=level, method=method, left_out=left, language=language
    )
    if output is None:
        _print_text(_REPORT, found.text(), as_json=as_json)
    else:
        text = found.html() if output.suffix.lower() == ".html" else found.text()
        _write_text(_REPORT, output, text, as_json=as_json)


def _print_text(kind: Format, text: str, *, as_json: bool) -> None:
    say(kind, {"output": None, "text": text}, text, as_json=as_json)


def _write_text(kind: Format, output: Path, text: str, *, as_json: bool) -> None:
    write_text(output, text)
    if as_json:
        print_json(kind, {"output": str(output), "text": None})


def _line(row: tuple[str, float, float, float, float], level: float) -> str:
    """Return what was estimated, with the ends of the interval rounded outward."""
    name, value, stddev, lower, upper = row
    ends = f"{decimal_below(lower)} to {decimal_above(upper)}"
    return f"{name} {value:.{PLACES}f} (sd {stddev:.{PLACES}f}), {100 * level:g} % interval {ends}"


def _epsilon(epsilon: float) -> str:
    return "infinite, as an answer rules a truth out," if math.isinf(epsilon) else text_above(epsilon)


def _score(made: object, kind: Kind, questions: int) -> surveys.SumScore:
    """Return several questions with one design."""
    if not isinstance(made, surveys.BinaryDesign):
        remedy = "take one whose answers are yes and no"
        _check.refuse("design", "have two answers for several questions", kind.value, remedy)
    return surveys.SumScore(designs=[made] * questions)


def _of_one_sample(made: object, kind: Kind) -> Any:
    if isinstance(made, surveys.UnrelatedQuestionTwoSamples):
        remedy = "use sfumato.local.surveys in Python for two samples"
        _check.refuse("design", "be that of one sample", kind.value, remedy)
    return made


def _estimated(cells: list[Any], made: Any, labels: str | None) -> tuple[Any, int]:
    """Return what a column's answers say, and how many of its cells are blank."""
    answers = [cell for cell in cells if not is_blank(cell)]
    return made.estimate(_named(answers, made, labels)), len(cells) - len(answers)


def _named(answers: list[Any], made: Any, labels: str | None) -> list[Any]:
    """Return the answers as the design names them."""
    return spelled(answers, made) if labels is None else translated(answers, labels, made)


def _rows(estimate: Any, level: float, method: str | None) -> list[tuple[str, float, float, float, float]]:
    """Return what was estimated: name, estimate, standard deviation and interval."""
    interval = estimate.interval(level) if method is None else estimate.interval(level, method)
    if isinstance(estimate, surveys.Prevalence):
        return [("prevalence", estimate.prevalence, estimate.stddev, interval.lower, interval.upper)]
    if isinstance(estimate, surveys.NumberEstimate):
        return [("mean", estimate.mean, estimate.stddev, interval.lower, interval.upper)]
    names = map(str, estimate.design.categories)
    return list(zip(names, estimate.shares, estimate.stddev, *interval[:2], strict=True))


def _design(
    kind: Kind, given: list[str] | None, categories: str | None
) -> surveys.Design | surveys.UnrelatedQuestionTwoSamples:
    """Make a design from its chances."""
    made: Any = getattr(surveys, kind.value.title().replace("-", ""))
    fields = {field.name: field for field in dataclasses.fields(made)}
    values: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or name not in fields.keys() - {"names"}:
            known = ", ".join(sorted(fields.keys() - {"names"}))
            _check.refuse(
                "chance", f"be NAME=CHANCE with a name among {known}", text, f"{kind.value} has these"
            )
        values[name] = _value(name, value, kind)
    if (categories is not None) != ("names" in fields):
        rule = "be given" if "names" in fields else "be left out"
        _check.refuse("categories", rule, categories, "they are those of forced-category")
    if categories is not None:
        values["names"] = tuple(part.strip() for part in categories.split(","))
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING:
            _check.refuse("chance", f"be given for {name} of {kind.value}", None, f"pass --chance {name}=2/3")
    found: surveys.Design | surveys.UnrelatedQuestionTwoSamples = made(**values)
    return found


def _value(name: str, text: str, kind: Kind) -> Any:
    """Return a parameter of a design as it is written: a chance, a list of them, or what numbers need."""
    if name in {"forced", "between"}:
        return tuple(text.split(","))
    if kind not in _NUMBERS or name == "truth":
        return text
    if name == "wrap":
        if text not in {"yes", "no"}:
            _check.refuse("chance", "be wrap=yes or wrap=no", text, "leave it out for plain sums")
        return text == "yes"
    try:
        if name in {"lower", "upper"}:
            return int(text)
        pairs = [part.split(":") for part in text.split(",")]
        return [(int(number), part) for number, part in pairs]
    except ValueError:
        rule = f"be {name}=NUMBER" if name in {"lower", "upper"} else f"be {name}=NUMBER:CHANCE,..."
        _check.refuse("chance", rule, text, "write lower=0, upper=9 or noise=0:1/2,1:1/4,2:1/4")


def _number(value: float) -> float | None:
    return float(value) if value == value else None  # noqa: PLR0124 (NaN)
