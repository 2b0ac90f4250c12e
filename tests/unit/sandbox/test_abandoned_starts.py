"""Containers that were created and never started are found by how long they have been there."""

from proofbox.service.sandbox.docker.abandoned_starts import AbandonedStarts


class Times:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_container_is_abandoned_when_no_start_can_take_that_long():
    clock = Times()
    abandoned = AbandonedStarts(30, clock)
    assert abandoned.find(["a"]) == set()
    clock.now += 60
    assert abandoned.find(["a"]) == set()
    clock.now += 0.1
    assert abandoned.find(["a", "b"]) == {"a"}


def test_one_that_was_started_meanwhile_begins_anew():
    clock = Times()
    abandoned = AbandonedStarts(30, clock)
    abandoned.find(["a"])
    abandoned.find([])
    clock.now += 61
    assert abandoned.find(["a"]) == set()
