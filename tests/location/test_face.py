from sfumato import location


def test_nothing_here_can_be_charged() -> None:
    for name in location.__all__:
        assert not hasattr(getattr(location, name), "privacy_loss")
