"""On whose behalf a request speaks: the one place that every route asks."""

from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Path, Request

from contracts.tool_calls import ConversationId
from service.api.doors import OpenDoors
from service.core.errors import UnsafeNameError
from service.core.scopes import Principal, Scope


async def principal_of(doors: OpenDoors) -> Principal:
    """The principal of a request: the one that the operator's settings name."""
    return doors.principal


CurrentPrincipal = Annotated[Principal, Depends(principal_of)]


async def scope_of(
    request: Request,
    principal: CurrentPrincipal,
    conversation_id: Annotated[ConversationId, Path(description="Which conversation.")],
) -> Scope:
    """The conversation that the path names, of the request's principal.

    Raises:
        UnsafeNameError: the path is not what its route saw of it. Servers decode what is no UTF-8 to U+FFFD, which
            would give different files one name; and the router's patterns overlook a line feed at the end.
    """
    sent = unquote_to_bytes(request.scope.get("raw_path", b""))
    if sent.endswith(b"\n") or not _is_utf8(sent):
        raise UnsafeNameError("the path is no UTF-8 or ends a line; percent-encode the UTF-8 bytes of plain names")
    return Scope(principal, conversation_id)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


CurrentScope = Annotated[Scope, Depends(scope_of)]
