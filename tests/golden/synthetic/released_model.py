"""A released model, from fixed numbers."""

from __future__ import annotations

import datetime as dt

import numpy as np

from sfumato.privacy import ZCDP, Neighboring
from sfumato.synthetic import Categorical, Ordered, PublicPrior, SyntheticModel, TableDomain
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.calibration import Calibration
from sfumato.synthetic.graphical_model.dual_fit import FittedModel
from sfumato.synthetic.graphical_model.junction_tree import junction_tree

__all__ = ["files", "released_with_prior", "released_with_zeros"]

DOMAIN = TableDomain(
    age=Ordered(0, 100, bins=4, missing=True),
    born=Ordered(edges=[dt.date(1900, 1, 1), dt.date(1950, 1, 1), dt.date(2000, 1, 1)]),
    sex=Categorical(["f", "m"], other=True),
    children=Ordered.integers(0, 2),
)
GROUPS = CellGroups([np.array([0, 1, 2, 2, 2]), np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1, 2])])
THETAS = {
    (0,): np.array([0.5, -0.25, 1.0]),
    (1,): np.array([0.0, 0.125]),
    (2,): np.array([1.5, 1.25, -30.0]),
    (3,): np.array([0.1, 0.2, 0.3]),
    (0, 2): np.array([[0.5, 0.0, -1.0], [0.0, 0.75, 0.0], [-2.5, 0.0, 1e-9]]),
}


def files() -> dict[str, bytes]:
    """Return the bytes of each file by name."""
    scopes = list(THETAS)
    model = Calibration(junction_tree(GROUPS.sizes, scopes), scopes)(list(THETAS.values()))
    released = SyntheticModel(
        value=FittedModel(model, THETAS, 1234.5, 0.0625, 17),
        domain=DOMAIN,
        groups=GROUPS,
        loss=ZCDP(0.015, neighboring=Neighboring.REPLACE_ONE),
        neighboring=Neighboring.REPLACE_ONE,
    )
    return {
        "synthetic-model.json": released.to_json().encode(),
        "synthetic-model-prior.json": released_with_prior().to_json().encode(),
        "synthetic-model-zeros.json": released_with_zeros().to_json().encode(),
    }


def released_with_zeros() -> SyntheticModel:
    """Return a model over a domain with structural zeros, of whole-number weights."""
    domain = DOMAIN.with_structural_zeros(
        {"age": ["[0, 25)"], "children": [1, 2]}, {"sex": ["(other)"], "born": ["[1900-01-01, 1950-01-01)"]}
    )
    base = BaseMeasure.from_zeros(domain.sizes, domain.structural_zeros).grouped(GROUPS.groups).factors
    scopes = list(THETAS)
    tree = junction_tree(GROUPS.sizes, (*scopes, *base))
    model = Calibration(tree, scopes, base)(list(THETAS.values()))
    return SyntheticModel(
        value=FittedModel(model, THETAS, 1234.5, 0.0625, 17, base),
        domain=domain,
        groups=GROUPS,
        loss=ZCDP(0.015, neighboring=Neighboring.REPLACE_ONE),
        neighboring=Neighboring.REPLACE_ONE,
    )


def released_with_prior() -> SyntheticModel:
    """Return a model relative to a prior, over a domain with a structural zero."""
    domain = DOMAIN.with_structural_zeros({"born": ["[1900-01-01, 1950-01-01)"], "children": [2]})
    prior = PublicPrior(domain, {(1,): np.array([0.5, -0.5]), (2, 3): np.arange(9.0).reshape(3, 3) / 8})
    base = prior.base(domain).grouped(GROUPS.groups).factors
    scopes = list(THETAS)
    tree = junction_tree(GROUPS.sizes, (*scopes, *base))
    model = Calibration(tree, scopes, base)(list(THETAS.values()))
    return SyntheticModel(
        value=FittedModel(model, THETAS, 1234.5, 0.0625, 17, base, 0.5),
        domain=domain,
        groups=GROUPS,
        prior=prior,
        loss=ZCDP(0.015, neighboring=Neighboring.REPLACE_ONE),
        neighboring=Neighboring.REPLACE_ONE,
    )
