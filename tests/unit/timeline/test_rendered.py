"""The texts that the documents show, block for block, and what every core type looks like to a model."""

import json

import pytest

from proofbox.contracts.timeline import CORE_TYPES
from proofbox.service.timeline.block_text import RenderedView, rendered
from proofbox.service.timeline.port import PlacedBlock
from tests.support.timelines import TS, block, call_block, content_block, digest_block, hiding_block, prompt

TURN = "turn_1790603271112_ab12cd"


def json_block(kind, text, path, call=None, **meta):
    return block(kind, text, turn=TURN, path=path, call=call, mime="application/json", **meta)


def test_a_turn_with_an_attachment_a_plan_calls_and_a_note_reads_as_the_document_shows():
    search = '{ "tool_id": "web_tools.web_search", "tool_call_id": "0a1b2c3d4e5f", "params": { ... } }'
    found = f'{{"artifact_path": "tc:{TURN}.0a1b2c3d4e5f.result", "tool_call_id": "0a1b2c3d4e5f"}}'
    patch = json.dumps(
        {
            "tool_id": "react.patch",
            "tool_call_id": "5f4e3d2c1b0a",
            "params": {"path": f"{TURN}/files/draft.md", "patch": "..."},
        }
    )
    patched = {
        "artifact_path": f"fi:{TURN}.files/draft.md",
        "physical_path": f"{TURN}/files/draft.md",
        "tool_call_id": "5f4e3d2c1b0a",
        "edited": True,
    }
    map_digest = {
        "artifact_path": f"fi:{TURN}.user.attachments/map.pdf",
        "physical_path": f"{TURN}/attachments/map.pdf",
        "mime": "application/pdf",
        "description": "a map of two pages & the opening hours",
    }
    steps = ["Find museums", "Compare hours", "Write the list"]
    file_path = f"fi:{TURN}.user.attachments/map.pdf"
    blocks = [
        block("turn.header", turn=TURN),
        prompt("which three museums are open on Monday", TURN),
        json_block("user.attachment.meta", json.dumps(map_digest, ensure_ascii=False), file_path),
        block("user.attachment", turn=TURN, path=file_path, mime="application/pdf", base64="A" * 183_942),
        json_block(
            "react.plan",
            json.dumps({"plan_id": "plan_abc", "steps": steps, "status": {}}, ensure_ascii=False),
            f"ar:{TURN}.react.plan.plan_abc",
        ),
        json_block("react.tool.call", search, f"tc:{TURN}.0a1b2c3d4e5f.call", "0a1b2c3d4e5f"),
        json_block("react.tool.result", found, f"tc:{TURN}.0a1b2c3d4e5f.result", "0a1b2c3d4e5f"),
        json_block("react.tool.call", patch, f"tc:{TURN}.5f4e3d2c1b0a.call", "5f4e3d2c1b0a"),
        json_block("react.tool.result", json.dumps(patched), f"tc:{TURN}.5f4e3d2c1b0a.result", "5f4e3d2c1b0a"),
        block(
            "react.note",
            "[D] the city's own page is the main source",
            turn=TURN,
            path=f"ar:{TURN}.artifacts.note",
            channel="internal",
        ),
    ]
    view = RenderedView(turns=True)
    text = "".join(view.part(PlacedBlock(0, item, len(item.base64 or ""))) for item in blocks)
    # The call of web_search is schematic in the document, so no tool can be read from it.
    assert (
        text
        == f"""\
[TURN {TURN}] ts=2026-02-09T02:14:32.676425Z

[USER MESSAGE]
[path: ar:{TURN}.user.prompt]
which three museums are open on Monday

[USER ATTACHMENT] map.pdf | application/pdf
summary: a map of two pages & the opening hours
[path: fi:{TURN}.user.attachments/map.pdf]
[physical_path: {TURN}/attachments/map.pdf]

<document media_type=application/pdf b64_len=183942>

[REACT.PLAN]
id=plan_abc
□ 1) Find museums
□ 2) Compare hours
□ 3) Write the list

[react.tool.call] (JSON)
{search}

[TOOL RESULT 0a1b2c3d4e5f].result
[path: tc:{TURN}.0a1b2c3d4e5f.result]

[react.tool.call] (JSON)
{patch}

[TOOL RESULT 5f4e3d2c1b0a].summary react.patch
[path: tc:{TURN}.5f4e3d2c1b0a.result]
ok
- {TURN}/files/draft.md

[TOOL RESULT 5f4e3d2c1b0a].artifact react.patch
[path: fi:{TURN}.files/draft.md]
[physical_path: {TURN}/files/draft.md]
{{"edited": true}}

[react.note] (internal)
[INTERNAL NOTE]
[D] the city's own page is the main source
"""
    )


