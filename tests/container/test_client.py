"""Both clients against the running service, over a real socket, with real containers."""

import asyncio
import hashlib
import inspect
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proofbox.client import (
    AsyncClient,
    AuthenticationError,
    CallCancelledError,
    CallEvent,
    CallFailedError,
    Client,
    NotFoundError,
    StillRunningError,
)
from proofbox.service.api.server import DrainingServer
from proofbox.service.app.bootstrap import Service
from proofbox.service.app.serving import http_config
from tests.support.cutting_relay import CuttingRelay

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f00050001ff89993d1d0000000049454e44ae426082"
)
SIZE = 50 * 1024 * 1024  # more than a program finds by its bare name


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def url(service: Service) -> AsyncIterator[str]:
    """The address of the service, which listens on a port of its own."""

    async def drain() -> None:
        """Nothing waits here: the service is closed by its own fixture."""

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = DrainingServer(http_config(service), drain)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await serving


class UseClient:
    """Calls methods of one of the clients: the blocking one in a thread."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    async def __call__(self, url: str, use: Callable[[Any], Any], **settings: Any) -> Any:
        """What ``use`` returns of a client; an iterator is read to its end."""
        if not self.is_async:
            return await asyncio.to_thread(self._use_blocking, url, use, settings)
        async with AsyncClient(url, **settings) as client:
            result = use(client)
            if isinstance(result, AsyncIterator):
                return [item async for item in result]
            return await result if inspect.isawaitable(result) else result

    def _use_blocking(self, url: str, use: Callable[[Any], Any], settings: Any) -> Any:
        with Client(url, **settings) as client:
            result = use(client)
            return list(result) if isinstance(result, Iterator) else result


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest) -> UseClient:
    return UseClient(is_async=request.param == "async")


async def test_a_program_reads_its_files_and_promises_come_back(use: UseClient, url: str, tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("x\n1\n2\n")
    code = """
