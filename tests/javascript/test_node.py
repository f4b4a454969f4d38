"""The JavaScript client in Node: the vectors, what it refuses, and its reports in a running shuffler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato import local
from sfumato.local import device
from sfumato.local.device.base.protocols import PROTOCOLS as NAMES
from sfumato.server import Visitor
from tests.chance import accepts_only, frequencies
from tests.javascript.package import CLIENT, ROOT, VECTORS, installed, keyed_digests, minified, run, tool
from tests.javascript.service import KEYS, collection, served
from tests.server.setting import memory_folder

pytestmark = pytest.mark.node

PROTOCOLS_OF_FREQUENCIES = [
    name for name, kind in NAMES.items() if ".frequency." in getattr(device, kind).__module__
]
COLOURS = ("red", "green", "blue", "π")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("client"))


def test_the_vectors_and_the_refusals(client: Path) -> None:
    variables = {"SFUMATO_VECTORS": str(VECTORS), "SFUMATO_BLAKE2B": json.dumps(keyed_digests())}
    command = (tool("node"), "--test", "--test-reporter=tap", "test/vectors.test.js")
    said = run(*command, folder=client, **variables)
    assert "# pass 12" in said
    assert "# fail 0" in said


def test_the_tarball_holds_what_it_should(client: Path) -> None:
    package = client / "node_modules" / "sfumato-client"
    stated = json.loads((package / "package.json").read_text())
    assert not stated.keys() & {"dependencies", "peerDependencies", "optionalDependencies", "scripts"}
    found = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    sources = {path.relative_to(CLIENT).as_posix() for path in (CLIENT / "src").rglob("*") if path.is_file()}
    assert found == sources | {"package.json", "README.md", "LICENSE"}
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


LARGEST = 20_000
"""Bytes of what a device needs to answer any frequency protocol and to send it to a shuffler, minified."""


def test_the_main_entry_is_small_and_what_it_leaves_out_is_elsewhere(client: Path) -> None:
    main = minified(client, "sfumato-client")
    assert len(main) <= LARGEST
    for name in PROTOCOLS_OF_FREQUENCIES:
        assert name.encode() in main
    elsewhere = {
        "means": b"laplace-mean",
        "budget": b"lifetime",
        "longitudinal": b"sfumato rappor",
        "vectors": b"projunit",
    }
    for entry, held in elsewhere.items():
        assert held not in main
        assert held in minified(client, f"sfumato-client/{entry}")
    (client / "node_modules" / "small.js").write_bytes(main)
    script = "import { Randomizer } from './node_modules/small.js'; console.log(typeof Randomizer.fromText)"
    assert run(tool("node"), "--input-type=module", "--eval", script, folder=client) == "function\n"


def test_reports_of_devices_are_taken_mixed_and_estimated(client: Path) -> None:
    true = ["red"] * 120 + ["green"] * 60 + ["π"] * 20
    made = collection(local.RandomizedResponse(epsilon=8.0, domain=local.Domain(COLOURS)), len(true))
    with memory_folder() as folder, served(made, folder) as url:
        send = ("test/send.js", folder / "collection.json", url, "8", made.device.id.hex())
        counts = json.loads(run(tool("node"), *send, *true, folder=client))
        assert counts == {"taken": len(true), "refused": 0, "again": len(true)}
        with Visitor(url) as visitor:
            assert visitor.status()["batches"] == 1
            opening = made.opening(KEYS["analyst"])
            assert opening.add(visitor.batch(1, KEYS["analyst"])) == len(true)
    estimate = opening.estimate()
    assert not estimate.simulated
    assert set(opening.refused.values()) == {0}
    # at epsilon 8 one report in a thousand is false: 40 false ones of 200 come with a chance below 1e-40
    assert abs(estimate.raw - [0.6, 0.3, 0.0, 0.1]).max() < 0.2


PROTOCOLS: list[Any] = [
    device.RandomizedResponseRandomizer,
    device.OptimizedUnaryEncodingRandomizer,
    device.SymmetricUnaryEncodingRandomizer,
    device.HadamardResponseRandomizer,
    device.OneBitHadamardRandomizer,
    device.ProjectiveGeometryResponseRandomizer,
    device.SubsetSelectionRandomizer,
]
REPORTS = 4000


def test_reports_from_secure_words_have_the_law_that_is_priced(client: Path) -> None:
    made = {kind.wire_name: kind(epsilon=2.0, domain=local.Domain(range(6))) for kind in PROTOCOLS}
    questions = {
        name: {
            "specification": json.dumps(one.specification()),
            "digest": one.digest.hex(),
            "epsilon": 2.0,
            "value": 5,
        }
        for name, one in made.items()
    }
    (client / "questions.json").write_text(json.dumps(questions))
    drawn = json.loads(run(tool("node"), "test/draw.js", "questions.json", str(REPORTS), folder=client))
    for name, one in made.items():
        counts = {bytes.fromhex(record): count for record, count in drawn[name].items()}
        assert sum(counts.values()) == REPORTS
        accepts_only(frequencies(counts), one.probabilities(5), of_another_value=one.probabilities(4))
