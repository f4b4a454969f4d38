"""What a newcomer runs first says what is missing, and what there is."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main

ROOT = Path(__file__).parents[2]


def test_a_build_without_a_compiler_says_so_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    source = tmp_path / "source"
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.py", "__pycache__")
    )
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "setup.py",
        "-q",
        "build_ext",
        "--build-lib",
        str(tmp_path / "lib"),
    ]
    environment = {**os.environ, "CC": "/no/such/compiler"}
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith(
        "sfumato must be built with a C compiler, and there is no '/no/such/compiler': install one"
    )
    assert "Traceback" not in done.stderr


def test_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in listed] == sorted(BENCHMARKS)
    assert all(len(line.split()) > 2 for line in listed)
    assert main(["nothing"]) == 2


@pytest.mark.parametrize(
    ("example", "words", "package"),
    [
        ("adult_logistic.py", ["adult.csv"], "UCI"),
        ("fashion_cnn.py", ["--data", "."], "dataset-fashion-mnist"),
    ],
)
@pytest.mark.sharpest("adult_logistic.py-words0-UCI")
def test_an_example_without_its_data_says_who_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str, words: list[str], package: str
) -> None:
    pytest.importorskip("torch")
    script = ROOT / "examples" / example
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), *words])
    monkeypatch.syspath_prepend(script.parent)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert isinstance(ended.value.code, str), "a text is said on standard error, and the exit code is 1"
    (line,) = ended.value.code.splitlines()
    assert package in line
