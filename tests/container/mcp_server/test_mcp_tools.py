"""MCP tools on real containers, in both eras of the protocol."""

import asyncio
import base64
import io
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from PIL import Image

from proofbox.service.app.serving import application
from proofbox.service.mcp.preview import PICTURE_BYTES_MAX, SIDE_PX_MAX
from proofbox.service.mcp.results import RESULT_BYTES_MAX
from tests.container.mcp_server.conftest import Host, connected

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

NOISE = """
import os
from PIL import Image
Image.frombytes("RGB", (2700, 2600), os.urandom(2700 * 2600 * 3)).save("files/noise.png", compress_level=0)
"""


async def test_a_program_with_promised_files_has_verdicts_links_and_a_text_that_stands_alone(host):
    code = "print('forty', 40 + 2)\nopen('files/a.csv', 'w').write('x,y\\n1,2\\n')"
    async with host as call:
        result = await call("run_python", code=code, files_promised=["a.csv"])
        conversation = result.data["conversation"]
        assert not result.raw.is_error
        assert "forty 42" in result.text
        assert "turn_1/files/a.csv" in result.text
        assert conversation in result.text
        assert "http" not in result.text
        [file] = result.data["files"]
        assert (file["path"], file["verdict"], file["size_bytes"]) == ("turn_1/files/a.csv", "produced", 8)
        [link] = result.links
        assert (link.uri, link.name, link.mime_type, link.size) == (
            f"proofbox://{conversation}/turn_1/files/a.csv",
            "a.csv",
            "text/csv",
            8,
        )
        assert link.annotations is not None
        assert link.annotations.audience == ["user"]
        assert (link.meta or {})["proofbox/sha256"] == file["sha256"]
        assert "forty" in result.data["report"]
        assert "forty" not in json.dumps({**result.data, "report": ""})
        read = await call.client.read_resource(link.uri)
        assert read.contents[0].text == "x,y\n1,2\n"  # type: ignore[union-attr]


async def test_files_of_earlier_calls_are_there_again_and_without_promises_all_are_taken(host):
    async with host as call:
        first = await call("run_python", code="open('files/a.txt', 'w').write('one')")
        assert [file["path"] for file in first.data["files"]] == ["turn_1/files/a.txt"]
        conversation = first.data["conversation"]
        second = await call("run_bash", code="cat files/a.txt; echo two > files/b.txt", conversation=conversation)
        assert not second.raw.is_error, second.text
        assert "one" in second.text
        assert {f["path"] for f in second.data["files"] if f["verdict"] == "produced"} >= {"turn_1/files/b.txt"}
        third = await call("run_python", code="print('nothing new')", conversation=conversation)
        assert not third.raw.is_error, third.text
        listed = await call("list_files", conversation=conversation)
        assert [file["path"] for file in listed.data["files"]] == ["turn_1/files/a.txt", "turn_1/files/b.txt"]
        other = await call("run_python", code="import os; print(os.listdir('files'))")
        assert "[]" in other.text
        assert other.data["conversation"] != conversation


async def test_what_the_model_got_wrong_is_an_error_it_can_read(host):
    async with host as call:
        crashed = await call("run_python", code="1 / 0")
        assert crashed.raw.is_error
        assert "ZeroDivisionError" in crashed.text
        assert (crashed.data["ok"], crashed.data["exit_code"]) == (False, 1)
        missing = await call("run_python", code="print(1)", files_promised=["report.pdf"])
        assert missing.raw.is_error
        assert "report.pdf" in missing.text
        assert missing.data["files"][0]["verdict"] == "missing_file"
        late = await call("run_python", code="while True: pass", timeout_s=1)
        assert late.raw.is_error
        assert late.data["error"]["code"] == "timeout"
        refused = await call("run_python", code="print(1)", files_promised=["../x"])
        assert refused.raw.is_error
        assert "Nothing was run" in refused.text


