"""Sheets and answers of surveys on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.input.answers import spelled
from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    Crosswise,
    ForcedCategory,
    ForcedResponse,
    SumScore,
    SurveyReport,
    TwoCoins,
    UnrelatedNumber,
    instruction_sheet,
)
from tests.cases import cases


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, ["survey", *map(str, arguments)], input=stdin)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "said", "sagte", "zero", "words"])
        for place in range(1000):
            yes = place % 20 < 7
            german = "ja" if yes else "nein"
            writer.writerow([place, "yes" if yes else "no", german, int(yes), "aye" if yes else "nee"])
    return path


def test_a_sheet_is_written_in_each_format(tmp_path: Path) -> None:
    sheet = instruction_sheet(TwoCoins(), question="Have you ever?", language="de")
    for ending, content in ((".html", sheet.html()), (".txt", sheet.text()), (".svg", sheet.svg())):
        path = tmp_path / f"sheet{ending}"
        result = run(
            "design", "two-coins", "--question", "Have you ever?", "--language", "de", "--output", path
        )
        assert result.exit_code == 0, result.output
        assert result.stdout == ""
        assert path.read_text(encoding="utf-8") == content


def test_without_a_file_the_text_is_printed() -> None:
    result = run("design", "two-coins", "--question", "Have you ever?")
    assert result.exit_code == 0
    assert "Toss a coin 2 times" in result.stdout
    assert "For the analyst" in result.stdout


@cases(
    "design",
    [
        ("warner", "--chance", "truth=7/10"),
        ("forced-response", "--chance", "yes=1/6", "--chance", "no=1/6", "--device", "die"),
        ("forced-category", "--chance", "truth=0.6", "--categories", "never, once, often"),
        (
            "unrelated-question",
            "--chance",
            "sensitive=2/3",
            "--chance",
            "innocuous=1/4",
            "--other",
            "Spring?",
        ),
        (
            *("unrelated-question-two-samples", "--chance", "first=7/10", "--chance", "second=3/10"),
            *("--chance", "between=1/4,3/4", "--other", "Spring?"),
        ),
        ("crosswise", "--chance", "innocuous=1/4", "--other", "Spring?"),
    ],
)
def test_every_design_has_a_sheet(design: tuple[str, ...]) -> None:
    result = run("design", *design, "--question", "Have you ever?")
    assert result.exit_code == 0, result.output
    assert "epsilon = " in result.stdout


@pytest.mark.parametrize(
    "how",
    [
        ("--column", "said"),
        ("--column", "sagte"),
        ("--column", "sagte", "--labels", "nein,ja"),
        ("--column", "words", "--labels", "nee,aye"),
        ("--column", "zero"),
    ],
)
def test_answers_are_estimated(answers: Path, how: tuple[str, ...]) -> None:
    result = run("analyse", answers, *how, "--design", "two-coins", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts.pop("format"), facts.pop("version")) == ("sfumato.survey-estimate", 1)
    expected = TwoCoins().estimate({"yes": 350, "no": 650})
    (found,) = facts["estimates"]
    assert found["estimate"] == expected.prevalence == 0.2
    assert (found["lower"], found["upper"]) == expected.interval()[:2]
    assert facts["respondents"] == 1000
    assert facts["epsilon"] == TwoCoins().epsilon


def test_answers_are_estimated_in_words(answers: Path) -> None:
    result = run("analyse", answers, "--column", "said", "--design", "two-coins", "--method", "wald")
    lines = result.stdout.splitlines()
    assert lines[0] == "prevalence 0.2000 (sd 0.0302), 95 % interval 0.1408 to 0.2592"
    assert lines[1] == "1000 respondents; epsilon 1.09862 for each answer"
    assert result.stderr == ""


def test_a_report_is_written_as_html_or_text(tmp_path: Path) -> None:
    rows = "Ja\nnein\n,\n\nJA\n".replace(",\n", "")
    how = ("--column", "said", "--design", "two-coins", "--question", "Have you <ever>?", "--language", "de")
    estimate = TwoCoins().estimate(["yes", "no", "yes"])
    report = SurveyReport(question="Have you <ever>?", estimate=estimate, left_out=1, language="de")
    source = tmp_path / "answers.csv"
    source.write_text("said,more\n" + rows.replace("\n", ",1\n"))
    for ending, content in (("html", report.html()), ("txt", report.text())):
        output = tmp_path / f"report.{ending}"
        result = run("report", source, *how, "--output", output)
        assert (result.exit_code, result.output) == (0, "")
        assert output.read_text("utf-8") == content
    assert run("report", source, *how).stdout.rstrip() == report.text().rstrip()
    bad = run("report", source, *how, "--output", tmp_path / "report.pdf")
    assert bad.exit_code == 2
    assert "output must end with .html or .txt" in bad.stderr


def test_answers_that_do_not_fit_are_told(answers: Path) -> None:
    result = run("analyse", answers, "--column", "said", "--design", "warner", "--chance", "truth=0.55")
    assert result.exit_code == 0
    assert "were the instructions followed?" in result.stderr


def test_categories_come_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    pq.write_table(pa.table({"said": ["a"] * 50 + ["b"] * 30 + ["c"] * 20}), path)
    design = ("--design", "forced-category", "--chance", "truth=3/5", "--categories", "a,b,c")
    facts = json.loads(run("analyse", path, "--column", "said", *design, "--json").stdout)
    expected = ForcedCategory(names=("a", "b", "c"), truth="3/5").estimate({"a": 50, "b": 30, "c": 20})
    assert [each["estimate"] for each in facts["estimates"]] == pytest.approx(expected.shares.tolist())
    assert [each["name"] for each in facts["estimates"]] == ["a", "b", "c"]


@cases(
    ("arguments", "part"),
    [
        (("design", "warner", "--question", "Q?"), "pass --chance truth=2/3"),
        (("design", "warner", "--question", "Q?", "--chance", "truth"), "NAME=CHANCE"),
        (("design", "warner", "--question", "Q?", "--chance", "lie=1/3"), "a name among truth"),
        (
            ("design", "warner", "--question", "Q?", "--chance", "truth=1/2"),
            "truth must make the answers depend",
        ),
        (("design", "two-coins", "--question", "Q?", "--categories", "a,b"), "categories must be left out"),
        (
            ("design", "forced-category", "--question", "Q?", "--chance", "truth=1/2"),
            "categories must be given",
        ),
        (("design", "two-coins", "--question", "Q?", "--output", "sheet.pdf"), "output must end with .html"),
        (
            ("design", "two-coins", "--question", "Q?", "--output", "no/such/folder/s.txt"),
            "output must be writable",
        ),
        (("design", "two-coins", "--question", "Q?", "--language", "xx"), "language must be"),
        (("analyse", "missing.csv", "--column", "said", "--design", "two-coins"), "missing.csv"),
        (("analyse", "ANSWERS", "--column", "nowhere", "--design", "two-coins"), "nowhere"),
        (
            ("analyse", "ANSWERS", "--column", "words", "--design", "two-coins"),
            "answers must each be one of 'no', 'yes', in any capitals, or as sheets in en, de",
        ),
        (
            ("analyse", "ANSWERS", "--column", "words", "--design", "two-coins", "--labels", "nay,aye"),
            "labels must name every answer in the column",
        ),
        (("analyse", "ANSWERS", "--column", "id", "--design", "two-coins"), "answers must each be one of"),
        (
            ("analyse", "ANSWERS", "--column", "said", "--design", "two-coins", "--labels", "a"),
            "labels must be 2 different texts",
        ),
        (
            (
                *("analyse", "ANSWERS", "--column", "said", "--design", "unrelated-question-two-samples"),
                *("--chance", "first=1/3", "--chance", "second=2/3", "--chance", "between=1/4,1/2"),
            ),
            "design must be that of one sample",
        ),
    ],
)
def test_errors_are_one_line_and_show_no_answer(answers: Path, arguments: tuple[str, ...], part: str) -> None:
    result = run(*(answers if argument == "ANSWERS" else argument for argument in arguments))
    assert result.exit_code in {1, 2}
    (line,) = result.stderr.splitlines()
    assert part in line
    assert "999" not in line
    assert "nee" not in line


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "~"])
@pytest.mark.sharpest(",", ";", "~")
def test_separators_blank_cells_and_standard_input(separator: str, tmp_path: Path) -> None:
    """A blank cell is no answer, however it is blank, in whatever kind of file."""
    cells = ["yes"] * 350 + ["no"] * 650 + ["", "  "]
    text = separator.join(("id", "said")) + "\n"
    text += "".join(f"{index}{separator}{cell}\n" for index, cell in enumerate(cells))
    how = ["--column", "said", "--design", "two-coins", "--json"]
    how += ["--separator", separator] if separator == "~" else []
    (tmp_path / "answers.csv").write_text(text, encoding="utf-8")
    pq.write_table(pa.table({"said": [*cells, None]}), tmp_path / "answers.parquet")
    for done, blank in (
        (run("analyse", tmp_path / "answers.csv", *how), 2),
        (run("analyse", "-", *how, stdin=text), 2),
        (run("analyse", tmp_path / "answers.parquet", *how), 3),
    ):
        assert done.exit_code == 0, done.output
        assert done.stderr == f"{blank} blank cells: no answer, left out\n"
        facts = json.loads(done.stdout)
        assert (facts["respondents"], facts["estimates"][0]["estimate"]) == (1000, 0.2)


NUMBER = ("--chance", "lower=0", "--chance", "upper=3")


def test_numbers_have_sheets_and_means(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("said\n" + "0\n3\n2\n0\n1\n" * 40)
    even = (*NUMBER, "--chance", "truth=1/2", "--chance", "other=0:1/4,1:1/4,2:1/4,3:1/4")
    sheet = run("design", "unrelated-number", "--question", "How often?", *even)
    assert "Write down your true number." in sheet.stdout
    assert "epsilon = 1.6095" in sheet.stdout
    facts = json.loads(
        run("analyse", path, "--column", "said", "--design", "unrelated-number", *even, "--json").stdout
    )
    expected = UnrelatedNumber(lower=0, upper=3, truth="1/2", other=dict.fromkeys(range(4), "1/4")).estimate(
        {0: 80, 1: 40, 2: 40, 3: 40}
    )
    (found,) = facts["estimates"]
    assert (found["name"], found["estimate"], found["lower"]) == ("mean", 0.9, expected.interval().lower)
    assert facts["misfit"] == 1.0
    noise = (*NUMBER, "--chance", "noise=0:1/2,1:1/2")
    how = ("--column", "said", "--design", "additive-scrambling", *noise, "--method", "wald")
    assert "epsilon infinite" in run("analyse", path, *how).stdout
    wrapped = run("design", "additive-scrambling", "--question", "Q?", *noise, "--chance", "wrap=yes")
    assert "different ones give equal answers" in wrapped.stderr
    for chance, part in (
        ("noise=0:1/2;1:1/2", "must be noise=NUMBER:CHANCE"),
        ("upper=three", "must be upper=NUMBER"),
        ("wrap=on", "wrap=yes or wrap=no"),
    ):
        bad = run("design", "additive-scrambling", "--question", "Q?", *NUMBER, "--chance", chance)
        assert part in bad.stderr


def test_a_separator_is_one_character(answers: Path) -> None:
    done = run("analyse", answers, "--column", "said", "--design", "two-coins", "--separator", "ab")
    assert done.exit_code == 2
    assert "--separator must be one character" in done.stderr


def test_capitals_do_not_matter_unless_they_tell_answers_apart(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("said\n" + "Yes\nNO\nyes \nno\n" * 100)
    result = run("analyse", path, "--column", "said", "--design", "two-coins", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["estimates"][0]["estimate"] == pytest.approx(0.5)
    path.write_text("said\n" + "a\nA\n" * 100)
    how = ("--design", "forced-category", "--chance", "truth=1/2", "--categories", "a,A")
    assert run("analyse", path, "--column", "said", *how).exit_code == 0
    how = ("--design", "forced-category", "--chance", "truth=1/2", "--categories", "a,b")
    path.write_text("said\n" + "A\nB\n" * 100)
    assert "200 respondents" in run("analyse", path, "--column", "said", *how).stdout


@cases("words", ["YES no", "Ja NEIN", "Oui non", "Sí no", "si No", "gleich verschieden", "pareil Différent"])
def test_answers_are_read_in_every_language_of_the_sheets(words: str) -> None:
    yes, no = words.split()
    crosswise = yes.islower() and len(yes) > 3
    design = ("crosswise", "--chance", "innocuous=1/4") if crosswise else ("two-coins",)
    result = run(
        "analyse", "-", "--column", "said", "--json", "--design", *design, stdin=f"said\n{yes}\n{no}\n{yes}\n"
    )
    assert result.exit_code == 0, result.output
    made = Crosswise(innocuous="1/4") if crosswise else TwoCoins()
    assert json.loads(result.stdout)["estimates"][0]["estimate"] == made.estimate([1, 0, 1]).prevalence


def test_an_infinite_epsilon_is_said(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    for design, chances, words in (
        ("mangat", ("truth=2/3",), "Yes\nNo\n"),
        ("triangular", ("innocuous=1/4",), "Circle\ntriangle\n"),
        ("kuk", ("true=4/5", "false=1/5"), "red\nBlack\n"),
    ):
        path.write_text("said\n" + words * 200)
        given = [part for chance in chances for part in ("--chance", chance)]
        result = run("analyse", path, "--column", "said", "--design", design, *given)
        assert result.exit_code == 0, result.output
        assert ("epsilon infinite" in result.stdout) == (design != "kuk")
        shown = json.loads(
            run("analyse", path, "--column", "said", "--design", design, *given, "--json").stdout
        )
        assert (shown["epsilon"] is None) == (design != "kuk")
        sheet = run("design", design, "--question", "Have you ever?", *given)
        assert sheet.exit_code != 0
        assert "leave every answer possible" in sheet.output


@pytest.mark.parametrize(
    ("names", "cell"), [(("ば", "が"), "は"), (("pate", "bread"), "pâté"), (("yes", "si"), "sí")]
)
def test_a_word_that_differs_from_a_category_by_its_marks_is_another_word(
    names: tuple[str, str], cell: str
) -> None:
    design = ForcedCategory(names=names, truth="1/2", forced=("1/2", "1/2"))
    assert spelled([names[1].upper()], design) == [names[1]]
    with pytest.raises(ParameterError, match="another text is among them"):
        spelled([cell], design)


def test_a_score_of_several_questions_is_estimated(tmp_path: Path) -> None:
    die, path = ForcedResponse(yes="1/6", no="1/6"), tmp_path / "several.csv"
    rows = [("yes", "no"), ("Ja", "ja"), ("no", "no"), ("no", "yes")] * 30 + [("yes", ""), ("", "no")]
    path.write_text("a,b\n" + "".join(f"{one},{two}\n" for one, two in rows), encoding="utf-8")
    how = ["--column", "a", "--column", "b", "--design", "forced-response"]
    how += ["--chance", "yes=1/6", "--chance", "no=1/6"]
    result = run("score", path, *how, "--json")
    assert result.exit_code == 0, result.output
    score = SumScore(designs=[die] * 2)
    expected = score.estimate([[1, 1, 0, 0] * 30, [0, 1, 0, 1] * 30])
    facts = json.loads(result.stdout)
    assert (facts["format"], facts["respondents"], facts["epsilon"]) == (
        "sfumato.survey-score",
        120,
        score.epsilon,
    )
    assert facts["mean"]["estimate"] == expected.mean
    assert (facts["mean"]["lower"], facts["mean"]["upper"]) == expected.interval()[:2]
    assert [row["share"] for row in facts["shares"]] == expected.shares.tolist()
    assert "2 rows with a blank cell, left out" in result.stderr
    lines = run("score", path, *how, "--method", "wald").stdout.splitlines()
    assert lines[0].startswith("mean 1.0000 (sd ")
    assert [line.split(" (sd")[0] for line in lines[1:4]] == [
        f"{number} true {share:.4f}" for number, share in enumerate(expected.shares)
    ]
    assert lines[4] == "120 respondents; epsilon 3.21888 for all answers of one"
    for bad, rule in (
        (["-", *how], "source must be a file"),
        ([path, "--column", "a", *how], "column must be different each time"),
        ([path, "--column", "a", "--design", "two-coins"], "designs must be from 2 to 32"),
        ([path, *how[:4], "--design", "additive-scrambling"], "chance must be given"),
    ):
        refused = run("score", *bad)
        assert refused.exit_code != 0
        assert rule in refused.output


def test_several_questions_have_one_sheet() -> None:
    asked = ["--question", "Have you ever copied?", "--question", "Have you ever let copy?"]
    result = run("design", "two-coins", *asked, "--language", "de")
    sheet = instruction_sheet(
        SumScore(designs=[TwoCoins()] * 2),
        question=["Have you ever copied?", "Have you ever let copy?"],
        language="de",
    )
    assert result.exit_code == 0
    assert result.stdout.strip() == sheet.text().replace("\f", "\n\n").strip()
    refused = run("design", "crosswise", "--chance", "innocuous=1/4", *asked)
    assert "designs must use a device alone" in refused.output
