"""What every memory must be when a test leaves it."""


def assert_sound(memory):
    """Nothing of the truth is damaged, and all that is derived from it agrees with it."""
    report = memory.check()
    assert report["damage"] == []
    assert report["disagreements"] == []
    return report
