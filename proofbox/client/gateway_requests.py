"""Plans of agents, runs, spaces and messages. Imported on first use: models of configurations take long."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel, ValidationError

from proofbox.client.api import Api, now_s, target
from proofbox.client.calls import CallStream, Deadline, settle_call
from proofbox.client.errors import ArgumentError
from proofbox.client.exchange import Deliver, Plan, Reply, Request, Silence, Sleep
from proofbox.contracts.gateway.agents import AgentPage, AgentVersion, AgentWritten
from proofbox.contracts.gateway.catalogue import RunTool
from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, ResultAccepted
from proofbox.contracts.gateway.runs import RUN_LEASE_HEADER, Run, RunContext, RunPage, RunStatus
from proofbox.contracts.gateway.spaces import Entity, Space, SpacePage, SpaceToken
from proofbox.contracts.gateway.waits import ResultSubmission
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse

M = TypeVar("M", bound=BaseModel)
_JSON = {"Content-Type": "application/json"}
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
        wait_s: how long to wait for the answer of a person or service, 0 if it is not given.
        notes: what the agent states about the call.
    """

    call_id: str
    code: str
    wait_s: float
    notes: str


class AnswerOptions(TypedDict, total=False):
    """The answer to a call that waits: exactly one of ``result``, ``error`` and ``cancelled``.

    Attributes:
        result: the result, also None; of an approval ``{"approved": True}``.
        error: why there is none.
        cancelled: True: there is none, on purpose.
        entity_id: who answers, if the caller may act for others.
    """

    result: Any
    error: str
    cancelled: Literal[True]
    entity_id: str


