"""Mechanisms on disjoint parts of the units: parallel composition costs as much as the worst part."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.base.release_table import Rows
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes import choice as nodes

__all__ = ["ParallelComposition", "ParallelRelease"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParallelRelease(Release):
    """The releases of all parts.

    Parameters
    ----------
    value : dict
        The value of each part, by its name.
    parts : dict
        The release of each part, with its error; its ``loss`` is that of the part alone.
    loss, neighboring, receipt, simulated, labels
        As in `Release`, of all parts together.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> count = Laplace(sensitivity=1, scale=2)
    >>> release = ParallelComposition(parts={"CA": count, "MA": count}).release([1000, 30], rng=1)
    >>> release.parts["CA"].value == release.value["CA"]
    True
    """

    parts: Mapping[Hashable, Release]

    def _rows(self, level: float | None) -> Rows:
        """Return the rows of all parts below each other, which have the same columns."""
        tables = [part.table(intervals=True, level=level) for part in self.parts.values()]
        if len({tuple(table) for table in tables}) > 1:
            found = "they are of several kinds"
            _check.refuse_state("parts", "have the same columns for one table", found, "show one of parts")
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        sizes = [table["value"].size for table in tables]
        parts = [name for name, size in zip(self.parts, sizes, strict=True) for _ in range(size)]
        value = columns.pop("value")
        ends = Interval(columns.pop("lower"), columns.pop("upper")) if "lower" in columns else None
        return Rows(
            {"part": parts} | {name: column.tolist() for name, column in columns.items()}, value, ends
        )


@final
@dataclass(frozen=True, slots=True, repr=False)
class _Parts(Mapping[Hashable, Mechanism]):
    """Names and mechanisms in their order, which values come in: it counts in comparisons."""

    entries: tuple[tuple[Hashable, Mechanism], ...]

    def __getitem__(self, name: Hashable) -> Mechanism:
        return dict(self.entries)[name]

    def __iter__(self) -> Iterator[Hashable]:
        return (name for name, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return repr(dict(self.entries))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelComposition(Mechanism):
    """One mechanism for each part of a public partition of the units.

    Parameters
    ----------
    parts : mapping of name to Mechanism
        At least one; the names are public, and fixed before the data is seen. All mechanisms protect under
        one relation, add/remove or zero-out.

    Notes
    -----
    Guarantee: that of the dearest part in each notion (`sfumato.privacy.Parallel`). Conditions: every unit
    lies with all its records in one part, by what is public or by the unit itself, never by other units, and
    zeroing a unit leaves it there; each part's value is computed from its own units alone; a part without
    units has a value like any other.

    References
    ----------
    McSherry, "Privacy integrated queries" (SIGMOD 2009), parallel composition.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> count = Laplace.calibrated(sensitivity=1, epsilon=0.5)
    >>> by_state = ParallelComposition(parts={"CA": count, "MA": count})
    >>> by_state.privacy_loss.epsilon(0.0)
    0.5
    >>> by_state.release([1000, 30], rng=1).value
    {'CA': 999, 'MA': 38}
    """

    parts: Mapping[Any, Mechanism]

    def __post_init__(self) -> None:
        given: object = self.parts
        parts = dict(given) if isinstance(given, Mapping) else {}
        if not parts or not all(isinstance(part, Mechanism) for part in parts.values()):
            _check.refuse(
                "parts", "map at least one name to a mechanism", given, "pass {name: mechanism, ...}"
            )
        object.__setattr__(self, "parts", _Parts(tuple(parts.items())))
        _ = self.privacy_loss  # the node checks the relations

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release of all parts."""
        losses = dict.fromkeys(part.privacy_loss for part in self.parts.values())
        return nodes.Parallel(tuple(losses))

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: the relation of all parts."""
        return next(iter(self.parts.values())).neighboring

    def outputs(self, value: Sequence[object], size: int, rng: Rng = None) -> list[dict[Any, Any]]:
        """Draw the values of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        list of dict
            The value of each part by name, for each release.
        """
        source = random_source(rng)
        drawn = [
            part.outputs(one, size, source)
            for part, one in zip(self.parts.values(), self._values(value), strict=True)
        ]
        return [dict(zip(self.parts, released, strict=True)) for released in zip(*drawn, strict=True)]

    def release(self, value: Sequence[object], rng: Rng = None) -> ParallelRelease:
        """Draw one release of each part.

        Parameters
        ----------
        value : sequence
            The private value of each part, in the order of ``parts``; of a part without units too.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        ParallelRelease
        """
        values = self._values(value)
        source = random_source(rng)
        released = {
            name: part.release(one, source)
            for (name, part), one in zip(self.parts.items(), values, strict=True)
        }
        return self._release_as(
            ParallelRelease,
            {name: release.value for name, release in released.items()},
            source,
            parts=released,
        )

    def _values(self, given: object) -> list[object]:
        """Return one value for each part."""
        if isinstance(given, Mapping | Set | str | bytes) or not isinstance(given, Iterable):
            remedy = "pass a list, in the order of parts"
            _check.refuse_type("value", "be a sequence of one value for each part", given, remedy)
        values = list(given)
        if len(values) != len(self.parts):
            rule = f"hold {len(self.parts)} values, one for each part"
            remedy = "pass them in the order of the parts"
            _check.refuse_state("value", rule, f"there are {len(values)}", remedy)
        return values
