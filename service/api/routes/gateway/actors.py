"""Who acts in a space, and the keys of creating requests: shared by the routes of spaces."""

import hashlib
from typing import Annotated

from fastapi import Depends, Request, Security
from pydantic import BaseModel

from proofbox.service.access.api_keys import Permission
from proofbox.service.access_errors import MissingPermissionError
from proofbox.service.api.identity import principal_of
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.routes.tool_calls import REPLAYED
from proofbox.service.gateway.spaces.port import Actor, RequestKey
from proofbox.service.identity import Principal


def build_actor(request: Request, entity_id: str | None = None) -> Actor:
    """Return who acts.

    Args:
        request: the request.
        entity_id: the entity that the request names, if it does.

    Raises:
        MissingPermissionError: it has a space token and names another entity than the token's.
    """
    caller = caller_of(request.scope["state"])
    grant = caller.grant
    if grant is None:
        may_act_as = Permission.SPACES_ACT_AS in caller.permissions
        return Actor(caller.principal, entity_id, may_act_as)
    if entity_id not in (None, grant.entity_id):
        raise MissingPermissionError(
            f"entity_id: the space token acts as '{grant.entity_id}' only; leave entity_id out"
        )
    return Actor(caller.principal, grant.entity_id, token_space_id=grant.space_id)


async def actor_of(request: Request, _principal: Annotated[Principal, Depends(principal_of)]) -> Actor:
    """Return who acts in a request that names no entity; the scopes of the route are required."""
    return build_actor(request)


async def key_actor_of(request: Request, _principal: Annotated[Principal, Depends(principal_of)]) -> Actor:
    """Return who acts in a request that a space token may not make.

    Raises:
        MissingPermissionError: it has a space token.
    """
    actor = build_actor(request)
    if actor.token_space_id is not None:
        raise MissingPermissionError("a space token reads its space, posts and answers; use an API key for this")
    return actor


def request_key(route: str, name: str | None, body: BaseModel) -> RequestKey | None:
    """Return the key of a creating request, if it has one.

    Args:
        route: method and path of the route, with the values that it is called with.
        name: the value of ``Idempotency-Key``.
        body: the body.
    """
    if name is None:
        return None
    text = f"{route}\n{body.model_dump_json(exclude_defaults=True)}"
    return RequestKey(name, hashlib.sha256(text.encode()).hexdigest())


def replayed(is_replay: bool) -> dict[str, str]:
    """Return the header ``Idempotent-Replayed`` of an answer that was stored before."""
    return dict(REPLAYED) if is_replay else {}


ReadingActor = Annotated[Actor, Security(actor_of, scopes=[Permission.SPACES_READ.value])]
WritingActor = Annotated[Actor, Security(actor_of, scopes=[Permission.SPACES_WRITE.value])]
ListingKey = Annotated[Actor, Security(key_actor_of, scopes=[Permission.SPACES_READ.value])]
ManagingKey = Annotated[Actor, Security(key_actor_of, scopes=[Permission.SPACES_WRITE.value])]