class GatewayRequests:
    """The plans of the methods of `Gateway` and `AsyncGateway`.

    Args:
        api: the service.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    # ---- agents ----

    def put_agent(
        self, agent_id: str, configuration: Mapping[str, Any], if_version: int | None
    ) -> Plan[AgentWritten]:
        """See `Gateway.put_agent`."""
        condition = {} if if_version is None else {"If-Match": f'"{if_version}"'}
        return self._ask(AgentWritten, "PUT", target("agents", agent_id), dict(configuration), condition)

    def get_agent(self, agent_id: str, version: int | None) -> Plan[AgentVersion]:
        """See `Gateway.get_agent`."""
        return self._ask(AgentVersion, "GET", target("agents", agent_id, version=version))

    def list_agents(self) -> Plan[None]:
        """Deliver each agent."""
        before: str | None = None
        while True:
            page = yield from self._ask(AgentPage, "GET", target("agents", before=before))
            yield from _deliver(page.items)
            if (before := page.next) is None:
                return

    def delete_agent(self, agent_id: str, *, cancel_runs: bool) -> Plan[None]:
        """See `Gateway.delete_agent`."""
        where = target("agents", agent_id, cancel_runs="true" if cancel_runs else None)
        yield from self._request("DELETE", where)

    # ---- runs ----

    def create_run(self, agent_id: str, options: Mapping[str, Any]) -> Plan[Run]:
        """See `Gateway.create_run`."""
        body = _options(options, NewRunOptions)
        key = body.pop("idempotency_key", None)
        return self._ask(Run, "POST", target("runs"), {"agent_id": agent_id, **body}, _key(key))

    def claim_run(self, agent_ids: Sequence[str] | None, wait_s: float, lease_s: float | None) -> Plan[Run | None]:
        """See `Gateway.claim_run`."""
        body = {"agent_ids": None if agent_ids is None else list(agent_ids), "wait_s": wait_s, "lease_s": lease_s}
        # The service gives a run to whoever still listens.
        reply = yield from self._request("POST", target("runs", "claim"), body, held_s=wait_s)
        return None if reply.status == _NO_CONTENT else self._api.parse(Run, reply)

    def list_runs(self, agent_id: str | None, status: RunStatus | None) -> Plan[None]:
        """Deliver each run."""
        before: str | None = None
        while True:
            where = target("runs", agent_id=agent_id, status=status, before=before)
            page = yield from self._ask(RunPage, "GET", where)
            yield from _deliver(page.items)
            if (before := page.next) is None:
                return

    def get_run(self, run_id: str) -> Plan[Run]:
        """See `Gateway.get_run`."""
        return self._ask(Run, "GET", target("runs", run_id))

    def get_run_context(self, run_id: str) -> Plan[RunContext]:
        """See `Gateway.get_run_context`."""
        return self._ask(RunContext, "GET", target("runs", run_id, "context"))

    def extend_run_lease(self, run: Run, lease_s: float | None) -> Plan[Run]:
        """See `Gateway.extend_run_lease`."""
        return self._ask(Run, "POST", target("runs", run.run_id, "heartbeat"), {"lease_s": lease_s}, _lease(run))

    def release_run(self, run: Run) -> Plan[Run]:
        """See `Gateway.release_run`."""
        return self._ask(Run, "POST", target("runs", run.run_id, "release"), None, _lease(run))

    def finish_run(self, run: Run, body: Mapping[str, Any]) -> Plan[Run]:
        """See `Gateway.finish_run`."""
        return self._ask(Run, "POST", target("runs", run.run_id, "finish"), body, _lease(run))

    def cancel_run(self, run_id: str) -> Plan[Run]:
        """See `Gateway.cancel_run`."""
        return self._ask(Run, "DELETE", target("runs", run_id))

    def list_run_tools(self, run_id: str | None, agent_id: str | None) -> Plan[list[RunTool]]:
        """See `Gateway.list_run_tools`."""
        if (run_id is None) == (agent_id is None):
            raise ArgumentError("run_id", "give a run or an agent")
        reply = yield from self._request("GET", target("tools", run_id=run_id, agent_id=agent_id))
        return self._api.parse(_RunTools, reply).tools

    def call_tool(
        self, run: Run, tool: str, params: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Plan[ToolCallResponse | CallStatus]:
        """See `Gateway.call_tool`."""
        given = _options(options, RunCallOptions)
        wait_s = given.pop("wait_s", 0.0)
        deadline = Deadline(wait_s, now_s() + wait_s)
        call_id = given.pop("call_id", None) or f"call_{uuid.uuid4().hex}"
        conversation = run.conversation_id
        names = {"tool_id": tool, "tool_call_id": call_id, "conversation_id": conversation, "run_id": run.run_id}
        content = _content({**names, "params": dict(params), **given})
        stream = CallStream(self._api, call_id, conversation, is_left_waiting=True)
        return settle_call(self._api, stream, lambda: self._send_call(content, _lease(run), deadline))

    def _send_call(
        self, content: bytes, lease: Mapping[str, str], deadline: Deadline
    ) -> Plan[ToolCallResponse | CallStatus | None]:
        """Send a call, and while it waits, again until the deadline; None: it is silent, and may run."""
        while True:
            began, held_s = now_s(), max(0, int(min(deadline.left_s(), _HELD_S)))
            headers = {**_JSON, **lease, **({"Prefer": f"wait={held_s}"} if held_s else {})}
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

    # ---- answers ----

    def answer_message(self, space_id: str, message_id: str, options: Mapping[str, Any]) -> Plan[ResultAccepted]:
        """See `Gateway.answer_message`."""
        where = target("spaces", space_id, "messages", message_id, "result")
        return self._ask(ResultAccepted, "POST", where, _answer(options))

    def answer_tool_call(
        self, tool_call_id: str, conversation_id: str | None, options: Mapping[str, Any]
    ) -> Plan[ResultAccepted]:
        """See `Gateway.answer_tool_call`."""
        where = target("tool-calls", tool_call_id, "result", conversation_id=conversation_id)
        return self._ask(ResultAccepted, "POST", where, _answer(options))

    # ---- spaces ----

    def put_entity(self, entity_id: str, definition: Mapping[str, Any]) -> Plan[Entity]:
        """See `Gateway.put_entity`."""
        return self._ask(Entity, "PUT", target("entities", entity_id), {"type": "human", **definition})

    def create_space(self, body: Mapping[str, Any], idempotency_key: str | None) -> Plan[Space]:
        """See `Gateway.create_space`."""
        return self._ask(Space, "POST", target("spaces"), body, _key(idempotency_key))

    def get_space(self, space_id: str) -> Plan[Space]:
        """See `Gateway.get_space`."""
        return self._ask(Space, "GET", target("spaces", space_id))

    def list_spaces(self) -> Plan[None]:
        """Deliver each space."""
        before: str | None = None
        while True:
            page = yield from self._ask(SpacePage, "GET", target("spaces", before=before))
            yield from _deliver(page.items)
            if (before := page.next) is None:
                return

    def archive_space(self, space_id: str) -> Plan[None]:
        """See `Gateway.archive_space`."""
        yield from self._request("DELETE", target("spaces", space_id))

    def add_member(self, space_id: str, entity_id: str) -> Plan[Space]:
        """See `Gateway.add_member`."""
        return self._ask(Space, "PUT", target("spaces", space_id, "members", entity_id))

    def remove_member(self, space_id: str, entity_id: str) -> Plan[None]:
        """See `Gateway.remove_member`."""
        yield from self._request("DELETE", target("spaces", space_id, "members", entity_id))

    def create_space_token(self, space_id: str, entity_id: str, expires_s: int) -> Plan[SpaceToken]:
        """See `Gateway.create_space_token`."""
        body = {"entity_id": entity_id, "expires_s": expires_s}
        return self._ask(SpaceToken, "POST", target("spaces", space_id, "tokens"), body)

    # ---- messages ----

    def list_messages(self, space_id: str, before: int | None, after: int | None, limit: int) -> Plan[MessagePage]:
        """See `Gateway.list_messages`."""
        where = target("spaces", space_id, "messages", before=before, after=after, limit=limit)
        return self._ask(MessagePage, "GET", where)

    def get_message(self, space_id: str, message_id: str) -> Plan[Message]:
        """See `Gateway.get_message`."""
        return self._ask(Message, "GET", target("spaces", space_id, "messages", message_id))

    def post_message(
        self, space_id: str, body: Mapping[str, Any], idempotency_key: str | None
    ) -> Plan[MessageSent]:
        """See `Gateway.post_message`."""
        return self._ask(MessageSent, "POST", target("spaces", space_id, "messages"), body, _key(idempotency_key))

    # ----

    def _ask(
        self,
        model: type[M],
        method: str,
        where: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Plan[M]:
        return self._api.parse(model, (yield from self._request(method, where, body, headers)))

    def _request(
        self,
        method: str,
        where: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        held_s: float = 0,
    ) -> Plan[Reply]:
        """Send a request, which the service holds for so long by its own will."""
        content = None if body is None else _content(body)
        given = {**(_JSON if body is not None else {}), **(headers or {})}
        return self._api.request(Request(method, where, given, content, self._api.timeout_s + held_s))


class _RunTools(BaseModel):
    tools: list[RunTool]


def _deliver(items: Sequence[Any]) -> Iterator[Deliver]:
    for item in items:
        yield Deliver(item)


def _options(options: Mapping[str, Any], known: type) -> dict[str, Any]:
    """The options without those that are None.

    Raises:
        ArgumentError: one is unknown.
    """
    names: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]  # of a TypedDict
    for name in options:
        if name not in names:
            raise ArgumentError(name, f"unknown option; the options are {', '.join(sorted(names))}")
    return {name: value for name, value in options.items() if value is not None}


def _answer(options: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(options)
    if isinstance(given.get("error"), str):
        given["error"] = {"message": given["error"]}
    try:
        ResultSubmission.model_validate(given)
    except ValidationError as exc:
        raise ArgumentError("result", exc.errors()[0]["msg"].removeprefix("Value error, ")) from None
    return given


def _content(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as exc:
        raise ArgumentError("body", f"{exc}; give what JSON can carry") from None


def _key(idempotency_key: str | None) -> dict[str, str]:
    """A key for each request that makes something: sent again after a lost connection, it makes one."""
    return {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}


def _lease(run: Run) -> dict[str, str]:
    if run.lease is None:
        raise ArgumentError("run", f"run '{run.run_id}' has no lease; claim it first")
    return {RUN_LEASE_HEADER: str(run.lease.number)}
