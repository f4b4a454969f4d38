"""Local reports of pure-ldp, and how its RAPPOR treats a bit that is set; runs in its own environment."""

import random
from collections.abc import Callable
from typing import Any

from local_jobs import CATEGORIES, EPSILON, mended_hashing, tell

broken = mended_hashing()

import numpy as np  # noqa: E402
from pure_ldp.frequency_oracles import direct_encoding as de  # noqa: E402
from pure_ldp.frequency_oracles import hadamard_response as hr  # noqa: E402
from pure_ldp.frequency_oracles import local_hashing as lh  # noqa: E402
from pure_ldp.frequency_oracles import unary_encoding as ue  # noqa: E402
from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer  # noqa: E402
from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer  # noqa: E402


def pair(client: Any, server: Any) -> tuple[Callable[[int], Any], Callable[[list[Any]], Any]]:
    """A client and a server as the two callables of a job; this peer counts values from 1."""

    def count(reports: list[Any]) -> Any:
        for report in reports:
            server.aggregate(report)
        return [server.estimate(value + 1, suppress_warnings=True) for value in range(CATEGORIES)]

    return lambda value: client.privatise(value + 1), count


def hadamard() -> Any:
    server = hr.HadamardResponseServer(EPSILON, CATEGORIES)
    return pair(hr.HadamardResponseClient(EPSILON, CATEGORIES, server.get_hash_funcs()), server)


def sketch() -> Any:
    server = CMSServer(EPSILON, 64, 1024)
    return pair(CMSClient(EPSILON, server.get_hash_funcs(), 1024), server)


def rappor() -> Any:
    server = RAPPORServer(0.5, 128, 2, CATEGORIES)
    return pair(RAPPORClient(0.5, 128, server.get_hash_funcs()), server)


def ones_kept(trials: int = 20_000) -> dict[str, float]:
    """How often a bit comes out as 1, where it is set and where not; 3/4 and 1/4 would be right."""
    random.seed(1)
    client = RAPPORClient(0.5, 2, [])
    sent = np.array([client._perturb([1, 0]) for _ in range(trials)])  # noqa: SLF001
    return {"trials": trials, "set": float(sent[:, 0].mean()), "not set": float(sent[:, 1].mean())}


tell(
    {
        "RandomizedResponse": (
            lambda: pair(de.DEClient(EPSILON, CATEGORIES), de.DEServer(EPSILON, CATEGORIES)),
            1_000_000,
        ),
        "OptimizedUnaryEncoding": (
            lambda: pair(
                ue.UEClient(EPSILON, CATEGORIES, use_oue=True), ue.UEServer(EPSILON, CATEGORIES, use_oue=True)
            ),
            5_900,
        ),
        "OptimalLocalHashing": (
            lambda: pair(
                lh.LHClient(EPSILON, CATEGORIES, use_olh=True), lh.LHServer(EPSILON, CATEGORIES, use_olh=True)
            ),
            15_258,
        ),
        "HadamardResponse": (hadamard, 200_000),
        "CountMeanSketch": (sketch, 1_600),
        "Rappor": (rappor, 8_700),
    },
    {"rappor": ones_kept(), "hashing": broken},
)
