"""When a client is told to come again: the time of the error, spread by chance."""

import pytest

from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.errors import (
    ConversationBusyError,
    EngineUnavailableError,
    InvalidRequestError,
    QueueFullError,
    RateLimitedError,
    ShuttingDownError,
)


def told(exc, draw):
    return retry_after_s(exc, problem_of(exc, "r"), lambda: draw)


@pytest.mark.parametrize("kind", [QueueFullError, RateLimitedError, ShuttingDownError, EngineUnavailableError])
@pytest.mark.parametrize(
    ("seconds", "draws"),
    [(0, {0.0: 0, 0.999: 0}), (0.2, {0.0: 1, 0.6: 1, 0.7: 2, 0.999: 2}), (10, {0.0: 10, 0.5: 13, 0.999: 15})],
)
def test_a_refusal_for_a_time_is_spread_over_half_of_it_in_whole_seconds(kind, seconds, draws):
    exc = kind("no", retry_after_s=seconds)
    assert {draw: told(exc, draw) for draw in draws} == draws


def test_a_refusal_without_a_time_is_soon():
    assert [told(EngineUnavailableError("no"), draw) for draw in (0.0, 0.999)] == [1, 2]


def test_what_no_crowd_is_refused_for_is_not_spread():
    assert [told(ConversationBusyError("no"), draw) for draw in (0.0, 0.999)] == [1, 1]


def test_what_will_not_pass_has_no_time():
    assert told(InvalidRequestError("no"), 0.5) is None


def test_those_who_are_refused_together_do_not_all_come_again_in_one_second():
    exc = QueueFullError("full", retry_after_s=4)
    times = [told(exc, number / 36) for number in range(36)]
    assert sorted(set(times)) == [4, 5, 6]
    assert max(times.count(second) for second in set(times)) == 12
