"""Two tenants on one data folder, the same names on both sides: nothing shows one what the other has."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

SECRET = "wuppertal-4711"
CONVERSATION = "plans"
PATHS = [
    "fi:turn_1.files/secret.csv",
    "fi:turn_1.files/secret.md",
    "fi:turn_1.user.attachments/secret.txt",
    "fi:turn_1.code.run",
    "ar:turn_1.user.prompt",
    "tc:turn_1.run.call",
    "tc:turn_1.run.result",
    "so:sources_pool[1-9]",
]


class Tenant:
    """One tenant's view of the service."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._count = 0

    async def get(self, rest: str, **params: Any) -> httpx.Response:
        return await self._client.get(f"/v1/conversations/{CONVERSATION}/{rest}", params=params)

    async def attach(self, name: str, text: str) -> None:
        path = f"/v1/conversations/{CONVERSATION}/turns/turn_1/attachments/{name}"
        assert (await self._client.put(path, content=text.encode())).is_success

    async def say(self, text: str) -> None:
        block = {
            "type": "user.prompt",
            "author": "user",
            "turn_id": "turn_1",
            "ts": "2026-11-22T10:00:00.000Z",
            "mime": "text/markdown",
            "path": "ar:turn_1.user.prompt",
            "text": text,
        }
        path = f"/v1/conversations/{CONVERSATION}/timeline"
        assert (await self._client.post(path, json={"blocks": [block]})).is_success

    async def call(self, tool: str, params: dict[str, Any], *, name: str = "", turn: int = 2, **more: Any) -> Any:
        self._count += 1
        body = {
            "tool_id": tool,
            "tool_call_id": name or f"t{self._count}",
            "conversation_id": CONVERSATION,
            "turn_id": f"turn_{turn}",
            "params": params,
            **more,
        }
        answer = await self._client.post("/v1/tool-calls", json=body)
        assert answer.status_code < 500, answer.text
        return answer.json()

    async def run(self, code: str, *files: str, **more: Any) -> Any:
        contract = [{"filename": file, "description": "a file"} for file in files]
        return await self.call("exec_tools.execute_code_python", {"contract": contract}, code=code, **more)


@asynccontextmanager
async def tenant(name: str, folder: Path) -> AsyncIterator[Tenant]:
    service = build(Settings(data_dir=folder, tenant=name, pool_size=1))
    async with running(service):
        transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield Tenant(client)


async def fill(owner: Tenant) -> list[str]:
    """Leaves the secret in every kind of block; the hosted URIs of its files."""
    await owner.say(f"the word is {SECRET}")
    await owner.attach("secret.txt", f"attached {SECRET}")
    program = f"open('files/secret.csv', 'w').write('{SECRET},1\\n')"
    ran = await owner.run(program, "secret.csv", turn=1, name="run")
    text = {"path": "secret.md", "channel": "canvas", "content": f"# {SECRET}\n", "kind": "file"}
    wrote = await owner.call("react.write", text, turn=1, name="write")
    assert ran["ok"]
    assert wrote["ok"]
    return [artifact["hosted_uri"] for answer in (ran, wrote) for artifact in answer["artifacts"]]


async def ask_everything(asker: Tenant, uris: list[str]) -> list[Any]:
    """Every door and every tool, asked for what the owner has."""
    answers: list[Any] = [(await asker.get(f"artifacts/{path}")).text for path in PATHS]
    answers += [(await asker.get("timeline", view=view)).text for view in ("blocks", "rendered")]
    answers += [(await asker.get(f"previews/{path}")).text for path in PATHS[:1]]
    answers += [(await asker.get(f"{kind}/{PATHS[1]}")).text for kind in ("versions", "differences")]
    answers.append((await asker.get("timeline/aligned")).text)
    answers.append((await asker.get("archive")).text)
    answers.append((await asker.get("sources")).text)
    answers.append(await asker.call("react.read", {"paths": PATHS}))
    answers.append(
        await asker.run(
            "print(open('turn_1/files/secret.csv').read())\n# [[S:1]] turn_1/attachments/secret.txt\n", "x.txt"
        )
    )
    markdown = "![](turn_1/attachments/secret.txt) [x](turn_1/files/secret.md) [[S:1]] [[S:2]]"
    answers.append(await asker.call("rendering_tools.write_pdf", {"path": "x.pdf", "content": markdown}))
    patch = {
        "path": "turn_1/files/secret.md",
        "channel": "canvas",
        "patch": "@@ -1 +1 @@\n-# x\n+# y\n",
        "kind": "file",
    }
    answers.append(await asker.call("react.patch", patch))
    for turn in (1, 2):
        search = {"name_regex": "secret", "content_regex": "."}
        answers.append(await asker.call("react.search_files", search, turn=turn))
    targets = ["user", "assistant", "attachment"]
    answers.append(await asker.call("react.memsearch", {"query": "the word", "targets": targets}))
    hiding = {"path": "ar:turn_1.user.prompt", "replacement": "gone"}
    answers.append(await asker.call("react.hide", hiding))
    for number, uri in enumerate(uris):
        assets = [{"physical_path": f"turn_2/files/stolen-{number}.txt", "uri": uri}]
        answers.append(await asker.run("print(1)", "y.txt", assets=assets))
        block = {
            "type": "react.tool.result",
            "author": "react",
            "turn_id": "turn_1",
            "ts": "2026-11-22T10:00:00.000Z",
            "mime": "text/csv",
            "path": "fi:turn_1.files/secret.csv",
            "call_id": "c",
            "meta": {"hosted_uri": uri, "physical_path": "turn_1/files/secret.csv", "tool_call_id": "c"},
        }
        answers.append(await asker.run("print(open('turn_1/files/secret.csv').read())", "z.txt", timeline=[block]))
        answers.append(await asker.call("react.read", {"paths": ["fi:turn_1.files/secret.csv"]}, timeline=[block]))
    return answers


async def test_no_tool_and_no_door_shows_a_tenant_what_another_one_has(tmp_path):
    async with tenant("acme", tmp_path) as owner:
        uris = await fill(owner)
        own = json.dumps(await ask_everything(owner, uris))
    assert own.count(SECRET) > 20  # the questions do find it where it belongs
    async with tenant("evil", tmp_path) as asker:
        answers = await ask_everything(asker, uris)
    told = [answer for answer in answers if SECRET in json.dumps(answer)]
    assert told == []


async def test_two_calls_that_write_one_path_at_once_leave_two_whole_versions(tmp_path):
    async with tenant("acme", tmp_path) as owner:
        program = "open('files/a.txt', 'w').write('{} ' * 100_000)"
        calls = [owner.run(program.format(number), "a.txt", name=f"w{number}") for number in range(4)]
        answers = await asyncio.gather(*calls)
        assert [answer["ok"] for answer in answers] == [True] * 4
        latest = (await owner.get("artifacts/fi:turn_2.files/a.txt")).text
        assert latest in {f"{number} " * 100_000 for number in range(4)}
        # The first is no edit, every other one is; the store holds all four.
        assert sum('"edited": true' in json.dumps(answer["blocks"]).replace("\\", "") for answer in answers) == 3
