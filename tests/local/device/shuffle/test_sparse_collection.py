"""What a device sends of its keys: of one length, alike for the same text, readable by nobody else."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local.device import PublicCollection, SparseCollection
from tests.chance import accepts_only, frequencies

ANALYST, SHUFFLER = SecretKey("analyst", b"a" * 32), SecretKey("shuffler", b"s" * 32)

KEY = bytes(range(32))


def asked(**changes: Any) -> SparseCollection:
    given: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "batch_size": 50,
        "max_keys": 2,
        "key_bytes": 10,
        "commitment": SparseCollection.commit(KEY),
        "analyst": ANALYST.public,
        "shuffler": SHUFFLER.public,
    }
    return SparseCollection(**given | changes)


def records(made: SparseCollection, keys: list[str], secret: bytes = bytes(16)) -> list[bytes]:
    """What the shuffler finds in an envelope, behind the nonce."""
    envelope = made.envelope(keys, secret, KEY)
    assert len(envelope) == made.envelope_width
    opened = SHUFFLER.opened(envelope, made.envelope_context)
    assert opened is not None
    width = made.sealed_width
    return [opened[start : start + width] for start in range(16, len(opened), width)]


def test_the_same_text_is_the_same_bytes_from_everybody() -> None:
    made = asked()
    (one,) = set(records(made, ["red"], b"1" * 16)) & set(records(made, ["blue", "red"], b"2" * 16))
    assert made.decrypted([one], KEY) == ["red"]
    other = asked(name="week 2")
    assert one not in records(other, ["red"])
    assert other.decrypted([one], KEY) == [None]


def test_every_envelope_has_as_many_records_whatever_there_is_to_report() -> None:
    made = asked()
    for keys in ([], ["red"], ["red", "red"], ["red", "blue"], [""], list("abcdefgh")):
        found = records(made, keys)
        assert len(found) == len(set(found)) == 2
        texts = [text for text in made.decrypted(found, KEY) if text is not None]
        assert len(texts) == min(2, len(set(keys)))
        assert set(texts) <= set(keys)


def test_too_many_keys_are_sampled() -> None:
    made, seen = asked(max_keys=1), set()
    for _ in range(200):  # one of three is never drawn with a probability below 3 (2/3)^200 < 1e-34
        seen |= set(made.decrypted(records(made, ["a", "b", "c"]), KEY))
    assert seen == {"a", "b", "c"}


def test_texts_up_to_the_longest_come_back() -> None:
    made = asked(max_keys=1)
    for text in ("", "\x00", "a\x00", "0123456789", "é" * 5, "日本語"):
        assert made.decrypted(records(made, [text]), KEY) == [text]


def test_altered_and_random_records_are_nobodys() -> None:
    made = asked(max_keys=1)
    (whole,) = records(made, ["red"])
    for place in range(len(whole)):
        altered = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert made.decrypted([altered], KEY) == [None]
    assert made.decrypted([os.urandom(made.sealed_width), b"", whole[:-1]], KEY) == [None] * 3


def test_blanks_look_like_keys() -> None:
    """Each byte of an encrypted key is uniform, as those of a blank are, wherever it stands."""
    made = asked(max_keys=1)
    cipher = made._cipher(KEY)
    rows = [cipher.encrypt(made._padded(f"{number:x}"), [made.id]) for number in range(6000)]
    uniform = dict.fromkeys(range(256), 1 / 256)
    text = dict.fromkeys(range(128), 1 / 128) | dict.fromkeys(range(128, 256), 0.0)
    for column in np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1).T:
        counts = dict(enumerate(np.bincount(column, minlength=256).tolist()))
        accepts_only(frequencies(counts), uniform, readable=text)


def test_it_goes_by_way_of_json_without_the_encryption_key() -> None:
    made = asked(noise="gaussian", name="week 1")
    text = json.dumps(made.specification())
    assert KEY.hex() not in text
    again = SparseCollection.from_specification(json.loads(text))
    assert again == made
    assert again.id == made.id
    assert (
        len({asked(**{name: value}).id for name, value in CHANGES.items()} | {asked().id}) == len(CHANGES) + 1
    )
    with pytest.raises(ParameterError, match="collection"):
        PublicCollection.from_specification(made.specification())


CHANGES: dict[str, Any] = {
    "epsilon": 2.0,
    "delta": 1e-7,
    "batch_size": 51,
    "max_keys": 3,
    "key_bytes": 11,
    "commitment": SparseCollection.commit(bytes(32)),
    "analyst": SecretKey("analyst", b"b" * 32).public,
    "shuffler": SecretKey("shuffler", b"t" * 32).public,
    "noise": "gaussian",
    "name": "other",
}


def test_bad_parameters_are_refused() -> None:
    bad: dict[str, list[Any]] = {
        "epsilon": [0.0, -1.0, 41.0, float("nan"), float("inf"), "1", None],
        "delta": [0.0, 1.0, -1e-9, float("nan"), None],
        "batch_size": [1, 0, 2.5, "50", None],
        "max_keys": [0, 65, 1.5, None],
        "key_bytes": [0, 4097, None],
        "commitment": [b"", KEY[:31], "x", None],
        "noise": ["cauchy", "", 1],
        "analyst": [SHUFFLER.public, None, "line"],
        "shuffler": [ANALYST.public, None],
        "name": ["x" * 201, None, 3],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ParameterError, match=name):
                asked(**{name: value})


def test_bad_documents_are_refused() -> None:
    whole = json.loads(json.dumps(asked().specification()))
    strange: list[Any] = [None, [], {}, -1, "x", 2**70]
    for name in whole:
        for other in strange:
            if (name, str(other)) in {("name", "x"), ("batch_size", str(2**70))}:
                continue
            with pytest.raises(ParameterError):
                SparseCollection.from_specification({**whole, name: other})
        with pytest.raises(ParameterError):
            SparseCollection.from_specification({key: value for key, value in whole.items() if key != name})
    documents: list[Any] = [None, [], "x", 3, {}, {**whole, "surprise": 1}]
    for document in documents:
        with pytest.raises(ParameterError):
            SparseCollection.from_specification(document)


def test_bad_keys_are_refused_without_showing_them() -> None:
    made = asked()
    for keys in (["mauve-and-grey"], ["red", 7], [None], ["\ud800"], [b"mauve"]):
        with pytest.raises(ParameterError, match="keys must be texts of at most 10 bytes") as caught:
            made.envelope(keys, bytes(16), KEY)  # type: ignore[arg-type]
        assert "mauve" not in str(caught.value)
    for given in ("red", b"red", 7, None, {"red"}):
        with pytest.raises(ParameterError, match="keys must be a list of texts"):
            made.envelope(given, bytes(16), KEY)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="secret must be at least 16 bytes"):
        made.envelope(["red"], b"short", KEY)
    for key in (b"", bytes(31), "key", None):
        with pytest.raises(ParameterError, match="encryption_key must be 32 bytes"):
            made.envelope(["red"], bytes(16), key)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="encryption_key must be that of the collection's devices"):
        made.envelope(["red"], bytes(16), bytes(32))
