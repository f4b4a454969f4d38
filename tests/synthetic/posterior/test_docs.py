"""The page about inference runs as it stands, and its counter-example fails as it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "posterior.md").read_text(encoding="utf-8")


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    # Its noise is not seeded: truth is 6 and more standard errors away from what the test refutes.
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, space)
    printed = capsys.readouterr().out
    assert printed.startswith("(('a', 'b'), ('a', 'y'), ('b', 'y'))")
    combined = space["combined"]
    assert (np.abs(combined.estimate - [-0.5, 0.8, -0.6]) < 10 * combined.standard_error).all()
    ends = re.findall(r"^(pairs|triple) (\S+) (\S+)$", printed, re.MULTILINE)
    found = {name: (float(low), float(high)) for name, low, high in ends}
    assert found["pairs"][1] < 0.4
    assert found["triple"][1] > 0.4
