"""Programs and documents given by the path of a text: what runs, what is kept of it, and running it again."""

import json

import pytest

from proofbox.contracts.tools import Language
from proofbox.service.timeline.block_text import rendered
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

OUT = ["out.txt"]


def of_type(response, kind):
    return [block for block in response.blocks if block.type == kind]


async def rerun(http, call, call_id=None):
    return await http.post(
        f"/v1/tool-calls/{call_id or call.last_id}/rerun", params={"conversation_id": call.conversation}
    )


async def audit_line(http, call):
    answer = await http.get(
        f"/v1/tool-calls/{call.last_id}/provenance", params={"conversation_id": call.conversation}
    )
    return answer.json()


async def written(http, call, path, content):
    body = {
        "tool_id": "react.file",
        "tool_call_id": f"write_{len(content)}_{path.rpartition('/')[2].replace('.', '_')}",
        "conversation_id": call.conversation,
        "turn_id": call.turn,
        "params": {"path": path, "content": content},
    }
    answer = await http.post("/v1/tool-calls", json=body)
    assert answer.json()["ok"], answer.text


@pytest.mark.parametrize("given", ["fi:turn_1.files/script.py", "ref:turn_1/files/script.py\n"])
async def test_a_program_given_by_its_path_runs_byte_for_byte_and_its_code_block_holds_it(http, call, given):
    code = "open('files/out.txt', 'w').write('ran')  # Größe\r\n"
    await written(http, call, "script.py", code)
    response = await call(given, OUT)
    assert response.ok, response.report
    assert await call.text("out.txt") == "ran"
    [block] = of_type(response, "react.tool.code")
    assert (block.text, block.path) == (code, f"fi:turn_1.code.{call.last_id}")


async def test_the_code_of_an_earlier_call_runs_again_by_its_path_also_in_a_later_turn(call):
    code = "open('files/out.txt', 'a').write('x')"
    await call(code, OUT)
    first = call.last_id
    call.turn = "turn_2"
    again = await call(f"fi:turn_1.code.{first}", OUT)
    assert (again.ok, of_type(again, "react.tool.code")[0].text) == (True, code)
    third = await call(f"fi:turn_2.code.{call.last_id}", OUT)
    assert (third.ok, await call.text("out.txt")) == (True, "xxx")


async def test_the_files_that_a_referenced_program_names_are_there(http, call):
    await call("open('files/data.csv', 'w').write('a,b')", ["data.csv"])
    await written(http, call, "script.sh", "cp turn_1/files/data.csv files/out.txt\n")
    call.turn = "turn_2"
    response = await call("fi:turn_1.files/script.sh", OUT, language=Language.BASH)
    assert (response.ok, await call.text("out.txt")) == (True, "a,b")
    named = [line.physical_path for line in response.rehosted if line.asked != "workspace"]
    assert named == ["turn_1/files/data.csv"]


@pytest.mark.parametrize("given", ["fi:turn_1.files/none.py", "ref:turn_1/files/none.py", "fi:turn_1.code.none"])
async def test_a_program_whose_path_leads_to_no_text_is_refused_and_nothing_runs(call, given):
    response = await call(given, OUT)
    assert (response.ok, response.error.code, response.sandbox) == (False, "param_ref_not_visible", None)
    [notice] = [json.loads(block.text) for block in of_type(response, "react.notice")]
    assert (notice["code"], notice["param"], notice["ref"]) == (
        "protocol_violation.param_ref_not_visible",
        "code",
        given.removeprefix("ref:"),
    )
    assert of_type(response, "react.tool.code") == []
    assert given.removeprefix("ref:") in rendered(response.blocks)


async def test_what_a_reference_leads_to_is_checked_like_any_code(http, call):
    await written(http, call, "fenced.py", "```python\nprint(1)\n```\n")
    response = await call("fi:turn_1.files/fenced.py", OUT)
    assert (response.ok, response.error.code) == (False, "code_contaminated")
    await written(http, call, "blank.py", " \n")
    assert (await call("fi:turn_1.files/blank.py", OUT)).error.code == "missing_code"


