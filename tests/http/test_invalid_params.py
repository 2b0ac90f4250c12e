"""Wrong ``params`` of every tool, over HTTP: an answer with all errors, a notice and blocks, and nothing runs."""

import json

import pytest

from proofbox.contracts.react_tools import REACT_TOOLS, TOOL_ALIASES
from proofbox.contracts.tools import catalogue, exec_language
from proofbox.service.app.settings import Settings
from proofbox.service.app.tools import ToolDependencies, all_tools
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.support.program_proxy import no_network

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1, 512 * MIB, 64, 128 * MIB, 1000, 64 * MIB, 100, 8, MIB, 64 * MIB)
TOOL_IDS = [tool.tool_id for tool in catalogue()] + list(TOOL_ALIASES)


class NoPages:
    """The port of pages for calls that never fetch one."""

    async def fetch(self, url):
        raise AssertionError(f"nothing is fetched: {url}")


@pytest.fixture
def calls(stores, engine, skills_dir):
    files = ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(()))
    rehosting = InputResolver(files, stores.sources, WorkspaceBounds(10**6, 10))
    admission = Admission(running_max=2, queue_max=2)
    memory = MemorySearchTool(stores.timelines, SqlPassageStore(stores.database), files, None, half_life_days=90)
    parts = ToolDependencies(
        jobs=JobRunner(admission, rehosting, engine, stores.artifacts, stores.sources),
        policy=CallPolicy(LIMITS, 10, 10, MIB),
        artifacts=stores.artifacts,
        sources=stores.sources,
        timelines=stores.timelines,
        calls=SqlCallStore(stores.database),
        paths=LogicalPathResolver(files, stores.sources, FolderSkills(skills_dir)),
        tokens=BpeTokenCounter(),
        memory=memory,
        fetcher=NoPages(),
        searcher=None,
        network=no_network(),
    )
    tools = all_tools(Settings(), parts)
    return Calls(tools, Admission(running_max=4, queue_max=10), SqlCallStore(stores.database), CallSettings(0, "b"))


async def call(client, tool_id, params, *, call_id="t1", **fields):
    body = {
        "tool_id": tool_id,
        "tool_call_id": call_id,
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": params,
        **fields,
    }
    if exec_language(tool_id) is not None:
        body["code"] = "print(1)\n"
    answer = await client.post("/v1/tool-calls", json={k: v for k, v in body.items() if v is not None})
    assert answer.status_code == 200, answer.text
    return answer


def errors_of(answer):
    [notice] = [json.loads(b["text"]) for b in answer["blocks"] if b["type"] == "react.notice"]
    assert notice["code"] == "protocol_violation.invalid_params"
    return {error["field"]: error["message"] for error in notice["errors"]}


@pytest.mark.parametrize("tool_id", TOOL_IDS)
async def test_each_tool_answers_wrong_params_with_all_errors_and_blocks(client, tool_id):
    answer = (await call(client, tool_id, {"nonsense": 1, "path": ["x"], "timeout_s": 0}, notes="I try")).json()

    assert (answer["ok"], answer["error"]["code"], answer["error"]["managed"]) == (False, "invalid_params", True)
    code = ["react.tool.code"] if exec_language(tool_id) is not None else []
    kinds = [block["type"] for block in answer["blocks"]]
    assert kinds == ["react.notes", "react.notice", *code, "react.tool.call", "react.tool.result"]
    assert "params.nonsense" in errors_of(answer)
    assert len(errors_of(answer)) >= 2
    for field in errors_of(answer):
        assert f"{field}: " in answer["report"]
    timeline = (await client.get("/v1/conversations/c1/timeline")).json()["blocks"]
    assert [block["type"] for block in timeline] == kinds


async def test_a_message_names_field_limit_and_what_to_do(client):
    params = {"path": "a.md", "chanel": "chat", "content": "x", "kind": "chart"}
    answer = (await call(client, "react.write", params)).json()

    assert errors_of(answer) == {
        "params.channel": "is required",
        "params.kind": "Input should be 'display' or 'file', got \"chart\"",
        "params.chanel": "is not a parameter of this tool; did you mean channel?",
    }
    assert answer["report"].endswith("did you mean channel? Nothing was done; correct this and call again")


