"""Calls, repetitions, cancellations, uploads, restarts and a bucket that is away, in any order, over HTTP."""

import asyncio
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.serving import application
from proofbox.service.storage.artifacts.s3_client import Bucket
from tests.container.struck import settings_of
from tests.services.s3_server import STATE, emptied, started
from tests.support.cutting_relay import CuttingRelay
from tests.support.store_check import assert_service_fits

pytestmark = pytest.mark.docker

NAMES = st.sampled_from(["a.txt", "b.txt", "c.txt"])
CONTENTS = st.sampled_from(["one", "two", "three"])
FILES = "/v1/conversations/c/artifacts"
PROGRAM = "import time\nopen({name!r}, 'w').write({content!r})\ntime.sleep({s})"


class AnyOrder(RuleBasedStateMachine):
    """The service beside a model: the files of the conversation, and the answer of each call."""

    bucket: Bucket

    def __init__(self) -> None:
        super().__init__()
        self._runner, self._stack = asyncio.Runner(), AsyncExitStack()
        self._files: dict[str, str] = {}
        self._answers: dict[str, tuple[dict[str, Any], bytes]] = {}
        self._open: dict[str, tuple[dict[str, Any], str, str]] = {}
        self._numbers = iter(range(1, 1_000))
        self._run(self._open_relay())
        self._run(self._start())

    def _run(self, work: Any) -> Any:
        return self._runner.run(work)

    async def _open_relay(self) -> None:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._relay = await self._stack.enter_async_context(CuttingRelay(urlsplit(self.bucket.endpoint).port or 0))

    async def _start(self) -> None:
        bucket = replace(self.bucket, prefix=f"{self.bucket.prefix}/{self._folder.name}")
        given = {
            "s3_bucket": bucket.name,
            "s3_prefix": bucket.prefix,
            "s3_endpoint": self._relay.url,
            "s3_access_key": bucket.access_key,
            "s3_secret_key": bucket.secret_key,
            "running_max": 2,
        }
        base = settings_of(self._folder / "data")
        self._service = build(type(base).model_validate({**base.model_dump(), **given}))
        self._life = AsyncExitStack()
        await self._life.enter_async_context(running(self._service))
        transport = httpx.ASGITransport(application(self._service), raise_app_exceptions=False)
        self._http = await self._life.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://localhost")
        )

    def _post(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        answer: httpx.Response = self._run(self._http.post("/v1/tool-calls", json=body, headers=headers))
        return answer

    def _body(self, tool_id: str, params: dict[str, Any], code: str | None = None) -> dict[str, Any]:
        named = {"tool_call_id": f"call_{next(self._numbers)}", "conversation_id": "c", "turn_id": "turn_1"}
        return {"tool_id": tool_id, **named, "params": params, "code": code}

    def _program(self, name: str, content: str, s: float) -> dict[str, Any]:
        contract = [{"filename": name, "description": "a text"}]
        return self._body("exec_tools.execute_code_python", {"contract": contract}, PROGRAM.format(**locals()))

    def _settle(self) -> None:
        """Waits for the calls that are open: each has its file, or not, as its status has it."""
        for call_id, (body, name, content) in self._open.items():
            answer = self._post(body)
            if answer.status_code == 200 and answer.json()["ok"]:
                self._files[name] = content
            else:
                assert answer.json().get("retryable") is not True, answer.text
            self._answers[call_id] = (body, answer.content)
        self._open.clear()

    @rule(name=NAMES, content=CONTENTS, is_away=st.booleans())
    def write(self, name: str, content: str, is_away: bool) -> None:
        self._settle()
        body = self._body("react.write", {"path": name, "channel": "canvas", "content": content, "kind": "file"})

        async def post() -> httpx.Response:
            if is_away:
                self._relay.cut_before(rb"^(PUT|POST) ", on_cut=lambda: loop.call_later(0.3, self._relay.mend))
            return await self._http.post("/v1/tool-calls", json=body)

        loop = self._runner.get_loop()
        answer = self._run(post())
        self._relay.mend()
        assert answer.json()["ok"], answer.text
        self._files[name], self._answers[body["tool_call_id"]] = content, (body, answer.content)

    @rule(name=NAMES, content=CONTENTS)
    def run(self, name: str, content: str) -> None:
        self._settle()
        body = self._program(name, content, 0)
        answer = self._post(body)
        assert answer.json()["ok"], answer.text
        self._files[name], self._answers[body["tool_call_id"]] = content, (body, answer.content)

    @rule(content=CONTENTS, count=st.integers(1, 4))
    def begin(self, content: str, count: int) -> None:
        for _ in range(count):
            number = next(self._numbers)
            body = self._program(f"{number}.txt", content, 0.2)
            assert self._post(body, prefer="respond-async").status_code == 202
            self._open[body["tool_call_id"]] = (body, f"{number}.txt", content)

    @rule()
    def cancel(self) -> None:
        for call_id in list(self._open)[:1]:
            self._run(self._http.delete(f"/v1/tool-calls/{call_id}", params={"conversation_id": "c"}))

    @rule()
    def restart(self) -> None:
        self._run(self._life.aclose())
        self._run(self._start())

    @rule(content=CONTENTS)
    def upload(self, content: str) -> None:
        name = f"{next(self._numbers)}.csv"
        answer = self._run(
            self._http.put(f"/v1/conversations/c/turns/turn_1/attachments/{name}", content=content.encode())
        )
        assert answer.status_code == 201, answer.text
        self._files[name] = content

    @rule()
    def delete(self) -> None:
        self._settle()
        assert self._run(self._http.delete("/v1/conversations/c")).status_code in {204, 404}
        self._files.clear()
        self._answers.clear()

    @rule()
    def repeat(self) -> None:
        for body, content in self._answers.values():
            answer = self._post(body)
            assert (answer.content, answer.headers["idempotent-replayed"]) == (content, "true")
            other = self._post({**body, "turn_id": "turn_2"})
            assert other.status_code == 409, other.text

    @invariant()
    def files_are_those_of_the_answers(self) -> None:
        if self._open:
            return
        page = self._run(self._http.get(FILES, params={"limit": 1000}))
        listed = (
            {} if page.status_code == 404 else {each["physical_path"]: each for each in page.json()["artifacts"]}
        )
        assert sorted(path.rpartition("/")[2] for path in listed) == sorted(self._files)
        for path, entry in listed.items():
            got = self._run(self._http.get(f"/v1/conversations/c/artifacts/{entry['logical_path']}"))
            assert got.text == self._files[path.rpartition("/")[2]]

    def teardown(self) -> None:
        self._settle()
        self.files_are_those_of_the_answers()
        self._run(assert_service_fits(self._service))
        self._run(self._life.aclose())
        self._run(self._stack.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def place() -> Iterator[Bucket]:
    own = replace(started(STATE), prefix=f"tests/{uuid.uuid4().hex}")
    yield own
    emptied(own)


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.timeout(3600)  # ends what hangs: on a busy machine the many examples take half an hour
def test_files_and_answers_agree_whatever_happens_in_any_order(place: Bucket, examples: int) -> None:
    machine = type("AnyOrderHere", (AnyOrder,), {"bucket": place})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=12, deadline=None, derandomize=examples == 3),
    )
