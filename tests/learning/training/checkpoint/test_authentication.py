"""The tag of a checkpoint: of every entry, its kind, its shape and its place."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.training.checkpoint.authentication import tag_of


def test_different_entries_have_different_tags() -> None:
    zeros = torch.zeros(4)
    contents: list[dict[str, Any]] = [
        {},
        {"a": zeros},
        {"b": zeros},
        {"a": zeros.reshape(2, 2)},
        {"a": zeros.double()},
        {"a": zeros.to(torch.int32)},
        {"a": -zeros},
        {"a": torch.tensor(0.0)},
        {"a": zeros, "b": zeros},
        {"a": [1, 2]},
        {"a": (1, 2)},
        {"a": [[1], 2]},
        {"a": [1, [2]]},
        {"a": [12]},
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": b"1"},
        {"a": None},
        {"a": torch.float16},
        {"a": {"b": 1}},
        {"a": {}, "b": 1},
    ]
    tags = [tag_of(b"k" * 32, content) for content in contents]
    assert len(set(tags)) == len(tags)
    assert tag_of(b"l" * 32, contents[1]) not in tags
    assert tag_of(b"k" * 32, OrderedDict(contents[8])) == tags[8]
    sparse = torch.tensor([[0.0, 2.0]]).to_sparse()
    assert tag_of(b"k", {"a": sparse}) == tag_of(b"k", {"a": sparse.to_dense()})
    assert tag_of(b"k", {"a": {1, 2}}) == tag_of(b"k", {"a": {3}})  # of such, the class alone
