"""What is kept of calls that really ran, and running them again to compare."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from itertools import pairwise

import httpx
import pytest
from sqlalchemy import text

from proofbox.contracts.deletions import DeletionLine
from proofbox.contracts.provenance import AuditLine, RerunReport
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.own_image import own_image
from proofbox.service.app.serving import application
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.errors import UnknownCallError
from proofbox.service.storage.calls import SqlCallStore
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

SAME = "open('files/a.csv', 'w').write('n,m\\n1,2\\n')"
OTHER = "import os\nopen('files/a.txt', 'w').write(os.urandom(8).hex())"


def sha256(value):
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()


async def lines_of(service):
    """All audit lines of the service's tenant and project, in their order; other tests use other tenants."""
    who = service.principal
    read = text(
        "SELECT line, sha256 FROM audit JOIN chains ON chains.id = audit.chain "
        "WHERE chains.tenant = :tenant AND chains.project = :project ORDER BY seq"
    ).bindparams(tenant=who.tenant, project=who.project)
    return await service.database.read(lambda connection: [tuple(row) for row in connection.execute(read)])


def parse_line(line):
    """A line of a call, or of a deletion."""
    of_deletion = json.loads(line)["format"] != AuditLine.model_fields["format"].default
    return (DeletionLine if of_deletion else AuditLine).model_validate_json(line)


async def provenance(http, call, call_id=None, **params):
    path = f"/v1/tool-calls/{call_id or call.last_id}/provenance"
    answer = await http.get(path, params={"conversation_id": call.conversation, **params})
    assert answer.status_code == 200, answer.text
    return answer


async def line_of(http, call, call_id=None):
    return AuditLine.model_validate_json((await provenance(http, call, call_id)).content)


async def rerun(http, call, call_id=None):
    path = f"/v1/tool-calls/{call_id or call.last_id}/rerun"
    answer = await http.post(path, params={"conversation_id": call.conversation})
    assert answer.status_code == 200, answer.text
    return RerunReport.model_validate_json(answer.content)


def results(report):
    return {output.path: output.result for output in report.outputs}


async def everything(service):
    """What a conversation holds: blocks, versions of files and sources, and the calls."""
    tables = ("blocks", "artifacts", "sources", "calls", "turns")

    def work(connection):
        return [connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in tables]

    return await service.database.read(work)


# ---- the line ----


