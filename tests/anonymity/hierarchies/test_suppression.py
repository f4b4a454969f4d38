from sfumato.anonymity.hierarchies.suppression import Suppression


def test_every_value_is_suppressed_above() -> None:
    found = Suppression().hierarchy(["b", "a"])
    assert found.labels == (("b", "a"), ("*",))
    assert found.levels[1].tolist() == [0, 0]
