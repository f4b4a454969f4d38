"""Saving a run, killing it, taking it up again: no noise is drawn twice, and no secret is published."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable, ParameterError, RunExhausted
from sfumato.learning.training.checkpoint.sealing import RunSecrets, seal, unseal
from sfumato.ledger import Budget, Ledger, LedgerView
from sfumato.privacy import Laplace, Neighboring
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    from sfumato.learning import AdaptiveQuantile
    from sfumato.learning.training.checkpoint.checkpoint import Checkpoint
    from tests.learning.training.conftest import Made, make_data, make_module

    Make = Callable[..., Made]
Open = Callable[..., Ledger]
REAL: dict[str, Any] = {"noise_generator": None, "delta": 1e-3}


@pytest.fixture
def deterministic() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(mode=False)


def saved(make: Make, ledger: Ledger, path: Path, **options: Any) -> Made:
    made = make(**REAL, ledger=ledger, epochs=3, **options)
    made.epoch()
    made.engine.save_checkpoint(path=path, checkpoint_dict={"epoch": 1})
    return made


def test_a_run_goes_on_with_steps_that_nobody_claimed(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    place = tmp_path / "kept.ledger"
    ledger = open_ledger(place, simulated=False)
    first = saved(make, ledger, tmp_path / "at.pt")
    again = make(**REAL, ledger=ledger, epochs=3, resume_from=tmp_path / "at.pt")
    assert all(torch.equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert len(again.engine.accountant) == 4
    assert again.engine.run.noise.key == first.engine.run.noise.key  # type: ignore[attr-defined]
    # Two copies of one checkpoint share what is left, and never a step.
    first.epoch()
    again.epoch()
    assert (len(first.engine.accountant), len(again.engine.accountant)) == (8, 12)
    for made in (first, again):
        with pytest.raises(RunExhausted):
            made.epoch()
    assert len(ledger.entries()) == 1
    assert ledger.verify().sound


def test_what_is_published_holds_no_secret(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    made = saved(make, ledger, tmp_path / "at.pt")
    noise: Any = made.engine.run.noise
    secrets = (noise.key, made.engine.run.sampler.seed.reveal())  # type: ignore[union-attr]
    torch.save(made.engine.export_model(), tmp_path / "model.pt")
    for name in ("at.pt", "at.pt.secrets", "model.pt", "kept.ledger"):
        content = (tmp_path / name).read_bytes()
        assert not any(s in content or s.hex().encode() in content for s in secrets), name
    for name in ("at.pt.secrets", "kept.ledger.training-key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    kept = torch.load(tmp_path / "at.pt", weights_only=True)
    assert kept["epoch"] == 1


def test_a_run_does_not_go_on_otherwise_than_it_began(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    saved(make, ledger, tmp_path / "at.pt")
    for options, message in (
        ({"noise_multiplier": 0.5}, "noise_multiplier must be the one"),
        ({"max_grad_norm": 2.0}, "clipping must be the one"),
        ({"batch_size": 20}, "sampler must be the one"),
        ({"noise_generator": 1}, "simulated must be the one"),
    ):
        with pytest.raises(LedgerMismatch, match=message):
            make(**(REAL | {"epochs": 3, "ledger": ledger, "resume_from": tmp_path / "at.pt"} | options))
    module = make_module()
    halves = torch.optim.SGD([{"params": [weight]} for weight in module.parameters()], lr=0.1)
    small, wide = nn.Sequential(nn.Linear(3, 1)), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    parts: list[tuple[dict[str, Any], str]] = [
        ({"module": small}, "module must have the parameters and buffers"),
        ({"module": wide}, "module must have the parameters and buffers"),
        ({"module": module, "optimizer": halves}, r"run began with, \[4\], got others"),
    ]
    for part, message in parts:
        with pytest.raises(LedgerMismatch, match=message):
            make(**(REAL | {"epochs": 3, "ledger": ledger, "resume_from": tmp_path / "at.pt"} | part))
    other = open_ledger(tmp_path / "other.ledger", simulated=False)
    with pytest.raises((ParameterError, LedgerUnavailable)):
        make(**REAL, ledger=other, epochs=3, resume_from=tmp_path / "at.pt")
    (tmp_path / "none.pt").write_bytes(b"no")
    with pytest.raises(LedgerCorrupt, match="one that save_checkpoint wrote"):
        make(**REAL, ledger=ledger, epochs=3, resume_from=tmp_path / "none.pt")
    with pytest.raises(LedgerUnavailable, match="readable file"):
        make(**REAL, ledger=ledger, epochs=3, resume_from=tmp_path / "nowhere.pt")


def altered(path: Path, **changes: Any) -> None:
    """Change the identity of the run that a checkpoint names, and take its tag away."""
    content = torch.load(path, weights_only=True)
    content.pop("sfumato_tag", None)
    document = json.loads(content["sfumato"])
    document["identity"] |= changes
    content["sfumato"] = json.dumps(document)
    torch.save(content, path)


def test_a_checkpoint_that_was_altered_does_not_change_what_is_drawn(
    make: Make, open_ledger: Open, tmp_path: Path
) -> None:
    """The ledger has charged a noise and a sampling: those go on, whatever the checkpoint says."""
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    options: dict[str, Any] = REAL | {"epochs": 3, "ledger": ledger, "resume_from": tmp_path / "at.pt"}
    for wrong, given in (
        ({"noise_multiplier": 0.125}, {"noise_multiplier": 0.125}),
        ({"simulated": True}, {"noise_generator": 7}),
    ):
        saved(make, ledger, tmp_path / "at.pt")
        altered(tmp_path / "at.pt", **wrong)
        if "simulated" in wrong:  # a simulation's sampler and noise are documents of other kinds
            run = make(epochs=3).engine.parts.identity
            altered(tmp_path / "at.pt", sampler=dict(run.sampler), noise=dict(run.noise))
        with pytest.raises(LedgerMismatch, match="run must go on with the loss that charge"):
            make(**(options | given))
    assert all(ledger.run(entry.sequence).claimed == 4 for entry in ledger.entries())


def test_a_checkpoint_is_as_it_was_written_or_refused(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    saved(make, ledger, tmp_path / "at.pt")
    options: dict[str, Any] = REAL | {"epochs": 3, "ledger": ledger, "resume_from": tmp_path / "at.pt"}
    whole = torch.load(tmp_path / "at.pt", weights_only=True)
    weights = {name: value + 1 for name, value in whole["module_state_dict"].items()}
    for change in (
        {"module_state_dict": weights},
        {"optimizer_state_dict": whole["optimizer_state_dict"] | {"state": {}, "more": [1.5, None]}},
        {"epoch": 2},
        {"epoch": "1"},
        {"random_state": whole["random_state"] ^ 1},
        {"sfumato_tag": "0" * 64},
    ):
        torch.save(whole | change, tmp_path / "at.pt")
        with pytest.raises(LedgerCorrupt, match="checkpoint must be as it was written"):
            make(**options)
    torch.save({name: value for name, value in whole.items() if name != "sfumato_tag"}, tmp_path / "at.pt")
    make(**options)  # as an earlier version wrote it


def test_a_ledger_that_was_rolled_back_is_refused(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    place = tmp_path / "kept.ledger"
    ledger = open_ledger(place, simulated=False)
    made = make(**REAL, ledger=ledger, epochs=3)
    shutil.copy(place, tmp_path / "old.ledger")
    made.epoch()
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    ledger.close()
    shutil.copy(tmp_path / "old.ledger", place)
    with pytest.raises(LedgerCorrupt, match="rolled back, and noise would be drawn twice"):
        make(**REAL, ledger=open_ledger(place, simulated=False), epochs=3, resume_from=tmp_path / "at.pt")


def test_a_ledger_that_was_rolled_back_and_went_on_is_refused(
    make: Make, open_ledger: Open, tmp_path: Path, deterministic: None
) -> None:
    place = tmp_path / "kept.ledger"
    ledger = open_ledger(place, simulated=False)
    options: dict[str, Any] = REAL | {"epochs": 3, "replayable": True}
    made = make(**options, ledger=ledger)
    shutil.copy(place, tmp_path / "old.ledger")
    made.epoch()
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    ledger.close()
    shutil.copy(tmp_path / "old.ledger", place)
    with open_ledger(place, simulated=False) as again:
        for step in range(5):  # as many steps as the checkpoint has seen, and one more: with other noise
            again.run(1).claim_replayable(step, "a" * 64)
        with pytest.raises(LedgerCorrupt, match="rolled back and went on"):
            make(**options, ledger=again, resume_from=tmp_path / "at.pt")


def test_a_ledger_that_lost_other_charges_is_refused(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    place = tmp_path / "kept.ledger"
    ledger = open_ledger(place, simulated=False)
    made = make(**REAL, ledger=ledger, epochs=3)
    made.epoch()
    shutil.copy(place, tmp_path / "old.ledger")
    ledger.charge(Laplace(1e6, neighboring=Neighboring.ZERO_OUT), delta=0.0)
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    ledger.close()
    shutil.copy(tmp_path / "old.ledger", place)
    with open_ledger(place, simulated=False) as again, pytest.raises(LedgerCorrupt, match="never go back"):
        make(**REAL, ledger=again, epochs=3, resume_from=tmp_path / "at.pt")


def test_an_analyst_saves_and_goes_on_too(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    ledger.grant("ada", Budget.approximate(epsilon=9.0, delta=1e-2))
    options: dict[str, Any] = REAL | {"ledger": LedgerView(ledger, "ada"), "epochs": 3}
    made = make(**options)
    made.epoch()
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    again = make(**options, resume_from=tmp_path / "at.pt")
    assert again.epoch() == 4
    assert [entry.analyst for entry in ledger.entries()] == ["ada"]


def test_secrets_open_for_their_own_run_only(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    key = bytes(32)
    content = RunSecrets(noise_key=b"n" * 32, sampling_seed=b"s" * 32)
    data = seal(key, "run 1", content)
    assert unseal(key, "run 1", data) == content
    assert "nnn" not in repr(content)
    document = json.loads(data)
    tag = document["encrypted"]
    altered = document | {"encrypted": tag[:-1] + ("0" if tag[-1] != "0" else "1")}
    for wrong in (
        (bytes(31) + b"1", "run 1", data),
        (key, "run 2", data),
        (key, "run 1", json.dumps(altered).encode()),
    ):
        with pytest.raises(LedgerCorrupt, match="those of this run"):
            unseal(*wrong)
    for other, says in (
        (data[:-1], "file of the format"),
        (b"[]", "file of the format"),
        (json.dumps(document | {"format": "sfumato.loss"}).encode(), "got another"),
        (json.dumps(document | {"more": ""}).encode(), "have the fields nonce, encrypted"),
        (json.dumps(document | {"nonce": "xy"}).encode(), "hexadecimal digits"),
    ):
        with pytest.raises(LedgerCorrupt, match=says):
            unseal(key, "run 1", other)
    with pytest.raises(LedgerUnavailable, match="newer sfumato"):
        unseal(key, "run 1", json.dumps(document | {"version": 2}).encode())
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    saved(make, ledger, tmp_path / "at.pt")
    (tmp_path / "at.pt.secrets").unlink()
    with pytest.raises(LedgerUnavailable, match="secrets must lie beside the checkpoint"):
        make(**REAL, ledger=ledger, epochs=3, resume_from=tmp_path / "at.pt")


def test_a_replayed_step_gives_the_same_bits_and_another_gets_fresh_noise(
    make: Make, open_ledger: Open, tmp_path: Path, deterministic: None
) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    options: dict[str, Any] = REAL | {"ledger": ledger, "epochs": 3, "replayable": True}
    first = saved(make, ledger, tmp_path / "at.pt", replayable=True)
    first.epoch()
    assert ledger.run(1).claimed == 8
    again = make(**options, resume_from=tmp_path / "at.pt")
    again.epoch()
    assert all(torch.equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert ledger.run(1).claimed == 8
    # The same step on other parameters: its noise is not drawn again.
    other = make(**options, resume_from=tmp_path / "at.pt")
    with torch.no_grad():
        next(iter(other.module.parameters())).add_(1.0)
    before = other.weights
    batches = iter(other.loader)
    x, y = next(batches)
    other.loss(x, y).backward()
    with pytest.warns(UserWarning, match="goes on with fresh steps"):
        other.optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, other.weights, strict=True))
    x, y = next(batches)
    other.optimizer.zero_grad()
    other.loss(x, y).backward()
    other.optimizer.step()
    assert (len(other.engine.accountant), ledger.run(1).claimed) == (9, 9)
    assert ledger.verify().sound


def test_a_clip_norm_that_adapts_goes_on_from_where_it_was(
    make: Make, open_ledger: Open, tmp_path: Path, deterministic: None
) -> None:
    """The sums and the noise of a replayed step are the same only if it clips as it did."""
    ledger = open_ledger(tmp_path / "one.ledger", simulated=False)
    options = {"clipping": AdaptiveQuantile(clip_norm=0.1, count_stddev=2.0), "replayable": True}
    first = saved(make, ledger, tmp_path / "at.pt", **options)
    at = first.engine.run.clipping
    assert isinstance(at, AdaptiveQuantile)
    assert at.clip_norm != 0.1
    first.epoch()
    again = make(**REAL, ledger=ledger, epochs=3, resume_from=tmp_path / "at.pt", **options)
    assert again.engine.run.clipping == at
    again.engine.save_checkpoint(path=tmp_path / "later.pt")
    again.epoch()
    assert again.engine.run.clipping == first.engine.run.clipping
    assert all(torch.equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert ledger.run(1).claimed == 8
    later = Checkpoint.read(tmp_path / "later.pt")
    assert (later.clip_norm, later.identity.clipping["clip_norm"]) == (at.clip_norm, 0.1)
    document = json.loads(later.run_to_json())
    for wrong in ("wide", True):
        content = torch.load(tmp_path / "later.pt", weights_only=True)
        content["sfumato"] = json.dumps(document | {"clip_norm": wrong})
        torch.save(content, tmp_path / "wrong.pt")
        with pytest.raises(LedgerCorrupt, match="clip_norm must be a number"):
            Checkpoint.read(tmp_path / "wrong.pt")


def test_a_clip_norm_that_adapts_goes_on_without_a_ledger(make: Make, tmp_path: Path) -> None:
    clipping = AdaptiveQuantile(clip_norm=0.1, count_stddev=2.0)
    first = make(clipping=clipping)
    first.epoch()
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    loaded = make(clipping=clipping)
    loaded.engine.load_checkpoint(path=tmp_path / "at.pt", module=loaded.module)
    assert loaded.engine.run.clipping == first.engine.run.clipping != clipping
    fixed = make()
    fixed.epoch()
    fixed.engine.save_checkpoint(path=tmp_path / "fixed.pt")
    assert "clip_norm" not in json.loads(Checkpoint.read(tmp_path / "fixed.pt").run_to_json())


def test_replayed_steps_are_loaded_in_this_process_or_not_charged(
    make: Make, open_ledger: Open, tmp_path: Path, deterministic: None
) -> None:
    ledger = open_ledger(tmp_path / "one.ledger", simulated=False)
    loader = DataLoader(make_data(), batch_size=16, num_workers=1)
    with pytest.raises(ParameterError, match="num_workers must be 0 where steps are replayable, got 1"):
        make(**REAL, ledger=ledger, epochs=1, replayable=True, data_loader=loader)
    assert not ledger.entries()


def test_weights_of_a_wrapped_module_and_of_one_by_itself_are_the_same(make: Make, tmp_path: Path) -> None:
    first = make()
    first.epoch()
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    wrapped = nn.ModuleDict({"module": make_module()})  # as DistributedDataParallel names its part
    kept = Checkpoint.read(tmp_path / "at.pt")
    kept.restore(wrapped, None)
    assert all(torch.equal(a, b) for a, b in zip(first.weights, wrapped.parameters(), strict=True))
    back = make_module()
    replace(kept, module=wrapped.state_dict()).restore(back, None)
    assert all(torch.equal(a, b) for a, b in zip(first.weights, back.parameters(), strict=True))


def test_without_a_ledger_a_run_goes_on_with_fresh_secrets(make: Make, tmp_path: Path) -> None:
    first = make(noise_generator=None)
    first.epoch()
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    assert not (tmp_path / "at.pt.secrets").exists()
    with pytest.warns(UserWarning, match="fresh key and fresh batches"):
        again = make(noise_generator=None, resume_from=tmp_path / "at.pt")
    loaded = make(noise_generator=None)
    assert loaded.engine.load_checkpoint(path=tmp_path / "at.pt", module=loaded.module) == {}
    for made in (again, loaded):
        assert all(torch.equal(a, b) for a, b in zip(first.weights, made.weights, strict=True))
        assert made.engine.get_epsilon(1e-5) == first.engine.get_epsilon(1e-5)
        assert made.engine.run.noise.key != first.engine.run.noise.key  # type: ignore[attr-defined]
        made.epoch()
        assert len(made.engine.accountant) == 8
    with pytest.raises(ParameterError, match="not have begun"):
        loaded.engine.load_checkpoint(path=tmp_path / "at.pt", module=loaded.module)


SCRIPT = """
import os, signal, sys, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader
from sfumato.learning import PrivacyEngine, RecordOptions, SamplingOptions
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.learning.training.conftest import make_data, make_module