async def test_the_line_of_a_call_says_who_ran_what_on_which_inputs_and_what_came_out(service, http, call):
    attached = b"x\n1\n"
    await call.attach("in.csv", attached)
    await call("open('files/old.txt', 'w').write('old')", ["old.txt"])
    call.turn = "turn_2"
    code = "t = open('turn_1/files/old.txt').read() + open('turn_1/attachments/in.csv').read()\n" + SAME
    body = call.body(code, ["a.csv", "b.csv"], limits={"wall_s": 30})
    answer = await http.post("/v1/tool-calls", json=body, headers={"X-Request-ID": "req-7"})
    line = await line_of(http, call)

    said = answer.json()
    assert (line.principal.tenant, line.principal.project, line.principal.user) == ("acme", "reports", "u-17")
    assert (line.call.tool_call_id, line.call.conversation_id) == (call.last_id, call.conversation)
    assert (line.call.turn_id, line.call.request_id) == ("turn_2", "req-7")
    assert (line.request.code_sha256, line.request.code_bytes) == (sha256(code), len(code))
    assert line.request.params_sha256 == sha256(
        json.dumps(body["params"], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    )
    assert line.sandbox.model_dump(mode="json") == said["sandbox"]
    assert (line.limits.wall_s, line.limits.memory_bytes) == (30, service.settings.memory_bytes)
    assert [(used.path, used.version, used.sha256, used.size_bytes) for used in line.inputs] == [
        ("turn_1/files/old.txt", 1, sha256("old"), 3),
        ("turn_1/attachments/in.csv", 1, sha256(attached), 4),
    ]
    assert [(made.path, made.verdict, made.version, made.sha256) for made in line.outputs] == [
        ("turn_2/files/a.csv", "produced", 1, sha256("n,m\n1,2\n")),
        ("turn_2/files/b.csv", "missing_file", None, None),
    ]
    assert (line.outcome.state, line.outcome.code) == ("done", "execution_failed")
    assert (line.outcome.answer_sha256, line.outcome.answer_bytes) == (sha256(answer.content), len(answer.content))
    assert line.usage.model_dump(mode="json") == said["usage"]


async def test_no_line_holds_code_or_what_a_file_says(http, call):
    await call.attach("canary.txt", b"canary-in-file")
    await call("print('canary-in-code')\n" + SAME, ["a.csv"], notes="canary-in-notes")
    assert "canary-in" not in (await provenance(http, call)).text


async def test_a_call_that_was_refused_has_a_line_without_limits_and_sandbox(http, call):
    response = await call("print(1)", "[")
    line = await line_of(http, call)
    assert (line.outcome.code, line.limits, line.sandbox) == (response.error.code, None, None)


async def test_a_call_that_was_cancelled_has_a_line(service, http, call):
    ticket = await call.submit("import time\ntime.sleep(60)", ["a.csv"])
    async for event in await call.follow():
        if event.name == "started":
            break
    await service.calls.cancel(service.principal, call.last_id, call.conversation)
    await ticket.answer()
    line = await line_of(http, call)
    assert (line.outcome.state, line.outcome.code) == ("cancelled", "cancelled")
    assert line.sandbox is not None


async def test_a_react_tool_has_a_line_with_the_version_that_it_wrote(http, call):
    for number in (1, 2):
        body = {
            "tool_id": "react.write",
            "tool_call_id": f"write_{number}",
            "conversation_id": call.conversation,
            "turn_id": "turn_1",
            "params": {"path": "a.md", "channel": "canvas", "content": f"# {number}", "kind": "display"},
        }
        assert (await http.post("/v1/tool-calls", json=body)).json()["ok"]
    line = await line_of(http, call, "write_2")
    assert [(made.path, made.version, made.sha256) for made in line.outputs] == [
        ("turn_1/files/a.md", 2, sha256("# 2"))
    ]


async def test_the_lines_are_a_chain_in_which_each_has_the_hash_of_the_one_before(service, call):
    await asyncio.gather(*(call(SAME, ["a.csv"]) for _ in range(5)))
    lines = await lines_of(service)
    assert [sha for _, sha in lines] == [sha256(line) for line, _ in lines]
    parsed = [parse_line(line) for line, _ in lines]
    assert parsed[0].previous is None
    assert [line.previous for line in parsed[1:]] == [sha for _, sha in lines[:-1]]
    assert all(two.seq == one.seq + 1 for one, two in pairwise(parsed))


async def test_no_answer_is_stored_without_a_line(service, call):
    await call(SAME, ["a.csv"])
    without = text(
        "SELECT count(*) FROM calls WHERE state <> 'open' "
        "AND id NOT IN (SELECT call FROM audit WHERE call IS NOT NULL)"
    )
    assert await service.database.read(lambda connection: connection.execute(without).scalar_one()) == 0


async def test_a_call_that_a_dead_life_of_the_service_left_open_gets_its_line_from_the_next(settings, tmp_path):
    settings = settings.model_copy(update={"data_dir": tmp_path / "data"})
    service = build(settings)
    call = Caller(service)
    request = ToolCallRequest.model_validate(call.body(SAME, ["a.csv"]))
    await service.database.open()
    left = NewCall(CallKey(call.scope, call.last_id), sha256("x"), request.model_dump_json(), "dead", None)
    await SqlCallStore(service.database).claim(left)
    await service.database.close()
    service = build(settings)
    async with running(service):
        kept = await service.provenance.line(service.principal, call.last_id, call.conversation)
    line = AuditLine.model_validate_json(kept.text)
    assert (line.outcome.state, line.outcome.code, line.sandbox) == ("done", "sandbox_failed", None)
    assert (line.request.code_sha256, line.call.request_id) == (sha256(SAME), None)


async def test_a_replayed_answer_adds_no_line(service, http, call):
    body = call.body(SAME, ["a.csv"])
    for _ in range(2):
        assert (await http.post("/v1/tool-calls", json=body)).status_code == 200
    mine = [line for line, _ in await lines_of(service) if f'"conversation_id":"{call.conversation}"' in line]
    assert len(mine) == 1


async def test_the_hash_that_comes_with_a_line_is_that_of_its_bytes(http, call):
    await call(SAME, ["a.csv"])
    answer = await provenance(http, call)
    assert answer.headers["audit-sha256"] == sha256(answer.content)


async def test_an_in_toto_statement_names_the_files_that_came_out_and_all_that_they_came_from(http, call):
    await call.attach("in.csv", b"x\n1\n")
    code = "open('turn_1/attachments/in.csv').read()\n" + SAME
    response = await call(code, ["a.csv"])
    answer = await provenance(http, call, form="in-toto")
    assert answer.headers["content-type"] == "application/vnd.in-toto+json"
    said = answer.json()
    assert (said["_type"], said["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert [(s["name"], s["digest"]) for s in said["subject"]] == [
        ("turn_1/files/a.csv", {"sha256": sha256("n,m\n1,2\n")})
    ]
    predicate = said["predicate"]
    assert set(predicate) == {"buildDefinition", "runDetails"}
    assert set(predicate["buildDefinition"]) == {
        "buildType",
        "externalParameters",
        "internalParameters",
        "resolvedDependencies",
    }
    assert {d["name"]: d["digest"] for d in predicate["buildDefinition"]["resolvedDependencies"]} == {
        "image": {"sha256": response.sandbox.image_digest.removeprefix("sha256:")},
        "code": {"sha256": sha256(code)},
        "turn_1/attachments/in.csv": {"sha256": sha256(b"x\n1\n")},
    }
    assert predicate["runDetails"]["metadata"]["invocationId"] == answer.headers["audit-sha256"]


async def test_a_call_that_still_runs_has_no_provenance_yet(service, http, call):
    ticket = await call.submit("import time\ntime.sleep(1000)", ["a.csv"])
    answer = await http.get(f"/v1/tool-calls/{call.last_id}/provenance")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_provenance")
    await service.calls.cancel(service.principal, call.last_id, call.conversation)
    await ticket.answer()


# ---- again ----


async def test_a_program_that_depends_on_its_inputs_alone_comes_out_identical(service, http, call):
    await call(SAME + "\nopen('files/more.txt', 'w').write('unpromised')", ["a.csv"])
    before = await everything(service)
    report = await rerun(http, call)
    assert (report.identical, results(report)) == (
        True,
        {"turn_1/files/a.csv": "identical", "turn_1/files/more.txt": "identical"},
    )
    assert (report.image.equal, report.limits.equal, report.exit.now) == (True, True, "exit 0")
    assert await everything(service) == before


async def test_a_program_that_draws_random_numbers_differs_and_both_hashes_are_told(http, call):
    await call(OTHER, ["a.txt"])
    report = await rerun(http, call)
    first = (await line_of(http, call)).outputs[0].sha256
    [output] = report.outputs
    assert (report.identical, output.result, output.first_sha256) == (False, "differs", first)
    assert output.now_sha256 not in (None, first)


async def test_every_run_draws_random_numbers_of_its_own(call):
    code = (
        "import os, random, uuid\nimport numpy\n"
        "drawn = [random.random(), os.urandom(8).hex(), uuid.uuid4()]\n"
        "drawn += [numpy.random.random(), numpy.random.default_rng().random()]\n"
        "open('files/a.txt', 'w').write(' '.join(map(str, drawn)))"
    )
    seen = []
    for _ in range(3):
        await call(code, ["a.txt"])
        seen.append((await call.text("a.txt")).split())
    assert [len(set(drawn)) for drawn in zip(*seen, strict=True)] == [3] * 5


async def test_an_input_that_has_a_newer_version_is_read_as_it_was(http, call):
    await call("open('files/in.txt', 'w').write('one')", ["in.txt"])
    call.turn = "turn_2"
    await call("open('files/a.txt', 'w').write(open('turn_1/files/in.txt').read())", ["a.txt"])
    wanted = call.last_id
    call.turn = "turn_1"
    await call("open('files/in.txt', 'w').write('two')", ["in.txt"])
    report = await rerun(http, call, wanted)
    assert (report.identical, [output.now_sha256 for output in report.outputs]) == (True, [sha256("one")])


async def test_files_that_came_with_the_call_are_handed_over_again(http, call):
    assets = [{"physical_path": "turn_0/files/in.txt", "text": "handed over"}]
    await call("open('files/a.txt', 'w').write(open('turn_0/files/in.txt').read())", ["a.txt"], assets=assets)
    assert (await rerun(http, call)).identical


async def test_a_file_that_only_one_of_the_runs_makes_is_missing_or_new(http, call):
    code = "import os\nopen(f'files/{os.urandom(8).hex()}.txt', 'w').write('x')"
    await call(code, [{"glob": "*.txt", "description": "one"}])
    report = await rerun(http, call)
    assert (report.identical, sorted(results(report).values())) == (False, ["missing", "new"])


async def test_a_program_that_ends_another_way_is_not_identical(http, call):
    await call("import os, sys\nsys.exit(os.urandom(8)[0] % 200 + 1)", ["a.txt"])
    reports = [await rerun(http, call) for _ in range(3)]
    assert [report.identical for report in reports] == [report.exit.equal for report in reports]
    assert not all(report.identical for report in reports)


async def test_a_rendering_comes_out_identical(http, call):
    await call.attach("logo.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    body = {
        "tool_id": "rendering_tools.write_png",
        "tool_call_id": "draw_1",
        "conversation_id": call.conversation,
        "turn_id": "turn_2",
        "params": {
            "path": "a.png",
            "content": "# T\n\n![](turn_1/attachments/logo.svg)\n\n![](turn_1/files/gone.png)",
        },
    }
    answer = (await http.post("/v1/tool-calls", json=body)).json()
    assert answer["artifacts"][0]["sha256"]
    line = await line_of(http, call, "draw_1")
    assert line.missing == ["turn_1/files/gone.png"]
    report = await rerun(http, call, "draw_1")
    assert (report.identical, results(report)) == (True, {"turn_2/files/a.png": "identical"})


async def test_a_rerun_has_an_audit_line_that_names_the_first(service, http, call):
    await call(SAME, ["a.csv"])
    report = await rerun(http, call)
    lines = {sha: parse_line(line) for line, sha in await lines_of(service)}
    assert lines[report.line].call.rerun_of == report.first_line
    assert lines[report.line].call.tool_call_id == report.rerun_id
    assert lines[report.first_line].call.tool_call_id == call.last_id


@pytest.mark.parametrize(("contract", "why"), [("[", "ran no program"), (["a.csv"], "cannot be had any more")])
async def test_what_cannot_be_run_again_says_why(service, http, call, contract, why):
    assets = [
        {"physical_path": "turn_0/files/in.txt", "uri": (service.settings.asset_roots[0] / "in.txt").as_uri()}
    ]
    asset = service.settings.asset_roots[0] / "in.txt"
    asset.write_text("then")
    await call("open('turn_0/files/in.txt').read()\n" + SAME, contract, assets=assets)
    asset.write_text("now")
    answer = await http.post(f"/v1/tool-calls/{call.last_id}/rerun", params={"conversation_id": call.conversation})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_rerunnable")
    assert why in answer.json()["detail"]


async def test_a_call_is_run_again_from_the_command_line_when_the_service_is_stopped(settings, tmp_path):
    again = settings.model_copy(update={"data_dir": tmp_path / "data"})
    service = build(again)
    async with running(service):
        call = Caller(service)
        await call(SAME, ["a.csv"])
    names = {"PROOFBOX_TENANT": "acme", "PROOFBOX_PROJECT": "reports", "PROOFBOX_USER": "u-17"}
    environment = {**os.environ, **names, "PROOFBOX_DATA_DIR": str(again.data_dir)}
    command = [
        sys.executable,
        "-m",
        "proofbox.cli",
        "rerun",
        call.last_id,
        "--conversation",
        call.conversation,
    ]
    ran = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, RerunReport.model_validate_json(ran.stdout).identical) == (0, True), ran.stderr


async def test_the_provenance_of_others_is_not_shown(service, http, call):
    await call(SAME, ["a.csv"])
    for path in (f"/v1/tool-calls/{call.last_id}/provenance", f"/v1/tool-calls/{call.last_id}/rerun"):
        method = "GET" if path.endswith("provenance") else "POST"
        answer = await http.request(method, path, params={"conversation_id": "another"})
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_call")
    stranger = replace(service.principal, user="other")
    with pytest.raises(UnknownCallError):
        await service.provenance.line(stranger, call.last_id, call.conversation)
    with pytest.raises(UnknownCallError):
        await service.provenance.rerun(stranger, call.last_id, call.conversation, "req")


@pytest.mark.slow
async def test_another_image_is_told(settings, tmp_path):
    tag = f"proofbox-sandbox:relabelled-{uuid.uuid4().hex[:12]}"
    settings = settings.model_copy(update={"data_dir": tmp_path / "data", "engine": "docker"})
    build_it = ["docker", "build", "--quiet", "--label", f"again={tag}", "--tag", tag, "-"]
    dockerfile = f"FROM {own_image()}\n"
    await asyncio.to_thread(subprocess.run, build_it, input=dockerfile, text=True, check=True, capture_output=True)
    try:
        service = build(settings)
        async with running(service):
            call = Caller(service)
            await call(SAME, ["a.csv"])
        service = build(settings.model_copy(update={"image": tag}))
        async with running(service):
            transport = httpx.ASGITransport(application(service))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                report = await rerun(http, call)
        assert (report.identical, report.image.equal) == (True, False)
        assert report.image.first != report.image.now
    finally:
        remove = ["docker", "rmi", "--force", tag]
        await asyncio.to_thread(subprocess.run, remove, check=True, capture_output=True)
