"""Training over distributed noise: the sum with masks and without, drop-outs, and what each party learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, SimulatedCharge
from sfumato.federated import plan_neighbors
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.privacy import DiscreteGaussianSum, Neighboring, PoissonSubsampled
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.federated.distributed_aggregator import DistributedNoiseAggregator
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.keyed import SimulatedNoise

CLIENTS = 12


def _full() -> FullBatchSampler:
    return FullBatchSampler(population=CLIENTS, steps=2)


def _ledger() -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.approximate(epsilon=20.0, delta=1e-4),
        privacy_unit="client",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="clients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    )


def _push(module: nn.Module, data: int) -> None:
    """Each client pushes a coordinate of its own, by its number."""
    with torch.no_grad():
        next(module.parameters())[0, data] += data + 1.0


def _training(
    aggregator: DistributedNoiseAggregator,
    sampler: Sampler | None = None,
    noise_multiplier: float = 1e-4,
    **more: Any,
) -> FederatedTraining[int]:
    sampler = _full() if sampler is None else sampler
    module = nn.Linear(CLIENTS, 1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    options = {"clipping": Flat(clip_norm=8.0), **more}
    return FederatedTraining(
        module,
        list(range(sampler.population)),
        _push,
        sampler=sampler,
        noise_multiplier=noise_multiplier,
        aggregation=aggregator,
        **options,
    )


def _weights(training: FederatedTraining[int]) -> list[float]:
    return [float(w) for w in training.module.weight.detach().ravel()]  # type: ignore[operator]


def test_a_round_is_the_mean_of_the_clipped_changes() -> None:
    training = _training(DistributedNoiseAggregator(minimum_survivors=10, bits=30))
    training.run(1)
    expected = [min(8.0, k + 1) / CLIENTS for k in range(CLIENTS)]
    assert _weights(training) == pytest.approx(expected, abs=2e-3)
    assert training.aborted == {}
    assert not training.simulated


@pytest.mark.parametrize("active", [False, True])
def test_with_masks_or_without_the_models_are_the_same(active: bool) -> None:
    def dropped(number: int, client: int, message: str) -> bool:
        return (number, client, message) in {
            (0, 3, "keys"),
            (0, 7, "vector"),
            (1, 5, "shares"),
            (1, 2, "unmask"),
        }

    found = []
    for masks in (True, False):
        aggregator = DistributedNoiseAggregator(
            minimum_survivors=10, masks=masks, dropped=dropped, rng=7, active=active
        )
        training = _training(aggregator, noise_multiplier=0.5)
        training.run()
        assert training.simulated
        assert training.aborted == {}
        found.append(_weights(training))
    assert found[0] == found[1]
    assert np.std(found[0]) > 0.1


def test_who_drops_out_is_not_in_the_sum() -> None:
    def dropped(number: int, client: int, message: str) -> bool:
        return client in (1, 6) and message == "vector"

    training = _training(DistributedNoiseAggregator(minimum_survivors=10, bits=30, dropped=dropped))
    training.run(1)
    expected = [0 if k in (1, 6) else min(8.0, k + 1) / CLIENTS for k in range(CLIENTS)]
    assert _weights(training) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("masks", [True, False])
def test_a_round_below_the_minimum_changes_nothing_and_is_charged(masks: bool) -> None:
    def dropped(number: int, client: int, message: str) -> bool:
        return number == 0 and client < 3 and message == "vector"

    aggregator = DistributedNoiseAggregator(minimum_survivors=10, masks=masks, dropped=dropped)
    with _ledger() as ledger:
        training = _training(aggregator, noise_multiplier=2.0, ledger=ledger, delta=1e-5)
        training.run(1)
        assert _weights(training) == [0.0] * CLIENTS
        assert list(training.aborted) == [0]
        assert "at least 10 clients" in training.aborted[0]
        assert training.epsilon(1e-5) > 0
        assert ledger.run(1).claimed == 1
        training.run(1)
        assert list(training.aborted) == [0]
        assert any(_weights(training))
        (entry,) = ledger.entries()
        assert entry.loss == training.privacy_loss


def test_a_round_with_too_few_or_too_many_clients_is_aborted_unasked() -> None:
    asked: list[int] = []

    def local(module: nn.Module, data: int) -> None:
        asked.append(data)

    for probability in (0.02, 0.98):
        sampler = PoissonSampler(population=CLIENTS, sampling_probability=probability, steps=1, seed=1)
        aggregator = DistributedNoiseAggregator(minimum_survivors=5, max_clients=8, masks=False)
        training = FederatedTraining(
            nn.Linear(2, 1),
            list(range(CLIENTS)),
            local,
            sampler=sampler,
            clipping=Flat(clip_norm=1.0),
            noise_multiplier=1.0,
            aggregation=aggregator,
        )
        training.run()
        assert "too few or too many" in training.aborted[0]
    assert asked == []


def test_the_server_learns_the_noise_of_the_fewest_honest_survivors() -> None:
    training = _training(DistributedNoiseAggregator(minimum_survivors=10, colluders=3), noise_multiplier=3.0)
    loss = training.privacy_loss
    ((leaf, times),) = loss.terms
    assert isinstance(leaf, DiscreteGaussianSum)
    assert (leaf.summands, times, leaf.neighboring) == (7, 2, Neighboring.ZERO_OUT)
    sure = leaf.summands * leaf.stddev**2
    assert sure >= 9 * leaf.l2_squared
    assert training.epsilon(1e-6) == 0
    training.run(1)
    assert training.epsilon(1e-6) == leaf.epsilon(1e-6)
    readers = replace(leaf, summands=10)
    assert training.reader_epsilon(1e-6) == pytest.approx(readers.epsilon(1e-6), rel=1e-12)
    assert training.reader_epsilon(1e-6, dropouts=2) == training.reader_epsilon(1e-6)
    report = training.trust_report(1e-6)
    (row,) = [row for row in report.rows if row.colluders == 3]
    assert row.epsilon == pytest.approx(loss.epsilon(1e-6), rel=1e-9)
    assert "2 rounds of each client" in report.setting


def test_sampling_amplifies_for_readers_only() -> None:
    sampler = PoissonSampler(population=1000, sampling_probability=0.1, steps=10)
    aggregator = DistributedNoiseAggregator(minimum_survivors=45, max_clients=180, colluders=5, masks=False)
    training = _training(aggregator, sampler, noise_multiplier=2.0)
    training.rounds = 10
    ((leaf, times),) = training.privacy_loss.terms
    assert times == 10
    assert isinstance(leaf, DiscreteGaussianSum)
    hidden = PoissonSubsampled(replace(leaf, summands=180), 0.1) * 10
    found = training.reader_epsilon(1e-6)
    assert found == pytest.approx(hidden.epsilon(5e-7), rel=1e-6)
    assert training.epsilon(1e-6) > 5 * found
    plain = (replace(leaf, summands=45) * 10).epsilon(1e-6)
    # With 50 drop-outs it is likely that one client's coin decides whether a round is aborted.
    assert training.reader_epsilon(1e-6, dropouts=50) == pytest.approx(plain, rel=1e-12)
    assert training.trust_report(1e-6).setting.startswith("The smallest rounds, of up to 180: ")
    assert "degree 44, threshold 23" in training.trust_report(1e-6).setting


def test_where_sampling_hides_next_to_nothing_the_plain_loss_is_less() -> None:
    sampler = PoissonSampler(population=1000, sampling_probability=0.995, steps=1)
    aggregator = DistributedNoiseAggregator(minimum_survivors=970, max_clients=1000, masks=False)
    training = _training(aggregator, sampler, noise_multiplier=2.0)
    training.rounds = 1
    ((leaf, _),) = training.privacy_loss.terms
    assert isinstance(leaf, DiscreteGaussianSum)
    plain = leaf.epsilon(1e-6)
    hidden = PoissonSubsampled(replace(leaf, summands=1000), 0.995).epsilon(5e-7)
    assert training.reader_epsilon(1e-6) == pytest.approx(plain, rel=1e-12)
    assert hidden > plain * 1.002


def test_the_server_tops_up_the_noise_for_readers() -> None:
    """The variance is that of as many shares as the round has room for, however few took part."""
    sampler = PoissonSampler(population=CLIENTS, sampling_probability=0.7, steps=1, seed=3)
    drawn = len(sampler.batch(0))
    assert 5 <= drawn <= 10
    aggregator = DistributedNoiseAggregator(minimum_survivors=5, max_clients=400, masks=False, rng=5, bits=24)
    module = nn.Linear(4096, 1, bias=False)
    with torch.no_grad():
        module.weight.zero_()
    training = FederatedTraining(
        module,
        list(range(CLIENTS)),
        lambda module, data: None,
        sampler=sampler,
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=1.0,
        aggregation=aggregator,
    )
    training.run()
    measured = float(module.weight.detach().double().square().mean()) * sampler.expected_batch_size**2
    share = measured / 400
    rounds = training._distributed
    assert rounds is not None
    expected = float(rounds.noise.share) ** 2 / rounds.noise.steps**2
    assert share == pytest.approx(expected, rel=0.15)  # fixed seed; six standard deviations


def test_a_full_round_has_the_graph_that_is_planned_for_its_drop_outs_and_colluders() -> None:
    aggregator = DistributedNoiseAggregator(minimum_survivors=180, colluders=20)
    sampler = FullBatchSampler(population=200, steps=1).zeroing_out()
    rounds = aggregator.rounds_of(sampler, Flat(clip_norm=1.0), 1.0, 4)
    planned = plan_neighbors(200, dropout=0.1, corruption=0.1)
    assert rounds._graph(200) == (planned.degree, planned.threshold)
    assert planned.degree < 199
    active = replace(aggregator, active=True).rounds_of(sampler, Flat(clip_norm=1.0), 1.0, 4)
    assert active._graph(200) == (None, None)


def test_balls_in_bins_costs_a_client_its_participations() -> None:
    sampler = BallsInBinsSampler(population=60, bins=4, steps=8, seed=1, neighboring=Neighboring.ZERO_OUT)
    training = _training(DistributedNoiseAggregator(minimum_survivors=5, masks=False), sampler, 2.0)
    ((_, times),) = training.privacy_loss.terms
    assert times == 2


def test_what_is_unproven_is_refused_before_a_key_is_made() -> None:
    right = DistributedNoiseAggregator(minimum_survivors=10)
    declared = PoissonSampler(population=CLIENTS, sampling_probability=0.5, steps=2, public_batch_size=6.0)
    strategy = BandedToeplitz.optimal(steps=2, bands=2, participation=_full().participation)
    correlated = CorrelatedNoise(strategy, participation=_full().participation)
    adaptive = AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0)
    zeroing, layers = _full().zeroing_out(), PerLayer(clip_norm=1.0, layers=("a", "b"))
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: _training(right, declared), "sampler must be under zero-out with distributed noise"),
        (lambda: _training(right, noise=correlated), "noise must be independent in each round"),
        (lambda: _training(right, noise=SimulatedNoise(1)), "noise must be left out where the clients add"),
        (lambda: _training(right, clipping=adaptive), "clipping must be one fixed norm"),
        (lambda: right.rounds_of(zeroing, layers, 1.0, 9), "clipping must be one fixed norm"),
        (lambda: _training(DistributedNoiseAggregator(minimum_survivors=13)), "minimum_survivors must be"),
        (lambda: _training(DistributedNoiseAggregator(minimum_survivors=10, bits=1)), "bits must"),
        (lambda: DistributedNoiseAggregator(minimum_survivors=2), "minimum_survivors must be"),
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, max_clients=8), "max_clients must be at"),
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, colluders=5), "colluders must be below 5"),
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, colluders=-1), "colluders must be"),
        (
            lambda: DistributedNoiseAggregator(minimum_survivors=10, colluders=5, active=True),
            "colluders must be below 5",
        ),
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, masks=1), "masks must be"),  # type: ignore[arg-type]
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, active=1), "active must be"),  # type: ignore[arg-type]
        (lambda: DistributedNoiseAggregator(minimum_survivors=9, dropped=1), "dropped must be"),  # type: ignore[arg-type]
    ]
    for make, match in wrong:
        with pytest.raises(ParameterError, match=match):
            make()
    DistributedNoiseAggregator(minimum_survivors=9, colluders=4)
    DistributedNoiseAggregator(minimum_survivors=10, colluders=4, active=True)


def test_a_seed_is_not_charged_for_real() -> None:
    aggregator = DistributedNoiseAggregator(minimum_survivors=10, rng=1)
    with _ledger() as ledger:
        training = _training(aggregator, noise_multiplier=2.0, ledger=ledger, delta=1e-5)
        with pytest.raises(SimulatedCharge):
            training.run()


def test_a_trusted_server_has_no_trust_report() -> None:
    training = FederatedTraining(
        nn.Linear(CLIENTS, 1),
        list(range(CLIENTS)),
        _push,
        sampler=_full(),
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=1.0,
    )
    training.run(1)
    assert training.reader_epsilon(1e-5) == training.epsilon(1e-5)
    assert training.aborted == {}
    with pytest.raises(ParameterError, match="aggregation must be a DistributedNoiseAggregator"):
        training.trust_report(1e-5)
    with pytest.raises(ParameterError, match="dropouts must be"):
        training.reader_epsilon(1e-5, dropouts=-1)
