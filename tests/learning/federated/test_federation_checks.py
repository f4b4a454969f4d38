"""What a federated training refuses before it begins, part by part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.errors import ParameterError
from sfumato.learning.sampling.fixed_size import WithReplacementSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.users import UserSampler
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.privacy import Neighboring
from tests.run_time import run_time

if run_time(__name__):
    from torch import nn

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.federated.federation_checks import (
        check_no_noise,
        check_noise,
        check_parts,
        drawing,
    )
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.keyed import SimulatedNoise

EVERY = Participation(max_participations=None)


def _poisson(**more: object) -> PoissonSampler:
    return PoissonSampler(population=9, sampling_probability=0.5, steps=4, **more)  # type: ignore[arg-type]


def test_a_number_of_clients_that_is_declared_is_public() -> None:
    found = drawing(_poisson(), 9)
    assert isinstance(found, PoissonSampler)
    assert (found.neighboring, found.population) == (Neighboring.ZERO_OUT, 9)
    assert drawing(FullBatchSampler(population=9, steps=4), 9).neighboring is Neighboring.ZERO_OUT
    zeroing = _poisson().zeroing_out()
    assert drawing(zeroing, 9) is zeroing
    for sampler in (_poisson(), zeroing, _poisson(public_batch_size=4.5).zeroing_out()):
        with pytest.raises(ParameterError, match="sampler must have a population of 8 clients, got 9"):
            drawing(sampler, 8)


def test_a_number_of_clients_that_is_private_is_hidden() -> None:
    found = drawing(_poisson(public_batch_size=4.0), 7)
    assert isinstance(found, PoissonSampler)
    assert (found.neighboring, found.population) == (Neighboring.ADD_REMOVE, 7)
    assert found.expected_batch_size == 4.0


def test_samplers_that_draw_twice_or_draw_users_are_refused() -> None:
    wrong: list[tuple[object, str]] = [
        (WithReplacementSampler(population=9, batch_size=2, steps=4), "sampler must draw each client once"),
        (
            UserSampler(user_ids=[1, 1, 2], sampling_probability=0.5, steps=4),
            "sampler must be priced for clipping each client",
        ),
        (0.5, "sampler must be a Sampler"),
    ]
    for sampler, match in wrong:
        with pytest.raises(ParameterError, match=match):
            drawing(sampler, 9)  # type: ignore[arg-type]


def test_parts_and_noise_are_held_to_each_other() -> None:
    module, clipping = nn.Linear(1, 1), Flat(clip_norm=1.0)
    sampler = FullBatchSampler(population=9, steps=4)
    right = CorrelatedNoise(BinaryTree(steps=4), participation=EVERY)
    adaptive = AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0)
    check_parts(module, print, clipping)
    check_no_noise(None)
    check_noise(right, sampler, clipping)
    for free in (None, SimulatedNoise(1)):
        check_noise(free, _poisson(), adaptive)
    longer = CorrelatedNoise(BinaryTree(steps=5), participation=EVERY)
    other = CorrelatedNoise(BinaryTree(steps=4))
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: check_parts("module", print, clipping), "module must be a Module"),
        (lambda: check_parts(module, None, clipping), "local must be a function of a module"),
        (lambda: check_parts(module, print, 1.0), "clipping must be a Clipping"),
        (lambda: check_no_noise(right), "noise must be independent in each round"),
        (lambda: check_no_noise(SimulatedNoise(1)), "noise must be left out"),
        (lambda: check_noise(longer, sampler, clipping), "noise must be for the sampler's 4 steps, got 5"),
        (lambda: check_noise(other, sampler, clipping), "noise must be for Participation"),
        (lambda: check_noise(right, sampler, adaptive), "clipping must not adapt"),
    ]
    for check, match in wrong:
        with pytest.raises(ParameterError, match=match):
            check()
