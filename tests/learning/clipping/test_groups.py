"""Clipping by groups and layers: the bound of each and of all, and the least noise for its price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.per_group import PerGroup, allocated
    from sfumato.learning.clipping.per_layer import PerLayer


NAMES = ["body.0.weight", "body.0.bias", "body.2.weight", "head.weight", "head.bias"]
SIZES = [600, 20, 300, 40, 2]

if run_time(__name__):
    Maker = Callable[[str], Clipping]
MAKERS: dict[str, Maker] = {
    "group": lambda allocation: PerGroup(clip_norms={"body": 0.7, "head": 2.0}, allocation=allocation),
    "rest": lambda allocation: PerGroup(clip_norms={"body.0.weight": 0.1, "": 3.0}, allocation=allocation),
    "layer": lambda allocation: PerLayer.of(NAMES, clip_norm=1.3, allocation=allocation),
}


def clipped(clipping: Clipping, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    groups = clipping.groups(NAMES)
    squared = torch.zeros(max(groups) + 1, len(gradients[0]))
    for group, gradient in zip(groups, gradients, strict=True):
        squared[group] += gradient.square().sum(1)
    factors = clipping.factors(squared * (1 - 2.0**-12))
    return [(g * factors[group][:, None]).double() for group, g in zip(groups, gradients, strict=True)]


@pytest.mark.parametrize("kind", MAKERS)
def test_every_group_and_all_together_stay_within_their_sensitivity(kind: str) -> None:
    clipping = MAKERS[kind]("optimal")
    draw = np.random.default_rng(3)
    size = 10 ** draw.uniform(-4, 4, (200, len(SIZES)))
    gradients = [torch.tensor(draw.normal(size=(200, n)) * size[:, [i]]).float() for i, n in enumerate(SIZES)]
    parts = clipped(clipping, gradients)
    squares = torch.zeros(len(clipping.group_sensitivities), 200, dtype=torch.float64)
    for group, part in zip(clipping.groups(NAMES), parts, strict=True):
        squares[group] += part.square().sum(1)
    bounds = torch.tensor(clipping.group_sensitivities, dtype=torch.float64)
    assert (squares.sqrt().amax(1) <= bounds).all()
    assert (squares.sqrt().amax(1) > 0.999 * bounds).all()
    assert squares.sum(0).sqrt().max() <= clipping.sensitivity
    assert clipping.sensitivity < 1.0001 * float(bounds.square().sum().sqrt())


@cases("allocation", ["optimal", "equal"])
@cases("kind", MAKERS)
def test_noise_costs_what_its_multiplier_says(kind: str, allocation: str) -> None:
    clipping = MAKERS[kind](allocation)
    noise = 1.37
    stddevs = clipping.stddevs(noise, NAMES, SIZES)
    by_group = dict(zip(clipping.groups(NAMES), stddevs, strict=True))
    moved = sum(
        (Fraction(bound) / Fraction(by_group[group])) ** 2
        for group, bound in enumerate(clipping.group_sensitivities)
    )
    assert moved <= 1 / Fraction(noise) ** 2
    assert float(moved) > 0.999 / noise**2


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.integers(1, 10**9)), min_size=1, max_size=6),
    st.lists(st.floats(0.1, 10), min_size=6, max_size=6),
)
def test_no_other_allocation_has_less_noise(parts: list[tuple[float, int]], tilt: list[float]) -> None:
    bounds, sizes = [part[0] for part in parts], [part[1] for part in parts]
    best = allocated(1.0, bounds, sizes)
    assert sum((Fraction(b) / Fraction(s)) ** 2 for b, s in zip(bounds, best, strict=True)) <= 1
    other = [s * t for s, t in zip(best, tilt, strict=False)]
    scale = np.sqrt(sum((b / s) ** 2 for b, s in zip(bounds, other, strict=True)))
    ours = sum(n * s * s for n, s in zip(sizes, best, strict=True))
    theirs = sum(n * (scale * s) ** 2 for n, s in zip(sizes, other, strict=True))
    assert ours <= theirs * (1 + 1e-9)


def test_an_example_that_is_not_finite_in_one_group_counts_in_none() -> None:
    clipping = PerGroup(clip_norms={"body": 1.0, "head": 1.0})
    squared = torch.tensor([[4.0, float("nan"), 1.0], [float("inf"), 4.0, 4.0]])
    assert clipping.factors(squared).tolist() == [[0, 0, 1], [0, 0, 0.5]]


def test_a_parameter_belongs_to_its_longest_prefix() -> None:
    clipping = PerGroup(clip_norms={"": 1.0, "body": 1.0, "body.2": 1.0, "head.bias": 1.0})
    assert clipping.groups(NAMES) == (1, 1, 2, 0, 3)
    assert PerGroup(clip_norms={"": 1.0, "bod": 1.0, "bod.x": 1.0}).groups(["body.0", "bod.x", "bod.y"]) == (
        0,
        2,
        1,
    )


def test_bad_groups_are_told() -> None:
    with pytest.raises(ParameterError, match=r"clip_norms must have a prefix of every parameter, but 'head"):
        PerGroup(clip_norms={"body": 1.0}).groups(NAMES)
    with pytest.raises(
        ParameterError, match=r"clip_norms must have prefixes of trained parameters only, got"
    ):
        PerGroup(clip_norms={"": 1.0, "neck": 1.0}).groups(NAMES)
    with pytest.raises(ParameterError, match="clip_norms must have one or more different prefixes"):
        PerGroup(clip_norms={})
    with pytest.raises(ParameterError, match="allocation must be 'optimal' or 'equal'"):
        PerGroup(clip_norms={"": 1.0}, allocation="some")
    with pytest.raises(
        ParameterError, match="squared_norms must have one row for each of the 2 groups, but it has 1"
    ):
        PerGroup(clip_norms={"a": 1.0, "b": 1.0}).factors(torch.ones(1, 4))
    with pytest.raises(ParameterError, match="layers must hold every parameter, but 'tail"):
        PerLayer.of(NAMES, clip_norm=1.0).groups([*NAMES, "tail.weight"])
    with pytest.raises(ParameterError, match="layers must be of trained parameters only"):
        PerLayer.of(NAMES, clip_norm=1.0).groups(NAMES[:2])
    with pytest.raises(ParameterError, match="sizes must have one entry"):
        PerLayer.of(NAMES, clip_norm=1.0).stddevs(1.0, NAMES, [1])
