"""Processes of a service of many, in one process of the tests or in programs of their own."""

import asyncio
import itertools
import json
import os
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, SandboxInfo, ToolCallResponse
from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.known_callers import KnownCallers
from proofbox.service.access.quotas import NO_LIMITS, Quotas
from proofbox.service.api.app import release
from proofbox.service.app.processes.wiring import Dispatching, DispatchNeeds
from proofbox.service.app.settings import Settings
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.calls.suspension import Suspension
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.observability.metrics_port import NoMeter
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.effects import dispatch_effects

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
SANDBOX = SandboxInfo(engine="docker", runtime="runc", image_digest="sha256:0", acquired="warm")
_BOOTS = itertools.count(1)


def response(report, *, ok=True):
    return ToolCallResponse(ok=ok, report=report, blocks=[])


@dataclass
class RecordingTool:
    """A tool whose runs are lines of a file, and which goes on when a file of the test says so.

    ``params``: ``hold``: it runs until the file of that name is there; ``prints``: what it prints; ``waits``: it
    waits for an answer from outside; ``prepares``: it waits for that file before its program begins; ``engine``:
    the engine fails until that file is there; ``installs``: it waits for that file before it waits for a slot;
    ``limits``: it reports the limits of its caller; ``goes_on``: after its wait it runs on until the file is there.
    """

    folder: Path
    admission: Admission
    quotas: Quotas | None = None
    preparing: int = 0

    def prepare(self, scope, request):
        async def run(observer):
            if "installs" in request.params:
                note(self.folder, "claimed", request.tool_call_id)
                self.preparing += 1
                await self._wait_for(request.params["installs"])
                self.preparing -= 1
            deadline = time.monotonic() + 60
            note(self.folder, "waits", request.tool_call_id)
            with await self.admission.enter(deadline, observer.on_queued, observer.owner):
                if "limits" in request.params:
                    return response(self._limits_of(scope.principal.caller))
                return await self._run(request, observer)

        async def run_on(_observer):
            note(self.folder, "ran on", request.tool_call_id)
            if "goes_on" in request.params:
                await self._wait_for(request.params["goes_on"])
            return response("ran on")

        async def resume(ended):
            return run_on if ended.value == "go" else response(f"answered {ended.value}")

        def interrupt(why):
            error = EnvelopeError(code=why.code, message=why.message, where="run", managed=True)
            return ToolCallResponse(ok=False, error=error, report=why.message, blocks=[])

        return PreparedCall(run, interrupt, resume=resume, announces_start=True)

    def _limits_of(self, caller):
        return f"hosts {self.quotas.network(caller)}, running {self.quotas.share(caller).running}"

    async def _run(self, request, observer):
        params, name = request.params, request.tool_call_id
        if "prepares" in params:
            note(self.folder, "claimed", name)
            await self._wait_for(params["prepares"])
        if "engine" in params and not (self.folder / params["engine"]).exists():
            note(self.folder, "failed", name)
            raise EngineUnavailableError("the engine fails")
        await observer.before_start()
        observer.on_started(SANDBOX)
        note(self.folder, "began", name)
        for text in params.get("prints", ()):
            observer.on_output("stdout", text.encode(), truncated=False)
        if "hold" in params:
            await self._wait_for(params["hold"])
        if "waits" in params:
            return Suspension((), lambda code, message: response(f"{code}: {message}", ok=False))
        note(self.folder, "ended", name)
        return response(f"ran {name}")

    async def _wait_for(self, name):
        while not (self.folder / name).exists():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)


def note(folder, what, tool_call_id):
    """Add a line to the file of what happened; one write, so that those of several processes do not mix."""
    line = os.open(folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(line, f"{what} {tool_call_id}\n".encode())
    finally:
        os.close(line)


def notes(folder, what):
    """The calls to which something happened, in order."""
    file = folder / "notes"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.removeprefix(f"{what} ") for line in lines if line.startswith(f"{what} ")]


