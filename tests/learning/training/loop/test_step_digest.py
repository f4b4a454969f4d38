"""The hash that a replayed step is known by: anything that it computes from changes it."""

from __future__ import annotations

import copy

from sfumato.learning import PoissonSampler
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.training.loop.step_digest import StepDigest


def test_everything_that_a_step_follows_from_is_in_its_hash() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    sampler = PoissonSampler(population=50, sampling_probability=0.5, steps=3, seed=1)
    sums = [torch.ones(2, 2), torch.ones(2)]
    usual = StepDigest(bytes(32), module, sampler).of([1], sums)
    assert usual == StepDigest(bytes(32), copy.deepcopy(module), sampler).of([1], [s.clone() for s in sums])
    moved, counted, wide = (copy.deepcopy(module) for _ in range(3))
    with torch.no_grad():
        next(iter(moved.parameters()))[0, 0] += 2.0**-20
        dict(counted.named_buffers())["1.running_mean"][0] += 1.0
    other_batches = PoissonSampler(population=50, sampling_probability=0.5, steps=3, seed=2)
    others = [
        StepDigest(bytes(31) + b"1", module, sampler).of([1], sums),
        StepDigest(bytes(32), moved, sampler).of([1], sums),
        StepDigest(bytes(32), counted, sampler).of([1], sums),
        StepDigest(bytes(32), wide.double(), sampler).of([1], sums),
        StepDigest(bytes(32), module, other_batches).of([1], sums),
        StepDigest(bytes(32), module, sampler).of([2], sums),
        StepDigest(bytes(32), module, sampler).of([1], [torch.ones(2, 2), torch.zeros(2)]),
        StepDigest(bytes(32), module, sampler).of([1], sums, {"noise_multiplier": 2.0}),
    ]
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    others.append(StepDigest(bytes(32), module, sampler).of([1], sums))
    torch.set_num_threads(threads)
    assert len({usual, *others}) == 1 + len(others)


def test_parameters_of_the_same_bytes_are_told_apart_by_name_and_shape() -> None:
    sampler = PoissonSampler(population=50, sampling_probability=0.5, steps=3, seed=1)
    told = set()
    for name, shape in (("a", (2, 3)), ("b", (2, 3)), ("a", (3, 2)), ("a", (6,))):
        module = nn.Module()
        module.register_parameter(name, nn.Parameter(torch.ones(shape)))
        told.add(StepDigest(bytes(32), module, sampler).of([1], [torch.ones(6)]))
    assert len(told) == 4