@pytest.mark.parametrize(
    ("tool_id", "params", "field", "said"),
    [
        ("exec_tools.execute_code_python", {"timeout_s": 0}, "params.timeout_s", "greater than 0, got 0"),
        ("exec_tools.execute_code_bash", {"timeout": 3}, "params.timeout", "did you mean timeout_s?"),
        ("rendering_tools.write_pdf", {"path": "", "content": "x"}, "params.path", "at least 1 character"),
        (
            "rendering_tools.write_pdf",
            {"path": "a.pdf", "content": "x", "margins": {"left": "wide"}},
            "params.margins.left",
            'is no length such as 20mm (units: mm, cm, in, pt, px), got "wide"',
        ),
        (
            "rendering_tools.write_png",
            {"path": "a", "content": "x", "width": 5},
            "params.width",
            "equal to 16, got 5",
        ),
        ("react.plan", {"steps": ["a"], "status": {"1": "finished"}}, "params.status.1", "'done'"),
        ("react.memsearch", {"query": "x", "targets": "all"}, "params.targets[0]", "'attachment'"),
        ("react.search_files", {"max_hits": 10**6}, "params.max_hits", "equal to 1000, got 1000000"),
        ("web_tools.web_search", {"queries": []}, "params.queries", "at least 1 item"),
    ],
)
async def test_each_kind_of_mistake_is_named(client, tool_id, params, field, said):
    answer = (await call(client, tool_id, params)).json()

    assert said in errors_of(answer)[field]
    assert field in answer["error"]["message"]


@pytest.mark.parametrize(
    ("tool_id", "given", "meant"),
    [
        ("rendering_tools.write_pdf", {"pageSize": "A4"}, "page_size"),
        ("rendering_tools.write_pdf", {"paper": "A4"}, "page_size"),
        ("rendering_tools.write_pdf", {"paperFormat": "A4"}, "page_size"),
        ("rendering_tools.write_pdf", {"headerTemplate": "x"}, "header"),
        ("rendering_tools.write_pdf", {"tableOfContents": True}, "toc"),
        ("rendering_tools.write_pdf", {"Page-Numbers": True}, "page_numbers"),
        ("rendering_tools.write_xlsx", {"sheetNames": ["a"]}, "sheets"),
        ("rendering_tools.write_xlsx", {"tabs": ["a"]}, "sheets"),
        ("rendering_tools.write_docx", {"watermarks": "x", "file_name": "a"}, "path"),
        ("rendering_tools.write_png", {"deviceScaleFactor": 2}, "device_scale_factor"),
        ("rendering_tools.write_png", {"fullPage": True}, "fit"),
        ("rendering_tools.write_docx", {"referenceDoc": "a.docx"}, "template"),
        ("rendering_tools.write_pptx", {"slideSize": "4:3"}, "slide_size"),
        ("rendering_tools.write_pptx", {"aspectRatio": "4:3"}, "slide_size"),
        ("rendering_tools.write_pdf", {"mergePdfs": ["a.pdf"]}, "merge"),
        ("exec_tools.execute_code_python", {"timeoutS": 3}, "timeout_s"),
    ],
)
async def test_other_spellings_lead_to_the_parameter(client, tool_id, given, meant):
    errors = errors_of((await call(client, tool_id, {"path": "a", "content": "x", **given})).json())
    assert errors[f"params.{list(given)[-1]}"] == f"is not a parameter of this tool; did you mean {meant}?"


async def test_a_name_within_a_parameter_leads_to_a_field_too(client):
    params = {
        "path": "a.pdf",
        "content": "x",
        "margins": {"Top": "1mm", "marginLeft": "2mm"},
        "footer": {"centre": "x"},
    }
    errors = errors_of((await call(client, "rendering_tools.write_pdf", params)).json())
    assert {field: message.rsplit("; ")[-1] for field, message in errors.items()} == {
        "params.margins.Top": "did you mean top?",
        "params.margins.marginLeft": "did you mean left?",
        "params.footer.centre": "did you mean center?",
    }


