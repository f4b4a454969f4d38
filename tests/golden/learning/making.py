"""The golden files of private training: a killed run, its secrets and ledger, a card, samplers and noise."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sfumato._wire import canonical
from sfumato.learning import (
    AdaptiveQuantile,
    AllocationSampler,
    Automatic,
    BallsInBinsSampler,
    Clipping,
    CorrelatedNoise,
    CyclicSampler,
    FixedSizeSampler,
    Flat,
    FullBatchSampler,
    GradientOptions,
    GridNoise,
    KeyedNoise,
    Noise,
    PerGroup,
    PerLayer,
    PoissonSampler,
    PrivacyCard,
    PrivacyEngine,
    RecordOptions,
    Sampler,
    SamplingOptions,
    SeparatedSampler,
    ShuffledSampler,
    SimulatedNoise,
    TruncatedPoissonSampler,
    UserRecordsSampler,
    UserSampler,
    WithReplacementSampler,
)
from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.learning.training.checkpoint.sealing import RunSecrets, seal
from sfumato.learning.training.identity import clipping_to_json, noise_to_json, sampler_to_json
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import BandedToeplitz, BinaryTree, BufferedToeplitz, Participation, SquareRoot
from sfumato.mechanisms.factorization.strategies.lower_triangular import LowerTriangular
from sfumato.privacy import DiscreteLaplace, Gaussian, Neighboring

KEY = bytes(range(32))
SEED = bytes(range(32, 64))
RUN = "a ledger's id, a run's number and its charge"
STEPS = 12
KILLED_AT = 7
"""So many steps were run before the process was killed; the checkpoint is of the fourth."""


def samplers() -> dict[str, Sampler]:
    """Return one sampler of each kind, all from one seed."""
    same: dict[str, Any] = {"population": 20, "steps": 6, "seed": SEED}
    users: dict[str, Any] = {"user_ids": [1, 1, 2, 3, 3, 3], "steps": 6, "seed": SEED}
    return {
        "poisson": PoissonSampler(sampling_probability=0.25, **same),
        "poisson, private population": PoissonSampler(
            sampling_probability=0.25, public_batch_size=5.0, **same
        ),
        "poisson, zero-out": PoissonSampler(
            sampling_probability=0.25, neighboring=Neighboring.ZERO_OUT, **same
        ),
        "truncated poisson": TruncatedPoissonSampler(sampling_probability=0.25, max_batch_size=4, **same),
        "separated": SeparatedSampler(sampling_probability=0.25, separation=3, **same),
        "random allocation": AllocationSampler(round_steps=3, **same),
        "balls in bins": BallsInBinsSampler(bins=3, **same),
        "full batch": FullBatchSampler(**same),
        "fixed size": FixedSizeSampler(batch_size=5, **same),
        "with replacement": WithReplacementSampler(batch_size=5, **same),
        "shuffled": ShuffledSampler(batch_size=5, **same),
        "cyclic": CyclicSampler(batch_size=5, **same),
        "users": UserSampler(sampling_probability=0.5, **users),
        "records of users": UserRecordsSampler(sampling_probability=0.5, max_examples=2, **users),
    }


def clippings() -> list[Clipping]:
    """Return one clipping of each kind."""
    return [
        Flat(clip_norm=1.5),
        Automatic(clip_norm=1.0, gamma=0.01),
        PerLayer(clip_norm=1.0, layers=("0", "2")),
        PerGroup(clip_norms={"head": 0.5, "": 2.0}, allocation="equal"),
        AdaptiveQuantile(clip_norm=0.1, count_stddev=5.0),
    ]


def noises() -> dict[str, Noise]:
    """Return one noise of each kind, and correlated noise of each strategy."""
    often = Participation(max_participations=None, separation=4)
    strategies = {
        "tree": BinaryTree(steps=8),
        "square root": SquareRoot(steps=8),
        "banded": BandedToeplitz(steps=8, bands=[1.0, 0.5, 0.25]),
        "buffered": BufferedToeplitz(steps=8, decays=(0.5,), weights=(0.25,)),
        "lower triangular": LowerTriangular(rows=[[1.0, 0.0], [0.5, 1.0]]),
    }
    return {
        "keyed": KeyedNoise(KEY),
        "simulated": SimulatedNoise(7),
        "grid": GridNoise(KEY),
        **{
            name: CorrelatedNoise(strategy, participation=often, key=KEY)
            for name, strategy in strategies.items()
            if strategy.steps == 8
        },
        "lower triangular": CorrelatedNoise(strategies["lower triangular"], key=KEY),
    }


def sampler_states() -> bytes:
    """Return each sampler's public parameters, and the batches that follow from its seed."""
    found = {
        name: {
            "parameters": sampler_to_json(sampler),
            "batches": [sampler.batch(step).tolist() for step in range(3)],
        }
        for name, sampler in samplers().items()
    }
    return canonical(found).encode()


def clipping_states() -> bytes:
    """Return each clipping's parameters."""
    return canonical([clipping_to_json(clipping) for clipping in clippings()]).encode()


