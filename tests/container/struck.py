"""The calls that are struck at their points, and what has to hold of each afterwards, whatever struck it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import Service
from proofbox.service.app.settings import Settings
from proofbox.service.calls.service import CallTicket
from proofbox.service.errors import UnknownCallError
from proofbox.service.storage.schema import unfinished
from tests.container.calling import Caller
from tests.support.engines import quickest_engine

TURN = "turn_1"
WRITTEN = {"channel": "canvas", "content": "one", "kind": "file"}
EXTERNAL = ("a.txt", "b.txt")
PROGRAM = "for name in ('a.txt', 'b.txt', 'more.txt'): open(name, 'w').write(name)"
LIST = "import os; print(sorted(os.listdir('.')), os.path.exists('n') and open('n').read())"
COUNT = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; mkdir -p empty; ln -sf n link"


@dataclass(frozen=True)
class Struck:
    """A call to be struck.

    Attributes:
        tool_id: its tool.
        params: its parameters.
        code: its program.
        files: the names of the files that it makes.
    """

    tool_id: str
    params: dict[str, Any]
    code: str | None
    files: tuple[str, ...]

    def body(self, conversation: str) -> dict[str, Any]:
        """The request."""
        return {
            "tool_id": self.tool_id,
            "tool_call_id": "struck",
            "conversation_id": conversation,
            "turn_id": TURN,
            "params": self.params,
            "code": self.code,
        }


CALLS = {
    "exec": Struck(
        "exec_tools.execute_code_python",
        {"contract": [{"filename": name, "description": name} for name in EXTERNAL]},
        PROGRAM,
        (*EXTERNAL, "more.txt"),
    ),
    "workspace": Struck("exec_tools.execute_code_bash", {"explore": True}, COUNT, ("n",)),
    "render": Struck("rendering_tools.write_png", {"path": "page.png", "content": "# One"}, None, ("page.png",)),
    "write": Struck(
        "react.write", {"path": "n.md", "channel": "canvas", "content": "one", "kind": "file"}, None, ("n.md",)
    ),
}


async def submit(service: Service, call: Caller, struck: Struck) -> CallTicket:
    """Make the call, or join it."""
    request = ToolCallRequest.model_validate(struck.body(call.conversation))
    return await service.calls.submit(
        call.scope.principal, request, idempotency_key=None, request_id="test", detached=False
    )


async def assert_whole(service: Service, call: Caller, struck: Struck, *, is_alone: bool = True) -> str:
    """The call has its answer and files, or neither: the same for all who ask, and in the next program. Its status.

    ``unknown`` is one that was never accepted. Beside others that save files, it is not alone.
    """
    await service.artifacts.retry_removals()
    principal = call.scope.principal
    try:
        status = await service.calls.status(principal, "struck", call.conversation)
    except UnknownCallError:
        state, response = "unknown", None
    else:
        state, response = status.status, status.response
        assert state in {"done", "failed", "cancelled"}, status
        assert status.problem is None or not status.problem.retryable, status.problem
    is_ok = state == "done" and response is not None and response.ok
    stored = [each for each in await service.artifacts.of_turn(call.scope, TURN) if each.tool_call_id == "struck"]
    assert sorted(each.path.rel for each in stored) == (sorted(struck.files) if is_ok else []), (state, response)
    for each in stored:
        assert await call.stored(each.path.physical) is not None
        if each.hosted_uri is not None:
            async with service.artifacts.staging() as folder:
                assert await service.artifacts.fetch_uri(call.scope, each.hosted_uri, folder) is not None
    if state != "unknown":
        line = json.loads((await service.provenance.line(principal, "struck", call.conversation)).text)
        outputs = {output["path"] for output in line["outputs"] if output.get("sha256")}
        assert outputs == {each.path.physical for each in stored}, line
        if is_ok:
            assert {each.physical_path for each in response.artifacts if each.sha256} == outputs
    left = await service.database.read(lambda connection: connection.execute(select(unfinished)).all())
    assert left == [] or not is_alone
    listed = await call(
        "import os; print(sorted(os.listdir('.')), os.path.exists('n') and open('n').read())", explore=True
    )
    names = sorted([*struck.files, *(["empty", "link"] if struck.files == ("n",) else [])]) if is_ok else []
    counted = "1\n" if is_ok and struck.files == ("n",) else False
    assert listed.output.stdout == f"{names} {counted}\n", listed.report
    again = await (await submit(service, call, struck)).answer()
    is_free = response is not None and response.error is not None and response.error.code == "hosting_failed"
    if state == "unknown" or is_free:  # nothing was done, so its id may be used again
        assert ToolCallResponse.model_validate_json(again.body).ok, again.body
    elif state == "done":
        assert ToolCallResponse.model_validate_json(again.body) == response
    return state


def settings_of(data_dir: Path) -> Settings:
    """Settings of a service that is started for one call."""
    return Settings(
        engine=quickest_engine(),
        data_dir=data_dir,
        pool_size=0,
        import_once="off",
        audit_head_s=0,
        running_max=1,
        shutdown_grace_s=0,
    )


async def queue_calls(call: Caller) -> None:
    """One call that runs, and three that wait for its slot."""
    await call.submit("import time\nprint('runs', flush=True)\ntime.sleep(60)", explore=True, tool_call_id="runs")
    async for event in await call.follow("runs"):
        if event.name == "stdout":
            break
    for name in "abc":
        code = f"print('{name}'); open('{name}', 'w').write('{name}')"
        await call.submit(code, explore=True, tool_call_id=name)
