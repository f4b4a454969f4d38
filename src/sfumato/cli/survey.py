"""``sfumato survey``: a sheet that asks a question privately, and estimates from its answers."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from unicodedata import combining, normalize

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.input.arguments import AsJson
from sfumato.cli.input.columns import is_blank, read_column
from sfumato.cli.output.facts import print_json, say
from sfumato.cli.output.writing import write_text
from sfumato.local import surveys
from sfumato.local.surveys.sheets.respondent import label
from sfumato.local.surveys.sheets.words import words_of
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
    question: Annotated[str, typer.Option("--question", help="The sensitive question.")],
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
    sheet = surveys.instruction_sheet(
        made,
        question=question,
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
        names = ("name", "estimate", "stddev", "lower", "upper")
        shown = [dict(zip(names, (row[0], *map(_number, row[1:])), strict=True)) for row in rows]
        facts = {
            "respondents": estimate.respondents,
            "level": level,
            "epsilon": None if math.isinf(made.epsilon) else made.epsilon,
            "estimates": shown,
        }
        print_json(_FORMAT, facts | ({"misfit": estimate.misfit} if one else {}))
        return
    for name, value, stddev, lower, upper in rows:
        typer.echo(
            f"{name} {value:.4f} (sd {stddev:.4f}), {100 * level:g} % interval {lower:.4f} to {upper:.4f}"
        )
    each = "infinite, as an answer rules a truth out,"
    epsilon = each if math.isinf(made.epsilon) else text_above(made.epsilon)
    typer.echo(f"{estimate.respondents} respondents; epsilon {epsilon} for each answer")
    if one and estimate.misfit < 0.01:
        typer.echo("the answers do not fit the design: were the instructions followed?", err=True)


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


def _of_one_sample(made: object, kind: Kind) -> Any:
    if isinstance(made, surveys.UnrelatedQuestionTwoSamples):
        remedy = "use sfumato.local.surveys in Python for two samples"
        _check.refuse("design", "be that of one sample", kind.value, remedy)
    return made


def _estimated(cells: list[Any], made: Any, labels: str | None) -> tuple[Any, int]:
    """Return what a column's answers say, and how many of its cells are blank."""
    answers = [cell for cell in cells if not is_blank(cell)]
    spelled = _spelled(answers, made) if labels is None else _translated(answers, labels, made)
    return made.estimate(spelled), len(cells) - len(answers)


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


def _spelled(answers: list[Any], design: Any) -> list[Any]:
    """Return the answers as the design spells them: in any capitals, and as the sheets in each language say.

    "Yes", "YES", "Ja", "oui" and "si" are "yes": of the sheets' words accents may be left out, of a
    category's name none. Where two answers differ by capitals alone these count.
    """
    texts = [answer for answer in design.answers if isinstance(answer, str)]
    own = {_uncapped(answer): answer for answer in texts}
    exact = len(own) < len(texts)
    # A name but for its accents is another word, and no translation either.
    taken = {_folded(answer): answer for answer in texts}
    translated = {
        text: answer for text, answer in _translations(design).items() if taken.get(text, answer) == answer
    }

    def spelled(text: str) -> str:
        return own.get(_uncapped(text)) or translated.get(_folded(text), text)

    found = [spelled(cell) if isinstance(cell, str) and not exact else cell for cell in answers]
    if not {answer for answer in found if isinstance(answer, str)} <= set(design.answers):
        rule = f"each be one of {', '.join(map(repr, design.answers))}"
        if not exact:
            rule += f", in any capitals, or as sheets in {', '.join(surveys.LANGUAGES)} say it"
        remedy = "correct them, or name the two by --labels NO,YES"
        _check.refuse_state("answers", rule, "another text is among them", remedy)
    return found


def _translations(design: Any) -> dict[str, str]:
    """Return what the sheets in each language call the answers of a design."""
    texts = [answer for answer in design.answers if isinstance(answer, str)]
    return {
        _folded(word): answer
        for language in surveys.LANGUAGES
        for answer in texts
        if (word := label(answer, words_of(language))) != answer
    }


def _uncapped(text: str) -> str:
    """Return a text without capitals."""
    return normalize("NFC", normalize("NFC", text).casefold())


def _folded(text: str) -> str:
    """Return a text without capitals and accents."""
    return "".join(mark for mark in normalize("NFKD", text.casefold()) if not combining(mark))


def _translated(answers: list[Any], labels: str, design: Any) -> list[Any]:
    """Return the answers under the design's names."""
    names = [label.strip() for label in labels.split(",")]
    if len(set(names)) != len(design.answers) or len(names) != len(design.answers):
        order = ",".join(map(str, design.answers))
        _check.refuse("labels", f"be {len(design.answers)} different texts", labels, f"in the order {order}")
    known = dict(zip(names, design.answers, strict=True))
    if not {str(answer) for answer in answers} <= known.keys():
        _check.refuse(
            "labels", "name every answer in the column", labels, "add what is missing, or correct it"
        )
    return [known[str(answer)] for answer in answers]


def _number(value: float) -> float | None:
    return float(value) if value == value else None  # noqa: PLR0124 (NaN)
