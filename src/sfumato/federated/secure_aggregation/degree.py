"""How many neighbors a client of SecAgg+ needs, from exact tails of the hypergeometric distribution.

Each client shares its secrets with, and masks against, its neighbors in a random graph only. Too few
neighbors fail in three ways: colluding neighbors reach the threshold, survivors fall below it, or the honest
survivors fall apart into groups whose sums the server learns one by one.

>>> plan = plan_neighbors(1000, dropout=0.1, corruption=0.05)
>>> plan.security_failure <= 2**-40, plan.correctness_failure <= 2**-20
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sfumato import _check
from sfumato.numerics.rounding import fraction_up

__all__ = ["NeighborPlan", "plan_neighbors", "security_failure_bound"]


_GRAPHS: Final = 1 << 60
"""How many graphs a deviating server may try, each an evaluation of a hash function."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborPlan:
    """A degree of the graph, a threshold, and bounds on the probabilities that they fail.

    Parameters
    ----------
    degree : int
        Neighbors of each client; even, or all others.
    threshold : int
        Shares that give a secret back.
    security_failure : float
        Upper bound on the probability that some honest client has ``threshold`` corrupt neighbors, or that
        the honest survivors are not connected; in the active mode for any of the graphs that are tried.
    correctness_failure : float
        Upper bound on the probability that some client has fewer than ``threshold`` surviving neighbors.

    Examples
    --------
    >>> plan_neighbors(10, dropout=0.1, corruption=0.4).degree
    9
    """

    degree: int
    threshold: int
    security_failure: float
    correctness_failure: float


def plan_neighbors(
    clients: int,
    *,
    dropout: float,
    corruption: float,
    security_failure: float = 2.0**-40,
    correctness_failure: float = 2.0**-20,
    active: bool = False,
) -> NeighborPlan:
    """Return the smallest degree, with its threshold, whose probabilities of failure are as asked.

    Parameters
    ----------
    clients : int
        At least 3.
    dropout : float
        Largest share of clients that drop out in a round.
    corruption : float
        Largest share of clients that collude with the server.
    security_failure : float, default 2^-40
    correctness_failure : float, default 2^-20
    active : bool, default False
        Plan for a server that deviates from the protocol and tries 2^60 lists of keys for a graph that suits
        it; ``security_failure`` is over all of them.

    Returns
    -------
    NeighborPlan
        Where no smaller degree does, that of the complete graph, if it does.

    Raises
    ------
    ParameterError
        If no degree does.

    Notes
    -----
    Guarantee: the failures are those of Definition 3.4 of Bell et al. (2020), in the semi-honest setting: who
    drops out and who is corrupt does not depend on the graph. The number of corrupt (surviving) neighbors of
    one client is hypergeometric; tails are exact rationals, the union bound is over all clients. The graph is
    a circle in random order, each client joined to the ``degree / 2`` next on both sides: honest survivors
    are connected unless ``degree / 2`` clients in a row are corrupt or dropped (their Lemma 3.7).

    With ``active`` who is corrupt is fixed before the keys, and who drops out is the server's choice: the
    failure is that among some ``degree / 2`` clients in a row ``threshold - degree / 2`` are corrupt, for any
    of 2^60 graphs (union bound); it implies the rest, as `sfumato.federated.secure_aggregation.active_roster`
    proves, if the round's ``minimum_survivors`` is above half of the clients and the corrupt together. All
    others as neighbors never fail where the corrupt are few enough.

    References
    ----------
    J. H. Bell, K. A. Bonawitz, A. Gascón, T. Lepoint, M. Raykova. Secure single-server aggregation with
    (poly)logarithmic overhead. CCS 2020.

    Examples
    --------
    >>> plan_neighbors(10_000, dropout=0.1, corruption=0.05).degree < 120
    True
    """
    clients = _check.integer("clients", clients, minimum=3)
    # The decimal that was written, not the float nearest to it: a tenth of 1,000 is 100.
    dropped = math.ceil(Fraction(repr(_check.probability("dropout", dropout))) * clients)
    corrupt = math.ceil(Fraction(repr(_check.probability("corruption", corruption))) * clients)
    security = Fraction(_check.unit_interval("security_failure", security_failure))
    correctness = Fraction(_check.unit_interval("correctness_failure", correctness_failure))
    degrees = (*range(2, clients - 1, 2), clients - 1)
    try_degree = _active_plan if active else _plan
    found = (try_degree(clients, degree, (dropped, corrupt), (security, correctness)) for degree in degrees)
    plan = next((plan for plan in found if plan is not None), None)
    if plan is None:
        rule = "leave a threshold between the corrupt and the surviving neighbors"
        given = (dropout, corruption)
        _check.refuse("dropout and corruption", rule, given, "assume fewer of them, or more clients")
    return plan


