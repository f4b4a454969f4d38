"""The descent from short prefixes to the strings that many clients have, whatever function counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sfumato import _check
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PrefixDescent", "charge_all"]

_MAX_BITS_A_LEVEL: Final = 16


class PrefixDescent:
    """Which prefixes are asked for at a level: those below the largest of the level before.

    Later prefixes follow from released counts, and the noise of each level is fixed beforehand.

    Examples
    --------
    >>> from sfumato.federated import Poplar1HeavyHitters
    >>> plan = Poplar1HeavyHitters.calibrated(
    ...     bits=3, bits_per_level=2, threshold=5, max_prefixes=1, epsilon=9.0, delta=1e-6
    ... )
    >>> plan.levels
    (0, 2)
    >>> asked, counts = plan.descend(lambda asked: [9 if prefix in "111" else 4 for prefix in asked.prefixes])
    >>> asked.prefixes, counts
    (('100', '101', '110', '111'), [4, 4, 4, 9])
    """

    __slots__ = ()

    bits: int
    threshold: int
    max_prefixes: int
    bits_per_level: int
    minimum_reports: int

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels at which prefixes are asked for; the last is that of whole strings."""
        first = self.bits % self.bits_per_level or self.bits_per_level
        return tuple(range(first - 1, self.bits, self.bits_per_level))

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: a client whose string, and whatever else it reports, is another one."""
        return Neighboring.REPLACE_ONE

    def check_descent(self) -> None:
        """Refuse sizes that are out of range.

        Raises
        ------
        ParameterError
            If one is.
        """
        for name in ("bits", "threshold", "max_prefixes", "bits_per_level", "minimum_reports"):
            _check.integer(name, getattr(self, name), minimum=1)
        if self.bits_per_level > min(_MAX_BITS_A_LEVEL, self.bits):
            rule = f"be at most {_MAX_BITS_A_LEVEL}, and no more than the strings have"
            _check.refuse("bits_per_level", rule, self.bits_per_level, "use smaller steps")

    def descend(
        self, released: Callable[[AggregationParameter], list[int]]
    ) -> tuple[AggregationParameter, list[int]]:
        """Return the prefixes of the last level that was reached, and what was released of them.

        Parameters
        ----------
        released : callable
            From prefixes to one noisy number for each.

        Returns
        -------
        tuple of AggregationParameter and list of int
        """
        asked = _extended([""], self.levels[0] + 1)
        numbers = released(asked)
        for _ in self.levels[1:]:
            order = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[: self.max_prefixes]
            largest = [asked.prefixes[i] for i in order if numbers[i] >= self.threshold]
            if not largest:
                break
            asked = _extended(largest, self.bits_per_level)
            numbers = released(asked)
        return asked, numbers


def charge_all(
    ledgers: Sequence[Any], loss: PrivacyLoss, *, delta: float, description: str, simulated: bool
) -> None:
    """Charge every ledger, after all are found to be ledgers.

    Parameters
    ----------
    ledgers : sequence of Ledger
        Where one refuses, those before it stay charged.
    loss : PrivacyLoss
        The whole loss.
    delta : float
        Where the charge's own guarantee is read.
    description : str
        What it is for.
    simulated : bool
        Whether noise follows from a seed.
    """
    for ledger in ledgers:
        _check.ledger(ledger)
    for ledger in ledgers:
        ledger.charge(loss, delta=delta, description=description, simulated=simulated)


def _extended(prefixes: list[str], bits: int) -> AggregationParameter:
    endings = [format(i, f"0{bits}b") for i in range(1 << bits)]
    return AggregationParameter.of(*(prefix + ending for prefix in prefixes for ending in endings))