def test_a_written_text_reads_as_summary_and_artifact_after_its_notes_and_call():
    params = {"content": "# Report... [see fi:turn_1.files/report.md]"}
    payload = {"tool_id": "react.write", "tool_call_id": "abc", "params": params}
    meta = {
        "artifact_path": "fi:turn_1.files/report.md",
        "physical_path": "turn_1/files/report.md",
        "kind": "display",
        "visibility": "external",
        "tokens": 1234,
    }
    assert (
        rendered(
            [
                block("react.notes", "Drafting summary", path="ar:turn_1.react.notes.abc", call="abc"),
                json_block("react.tool.call", json.dumps(payload), "tc:turn_1.abc.call", "abc"),
                json_block("react.tool.result", json.dumps(meta), "tc:turn_1.abc.result", "abc"),
                content_block("fi:turn_1.files/report.md", "# Report...", "abc"),
            ]
        )
        == f"""\
[AI Agent say]: Drafting summary

[react.tool.call] (JSON)
{json.dumps(payload)}

[TOOL RESULT abc].summary react.write
[path: tc:turn_1.abc.result]
ok
- turn_1/files/report.md

[TOOL RESULT abc].artifact react.write
[path: fi:turn_1.files/report.md]
[physical_path: turn_1/files/report.md]
# Report...
"""
    )


def test_a_rendered_pdf_is_its_digest_and_a_document_and_a_pptx_its_digest_only():
    def file_of(name, mime, **content):
        path = f"fi:turn_1.files/{name}"
        return [
            call_block("def", f"rendering_tools.write_{name[-4:].strip('.')}"),
            digest_block(path, "def", mime=mime),
            block("react.tool.result", path=path, call="def", mime=mime, **content),
        ]

    pdf = rendered(file_of("report.pdf", "application/pdf", base64="QUJD"))
    assert pdf.splitlines()[-2:] == [
        '{"mime": "application/pdf"}',
        "<document media_type=application/pdf b64_len=4>",
    ]
    pptx = rendered(file_of("deck.pptx", "application/x-pptx"))
    assert pptx.splitlines()[-2:] == [
        "[path: fi:turn_1.files/deck.pptx]",
        '{"mime": "application/x-pptx"}',
    ]


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        (
            "web_tools.web_search",
            '[{"sid":1,"title":"...","url":"https://..."},{"sid":2,"title":"...","url":"https://..."}]',
        ),
        ("web_tools.web_fetch", '{"https://example.com": {"content": "...", "title": "Example"}}'),
    ],
)
def test_a_web_result_is_its_path_its_digest_and_its_payload(tool, content):
    meta = {
        "artifact_path": "tc:turn_1.s1.result",
        "mime": "application/json",
        "kind": "file",
        "visibility": "internal",
    }
    blocks = [
        call_block("s1", tool),
        json_block("react.tool.result", json.dumps(meta), "tc:turn_1.s1.result", "s1"),
        json_block("react.tool.result", content, "tc:turn_1.s1.result", "s1"),
    ]
    assert rendered(blocks).partition("\n\n")[2] == (
        f"[TOOL RESULT s1].result {tool}\n[path: tc:turn_1.s1.result]\n"
        f'{{"mime": "application/json", "visibility": "internal"}}\n{content}\n'
    )


def test_found_sources_are_an_artifact_of_the_search():
    path = "so:sources_pool[1-5]"
    blocks = [
        call_block("s1", "web_tools.web_search"),
        block("react.tool.result", "[]", path="tc:turn_1.s1.result", call="s1", mime="application/json"),
        digest_block(path, "s1"),
        content_block(path, "[1] Title", "s1"),
    ]
    assert rendered(blocks).endswith(
        f'\n[TOOL RESULT s1].artifact web_tools.web_search\n[path: {path}]\n{{"mime": "text/plain"}}\n[1] Title\n'
    )


def test_what_was_read_comes_after_its_status():
    status = {"paths": ["ar:turn_1.user.prompt"], "missing": [], "exists_in_visible_context": [], "total_tokens": 1}
    blocks = [
        call_block("r1", "react.read"),
        block(
            "react.tool.result", json.dumps(status), path="tc:turn_1.r1.result", call="r1", mime="application/json"
        ),
        content_block("ar:turn_1.user.prompt", "hello", "r1"),
        digest_block("fi:turn_1.files/board.pptx", "r1"),
        block("react.tool.result", path="fi:turn_1.files/board.pptx", call="r1", mime="application/x-pptx"),
    ]
    parts = rendered(blocks).split("\n\n")[1:]
    assert [part.splitlines()[:2] for part in parts] == [
        ["[TOOL RESULT r1].result react.read", json.dumps(status)],
        ["[TOOL RESULT r1].artifact react.read", "[path: ar:turn_1.user.prompt]"],
        ["[TOOL RESULT r1].artifact react.read", "[path: fi:turn_1.files/board.pptx]"],
    ]


def test_a_failed_exec_call_reads_as_its_report():
    report = (
        "Runtime error: execution_failed — Missing output files: turn_1/files/report.xlsx\nFile errors:\n"
        "- turn_1/files/report.xlsx: file not produced\nSucceeded:\n- turn_1/files/summary.pdf"
    )
    tool = "exec_tools.execute_code_python"
    result = block("react.tool.result", report, path="tc:turn_1.xyz.result", call="xyz")
    assert rendered([call_block("xyz", tool), result]).endswith(
        f"\n[TOOL RESULT xyz].summary {tool}\n[path: tc:turn_1.xyz.result]\n{report}\n"
    )


