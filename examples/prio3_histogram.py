"""Two aggregators count the answers of 2,000 people and see none of them; a client that cheats is refused.

Run ``python examples/prio3_histogram.py``: it needs no argument and no file, and takes about a second.
"""

from __future__ import annotations

import os

import numpy as np

from sfumato.federated import Prio3Aggregator, UsedVerifyKeys, prio3_histogram
from sfumato.numerics.sampling.integer_noise import discrete_laplace

ANSWERS = ["never", "seldom", "often", "always"]
SHARES = [0.4, 0.3, 0.2, 0.1]


def main() -> None:
    """Play the clients, both aggregators and the collector."""
    prio3 = prio3_histogram(length=4, chunk_length=2, context=b"how often, 2026")

    # Each client splits its answer into two shares, with a proof. One of them cheats.
    true = np.random.default_rng(1).choice(4, 2000, p=SHARES)
    reports = prio3.shard(true)
    reports.input_shares[0][7, 0] ^= 1

    # The aggregators verify the proofs together, and add up what both accept.
    key = os.urandom(32)
    sides = [Prio3Aggregator(prio3, key, j, UsedVerifyKeys()) for j in range(2)]
    shares = [
        side.begin(reports.nonces, reports.public_shares, reports.input_shares[j])
        for j, side in enumerate(sides)
    ]
    messages, passed = prio3.verifier_shares_to_message(shares)
    agreed = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    for side in sides:
        side.count(agreed)
    print(f"{sides[0].reports:,} of {len(true):,} reports are accepted")

    # A changed answer moves two counts by one each: noise of scale 2 gives epsilon 1. Each side adds it to
    # its own share before the share leaves it, so that one honest side is enough.
    noisy = [prio3.added(side.aggregate_share(), discrete_laplace(2, 4).tolist()) for side in sides]
    for answer, count in zip(ANSWERS, prio3.unshard(noisy, signed=True), strict=True):
        print(f"{answer:<8}{count:>6}")


if __name__ == "__main__":
    main()
