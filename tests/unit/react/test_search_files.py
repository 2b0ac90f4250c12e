"""The matcher of a file search: it gives up the interpreter, ends in time, and sees every line once."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.calls.direct_tool import ToolRefusedError
from proofbox.service.react.search_files import STRETCH_CHARS, _Clock, _compile_pattern, _matches, _stretches

ENDLESS = _compile_pattern("content_regex", "(a+)+$")
LINE = b"a" * 5_000 + b"!\n"
NONE = _Clock(0, 2)


def test_other_threads_go_on_while_a_pattern_runs_and_its_own_ends():
    """If the matcher held the interpreter's lock, this thread would wake up once or twice, not all the time."""
    begun = threading.Event()

    def match() -> None:
        begun.set()
        with pytest.raises(ToolRefusedError, match="content_regex"):
            _matches(LINE, ENDLESS, _Clock(0.5, 0.5), NONE)

    thread = threading.Thread(target=match)
    thread.start()
    begun.wait()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1

    assert turns > 20


def test_the_time_is_one_budget_of_all_patterns_of_a_call():
    clock = _Clock(0.05, 2)

    with pytest.raises(ToolRefusedError):
        _matches(LINE, ENDLESS, clock, NONE)
    with pytest.raises(ToolRefusedError, match="2 s") as refused:
        _matches(LINE, ENDLESS, clock, NONE)

    assert (refused.value.code, clock.left_s <= 0) == ("regex_timeout", True)


class WaitingPattern:
    """A pattern whose search waits for a processor."""

    def search(self, _text, _at, **_more):
        time.sleep(0.2)


def test_the_time_is_that_of_the_processor_so_a_busy_machine_takes_none_of_it():
    clock = _Clock(0.1, 0.1)

    for _ in range(3):
        clock.search("content_regex", WaitingPattern(), "text")

    assert clock.left_s > 0


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?:a|aa)+$", "(?=(a+)+b)", "(?:a?){50}a{50}!?b"])
def test_several_files_together_take_no_more_processor_time_than_there_is(pattern):
    limit_s = 0.2
    clock = _Clock(limit_s, limit_s)
    files = [LINE * 10] * 5
    compiled = _compile_pattern("content_regex", pattern)

    def search() -> None:
        for data in files:
            _matches(data, compiled, clock, NONE)

    with pytest.raises(ToolRefusedError, match="processor time"):
        search()

    assert clock.left_s <= 0  # unbounded, each of the files takes hours


@given(st.lists(st.integers(0, STRETCH_CHARS * 2), max_size=6))
def test_stretches_are_the_text_and_end_at_line_ends_where_they_can(lengths):
    text = "\n".join("x" * length for length in lengths)

    stretches = list(_stretches(text))

    assert "".join(stretches) == text
    assert [s for s in stretches[:-1] if not s.endswith("\n") and "\n" in s] == []
    assert [s for s in stretches if not 0 < len(s) <= STRETCH_CHARS] == []


def test_many_short_searches_end_when_the_time_is_used_up():
    clock = _Clock(0.02, 0.02)
    data = b"some words, none of which is found\n" * 50_000
    compiled = _compile_pattern("content_regex", "no.such.word")

    def search() -> None:
        for _ in range(10_000):
            _matches(data, compiled, clock, NONE)

    with pytest.raises(ToolRefusedError, match="processor time"):
        search()


def test_lines_are_counted_over_all_stretches():
    data = b"x\n" * STRETCH_CHARS + b"needle\n"

    found = _matches(data, _compile_pattern("content_regex", "^needle$"), _Clock(2, 2), NONE)
    assert found.first == [(STRETCH_CHARS + 1, "needle")]


def test_a_long_line_is_shown_where_it_matches():
    data = b"a" * 50_000 + b"needle" + b"b" * 10_000 + b"\r\nneedle\r\n"

    [(first, text), second] = _matches(data, _compile_pattern("content_regex", "needle"), _Clock(2, 2), NONE).first

    assert (first, len(text), second) == (1, 200, (2, "needle"))
    assert text.startswith("…aaa")
    assert "needlebb" in text


@pytest.mark.parametrize(("counting", "more", "is_counted"), [(_Clock(2, 2), 2_995, True), (NONE, 0, False)])
def test_lines_that_are_not_shown_are_counted_as_long_as_there_is_time(counting, more, is_counted):
    found = _matches(b"needle\n" * 3_000, _compile_pattern("content_regex", "needle"), _Clock(2, 2), counting)

    assert (len(found.first), found.more, found.is_counted) == (5, more, is_counted)
