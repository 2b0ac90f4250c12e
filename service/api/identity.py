"""On whose behalf a request speaks, and what it may do: the one place that every route asks."""

from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from proofbox.contracts.tool_call_request import ConversationId
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.errors import UnsafeNameError
from proofbox.service.identity import ConversationKey, Principal

API_KEY = HTTPBearer(
    scheme_name="api_key",
    bearerFormat="pbx_<id>_<secret>",
    description="An API key that the operator made with `proofbox keys create`. A service that only its own "
    "machine reaches may ask for none. Each route names the scope that the key needs.",
    auto_error=False,
)


async def principal_of(
    request: Request,
    needed: SecurityScopes,
    _documented: Annotated[object, Depends(API_KEY)],  # AuthenticationMiddleware has read the key
) -> Principal:
    """The principal of a request.

    Raises:
        MissingPermissionError: its key has not a scope that the route asks for.
    """
    caller = caller_of(request.scope["state"])
    for permission in needed.scopes:
        caller.require(Permission(permission))
    return caller.principal


async def scope_of(
    request: Request,
    principal: Annotated[Principal, Depends(principal_of)],
    conversation_id: Annotated[ConversationId, Path(description="Which conversation.")],
) -> ConversationKey:
    """The conversation that the path names, of the request's principal.

    Raises:
        UnsafeNameError: the route saw another path. Servers decode bytes that are not UTF-8 to U+FFFD, which
            would give different files one name; and the router's patterns overlook a line feed at the end.
    """
    sent = unquote_to_bytes(request.scope.get("raw_path", b""))
    if sent.endswith(b"\n") or not _is_utf8(sent):
        raise UnsafeNameError(
            "path: not UTF-8, or it ends with a line feed; percent-encode the UTF-8 bytes of names"
        )
    return ConversationKey(principal, conversation_id)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


AnyCaller = Annotated[Principal, Security(principal_of)]
RunsCalls = Annotated[Principal, Security(principal_of, scopes=[Permission.CALLS_RUN.value])]
ReadsCalls = Annotated[Principal, Security(principal_of, scopes=[Permission.CALLS_READ.value])]
ReadsMetrics = Annotated[Principal, Security(principal_of, scopes=[Permission.METRICS_READ.value])]
ReadsKeys = Annotated[Principal, Security(principal_of, scopes=[Permission.KEYS_READ.value])]
ReadsArtifacts = Annotated[ConversationKey, Security(scope_of, scopes=[Permission.ARTIFACTS_READ.value])]
WritesArtifacts = Annotated[ConversationKey, Security(scope_of, scopes=[Permission.ARTIFACTS_WRITE.value])]
ReadsTimeline = Annotated[ConversationKey, Security(scope_of, scopes=[Permission.TIMELINE_READ.value])]
ReadsConversations = Annotated[Principal, Security(principal_of, scopes=[Permission.TIMELINE_READ.value])]
DeletesConversation = Annotated[
    ConversationKey,
    Security(scope_of, scopes=[Permission.ARTIFACTS_WRITE.value, Permission.TIMELINE_WRITE.value]),
]
WritesTimeline = Annotated[ConversationKey, Security(scope_of, scopes=[Permission.TIMELINE_WRITE.value])]
ReadsAgents = Annotated[Principal, Security(principal_of, scopes=[Permission.AGENTS_READ.value])]
WritesAgents = Annotated[Principal, Security(principal_of, scopes=[Permission.AGENTS_WRITE.value])]
ReadsRuns = Annotated[Principal, Security(principal_of, scopes=[Permission.RUNS_READ.value])]
WritesRuns = Annotated[Principal, Security(principal_of, scopes=[Permission.RUNS_WRITE.value])]
ReadsSpaces = Annotated[Principal, Security(principal_of, scopes=[Permission.SPACES_READ.value])]
WritesSpaces = Annotated[Principal, Security(principal_of, scopes=[Permission.SPACES_WRITE.value])]