async def test_a_length_that_is_none_is_one_error(client):
    params = {"path": "a.pdf", "content": "x", "margins": "2 furlongs"}
    assert errors_of((await call(client, "rendering_tools.write_pdf", params)).json()) == {
        "params.margins": 'is no length such as 20mm (units: mm, cm, in, pt, px), got "2 furlongs"'
    }


async def test_a_file_for_archives_with_a_password_is_refused(client):
    params = {"path": "a.pdf", "content": "x", "password": "x", "pdf_variant": "pdf/a-2b"}
    (message,) = errors_of((await call(client, "rendering_tools.write_pdf", params)).json()).values()
    assert message.startswith("pdf_variant pdf/a-2b has neither password nor permissions")


async def test_many_errors_are_bounded_and_counted(client):
    params = {f"p{n}": "x" * 1_000 for n in range(150)}
    answer = (await call(client, "react.file", {"path": "a", "content": "b", **params})).json()

    assert len(errors_of(answer)) == 20
    assert "and 130 more" in answer["error"]["message"]
    assert len(answer["error"]["message"]) < 3_000


async def test_large_wrong_values_are_cut_in_the_call_block(client):
    answer = (await call(client, "react.read", {"paths": [{"a": "x" * 1_000}] * 100})).json()
    [shown] = [block for block in answer["blocks"] if block["type"] == "react.tool.call"]

    assert 1_000 < len(shown["text"]) < 30_000


async def test_the_refusal_is_made_again_and_the_id_is_free(client):
    first = await call(client, "react.read", {})
    again = await call(client, "react.read", {})
    other = await call(client, "react.read", {"paths": ["fi:turn_1.files/a"]})

    assert first.json()["error"] == again.json()["error"]
    assert "Idempotent-Replayed" not in again.headers
    assert other.json()["error"]["code"] == "missing"


async def test_without_a_turn_there_are_no_blocks(client):
    answer = (await call(client, "react.read", {}, turn_id=None)).json()

    assert (answer["error"]["code"], answer["blocks"]) == ("invalid_params", [])


@pytest.mark.parametrize(
    "wrong",
    [{"tool_id": "react.none"}, {"params": []}, {"extra": 1}, {"code": "x"}, {"limits": {"wall_s": 10**6}}],
)
async def test_a_wrong_envelope_is_still_the_callers_mistake(client, wrong):
    body = {
        "tool_id": "react.read",
        "tool_call_id": "t1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {"paths": ["fi:turn_1.files/a"]},
    }
    if "limits" in wrong:
        body |= {"tool_id": "exec_tools.execute_code_bash", "code": ":", "params": {}}
    answer = await client.post("/v1/tool-calls", json={**body, **wrong})

    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("paths", ["fi:turn_1.files/a.md", '["fi:turn_1.files/a.md"]'])
async def test_a_text_stands_for_a_list_of_one(client, paths):
    content = {"path": "a.md", "channel": "canvas", "content": "hello", "kind": "file"}
    await call(client, "react.write", content, call_id="w")
    answer = (await call(client, "react.read", {"paths": paths})).json()

    assert answer["ok"], answer["error"]
    assert answer["ret"]["paths"] == ["fi:turn_1.files/a.md"]


async def test_null_stands_for_the_default_of_an_optional_parameter(client):
    answer = (await call(client, "react.search_files", {"name_regex": None, "max_hits": None})).json()

    assert answer["ok"], answer["error"]


async def test_replacement_text_is_taken_for_replacement(client):
    await call(
        client, "react.write", {"path": "a", "channel": "canvas", "content": "x", "kind": "file"}, call_id="w"
    )
    params = {"path": "fi:turn_1.files/a", "replacement_text": "a text"}
    answer = (await call(client, "react.memory_hide", params)).json()

    # It is read as replacement: what is refused is the place of the block, not the parameter.
    assert answer["error"] is None or answer["error"]["code"] == "hide_before_cache"


def test_the_schema_shows_lists_and_the_one_name():
    hide, read = (REACT_TOOLS[name].params.model_json_schema() for name in ("react.hide", "react.read"))

    assert list(hide["properties"]) == ["path", "replacement"]
    assert read["properties"]["paths"]["type"] == "array"
