"""The views of examples in every form that examples have."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.recipes.augmentation import Views


class Pair(NamedTuple):
    x: torch.Tensor
    y: int


def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


if run_time(__name__):
    X = torch.tensor([2.0])


@cases(
    ("example", "field", "expected"),
    lambda: [
        (X, None, X / 2),
        ((X, 3), 0, (X / 2, 3)),
        ([3, X], 1, [3, X / 2]),
        (Pair(X, 3), 0, Pair(X / 2, 3)),
        ({"x": X, "y": 3}, "x", {"x": X / 2, "y": 3}),
    ],
)
def test_the_input_is_transformed_and_the_rest_is_kept(
    example: object, field: int | str | None, expected: object
) -> None:
    made = Views(count=2, transform=halved, field=field).of(example)
    assert len(made) == 2
    assert [type(view) for view in made] == [type(expected)] * 2
    assert repr(made) == repr([expected] * 2)
    assert float(X) == 2


def test_views_of_one_example_follow_one_another() -> None:
    collate = pickle.loads(pickle.dumps(Views(count=3, transform=halved).collated(None)))
    inputs, labels = collate([(torch.tensor([float(k)]), k) for k in range(4)])
    assert labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert torch.equal(inputs[:, 0], labels / 2)


def test_each_view_is_drawn_anew() -> None:
    views = Views(count=2, transform=lambda x: x + torch.rand(1), field=None)
    one, other = views.of(X)
    assert not torch.equal(one, other)


def test_what_is_no_part_of_an_example_is_refused() -> None:
    with pytest.raises(ParameterError, match="field must be a part of an example"):
        Views(count=2, transform=halved, field="x").of((X, 3))
    with pytest.raises(ParameterError, match="field must be a part of an example"):
        Views(count=2, transform=halved, field=2).of((X, 3))
    with pytest.raises(ParameterError, match="count must"):
        Views(count=0)
    with pytest.raises(ParameterError, match="transform must be callable"):
        Views(count=1, transform=3)  # type: ignore[arg-type]