import pandas as pd, sys
total = pd.read_csv("a b.csv").x.sum() + int(sys.stdin.read()) + len(open("note.txt").read())
open("files/total.txt", "w").write(str(total))
open("files/extra.bin", "wb").write(bytes(1000))
print("total", total); print("warned", file=sys.stderr)
"""
    files = {"a b.csv": tmp_path / "a b.csv", "note.txt": "ünï"}
    promises = ["total.txt", {"filename": "extra.bin", "min_bytes": 1000}]
    result = await use(url, lambda client: client.run(code, files=files, promises=promises, stdin="10"))
    result.require_ok()
    assert (result.stdout, result.stderr, result.exit_code) == ("total 16\n", "warned\n", 0)
    assert [(file.name, file.size_bytes) for file in result.files] == [("total.txt", 2), ("extra.bin", 1000)]
    conversation, path = result.conversation, result.file("total.txt").path
    content = await use(url, lambda client: client.download(conversation, path).read())
    assert content == b"16"
    saved = await use(url, lambda client: client.download(conversation, "turn_1/files/extra.bin").save(tmp_path))
    assert saved.read_bytes() == bytes(1000)
    listed = await use(url, lambda client: client.files(conversation))
    assert sorted(file.name for file in listed) == ["a b.csv", "extra.bin", "note.txt", "total.txt"]
    types = [block.type for block in await use(url, lambda client: client.timeline(conversation))]
    assert types.count("react.tool.call") == 1
    assert "total 16" in await use(url, lambda client: client.timeline_text(conversation))


async def test_a_result_reads_its_own_files_while_the_client_is_open(url: str, tmp_path: Path) -> None:
    """The second run of the turn replaces the file; the first result reads what the first run made."""
    async with AsyncClient(url) as client:
        code = "open('files/a.txt', 'w').write('{}')"
        first = await client.run(code.format("one"), promises=["a.txt"], conversation="own_files")
        second = await client.run(code.format("two"), promises=["a.txt"], conversation="own_files")
        assert (await first.files[0].read(), await second.files[0].read()) == (b"one", b"two")
        assert (await second.files[0].save(tmp_path / "new" / "b.txt")).read_bytes() == b"two"
        pieces = [piece async for piece in second.files[0].stream()]
    assert b"".join(pieces) == b"two"


async def test_a_program_that_fails_is_a_result(use: UseClient, url: str) -> None:
    result = await use(url, lambda client: client.run("exit 3", language="bash", promises=["never.txt"]))
    assert (result.ok, result.exit_code, result.files, result.error.code) == (False, 3, [], "nonzero_exit")
    with pytest.raises(CallFailedError, match="nonzero_exit"):
        result.require_ok()


async def test_a_document_finds_the_pictures_that_come_with_it(use: UseClient, url: str) -> None:
    source = "# Title\n\n![logo](logo.png) ![other](img/other.png)\n"
    files = {"logo.png": PNG, "img/other.png": PNG}
    result = await use(url, lambda client: client.render(source, "a.pdf", files=files, theme="dark"))
    assert result.require_ok().files[0].media_type == "application/pdf"
    assert "missing" not in result.report


async def test_large_files_go_up_and_down_as_streams(use: UseClient, url: str, tmp_path: Path) -> None:
    source = tmp_path / "large.bin"
    block = hashlib.sha256(b"seed").digest() * 32_768
    with source.open("wb") as file:
        for _ in range(SIZE // len(block)):
            file.write(block)
    attached = await use(url, lambda client: client.upload(f"large_{use.is_async}", "large.bin", source))
    assert attached.size_bytes == SIZE
    code = "data = open('attachments/large.bin', 'rb').read()\nopen('files/reversed.bin', 'wb').write(data[::-1])"
    result = await use(
        url, lambda client: client.run(code, promises=["reversed.bin"], conversation=f"large_{use.is_async}")
    )
    file = result.require_ok().files[0]
    saved = await use(url, lambda client: client.download(file.conversation, file.path).save(tmp_path))
    assert saved.stat().st_size == SIZE
    assert hashlib.sha256(saved.read_bytes()).hexdigest() == file.sha256
    assert saved.read_bytes()[:1024] == source.read_bytes()[-1024:][::-1]


async def test_output_arrives_while_the_program_runs_and_a_call_can_be_cancelled(use: UseClient, url: str) -> None:
    """The program never ends by itself: only an observer that sees its output can cancel it."""
    call_id = f"live_{use.is_async}"
    seen: list[str] = []

    def observe(event: CallEvent) -> object:
        seen.append(event.text)
        if event.text != "first\n":
            return None
        # The loop of the asynchronous client is the one of the service.
        return asyncio.to_thread(cancel) if use.is_async else cancel()

    def cancel() -> None:
        with Client(url) as other:
            other.cancel(call_id, "live")

    code = "import time\nprint('first', flush=True)\ntime.sleep(1000)"
    with pytest.raises(CallCancelledError):
        await use(url, lambda client: client.run(code, on_event=observe, conversation="live", call_id=call_id))
    assert "first\n" in seen


@pytest.mark.parametrize("where", ["answer", "request"])
async def test_a_call_whose_connection_is_cut_runs_once(use: UseClient, url: str, where: str) -> None:
    conversation = f"cut_{where}_{use.is_async}"
    async with CuttingRelay(int(url.rpartition(":")[2])) as relay:
        if where == "answer":
            relay.cut_answer_to(rb"POST /v1/tool-calls", on_cut=relay.mend)
        else:
            relay.cut_after(200, on_cut=relay.mend)
        code = "import time\nopen('files/once.txt', 'a').write(str(time.time_ns()) + ' ')"
        result = await use(
            relay.url, lambda client: client.run(code, promises=["once.txt"], conversation=conversation)
        )
        assert relay.cuts == 1
    content = await use(url, lambda client: client.download(conversation, "turn_1/files/once.txt").read())
    types = [block.type for block in await use(url, lambda client: client.timeline(conversation))]
    assert (result.ok, len(content.split()), types.count("react.tool.call")) == (True, 1, 1)


async def test_a_stream_of_events_that_is_cut_goes_on_without_gap_or_repetition(url: str) -> None:
    async with CuttingRelay(int(url.rpartition(":")[2])) as relay, AsyncClient(relay.url) as client:
        events: list[CallEvent] = []

        def observe(event: CallEvent) -> None:
            events.append(event)
            if event.name == "stdout" and not relay.cuts:
                relay._cut()
                relay.mend()

        code = "import time\nfor n in range(5):\n    print(n, flush=True)\n    time.sleep(0.2)"
        result = await client.run(code, on_event=observe, conversation="cut_events")
    assert (result.ok, relay.cuts) == (True, 1)
    assert "".join(event.text for event in events) == "0\n1\n2\n3\n4\n"
    assert [event.id for event in events] == sorted({event.id for event in events})
    assert events[-1].is_last


async def test_a_call_that_runs_longer_than_the_timeout_is_answered(use: UseClient, url: str) -> None:
    """The service sends nothing while the program runs: the client goes on by the events."""
    code = "import time\ntime.sleep(4)\nprint('done')"
    result = await use(url, lambda client: client.run(code), timeout_s=2)
    assert (result.ok, result.stdout) == (True, "done\n")


async def test_a_started_call_is_waited_for_in_pieces(use: UseClient, url: str) -> None:
    conversation = f"pieces_{use.is_async}"
    tool, params = "exec_tools.execute_code_python", {"explore": True}
    code = "import pathlib, time\nprint('on')\nwhile not pathlib.Path('files/stop').exists(): time.sleep(0.05)"
    with pytest.raises(StillRunningError) as caught:
        await use(url, lambda client: client.call(tool, params, code=code, conversation=conversation, wait_s=0.5))
    call_id = caught.value.handle.call_id
    async with AsyncClient(url) as observer, aclosing(observer.events(call_id, conversation)) as events:
        async for event in events:
            if event.text == "on\n":
                break
    status = await use(url, lambda client: client.status(call_id, conversation))
    assert status.status == "running"
    with pytest.raises(StillRunningError):
        await use(url, lambda client: client.handle(call_id, conversation).wait(0.2))
    ended = await use(url, lambda client: client.handle(call_id, conversation).cancel())
    assert (ended.status, ended.response.output.stdout) == ("cancelled", "on\n")
    names = [event.name for event in await use(url, lambda client: client.events(call_id, conversation, after=1))]
    assert names[-1] == "error"
    with pytest.raises(CallCancelledError):
        await use(url, lambda client: client.wait(call_id, conversation))


async def test_the_service_describes_itself(use: UseClient, url: str) -> None:
    assert (await use(url, lambda client: client.health())).is_ready
    tools = await use(url, lambda client: client.tools())
    assert "exec_tools.execute_code_python" in {tool.tool_id for tool in tools}
    functions = await use(url, lambda client: client.function_definitions("openai"))
    assert {function["type"] for function in functions} == {"function"}
    image = await use(url, lambda client: client.image())
    assert "pandas" in image.libraries
    attached = await use(url, lambda client: client.upload("links", "a.txt", b"abc"))
    link = await use(url, lambda client: client.link("links", attached.logical_path))
    assert "/v1/links/" in link


async def test_files_and_conversations_are_deleted(use: UseClient, url: str) -> None:
    conversation = f"deleted_{use.is_async}"
    for name in ("a b.txt", "b.txt"):
        await use(url, lambda client, name=name: client.upload(conversation, name, b"abc"))
    await use(url, lambda client: client.delete_file(conversation, "turn_1/attachments/a b.txt"))
    assert [file.name for file in await use(url, lambda client: client.files(conversation))] == ["b.txt"]
    listed = await use(url, lambda client: client.conversations())
    [mine] = [each for each in listed if each.conversation_id == conversation]
    assert (mine.files, mine.size_bytes) == (1, 3)
    await use(url, lambda client: client.delete_conversation(conversation))
    listed = await use(url, lambda client: client.conversations())
    assert conversation not in {each.conversation_id for each in listed}
    with pytest.raises(NotFoundError, match="unknown_conversation"):
        await use(url, lambda client: client.delete_conversation(conversation))


async def test_refusals_are_typed(use: UseClient, url: str) -> None:
    with pytest.raises(NotFoundError) as unknown:
        await use(url, lambda client: client.call("no.tool", {}))
    assert (unknown.value.code, unknown.value.status) == ("unknown_tool", 404)
    with pytest.raises(NotFoundError, match="unknown_artifact"):
        await use(url, lambda client: client.download("c1", "turn_1/files/none.txt").read())
    with pytest.raises(AuthenticationError):
        await use(url, lambda client: client.tools(), api_key="pbx_not_a_key")
