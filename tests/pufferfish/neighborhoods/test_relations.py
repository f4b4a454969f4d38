from __future__ import annotations

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import Laplace
from sfumato.privacy import Neighboring
from sfumato.privacy.neighboring import RELATION
from sfumato.pufferfish import GroupNeighboring, HouseholdNeighboring, NetworkNeighboring

COUNT = Laplace(sensitivity=1, scale=10, neighboring=Neighboring.REPLACE_ONE)
EDGES = [(0, 1), (1, 2), (2, 3), (0, 2), (5, 6)]


def test_a_group_costs_its_size() -> None:
    for relation, records in (
        (GroupNeighboring(3), 3),
        (HouseholdNeighboring(5), 5),
        (NetworkNeighboring.of_components(EDGES, people=8), 4),
        (NetworkNeighboring.of_contacts(EDGES, people=8), 4),
        (NetworkNeighboring.of_contacts([(0, 1), (1, 2)], people=3), 3),
        (NetworkNeighboring.of_contacts([], people=3), 1),
    ):
        loss = relation.group_loss(COUNT.privacy_loss)
        assert relation.records == records
        assert loss.neighboring == relation
        assert loss.epsilon() == pytest.approx(records / 10, rel=1e-15)
        assert loss.epsilon() >= records / 10
        assert (loss + loss).epsilon() == pytest.approx(records / 5, rel=1e-15)
        assert RELATION.decode("n", RELATION.encode(relation)) == relation
        assert str(records) in str(relation) or records == 1


def test_a_loss_of_one_relation_meets_no_other() -> None:
    for loss in (Laplace(sensitivity=1, scale=1).privacy_loss, 3):
        with pytest.raises(NeighboringMismatch, match="be under replace-one"):
            GroupNeighboring(3).group_loss(loss)
    with pytest.raises(NeighboringMismatch):
        GroupNeighboring(3).group_loss(COUNT.privacy_loss) + HouseholdNeighboring(3).group_loss(
            COUNT.privacy_loss
        )


def test_bad_networks_are_refused() -> None:
    for edges in ([(0, 8)], [(-1, 0)], [(0, 1, 2)], [(0, 0.5)]):
        for make in (NetworkNeighboring.of_components, NetworkNeighboring.of_contacts):
            with pytest.raises(ParameterError, match="be pairs of people from 0 to 7"):
                make(edges, people=8)  # type: ignore[arg-type]
    for kind in (GroupNeighboring, HouseholdNeighboring, NetworkNeighboring):
        with pytest.raises(ParameterError):
            kind(0)