def test_a_plan_shows_how_far_its_steps_are_and_its_acknowledgement_is_text():
    plan = {
        "plan_id": "plan:turn_1:abcd",
        "steps": ["Locate sources", "Draft report", "Check", "Send"],
        "status": {"1": "done", "2": "in_progress", "3": "failed"},
        "created_ts": TS,
        "last_ts": TS,
    }
    ack = "✓ 1. Locate sources\n… 2. Draft report — in progress"
    blocks = [
        block(
            "react.plan", json.dumps(plan), path="ar:turn_1.react.plan.plan:turn_1:abcd", mime="application/json"
        ),
        block("react.plan.ack", ack, path="ar:turn_1.react.plan.ack.1"),
    ]
    assert rendered(blocks) == (
        "[REACT.PLAN]\nid=plan:turn_1:abcd\n✓ 1) Locate sources\n… 2) Draft report\n✗ 3) Check\n□ 4) Send\n\n"
        f"[REACT.PLAN.ACK]\n[path: ar:turn_1.react.plan.ack.1]\n{ack}\n"
    )


def test_a_block_that_came_hidden_shows_the_line_of_its_group_or_nothing():
    fields = {"path": "ar:turn_1.artifacts.long", "hidden": True}
    blocks = [
        block("react.note", "long", **fields, replacement_text="a long list"),
        block("react.note", "x", **fields),
    ]
    assert rendered(blocks) == "HIDDEN — a long list. Retrieve with react.read(ar:turn_1.artifacts.long)\n"


HEADS = {
    "agent.log.header": "[agent.log.header]",
    "assistant.completion": "[ASSISTANT MESSAGE]",
    "conv.range.summary": "[SUMMARY OF EARLIER TURNS]",
    "react.completion": "[ASSISTANT MESSAGE]",
    "react.notes": "[AI Agent say]: words",
    "react.notice": "[react.notice]",
    "react.note": "[react.note] (internal)",
    "react.plan": "[REACT.PLAN]",
    "react.plan.ack": "[REACT.PLAN.ACK]",
    "react.tool.call": "[react.tool.call] (JSON)",
    "react.tool.code": "[react.tool.code]",
    "react.tool.result": "[TOOL RESULT c1].result",
    "stage.clarification": "[stage.clarification]",
    "stage.clarification.resolved": "[stage.clarification.resolved]",
    "stage.coordinator": "[stage.coordinator]",
    "stage.feedback": "[stage.feedback]",
    "stage.gate": "[stage.gate]",
    "turn.header": "",
    "user.attachment": "words",
    "user.attachment.meta": "[USER ATTACHMENT] tc:turn_1.c1.result | text/markdown",
    "user.prompt": "[USER MESSAGE]",
}


def test_every_core_type_has_a_look_of_its_own():
    assert set(HEADS) == CORE_TYPES


@pytest.mark.parametrize("kind", sorted(CORE_TYPES))
def test_a_block_of_each_core_type_begins_with_its_head_and_shows_its_text(kind):
    text = rendered([block(kind, "words", path="tc:turn_1.c1.result", call="c1")])
    assert text.partition("\n")[0] == HEADS[kind]
    assert ("words" in text) == (kind not in {"turn.header", "user.attachment.meta"})


def test_the_result_of_a_hiding_reads_as_any_other_result():
    text = rendered([call_block("h1", "react.hide"), hiding_block("fi:turn_1.files/a", "short", "h1")])
    assert text.endswith("\n[TOOL RESULT h1].result react.hide\n{}\n")


def test_what_comes_after_a_hidden_report_or_a_hidden_block_has_a_head_of_its_own():
    path = "fi:turn_1.files/a.md"
    hidden = {"hidden": True, "path": "tc:turn_1.c1.result", "call": "c1"}
    blocks = [
        call_block("c1", "exec_tools.execute_code_python"),
        block("react.tool.result", "report", replacement_text="a report", **hidden),
        digest_block(path, "c1"),
        block("react.note", "x", **hidden),
        content_block(path, "words", "c1"),
    ]
    assert [part.splitlines()[0] for part in rendered(blocks).split("\n\n")[1:]] == [
        "HIDDEN — a report. Retrieve with react.read(tc:turn_1.c1.result)",
        "[TOOL RESULT c1].artifact exec_tools.execute_code_python",
        "[TOOL RESULT c1].artifact exec_tools.execute_code_python",
    ]


def test_a_second_digest_at_the_same_path_is_no_content_and_keeps_its_hosting_to_itself():
    path = "tc:turn_1.c1.result"
    blocks = [call_block("c1", "web_tools.web_search"), digest_block(path, "c1")]
    blocks.append(digest_block(path, "c1", hosted_uri="s3://secret/x", local_path="/secret"))
    text = rendered(blocks)
    assert (text.count("[TOOL RESULT c1].result"), "secret" in text) == (2, False)
