"""Unified diffs: what difflib writes is applied exactly, what does not fit changes nothing."""

import contextlib
import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.service.react.hunks import HunkHeaderError, HunkMismatchError
from proofbox.service.react.patch_forms import apply_diff
from proofbox.service.react.unified_diff import HUNKS_MAX
from tests.support.examples import examples

LINE_ENDS = st.sampled_from(["\n", "\r\n"])
WORDS = st.sampled_from(["", "a", "b", "-- x", "++ y", "@@", " b", "\\", "ünï", "a\u2028b", "a\x0bb", "\r"])
# Few different lines, so that texts share some and repeat others.
LINES = st.lists(st.tuples(st.one_of(WORDS, st.text("ab+-@ \\", max_size=4)), LINE_ENDS), max_size=14)


def text_of(lines: list[tuple[str, str]], *, ended: bool) -> str:
    text = "".join(word + end for word, end in lines)
    return text if ended or not lines else text.removesuffix(lines[-1][1])


TEXTS = st.builds(text_of, LINES, ended=st.booleans())


def diff_of(old: str, new: str, context: int = 3) -> str:
    """What `diff -u` says, with its mark for a missing line feed at the end."""
    said = difflib.unified_diff(_split(old), _split(new), "a/f.txt", "b/f.txt", n=context)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in said)


def _split(text: str) -> list[str]:
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


@settings(max_examples=examples(500))
@given(TEXTS, TEXTS)
def test_the_diff_of_two_texts_turns_one_into_the_other(old, new):
    patch = diff_of(old, new)

    assert patch == "" or apply_diff(old, patch).text == new


@settings(max_examples=examples(300))
@given(TEXTS, TEXTS)
def test_a_diff_without_context_does_as_well_where_line_ends_are_alike(old, new):
    old, new = old.replace("\r", ""), new.replace("\r", "")
    patch = diff_of(old, new, context=0)

    assert patch == "" or apply_diff(old, patch).text == new


@settings(max_examples=examples(300))
@given(TEXTS, TEXTS)
def test_a_diff_that_lost_its_cr_changes_a_file_with_crlf_and_keeps_its_line_ends(old, new):
    old, new = old.replace("\r", ""), new.replace("\r", "")
    patch = diff_of(old, new)

    assert patch == "" or apply_diff(old.replace("\n", "\r\n"), patch).text == new.replace(
        "\n", "\r\n" if "\n" in old else "\n"
    )


@settings(max_examples=examples(300))
@given(TEXTS, st.text("@-+ ,0123456789ab\n\\", max_size=80))
def test_any_patch_is_applied_or_refused_in_one_of_the_two_ways(old, patch):
    with contextlib.suppress(HunkHeaderError, HunkMismatchError):
        apply_diff(old, "@@" + patch)


OLD = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("patch", "new"),
    [
        pytest.param("@@ -1,0 +2 @@\n+1½\n", "one\n1½\ntwo\nthree\nfour\nfive\n", id="added after a line"),
        pytest.param("@@ -0,0 +1 @@\n+zero\n", "zero\n" + OLD, id="added at the start"),
        pytest.param("@@ -5,1 +5,2 @@\n five\n+six\n", OLD + "six\n", id="added at the end"),
        pytest.param("--- a/x\n+++ b/x\n@@ -2 +2 @@\n-two\n+2\n", OLD.replace("two", "2"), id="no counts"),
        pytest.param("+++ b/x\n@@ -2 +2 @@ def f():\n-two\n+2\n", OLD.replace("two", "2"), id="section heading"),
        pytest.param("@@ -2,9 +2,7 @@\n two\n-three\n", OLD.replace("three\n", ""), id="counts too high"),
        pytest.param("@@ -2,1 +2,1 @@\n two\n-three\n four\n", OLD.replace("three\n", ""), id="counts too low"),
        pytest.param("@@ -2,4 +2,3 @@\n two\n-three\n\n", OLD.replace("three\n", ""), id="blank line at the end"),
        pytest.param("@@ -2 +2 @@\n-two\n+2", OLD.replace("two", "2"), id="no line feed at the patch's end"),
        pytest.param("@@ -2 +2 @@\r\n-two\r\n+2\r\n", OLD.replace("two", "2"), id="patch with CR LF"),
        pytest.param(
            "@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -4,2 +4,2 @@\n four\n-five\n+5\n",
            "1\ntwo\nthree\nfour\n5\n",
            id="two hunks",
        ),
        pytest.param(
            "--- a/x\n+++ b/x\n@@ -2 +2 @@\n-two\n+2\ndiff --git a b\n--- a/x\n+++ b/x\n@@ -4 +4 @@\n-four\n+4\n",
            "one\n2\nthree\n4\nfive\n",
            id="the same file twice",
        ),
    ],
)
def test_a_diff_is_applied(patch, new):
    assert apply_diff(OLD, patch).text == new


