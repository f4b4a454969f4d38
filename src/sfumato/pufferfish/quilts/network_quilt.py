"""The Markov quilt mechanism for records that a Bayesian network links."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number
from sfumato.numerics.rounding import fraction_up
from sfumato.pufferfish.models.bayesian_network import BayesianNetwork
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
from sfumato.pufferfish.release.mechanism import PufferfishMechanism, lattice_for

__all__ = ["NetworkQuilt"]

_UP = 1 + 2.0**-40  # above the rounding of a logarithm and a few operations


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkQuilt(PufferfishMechanism):
    """Laplace noise that hides every record of a Bayesian network.

    Parameters
    ----------
    networks : BayesianNetwork or iterable of BayesianNetwork
        The class of data models; all have one graph.
    lipschitz : int, float or Fraction
        The most that one record moves the answer, in the L1 norm; an int means whole answers.
    epsilon : float
    largest_quilt : int
        How many records a quilt has at most; larger ones are not searched.
    entries : int
        How many numbers the answer has.

    Attributes
    ----------
    active_quilts : tuple of tuples of int
        For each record the quilt that proves its protection.

    Raises
    ------
    ParameterError
        If the class is empty, or its graphs differ.

    Notes
    -----
    Guarantee: epsilon-Pufferfish privacy for the value of each record against each other value. Given a
    quilt, the records d-separated from record i keep their distribution; the others, n of them with i, move
    the answer by n times ``lipschitz``. The quilt leaks its max-influence, which is found by enumerating all
    datasets, in exact rationals.

    References
    ----------
    Song, Wang, Chaudhuri, "Pufferfish privacy mechanisms for correlated data" (SIGMOD 2017), Algorithm 2.

    Examples
    --------
    >>> step = {(0,): [0.55, 0.45], (1,): [0.45, 0.55]}
    >>> line = BayesianNetwork(parents=[(), (0,), (1,), (2,)], tables=[{(): [0.5, 0.5]}, step, step, step])
    >>> mechanism = NetworkQuilt(networks=line, lipschitz=1, epsilon=1.0)
    >>> round(mechanism.scale, 3), mechanism.active_quilts[1]
    (1.67, (0, 2))
    """

    networks: Any
    lipschitz: Number
    epsilon: float
    largest_quilt: int = 2
    entries: int = 1
    active_quilts: tuple[tuple[int, ...], ...] = field(init=False)
    _scale: float = field(init=False, repr=False)
    _grid: Lattice = field(init=False, repr=False)

    def __post_init__(self) -> None:
        networks = (self.networks,) if isinstance(self.networks, BayesianNetwork) else tuple(self.networks)
        if not networks:
            _check.refuse_state("networks", "hold a network", "the class is empty", "pass at least one")
        for network in networks:
            _check.instance("networks", network, BayesianNetwork, "pass a BayesianNetwork")
        if len({network.parents for network in networks}) > 1:
            _check.refuse_state("networks", "have one graph", "two differ", "use a mechanism for each graph")
        object.__setattr__(self, "networks", networks)
        object.__setattr__(self, "lipschitz", as_bound("lipschitz", self.lipschitz))
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        for name in ("entries", "largest_quilt"):
            object.__setattr__(self, name, _check.integer(name, getattr(self, name), minimum=1))
        chosen = self._search()
        worst, self_shift = max(value for value, _, _ in chosen), Fraction(self.lipschitz)
        lattice = lattice_for(self.lipschitz, float(worst * self_shift))
        step = 0 if lattice.integral else lattice.step * self.entries
        scale = max(
            (n * self_shift + step) / (Fraction(self.epsilon) - leak) for n, leak in self._parts(chosen)
        )
        object.__setattr__(self, "active_quilts", tuple(quilt for _, quilt, _ in chosen))
        object.__setattr__(self, "_scale", fraction_up(scale))
        object.__setattr__(self, "_grid", lattice)
        lattice.check_noise("lipschitz", Fraction(self._scale))

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise, in the unit of the answer, rounded up."""
        return self._scale

    @property
    def guarantee(self) -> PufferfishGuarantee:
        """What one release hides: each record's value."""
        content = "".join(sorted(network.digest for network in self.networks))
        return PufferfishGuarantee(
            largest_epsilon=self.epsilon,
            secrets="the value of each record, against each other value",
            models=self.networks[0].describe() + f", one of {len(self.networks)}",
            digest=hashlib.sha256(content.encode()).hexdigest(),
            theorem="Song, Wang, Chaudhuri 2017, Theorem 4.3",
        )

    @property
    def _lattice(self) -> Lattice:
        return self._grid

    def _parts(
        self, chosen: list[tuple[Fraction, tuple[int, ...], Fraction]]
    ) -> Iterable[tuple[int, Fraction]]:
        for record, (_, quilt, leak) in enumerate(chosen):
            yield self._near(record, quilt), leak

    def _near(self, record: int, quilt: tuple[int, ...]) -> int:
        network = self.networks[0]
        return int(network.records - len(quilt) - len(network.separated(record, quilt)))

    def _search(self) -> list[tuple[Fraction, tuple[int, ...], Fraction]]:
        """Return for each record its least scale (for a Lipschitz constant of 1), its quilt and the leak."""
        joint = [network.datasets() for network in self.networks]
        records, epsilon = self.networks[0].records, Fraction(self.epsilon)
        chosen = []
        for record in range(records):
            best = (Fraction(records) / epsilon, (), Fraction(0))
            others = [node for node in range(records) if node != record]
            for size in range(1, min(self.largest_quilt, len(others)) + 1):
                for quilt in itertools.combinations(others, size):
                    near = self._near(record, quilt)
                    if near / epsilon >= best[0]:
                        continue
                    leak = max(_influence(datasets, record, quilt) for datasets in joint)
                    if leak < self.epsilon and (value := near / (epsilon - Fraction(leak))) < best[0]:
                        best = (value, quilt, Fraction(leak))  # type: ignore[assignment]
            chosen.append(best)
        return chosen  # type: ignore[return-value]


def _influence(datasets: dict[tuple[Any, ...], Fraction], record: int, quilt: tuple[int, ...]) -> float:
    """Return the max-influence by its definition, rounded up."""
    joint: dict[Any, dict[tuple[Any, ...], Fraction]] = {}
    for dataset, weight in datasets.items():
        cells = joint.setdefault(dataset[record], {})
        cell = tuple(dataset[node] for node in quilt)
        cells[cell] = cells.get(cell, Fraction(0)) + weight
    totals = {value: sum(cells.values()) for value, cells in joint.items()}
    worst = Fraction(1)
    for one, other in itertools.permutations(joint, 2):
        for cell, weight in joint[one].items():
            if (there := joint[other].get(cell, Fraction(0))) <= 0:
                return math.inf
            worst = max(worst, weight * totals[other] / (totals[one] * there))
    return 0.0 if worst == 1 else math.log(fraction_up(worst)) * _UP
