"""Intersecting the intervals that several proofs give for one number, and reporting a contradiction."""

from __future__ import annotations

import warnings

from sfumato.errors import ContradictionWarning
from sfumato.numerics.interval import Interval
from sfumato.privacy._outward import above, below

__all__ = ["complement", "intersection"]


def intersection(what: str, *proofs: Interval) -> Interval:
    """Return the numbers that all proofs allow; ``tight`` is the last one's, and False after a contradiction.

    Parameters
    ----------
    what : str
        The number, as a warning names it.
    *proofs : Interval
        Bounds on the same number.

    Warns
    -----
    ContradictionWarning
        If no number is allowed by all: at least one proof is wrong. Then every number is returned that some
        proof allows, so that the bounds hold if any of the proofs does.

    Examples
    --------
    >>> intersection("epsilon", Interval(0.0, 1.5), Interval(1.0, 2.0))
    Interval(lower=1.0, upper=1.5, tight=True)
    """
    lower, upper = max(proof.lower for proof in proofs), min(proof.upper for proof in proofs)
    if lower <= upper:
        return Interval(lower, upper, proofs[-1].tight)
    warnings.warn(
        f"two proofs of {what} contradict each other: one says at least {lower!r}, another at "
        f"most {upper!r}; one of them is wrong, which is a fault of sfumato: please report it with "
        "the loss; the bounds that hold if either is right are returned",
        ContradictionWarning,
        stacklevel=2,
    )
    return Interval(min(proof.lower for proof in proofs), max(proof.upper for proof in proofs), tight=False)


def complement(chance: Interval) -> Interval:
    """Return bounds on the probability of what does not happen."""
    return Interval(max(0.0, below(1 - chance.upper)), min(1.0, above(1 - chance.lower)), chance.tight)
