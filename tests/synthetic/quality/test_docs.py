"""The page about quality runs as it stands, and its paid number is near the exact one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import sklearn.ensemble  # noqa: F401 - what the page loads

PAGE = (Path(__file__).parents[3] / "docs" / "quality.md").read_text(encoding="utf-8")


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, space)
    printed, report = capsys.readouterr().out, space["report"]
    assert printed.startswith("FOR THE CURATOR ONLY")
    assert report.worst_marginals(1)[0].columns == ("age", "income")
    auc = next(line for line in report.summary() if line.measure.startswith("AUC"))
    assert auc.real > 0.8
    exact = space["query"](space["real"])
    # Laplace noise of scale 1/(2 n epsilon): beyond 21 of them with probability exp(-21), less than 1e-9.
    assert abs(space["query"].estimate(space["measured"]) - exact) < 21 / (2 * space["rows"] * 0.05)
    assert not space["measured"].simulated
