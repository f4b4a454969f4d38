"""Fixed-key AES against the draft's vector."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.crypto.xof.fixed_key_aes import XofFixedKeyAes128
from sfumato.errors import ParameterError

DATA = Path(__file__).parent / "data"


def test_the_drafts_vector() -> None:
    told = json.loads((DATA / "XofFixedKeyAes128.json").read_text())
    seed = np.frombuffer(bytes.fromhex(told["seed"]), np.uint8)
    xof = XofFixedKeyAes128(bytes.fromhex(told["dst"]), bytes.fromhex(told["binder"]))
    out = xof.stream(np.stack([seed, seed[::-1]]), 16 * told["length"])
    assert out[0].tobytes().hex() == told["expanded_vec_field128"]  # no element of it is rejected
    assert out[0, :16].tobytes().hex() == told["derived_seed"]
    assert (out[1] == xof.stream(seed[None, ::-1], 16 * told["length"])[0]).all()
    assert (xof.stream(seed[None], 21) == out[:1, :21]).all()


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="65,536"):
        XofFixedKeyAes128(bytes(1 << 16), b"")
    with pytest.raises(ParameterError, match="rows of 16 bytes"):
        XofFixedKeyAes128(b"", b"").stream(np.zeros((1, 15), np.uint8), 1)
