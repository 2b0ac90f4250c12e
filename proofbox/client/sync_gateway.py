"""Agents, runs, spaces and messages, with blocking calls: `Client.gateway`. Imported on first use."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from proofbox.client.api import Api
from proofbox.client.gateway_events import GatewayEvent, watch_run, watch_space
from proofbox.client.gateway_requests import AnswerOptions, GatewayRequests, NewRunOptions, RunCallOptions
from proofbox.client.sync_driver import SyncDriver
from proofbox.contracts.gateway.agents import AgentVersion, AgentWritten, ListedAgent
from proofbox.contracts.gateway.catalogue import RunTool
from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, ResultAccepted
from proofbox.contracts.gateway.runs import Run, RunContext, RunStatus
from proofbox.contracts.gateway.spaces import Entity, Space, SpaceToken
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse


class Gateway:
    """The gateway of a service: tools of agents, their runs, and the spaces that show them.

    Methods have the names of the operations of the HTTP API. They raise as those of the client do. A run that is
    passed as a whole has the lease under which the request is sent.

    Args:
        api: the service.
        driver: its connections.
    """

    def __init__(self, api: Api, driver: SyncDriver) -> None:
        self._api = api
        self._driver = driver
        self._requests = GatewayRequests(api)

    # ---- agents ----

    def put_agent(
        self, agent_id: str, configuration: Mapping[str, Any], *, if_version: int | None = None
    ) -> AgentWritten:
        """Write the configuration of an agent; one that differs is its next version.

        Args:
            agent_id: the agent.
            configuration: the document: ``{"version": "2", "agent": {"name": …}, "tools": […]}``.
            if_version: write only over this version; 0: only if the agent is new.
        """
        return self._driver.complete(self._requests.put_agent(agent_id, configuration, if_version))

    def get_agent(self, agent_id: str, *, version: int | None = None) -> AgentVersion:
        """Read the configuration of an agent as it was written; the newest, or a version that a run uses."""
        return self._driver.complete(self._requests.get_agent(agent_id, version))

    def list_agents(self) -> Iterator[ListedAgent]:
        """Yield the agents of the project, the newest first."""
        yield from self._driver.iterate(self._requests.list_agents())

    def delete_agent(self, agent_id: str, *, cancel_runs: bool = False) -> None:
        """Delete an agent; runs that have not ended are a `ConflictError`, or are cancelled."""
        self._driver.complete(self._requests.delete_agent(agent_id, cancel_runs=cancel_runs))

    # ---- runs ----

    def create_run(self, agent_id: str, **options: Unpack[NewRunOptions]) -> Run:
        """Make a run; its lease is the caller's unless it is queued. See `NewRunOptions`."""
        return self._driver.complete(self._requests.create_run(agent_id, options))

    def claim_run(
        self, agent_ids: Sequence[str] | None = None, *, wait_s: float = 0, lease_s: float | None = None
    ) -> Run | None:
        """Take the oldest queued run; None if there is none.

        Args:
            agent_ids: of these agents; None: of any.
            wait_s: how long to wait for one, at most 30 s.
            lease_s: how long its lease lasts without a call; None: the operator's value.
        """
        return self._driver.complete(self._requests.claim_run(agent_ids, wait_s, lease_s))

    def list_runs(self, agent_id: str | None = None, *, status: RunStatus | None = None) -> Iterator[Run]:
        """Yield the runs of the project, the newest first."""
        yield from self._driver.iterate(self._requests.list_runs(agent_id, status))

    def get_run(self, run_id: str) -> Run:
        """Ask how a run stands."""
        return self._driver.complete(self._requests.get_run(run_id))

    def get_run_context(self, run_id: str) -> RunContext:
        """Read what a loop needs to know: trigger, spaces, newest messages, goals, memories, plans, calls."""
        return self._driver.complete(self._requests.get_run_context(run_id))

    def extend_run_lease(self, run: Run, *, lease_s: float | None = None) -> Run:
        """Extend the lease of a run that calls no tool for a while."""
        return self._driver.complete(self._requests.extend_run_lease(run, lease_s))

    def release_run(self, run: Run) -> Run:
        """Give a run back; it is queued once its last wait has ended."""
        return self._driver.complete(self._requests.release_run(run))

    def finish_run(self, run: Run, *, summary: str | None = None, cancel_waits: bool = False) -> Run:
        """End a run as completed.

        Args:
            run: the run.
            summary: what it did.
            cancel_waits: cancel its open waits; without it they are a `ConflictError`.
        """
        return self._driver.complete(
            self._requests.finish_run(
                run, {"status": "completed", "summary": summary, "cancel_waits": cancel_waits}
            )
        )

    def fail_run(self, run: Run, code: str, message: str = "", *, cancel_waits: bool = False) -> Run:
        """End a run as failed, with a code of the loop."""
        return self._driver.complete(
            self._requests.finish_run(
                run,
                {"status": "failed", "error": {"code": code, "message": message}, "cancel_waits": cancel_waits},
            )
        )

    def cancel_run(self, run_id: str) -> Run:
        """Cancel a run with its calls and waits; one that has ended stays as it is."""
        return self._driver.complete(self._requests.cancel_run(run_id))

    def watch_run(self, run_id: str, *, after: int = 0) -> Iterator[GatewayEvent]:
        """Yield the events of a run until it has ended; a lost connection is resumed."""
        yield from self._driver.iterate(watch_run(self._api, run_id, after))

    # ---- calls ----

    def list_run_tools(self, *, run_id: str | None = None, agent_id: str | None = None) -> list[RunTool]:
        """The tools of a run, or those that a run of an agent would have that begins now."""
        return self._driver.complete(self._requests.list_run_tools(run_id, agent_id))

    def call_tool(
        self, run: Run, tool: str, params: Mapping[str, Any], **options: Unpack[RunCallOptions]
    ) -> ToolCallResponse | CallStatus:
        """Call a tool of a run.

        Args:
            run: the run, with its lease.
            tool: the tool's name for the model, or its ``tool_id``.
            params: the input.
            options: see `RunCallOptions`.

        Returns:
            The answer; or, for a call that waits longer than ``wait_s`` for a person or service, its status with
            ``wait``. The same call with its ``call_id`` again waits on.
        """
        return self._driver.complete(self._requests.call_tool(run, tool, params, options))

    def answer_message(self, space_id: str, message_id: str, **answer: Unpack[AnswerOptions]) -> ResultAccepted:
        """Answer a card: give a result, approve, or give none. See `AnswerOptions`."""
        return self._driver.complete(self._requests.answer_message(space_id, message_id, answer))

    def answer_tool_call(
        self, tool_call_id: str, conversation_id: str | None = None, **answer: Unpack[AnswerOptions]
    ) -> ResultAccepted:
        """Answer a call that waits for a service or person; it approves nothing. See `AnswerOptions`."""
        return self._driver.complete(self._requests.answer_tool_call(tool_call_id, conversation_id, answer))

    # ---- spaces ----

    def put_entity(self, entity_id: str, *, handle: str, display_name: str, user: str | None = None) -> Entity:
        """Write a person, who can be a member of spaces.

        Args:
            entity_id: the person.
            handle: others mention the person by ``@handle``.
            display_name: the name that is shown.
            user: the user of keys that act as this person.
        """
        return self._driver.complete(
            self._requests.put_entity(entity_id, {"handle": handle, "display_name": display_name, "user": user})
        )

    def create_space(
        self,
        name: str,
        members: Sequence[str] = (),
        *,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Space:
        """Make a space.

        Args:
            name: the name that is shown.
            members: ids of persons and agents (``agent:<agent_id>``).
            metadata: what the caller wants to find again, at most 16 KiB.
            idempotency_key: the same key with the same arguments makes one space.
        """
        return self._driver.complete(
            self._requests.create_space(
                {"name": name, "members": list(members), "metadata": dict(metadata or {})}, idempotency_key
            )
        )

    def get_space(self, space_id: str) -> Space:
        """Read a space with its members."""
        return self._driver.complete(self._requests.get_space(space_id))

    def list_spaces(self) -> Iterator[Space]:
        """Yield the spaces that are open to the caller, the newest first."""
        yield from self._driver.iterate(self._requests.list_spaces())

    def archive_space(self, space_id: str) -> None:
        """Archive a space: it can be read only."""
        self._driver.complete(self._requests.archive_space(space_id))

    def add_member(self, space_id: str, entity_id: str) -> Space:
        """Add a member to a space."""
        return self._driver.complete(self._requests.add_member(space_id, entity_id))

    def remove_member(self, space_id: str, entity_id: str) -> None:
        """Remove a member from a space."""
        self._driver.complete(self._requests.remove_member(space_id, entity_id))

    def create_space_token(self, space_id: str, entity_id: str, *, expires_s: int = 3_600) -> SpaceToken:
        """Make a token that opens one space as one person; it is an ``api_key`` of another client."""
        return self._driver.complete(self._requests.create_space_token(space_id, entity_id, expires_s))

    def watch_space(self, space_id: str, *, after: int = 0) -> Iterator[GatewayEvent]:
        """Yield the events of a space, without an end; a lost connection is resumed.

        Args:
            space_id: the space.
            after: only events with a greater id. After the event ``reset``, read the messages again.
        """
        yield from self._driver.iterate(watch_space(self._api, space_id, after))

    # ---- messages ----

    def list_messages(
        self, space_id: str, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> MessagePage:
        """Read a page of messages, the oldest first: the newest ones, or those before or after a number.

        Args:
            space_id: the space.
            before: only messages with a smaller ``seq``.
            after: only messages with a greater ``seq``.
            limit: how many at most, up to 100.
        """
        return self._driver.complete(self._requests.list_messages(space_id, before, after, limit))

    def get_message(self, space_id: str, message_id: str) -> Message:
        """Read a message."""
        return self._driver.complete(self._requests.get_message(space_id, message_id))

    def post_message(
        self,
        space_id: str,
        text: str,
        *,
        reply_to: str | None = None,
        entity_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> MessageSent:
        """Post a text; ``@handle`` mentions a member, and an agent that is mentioned gets a run.

        Args:
            space_id: the space.
            text: the text.
            reply_to: the message that it replies to.
            entity_id: who sends it, if the caller may act for others.
            idempotency_key: the same key with the same arguments posts once.
        """
        return self._driver.complete(
            self._requests.post_message(
                space_id, {"text": text, "reply_to": reply_to, "entity_id": entity_id}, idempotency_key
            )
        )
