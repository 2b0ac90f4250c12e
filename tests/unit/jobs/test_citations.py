"""Citation tokens: which sources of the pool a text cites."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.jobs.path_mentions import MISSING_LISTED_MAX, find_sids

POOL = frozenset({1, 2, 3, 5, 8})


@pytest.mark.parametrize(
    ("text", "cited", "missing"),
    [
        ("no sources", [], []),
        ("[[S:1]]", [1], []),
        ("[[S:1,3-5]]", [1, 3, 5], [4]),
        ("[[S:3]] and [[S:1]]", [3, 1], []),
        ("[[S:1]] and [[S:1]]", [1], []),
        ("[[s:1]]", [1], []),
        ("[[ S : 1 , 2 ]]", [1, 2], []),
        ("[[S:1 - 3]]", [1, 2, 3], []),
        ("[[S:1\N{EN DASH}3]]", [1, 2, 3], []),
        ("[[S:3-1]]", [1, 2, 3], []),
        ("[[S:1-999999999]]", [1, 2, 3, 5, 8], ["1-999999999"]),
        ("[[S:4-999999999999]]", [5, 8], ["4-999999999999"]),
        ("[[S:4]]", [], [4]),
        ("[[S:1,4,6-7]]", [1], [4, 6, 7]),
        ("[[S:9-999999999]]", [], ["9-999999999"]),
        ("[[S:9-28]]", [], list(range(9, 29))),
        ("[[S:9-29]]", [], ["9-29"]),
        ("[[S:29-9]]", [], ["9-29"]),
        ("[[S:4]] [[S:4]]", [], [4]),
        ("[[S:0]]", [], [0]),
        ("[S:1]", [], []),
        ("[[S:]]", [], []),
        ("[[S:a]]", [], []),
        ("[[S:1,]]", [], []),
        ("[[S:1", [], []),
        ("[[T:1]]", [], []),
        ("[[S:1]", [], []),
        ("x[[1]][[S:2]]", [2], []),
    ],
)
def test_citations_are_read_as_far_as_the_pool_goes(text, cited, missing):
    assert find_sids(text, POOL) == (cited, missing)


def test_without_a_pool_everything_is_missing():
    assert find_sids("[[S:1,2-999999999]]", frozenset()) == ([], [1, "2-999999999"])


@given(
    st.frozensets(st.integers(1, 60)),
    st.lists(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=4), max_size=5),
)
def test_what_is_cited_is_what_the_ranges_and_the_pool_share(pool, tokens):
    text = " ".join("[[S:" + ",".join(f"{a}-{b}" for a, b in token) + "]]" for token in tokens)
    meant = [range(min(a, b), max(a, b) + 1) for token in tokens for a, b in token]
    cited, missing = find_sids(text, pool)
    assert sorted(cited) == sorted({sid for sids in meant for sid in sids if sid in pool})
    gaps = [[sid for sid in sids if sid not in pool] for sids in meant]
    few = {sid for sids in gaps if len(sids) <= MISSING_LISTED_MAX for sid in sids}
    many = {f"{s[0]}-{s[-1]}" for s, g in zip(meant, gaps, strict=True) if len(g) > MISSING_LISTED_MAX}
    assert set(missing) == few | many
    assert len(missing) == len(set(missing))


@given(st.text(st.sampled_from("[]Ss:, -\N{EN DASH}0123456789x\n"), max_size=60))
def test_any_text_is_read(text):
    cited, missing = find_sids(text, POOL)
    assert set(cited) <= POOL
    assert not POOL & set(missing)


def test_the_gaps_of_ranges_over_a_large_pool_are_named_once():
    pool = frozenset(range(1, 10_001)) - {5_000}
    text = "".join(f"[[S:{first}-{10_000 + first}]]" for first in range(1, 20)) * 50
    cited, missing = find_sids(text, pool)
    assert (len(cited), missing) == (9_999, [5_000, *range(10_001, 10_020)])