async def noted(folder, what, count=1):
    """Waits until something has happened so often."""
    while len(notes(folder, what)) < count:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.01)


class Engine:
    """A sandbox engine that answers."""

    is_up = True


@dataclass
class Place:
    """What the processes of one test share.

    Attributes:
        folder: the notes and files of its tools.
        url: the database.
        nats: the settings of the NATS servers.
    """

    folder: Path
    url: SecretStr
    nats: dict

    def settings(self, role, **more):
        """The settings of a process."""
        values = {
            "dispatch": "nats",
            "role": role,
            "database_url": self.url.get_secret_value(),
            "s3_bucket": "unused",
            "keys_dir": str(self.folder),
            "data_dir": str(self.folder / f"data-{uuid.uuid4().hex[:8]}"),
            "dispatch_lease_s": 3,
            "running_max": 4,
            "shutdown_grace_s": 0.2,
            **self.nats,
            **more,
        }
        return Settings(**values)

    def dump(self):
        """The same as JSON, for another program."""
        return json.dumps([str(self.folder), self.url.get_secret_value(), self.nats])


@dataclass
class Process:
    """One process: its calls, and the parts of the dispatch."""

    calls: Calls
    store: SqlCallStore
    dispatching: Dispatching
    tool: RecordingTool
    admission: Admission
    keys: SqlApiKeys
    meter: PrometheusMeter


@asynccontextmanager
async def opened_process(place, role, grace_s=120.0, share=None, **more):
    """A process of the service that runs until the end of the block."""
    settings = place.settings(role, **more)
    database = Database(settings.data_dir, settings.database_url, shared=True)
    await database.open()
    try:
        store = SqlCallStore(database, dispatch_effects())
        quotas, keys = Quotas(NO_LIMITS), SqlApiKeys(database)
        callers = KnownCallers(Keyring(keys), quotas)
        share_of = callers.running_share if share is None else lambda _: share
        admission = Admission(running_max=settings.running_max, queue_max=settings.queue_max, share_of=share_of)
        tool = RecordingTool(place.folder, admission, quotas)
        call_settings = CallSettings(100_000, f"boot-{os.getpid()}-{next(_BOOTS)}", release(), grace_s)
        calls = Calls({"a.tool": tool}, admission, store, call_settings)
        calls.stored.learn = callers.learn
        meter = PrometheusMeter({})
        needs = DispatchNeeds(
            database, store, calls, admission, quotas, Engine(), meter, call_settings, lambda: tool.preparing
        )
        dispatching = Dispatching(settings, needs)
        async with dispatching.opened():
            await dispatching.start(nothing, nothing)
            try:
                yield Process(calls, store, dispatching, tool, admission, keys, meter)
            finally:
                await dispatching.stop_work()
                await dispatching.membership.stop()
                await calls.close(0)
    finally:
        await database.close()


@asynccontextmanager
async def joined(place, pipeline, role):
    """Makes a service over real stores one process of a service of many."""
    needs = DispatchNeeds(
        pipeline.database,
        pipeline.store,
        pipeline.calls,
        pipeline.admission,
        pipeline.quotas,
        Engine(),
        NoMeter(),
        pipeline.call_settings,
    )
    dispatching = Dispatching(place.settings(role), needs)
    async with dispatching.opened():
        await dispatching.start(nothing, nothing)
        try:
            yield
        finally:
            await dispatching.stop_work()
            await dispatching.membership.stop()


async def nothing():
    pass


def request(tool_call_id="call-1", conversation_id="conv-1", **params):
    return ToolCallRequest(
        tool_id="a.tool", tool_call_id=tool_call_id, conversation_id=conversation_id, params=params
    )


async def submit(calls, tool_call_id="call-1", *, detached=False, name=None, principal=SCOPE.principal, **params):
    return await calls.submit(
        principal, request(tool_call_id, **params), idempotency_key=name, request_id="r", detached=detached
    )