async def test_files_in_the_arguments_are_attachments_of_the_conversation(host):
    async with host as call:
        files = [
            {"name": "a.csv", "text": "x\n1\n"},
            {"name": "b.bin", "base64": base64.b64encode(bytes(range(256))).decode()},
        ]
        code = "print(open('a.csv').read(), len(open('b.bin', 'rb').read()))"
        result = await call("run_python", code=code, files=files)
        assert "256" in result.text, result.text
        again = await call(
            "run_python", code="print(len(open('b.bin', 'rb').read()))", conversation=result.data["conversation"]
        )
        assert "256" in again.text
        large = await call("run_python", code="1", files=[{"name": "a", "text": "x" * 2_000_000}])
        assert large.raw.is_error
        assert "use get_upload_link" in large.text
        bad = await call("run_python", code="1", files=[{"name": "a/b", "text": "x"}])
        assert bad.raw.is_error
        assert "slash" in bad.text


async def test_a_small_chart_is_shown_as_it_is(host):
    code = """
import matplotlib.pyplot as plt
plt.plot([1, 3, 2])
plt.savefig("files/chart.png")
"""
    async with host as call:
        result = await call("run_python", code=code, files_promised=["chart.png"])
        [picture] = result.pictures
        content = base64.b64decode(picture.data)
        assert picture.mime_type == "image/png"
        assert Image.open(io.BytesIO(content)).size == (640, 480)
        conversation = result.data["conversation"]
        # Another run without a picture does not show the old one again.
        later = await call("run_python", code="print('no chart')", conversation=conversation)
        assert later.pictures == [], later.text
        shown = await call("read_file", conversation=conversation, path="chart.png")
        assert base64.b64decode(shown.pictures[0].data) == content


async def test_a_picture_of_20_mb_is_shown_small_and_linked_whole(host, web):
    async with host as call:
        result = await call("run_python", code=NOISE, files_promised=["noise.png"])
        assert not result.raw.is_error, result.text
        [file] = result.data["files"]
        assert file["size_bytes"] > 20_000_000
        [picture] = result.pictures
        content = base64.b64decode(picture.data)
        opened = Image.open(io.BytesIO(content))
        assert len(content) <= PICTURE_BYTES_MAX
        assert max(opened.size) <= SIDE_PX_MAX
        assert "smaller than the file" in result.text
        assert result.size_bytes <= RESULT_BYTES_MAX
        conversation = result.data["conversation"]
        link = await call("get_download_link", conversation=conversation, path="files/noise.png")
        assert link.data["url"] in link.text
        assert link.data["url"].startswith("http://127.0.0.1:")
        downloaded = await web.get(link.data["url"])
        assert (downloaded.status_code, len(downloaded.content)) == (200, file["size_bytes"])
        with pytest.raises(MCPError, match="too large"):
            await call.client.read_resource(result.links[0].uri)


async def test_a_damaged_picture_has_no_preview(host):
    code = "open('files/a.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 400_000)"
    async with host as call:
        result = await call("run_python", code=code)
        assert result.pictures == []


async def test_a_document_is_rendered_read_and_found_again(host):
    async with host as call:
        made = await call(
            "render",
            path="report.pdf",
            content="# Title\n\nA line about walruses.",
            title="T",
            options={"page_size": "A5"},
        )
        assert not made.raw.is_error, made.text
        conversation = made.data["conversation"]
        assert made.links[0].mime_type == "application/pdf"
        for path in ("report.pdf", "files/report.pdf", "turn_1/files/report.pdf", made.links[0].uri):
            read = await call("read_file", conversation=conversation, path=path)
            assert "walruses" in read.text, read.text
        again = await call("read_file", conversation=conversation, path="report.pdf")
        assert "walruses" in again.text  # although the conversation has shown it before
        wrong = await call("render", path="report.pdf", content="x", options={"page_sise": "A5"})
        assert wrong.raw.is_error
        assert "page_sise" in wrong.text
        blob = await call.client.read_resource(made.links[0].uri)
        assert base64.b64decode(blob.contents[0].blob).startswith(b"%PDF")  # type: ignore[union-attr]


