"""How several texts share the room of one JSON block."""

from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.timeline.truncation import json_bytes, truncate_evenly


def test_texts_that_fit_stay_whole():
    assert truncate_evenly(["one", "two"], 6) == ["one", "two"]


def test_what_a_short_text_leaves_goes_to_the_long_ones():
    long = "x" * 1000
    short, first, second = truncate_evenly(["short", long, long], 205)
    assert (short, len(first), len(second)) == ("short", 84 + 15, 84 + 15) or len(first) == len(second)
    assert json_bytes(first) + json_bytes(second) - 4 in range(198, 201)


def test_a_text_without_room_for_its_mark_is_empty():
    assert truncate_evenly(["x" * 100], 10) == [""]


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(0, 900))
def test_the_room_is_never_exceeded(texts, room):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    assert sum(json_bytes(text) - 2 for text in truncate_evenly(texts, room)) <= room
