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

import sfumato
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from tests.learning.training.conftest import Made, make_module


ROOT = Path(__file__).parents[4]
SCRIPT = """
import json, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
from torch.distributed.fsdp import fully_shard
from sfumato.learning.training.distributed.data_parallel import DPDDP
from sfumato.ledger import Ledger
from tests.learning.training.conftest import Made, make_module
from tests.learning.training.distributed.test_ranks import OPTIONS, shared_ledger

folder, rank, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
module = make_module()
if rank:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
ledger = None if rank else Ledger.open(folder + "/kept.ledger", **shared_ledger())
if kind == "sharded":
    module = make_module()
    fully_shard(module[0])
    wrapped = fully_shard(module)
else:
    wrapped = {"own": DPDDP, "torch": DistributedDataParallel}[kind](module)
options = OPTIONS | {"max_physical_batch_size": 3, "self_test": True}
made = Made(
    module=wrapped,
    optimizer=torch.optim.Adam(wrapped.parameters(), lr=0.1),
    ledger=ledger,
    delta=1e-3,
    **options,
)
made.epoch()
made.engine.save_checkpoint(path=folder + "/at.pt")
made.epoch()
clip_norm = made.engine.run.clipping.clip_norm
weights = [weight.double().tolist() for weight in made.engine.export_model().values()]
told = [weights, made.engine.get_epsilon(1e-5), clip_norm]
if kind == "sharded":
    told_apart = [len(p.to_local().flatten()) for p in wrapped.parameters()]
    again = make_module()
    fully_shard(again)
    dist.barrier()
    resumed = Made(
        module=again,
        optimizer=torch.optim.Adam(again.parameters(), lr=0.1),
        resume_from=folder + "/at.pt",
        **options,
    )
    resumed.epoch()
    told.append([weight.double().tolist() for weight in resumed.engine.export_model().values()])
    resumed.engine.detach()
    again(torch.ones(2, 3)).sum().backward()
    told_apart += [len(p.grad.to_local().flatten()) for p in again.parameters()]
    told_apart.append(len(again._forward_pre_hooks))
else:
    told_apart = []
print(json.dumps([told, told_apart]))
dist.destroy_process_group()
"""
AHEAD = """
import sys
import torch.distributed as dist
from sfumato.errors import ParameterError
from sfumato.learning.training.distributed.data_parallel import DPDDP
from tests.learning.training.conftest import Made, make_module

rank = int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=rank, world_size=2)
made = Made(module=DPDDP(make_module()))
if rank == 0:
    next(iter(made.loader))  # to look at an example, say
before = [weight.clone() for weight in made.weights]
try:
    made.epoch()
except ParameterError as error:
    print(all((a == b).all() for a, b in zip(before, made.weights)), error)
dist.destroy_process_group()
"""
APART = """
import sys
import torch.distributed as dist
from sfumato.errors import ParameterError
from sfumato.learning.training.distributed.data_parallel import DPDDP
from tests.learning.training.conftest import Made, make_module

rank = int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=rank, world_size=2)
try:
    Made(module=DPDDP(make_module()), noise_multiplier=1.0 + rank)
except ParameterError as error:
    print(error)
dist.destroy_process_group()
"""
if run_time(__name__):
    OPTIONS: dict[str, Any] = {
        "clipping": AdaptiveQuantile(clip_norm=0.5, count_stddev=1.0),
        "epochs": 2,
    }


def shared_ledger() -> dict[str, Any]:
    return {
        "budget": Budget.approximate(epsilon=10.0, delta=1e-2),
        "privacy_unit": "row",
        "neighboring": Neighboring.ZERO_OUT,
        "dataset": Dataset(schema="x", fingerprint=lambda key: "0" * 64),
        "simulated": True,
    }


def lines_of_two(folder: Path, script: str, *more: str) -> list[str]:
    """Return what each of two processes prints last."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(sfumato.__file__).parents[1]}",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    commands = [
        [sys.executable, "-W", "ignore", "-c", script, str(folder), str(rank), *more] for rank in range(2)
    ]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    return [process.communicate(timeout=120)[0].splitlines()[-1] for process in processes]


def run_two(folder: Path, kind: str) -> tuple[Any, list[list[int]]]:
    told = [json.loads(line) for line in lines_of_two(folder, SCRIPT, kind)]
    assert told[0][0] == told[1][0]
    return told[0][0], [apart for _, apart in told]


def assert_same(ours: list[torch.Tensor], theirs: list[Any]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(
            mine.double(), torch.tensor(other, dtype=torch.float64), rtol=1e-4, atol=1e-5
        )


@pytest.mark.exhaustive  # processes that load torch
@pytest.mark.parametrize("kind", ["own", "torch", "sharded"])
def test_two_processes_compute_what_one_does(tmp_path: Path, make: Callable[..., Made], kind: str) -> None:
    told, apart = run_two(tmp_path, kind)

    def alone(**options: Any) -> Made:
        module = make_module()
        optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
        return make(module=module, optimizer=optimizer, **OPTIONS, **options)

    whole = alone()
    whole.epoch()
    whole.epoch()
    assert_same(whole.weights, told[0])
    assert told[1] == whole.engine.get_epsilon(1e-5)
    assert told[2] == pytest.approx(whole.engine.run.clipping.clip_norm)  # type: ignore[attr-defined]
    with Ledger.read(tmp_path / "kept.ledger") as ledger:
        assert (ledger.run(1).claimed, len(ledger.entries())) == (8, 1)
    if kind != "sharded":
        return
    # Each process holds its rows only, and has its hooks back in the end.
    assert apart == [[6, 2, 4, 1, 6, 2, 4, 1, 1], [6, 2, 0, 0, 6, 2, 0, 0, 1]]
    # One process goes on from what two have saved, and two from their own: both as if nothing had been.
    with pytest.warns(UserWarning, match="fresh key"):
        resumed = alone(resume_from=tmp_path / "at.pt")
    resumed.epoch()
    for weights in (resumed.weights, [torch.tensor(weight) for weight in told[3]]):
        assert all(torch.isfinite(weight).all() for weight in weights)
    assert_same(resumed.weights, told[3])


@pytest.mark.exhaustive
def test_processes_at_different_steps_release_nothing(tmp_path: Path) -> None:
    # Their sum was of two samples, with some examples twice, and each process drew other noise for it.
    for line in lines_of_two(tmp_path, AHEAD):
        assert line.startswith("True batch must belong to the same step in all processes, but the"), line


@pytest.mark.exhaustive
def test_processes_of_other_arguments_are_refused(tmp_path: Path) -> None:
    # The same noise at two scales: what they release together would give the sum away.
    for line in lines_of_two(tmp_path, APART):
        assert line.startswith("noise_multiplier must be the same in all processes, got [1.0, 2.0]"), line
