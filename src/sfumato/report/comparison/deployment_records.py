"""The records of the Differential Privacy Deployments Registry, with units by one set of names."""

from __future__ import annotations

import datetime as dt
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import final

from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.leaves.declared import ZCDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.report.pages.stated_loss import stated_loss

__all__ = ["DeploymentRecord", "deployment_records", "record_units"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRecord:
    """What a public record states of one deployment, or of one part of it that has parameters of its own.

    Parameters
    ----------
    slug, name : str
        The record's file, and the deployment's name.
    curators : tuple of str
    published : datetime.date
    stated_unit : str
        As the record has it; "" if it has none.
    unit : str
        By one set of names; "" where the record states none, or several under the same parameters.
    part, note : str
        Which part of the deployment is meant, and where the unit differs from what is stated, and why.
    relation : str
        "add-remove" or "replace-one" where its details state it; else "".
    variant : str
        Such as "Pure DP".
    epsilon, delta, rho : float or None
    formula : str
        A parameter that is no number.

    Examples
    --------
    >>> from sfumato.report.comparison.deployment_records import deployment_records
    >>> record = next(each for each in deployment_records() if each.slug == "google_mobility")
    >>> record.unit, record.epsilon, record.relation
    ('user-day', 2.64, 'add-remove')
    """

    slug: str
    name: str
    curators: tuple[str, ...]
    published: dt.date
    stated_unit: str
    unit: str
    part: str = ""
    note: str = ""
    relation: str = ""
    variant: str = ""
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    formula: str = ""

    @property
    def complete(self) -> bool:
        """Whether its parameters are a guarantee: a rho, an epsilon with a delta, or a pure one."""
        if self.rho is not None:
            return True
        return self.epsilon is not None and (self.delta is not None or self.variant == "Pure DP")

    def losses(self, relation: Neighboring) -> tuple[PrivacyLoss, ...]:
        """Return the losses of what it states, each of which holds; none if it is not complete.

        Parameters
        ----------
        relation : Neighboring
            Which the numbers are read under.

        Returns
        -------
        tuple of PrivacyLoss
        """
        if not self.complete:
            return ()
        found: list[PrivacyLoss] = []
        if self.epsilon is not None and (self.delta is not None or self.rho is None):
            stated = Guarantee(neighboring=relation, epsilon=self.epsilon, delta=self.delta)
            found.append(stated_loss(stated))
        if self.rho is not None:
            found.append(ZCDP(self.rho, neighboring=relation))
        return tuple(found)


@lru_cache(maxsize=1)
def deployment_records() -> tuple[DeploymentRecord, ...]:
    """Return all records.

    Returns
    -------
    tuple of DeploymentRecord
        By their files; 41 records, two of them in two parts.
    """
    file = resources.files(__package__).joinpath("records.toml")
    read = tomllib.loads(file.read_text(encoding="utf-8"))["record"]
    return tuple(DeploymentRecord(**{**each, "curators": tuple(each["curators"])}) for each in read)


def record_units() -> tuple[str, ...]:
    """Return the names of the units that records have.

    Returns
    -------
    tuple of str
    """
    return tuple(sorted({each.unit for each in deployment_records()} - {""}))