def test_a_blank_line_of_context_may_have_lost_its_space():
    assert apply_diff("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n").text == "a\n\nc\n"


def test_lines_that_look_like_file_headers_are_lines_where_the_counts_say_so():
    patch = "@@ -1,2 +1,2 @@\n--- old\n+++ new\n a\n"

    assert apply_diff("-- old\na\n", patch).text == "++ new\na\n"


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ("", "@@ -0,0 +1 @@\n+a\n", "a\n"),
        ("", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", "a"),
        ("a", "@@ -1 +1 @@\n-a\n+b\n", "b"),
        ("a", "@@ -1 +1,2 @@\n a\n+b\n", "a\nb"),
        ("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n"),
        ("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a"),
        ("a\n", "@@ -1 +0,0 @@\n-a\n", ""),
        ("a\r\nb", "@@ -2 +2,2 @@\n b\n+c\n", "a\r\nb\r\nc"),
    ],
)
def test_the_end_of_the_file_keeps_its_line_feed_unless_the_diff_says_otherwise(old, patch, new):
    assert apply_diff(old, patch).text == new


def test_what_was_done_is_counted_and_a_hunk_elsewhere_is_told():
    applied = apply_diff(OLD, "@@ -1,2 +1,3 @@\n four\n-five\n+5\n+6\n")

    assert (applied.text, applied.hunks, applied.added, applied.removed, applied.offsets) == (
        "one\ntwo\nthree\nfour\n5\n6\n",
        1,
        2,
        1,
        {1: 3},
    )


@pytest.mark.parametrize(
    ("old", "patch", "told"),
    [
        (OLD, "@@ -1,2 +1,2 @@\n one\n-tow\n+2\n", (1, 2, "tow", "two")),
        (OLD, "@@ -1 +1 @@\n-one\n+1\n@@ -9 +9 @@\n-nine\n+9\n", (2, 9, "nine", None)),
        ("a\nb\na\n", "@@ -2 +2 @@\n-a\n+c\n", (1, 2, "a", "b")),
        (OLD, "@@ -9,0 +10 @@\n+x\n", (1, 10, None, None)),
        (OLD, "@@ -2 +2 @@\n-two\n\\ No newline at end of file\n", (1, 2, "two", "two")),
        (OLD, "@@ -4 +4 @@\n-four\n+4\n@@ -2 +2 @@\n-two\n+2\n", (2, 2, "two", "two")),
    ],
)
def test_a_hunk_that_does_not_fit_is_told_with_the_lines(old, patch, told):
    with pytest.raises(HunkMismatchError) as refused:
        apply_diff(old, patch)

    error = refused.value
    assert (error.hunk, error.line, error.expected, error.found) == told


@pytest.mark.parametrize(
    ("patch", "line", "text"),
    [
        ("@@ nothing @@\n", 1, "@@ nothing @@"),
        ("@@ nothing @@\na\n", 2, "a"),
        ("--- a\n+++ b\n", 1, "--- a"),
        ("---\ntitle: x\n---\n", 2, "title: x"),
        ("@@ -1 +1 @@\n-one\n+1\nhello\n", 4, "hello"),
        ("@@ -1 +1 @@\n", 1, "@@ -1 +1 @@"),
        ("@@ -3,1 +3,2 @@\n+x\n", 1, "@@ -3,1 +3,2 @@"),
        ("+++ b/x\n@@ -1 +1 @@\n-one\n+1\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-one\n+1\n", 6, "+++ b/y"),
        ("@@ -1 +1 @@\n-one\n+1\n" * (HUNKS_MAX + 1), 3 * HUNKS_MAX + 3, "@@ -1 +1 @@"),
    ],
)
def test_a_patch_that_cannot_be_read_is_told_with_its_line(patch, line, text):
    with pytest.raises(HunkHeaderError) as refused:
        apply_diff("one\n", patch)

    assert (refused.value.line, refused.value.text) == (line, text)


def test_lines_that_repeat_without_end_are_searched_in_linear_time():
    """Line by line, the search would take the product of the two: some 10^11 steps."""
    old = "a\n" * 1_000_000
    patch = f"@@ -2000000,{200_001} +1,1 @@\n" + " a\n" * 200_000 + "-b\n"

    with pytest.raises(HunkMismatchError):
        apply_diff(old, patch)
