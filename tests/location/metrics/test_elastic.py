from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, elastic_metric, exponential_mechanism


def test_empty_country_is_hidden_over_more_metres() -> None:
    cells = PlaceMetric.grid(1, 8, cell=100.0)
    mass = np.array([0.4, 0.4, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02])
    elastic = elastic_metric(cells, mass=mass, required=0.1, level=2.0)
    # By hand: the share is within 100 m of places 0 to 3, and 200, 200, 300 and 400 m around 4 to 7.
    radius = np.array([100, 100, 100, 100, 200, 200, 300, 400.0])
    along = 100 * (2 / radius[1:] + 2 / radius[:-1]) / 2
    np.testing.assert_allclose(np.diagonal(elastic.distances, 1), along, rtol=1e-12)
    assert elastic.distances[0, 7] == pytest.approx(along.sum())
    assert (elastic.name, elastic.unit) == ("elastic", "1")
    mechanism = exponential_mechanism(elastic, epsilon=1.0)
    assert (mechanism.guarantee.metric, mechanism.guarantee.unit) == ("elastic", "1")


def test_what_is_refused() -> None:
    cells = PlaceMetric.grid(1, 2)
    for given, words in (
        ({"mass": [0.5, 0.6], "required": 0.1}, "prior must be probabilities"),
        ({"mass": [0.5, 0.5], "required": 1.1}, "required must be at most 1"),
        ({"mass": [0.5, 0.5], "required": 0}, "required must be positive"),
        ({"mass": [0.5, 0.5], "required": 0.1, "level": 0}, "level must be positive"),
    ):
        with pytest.raises(ParameterError, match=words):
            elastic_metric(cells, **given)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="have two places"):
        elastic_metric(PlaceMetric.grid(1, 1), mass=[1.0], required=0.5)
