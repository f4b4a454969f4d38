"""Designs of every kind, for tests that hold for all of them."""

from __future__ import annotations

from fractions import Fraction

from sfumato.local.surveys import (
    BinaryDesign,
    Crosswise,
    Design,
    ForcedCategory,
    ForcedResponse,
    TwoCoins,
    UnrelatedQuestion,
    Warner,
)

BINARY: dict[str, BinaryDesign] = {
    "warner": Warner(truth="7/10"),
    "warner below a half": Warner(truth=Fraction(1, 5)),
    "two fair coins": TwoCoins(),
    "two coins": TwoCoins(truth="2/3", yes="1/4"),
    "forced by a die": ForcedResponse(yes="1/6", no="1/6"),
    "forced unevenly": ForcedResponse(yes="1/4", no="1/8"),
    "unrelated": UnrelatedQuestion(sensitive="2/3", innocuous="1/4"),
    "crosswise": Crosswise(innocuous=0.25),
}
SEVERAL: dict[str, Design] = {
    "three": ForcedCategory(names=("never", "once", "often"), truth="3/5"),
    "uneven": ForcedCategory(names=(1, 2, 3, 4), truth="1/2", forced=("1/2", "1/4", "1/8", "1/8")),
    "two": ForcedCategory(names=("left", "right"), truth="1/2", forced=("1/4", "3/4")),
}
DESIGNS: dict[str, Design] = {**BINARY, **SEVERAL}
