"""Path and query parameters that several routes of the gateway take."""

from typing import Annotated

from fastapi import Path, Query

from proofbox.contracts.gateway.names import EntityId, MessageId, RunId, SpaceId
from proofbox.service.gateway.spaces.port import PAGE_MAX

EntityIdInPath = Annotated[EntityId, Path(description="The entity; of an agent `agent:<agent_id>`.")]
SpaceIdInPath = Annotated[SpaceId, Path(description="The space.")]
MessageIdInPath = Annotated[MessageId, Path(description="The message.")]
RunIdInPath = Annotated[RunId, Path(description="The run.")]
LimitInQuery = Annotated[int, Query(ge=1, le=PAGE_MAX, description="Entries of a page.")]
BeforeInQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=128, description="`next` of the page before; none for the first page."),
]