async def test_text_files_are_written_patched_searched_and_read_in_parts(host):
    async with host as call:
        written = await call("write_file", path="notes.md", content="\n".join(f"line {n}" for n in range(1, 501)))
        assert not written.raw.is_error, written.text
        conversation = written.data["conversation"]
        patch = "<<<<<<< SEARCH\nline 7\n=======\nline seven\n>>>>>>> REPLACE\n"
        patched = await call("patch_file", conversation=conversation, path="notes.md", patch=patch)
        assert not patched.raw.is_error, patched.text
        found = await call("search_files", conversation=conversation, content_regex="line seven")
        assert "turn_1/files/notes.md" in found.text
        assert "turn_1/files/notes.md:7: line seven" in found.text
        part = await call("read_file", conversation=conversation, path="notes.md", lines="6-8")
        assert "line seven" in part.text
        assert "artifact_path" not in part.text
        assert "line 9" not in part.text
        none = await call("read_file", conversation=conversation, path="other.md")
        assert none.raw.is_error
        assert "list_files" in none.text
        planned = await call(
            "record_plan", steps=["read", "write"], status={"1": "done"}, conversation=conversation
        )
        assert not planned.raw.is_error
        assert "read" in planned.text


async def test_a_long_text_is_cut_within_the_bound(host):
    async with host as call:
        code = "open('files/big.txt', 'w').write(('y' * 99 + '\\n') * 20_000)"
        made = await call("run_python", code=code)
        read = await call("read_file", conversation=made.data["conversation"], path="big.txt")
        assert len(read.text.encode()) < 70_000
        assert "Partly shown" in read.text
        part = await call("read_file", conversation=made.data["conversation"], path="big.txt", lines="19999-20000")
        assert "cut here" not in part.text
        many = await call(
            "run_python", code="for n in range(150): open(f'files/{\"n\" * 200}{n}.txt', 'w').write('x')"
        )
        assert many.size_bytes <= RESULT_BYTES_MAX
        assert many.data["files_total"] == 150
        assert len(many.data["files"]) == 100


async def test_a_file_comes_in_by_its_upload_link(host):
    async with host as call:
        link = await call("get_upload_link", name="data ü.csv")
        assert link.data["url"] in link.text
        assert link.data["bytes_max"] > 10_000_000
        async with httpx.AsyncClient(trust_env=False) as web:
            put = await web.put(link.data["url"], content=b"a,b\n" + b"1,2\n" * 100_000)
        assert put.status_code == 201
        code = "import pandas; print(len(pandas.read_csv('data ü.csv')))"
        result = await call("run_python", code=code, conversation=link.data["conversation"])
        assert "100000" in result.text, result.text


async def test_a_long_call_goes_on_and_its_result_is_asked_for(host):
    async with host as call:
        started = await call("run_python", code="import time; time.sleep(5); print('done at last')", wait_s=0.5)
        assert not started.raw.is_error
        assert started.data["status"] in {"running", "queued"}
        assert started.data["handle"] in started.text
        handle = started.data["handle"]
        still = await call("get_result", handle=handle, wait_s=0)
        assert still.data["status"] in {"running", "queued"}
        ended = await call("get_result", handle=handle, wait_s=30)
        assert ended.data["status"] == "done"
        assert "done at last" in ended.text
        again = await call("get_result", handle=handle)
        assert "done at last" in again.text
        unknown = await call("get_result", handle="c1/none")
        assert unknown.raw.is_error


async def test_a_call_is_started_without_waiting_and_cancelled(host):
    async with host as call:
        started = await call("run_bash", code="echo begun; sleep 60", wait_s=0)
        handle = started.data["handle"]
        cancelled = await call("cancel_call", handle=handle)
        assert cancelled.data["status"] == "cancelled", cancelled.text
        result = await call("get_result", handle=handle)
        assert result.raw.is_error
        assert result.data["status"] == "cancelled"


