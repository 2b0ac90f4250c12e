"""What of the JSON in blocks a model reads: each fact once, and no fact lost."""

import json

import pytest

from proofbox.service.timeline.block_text import SHORT_RESULT_CHARS, rendered
from proofbox.service.timeline.shown_json import format_digest_line, format_notice, format_result
from tests.support.timelines import block, call_block, content_block, digest_block

TS = "2026-07-04T13:18:11.048Z"
FULL = {
    "artifact_path": "fi:turn_1.files/a.csv",
    "physical_path": "turn_1/files/a.csv",
    "mime": "text/csv",
    "kind": "display",
    "visibility": "internal",
    "channel": "canvas",
    "tool_call_id": "c1",
    "tool_id": "react.write",
    "edited": True,
    "ts": TS,
    "size_bytes": 0,
    "sha256": "0" * 64,
    "description": "a table",
    "sources_used": [1, 2],
    "tokens": 5,
    "write_warning": "file_unusually_small",
    "error": "could not be hosted",
    "sid": 7,
}


def json_block(kind, payload, name, call="c1", turn="turn_1"):
    path = f"tc:{turn}.{call}.{name}"
    return block(kind, json.dumps(payload), turn=turn, path=path, call=call, mime="application/json")


def call_of(tool, params, call="c1"):
    payload = {"tool_id": tool, "tool_call_id": call, "params": params, "ts": TS}
    return json_block("react.tool.call", payload, "call", call)


def test_a_digest_shows_what_a_model_acts_on_and_nothing_that_stands_elsewhere():
    assert json.loads(format_digest_line(FULL)) == {
        "mime": "text/csv",
        "size_bytes": 0,
        "description": "a table",
        "edited": True,
        "sources_used": [1, 2],
        "write_warning": "file_unusually_small",
        "error": "could not be hosted",
        "sid": 7,
        "visibility": "internal",
    }


def test_an_external_file_shows_no_visibility_and_blank_fields_are_left_out():
    digest = {"mime": "text/csv", "visibility": "external", "description": "", "edited": False, "sources_used": []}
    assert format_digest_line(digest) == '{"mime": "text/csv"}'
    assert format_digest_line({"visibility": "external", "sha256": "0"}) == ""


def test_a_digest_that_says_nothing_beyond_its_paths_has_no_line():
    path = "fi:turn_1.files/a"
    bare = block(
        "react.tool.result",
        json.dumps({"artifact_path": path}),
        path="tc:turn_1.c1.result",
        call="c1",
        mime="application/json",
    )
    text = rendered([call_block("c1", "react.read"), bare, content_block(path, "words", "c1")])
    assert text.endswith(f"[TOOL RESULT c1].artifact react.read\n[path: {path}]\nwords\n")


def test_a_call_is_shown_without_its_time_and_with_all_of_its_params():
    text = rendered([call_of("react.write", {"path": "a.md", "ts": "mine"})])
    assert text == (
        "[react.tool.call] (JSON)\n"
        '{"tool_id": "react.write", "tool_call_id": "c1", "params": {"path": "a.md", "ts": "mine"}}\n'
    )


@pytest.mark.parametrize("text", ["{ 'no': json }", '{"tool_id":"x","params":{}}', "[1,2]", "", "[" * 5_000])
def test_a_call_that_has_no_time_or_is_no_json_is_shown_as_it_is(text):
    shown = rendered([block("react.tool.call", text, path="tc:turn_1.c1.call", call="c1")])
    assert shown == f"[react.tool.call] (JSON)\n{text}\n"


def test_a_notice_keeps_its_code_its_sentence_and_the_details_that_the_sentence_lacks():
    notice = {
        "code": "protocol_violation.tool_call_error",
        "message": "status: there is no step 9; the plan has the steps 1 to 2",
        "error": "unknown_step",
        "steps": ["9"],
        "limit": 2,
        "field": "elsewhere",
        "missing": [],
    }
    kept = {name: notice[name] for name in ("code", "message", "error", "limit", "field")}
    assert format_notice(notice) == kept


def test_the_code_of_a_notice_is_shown_though_its_sentence_has_the_same_word():
    assert format_notice({"code": "c", "message": "it is missing", "error": "missing"})["error"] == "missing"


def test_a_result_keeps_what_neither_its_call_nor_its_notices_have():
    payload = {
        "tool_id": "react.read",
        "tool_call_id": "c1",
        "ts": TS,
        "paths": ["fi:a"],
        "missing": ["fi:a"],
        "reasons": {"fi:a": "nothing there"},
        "exists_in_visible_context": [],
        "total_tokens": 0,
        "partly_shown": {"fi:b": "lines 1-20"},
        "error": {"code": "missing", "message": "nothing could be loaded", "hint": "look"},
    }
    notice = {
        "code": "x",
        "error": "missing",
        "message": "nothing could be loaded",
        "missing": ["fi:a"],
        "reasons": {"fi:a": "nothing there"},
    }
    assert format_result(payload, {"paths": ["fi:a"]}, [notice]) == {
        "partly_shown": {"fi:b": "lines 1-20"},
        "error": {"code": "missing", "message": "nothing could be loaded", "hint": "look"},
    }


def test_a_result_says_all_where_call_and_notice_are_not_in_view_or_tell_of_something_else():
    payload = {"paths": ["fi:a"], "missing": ["fi:a"], "error": {"code": "missing", "message": "m"}}
    assert format_result(payload, {}, []) == payload
    assert format_result(payload, {"paths": ["fi:b"]}, [{"error": "missing", "message": "another"}]) == payload
    assert format_result(payload, {}, [{"error": "other", "message": "m", "missing": ["fi:a"]}]) == payload


