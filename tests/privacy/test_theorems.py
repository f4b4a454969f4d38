"""The published table of theorems is complete, and what it refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, UnsupportedView
from sfumato.privacy import (
    CDP,
    ZCDP,
    AdaptiveChoice,
    AmongDecoys,
    ApproximateDP,
    BallsInBins,
    BlockBound,
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DiscretePair,
    DistanceTest,
    Exponential,
    FixedSizeSampled,
    Gaussian,
    GaussianDP,
    GaussianSparseVector,
    GroupPrivacy,
    Laplace,
    Mixture,
    Neighboring,
    NoisyIteration,
    Parallel,
    PoissonRecords,
    PoissonReplaceOne,
    PoissonStopping,
    PoissonSubsampled,
    PostProcessed,
    PrivacyLoss,
    Profile,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    RandomStopping,
    RDPCurve,
    ReportNoisyMax,
    SampledWithReplacement,
    SeparatedPoisson,
    Shuffled,
    Skellam,
    SmoothGaussian,
    SmoothLaplace,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    SupportResponse,
    ThresholdedSampling,
    ThresholdedSelection,
    TradeOff,
    TruncatedPoisson,
)
from sfumato.privacy.catalog import LOSS_CLASSES
from sfumato.privacy.loss import Composed, Repeated
from tests.cases import cases

TABLES = (Path(__file__).parents[2] / "docs" / "theorems.md").read_text()


def replaced(relation: Neighboring) -> PrivacyLoss:
    """It has one relation whatever its part has, so that it adds to losses under that one only."""
    loss = PoissonReplaceOne(Gaussian(1.0), 0.1)
    _ = loss + PureDP(1.0, neighboring=relation)
    return loss


SAMPLES: dict[str, Callable[[Neighboring], PrivacyLoss]] = {
    "Gaussian": lambda relation: Gaussian(1.0, neighboring=relation),
    "Laplace": lambda relation: Laplace(1.0, neighboring=relation),
    "DiscreteGaussian": lambda relation: DiscreteGaussian(1, neighboring=relation),
    "DiscreteGaussianSum": lambda relation: DiscreteGaussianSum(2, 3, 10, 4, neighboring=relation),
    "DiscreteGaussianVector": lambda relation: DiscreteGaussianVector(3, 10, neighboring=relation),
    "Skellam": lambda relation: Skellam(20, 3, 10, neighboring=relation),
    "DiscreteLaplace": lambda relation: DiscreteLaplace(1, neighboring=relation),
    "PureDP": lambda relation: PureDP(1.0, neighboring=relation),
    "ApproximateDP": lambda relation: ApproximateDP(1.0, 1e-9, neighboring=relation),
    "CDP": lambda relation: CDP(0.5, 1.0, neighboring=relation),
    "ZCDP": lambda relation: ZCDP(1.0, neighboring=relation),
    "GaussianDP": lambda relation: GaussianDP(1.0, neighboring=relation),
    "NoisyIteration": lambda relation: NoisyIteration(2.0, 10, neighboring=relation),
    "RDPCurve": lambda relation: RDPCurve([2, 9], [0.1, 0.5], neighboring=relation),
    "DiscretePair": lambda relation: DiscretePair([0.75, 0.25], [0.25, 0.75], neighboring=relation),
    "Profile": lambda relation: Profile([0.5, 1.0], [0.1, 1e-7], neighboring=relation),
    "TradeOff": lambda relation: TradeOff([0, 0.25, 1], [1, 0.25, 0], neighboring=relation),
    "RandomizedResponse": lambda relation: RandomizedResponse(1.0, 5, neighboring=relation),
    "SupportResponse": lambda relation: SupportResponse(1.0, 0.25, 0.0625, neighboring=relation),
    "ThresholdedSampling": lambda relation: ThresholdedSampling(0.25, 20, neighboring=relation),
    "Staircase": lambda relation: Staircase(1.0, neighboring=relation),
    "Exponential": lambda relation: Exponential(1.0, neighboring=relation),
    "ReportNoisyMax": lambda relation: ReportNoisyMax(2.0, neighboring=relation),
    "SparseVector": lambda relation: SparseVector(2.0, 4.0, neighboring=relation),
    "GaussianSparseVector": lambda relation: GaussianSparseVector(5.0, 9.0, 100, neighboring=relation),
    "SmoothSensitivity": lambda relation: SmoothSensitivity(2.0, smoothness=0.1, neighboring=relation),
    "SmoothLaplace": lambda relation: SmoothLaplace(2.0, smoothness=0.1, neighboring=relation),
    "SmoothGaussian": lambda relation: SmoothGaussian(2.0, smoothness=0.01, neighboring=relation),
    "ThresholdedSelection": lambda relation: ThresholdedSelection(Laplace(1.0, neighboring=relation), 40),
    "DistanceTest": lambda relation: DistanceTest(Laplace(1.0, neighboring=relation), 40),
    "RandomStopping": lambda relation: RandomStopping(PureDP(1.0, neighboring=relation), 1.0, 0.1),
    "PoissonStopping": lambda relation: PoissonStopping(PureDP(1.0, neighboring=relation), 3.0),
    "GroupPrivacy": lambda relation: GroupPrivacy(
        Laplace(3.0, neighboring=relation), 2, neighboring=relation
    ),
    "PoissonSubsampled": lambda relation: PoissonSubsampled(PureDP(1.0, neighboring=relation), 0.1),
    "PoissonReplaceOne": replaced,
    "PoissonRecords": lambda relation: PoissonRecords(PureDP(1.0, neighboring=relation), 0.1, 3),
    "RandomAllocation": lambda relation: RandomAllocation(PureDP(1.0, neighboring=relation), 10),
    "BallsInBins": lambda relation: BallsInBins(PureDP(1.0, neighboring=relation), 10, epochs=3),
    "SeparatedPoisson": lambda relation: SeparatedPoisson(PureDP(1.0, neighboring=relation), 0.1, 5, steps=5),
    "BlockBound": lambda relation: BlockBound(RandomAllocation(PureDP(1.0, neighboring=relation), 10)),
    "Shuffled": lambda relation: Shuffled(PureDP(1.0, neighboring=relation), 100),
    "AmongDecoys": lambda relation: AmongDecoys(RandomizedResponse(1.0, 5, neighboring=relation), 100, 0.5),
    "PostProcessed": lambda relation: PostProcessed(PureDP(1.0, neighboring=relation)),
    "Parallel": lambda relation: Parallel(
        (PureDP(1.0, neighboring=relation), Laplace(2.0, neighboring=relation))
    ),
    "Mixture": lambda relation: Mixture(
        (PureDP(1.0, neighboring=relation), Laplace(2.0, neighboring=relation)), (0.5, 0.5), index_public=True
    ),
    "FixedSizeSampled": lambda relation: FixedSizeSampled(PureDP(1.0, neighboring=relation), 10, 100),
    "AdaptiveChoice": lambda relation: AdaptiveChoice(
        (PureDP(1.0, neighboring=relation), Laplace(2.0, neighboring=relation))
    ),
    "TruncatedPoisson": lambda relation: TruncatedPoisson(
        PureDP(1.0, neighboring=relation), 0.1, sample_size=400, population_size=1000
    ),
    "SampledWithReplacement": lambda relation: SampledWithReplacement(
        PureDP(1.0, neighboring=relation), 10, 100
    ),
    "Repeated": lambda relation: PureDP(1.0, neighboring=relation) * 2,
    "Composed": lambda relation: PureDP(1.0, neighboring=relation) + ZCDP(1.0, neighboring=relation),
}
VIEWS: dict[str, Callable[[PrivacyLoss], object]] = {
    "profile": lambda loss: loss.log_profile(0.5),
    "rdp": lambda loss: loss.rdp_curve(np.array([2.0])),
    "zcdp": lambda loss: loss.zcdp(),
    "gdp": lambda loss: loss.gdp(),
    "pure": lambda loss: loss.pure(),
    "dominating pair": lambda loss: loss.dominating_pair(),
}


def table(heading: str) -> tuple[list[str], dict[str, list[str]]]:
    """Read the first table under a heading: its columns, and its rows by name."""
    section = TABLES.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip().strip("`") for cell in line] for line in lines]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def test_every_loss_has_its_rows() -> None:
    names = {leaf.__name__ for leaf in LOSS_CLASSES}
    assert set(SAMPLES) == names | {Repeated.__name__, Composed.__name__}
    columns, rows = table("Loss and neighboring relation")
    assert columns == ["add/remove", "replace-one", "zero-out", "further"]
    assert set(rows) == set(SAMPLES) | {"parts under another relation"}
    columns, rows = table("Loss and view")
    assert columns == list(VIEWS)
    assert set(rows) == names


@pytest.mark.parametrize("relation", Neighboring)
def test_relations_hold_or_are_refused_as_published(relation: Neighboring) -> None:
    columns, rows = table("Loss and neighboring relation")
    column = [str(r).split(" ")[0] for r in Neighboring].index(str(relation).split(" ")[0])
    assert len(columns) == len(Neighboring) + 1
    for name, cells in rows.items():
        assert cells[column]
        if cells[column] != "refused":
            loss = SAMPLES[name](relation)
            assert loss.neighboring is relation
            assert 0 < loss.epsilon(1e-6) < np.inf
            continue
        with pytest.raises(NeighboringMismatch):
            SAMPLES.get(name, mixed)(relation)


def mixed(relation: Neighboring) -> PrivacyLoss:
    """Compose with a part under each other relation; the last one tried must be refused like the first."""
    first, *others = (SAMPLES["ZCDP"](other) for other in Neighboring if other is not relation)
    with pytest.raises(NeighboringMismatch):
        _ = SAMPLES["PureDP"](relation) + first
    return sum(others, SAMPLES["PureDP"](relation))


@cases("name", [leaf.__name__ for leaf in LOSS_CLASSES])
def test_views_hold_or_are_refused_as_published(name: str) -> None:
    columns, rows = table("Loss and view")
    _, relations = table("Loss and neighboring relation")
    relation = next(r for r, cell in zip(Neighboring, relations[name], strict=False) if cell != "refused")
    loss = SAMPLES[name](relation)
    for view, cell in zip(columns, rows[name], strict=True):
        if cell == "refused":
            with pytest.raises(UnsupportedView, match=f"{name}.* has no {view} view"):
                VIEWS[view](loss)
        else:
            VIEWS[view](loss)
