"""Plan how many respondents a mean needs for an interval of a wanted width."""

from __future__ import annotations

import math

from sfumato import _check
from sfumato.local.surveys.inference.sample_size import MAX_RESPONDENTS, Plan, smallest_count
from sfumato.local.surveys.quantitative.number_design import NumberDesign
from sfumato.local.surveys.quantitative.number_estimate import MeanMethod, mean_half_width

__all__ = ["respondents_for_mean"]


def respondents_for_mean(
    design: NumberDesign, margin: float, *, level: float = 0.95, method: MeanMethod = "hoeffding"
) -> Plan:
    r"""Return the smallest number of respondents for an interval of a mean with at most a half-width.

    Parameters
    ----------
    design : NumberDesign
    margin : float
        Above 0 and below half of the distance of the design's bounds.
    level : float
        Of the interval.
    method : {"hoeffding", "bernstein", "wald"}
        Of the interval. Whatever is answered, those of the first two are no wider. For the third it is the
        width to expect for the distribution with the largest variance.

    Returns
    -------
    Plan
        The margin is met by this number and not by one less.

    Notes
    -----
    The sample variance of :math:`n` numbers within a range :math:`R` is at most
    :math:`\frac{n}{n-1}\frac{R^2}{4}`, so that Bernstein's interval is no wider than with that.

    Examples
    --------
    >>> from sfumato.local.surveys import UnrelatedNumber, respondents_for_mean
    >>> design = UnrelatedNumber(lower=0, upper=4, truth="3/5", other={n: "1/5" for n in range(5)})
    >>> plans = [respondents_for_mean(design, 0.5, method=method) for method in ("hoeffding", "wald")]
    >>> [plan.respondents for plan in plans], [plan.exact for plan in plans]
    ([328, 137], [True, False])
    """
    _check.instance("design", design, NumberDesign, "respondents_for_margin plans for categories")
    wanted = _check.positive("margin", margin)
    half_range = (design.upper - design.lower) / 2
    if wanted >= half_range:
        remedy = "lower it: that one is met without respondents"
        _check.refuse("margin", f"be below {half_range:g}", margin, remedy)
    low, high = design.weight_bounds
    width, worst = high - low, design.worst_variance

    def half(count: int) -> float:
        variance = worst if method == "wald" else width**2 / 4 * (count / (count - 1))
        return mean_half_width(width, variance, count, level, method)

    # Hoeffding's margin falls with the root of the number, and Bernstein's is at most a few times that.
    guess = max(2, math.ceil((half(10**6) / wanted) ** 2 * 10**6)) if half(10**6) < 1e6 * wanted else None
    if guess is None or guess > MAX_RESPONDENTS:
        remedy = "accept a wider one, or take a design with more truth"
        found = "more are needed"
        _check.refuse_state("margin", "be met by at most 10**9 respondents", found, remedy)
    found_count = smallest_count(lambda count: half(count) <= wanted, guess)
    return Plan(respondents=found_count, achieved=half(found_count), exact=method != "wald")
