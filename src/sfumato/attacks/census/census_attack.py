"""Reconstruction from published tables in the shape of all attacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.loss_bounds import AttackBound
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.census.blocks import reconstruct_blocks
from sfumato.attacks.census.person_bounds import person_bounds
from sfumato.attacks.census.person_types import Person, PersonTypes
from sfumato.attacks.census.published_tables import PublishedTable
from sfumato.attacks.census.table_reconstruction import ContradictoryTables
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["CensusReconstruction"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CensusReconstruction(Attack):
    """Which persons are behind the tables of some blocks.

    Parameters
    ----------
    types : PersonTypes
        Who may be there.
    certain_only : bool
        Whether only persons are claimed who are in every solution.
    population : int, optional
        No block has more persons; needed for tables with noise.
    time_limit : float, optional
        Seconds for each solve.
    processes : int
        How many blocks at a time.
    folder : path, optional
        Where blocks that are done are stored; see `reconstruct_blocks`.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables do not fit.

    Examples
    --------
    >>> from sfumato import attacks
    >>> types = attacks.PersonTypes({"age": range(100), "sex": ("F", "M")})
    >>> people = [(31, "F"), (35, "F"), (60, "M")]
    >>> tables = [attacks.PublishedCounts.of(people, types, name="P12", by=("sex", "age"))]
    >>> attack = attacks.CensusReconstruction(types=types)
    >>> found = attack.run({"1001": tables}, truth={"1001": people}, controls={"1001": [(60, "M")] * 3})
    >>> found.targets.hits, found.controls.hits
    (3, 1)
    """

    types: PersonTypes
    certain_only: bool = False
    population: int | None = None
    time_limit: float | None = None
    processes: int = 1
    folder: Any = None

    def __post_init__(self) -> None:
        _check.instance("types", self.types, PersonTypes, "pass the attributes of a person with their values")
        _check.integer("processes", self.processes, minimum=1)
        if self.population is not None:
            _check.integer("population", self.population)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the tables."""
        return Knowledge(("which attributes a person has, and their possible values",), {"types": self.types})

    def run(
        self,
        release: Any,
        *,
        truth: Any = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Reconstruct persons from tables.

        Parameters
        ----------
        release : mapping of str to tables, or a sequence of tables
            The tables of each block, or of one.
        truth : mapping of str to persons, or a sequence of persons, optional
            Who is in each block: a reconstructed person is right if they are, each counted once.
        controls : mapping of str to persons, or a sequence of persons, optional
            For each block, persons who are not in it, drawn like those who are: how many of them look
            reconstructed is the baseline.
        exchangeable : bool
            Whether persons of the blocks and controls were drawn alike, by lot. With as many controls as
            persons in each block, it is bounded how many of the persons are found, and none of the rates of
            guesses: see `person_bounds`.
        loss : PrivacyLoss, optional
            Of all tables together.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            A guess for each reconstructed person; its score is 1 for a certain one and 0 for another.

        Raises
        ------
        ContradictoryTables
            If nobody has the tables of a block.
        """
        value, loss = read_release(release, loss)
        blocks = _by_block(value, PublishedTable)
        found = reconstruct_blocks(
            self.types,
            blocks,
            folder=self.folder,
            processes=self.processes,
            population=self.population,
            time_limit=self.time_limit,
        )
        guesses: list[tuple[str, Person, bool]] = []
        for block, result in found.items():
            if result.reconstruction is None:
                raise ContradictoryTables(
                    f"tables of a block must agree, but {', '.join(map(repr, result.contradictory))} of "
                    f"{block!r} do not; leave one out, or give it a margin",
                    tables=result.contradictory,
                )
            solution = result.reconstruction
            uncertain = self.types.persons(solution.counts - solution.certain)
            guesses += [(block, person, True) for person in solution.certain_persons()]
            guesses += [(block, person, False) for person in uncertain]
        if not guesses:
            _check.refuse_state(
                "tables",
                "count somebody",
                "the reconstructed blocks are empty",
                "pass tables of blocks with persons",
            )
        certain = sum(sure for _, _, sure in guesses)
        targets = self._judged(guesses, truth)
        other = None if controls is None else self._judged(guesses, controls)
        bounds: tuple[AttackBound, ...] = ()
        if exchangeable and other is not None and truth is not None:
            sides = _by_block(truth, tuple), _by_block(controls, tuple)
            bounds = person_bounds(targets, other, sides, loss, confidence)
        return Findings(
            attack="census reconstruction",
            kind="value",
            knowledge=self.knowledge,
            targets=targets,
            controls=other,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={
                "blocks": float(len(found)),
                "certain persons": float(certain),
                "blocks with one solution": float(
                    sum(
                        one.reconstruction is not None and one.reconstruction.unique for one in found.values()
                    )
                ),
            },
            notes=("a person is right if one of the block has all their values",),
            extra_bounds=bounds,
            no_bound="it takes as many controls, drawn alike, as there are persons in each block",
        )

    def _judged(self, guesses: list[tuple[str, Person, bool]], people: Any) -> TargetGuesses:
        records = np.empty(len(guesses), dtype=object)
        records[:] = [(block, *person) for block, person, _ in guesses]
        certain = np.array([sure for _, _, sure in guesses])
        return TargetGuesses(
            guesses=records,
            scores=certain.astype(np.float64),
            claimed=certain if self.certain_only else np.ones(len(guesses), dtype=bool),
            correct=None if people is None else _matched(guesses, _by_block(people, tuple)),
        )


def _by_block(value: Any, kind: type) -> Mapping[str, Sequence[Any]]:
    """Return tables or persons by block; a bare sequence of them is of one block without a name."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, Sequence) or not all(isinstance(one, kind) for one in value):
        rule = "be tables or persons as tuples, or a mapping of blocks to these"
        _check.refuse_type("release, truth and controls", rule, value, "pass a dict of block to them")
    return {"": value}


def _matched(
    guesses: list[tuple[str, Person, bool]], people: Mapping[str, Sequence[Person]]
) -> NDArray[np.bool_]:
    """Say which guesses are persons, each person serving one guess; surer ones come first."""
    left = {block: Counter(map(tuple, persons)) for block, persons in people.items()}
    right = np.zeros(len(guesses), dtype=bool)
    for place, (block, person, _) in enumerate(guesses):
        if left.get(block, Counter())[person] > 0:
            left[block][person] -= 1
            right[place] = True
    return right
