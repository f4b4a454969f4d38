from sfumato import anonymity


def test_nothing_here_can_be_charged() -> None:
    for name in anonymity.__all__:
        assert not hasattr(getattr(anonymity, name), "privacy_loss")
