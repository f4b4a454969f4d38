"""Verifiable point functions: what they mean at every node, and that both parties prove the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.fields.ntt_field import FIELD64, FIELD128, NttField
from sfumato.crypto.vidpf.verifiable_tree import VerifiableTree
from sfumato.crypto.vidpf.vidpf import Vidpf
from sfumato.errors import ParameterError
from tests.cases import cases

Rows = np.ndarray[Any, np.dtype[np.uint8]]


def all_prefixes(length: int) -> Rows:
    return np.array([[i >> length - 1 - j & 1 for j in range(length)] for i in range(1 << length)], np.uint8)


def batch(vidpf: Vidpf, rows: int, seed: int) -> tuple[Rows, Any, list[VerifiableTree]]:
    rng = np.random.default_rng(seed)
    paths = rng.integers(0, 2, (rows, vidpf.bits), np.uint8)
    values = rng.integers(0, 1 << 60, (rows, vidpf.value_length, vidpf.field.limbs), np.uint64)
    nonces, keys = (rng.integers(0, 256, shape, np.uint8) for shape in ((rows, 16), (rows, 2, 16)))
    public = vidpf.generate(paths, values, nonces, keys)
    assert public.shape == (rows, vidpf.public_share_size)
    return paths, values, [VerifiableTree(vidpf, j, nonces, public, keys[:, j]) for j in range(2)]


@cases("field", [FIELD64, FIELD128])
def test_shares_add_up_to_values_on_the_path_and_zero_off_it(field: NttField) -> None:
    vidpf = Vidpf(4, field, 2, b"app")
    for length in (1, 3, 4):
        paths, values, trees = batch(vidpf, 5, length)
        prefixes = all_prefixes(length)
        total = field.added(*(tree.values(prefixes) for tree in trees))
        for report in range(5):
            for prefix, value in zip(prefixes, total[report], strict=True):
                on = (prefix == paths[report, :length]).all()
                assert (value == (values[report] if on else 0)).all()
        roots = [tree.root_values() for tree in trees]
        assert (field.subtracted(*roots) == values).all()
        assert (trees[0].proofs() == trees[1].proofs()).all()
        assert (trees[0].checks() == trees[1].checks()).all()
        assert trees[0].proofs().shape[1] == 32 * sum(2 << depth for depth in range(length))
        assert trees[0].checks().shape[1] == field.size * 2 * sum(2 << depth for depth in range(length - 1))


@cases("lengths", [(1, 2, 3, 6), (2, 6), (3, 2, 5, 6)])
def test_level_by_level_gives_what_one_step_gives(
    lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.crypto.vidpf.verifiable_tree._BLOCK_BYTES", 200)  # several blocks of reports
    vidpf = Vidpf(6, FIELD64, 2, b"app")
    kept = np.array(
        [[0, 1, 1, 0, 1, 0], [0, 1, 1, 0, 1, 1], [1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.uint8
    )
    for dropped in (0, 1, 2):
        _, _, trees = batch(vidpf, 7, 3)
        for number, length in enumerate(lengths):
            few = kept[: len(kept) - number * dropped] if number * dropped < len(kept) else kept[:1]
            prefixes = np.unique(few[:, :length], axis=0)
            shares = [tree.values(prefixes) for tree in trees]
            fresh = batch(vidpf, 7, 3)[2]
            for tree, other, share in zip(trees, fresh, shares, strict=True):
                assert (other.values(prefixes) == share).all()
                assert (other.proofs() == tree.proofs()).all()
                assert (other.checks() == tree.checks()).all()
                assert (other.root_values() == tree.root_values()).all()


def test_prefixes_elsewhere_begin_again_at_the_root() -> None:
    vidpf = Vidpf(4, FIELD64, 1)
    _, _, trees = batch(vidpf, 3, 4)
    first, second = (np.array([[int(bit) for bit in text]], np.uint8) for text in ("01", "1101"))
    trees[0].values(first)
    share, other = trees[0].values(second), batch(vidpf, 3, 4)[2][0]
    assert (other.values(second) == share).all()
    assert (other.proofs() == trees[0].proofs()).all()
    assert (other.checks() == trees[0].checks()).all()


def test_the_root_is_known_without_any_prefix() -> None:
    vidpf = Vidpf(3, FIELD128, 2)
    _, values, trees = batch(vidpf, 2, 5)
    assert (FIELD128.subtracted(*(tree.root_values() for tree in trees)) == values).all()


def test_refusals() -> None:
    vidpf, zeros = Vidpf(2, FIELD64, 1), np.zeros((1, 16), np.uint8)
    public = np.zeros((1, vidpf.public_share_size), np.uint8)
    with pytest.raises(ParameterError, match="party"):
        VerifiableTree(vidpf, 2, zeros, public, zeros)
    tree = VerifiableTree(vidpf, 0, zeros, public, zeros)
    for shape, message in (((1, 0), "from 1 to 2"), ((1, 3), "from 1 to 2"), ((0, 1), "at least 1")):
        with pytest.raises(ParameterError, match=message):
            tree.values(np.zeros(shape, np.uint8))
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: Vidpf(0, FIELD64, 1), "bits"),
        (lambda: Vidpf(1 << 16, FIELD64, 1), "65,535"),
        (lambda: Vidpf(1, FIELD64, 0), "value_length"),
    ]
    for call, rule in refused:
        with pytest.raises(ParameterError, match=rule):
            call()
