from sfumato import pufferfish


def test_nothing_here_is_a_differential_privacy_loss() -> None:
    for name in pufferfish.__all__:
        assert not hasattr(getattr(pufferfish, name), "privacy_loss")
