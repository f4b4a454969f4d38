"""Neighboring relations: the three members, and further ones that a room above defines with parameters."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import pytest

from sfumato._wire import INTEGER, RATIONAL, TEXT, canonical
from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import (
    ApproximateDP,
    Composed,
    Gaussian,
    Guarantee,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PostProcessed,
    PrivacyLoss,
    PureDP,
    loss_from_json,
    matrix_mechanism,
)
from sfumato.privacy.catalog import LOSS_CLASSES
from sfumato.privacy.neighboring import RELATION, Relation, register_relation
from tests.cases import cases
from tests.privacy.test_theorems import SAMPLES, table


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinDistance(Relation):
    """A metric with a scale: one record is a point that moves by at most some distance."""

    distance: Fraction
    unit: str

    composes = True

    def __str__(self) -> str:
        return f"move one point by at most {self.distance} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRemoveRecords(Relation):
    """Several records, whoever they belong to."""

    records: int

    composes = True

    def __str__(self) -> str:
        return f"add/remove {self.records} records"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPairs(Relation):
    """Pufferfish: neighbors are distributions of datasets, given one secret or the other."""

    secrets: str

    def __str__(self) -> str:
        return f"one of the secrets {self.secrets} or the other"


register_relation("test-within-distance", WithinDistance, {"distance": RATIONAL, "unit": TEXT})
register_relation("test-add-remove-records", AddRemoveRecords, {"records": INTEGER})
register_relation("test-secret-pairs", SecretPairs, {"secrets": TEXT})

NEAR = WithinDistance(distance=Fraction(401, 2), unit="m")
EIGHT = AddRemoveRecords(records=8)
SECRET = SecretPairs(secrets="ill or healthy")
FURTHER: list[Any] = [NEAR, EIGHT, SECRET]


def test_the_three_are_members_with_their_texts() -> None:
    texts = ["add-remove", "replace-one", "zero-out"]
    assert [relation.value for relation in Neighboring] == texts
    assert [RELATION.encode(relation) for relation in Neighboring] == texts
    for text, relation in zip(texts, Neighboring, strict=True):
        assert Neighboring(text) is relation is RELATION.decode("given", text)
        assert pickle.loads(pickle.dumps(relation)) is relation is copy.deepcopy(relation)
        assert isinstance(relation, Relation)
        assert relation.composes
    assert len(set(Neighboring)) == 3


@cases("relation", FURTHER)
def test_a_further_relation_is_a_value_and_is_carried_by_losses(relation: Any) -> None:
    again = pickle.loads(pickle.dumps(relation))
    assert again == relation == RELATION.decode("given", RELATION.encode(relation))
    assert hash(again) == hash(relation)
    assert not isinstance(relation, Neighboring)
    for loss in (Gaussian(2.0, neighboring=relation), PostProcessed(PureDP(0.5, neighboring=relation))):
        read = loss_from_json(loss.to_json())
        assert read == loss
        assert read.neighboring == relation
        assert read.epsilon(1e-6) == loss.epsilon(1e-6)
    assert Gaussian(2.0, neighboring=relation).epsilon(1e-6) == Gaussian(2.0).epsilon(1e-6)
    assert str(relation) in str(Guarantee(neighboring=relation, epsilon=1.0))


def test_the_wire_form_has_the_name_and_the_parameters() -> None:
    assert '"neighboring":{"distance":"401/2","relation":"test-within-distance","unit":"m"}' in (
        PureDP(1.0, neighboring=NEAR).to_json()
    )


@cases(
    "written",
    [
        {"relation": "test-within-distance"},
        {"relation": "test-within-distance", "distance": "1/1", "unit": "m", "more": 1},
        {"relation": "test-within-distance", "distance": 1, "unit": "m"},
        {"relation": "other"},
        {"relation": ["add-remove"]},
        {"distance": "1/1", "unit": "m"},
        "test-within-distance",
        None,
    ],
)
def test_unknown_relations_and_parameters_are_refused(written: object) -> None:
    with pytest.raises(ParameterError):
        RELATION.decode("given", written)


def test_losses_add_under_equal_relations_only() -> None:
    for relation in (NEAR, EIGHT):
        same = pickle.loads(pickle.dumps(relation))
        both = Gaussian(1.0, neighboring=relation) * 3 + Laplace(2.0, neighboring=same)
        assert both.neighboring == relation
        assert loss_from_json(both.to_json()) == both
        for other in (*Neighboring, WithinDistance(distance=Fraction(1), unit="m")):
            with pytest.raises(NeighboringMismatch, match="one neighboring relation"):
                _ = both + Gaussian(1.0, neighboring=other)


def test_losses_do_not_add_where_no_theorem_says_so() -> None:
    one, other = PureDP(0.1, neighboring=SECRET), ApproximateDP(0.2, 0.0, neighboring=SECRET)
    assert one * 1 == one + Composed(()) == one
    sums: list[Callable[[], PrivacyLoss]] = [lambda: one + other, lambda: one + one, lambda: one * 2]
    for make in sums:
        with pytest.raises(NeighboringMismatch, match="under which they add"):
            make()
    text = (PureDP(0.1) * 2).to_json().replace('"add-remove"', canonical(RELATION.encode(SECRET)))
    with pytest.raises(NeighboringMismatch, match="under which they add"):
        loss_from_json(text)


@cases("name", [kind.__name__ for kind in LOSS_CLASSES])
def test_a_loss_whose_theorem_is_about_the_three_refuses_a_further_relation(name: str) -> None:
    _, rows = table("Loss and neighboring relation")
    assert rows[name][-1] in ("refused", "the same")
    for relation in FURTHER:
        if rows[name][-1] == "refused":
            with pytest.raises(NeighboringMismatch, match=r"must be|under"):
                SAMPLES[name](relation)
        else:
            assert SAMPLES[name](relation).neighboring == relation


def test_groups_other_relations_and_samples_are_refused() -> None:
    for loss in (Gaussian(1.0, neighboring=NEAR), PureDP(1.0, neighboring=EIGHT) * 2):
        assert loss.group(1) == loss
        with pytest.raises(NeighboringMismatch):
            loss.group(2)
        with pytest.raises(NeighboringMismatch):
            loss.under(Neighboring.REPLACE_ONE)
        with pytest.raises(NeighboringMismatch):
            PoissonSubsampled(next(iter(loss.terms))[0], 0.1)
    with pytest.raises(NeighboringMismatch):
        matrix_mechanism([[1.0]], 2.0, separation=1, neighboring=NEAR)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Gaussian(1.0).under(NEAR)  # type: ignore[arg-type]


def test_an_unregistered_relation_prices_but_is_not_written() -> None:
    @dataclass(frozen=True)
    class Unregistered(Relation):
        def __str__(self) -> str:
            return "nothing in particular"

    loss: PrivacyLoss = PureDP(1.0, neighboring=Unregistered())
    assert loss.epsilon(0.0) == 1.0
    with pytest.raises(ParameterError, match="registered"):
        loss.to_json()


def test_a_name_stands_for_one_relation() -> None:
    for name, kind in (
        ("test-within-distance", Relation),
        ("add-remove", Relation),
        ("test-new", WithinDistance),
    ):
        with pytest.raises(ValueError, match="of its own"):
            register_relation(name, kind, {})
    assert [f.name for f in fields(NEAR)] == ["distance", "unit"]
