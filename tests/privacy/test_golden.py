"""The golden files of losses: each is read to the same loss, and to the same epsilon or a smaller one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato._wire import NUMBER, canonical
from sfumato.privacy import loss_from_json
from tests.cases import cases
from tests.golden.privacy import making

FOLDER = Path(making.__file__).parent
FILES = sorted(FOLDER.glob("*.jsonl"))


def test_there_is_a_file_of_each_kind_of_loss() -> None:
    assert {path.stem for path in FILES} == set(making.losses())


def read_back(path: Path, lines: slice) -> None:
    """Read losses of a file, and require that each is that of today at no larger epsilon."""
    stored = [json.loads(line) for line in path.read_text().splitlines()]
    pairs = [*zip(stored, making.losses()[path.stem], strict=True)]
    for line, made in pairs[lines]:
        text = canonical(line["loss"])
        loss = loss_from_json(text)
        assert loss == made
        assert loss.to_json() == text == made.to_json()
        for delta, then in zip(making.DELTAS, line["epsilons"], strict=True):
            assert loss.epsilon(delta) <= NUMBER.decode("epsilon", then) * (1 + 1e-11)


@cases("path", FILES, ids=lambda path: path.name)
def test_a_golden_loss_is_read_to_the_same_epsilon_or_a_smaller_one(path: Path) -> None:
    read_back(path, slice(1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_golden_loss_is_read_to_the_same_epsilon_or_a_smaller_one(path: Path) -> None:
    read_back(path, slice(1, None))
