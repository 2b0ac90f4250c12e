"""The blocks of a call: their fields, the digest, the text of a content block, and the view of a model."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX, Block, Digest
from proofbox.contracts.tools import Language
from proofbox.service.timeline.block_text import rendered
from proofbox.service.timeline.block_writer import BlockWriter, Notice, digest_text, embedded_text

BEGAN = "2026-07-04T13:18:10.000Z"
WRITE = BlockWriter("turn_1", "call_1", "exec_tools.execute_code_python", BEGAN)
NOTES, NOTICE, CODE, CALL = WRITE.opening(
    {"contract": [1], "prog_name": "é"},
    [Notice("c.d", "why", {"missing": ["a"]})],
    notes="ok",
    code=("print(1)", Language.PYTHON),
)
HOSTING = {"hosted_uri": "file:///secret/place", "rn": "ef:acme:secret", "key": "cb/tenants/secret"}
FULL = {
    "artifact_path": "fi:turn_1.files/a.csv",
    "physical_path": "turn_1/files/a.csv",
    "mime": "text/csv",
    "kind": "file",
    "visibility": "external",
    "channel": "canvas",
    "tool_call_id": "call_1",
    "tool_id": "exec_tools.execute_code_python",
    "edited": True,
    "ts": "2026-07-04T13:18:11.048Z",
    "size_bytes": 0,
    "sha256": "0" * 64,
    "description": "Höhen",
    "sources_used": [1, 2],
    "tokens": 3,
    "write_warning": "file_unusually_small",
    "error": "not hosted",
    "sid": 10_001,
    "encoding": "utf-16",
}
NEEDED = ["artifact_path", "physical_path", "mime", "kind", "visibility", "tool_call_id", "tool_id", "ts"]
NEEDED += ["size_bytes", "sha256"]


def digest(**more):
    return Digest(**{name: value for name, value in FULL.items() if name in NEEDED}, **more)


def test_the_digest_says_its_fields_in_the_order_of_the_protocol():
    assert list(Digest.model_fields) == list(FULL)
    assert digest_text(Digest(**FULL)) == json.dumps(FULL, ensure_ascii=False)


def test_blanks_are_dropped_from_the_digest_and_a_zero_is_none():
    said = json.loads(digest_text(digest(description="", sources_used=[], channel="", edited=None)))
    assert list(said) == NEEDED
    assert said["size_bytes"] == 0


@pytest.mark.parametrize(
    ("block", "kind", "author", "mime", "path"),
    [
        (NOTES, "react.notes", "react", "text/markdown", "ar:turn_1.react.notes.call_1"),
        (NOTICE, "react.notice", "proofbox", "application/json", "tc:turn_1.call_1.notice"),
        (CODE, "react.tool.code", "react", "text/x-python", "fi:turn_1.code.call_1"),
        (
            WRITE.opening({}, code=("x", Language.BASH))[0],
            "react.tool.code",
            "react",
            "text/x-shellscript",
            "fi:turn_1.code.call_1",
        ),
        (CALL, "react.tool.call", "react", "application/json", "tc:turn_1.call_1.call"),
        (WRITE.report("r"), "react.tool.result", "proofbox", "text/markdown", "tc:turn_1.call_1.result"),
        (WRITE.meta(digest()), "react.tool.result", "proofbox", "application/json", "tc:turn_1.call_1.result"),
        (
            WRITE.content(digest(), {}, text="t", base64=None),
            "react.tool.result",
            "proofbox",
            "text/csv",
            "fi:turn_1.files/a.csv",
        ),
    ],
)
def test_every_block_is_tied_to_its_turn_and_call(block, kind, author, mime, path):
    assert (block.type, block.author, block.mime, block.path) == (kind, author, mime, path)
    assert (block.turn_id, block.call_id, block.meta["tool_call_id"]) == ("turn_1", "call_1", "call_1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", block.ts)


def test_the_call_block_says_what_was_called():
    said = json.loads(CALL.text)
    assert list(said) == ["tool_id", "tool_call_id", "params", "ts"]
    assert said["params"] == {"contract": [1], "prog_name": "é"}


def test_a_call_has_the_time_when_it_began_and_what_came_of_it_a_later_one():
    about_call, about_result = Notice("workspace_truncated", "m"), Notice("tool_result_error", "m")
    blocks = [*WRITE.opening({}, [about_result, about_call], notes="ok", code=("x", Language.PYTHON))]
    blocks.append(WRITE.report("r"))
    assert [block.type for block in blocks] == [
        "react.notes",
        "react.notice",
        "react.tool.code",
        "react.tool.call",
        "react.notice",
        "react.tool.result",
    ]
    assert [block.ts == BEGAN for block in blocks] == [True] * 4 + [False] * 2
    assert json.loads(blocks[3].text)["ts"] == BEGAN


def test_a_notice_says_its_code_its_message_and_its_details():
    assert json.loads(NOTICE.text) == {"code": "c.d", "message": "why", "missing": ["a"]}


def test_a_content_block_carries_the_digest_and_the_hosting_fields_in_its_meta():
    block = WRITE.content(digest(), HOSTING, text=None, base64="QUJD")
    assert block.meta == {
        "digest": digest_text(digest()),
        **HOSTING,
        "physical_path": "turn_1/files/a.csv",
        "tool_call_id": "call_1",
    }
    assert (block.text, block.base64) == (None, "QUJD")
    assert not set(HOSTING) & set(json.loads(block.meta["digest"]))


@given(st.text(max_size=400), st.integers(0, 60), st.integers(0, 8), st.booleans())
def test_embedded_text_is_a_beginning_of_the_text_within_its_bound(text, times, spare, is_read_in_full):
    whole = (text * times * 4 + text).encode()
    head = whole if is_read_in_full else whole[: TEXT_BYTES_MAX + spare]
    shown = embedded_text(head, more=len(whole) > len(head))
    if len(whole) <= TEXT_BYTES_MAX:
        assert shown == whole.decode()
        return
    assert shown.endswith(TRUNCATED_SUFFIX)
    kept = shown.removesuffix(TRUNCATED_SUFFIX).encode()
    assert whole.startswith(kept)
    assert TEXT_BYTES_MAX - 4 < len(kept) <= TEXT_BYTES_MAX


@given(st.binary(max_size=200), st.integers(0, 300), st.booleans())
def test_bytes_that_are_no_text_stay_within_the_bound_too(data, times, more):
    shown = embedded_text(data * times + data, more=more)
    assert len(shown.removesuffix(TRUNCATED_SUFFIX).encode()) <= TEXT_BYTES_MAX
    shown.encode()


@pytest.mark.parametrize(
    ("length", "is_cut"), [(TEXT_BYTES_MAX - 1, False), (TEXT_BYTES_MAX, False), (TEXT_BYTES_MAX + 1, True)]
)
def test_the_bound_of_embedded_text_is_20480_bytes(length, is_cut):
    shown = embedded_text(b"x" * length, more=False)
    assert shown == "x" * min(length, 20_480) + ("\n...[truncated]" if is_cut else "")


def test_a_text_that_fills_the_bound_and_goes_on_says_so():
    assert embedded_text(b"x" * 20_480, more=True) == "x" * 20_480 + "\n...[truncated]"
    assert embedded_text(b"x" * 20_479 + "é".encode(), more=False) == "x" * 20_479 + "\n...[truncated]"


def test_the_view_of_a_call_as_a_model_reads_it():
    blocks = [
        *WRITE.opening(
            {},
            [Notice("workspace_truncated", "m")],
            notes="I will write a table",
            code=("print(1)", Language.PYTHON),
        ),
        WRITE.report("Runtime error: none"),
        WRITE.meta(digest()),
        WRITE.content(digest(), HOSTING, text="a,b", base64=None),
        WRITE.meta(digest().model_copy(update={"artifact_path": "fi:turn_1.files/a.png", "mime": "image/png"})),
        Block(
            **{
                **WRITE.content(digest(), HOSTING, text=None, base64="QUJD").model_dump(),
                "mime": "image/png",
                "path": "fi:turn_1.files/a.png",
            }
        ),
    ]
    tool = "exec_tools.execute_code_python"
    view = rendered(blocks)
    assert view == rendered(blocks)
    heads = [part.splitlines()[0] for part in view.split("\n\n")]
    assert heads == [
        "[AI Agent say]: I will write a table",
        "[react.notice]",
        "[react.tool.code]",
        "[react.tool.call] (JSON)",
        f"[TOOL RESULT call_1].summary {tool}",
        f"[TOOL RESULT call_1].artifact {tool}",
        f"[TOOL RESULT call_1].artifact {tool}",
    ]
    assert view.split("\n\n")[5].splitlines() == [
        f"[TOOL RESULT call_1].artifact {tool}",
        "[path: fi:turn_1.files/a.csv]",
        "[physical_path: turn_1/files/a.csv]",
        '{"mime": "text/csv", "size_bytes": 0}',
        "a,b",
    ]
    assert view.splitlines()[-1] == "<image media_type=image/png b64_len=4>"


def test_a_tool_without_a_report_has_a_summary_and_a_file_without_content_has_its_digest():
    blocks = [*WRITE.opening({}), WRITE.meta(digest()), WRITE.content(digest(), HOSTING, text=None, base64=None)]
    tool = "exec_tools.execute_code_python"
    assert rendered(blocks).split("\n\n")[1:] == [
        f"[TOOL RESULT call_1].summary {tool}\n[path: tc:turn_1.call_1.result]\nok\n- turn_1/files/a.csv",
        (
            f"[TOOL RESULT call_1].artifact {tool}\n[path: fi:turn_1.files/a.csv]\n"
            '[physical_path: turn_1/files/a.csv]\n{"mime": "text/csv", "size_bytes": 0}\n'
        ),
    ]


METAS = st.dictionaries(st.sampled_from([*HOSTING, "digest", "other"]), st.sampled_from([*HOSTING.values(), "x"]))


def foreign_block(kind, mime, path, text, meta):
    return Block(
        type=kind,
        author="other",
        turn_id="turn_1",
        ts="2026-07-04T13:18:11.048Z",
        mime=mime,
        path=path,
        text=text,
        call_id="c",
        meta=meta,
    )


META_TEXTS = [json.dumps(FULL | HOSTING), json.dumps({"artifact_path": "fi:turn_1.files/a.csv"} | HOSTING)]
META_BLOCKS = st.builds(
    foreign_block,
    st.just("react.tool.result"),
    st.just("application/json"),
    st.just("tc:turn_1.c.result"),
    st.sampled_from(META_TEXTS),
    METAS,
)
OTHER_BLOCKS = st.builds(
    foreign_block,
    st.sampled_from(["react.tool.result", "react.tool.code", "react.notice", "react.tool.call", "react.notes"]),
    st.sampled_from(["text/csv", "image/png", "application/pdf"]),
    st.sampled_from(["fi:turn_1.files/a.csv", "tc:turn_1.c.result"]),
    st.sampled_from(["{}", None]),
    METAS,
)


@given(st.lists(st.one_of(META_BLOCKS, OTHER_BLOCKS), max_size=6))
def test_no_hosting_field_is_ever_in_the_view(blocks):
    view = rendered(blocks)
    assert [value for value in HOSTING.values() if value in view] == []
