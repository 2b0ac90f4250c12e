"""Conversations and files are listed and deleted over HTTP, with the real calls and stores behind it."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from proofbox.contracts.conversations import ConversationPage, FilePage
from proofbox.contracts.deletions import DeletionLine
from proofbox.service.access.authenticator import Authenticator
from proofbox.service.access.quotas import Allowances
from proofbox.service.api.app import create_app
from proofbox.service.artifacts.download_links import DownloadLinks, LinkKey
from proofbox.service.calls.audit.audit_chain import AuditCheck
from proofbox.service.identity import Principal
from proofbox.service.storage.audit_export import audit_lines
from tests.support.pipeline import ANN, EXEC, opened_pipeline, services_over

CONVERSATION = "/v1/conversations/conv-1"
REPORT = "fi:turn_1.files/report.txt"
NOTES = "fi:turn_1.user.attachments/notes.txt"


@pytest.fixture
async def pipeline(tmp_path):
    async with opened_pipeline(tmp_path) as opened:
        opened.engine.program = lambda run: run.write("report.txt", b"a report of some length\n")
        yield opened


def application(pipeline, principal=ANN):
    links = DownloadLinks(lambda: [LinkKey("k1", b"1" * 32)], 600, lambda: 1_000_000.0)
    return create_app(replace(services_over(pipeline), links=links, authenticator=Authenticator(principal)))


def connected(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proofbox")


@pytest.fixture
async def client(pipeline):
    async with connected(application(pipeline)) as connection:
        yield connection


def request(call_id="call_1", conversation="conv-1"):
    return {
        "tool_id": EXEC,
        "tool_call_id": call_id,
        "conversation_id": conversation,
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": "report.txt", "description": "a report"}]},
        "code": "print(1)",
    }


async def run_call(client, call_id="call_1", conversation="conv-1"):
    answer = await client.post("/v1/tool-calls", json=request(call_id, conversation))
    assert (answer.status_code, answer.json()["ok"]) == (200, True), answer.text
    return answer


async def read(client, *paths, call_id="read_1"):
    body = {**request(call_id), "tool_id": "react.read", "params": {"paths": list(paths)}}
    del body["code"]
    return (await client.post("/v1/tool-calls", json=body)).json()


async def fill(client):
    await run_call(client)
    await client.put(f"{CONVERSATION}/turns/turn_1/attachments/notes.txt", content=b"some notes")


def files_below(folder):
    return {file.name for file in folder.rglob("*") if not file.is_dir()}


def problem_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def deletion_lines(pipeline):
    url = type(pipeline.database._url)("")
    with audit_lines(pipeline.folder / "data", url) as lines:
        texts = [line.text for line in lines]
    check = AuditCheck(from_the_first=True)
    for text in texts:
        check.take(text)
    assert [state.problem for state in check.chains.values()] == [None] * len(check.chains)
    return [DeletionLine.model_validate_json(text) for text in texts if '"deletion":' in text]


# ---- lists ----


async def test_conversations_and_files_are_listed(client):
    await fill(client)
    page = ConversationPage.model_validate_json((await client.get("/v1/conversations")).content)
    [conversation] = page.conversations
    assert (conversation.conversation_id, conversation.turns, conversation.files) == ("conv-1", 1, 2)
    assert conversation.size_bytes == len(b"a report of some length\n") + len(b"some notes")
    assert page.next is None
    answer = await client.get(f"{CONVERSATION}/files")
    assert answer.headers["cache-control"] == "no-store"
    files = FilePage.model_validate_json(answer.content).files
    assert [(file.path, file.name, file.size_bytes, file.turn_id) for file in files] == [
        (REPORT, "report.txt", 24, "turn_1"),
        (NOTES, "notes.txt", 10, "turn_1"),
    ]
    for file in files:
        assert (await client.get(f"{CONVERSATION}/artifacts/{file.path}")).status_code == 200


async def paged(client, url, name, limit):
    found, cursor = [], None
    while True:
        query = {"limit": limit} if cursor is None else {"limit": limit, "after": cursor}
        answer = (await client.get(url, params=query)).json()
        assert len(answer[name]) <= limit
        found += answer[name]
        cursor = answer["next"]
        if cursor is None:
            return found


async def test_pages_have_every_entry_once(client, pipeline):
    for number in range(5):
        await client.post(
            f"/v1/conversations/c{number}/timeline",
            json={"blocks": [{"type": "user.prompt", "turn_id": "turn_1", "text": "hi"}]},
        )
        await pipeline.save(f"turn_1/files/{number}")
    names = [entry["conversation_id"] for entry in await paged(client, "/v1/conversations", "conversations", 2)]
    assert names == ["c4", "c3", "c2", "c1", "conv-1", "c0"]
    files = [entry["name"] for entry in await paged(client, f"{CONVERSATION}/files", "files", 2)]
    assert files == list("01234")
    assert await paged(client, "/v1/conversations/nobody/files", "files", 2) == []


@pytest.mark.parametrize("url", ["/v1/conversations", f"{CONVERSATION}/files"])
async def test_a_cursor_of_another_list_or_none_is_refused_with_the_way_out(client, url):
    other = "f:1" if url == "/v1/conversations" else "c:1"
    encoded = {"c:1": "Yzox", "f:1": "Zjox"}
    for cursor in (encoded[other], "x", "", "Yzox=", "Yzo", "é", "Y" * 500, "YzotMQ", "1"):
        answer = await client.get(url, params={"after": cursor})
        assert problem_of(answer) == (422, "invalid_request"), cursor
        assert "after" in json.dumps(answer.json()["errors"])
    for limit in (0, 100_000, "x"):
        assert problem_of(await client.get(url, params={"limit": limit})) == (422, "invalid_request")


@pytest.mark.parametrize(
    "principal",
    [
        Principal("other", "books", "registered", "ann"),
        Principal("acme", "other", "registered", "ann"),
        Principal("acme", "books", "anonymous", "ann"),
        Principal("acme", "books", "registered", "bob"),
    ],
)
async def test_nobody_lists_or_deletes_what_is_of_another_user(client, pipeline, principal):
    await fill(client)
    async with connected(application(pipeline, principal)) as stranger:
        assert (await stranger.get("/v1/conversations")).json() == {"conversations": [], "next": None}
        assert (await stranger.get(f"{CONVERSATION}/files")).json() == {"files": [], "next": None}
        assert problem_of(await stranger.delete(CONVERSATION)) == (404, "unknown_conversation")
        answer = await stranger.delete(f"{CONVERSATION}/artifacts/{REPORT}")
        assert problem_of(answer) == (404, "unknown_artifact")
    assert (await client.get(f"{CONVERSATION}/artifacts/{REPORT}")).status_code == 200


# ---- deletion of a conversation ----


async def test_after_a_deletion_every_address_of_the_conversation_is_unknown_or_empty(client, pipeline):
    await fill(client)
    link = (await client.get(f"{CONVERSATION}/artifacts/{REPORT}?link=1")).headers["location"]
    assert (await client.get(link)).status_code == 200
    answer = await client.delete(CONVERSATION)
    assert (answer.status_code, answer.content) == (204, b"")
    for url in ("/v1/tool-calls/call_1", "/v1/tool-calls/call_1/events", "/v1/tool-calls/call_1/provenance"):
        assert problem_of(await client.get(url)) == (404, "unknown_call")
    assert problem_of(await client.get(f"{CONVERSATION}/artifacts/{REPORT}")) == (404, "unknown_artifact")
    assert problem_of(await client.get(link)) == (403, "link_refused")
    assert (await client.get(f"{CONVERSATION}/timeline")).json()["blocks"] == []
    assert (await client.get(f"{CONVERSATION}/sources")).json() == {"sources": []}
    assert (await client.get("/v1/conversations")).json()["conversations"] == []
    assert problem_of(await client.delete(CONVERSATION)) == (404, "unknown_conversation")
    data = pipeline.folder / "data"
    assert (files_below(data / "blobs"), files_below(data / "hosted")) == (set(), set())


async def test_a_call_id_of_a_deleted_conversation_runs_again_as_a_new_call(client, pipeline):
    headers = {"Idempotency-Key": "once"}
    first = await client.post("/v1/tool-calls", json=request(), headers=headers)
    again = await client.post("/v1/tool-calls", json=request(), headers=headers)
    assert (again.headers["idempotent-replayed"], len(pipeline.engine.jobs)) == ("true", 1)
    await client.delete(CONVERSATION)
    anew = await client.post("/v1/tool-calls", json={**request(), "code": "print(2)"}, headers=headers)
    assert (first.status_code, anew.status_code, len(pipeline.engine.jobs)) == (200, 200, 2)
    assert "idempotent-replayed" not in anew.headers
    assert [file["path"] for file in (await client.get(f"{CONVERSATION}/files")).json()["files"]] == [REPORT]


async def test_a_conversation_with_a_running_or_queued_call_is_not_deleted(client, pipeline):
    await run_call(client, "call_0")
    goes_on, runs = asyncio.Event(), asyncio.Event()

    async def wait(_run):
        runs.set()
        await goes_on.wait()

    pipeline.engine.program = wait
    for call_id in ("call_1", "call_2"):  # one runs, one waits for its place
        answer = await client.post("/v1/tool-calls", json=request(call_id), headers={"Prefer": "respond-async"})
        assert answer.status_code == 202
    await runs.wait()
    for url in (CONVERSATION, f"{CONVERSATION}/artifacts/{REPORT}"):
        refused = await client.delete(url)
        assert problem_of(refused) == (409, "conversation_busy")
        assert refused.json()["retryable"]
        assert "retry-after" in refused.headers
    assert (await client.get(f"{CONVERSATION}/artifacts/{REPORT}")).status_code == 200
    goes_on.set()
    for call_id in ("call_1", "call_2"):
        async with client.stream("GET", f"/v1/tool-calls/{call_id}/events") as events:
            assert "event: result" in (await events.aread()).decode()
    assert (await client.delete(CONVERSATION)).status_code == 204


async def test_of_many_deletions_at_once_one_deletes(client, pipeline):
    await fill(client)
    answers = await asyncio.gather(*(client.delete(CONVERSATION) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [204] + [404] * 7
    assert len(deletion_lines(pipeline)) == 1


async def test_deletions_have_audit_lines_in_the_chain_that_stays(client, pipeline):
    await fill(client)
    answer = await client.delete(f"{CONVERSATION}/artifacts/{NOTES}", headers={"X-Request-ID": "request-7"})
    assert answer.status_code == 204
    await client.delete(CONVERSATION)
    of_file, of_conversation = deletion_lines(pipeline)
    assert (of_file.seq, of_conversation.seq) == (2, 3)
    assert of_file.deletion.model_dump(exclude={"deleted"}) == {
        "conversation_id": "conv-1",
        "path": NOTES,
        "reason": "request",
        "files": 1,
        "versions": 1,
        "size_bytes": 10,
        "calls": 0,
        "blocks": 1,
    }
    assert (of_file.request_id, of_file.principal.user, of_file.principal.tenant) == ("request-7", "ann", "acme")
    deleted = of_conversation.deletion
    assert (deleted.path, deleted.files, deleted.versions, deleted.size_bytes, deleted.calls) == (None, 1, 1, 24, 1)
    assert deleted.blocks > 3


async def test_stored_bytes_count_down_at_once(client, pipeline):
    await fill(client)
    allowed = Allowances(stored_bytes=30)
    pipeline.quotas._stored_bytes = pipeline.artifacts.stored_bytes
    with pytest.raises(Exception, match="stored_bytes: the quota of the project is used up"):
        await pipeline.quotas.check_storage_quota(allowed, "acme", "books")
    await client.delete(f"{CONVERSATION}/artifacts/{NOTES}")
    await pipeline.quotas.check_storage_quota(allowed, "acme", "books")
    assert await pipeline.artifacts.stored_bytes("acme", "books") == 24
    await client.delete(CONVERSATION)
    assert await pipeline.artifacts.stored_bytes("acme", "books") == 0


# ---- deletion of a file ----


async def test_a_deleted_file_is_unknown_and_its_links_are_dead(client):
    await fill(client)
    link = (await client.get(f"{CONVERSATION}/artifacts/{REPORT}?link=1")).headers["location"]
    assert (await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")).status_code == 204
    unknown = await client.get(f"{CONVERSATION}/artifacts/{REPORT}")
    assert problem_of(unknown) == (404, "unknown_artifact")
    assert "the file was deleted at 20" in unknown.json()["detail"]
    assert problem_of(await client.get(f"{CONVERSATION}/artifacts/{REPORT}?version=1")) == (404, "unknown_artifact")
    assert problem_of(await client.get(link)) == (403, "link_refused")
    assert [file["path"] for file in (await client.get(f"{CONVERSATION}/files")).json()["files"]] == [NOTES]
    answer = await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")
    assert problem_of(answer) == (404, "unknown_artifact")


async def test_the_timeline_says_that_a_file_was_deleted_and_shows_nothing_of_it(client):
    await fill(client)
    before = (await client.get(f"{CONVERSATION}/timeline?view=rendered")).text
    assert "a report of some length" in before
    await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")
    rendered = await client.get(f"{CONVERSATION}/timeline?view=rendered")
    assert "a report of some length" not in rendered.text
    assert "DELETED — report.txt was deleted at 20" in rendered.text
    assert "Retrieve with" not in rendered.text
    assert rendered.text.count(f'"message": "{REPORT} was deleted at 20') == 1
    blocks = (await client.get(f"{CONVERSATION}/timeline")).json()["blocks"]
    assert "a report of some length" not in json.dumps(blocks)
    assert int(rendered.headers["timeline-revision"]) == len(blocks)


async def test_a_model_that_reads_a_deleted_file_learns_when_it_was_deleted(client):
    await fill(client)
    await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")
    [deleted] = [
        block["ts"]
        for block in (await client.get(f"{CONVERSATION}/timeline")).json()["blocks"]
        if block["meta"].get("deletes")
    ]
    for number, path in enumerate((REPORT, "report.txt", f"{REPORT}#L1-2")):
        answer = await read(client, path, call_id=f"read_{number}")
        assert not answer["ok"]
        assert f"the file was deleted at {deleted}" in answer["report"]
    await run_call(client, "call_2")
    answer = await read(client, REPORT, call_id="read_9")
    assert (answer["ok"], answer["report"]) == (True, f"In view already: {REPORT}")


async def test_a_later_program_of_the_turn_does_not_find_a_deleted_file(client, pipeline):
    await fill(client)
    await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")
    found = []
    pipeline.engine.program = lambda run: found.extend(run.files) or run.write("report.txt", b"another\n")
    await run_call(client, "call_2")
    assert "turn_1/files/report.txt" not in found
    [report] = [f for f in (await client.get(f"{CONVERSATION}/files")).json()["files"] if f["path"] == REPORT]
    assert report["size_bytes"] == len(b"another\n")


async def test_what_a_loop_wrote_of_a_deleted_file_does_not_bring_it_back(client):
    await fill(client)
    digest = {
        "artifact_path": REPORT,
        "physical_path": "turn_1/files/report.txt",
        "hosted_uri": "s3://other/report",
    }
    block = {"type": "react.tool.result", "path": "tc:turn_1.call_9.result", "text": json.dumps(digest)}
    answer = await client.post(f"{CONVERSATION}/timeline", json={"blocks": [block]})
    assert answer.status_code == 201
    await client.delete(f"{CONVERSATION}/artifacts/{REPORT}")
    answer = await read(client, REPORT)
    assert "the file was deleted at 20" in answer["report"]


async def test_only_files_are_deleted_by_their_path(client):
    await fill(client)
    for path in ("tc:turn_1.call_1.call", "so:sources_pool[1]", "sk:one", "ar:turn_1.user.prompt"):
        assert problem_of(await client.delete(f"{CONVERSATION}/artifacts/{path}")) == (404, "unknown_artifact")
    for path in ("report.txt", "fi:turn_1.files/../x", "fi:turn_1.files/%00"):
        assert problem_of(await client.delete(f"{CONVERSATION}/artifacts/{path}")) == (400, "unsafe_path")
    for other in ("a b", "%2e%2e", "x" * 200):
        assert problem_of(await client.delete(f"/v1/conversations/{other}"))[0] in {400, 404, 422}
    assert len((await client.get(f"{CONVERSATION}/files")).json()["files"]) == 2
