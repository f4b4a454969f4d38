"""Which of scikit-learn's own checks the private estimators do not meet, and why."""

from __future__ import annotations

from typing import Any, Final

from sklearn.utils import get_tags

__all__ = ["expected_failed_checks"]

_EMPTY: Final = "no rows are data too: they give a private model, and an error would show that there are none"
_OBJECT: Final = "what is no number counts as NaN, and an error would show that it is there"
_NAN: Final = (
    "a NaN or infinite response is counted by a fixed rule, and an error would show that it is there"
)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn's ``check_estimator`` that would break a guarantee, with the reason.

    Parameters
    ----------
    estimator : PrivateEstimator

    Returns
    -------
    dict
        From the name of a check to the reason, as ``check_estimator`` takes it.

    Examples
    --------
    >>> from sfumato.learning import PCA, LinearRegression
    >>> sorted(expected_failed_checks(PCA()))
    ['check_dtype_object', 'check_estimators_empty_data_messages']
    >>> "check_supervised_y_no_nan" in expected_failed_checks(LinearRegression())
    True
    """
    found = {"check_estimators_empty_data_messages": _EMPTY, "check_dtype_object": _OBJECT}
    if get_tags(estimator).target_tags.required:
        found["check_supervised_y_no_nan"] = _NAN
    return found
