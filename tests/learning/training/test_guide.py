"""The guide to training: its code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from tests.learning.training.conftest import Made, make_module


PAGE = Path(__file__).parents[3] / "docs" / "learning.md"


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 8
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), space)  # one after the other, as a reader would
    ledger = space["ledger"]
    assert [entry.steps for entry in ledger.entries()] == [18]  # type: ignore[attr-defined]
    ledger.close()  # type: ignore[attr-defined]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_module_trains_alike_or_is_refused() -> None:
    torch._dynamo.reset()
    compiled, plain = Made(module=torch.compile(make_module(), backend="eager")), Made()
    for made in (compiled, plain):
        x, y = next(iter(made.loader))
        made.loss(x, y).backward()
        made.optimizer.step()
    for a, b in zip(compiled.weights, plain.weights, strict=True):
        torch.testing.assert_close(a, b)
    module = make_module()
    module.compile(backend="eager")
    with pytest.raises(ParameterError, match="compiled in place"):
        Made(module=module)
