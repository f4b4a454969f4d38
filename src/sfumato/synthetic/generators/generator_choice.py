"""Generators by the names that people write."""

from __future__ import annotations

from typing import Any, Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.generators.adaptive_iterative import AIM
from sfumato.synthetic.generators.generator import Generator
from sfumato.synthetic.generators.independent_marginals import IndependentMarginals
from sfumato.synthetic.generators.minimum_spanning_tree import MST
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["AUTO", "GENERATORS", "generator_named"]

AUTO: Final = "auto"
GENERATORS: Final[dict[str, type[Generator]]] = {
    "aim": AIM,
    "mst": MST,
    "independent": IndependentMarginals,
}
"""The most faithful first."""


def generator_named(method: str, domain: TableDomain, workload: Marginals | None) -> type[Generator]:
    """Return the generator of that name; of ``"auto"`` the first that can take the domain and workload.

    Parameters
    ----------
    method : str
    domain : TableDomain
    workload : Marginals, optional

    Returns
    -------
    type of Generator
        It follows from public sizes alone.

    Raises
    ------
    ParameterError
        If there is none of that name.

    Examples
    --------
    >>> generator_named("auto", TableDomain(age=["young", "old"], sex=["f", "m"]), None).__name__
    'AIM'
    """
    if workload is not None:
        workload.cliques(domain)  # its columns must be there
    asked: object = method
    if asked != AUTO:
        if not isinstance(asked, str) or method not in GENERATORS:
            _check.refuse("method", f"be one of {[AUTO, *GENERATORS]}", method, "take one of these")
        return GENERATORS[method]
    if len(domain) == 1:
        return IndependentMarginals
    given: dict[str, Any] = {} if workload is None else {"workload": workload}
    for generator in (AIM, MST):
        try:
            generator(domain=domain, rho=1, neighboring=Neighboring.ADD_REMOVE, **given)
        except ParameterError:
            given = {}
            continue
        return generator
    return IndependentMarginals
