"""Incremental point functions against the draft's vector, and against what they mean at every node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.fields.field import FIELD255
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.idpf.idpf import Idpf
from sfumato.crypto.idpf.prefix_tree import PrefixTree
from sfumato.crypto.idpf.tree_steps import Bits, TreeSteps, Words
from sfumato.errors import ParameterError
from tests.cases import cases

DATA = Path(__file__).parent / "data"
Rows = np.ndarray[Any, np.dtype[np.uint8]]


def row(text: str) -> Rows:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


def batch(idpf: Idpf, rows: int, seed: int) -> tuple[Rows, Any, Any, Rows, Rows]:
    rng = np.random.default_rng(seed)
    paths = rng.integers(0, 2, (rows, idpf.bits), np.uint8)
    inner = rng.integers(0, 1 << 60, (rows, idpf.bits - 1, idpf.value_length, 1), np.uint64)
    leaf = rng.integers(0, 1 << 60, (rows, idpf.value_length, 4), np.uint64)
    nonces, keys = (rng.integers(0, 256, shape, np.uint8) for shape in ((rows, 16), (rows, 2, 16)))
    return paths, inner, leaf, nonces, keys


def all_prefixes(length: int) -> Rows:
    return np.array([[i >> length - 1 - j & 1 for j in range(length)] for i in range(1 << length)], np.uint8)


def test_the_drafts_vector() -> None:
    told = json.loads((DATA / "IdpfBBCGGI21_0.json").read_text())
    idpf = Idpf(told["bits"], len(told["beta_leaf"]), bytes.fromhex(told["ctx"]))
    inner = np.stack([FIELD64.vector(map(int, beta)) for beta in told["beta_inner"]])[None]
    leaf = FIELD255.vector(map(int, told["beta_leaf"]))[None]
    keys = np.concatenate([row(key) for key in told["keys"]])[None]
    path = np.array([told["alpha"]], np.uint8)
    public = idpf.generate(path, inner, leaf, row(told["nonce"]), keys)
    assert public.tobytes().hex() == told["public_share"]
    assert public.shape[1] == idpf.public_share_size


def test_shares_add_up_to_values_on_the_path_and_zero_off_it() -> None:
    idpf = Idpf(4, 2, b"app")
    paths, inner, leaf, nonces, keys = batch(idpf, 5, 1)
    public = idpf.generate(paths, inner, leaf, nonces, keys)
    for length in (1, 3, 4):
        field, prefixes = idpf.field(length - 1), all_prefixes(length)
        trees = [PrefixTree(idpf, j, nonces, public, keys[:, j]) for j in range(2)]
        total = field.added(*(tree.values(prefixes) for tree in trees))
        for report in range(5):
            for prefix, value in zip(prefixes, total[report], strict=True):
                on = (prefix == paths[report, :length]).all()
                wanted = leaf[report] if length == 4 else inner[report, length - 1]
                assert (value == (wanted if on else 0)).all()


@cases("lengths", [(1, 2, 3, 6), (2, 6), (5, 3, 6)])
def test_level_by_level_gives_what_one_step_gives(
    lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.crypto.idpf.prefix_tree._BLOCK_BYTES", 200)  # several blocks of reports
    idpf = Idpf(6, 2)
    paths, inner, leaf, nonces, keys = batch(idpf, 7, 2)
    public = idpf.generate(paths, inner, leaf, nonces, keys)
    once = PrefixTree(idpf, 1, nonces, public, keys[:, 1])
    kept = all_prefixes(6)[::5]
    for length in lengths:
        prefixes = np.unique(kept[:, :length], axis=0)
        fresh = PrefixTree(idpf, 1, nonces, public, keys[:, 1])
        assert (once.values(prefixes) == fresh.values(prefixes)).all()
    asked = prefixes[::-2]  # any order, and fewer
    assert (once.values(asked) == fresh.values(prefixes)[:, ::-2]).all()


def test_the_next_level_needs_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    idpf = Idpf(6, 1)
    tree = PrefixTree(idpf, 0, *(np.zeros((1, size), np.uint8) for size in (16, idpf.public_share_size, 16)))
    levels: list[int] = []
    extend = TreeSteps.extend

    def noted(self: TreeSteps, level: int, seeds: Words) -> tuple[Words, Bits]:
        levels.append(level)
        return extend(self, level, seeds)

    monkeypatch.setattr(TreeSteps, "extend", noted)
    tree.values(all_prefixes(3))
    tree.values(all_prefixes(4)[:3])
    assert levels == [0, 1, 2, 3]
    tree.values(all_prefixes(5)[20:])  # below a node that was not kept: from the root
    assert levels == [0, 1, 2, 3, 0, 1, 2, 3, 4]


def test_malformed_public_shares_are_flagged() -> None:
    idpf = Idpf(3, 1)
    public = np.zeros((6, idpf.public_share_size), np.uint8)
    public[1, 0] = 64  # of 8 bits, 6 are used
    public[2, 1 + 48 : 1 + 56] = 255  # above Field64's modulus
    public[3, -32:] = 255
    public[4, 0] = 63
    public[5, 1:49] = 255
    assert idpf.decoded(public).sound.tolist() == [True, False, False, False, True, True]


def test_refusals() -> None:
    for sizes in ((0, 1), (1, 0)):
        with pytest.raises(ParameterError, match="must be"):
            Idpf(*sizes)
    idpf = Idpf(3, 1)
    parts = [np.zeros((1, size), np.uint8) for size in (16, idpf.public_share_size, 16)]
    with pytest.raises(ParameterError, match="0 or 1"):
        PrefixTree(idpf, 2, *parts)
    for length in (0, 4):
        with pytest.raises(ParameterError, match="from 1 to 3"):
            PrefixTree(idpf, 0, *parts).values(np.zeros((1, length), np.uint8))
