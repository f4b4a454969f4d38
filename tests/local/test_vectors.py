"""The vectors for devices that are not Python: they open with the keys, and show the rare paths."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.crypto.hpke import CIPHERS
from sfumato.local import device
from sfumato.local.device import PublicCollection, Randomizer
from sfumato.local.device.base.protocols import PROTOCOLS
from sfumato.local.device.longitudinal.memory import MemoizingRandomizer
from tests.golden.local import making
from tests.golden.local.vectors import LARGEST, WordStream, closest

HERE = Path(making.__file__).parent
KNOWN: dict[str, Any] = json.loads((HERE / "vectors.json").read_text())
SEALED: dict[str, Any] = json.loads((HERE / "sealed.json").read_text())


def test_envelopes_of_both_algorithms_open_with_the_keys() -> None:
    keys = {"chacha20-poly1305": (making.ANALYST, making.SHUFFLER),
            "aes-256-gcm": (making.AES_ANALYST, making.AES_SHUFFLER)}  # fmt: skip
    assert [made["cipher"] for made in SEALED["collections"]] == list(CIPHERS)
    for made in SEALED["collections"]:
        analyst, shuffler = keys[made["cipher"]]
        known = PublicCollection.from_specification(json.loads(made["specification"]))
        assert known.id.hex() == made["id"]
        opened = shuffler.opened(bytes.fromhex(made["envelope"]), known.envelope_context)
        assert opened is not None
        assert opened.hex() == made["nonce"] + made["sealed_record"]
        record = analyst.opened(opened[16:], known.report_context)
        assert record is not None
        assert record.hex() == "00" + made["record"]


def test_every_frequency_protocol_has_vectors_and_its_reports_are_well_formed() -> None:
    made = [Randomizer.from_specification(json.loads(one["specification"])) for one in KNOWN["randomizers"]]
    folder = "sfumato.local.device.frequency."
    names = {one.wire_name for one in made if type(one).__module__.startswith(folder)}
    wanted = {name for name, kind in PROTOCOLS.items() if getattr(device, kind).__module__.startswith(folder)}
    assert names == wanted
    assert len(names) == 15
    for randomizer, one in zip(made, KNOWN["randomizers"], strict=True):
        assert randomizer.digest.hex() == one["digest"]
        assert {len(report["record"]) // 2 for report in one["reports"]} == {randomizer.width}


def test_every_memoizing_protocol_has_vectors_and_its_devices_come_to_their_cap() -> None:
    made = [Randomizer.from_specification(json.loads(one["specification"])) for one in KNOWN["memoizing"]]
    kinds = {name: getattr(device, kind) for name, kind in PROTOCOLS.items()}
    wanted = {name for name, kind in kinds.items() if issubclass(kind, MemoizingRandomizer)}
    assert {one.wire_name for one in made} == wanted
    assert len(wanted) == 6
    capped = set()
    for randomizer, one in zip(made, KNOWN["memoizing"], strict=True):
        assert isinstance(randomizer, MemoizingRandomizer)
        assert randomizer.digest.hex() == one["digest"]
        for known in one["devices"]:
            assert 0 < known["memos"] <= randomizer.memo_limit
            taken = [0, *(report["words"] for report in known["rounds"])]
            drawn = [later - sooner for sooner, later in pairwise(taken)]
            # What is fixed and the memos take words beside those of each report, which are always as many.
            assert sum(count > min(drawn) for count in drawn) >= known["memos"] - 1
            if known["memos"] == randomizer.max_memos:
                capped.add(randomizer.wire_name)
    assert capped == wanted


def test_directions_are_far_enough_apart_for_any_floating_point() -> None:
    for one in KNOWN["directions"]:
        randomizer = Randomizer.from_specification(json.loads(one["specification"]))
        assert isinstance(randomizer, device.ProjUnitRandomizer)
        assert randomizer.digest.hex() == one["digest"]
        assert len({report["seed"] for report in one["reports"]}) > 5
        for report in one["reports"]:
            seeds, numbers = randomizer.opened(np.frombuffer(bytes.fromhex(report["record"]), np.uint8)[None])
            assert seeds[0] == WordStream(report["seed"]).words(1)[0] >> np.uint64(24)
            assert numbers[0] < randomizer.count
            # float32, which a client may use or not, is off by less than 1e-6 here
            assert closest(randomizer, report["value"], report["seed"]) > 1e-5


def test_rare_words_are_refused_or_stay_open() -> None:
    refused = [one for one in KNOWN["integers"] if one["words"] > 1]
    assert len({one["bound"] for one in refused}) >= 5
    assert all(int(one["given"][0], 16) > LARGEST - int(one["bound"]) for one in refused)
    # A category and its refused words, a second draw of a point, a seed and a bucket; of noise 256 draws, and
    # one more word for each of five that stay open; then draws of two words, two of them open.
    assert [one["reports"][0]["words"] for one in KNOWN["rare"]] == [2, 4, 3, 2, 4, 256 + 5, 512 + 2]
