"""The three walks that the documentation shows: a query, a training step, a local report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import sfumato
from tools.walks.trace import Walk, trace

__all__ = ["SCENES", "local_walk", "sql_walk", "training_walk"]

ROOT = Path(sfumato.__file__).parent

QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1)
      state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state"""


def sql_walk() -> Walk:
    """Return the walk of one query: ``people.sql(...)``."""
    with tempfile.TemporaryDirectory() as folder:
        people = sfumato.connect(
            str(ROOT / "cli" / "data" / "acs.parquet"),
            privacy_unit="person_id",
            epsilon=2.0,
            delta=1e-7,
            ledger=str(Path(folder) / "acs.ledger"),
        )
        return trace(ROOT, lambda: people.sql(QUERY))


def training_walk() -> Walk:
    """Return the walk of one step of private training: forward, backward, ``optimizer.step()``."""
    import torch  # noqa: PLC0415, an optional library

    inputs = torch.randn(64, 5)
    data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
    module: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    )
    module, optimizer, loader = sfumato.learning.PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=16),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )

    def step(batch: tuple[torch.Tensor, ...]) -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(batch[0]), batch[1]).backward()
        optimizer.step()

    batches = iter(loader)
    step(next(batches))  # the first step also tests the module, once
    return trace(ROOT, lambda: step(next(batches)))


def local_walk() -> Walk:
    """Return the walk of one local report: randomized by a device, added to an aggregator, estimated."""
    oracle = sfumato.local.OptimalLocalHashing(epsilon=1.0, domain=sfumato.local.Domain(range(16)))

    def report() -> None:
        aggregator = oracle.aggregator()
        aggregator.add(oracle.device.randomize(3))
        aggregator.estimate().interval(0.95)

    return trace(ROOT, report)


SCENES: Mapping[str, Callable[[], Walk]] = {
    "sql": sql_walk,
    "training": training_walk,
    "local": local_walk,
}
