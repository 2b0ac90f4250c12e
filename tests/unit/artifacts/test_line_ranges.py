"""Stretches of lines are read out of texts of any size, however their bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.artifacts.line_ranges import (
    LAST,
    Excerpt,
    Stretch,
    excerpt,
    parse_stretch,
)


async def read(content, first, last, sizes=(7,)):
    async def pieces():
        at = turn = 0
        while at < len(content):
            yield content[at : at + sizes[turn % len(sizes)]]
            at += sizes[turn % len(sizes)]
            turn += 1

    return await excerpt(pieces(), Stretch("p", first, last))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("fi:turn_1.files/a#L1-9", Stretch("fi:turn_1.files/a", 1, 9)),
        ("a#L2-3#L4-4", Stretch("a#L2-3", 4, 4)),
        ("a#L7", Stretch("a", 7, 7)),
        ("a#L7-", Stretch("a", 7, LAST)),
        ("a#L7-L9", Stretch("a", 7, 9)),
        ("a#B0-20479", Stretch("a", 0, 20_479, "bytes")),
        ("a#B5-", Stretch("a", 5, LAST, "bytes")),
        ("a#L5-2", Stretch("a", 5, 2)),
        *((path, None) for path in ("a", "a#L", "a#L-2", "a#L1-2 ", "#L1-2", "a#L1-B2", "a#l1", "a#1-2")),
    ],
)
def test_a_path_asks_for_lines_or_bytes(path, expected):
    assert parse_stretch(path) == expected


@given(
    st.lists(st.text(st.sampled_from("ab ä\r"), max_size=6), max_size=12),
    st.booleans(),
    st.integers(1, 14),
    st.integers(0, 14),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
async def test_an_excerpt_is_what_splitting_the_whole_text_gives(lines, ends, first, more, sizes):
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    whole = text.split("\n")
    total = len(whole) - (not whole[-1])
    found = await read(text.encode(), first, first + more, sizes)
    last = min(first + more, total)
    if first > total:
        assert found == Excerpt("", first, 0, total)
    else:
        kept = "\n".join(whole[first - 1 : last]) + ("\n" if last < len(whole) else "")
        assert found == Excerpt(kept, first, last, total)


async def test_a_line_that_is_longer_than_a_block_is_cut():
    found = await read(b"x\n" + b"y" * 100_000 + b"\nz\n", 2, 3, (1_000,))
    assert (found.first, found.last, found.total) == (2, 2, 3)
    assert found.text == "y" * 20_480 + "\n...[truncated]"