async def test_the_audit_line_has_the_text_that_ran_and_a_rerun_takes_that_version(http, call, service):
    one, two = "open('files/out.txt', 'w').write('one')", "open('files/out.txt', 'w').write('two')"
    await written(http, call, "script.py", one)
    await call("fi:turn_1.files/script.py", OUT)
    first = call.last_id
    line = await audit_line(http, call)
    [used] = line["references"]
    assert (used["param"], used["path"], used["version"]) == ("code", "fi:turn_1.files/script.py", 1)
    assert (line["request"]["code_sha256"], line["request"]["code_bytes"]) == (used["sha256"], len(one))
    elsewhere = Caller(service)
    await elsewhere(one, OUT)
    assert (await audit_line(http, elsewhere))["request"]["code_sha256"] == used["sha256"]
    await written(http, call, "script.py", two + "  # longer")
    report = (await rerun(http, call, first)).json()
    assert (report["identical"], [output["result"] for output in report["outputs"]]) == (True, ["identical"])


async def test_a_document_given_by_its_path_is_rendered_again_from_the_version_that_it_had(http, call):
    await written(http, call, "rep.md", "# One")
    body = {
        "tool_id": "rendering_tools.write_png",
        "tool_call_id": "render_by_path",
        "conversation_id": call.conversation,
        "turn_id": "turn_1",
        "params": {"path": "rep.png", "content": "fi:turn_1.files/rep.md"},
    }
    assert (await http.post("/v1/tool-calls", json=body)).json()["ok"]
    await written(http, call, "rep.md", "# Two, and more of it")
    report = (await rerun(http, call, "render_by_path")).json()
    assert (report["identical"], report["outcome"]["now"]) == (True, "ok")


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("react.plan", {"steps": ["look"]}),
        ("react.hide", {"path": "ar:turn_1.user.prompt", "replacement": "x"}),
        ("react.memsearch", {"query": "rain", "targets": ["user"]}),
        ("react.search_files", {}),
        ("react.read", {"paths": ["so:sources_pool[1]"]}),
        ("rendering_tools.write_docx", {"path": "a.docx", "content": "x"}),
    ],
)
async def test_the_sources_of_a_call_of_any_tool_complete_the_pool_or_conflict(http, call, tool, params):
    row = {"sid": 1, "source_type": "web", "url": "https://example.org/a"}
    fields = {"tool_id": tool, "conversation_id": call.conversation, "turn_id": "turn_1", "params": params}
    first = await http.post("/v1/tool-calls", json={**fields, "tool_call_id": "c1", "sources_pool": [row]})
    assert first.status_code == 200
    rows = (await http.get(f"/v1/conversations/{call.conversation}/sources")).json()["sources"]
    assert [each["sid"] for each in rows if each["source_type"] == "web"] == [1]
    other = {**row, "url": "https://example.org/b"}
    second = await http.post("/v1/tool-calls", json={**fields, "tool_call_id": "c2", "sources_pool": [other]})
    assert (second.status_code, second.json()["code"]) == (409, "sid_conflict")


async def test_the_source_id_of_a_file_is_in_the_answer_the_digest_and_what_a_model_reads(call):
    await call.attach("in.csv", b"a,b\n")
    response = await call("open('files/out.txt', 'w').write('x'); open('files/more.txt', 'w').write('y')", OUT)
    assert [(artifact.physical_path, artifact.sid) for artifact in response.artifacts] == [
        ("turn_1/files/out.txt", 10_002),
        ("turn_1/files/more.txt", None),
    ]
    digests = [json.loads(block.text) for block in response.blocks if block.text and "artifact_path" in block.text]
    assert [digest["sid"] for digest in digests] == [10_002]
    assert "10002" in rendered(response.blocks)
    again = await call("open('files/out.txt', 'w').write('z')", OUT)
    assert again.artifacts[0].sid == 10_002
    pages = [{"sid": n, "source_type": "web", "url": f"https://example.org/{n}"} for n in range(1, 30)]
    assert (await call("open('files/out.txt', 'w').write('w')", OUT, sources_pool=pages)).ok
