r"""How much one report contributes to a table's coefficients.

A report about a table comes from a drawn respondent. For protocols whose estimates of any two cells are
correlated alike, its part in the estimated cells has the covariance matrix :math:`\mathrm{diag}(a + b f) +
c\,11^T + g (f1^T + 1f^T) - ff^T`, f being the true cells: see `LevelMoments`. Coefficients but the constant
one are sums with weights that add up to 0, so c and g do not appear in them: with L cells the part has the
covariance :math:`a L \delta_{jk} + b E[\varphi_j \varphi_k] - \theta_j \theta_k`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self, final

from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.local_hashing import OptimalLocalHashing
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.randomized_response import RandomizedResponse
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.ranges.level_moments import LevelMoments

__all__ = ["TableNoise", "best_oracle"]

_KINDS: Final[tuple[type[Oracle[Any]], ...]] = (RandomizedResponse, SubsetSelection, OptimalLocalHashing)
_CLOSE: Final = 1.05


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableNoise:
    """The numbers a L and b of a table.

    Parameters
    ----------
    own, share : float
    """

    own: float
    share: float

    @classmethod
    def of(cls, oracle: Oracle[Any]) -> Self:
        """Return those of a frequency oracle over the table's cells.

        Raises
        ------
        ParameterError
            If its estimates of any two cells are not correlated alike.
        """
        moments = LevelMoments.of(oracle)
        return cls(own=moments.own * len(oracle.domain), share=moments.share)

    @property
    def even(self) -> float:
        """The variance of a coefficient from one report, if all cells are alike frequent."""
        return self.own + self.share


@lru_cache(maxsize=4096)
def best_oracle(epsilon: float, cells: int) -> type[Oracle[Any]]:
    """Return a table's frequency oracle: of those within 5 % of the smallest error, that with short reports.

    Examples
    --------
    >>> best_oracle(1.0, 4).__name__, best_oracle(1.0, 4096).__name__
    ('RandomizedResponse', 'OptimalLocalHashing')
    """
    domain = Domain(range(cells))
    made = [kind(epsilon=epsilon, domain=domain) for kind in _KINDS]
    errors = [TableNoise.of(oracle).even for oracle in made]
    close = [oracle for oracle, error in zip(made, errors, strict=True) if error <= _CLOSE * min(errors)]
    return type(min(close, key=lambda oracle: oracle.device.width))
