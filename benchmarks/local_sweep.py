"""Which local protocols no planner should ever pick: a sweep over epsilon, the domain and the respondents.

For every point each protocol is compared with all others of its job by the error of its estimates and the
bytes of a report. A protocol is *useful* at a point if its error is below that of all others with reports as
short; it is *picked* if a planner's rule takes it: the shortest reports within 5 % of the least error. What
is nowhere useful by 5 % nor picked belongs to `sfumato.local.baselines`, unless others are built of it
(optimized unary encoding, which stands in questions about several attributes) or it is what a vendor deployed
(the sequence fragment puzzle, the chains of RAPPOR). All figures follow from the protocols' theory: nothing
is timed.

Run ``python -m benchmarks local-sweep``; it takes ten seconds.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from sfumato import local
from sfumato.errors import ParameterError

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
SIZES = (2, 3, 4, 8, 16, 64, 256, 1024, 4096, 65536)
SHARES = (0.0, 0.1, 0.5)
PEOPLE = 1_000_000
MARGIN = 1.05

ORACLES = (
    local.RandomizedResponse,
    local.SymmetricUnaryEncoding,
    local.OptimizedUnaryEncoding,
    local.baselines.BinaryLocalHashing,
    local.OptimalLocalHashing,
    local.SubsetSelection,
    local.HadamardResponse,
    local.OneBitHadamard,
    local.ProjectiveGeometryResponse,
    local.baselines.SummationHistogram,
    local.baselines.ThresholdHistogram,
)
Figures = Mapping[str, tuple[float, int]]


def frequency() -> Iterator[Figures]:
    """Error and bytes of each frequency oracle."""
    for epsilon, size, share in product(EPSILONS, SIZES, SHARES):
        domain = local.Domain(range(size))
        yield figures(
            {kind.__name__: partial(kind, epsilon=epsilon, domain=domain) for kind in ORACLES},
            lambda oracle, share=share: oracle.variance(PEOPLE, share),  # type: ignore[misc]
        )


def attributes() -> Iterator[Figures]:
    """The same of several categories of each person, by their worst marginal."""
    kinds = (local.SplitBudget, local.SampledAttribute, local.baselines.FakeData)
    for epsilon, size, count, share in product(EPSILONS, (2, 4, 16, 64), (2, 4, 8), (0.0, 0.1)):
        domains = [local.Domain(range(size))] * count
        made = {
            kind.__name__: partial(
                kind, epsilon=epsilon, domains=domains, oracle=local.OptimizedUnaryEncoding
            )
            for kind in kinds
        }
        yield figures(made, lambda protocol, share=share: max(protocol.variance(PEOPLE, share)))  # type: ignore[misc]


def chains() -> Iterator[Figures]:
    """The same of the unary chains, at one loss of a lifetime."""
    for epsilon, ratio, size, share in product(EPSILONS, (1.25, 2.0, 4.0), (4, 64, 1024), (0.0, 0.1)):
        domain = local.Domain(range(size))
        made = {
            chain: partial(
                local.LongitudinalUnaryEncoding,
                epsilon=epsilon,
                permanent_epsilon=ratio * epsilon,
                domain=domain,
                chain=chain,
            )
            for chain in ("SUE", "OUE", "OSUE", "SOUE")
        }
        yield figures(made, lambda protocol, share=share: protocol.variance(PEOPLE, share))  # type: ignore[misc]


def strings() -> Iterator[Figures]:
    """The smallest share that is found, and the bytes of a report, of the best parameters of each."""
    for epsilon, length, people in product((1.0, 2.0, 4.0, 8.0), (4, 6, 8, 12), (10_000, 1_000_000, 10**8)):
        try:
            asked = local.FrequentStrings(local.Strings(length=length))
            choice = local.choose(asked, epsilon=epsilon, n=people)
        except ParameterError:
            continue
        yield {type(plan.protocol).__name__: (plan.share, plan.bytes) for plan in choice.plans}


def figures(made: Mapping[str, Callable[[], Any]], error: Callable[[Any], float]) -> Figures:
    """Error and bytes of each protocol that can be made."""
    found = {}
    for name, make in made.items():
        try:
            protocol = make()
        except ParameterError:
            continue
        found[name] = (error(protocol), protocol.device.width)
    return found


def advantage(name: str, given: Figures) -> float:
    """How many times the error of this protocol the least error is of others with reports as short."""
    error, size = given[name]
    others = [its for other, (its, width) in given.items() if other != name and width <= size]
    return min(others, default=float("inf")) / error


def picked(given: Figures) -> str:
    """What a planner takes."""
    least = MARGIN * min(error for error, _ in given.values())
    near = {name: (size, error) for name, (error, size) in given.items() if error <= least}
    return min(near, key=near.__getitem__)


def main(argv: list[str]) -> int:
    """Print how often each protocol is useful and picked."""
    if argv:
        print("usage: python -m benchmarks local-sweep", file=sys.stderr)
        return 2
    jobs = {"frequency": frequency, "attributes": attributes, "chains": chains, "strings": strings}
    for job, points in jobs.items():
        seen: Counter[str] = Counter()
        best: Counter[str] = Counter()
        clear: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        total = 0
        for given in points():
            if not given:
                continue
            total += 1
            seen.update(given.keys())
            best.update(name for name in given if advantage(name, given) > 1 + 1e-9)
            clear.update(name for name in given if advantage(name, given) > MARGIN)
            taken[picked(given)] += 1
        print(f"\n{job}: {total} points\n{'protocol':<28}{'tried':>8}{'useful':>8}{'by 5 %':>8}{'picked':>8}")
        for name in sorted(seen, key=lambda name: -taken[name]):
            print(f"{name:<28}{seen[name]:>8}{best[name]:>8}{clear[name]:>8}{taken[name]:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
