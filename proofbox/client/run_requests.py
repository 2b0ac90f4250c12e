"""Plans of agents, runs and their calls. Imported on first use: models of configurations take long."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel

from proofbox.client.api import now_s, target
from proofbox.client.calls import CallStream, Deadline, settle_call
from proofbox.client.errors import ArgumentError
from proofbox.client.exchange import Plan, Request, Silence, Sleep
from proofbox.client.gateway_events import watch_run
from proofbox.client.gateway_requests import JSON, GatewayRequests, content_of, key_header
from proofbox.contracts.gateway.agents import AgentPage, AgentVersion, AgentWritten
from proofbox.contracts.gateway.catalogue import RunTool
from proofbox.contracts.gateway.runs import RUN_LEASE_HEADER, Run, RunContext, RunPage, RunStatus
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse

_ACCEPTED, _NO_CONTENT = 202, 204
_HELD_S = 30.0  # of one request that waits for the answer of a call


class NewRunOptions(TypedDict, total=False):
    """Options of `Gateway.create_run`.

    Attributes:
        conversation_id: the conversation of its calls; ``run:<run_id>`` if it is not given.
        space_id: the active space at its start.
        trigger: why it is made: ``{"type": "manual" | "service", "name", "payload"}``.
        queued: whether it waits for a claim; else its lease is the caller's.
        metadata: what the caller wants to find again, at most 16 KiB.
        idempotency_key: the same key with the same arguments makes one run, also from another process.
    """

    conversation_id: str | None
    space_id: str | None
    trigger: Mapping[str, Any]
    queued: bool
    metadata: Mapping[str, Any]
    idempotency_key: str


class RunCallOptions(TypedDict, total=False):
    """Options of `Gateway.call_tool`.

    Attributes:
        call_id: its id; a new one if it is not given. The same id with the same arguments is the same call.
        code: the program of a tool that takes one.
        wait_s: how long to wait in all for the answer of a person or service, 0 if it is not given.
        notes: what the agent states about the call.
    """

    call_id: str
    code: str
    wait_s: float
    notes: str


class RunRequests(GatewayRequests):
    """Plans of agents, runs and their calls."""

    # ---- agents ----

    def put_agent(
        self, agent_id: str, configuration: Mapping[str, Any], *, if_version: int | None = None
    ) -> Plan[AgentWritten]:
        """Write the configuration of an agent; one that differs is its next version.

        Args:
            agent_id: the agent.
            configuration: the document: ``{"version": "2", "agent": {"name": …}, "tools": […]}``.
            if_version: write only over this version; 0: only if the agent is new.
        """
        condition = {} if if_version is None else {"If-Match": f'"{if_version}"'}
        return self._ask(AgentWritten, "PUT", target("agents", agent_id), dict(configuration), condition)

    def get_agent(self, agent_id: str, *, version: int | None = None) -> Plan[AgentVersion]:
        """Read the configuration of an agent as it was written; the newest, or a version that a run uses."""
        return self._ask(AgentVersion, "GET", target("agents", agent_id, version=version))

    def list_agents(self) -> Plan[None]:
        """Yield the agents of the project, the newest first."""
        return self._deliver_pages(AgentPage, lambda before: target("agents", before=before))

    def delete_agent(self, agent_id: str, *, cancel_runs: bool = False) -> Plan[None]:
        """Delete an agent; runs that have not ended are a `ConflictError`, or are cancelled."""
        where = target("agents", agent_id, cancel_runs="true" if cancel_runs else None)
        yield from self._request("DELETE", where)

    # ---- runs ----

    def create_run(self, agent_id: str, **options: Unpack[NewRunOptions]) -> Plan[Run]:
        """Make a run; its lease is the caller's unless it is queued. See `NewRunOptions`."""
        body = _known(options, NewRunOptions)
        key = body.pop("idempotency_key", None)
        return self._ask(Run, "POST", target("runs"), {"agent_id": agent_id, **body}, key_header(key))

    def claim_run(
        self, agent_ids: Sequence[str] | None = None, *, wait_s: float = 0, lease_s: float | None = None
    ) -> Plan[Run | None]:
        """Take the oldest queued run; None if there is none.

        Args:
            agent_ids: of these agents; None: of any.
            wait_s: how long to wait for one, at most 30 s.
            lease_s: how long its lease lasts without a call; None: the operator's value.
        """
        body = {"agent_ids": None if agent_ids is None else list(agent_ids), "wait_s": wait_s, "lease_s": lease_s}
        # The service gives a run also to a connection that its client has given up.
        reply = yield from self._request("POST", target("runs", "claim"), body, held_s=wait_s)
        return None if reply.status == _NO_CONTENT else self._api.parse(Run, reply)

    def list_runs(self, agent_id: str | None = None, *, status: RunStatus | None = None) -> Plan[None]:
        """Yield the runs of the project, the newest first."""
        return self._deliver_pages(
            RunPage, lambda before: target("runs", agent_id=agent_id, status=status, before=before)
        )

    def get_run(self, run_id: str) -> Plan[Run]:
        """Ask how a run stands."""
        return self._ask(Run, "GET", target("runs", run_id))

    def get_run_context(self, run_id: str) -> Plan[RunContext]:
        """Read what a loop needs to know: trigger, spaces, newest messages, goals, memories, plans, calls."""
        return self._ask(RunContext, "GET", target("runs", run_id, "context"))

    def extend_run_lease(self, run: Run, *, lease_s: float | None = None) -> Plan[Run]:
        """Extend the lease of a run that calls no tool for a while."""
        return self._ask(Run, "POST", target("runs", run.run_id, "heartbeat"), {"lease_s": lease_s}, _lease(run))

    def release_run(self, run: Run) -> Plan[Run]:
        """Give a run back; it is queued once its last wait has ended."""
        return self._ask(Run, "POST", target("runs", run.run_id, "release"), None, _lease(run))

    def finish_run(self, run: Run, *, summary: str | None = None, cancel_waits: bool = False) -> Plan[Run]:
        """End a run as completed.

        Args:
            run: the run.
            summary: what it did.
            cancel_waits: cancel its open waits; without it they are a `ConflictError`.
        """
        return self._end_run(run, {"status": "completed", "summary": summary, "cancel_waits": cancel_waits})

    def fail_run(self, run: Run, code: str, message: str = "", *, cancel_waits: bool = False) -> Plan[Run]:
        """End a run as failed, with a code of the loop."""
        error = {"code": code, "message": message}
        return self._end_run(run, {"status": "failed", "error": error, "cancel_waits": cancel_waits})

    def cancel_run(self, run_id: str) -> Plan[Run]:
        """Cancel a run with its calls and waits; one that has ended stays as it is."""
        return self._ask(Run, "DELETE", target("runs", run_id))

    def watch_run(self, run_id: str, *, after: int = 0) -> Plan[None]:
        """Yield the events of a run until it has ended; a lost connection is resumed.

        Args:
            run_id: the run.
            after: only events with a greater id.
        """
        return watch_run(self._api, run_id, after)

    # ---- calls ----

    def list_run_tools(self, *, run_id: str | None = None, agent_id: str | None = None) -> Plan[list[RunTool]]:
        """The tools of a run, or those that a run of an agent would have that begins now."""
        if (run_id is None) == (agent_id is None):
            raise ArgumentError("run_id", "give a run or an agent")
        reply = yield from self._request("GET", target("tools", run_id=run_id, agent_id=agent_id))
        return self._api.parse(_RunTools, reply).tools

    def call_tool(
        self, run: Run, tool: str, params: Mapping[str, Any], **options: Unpack[RunCallOptions]
    ) -> Plan[ToolCallResponse | CallStatus]:
        """Call a tool of a run, and wait for it as long as it runs.

        A tool that is silent for longer than ``timeout_s`` is followed by its events, which a key reads with
        ``calls:read``.

        Args:
            run: the run, with its lease.
            tool: the tool's name for the model, or its ``tool_id``.
            params: the input.
            options: see `RunCallOptions`.

        Returns:
            The answer; or, for a call that waits longer than ``wait_s`` for a person or service, its status with
            ``wait``. The same call with its ``call_id`` again waits on.
        """
        given = _known(options, RunCallOptions)
        wait_s = given.pop("wait_s", 0.0)
        deadline = Deadline(wait_s, now_s() + wait_s)
        call_id = given.pop("call_id", None) or f"call_{uuid.uuid4().hex}"
        conversation = run.conversation_id
        names = {"tool_id": tool, "tool_call_id": call_id, "conversation_id": conversation, "run_id": run.run_id}
        content = content_of({**names, "params": dict(params), **given})
        stream = CallStream(self._api, call_id, conversation, is_left_waiting=True)
        return settle_call(self._api, stream, lambda: self._send_call(content, _lease(run), deadline))

    def _send_call(
        self, content: bytes, lease: Mapping[str, str], deadline: Deadline
    ) -> Plan[ToolCallResponse | CallStatus | None]:
        """Send a call, and while it waits, again until the deadline; None: it is silent, and may run."""
        while True:
            began, held_s = now_s(), max(0, int(min(deadline.left_s(), _HELD_S)))
            headers = {**JSON, **lease, **({"Prefer": f"wait={held_s}"} if held_s else {})}
            request = Request("POST", target("tool-calls"), headers, content, self._api.timeout_s + held_s)
            try:
                reply = yield from self._api.request(request, is_silence_raised=True)
            except Silence:
                return None
            if reply.status != _ACCEPTED:
                return self._api.parse(ToolCallResponse, reply)
            if deadline.left_s() < 1:
                return self._api.parse(CallStatus, reply)
            # A service that is older, or behind a proxy, may answer at once.
            yield Sleep(max(0.0, began + 1 - now_s()))

    def _end_run(self, run: Run, body: Mapping[str, Any]) -> Plan[Run]:
        return self._ask(Run, "POST", target("runs", run.run_id, "finish"), body, _lease(run))


class _RunTools(BaseModel):
    tools: list[RunTool]


def _known(options: Mapping[str, Any], known: type) -> dict[str, Any]:
    """The options without those that are None.

    Raises:
        ArgumentError: one is unknown.
    """
    names: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]  # of a TypedDict
    for name in options:
        if name not in names:
            raise ArgumentError(name, f"unknown option; the options are {', '.join(sorted(names))}")
    return {name: value for name, value in options.items() if value is not None}


def _lease(run: Run) -> dict[str, str]:
    if run.lease is None:
        raise ArgumentError("run", f"run '{run.run_id}' has no lease; claim it first")
    return {RUN_LEASE_HEADER: str(run.lease.number)}