def noise_states() -> bytes:
    """Return each noise's public parameters, and how its first steps round to a thousandth."""
    found = {}
    for name, noise in noises().items():
        drawn = []
        for step in range(2):
            sums = [torch.zeros(3), torch.zeros(2, 2)]
            noise.add_(sums, step=step, stddevs=[1.0, 2.0])
            drawn.append([round(1000 * float(x)) for tensor in sums for x in tensor.reshape(-1)])
        found[name] = {"parameters": noise_to_json(noise), "steps": drawn}
    return canonical(found).encode()


def card() -> PrivacyCard:
    """Return a card that has everything."""
    return PrivacyCard(
        epsilon=1.25,
        delta=1e-5,
        neighboring=Neighboring.ADD_REMOVE,
        unit="visit",
        loss=Gaussian(4.0) * 3,
        steps=3,
        sampler="poisson",
        sampling={"sampling_probability": 0.25, "expected_batch_size": 5.0},
        participation=3,
        noise={"kind": "keyed-normal"},
        noise_multiplier=4.0,
        clipping=clipping_to_json(Flat(clip_norm=1.5)),
        float_safe=False,
        simulated=False,
        foreign_steps=1,
        ledger={"id": "00" * 16, "run": 1, "privacy_unit": "visit"},
        software={"sfumato": "1.0", "torch": "2.0"},
    )


@contextmanager
def fixed_entropy() -> Iterator[None]:
    """Have keys, ids and nonces follow from a counter, so that files can be made again."""
    counter = itertools.count()

    def block(size: int = 32) -> bytes:
        return hashlib.shake_256(b"golden %d" % next(counter)).digest(size)

    with (
        patch.object(os, "urandom", block),
        patch.object(secrets, "token_bytes", block),
        patch.object(secrets, "token_hex", lambda size=32: block(size).hex()),
    ):
        yield


def open_ledger(path: Path) -> Ledger:
    """Open the ledger of the run."""
    return Ledger.open(
        path,
        budget=Budget.approximate(epsilon=10.0, delta=1e-2),
        privacy_unit="row",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="x", fingerprint=lambda key: "0" * 64),
    )


def training(ledger: Ledger, resume_from: Path | None = None) -> tuple[PrivacyEngine, Callable[[int], None]]:
    """Return the engine of the run, and what runs more steps of it."""
    x = torch.arange(60.0).reshape(20, 3).remainder(7) / 7
    data = TensorDataset(x, x @ torch.tensor([[1.0], [-2.0], [0.5]]))
    torch.manual_seed(0)
    module: Any = nn.Linear(3, 1)
    optimizer: Any = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.5)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=DataLoader(data, batch_size=5),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        sampling=SamplingOptions(steps=STEPS),
        gradients=GradientOptions(self_test=False),
        record=RecordOptions(ledger=ledger, delta=1e-3, resume_from=resume_from),
    )

    def run(steps: int) -> None:
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        for x, y in itertools.islice(batches, steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()

    return engine, run


def ended(engine: PrivacyEngine) -> dict[str, Any]:
    """Return how a run ends: its weights and its loss."""
    weights = {name: tensor.reshape(-1).tolist() for name, tensor in engine.export_model().items()}
    return {"weights": weights, "loss": engine.accountant.loss.to_json(), "steps": len(engine.accountant)}


def evaluation() -> EvaluationRecord:
    """Return the record of an evaluation."""
    return EvaluationRecord(
        correct=-3,
        rows=200,
        lower=0.0,
        upper=0.125,
        epsilon=0.5,
        loss=DiscreteLaplace(2, neighboring=Neighboring.ZERO_OUT),
        privacy_unit="row",
        simulated=False,
        charge=7,
    )


def killed_run() -> dict[str, bytes]:
    """Return the files of a run that was killed, and how it ends when it goes on."""
    made = {}
    with tempfile.TemporaryDirectory() as name, fixed_entropy():
        folder = Path(name)
        with open_ledger(folder / "run.sqlite") as ledger:
            engine, run = training(ledger)
            run(4)
            engine.save_checkpoint(path=folder / "run.pt")
            run(KILLED_AT - 4)
            engine.detach()
        for path in sorted(folder.iterdir()):
            made[path.name] = path.read_bytes()
        with open_ledger(folder / "run.sqlite") as ledger:
            engine, run = training(ledger, resume_from=folder / "run.pt")
            run(STEPS - KILLED_AT)
            made["run.json"] = json.dumps(ended(engine), indent=1).encode()
    return made


def files() -> dict[str, bytes]:
    """Return the bytes of each file by name."""
    with fixed_entropy():
        sealed = seal(KEY, RUN, RunSecrets(noise_key=KEY, sampling_seed=SEED))
    return {
        "samplers.json": sampler_states(),
        "clippings.json": clipping_states(),
        "noises.json": noise_states(),
        "card.json": card().to_json().encode(),
        "sealed.json": sealed,
        "evaluation.json": evaluation().to_bytes(),
        **killed_run(),
    }
