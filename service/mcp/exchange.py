"""One request of an MCP client: whose it is, what it may do, and how progress reaches it."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from starlette.requests import Request

from proofbox.service.access.authenticator import Caller
from proofbox.service.access.quotas import CallerMeter
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.responses import request_id_of
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.mcp.options import McpSwitches

ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
_CONVERSATION_BYTES = 8
_CALL_BYTES = 12
_LINKS_SINCE = "2025-06-18"
_CLOSING_CANCELS = "Proofbox-Closing-Cancels"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request.

    Attributes:
        caller: the authenticated caller.
        meter: its usage.
        request_id: the id of the HTTP request.
        base_url: the URL under which the client reaches the service, without a slash at the end.
        version: the protocol revision.
        switches: what results may have.
        report_progress: sends progress; None if the client asked for none.
        is_cancelled_by_closing: whether closing the response stream cancels the request: since 2026-07-28, and for
            clients that announce it. In the older era it is a lost connection.
    """

    caller: Caller
    meter: CallerMeter
    request_id: str
    base_url: str
    version: str
    switches: McpSwitches = field(default_factory=McpSwitches)
    report_progress: ReportProgress | None = None
    is_cancelled_by_closing: bool = False

    @property
    def principal(self) -> Principal:
        """On whose behalf the request speaks."""
        return self.caller.principal

    @property
    def has_resource_links(self) -> bool:
        """Whether results may have blocks of the type ``resource_link``."""
        return self.switches.resource_links and is_version_at_least(self.version, _LINKS_SINCE)

    def scope(self, conversation: str) -> ConversationKey:
        """The conversation of that id of the caller."""
        return ConversationKey(self.principal, conversation)


def exchange_of(context: ServerRequestContext[Any], public_url: str) -> Exchange:
    """Return the exchange of a handler's context."""
    request = context.request
    if not isinstance(request, Request):
        raise TypeError("MCP requests come over HTTP")
    state = request.scope["state"]
    has_token = context.meta is not None and "progress_token" in context.meta
    return Exchange(
        caller=caller_of(state),
        meter=state["meter"],
        request_id=request_id_of(request),
        base_url=(public_url or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/"),
        version=context.protocol_version,
        switches=McpSwitches.parse(request.query_params),
        report_progress=context.session.report_progress if has_token else None,
        is_cancelled_by_closing=(
            context.protocol_version in MODERN_PROTOCOL_VERSIONS or _CLOSING_CANCELS in request.headers
        ),
    )


def new_conversation() -> str:
    """Return the id of a new conversation."""
    return f"mcp-{secrets.token_hex(_CONVERSATION_BYTES)}"


def new_call_id() -> str:
    """Return the id of a new call."""
    return f"mcp_{secrets.token_hex(_CALL_BYTES)}"
