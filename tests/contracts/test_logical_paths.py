"""Every logical path form of the protocol: parsed, printed in its one canonical spelling, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.logical_paths import SkillPath, SourcesPath, TurnPath, parse, parse_sid_ranges
from proofbox.contracts.paths import (
    FilePath,
    Namespace,
    UnsafePathError,
    call_path,
    code_path,
    notes_path,
    notice_path,
    result_path,
)

T = "turn_2026-07-04-13-18-11-048"
D = "turn_a.code.b.user"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"fi:{T}.files/x/a.csv", FilePath(T, Namespace.FILES, "x/a.csv")),
        (f"fi:{T}.user.attachments/a.csv", FilePath(T, Namespace.ATTACHMENTS, "a.csv")),
        (f"fi:{T}.code.call_1", TurnPath("code", T, "call_1")),
        (f"ar:{T}.user.prompt", TurnPath("prompt", T, "")),
        (f"ar:{T}.assistant.completion", TurnPath("completion", T, "")),
        (f"ar:{T}.react.notes.call_1", TurnPath("notes", T, "call_1")),
        (f"ar:{T}.react.plan.plan_1", TurnPath("plan", T, "plan_1")),
        (f"ar:{T}.artifacts.canvas/main.md", TurnPath("artifact", T, "canvas/main.md")),
        (f"tc:{T}.call_1.call", TurnPath("call", T, "call_1")),
        (f"tc:{T}.call_1.notice", TurnPath("notice", T, "call_1")),
        (f"tc:{T}.call_1.result", TurnPath("result", T, "call_1")),
        ("so:sources_pool[1,3-5]", SourcesPath(((1, 1), (3, 5)))),
        (f"su:{T}.conv.range.summary", TurnPath("summary", T, "")),
        ("sk:writing/reports", SkillPath("writing/reports")),
        # Turn ids that hold what separates the parts of other paths.
        (f"fi:{D}.code.call_1", TurnPath("code", D, "call_1")),
        (f"tc:{D}.call_1.result", TurnPath("result", D, "call_1")),
        (f"ar:{D}.user.prompt", TurnPath("prompt", D, "")),
        ("fi:turn_a.code.b.files/c", FilePath("turn_a.code.b", Namespace.FILES, "c")),
    ],
)
def test_every_form_is_parsed_and_printed_as_it_was(text, path):
    assert parse(text) == path
    assert (path.logical if isinstance(path, FilePath) else str(path)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (f"tc:{T}.tool_calls.call_1.in.json", f"tc:{T}.call_1.call"),
        (f"tc:{T}.tool_calls.call_1.out.json", f"tc:{T}.call_1.result"),
        ("so:sources_pool[ 1 , 5\N{EN DASH}3 ]", "so:sources_pool[1,3-5]"),
        ("so:sources_pool[2-2]", "so:sources_pool[2]"),
    ],
)
def test_an_alias_is_read_and_never_printed(text, canonical):
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fi:",
        "x:turn_1.user.prompt",
        "turn_1/files/a",
        "ar:turn_1.user",
        "ar:turn_.user.prompt",
        "ar:other.user.prompt",
        "ar:turn_1.user.prompt\n",
        "fi:turn_1.code.",
        "fi:turn_1.code.a/b",
        f"fi:turn_1.code.{'a' * 129}",
        "ar:turn_1.react.notes.a.b/c",
        "ar:turn_1.artifacts.../../etc/passwd",
        "ar:turn_1.artifacts./etc/passwd",
        "ar:turn_1.react.plan.a\0b",
        "tc:turn_1.call_1",
        "tc:turn_1.call_1.other",
        "tc:turn_1.tool_calls.a/b.in.json",
        "so:sources_pool[]",
        "so:sources_pool[a]",
        "so:sources_pool[1-]",
        "so:sources_pool[1,,2]",
        "so:sources_pool[-1]",
        "so:sources_pool[1",
        "so:other[1]",
        "sk:",
        "sk:../../etc/passwd",
        "sk:/etc/passwd",
        "sk:a b",
    ],
)
def test_what_has_no_form_is_refused(text):
    with pytest.raises(UnsafePathError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("1", ((1, 1),)),
        ("1,3-5", ((1, 1), (3, 5))),
        (" 1 , 3 - 5 ", ((1, 1), (3, 5))),
        ("5-3", ((3, 5),)),
        ("3\N{EN DASH}5", ((3, 5),)),
        ("3\N{EM DASH}5", ((3, 5),)),
        ("1-999999999", ((1, 999_999_999),)),
        ("5,1", ((5, 5), (1, 1))),
        ("007", ((7, 7),)),
        ("", None),
        ("1,", None),
        ("1--2", None),
        ("1-2-3", None),
        ("1 2", None),
        ("a", None),
        ("1" * 13, None),
        ("1," * 2048 + "1", None),
    ],
)
def test_lists_of_source_ids(text, ranges):
    assert parse_sid_ranges(text) == ranges


TURNS = st.from_regex(
    r"turn_[a-c0-9_.-]{0,8}(\.(code|files|user|react|tool_calls|call)[a-c0-9_.-]{0,6}){0,3}x", fullmatch=True
)
CALLS = st.from_regex(r"[A-Za-z0-9_:-]{1,20}", fullmatch=True)


@given(TURNS, CALLS)
def test_the_paths_of_a_call_are_read_back_as_that_turn_and_call(turn_id, call_id):
    made = {
        "code": code_path(turn_id, call_id),
        "notes": notes_path(turn_id, call_id),
        "call": call_path(turn_id, call_id),
        "notice": notice_path(turn_id, call_id),
        "result": result_path(turn_id, call_id),
    }
    assert {kind: parse(text) for kind, text in made.items()} == {
        kind: TurnPath(kind, turn_id, call_id) for kind in made
    }


@given(st.text(st.one_of(st.sampled_from("fiartcsouk:._turn1/[]-,\\\0\n"), st.characters()), max_size=50))
def test_any_text_is_a_path_or_is_refused(text):
    try:
        path = parse(text)
    except UnsafePathError:
        return
    canonical = path.logical if isinstance(path, FilePath) else str(path)
    assert parse(canonical) == path