def test_a_result_that_went_well_keeps_its_empty_lists():
    payload = {"hits": [], "total": 0, "truncated": False}
    assert format_result(payload, {}, []) == payload


def test_a_result_of_which_nothing_is_left_out_is_shown_as_it_was_written():
    result = block(
        "react.tool.result",
        '{"hits":[],"total":0}',
        path="tc:turn_1.c1.result",
        call="c1",
        mime="application/json",
    )
    assert rendered([call_of("react.search_files", {}), result]).endswith('\n{"hits":[],"total":0}\n')


def test_what_a_hidden_call_or_notice_said_is_shown_by_the_result():
    call = call_of("react.read", {"paths": ["fi:a"]})
    call.meta.update(hidden=True, replacement_text="a call")
    notice = json_block("react.notice", {"code": "x", "message": "m", "error": "missing"}, "notice")
    notice.meta["hidden"] = True
    result = json_block(
        "react.tool.result", {"paths": ["fi:a"], "error": {"code": "missing", "message": "m"}}, "result"
    )
    text = rendered([notice, call, result])
    assert text.endswith('\n{"paths": ["fi:a"], "error": {"code": "missing", "message": "m"}}\n')


def test_what_a_call_said_is_not_taken_for_said_by_the_next_call():
    first = [call_of("react.read", {"paths": ["fi:a"]}), json_block("react.tool.result", {"total": 1}, "result")]
    second = json_block("react.tool.result", {"paths": ["fi:a"]}, "result", call="c2")
    assert rendered([*first, second]).endswith('\n{"paths": ["fi:a"]}\n')


def plan_blocks(params, plan, call="c1"):
    return [
        call_of("react.plan", params, call),
        json_block("react.tool.result", {"plan_id": "plan_1", "iteration": 1, "ts": TS}, "result", call),
        block(
            "react.plan",
            json.dumps(plan),
            path="ar:turn_1.react.plan.plan_1",
            call=call,
            mime="application/json",
        ),
        block("react.plan.ack", "✓ 1. a", path="ar:turn_1.react.plan.ack.1", call=call),
    ]


def test_a_plan_says_its_steps_once_and_the_status_of_each():
    plan = {"plan_id": "plan_1", "steps": ["find (a)", "write"], "status": {"1": "done", "2": "pending"}}
    blocks = plan_blocks({"steps": plan["steps"], "status": {"1": "done"}}, plan)
    text = rendered(blocks)
    assert text.endswith('[TOOL RESULT c1].result react.plan\n{"plan_id": "plan_1"}\n\n[REACT.PLAN]\n✓ 1 □ 2\n')
    assert text.count("find (a)") == 1


def test_a_plan_of_other_steps_than_its_call_says_them():
    plan = {"plan_id": "plan_1", "steps": ["find"], "status": {}}
    text = rendered(plan_blocks({"steps": ["search"]}, plan))
    assert text.endswith("[REACT.PLAN]\nid=plan_1\n□ 1) find\n")


def test_an_acknowledgement_is_shown_where_its_plan_is_not_in_view():
    plan = {"plan_id": "plan_1", "steps": ["find"], "status": {}}
    blocks = plan_blocks({"steps": ["find"]}, plan)
    blocks[2].meta.update(hidden=True)
    assert rendered(blocks).endswith("[REACT.PLAN.ACK]\n[path: ar:turn_1.react.plan.ack.1]\n✓ 1. a\n")


def test_an_attachment_shows_its_size_and_its_source_id_if_it_has_them():
    path = "fi:turn_1.user.attachments/map.pdf"
    digest = {"artifact_path": path, "mime": "application/pdf", "size_bytes": 1_234, "sid": 3}
    meta = block("user.attachment.meta", json.dumps(digest), path=path, mime="application/json")
    assert rendered([meta]) == f"[USER ATTACHMENT] map.pdf | application/pdf | 1234 bytes | sid 3\n[path: {path}]\n"


def test_the_digest_of_a_read_file_is_not_mixed_up_with_the_result_of_its_call():
    path = "fi:turn_1.files/a.json"
    blocks = [
        call_of("react.read", {"paths": [path]}),
        json_block("react.tool.result", {"paths": [path], "total_tokens": 3}, "result"),
        digest_block(path, "c1", size_bytes=9),
        content_block(path, '{"paths": []}', "c1"),
    ]
    assert rendered(blocks).partition("\n\n")[2] == (
        '[TOOL RESULT c1].result react.read\n{"total_tokens": 3}\n\n'
        f"[TOOL RESULT c1].artifact react.read\n[path: {path}]\n"
        '{"mime": "text/plain", "size_bytes": 9}\n{"paths": []}\n'
    )


@pytest.mark.parametrize("chars", [SHORT_RESULT_CHARS, SHORT_RESULT_CHARS + 1])
def test_a_result_has_its_path_if_it_is_long_enough_to_be_read_again_or_hidden(chars):
    payload = {"hits": "x" * (chars - len('{"hits": ""}'))}
    text = rendered([call_of("react.search_files", {}), json_block("react.tool.result", payload, "result")])
    assert ("[path: tc:turn_1.c1.result]" in text) == (chars > SHORT_RESULT_CHARS)


def test_a_plan_whose_result_is_not_in_view_has_its_id():
    plan = {"plan_id": "plan_1", "steps": ["find"], "status": {}}
    blocks = plan_blocks({"steps": ["find"]}, plan)
    assert rendered([blocks[0], *blocks[2:]]).endswith("[REACT.PLAN]\nid=plan_1\n□ 1\n")
