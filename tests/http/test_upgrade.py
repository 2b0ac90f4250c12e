"""The service starts on the data folder of the schema before, and all that clients know of it is there."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from proofbox.service.api.app import create_app
from proofbox.service.calls.audit.audit_chain import AuditCheck
from proofbox.service.storage.audit_export import audit_lines
from proofbox.service.storage.migrations import revisions
from tests.support.pipeline import EXEC, opened_pipeline, services_over

FIRST_RELEASE = Path(__file__).parents[1] / "support" / "first_release"
CONVERSATION = "/v1/conversations/conv-1"


def unpack(data_dir):
    """The data folder as the earlier release left it."""
    data_dir.mkdir()
    with closing(sqlite3.connect(data_dir / "proofbox.sqlite3")) as database:
        database.executescript((FIRST_RELEASE / "database.sql").read_text(encoding="utf-8"))
    for blob in (FIRST_RELEASE / "blobs").iterdir():
        target = data_dir / "blobs" / blob.name[:2] / blob.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(blob, target)


def stamped(data_dir):
    with closing(sqlite3.connect(data_dir / "proofbox.sqlite3")) as database:
        return database.execute("SELECT version_num FROM alembic_version").fetchone()[0]


@pytest.fixture
async def pipeline(tmp_path):
    unpack(tmp_path / "data")
    assert stamped(tmp_path / "data") == "0001"
    async with opened_pipeline(tmp_path) as opened:
        yield opened
    assert stamped(tmp_path / "data") == revisions()[-1]


@pytest.fixture
async def client(pipeline):
    transport = httpx.ASGITransport(create_app(services_over(pipeline)))
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as connection:
        yield connection


def call(call_id="call_1"):
    return {
        "tool_id": EXEC,
        "tool_call_id": call_id,
        "conversation_id": "conv-1",
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": "table.csv", "description": "a table"}]},
        "code": "print('wrote it')",
    }


async def test_answers_files_and_timeline_of_the_release_before_are_there(client, pipeline):
    replayed = await client.post("/v1/tool-calls", json=call(), headers={"Idempotency-Key": "once"})
    assert (replayed.status_code, replayed.headers["idempotent-replayed"]) == (200, "true")
    assert (replayed.json()["ok"], pipeline.engine.jobs) == (True, [])
    table = await client.get(f"{CONVERSATION}/artifacts/fi:turn_1.files/table.csv")
    notes = await client.get(f"{CONVERSATION}/artifacts/fi:turn_1.user.attachments/notes.txt")
    assert (table.content, notes.content) == (b"a,b\n1,2\n", b"some notes\n")
    timeline = (await client.get(f"{CONVERSATION}/timeline")).json()
    assert (len(timeline["blocks"]), timeline["last"]) == (12, 12)
    assert "Make a table." in (await client.get(f"{CONVERSATION}/timeline?view=rendered")).text
    assert [row["title"] for row in (await client.get(f"{CONVERSATION}/sources")).json()["sources"]] == [
        "notes.txt",
        "table.csv",
    ]


async def test_what_the_release_before_did_not_know_works_on_its_data(client, pipeline):
    listed = (await client.get("/v1/conversations")).json()["conversations"]
    assert [(entry["conversation_id"], entry["files"], entry["size_bytes"]) for entry in listed] == [
        ("empty", 0, 0),
        ("conv-1", 2, 19),
    ]
    assert listed[1]["created_at"] == "2026-11-26T08:03:00.385Z"
    assert listed[1]["last_used_at"] == "2026-11-26T08:03:00.507Z"
    pipeline.engine.program = lambda run: run.write("table.csv", b"a,b\n3,4\n")
    assert (await client.post("/v1/tool-calls", json=call("call_3"))).json()["ok"]
    assert (await client.delete(f"{CONVERSATION}/artifacts/fi:turn_1.files/table.csv")).status_code == 204
    assert (await client.delete(CONVERSATION)).status_code == 204
    with audit_lines(pipeline.folder / "data", SecretStr("")) as lines:
        texts = [line.text for line in lines]
    check = AuditCheck(from_the_first=True)
    for text in texts:
        check.take(text)
    assert ([state.problem for state in check.chains.values()], len(texts)) == ([None], 5)
    [left] = (await client.get("/v1/conversations")).json()["conversations"]
    assert left["conversation_id"] == "empty"