async def test_progress_rises_and_shows_what_is_printed(host):
    code = "import time\nfor n in range(4):\n    print('step', n, flush=True)\n    time.sleep(1.1)"
    seen: list[tuple[float, str | None]] = []

    async def note(*progress: Any) -> None:
        seen.append((progress[0], progress[2]))

    async with host as call:
        await call.client.call_tool("run_python", {"code": code}, progress_callback=note)
    assert [number for number, _ in seen] == sorted({number for number, _ in seen})
    assert any((message or "").startswith("step ") for _, message in seen), seen


async def test_closing_the_stream_stops_the_call_in_the_new_era(url, service):
    async with connected(url, "auto") as call:
        made = await call("write_file", path="a", content="b")
        conversation = made.data["conversation"]
        task = asyncio.create_task(call("run_bash", code="sleep 300", conversation=conversation))
        running = await _running(service, conversation)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        status = await _ended(service, conversation, running)
        assert status.status == "cancelled"


async def test_closing_the_stream_is_a_lost_connection_in_the_old_era(url, service):
    async with AsyncExitStack() as stack:
        call: Host = await stack.enter_async_context(connected(url, "legacy"))
        made = await call("write_file", path="a", content="b")
        conversation = made.data["conversation"]
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "run_bash",
            "arguments": {"code": "sleep 4; echo survived", "conversation": conversation},
        },
    }
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    async with httpx.AsyncClient(trust_env=False) as web:
        sending = asyncio.create_task(web.post(f"{url}/mcp", json=body, headers=headers))
        running = await _running(service, conversation)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    status = await _ended(service, conversation, running)
    assert status.status == "done"
    assert status.response is not None
    assert "survived" in status.response.report


async def _running(service, conversation: str) -> str:
    """Waits until a call of a conversation runs; its id."""
    while True:
        for key, running in service.calls._running.items():
            if key.scope.conversation_id == conversation and running.has_started:
                return key.tool_call_id
        await asyncio.sleep(0.05)


async def _ended(service, conversation: str, call_id: str):
    """Waits for the end of a call."""
    while True:
        status = await service.calls.status(service.principal, call_id, conversation)
        if status.status not in {"queued", "running"}:
            return status
        await asyncio.sleep(0.05)


async def test_keys_separate_tenants(guarded_url, issue, era):
    ann, bob = await issue("ann"), await issue("bob")
    async with connected(guarded_url, era, ann) as call:
        made = await call("run_python", code="open('files/secret.txt', 'w').write('wuppertal')")
        conversation, uri = made.data["conversation"], made.links[0].uri
        assert "wuppertal" in (await call("read_file", conversation=conversation, path="secret.txt")).text
    async with connected(guarded_url, era, bob) as call:
        assert (await call("list_files", conversation=conversation)).data["files"] == []
        for tool, arguments in (
            ("read_file", {"path": "secret.txt", "conversation": conversation}),
            ("get_download_link", {"path": "secret.txt", "conversation": conversation}),
            ("get_result", {"handle": made.data["handle"]}),
            ("cancel_call", {"handle": made.data["handle"]}),
        ):
            result = await call(tool, **arguments)
            assert result.raw.is_error
            assert "wuppertal" not in result.text
        with pytest.raises(MCPError, match="not found"):
            await call.client.read_resource(uri)
        same = await call("run_python", code="import os; print(os.listdir('files'))", conversation=conversation)
        assert "[]" in same.text


async def test_the_service_without_mcp_has_no_endpoint(service):
    settings = service.settings.model_copy(update={"mcp": False})
    transport = httpx.ASGITransport(application(replace(service, settings=settings)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.post("/mcp", json={})).status_code == 404