folder, resume, stop = sys.argv[1], sys.argv[2] == "resume", int(sys.argv[3])
replayable = sys.argv[4] == "replay"
torch.set_num_threads(1)
torch.use_deterministic_algorithms(replayable)
ledger = Ledger.open(
    folder + "/kept.ledger",
    budget=Budget.approximate(epsilon=10.0, delta=1e-2),
    privacy_unit="row",
    neighboring=Neighboring.ZERO_OUT,
    dataset=Dataset(schema="x", fingerprint=lambda key: "0" * 64),
)
module = make_module()
module, optimizer, loader = (engine := PrivacyEngine()).make_private(
    module=module,
    optimizer=torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9),
    data_loader=DataLoader(make_data(), batch_size=10),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    sampling=SamplingOptions(epochs=5),
    record=RecordOptions(
        ledger=ledger,
        delta=1e-3,
        replayable=replayable,
        resume_from=folder + "/at.pt" if resume else None,
    ),
)
try:
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
            if len(engine.accountant) % 4 == 2:
                engine.save_checkpoint(path=folder + "/at.pt")
            total = sum(float(p.detach().double().sum()) for p in module.parameters())
            print(len(engine.accountant), total.hex(), flush=True)
            if len(engine.accountant) == stop:
                os.kill(os.getpid(), signal.SIGKILL)
except Exception as error:
    print(type(error).__name__, 0, flush=True)
"""


def trained(folder: Path, *words: str) -> tuple[int, dict[str, str]]:
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{Path(sfumato.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.exhaustive  # processes that load torch
@pytest.mark.parametrize("mode", ["fresh", "replay"])
def test_a_killed_process_is_taken_up_by_the_next(tmp_path: Path, mode: str) -> None:
    code, before = trained(tmp_path, "begin", "9", mode)
    assert code == -signal.SIGKILL
    assert list(before) == [str(step) for step in range(1, 10)]
    code, after = trained(tmp_path, "resume", "0", mode)
    assert code == 0
    if mode == "replay":
        # Steps 7 to 9 once more, bit for bit, and then to the end.
        assert list(after) == [*(str(step) for step in range(7, 21)), "RunExhausted"]
        assert all(after[step] == before[step] for step in ("7", "8", "9"))
    else:
        assert list(after) == [*(str(step) for step in range(10, 21)), "RunExhausted"]
    with Ledger.read(tmp_path / "kept.ledger") as ledger:
        assert ledger.run(1).left == 0
        assert len(ledger.entries()) == 1
        assert ledger.verify().sound
