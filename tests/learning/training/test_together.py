"""Two processes that train one module: the sums, the noise and the charge of one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sfumato.errors import ParameterError
from sfumato.learning.clipping.adaptive import AdaptiveQuantile
from sfumato.learning.training import parallel
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.learning.training.conftest import Made

ROOT = Path(__file__).parents[3]
SCRIPT = """
import json, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from sfumato.learning.clipping.adaptive import AdaptiveQuantile
from sfumato.learning.training.parallel import DPDDP
from sfumato.ledger import Ledger
from tests.learning.training.conftest import Made, make_module
from tests.learning.training.test_together import shared_ledger

folder, rank, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
module = make_module()
if rank:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
ledger = None if rank else Ledger.open(folder + "/kept.ledger", **shared_ledger())
wrapped = {"own": DPDDP, "torch": DistributedDataParallel}[kind](module)
made = Made(
    module=wrapped,
    ledger=ledger,
    epochs=2,
    delta=1e-3,
    max_physical_batch_size=3,
    clipping=AdaptiveQuantile(clip_norm=0.5, count_stddev=1.0),
    self_test=True,
)
made.epoch()
made.epoch()
weights = [weight.double().tolist() for weight in made.weights]
print(json.dumps([weights, made.engine.get_epsilon(1e-5), made.engine.run.clipping.clip_norm]))
dist.destroy_process_group()
"""


def shared_ledger() -> dict[str, Any]:
    return {
        "budget": Budget.approximate(epsilon=10.0, delta=1e-2),
        "privacy_unit": "row",
        "neighboring": Neighboring.ADD_REMOVE,
        "dataset": Dataset(schema="x", fingerprint=lambda key: "0" * 64),
        "simulated": True,
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own", "torch"])
def test_two_processes_compute_what_one_does(tmp_path: Path, make: Callable[..., Made], kind: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo"}
    commands = [[sys.executable, "-c", SCRIPT, str(tmp_path), str(rank), kind] for rank in range(2)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    told = [json.loads(process.communicate(timeout=120)[0].splitlines()[-1]) for process in processes]
    assert told[0] == told[1]
    alone = make(clipping=AdaptiveQuantile(clip_norm=0.5, count_stddev=1.0), epochs=2)
    alone.epoch()
    alone.epoch()
    for ours, theirs in zip(alone.weights, told[0][0], strict=True):
        torch.testing.assert_close(
            ours.double(), torch.tensor(theirs, dtype=torch.float64), rtol=1e-4, atol=1e-5
        )
    assert told[0][1] == alone.engine.get_epsilon(1e-5)
    assert told[0][2] == pytest.approx(alone.engine.run.clipping.clip_norm)  # type: ignore[attr-defined]
    with Ledger.read(tmp_path / "kept.ledger") as ledger:
        assert (ledger.run(1).claimed, len(ledger.entries())) == (8, 1)


def test_parameters_that_are_cut_up_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piece(nn.Parameter):
        """Stands in for a sharded tensor, which needs a device mesh."""

    monkeypatch.setattr(parallel, "DTensor", Piece)
    module = nn.Linear(2, 1)
    module.weight = Piece(torch.ones(1, 2))
    with pytest.raises(ParameterError, match="whole parameters in each process"):
        parallel.inner_module(module)
