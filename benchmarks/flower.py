"""The Flower adapter in Flower's own simulation, and a search for one of Flower's own masks.

Needs ``pip install 'sfumato[flower]'`` in an environment of its own: ``python -m benchmarks.flower``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.federated import (
    DistributedDiscreteGaussian,
    FlowerDistributedNoiseMod,
    FlowerDistributedNoiseWorkflow,
    FlowerSecureAggregationMod,
    FlowerSecureAggregationWorkflow,
)
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring

__all__ = ["main"]

CLIENTS, FEATURES = 10, 6
NOISY_CLIENTS, NOISY_ROUNDS, DELTA = 40, 5, 1e-5
WEIGHTS = np.linspace(-2.0, 2.0, FEATURES)


def main() -> int:
    """Search for a mask; then train a linear model, with masks only, and with distributed noise."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flower", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=["all", "masks", "noise"], default="all")
    options = parser.parse_args()
    if options.part in ("all", "masks"):
        search()
        simulate(options.rounds)
    if options.part in ("all", "noise"):
        simulate_noise()
    return 0


def search(bits: int = 20) -> None:
    """Recover a pair's mask of Flower's SecAgg+ from 64 of its numbers, with the fold of the key restricted.

    Flower folds the key of a pair to 32 bits, which seed a Mersenne Twister. Here the fold is from a range of
    2^20, so that a search takes seconds; the whole range takes 4,096 times as long, on one core.
    """
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen  # noqa: PLC0415

    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 32, 11, dtype=np.uint64).tolist()
    fold = 0
    for word in words:
        fold ^= word
    words[-1] ^= fold ^ int(rng.integers(0, 1 << bits))
    key = b"".join(int(word).to_bytes(4, "little") for word in words)
    seen = pseudo_rand_gen(key, 1 << 32, [(64,)])[0]
    start = time.process_time()
    generator = np.random.RandomState()
    for seed in range(1 << bits):
        generator.seed(seed)
        if generator.randint(0, (1 << 32) - 1, 2, dtype=np.int64)[0] != seen[0]:
            continue
        again = pseudo_rand_gen(seed.to_bytes(4, "little"), 1 << 32, [(64,)])[0]
        if np.array_equal(again, seen):
            break
    else:
        raise AssertionError("no seed gives this mask")
    spent = time.process_time() - start
    print(f"mask of Flower's SecAgg+ found: its 44-byte key acts as the number {seed}")
    hours = spent / (seed + 1) * 2**32 / 3600
    print(f"  {seed + 1:,} tries in {spent:.1f} s of CPU, {hours:.1f} h for all 2^32")


def simulate(rounds: int) -> None:
    """Run the workflow and the mod by ray; the client whose turn it is fails in each round."""
    run_in_flower(
        clients=CLIENTS,
        rounds=rounds,
        mod=FlowerSecureAggregationMod(minimum_survivors=8),
        workflow=FlowerSecureAggregationWorkflow(minimum_share=0.8, max_weight=100),
        failing=lambda number, client: client == number % CLIENTS,
    )


def simulate_noise() -> None:
    """Run the workflow and the mod with distributed noise and a ledger; two rounds are to be aborted.

    Too few clients survive the third; the last would cost the clients more than they allow.
    """
    noise = DistributedDiscreteGaussian(
        clients=NOISY_CLIENTS,
        minimum_survivors=NOISY_CLIENTS * 9 // 10,
        colluders=2,
        dimension=FEATURES,
        clip_norm=2.0,
        noise_multiplier=2.0,
        bits=18,
    )
    epsilon = (noise.privacy_loss * NOISY_ROUNDS).epsilon(DELTA)
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=10.0, delta=DELTA),
        privacy_unit="client",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="rows of the clients", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        workflow = FlowerDistributedNoiseWorkflow(noise, ledger=ledger, delta=DELTA)
        run_in_flower(
            clients=NOISY_CLIENTS,
            rounds=NOISY_ROUNDS + 1,  # the last one is beyond what the clients allow
            mod=FlowerDistributedNoiseMod(
                minimum_survivors=noise.minimum_survivors, epsilon=epsilon, delta=DELTA, colluders=2
            ),
            workflow=workflow,
            failing=lambda number, client: client < (6 if number == 3 else 1),
        )
        charged = len(ledger.entries())
    loss = workflow.privacy_loss
    epsilon = loss.epsilon(DELTA)
    print(f"epsilon of {workflow.rounds} rounds at delta {DELTA:g}, {loss.neighboring}: {epsilon:.3f}")
    print(f"charges in the ledger: {charged}; aborted: {workflow.aborted}")
    print(workflow.trust_report(DELTA))


def run_in_flower(
    *, clients: int, rounds: int, mod: Any, workflow: Any, failing: Callable[[int, int], bool]
) -> None:
    """Train a linear model in Flower's simulation, and print the largest error of a weight by round."""
    import flwr.client  # noqa: PLC0415
    import flwr.common  # noqa: PLC0415
    import flwr.server  # noqa: PLC0415
    import flwr.server.strategy  # noqa: PLC0415
    import flwr.server.workflow  # noqa: PLC0415
    import flwr.simulation  # noqa: PLC0415

    class Client(flwr.client.NumPyClient):  # type: ignore[misc]
        """A client with rows of its own; one whose turn it is fails while it trains."""

        def __init__(self, number: int) -> None:
            self.number = number
            rng = np.random.default_rng(number)
            self.inputs = rng.normal(size=(20 + 5 * number, FEATURES))
            self.targets = self.inputs @ WEIGHTS

        def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
            if failing(int(config["round"]), self.number):
                raise RuntimeError("this client drops out")
            (weights,) = parameters
            for _ in range(5):
                gradient = self.inputs.T @ (self.inputs @ weights - self.targets) / len(self.targets)
                weights = weights - 0.3 * gradient
            return [weights], len(self.targets), {}

    def client_fn(context: Any) -> Any:
        return Client(int(context.node_config["partition-id"])).to_client()

    server = flwr.server.ServerApp()

    def error(_: int, parameters: list[Any], __: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        return float(np.abs(parameters[0] - WEIGHTS).max()), {}

    @server.main()  # type: ignore[untyped-decorator]
    def run(grid: Any, context: Any) -> None:
        strategy = flwr.server.strategy.FedAvg(
            fraction_fit=1.0,
            fraction_evaluate=0.0,
            min_fit_clients=clients,  # all nodes, also where they are still being registered
            min_available_clients=clients,
            initial_parameters=flwr.common.ndarrays_to_parameters([np.zeros(FEATURES, np.float32)]),
            on_fit_config_fn=lambda number: {"round": number},
            evaluate_fn=error,
        )
        legacy = flwr.server.LegacyContext(
            context=context, config=flwr.server.ServerConfig(num_rounds=rounds), strategy=strategy
        )
        flwr.server.workflow.DefaultWorkflow(fit_workflow=workflow)(grid, legacy)
        print("largest error of a weight by round:", [loss for _, loss in legacy.history.losses_centralized])

    flwr.simulation.run_simulation(
        server_app=server,
        client_app=flwr.client.ClientApp(client_fn=client_fn, mods=[mod]),
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0}},
    )


if __name__ == "__main__":
    raise SystemExit(main())
