"""Completion in real shells, from the script alone: no Tab starts the program."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app

FORMATS = {"table", "csv", "json", "parquet"}
ROLES = {"curator", "analyst", "reviewer", "auditor"}
LINES = {
    ("ledger", "sh"): {"show"},
    ("led",): {"ledger"},
    ("shuffle", "sparse", ""): {"collection", "submit", "open"},
    ("ledger", "release", "acs.ledger", "3", "--no"): {"--no-intervals"},
    ("sql", "--ledger", "ledger", "show", "--format", ""): FORMATS,
    ("--version", "survey", "design", "two"): {"two-coins"},
    ("survey", "design", "--question", "Q?", "cross"): {"crosswise"},
    ("members", "roles", "acs.ledger", "eve", "curator", ""): ROLES,
    ("audit", "a:b", "--epsilon", "1", "--no-"): {"--no-batch"},
}
"""What is typed, and all that may follow where the last word stands."""

FILES = [("ledger", "show", ""), ("sql", "data.csv", "--output", ""), ("members", "roles", "")]
"""Where a file is meant, or a free text."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        printed = CliRunner().invoke(app, ["completion", shell])
        assert printed.exit_code == 0, printed.output
        (folder / f"sfumato.{shell}").write_text(printed.stdout)
    (folder / "empty").mkdir()
    (folder / "empty" / "only.file").touch()
    return folder


def ran(shell: str, *options: str, script: str, folder: Path) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    # An empty PATH: the shell has the script, and no program to ask.
    environment = {"PATH": "", "HOME": str(folder), "TERM": "dumb"}
    done = subprocess.run(
        [found, *options],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder / "empty",
        env=environment,
    )
    assert done.stderr == ""
    return done.stdout


def in_bash(scripts: Path, lines: list[tuple[str, ...]]) -> list[set[str]]:
    code = f"source {scripts}/sfumato.bash\n"
    for words in lines:
        listed = " ".join(map(shlex.quote, ("sfumato", *words)))
        code += f'COMP_WORDS=({listed}); COMP_CWORD={len(words)}; _sfumato; echo "${{COMPREPLY[*]}}"\n'
    return [set(line.split()) for line in ran("bash", "--norc", script=code, folder=scripts).splitlines()]


def test_in_bash(scripts: Path) -> None:
    assert dict(zip(LINES, in_bash(scripts, list(LINES)), strict=True)) == LINES
    assert in_bash(scripts, FILES) == [set(), set(), set()]


def test_bash_breaks_words_at_signs(scripts: Path) -> None:
    typed = {
        ("sql", "--format", "=", "cs"): {"csv"},
        ("sql", "--format", "="): FORMATS,
        ("survey", "design", "--chance", "truth", "=", "7/10", "cross"): {"crosswise"},
        ("members", "roles", "postgresql", ":", "//ada", "@", "host/db", "eve", "rev"): {"reviewer"},
        ("sql", "people", "=", ""): set(),
    }
    assert dict(zip(typed, in_bash(scripts, list(typed)), strict=True)) == typed


def test_in_fish(scripts: Path) -> None:
    code = f"source {scripts}/sfumato.fish\n"
    for words in LINES:
        typed = shlex.quote(" ".join(("sfumato", *words)))
        code += f"complete -C {typed}\necho\n"
    out = ran("fish", "--no-config", script=code, folder=scripts)
    found = [
        {line.split("\t")[0] for line in part.splitlines() if line} - {"only.file"}
        for part in out.split("\n\n")
    ]
    assert dict(zip(LINES, found, strict=False)) == LINES


TYPED = {
    "led": "ledger",
    "ledger sh": "ledger show",
    "ledger release acs.ledger 3 --no-i": "ledger release acs.ledger 3 --no-intervals",
    "sql --ledger ledger show --format js": "sql --ledger ledger show --format json",
    "sql --format=js": "sql --format=json",
    "survey design --question Q cross": "survey design --question Q crosswise",
    "members roles acs.ledger eve curator rev": "members roles acs.ledger eve curator reviewer",
    "ledger show on": "ledger show only.file",
    "sql people=on": "sql people=only.file",
}
"""What is typed before Tab and Enter, and the arguments with which the program is called then."""


def typed(shell: str, begin: str, folder: Path) -> dict[str, str]:
    """Type lines at a terminal, each with a Tab; the program is a function that prints its arguments."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    ours, theirs = pty.openpty()
    environment = {"PATH": "", "HOME": str(folder), "TERM": "dumb", "PS1": "> "}
    options = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    process = subprocess.Popen(
        [found, *options],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder / "empty",
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    got = {}
    try:
        os.write(ours, f"sfumato() {{ echo \"<$*>\"; }}; {begin}; echo '<'ready'>'\n".encode())
        answer(ours, "<ready>")
        for line in TYPED:
            os.write(ours, f"sfumato {line}\t\n".encode())
            got[line] = answer(ours)
    finally:
        process.kill()
        process.wait(60)
        os.close(ours)
    return got


def answer(terminal: int, expected: str = "") -> str:
    """Return what stands between the next brackets at a terminal that shows nothing else in some."""
    text = ""
    while not (match := re.search(re.escape(expected) or r"\r\n<(.*?)>\r\n", text)):
        assert select.select([terminal], [], [], 60)[0], text
        text += os.read(terminal, 1 << 16).decode()
    return match[0].strip("<>\r\n")


def test_typed_in_bash(scripts: Path) -> None:
    assert typed("bash", f"source {scripts}/sfumato.bash", scripts) == TYPED


def test_typed_in_zsh(scripts: Path) -> None:
    begin = f"autoload -Uz compinit; compinit -u -D; source {scripts}/sfumato.zsh"
    assert typed("zsh", begin, scripts) == TYPED