def security_failure_bound(
    clients: int, *, degree: int, threshold: int, dropped: int, corrupt: int, active: bool = False
) -> Fraction:
    """Return the bound of `plan_neighbors` on a failure of security, for a given graph and given numbers.

    Parameters
    ----------
    clients : int
    degree, threshold : int
        Of `NeighborPlan`.
    dropped, corrupt : int
        The most clients that drop out and that collude, chosen without regard to the graph.
    active : bool, default False
        Against a server that deviates and tries 2^60 graphs; on a sparse graph ``dropped`` is not used then,
        since the server chooses who drops out.

    Returns
    -------
    Fraction
        At most 1; exactly 0 or 1 on the complete graph.

    Examples
    --------
    >>> security_failure_bound(9, degree=8, threshold=5, dropped=2, corrupt=4)
    Fraction(0, 1)
    """
    others = clients - 1
    tail = sum(_distribution(others, min(corrupt, others), degree)[threshold:], Fraction(0))
    if degree == others:
        return min(Fraction(1), tail)
    if active:
        half = degree // 2
        in_a_row = _distribution(clients, min(corrupt, clients), half)
        return min(Fraction(1), _GRAPHS * clients * sum(in_a_row[threshold - half :], Fraction(0)))
    apart = _all_in(min(corrupt + dropped, clients), clients, degree // 2)
    return min(Fraction(1), clients * (apart + tail))


def _plan(
    clients: int, degree: int, lost_or_corrupt: tuple[int, int], failures: tuple[Fraction, Fraction]
) -> NeighborPlan | None:
    """Return the plan of a degree with its least threshold, or None where a failure is too likely."""
    (dropped, corrupt), (security, correctness) = lost_or_corrupt, failures
    others = clients - 1
    apart = clients * _all_in(min(corrupt + dropped, clients), clients, degree // 2)
    if degree == others:
        apart = Fraction(0)
    if apart > security:
        return None
    corrupted = _distribution(others, min(corrupt, others), degree)
    lost = _distribution(others, min(dropped, others), degree)
    threshold, tail = degree + 1, Fraction(0)
    while threshold - 1 > degree // 2 and apart + clients * (tail + corrupted[threshold - 1]) <= security:
        threshold -= 1
        tail += corrupted[threshold]
    failing = clients * sum(lost[degree - threshold + 1 :], Fraction(0))
    if threshold > degree or failing > correctness:
        return None
    return NeighborPlan(
        degree=degree,
        threshold=threshold,
        security_failure=min(1.0, fraction_up(apart + clients * tail)),
        correctness_failure=min(1.0, fraction_up(failing)),
    )


def _active_plan(
    clients: int, degree: int, lost_or_corrupt: tuple[int, int], failures: tuple[Fraction, Fraction]
) -> NeighborPlan | None:
    """Return the plan of a degree against a deviating server, or None where a failure is too likely."""
    (dropped, corrupt), (security, correctness) = lost_or_corrupt, failures
    threshold, tail = 2 * degree // 3 + 1, Fraction(0)
    if degree == clients - 1:
        while threshold <= degree and corrupt >= min(threshold, 2 * (threshold + 1) - clients):
            threshold += 1
    else:
        half = degree // 2
        in_a_row = _distribution(clients, min(corrupt, clients), half)
        # From above, for as long as the tail of all graphs is small enough.
        lowest, threshold = threshold, degree + 1
        while threshold > lowest and _GRAPHS * clients * (tail + in_a_row[threshold - 1 - half]) <= security:
            threshold -= 1
            tail += in_a_row[threshold - half]
    lost = _distribution(clients - 1, min(dropped, clients - 1), degree)
    failing = clients * sum(lost[degree - threshold + 1 :], Fraction(0))
    if threshold > degree or failing > correctness:
        return None
    return NeighborPlan(
        degree=degree,
        threshold=threshold,
        security_failure=fraction_up(_GRAPHS * clients * tail),
        correctness_failure=fraction_up(failing),
    )


def _all_in(marked: int, population: int, drawn: int) -> Fraction:
    """Return the probability that all that are drawn without replacement are marked."""
    return Fraction(math.comb(marked, drawn), math.comb(population, drawn))


def _distribution(population: int, marked: int, drawn: int) -> list[Fraction]:
    """Return the probabilities that 0, 1, ... of those drawn without replacement are marked."""
    every = math.comb(population, drawn)
    return [
        Fraction(math.comb(marked, count) * math.comb(population - marked, drawn - count), every)
        for count in range(drawn + 1)
    ]
