"""The packaged records: all of the registry's, with units and parameters that are one."""

from __future__ import annotations

from importlib import resources

from sfumato.privacy import Neighboring
from sfumato.report.comparison.deployment_records import deployment_records, record_units


def test_there_are_all_records_with_sound_parameters() -> None:
    records = deployment_records()
    assert len({each.slug for each in records}) == 41
    assert len(records) == 43
    for each in records:
        assert each.name
        assert each.curators
        assert each.relation in ("", "add-remove", "replace-one")
        assert all(number is None or number > 0 for number in (each.epsilon, each.delta, each.rho))
        assert bool(each.losses(Neighboring.ADD_REMOVE)) is each.complete


def test_no_unit_is_merged_with_another_that_the_record_states() -> None:
    same = {"User-level", "Person-level", "Individual-level"}
    for each in deployment_records():
        stated = each.stated_unit.lower().removesuffix("-level")
        if each.unit == "person":
            assert each.stated_unit in same or each.note, each.slug
        elif each.unit and not each.note:
            words = {"user account-month": "account-month"}
            assert words.get(stated, stated) == each.unit, each.slug
    assert "person" in record_units()
    assert "" not in record_units()


def test_parameters_that_are_no_guarantee_make_no_loss() -> None:
    by_slug = {each.slug: each for each in deployment_records()}
    assert not by_slug["uber"].complete  # its delta is a formula
    assert by_slug["uber"].formula
    assert not by_slug["safety_classifier"].complete
    both = by_slug["user_url_privacy"].losses(Neighboring.ADD_REMOVE)
    assert len(both) == 2


def test_the_licence_ships_beside_the_records() -> None:
    notice = resources.files("sfumato.report.comparison").joinpath("NOTICE.txt").read_text(encoding="utf-8")
    assert "Copyright (c) 2025 OpenDP" in notice
    assert "Permission is hereby granted" in notice
