"""The client half: specifications that make the same randomizer, and a fresh process that loads little."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.device import Domain, RandomizedResponseRandomizer, Randomizer
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from tests.cases import cases
from tests.golden.local import making

FACE = [getattr(device, name) for name in device.__all__]
KINDS = [
    kind
    for kind in FACE
    if isinstance(kind, type)
    and issubclass(kind, CategoricalRandomizer)
    # These send several records a person: tests/local/shuffle.
    and kind not in (device.ShuffledCountsRandomizer, device.ShuffledHistogramRandomizer)
]


def test_the_client_half_loads_only_numpy_and_cryptography() -> None:
    code = (
        "import json, sys, numpy, numpy.random, cryptography.hazmat.primitives.ciphers\n"
        "before = set(sys.modules)\n"
        "import sfumato.local.device as device\n"
        "parts = [getattr(device, name) for name in device.__all__]\n"
        "device.RandomizedResponseRandomizer(epsilon=1.0, domain=device.Domain(range(9))).randomize(3)\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(run.stdout)
    libraries = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert libraries <= {"sfumato", "numpy", "cryptography"}
    ours = [name for name in loaded if name.startswith("sfumato.")]
    rooms = {name.split(".")[1] for name in ours}
    assert rooms == {"_check", "_durable", "_lazy", "_wire", "crypto", "errors", "local", "numerics"}
    assert {name.split(".")[2] for name in ours if name.startswith("sfumato.local.")} == {"device"}


@cases("kind", KINDS)
@cases("epsilon", [0.1, 1.0, 4.5])
def test_a_specification_makes_the_same_randomizer(kind: type[Randomizer], epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(10, 30)))  # type: ignore[call-arg]
    told = json.loads(json.dumps(made.specification()))
    again = Randomizer.from_specification(told)
    assert type(again) is kind
    assert again == made
    assert again.digest == made.digest
    assert again.randomize(11, 5) == made.randomize(11, 5)


@cases("kind", KINDS)
def test_digests_tell_parameters_apart(kind: type[Randomizer]) -> None:
    made = [
        kind(epsilon=epsilon, domain=Domain(domain))  # type: ignore[call-arg]
        for epsilon in (1.0, 1.0000001)
        for domain in (range(10), range(11), list("abcdefghij"))
    ]
    assert len({one.digest for one in made}) == 6


def test_digests_are_fixed_for_ever() -> None:
    assert (
        RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(5))).digest.hex()
        == "c4b6273bdce646d1870581d31a5475f511d0a1edb0ceeaf9faae36633c327903"
    )


def test_domains_that_json_does_not_hold_are_given() -> None:
    domain = Domain([(1, 2), (3, 4)])
    made = RandomizedResponseRandomizer(epsilon=1.0, domain=domain)
    told = json.loads(json.dumps(made.specification()))
    assert Randomizer.from_specification(told, domain=domain) == made
    with pytest.raises(ParameterError, match="domain must be written with its values"):
        Randomizer.from_specification(told)


@cases(
    "change",
    [
        {"protocol": "Domain"},
        {"protocol": "Randomizer"},
        {"protocol": "no such"},
        {"protocol": None},
        {"protocol": ["randomized-response"]},
        {"protocol": "RandomizedResponseRandomizer"},
        {"version": 1},
        {"version": 3},
        {"format": "sfumato.collection"},
        {"truth": 1},
        {"more": 1},
        {"epsilon": 2.0},
        {"epsilon": "x"},
        {"domain": {"range": [0, 6, 1]}},
        {"domain": 3},
    ],
)
def test_refuses_specifications_of_others(change: dict[str, object]) -> None:
    told = {**RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(5))).specification(), **change}
    with pytest.raises(ParameterError):
        Randomizer.from_specification(told)


def test_a_specification_from_a_server_costs_a_device_little() -> None:
    # `decoys` of 2^32 slots asked for 8 TiB, and a domain of 2^32 counts for 32 GiB, at the first report.
    known = json.loads((Path(making.__file__).parent / "protocols.json").read_text())
    tracemalloc.start()
    for name, entry in known.items():
        told = entry["randomizer"]
        for field in told.keys() - {"format", "version", "protocol"}:
            for value in (1 << 32, 1 << 70, [1 << 32] * 2, "x"):
                with contextlib.suppress(ParameterError):
                    Randomizer.from_specification({**told, field: value})
        assert tracemalloc.get_traced_memory()[1] < 1 << 26, name
    tracemalloc.stop()
    decoys = known["shuffled-histogram"]["randomizer"]["decoys"]
    told = known["shuffled-histogram"]["randomizer"]
    for slots in (1 << 16, 1 << 32, 1 << 70):
        with pytest.raises(ParameterError, match="decoys must ask each client for at most 65536 messages"):
            Randomizer.from_specification({**told, "decoys": {**decoys, "slots": slots}})
    most = Randomizer.from_specification({**told, "decoys": {**decoys, "slots": (1 << 16) - 1}})
    assert most.messages == 1 << 16
    told = known["shuffled-counts"]["randomizer"]
    with pytest.raises(ParameterError, match="domain must ask each client for at most 65536 messages"):
        Randomizer.from_specification({**told, "domain": Domain(range(1 << 32)).specification()})


@cases("kind", KINDS)
def test_a_report_is_a_row_of_a_batch(kind: type[Randomizer]) -> None:
    made = kind(epsilon=1.0, domain=Domain(["a", "b", "c"]))  # type: ignore[call-arg]
    assert not made.randomize_batch(["a"] * 3).simulated
    batch = made.randomize_batch(["b"], 7)
    assert batch.simulated
    assert batch[0] == made.randomize("b", 7)
    assert len(batch[0]) == made.width
    assert len(made.randomize_batch([])) == 0
    with pytest.raises(ParameterError, match="values must be categories"):
        made.randomize("d")


@cases("told", [None, [], ["sfumato"], "RandomizedResponseRandomizer", b"{}", 5, float("nan")])
def test_what_is_no_specification_at_all_is_refused(told: Any) -> None:
    with pytest.raises(ParameterError, match="of the format sfumato"):
        Randomizer.from_specification(told)
